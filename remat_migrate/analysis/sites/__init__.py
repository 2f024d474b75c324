"""Where checkpoints are applied, and where what they wrap is called."""
