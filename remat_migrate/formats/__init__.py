"""A setting in shell scripts, Dockerfiles, YAML, TOML, Makefiles and `.env` files.

`files.plan_text` is the way in. Nothing is imported here: most runs meet no such file.
"""
