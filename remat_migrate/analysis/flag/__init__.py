"""The `jax_new_checkpoint` flag in Python."""
