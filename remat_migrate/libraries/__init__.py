"""JAX, Flax, Haiku and Equinox as data."""
