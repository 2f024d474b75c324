"""Recording what goes into and comes out of units while a command runs."""
