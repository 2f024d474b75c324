"""The code that runs in the user's interpreter: needs only the standard library, numpy, and jax.

It is loaded as `remat_migrate_worker`, so remat-migrate need not be installed there. It uses only
the syntax of Python 3.11 and the features of jax 0.4.30.
"""
