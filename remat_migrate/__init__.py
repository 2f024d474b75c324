"""remat-migrate: find, fix and prove migrations of `jax.checkpoint` / `jax.remat`."""

__version__ = "0.1.0"
