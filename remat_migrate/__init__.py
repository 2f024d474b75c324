"""remat-migrate: find, fix and prove migrations of `jax.checkpoint` / `jax.remat`."""

__version__ = "0.2.0"
HOMEPAGE = "https://github.com/remat-migrate/remat-migrate"
