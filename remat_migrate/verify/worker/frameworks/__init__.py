"""Turn Flax and Haiku units into plain functions."""
