"""Training steps: the loss that they differentiate, its stages within the step, batch sizes."""
