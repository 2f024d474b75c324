"""Running the tool on real repositories: properties that always hold, and recorded results."""
