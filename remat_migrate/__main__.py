"""`python -m remat_migrate`."""

from __future__ import annotations

import sys
from contextlib import suppress
from os import getcwd, path

if __name__ == "__main__":
    # Python puts the current folder first in sys.path. Never import from the project that is
    # checked, be it a `click.py` or a package that declares rules.
    with suppress(OSError):  # The folder is gone, and `main` says so.
        here = path.realpath(getcwd())
        if path.dirname(path.dirname(path.realpath(__file__))) != here:
            sys.path[:] = [entry for entry in sys.path if path.realpath(entry) != here]
    from .cli.commands import main

    main()
