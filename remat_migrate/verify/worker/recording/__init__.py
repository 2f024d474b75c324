"""Record the inputs and outputs of units while a command runs."""
