"""Units of Flax and Haiku as plain functions."""
