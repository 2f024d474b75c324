"""Names that JAX, Flax, Haiku, Optax, and NumPy removed, and what replaced them.

From the changelogs of the libraries. A name is looked up only if it is missing, so a row holds for
every release. What no longer exists under any name has no row. Checkpoint functions have none
either: they are what migrations are about.
"""

from __future__ import annotations

import os
from typing import Dict, List, Tuple


def _read() -> Dict[str, Tuple[str, ...]]:
    with open(os.path.join(os.path.dirname(__file__), "removed_names.txt")) as table:
        rows = [line.split() for line in table if not line.startswith("#")]
    return {old: tuple(new) for old, _, *new in rows}


_ROWS = _read()

# The modules that have members in the table, and the packages around them, those first.
MODULES = sorted(
    {old[:end] for old in _ROWS for end, character in enumerate(old) if character == "."}
)

# What migrations are about: bridging it would hide a wrong one.
CHECKPOINTS = frozenset(["checkpoint", "remat", "new_checkpoint", "remat_transform"])


def successors(name: str) -> List[str]:
    """Return the names that may replace one that is missing, by preference."""
    module, _, member = name.rpartition(".")
    if member in CHECKPOINTS:
        return []
    members = (new.replace("*", member) for new in _ROWS.get(module + ".*", ()))
    return [*_ROWS.get(name, ()), *members]
