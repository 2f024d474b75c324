"""What the functions of a project make for the parameters of others."""
