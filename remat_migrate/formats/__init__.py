"""Removes a setting from shell scripts, Dockerfiles, YAML, TOML, Makefiles, and `.env` files.

The entry point is `files.plan_text`. This package imports nothing, because most runs need no
format.
"""
