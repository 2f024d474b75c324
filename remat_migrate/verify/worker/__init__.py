"""What runs in the user's interpreter: needs the standard library, numpy and jax alone.

It is loaded under the name `remat_migrate_worker`, so that the interpreter needs no remat-migrate.
It keeps to the syntax of Python 3.11 and to what jax 0.4.30 has.
"""
