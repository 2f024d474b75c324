"""Running code before and after a migration under JAX, and comparing what it computes."""
