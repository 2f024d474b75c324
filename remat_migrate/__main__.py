"""`python -m remat_migrate`."""

from __future__ import annotations

import sys
from os import getcwd, path

if __name__ == "__main__":
    # Python puts the current folder first. What lies in a project that is checked is not ours to
    # import: its `click.py`, or a package of rules that its metadata offers.
    here = path.realpath(getcwd())
    if path.dirname(path.dirname(path.realpath(__file__))) != here:
        sys.path[:] = [entry for entry in sys.path if path.realpath(entry) != here]
    from .cli.commands import main

    main()
