"""Which functions and methods differ between two states of a project."""
