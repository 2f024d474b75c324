"""Place checkpoints under a memory budget."""
