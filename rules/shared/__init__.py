"""What several rules share, and the parts of rules that are too long for one file."""
