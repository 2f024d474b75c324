"""The words without which a file cannot matter. Looking for them costs what `grep` costs."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A file without one of these cannot hold a checkpoint or the flag, nor suppress a finding: every
# Api's own name contains one, and `RMT` starts our codes.
WORDS = (b"remat", b"checkpoint", b"NEW_CHECKPOINT", b"RMT")

# The flag in its two spellings. A file with one of them is looked at, wherever it stands.
FLAGS = (b"jax_new_checkpoint", b"JAX_NEW_CHECKPOINT")

# What a comment that suppresses findings has.
SUPPRESSION = re.compile(rb"RMT\d|remat-migrate")

# A file with all of these may hold a scan that is differentiated.
SCAN_WORDS = (b"scan(", b"grad", b"jax")

# JSON may hold letters of a word as escapes, though nobody writes it so.
ESCAPED = re.compile(rb"\\u00[2-7]")

# `checkpoint as ckpt`, `ckpt = jax.checkpoint`, `ckpt = partial(\n jax.checkpoint, …`
_ALIAS = re.compile(
    rb"\b(?:remat|checkpoint)\s+as\s+(\w+)"
    rb"|^[ \t]*(\w+)[ \t]*(?::[^=\n]+)?=[ \t]*\(?\s*(?:[\w.]*partial\(\s*)?[\w.]*"
    rb"\b(?:filter_)?(?:remat|checkpoint)\b(?!\s*\(\s*[\w.]+\s*[,)])",
    re.MULTILINE,
)


def bound_aliases(data: bytes) -> Iterator[bytes]:
    """The names that the text of a Python file may give to a checkpoint, besides its own."""
    for imported, assigned in _ALIAS.findall(data):
        yield imported or assigned
