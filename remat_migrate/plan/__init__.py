"""Where checkpoints should stand under a memory budget."""
