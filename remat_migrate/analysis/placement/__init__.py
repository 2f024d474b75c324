"""What is differentiated, what runs in loops, and where checkpoints stand in it."""
