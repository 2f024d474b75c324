"""The words without which a file cannot matter. Looking for them costs what `grep` costs."""

from __future__ import annotations

# A file without one of these cannot hold a checkpoint or the flag, nor suppress a finding: every
# Api's own name contains one, and `RMT` starts our codes.
WORDS = (b"remat", b"checkpoint", b"NEW_CHECKPOINT", b"RMT")

# A file with all of these may hold a scan that is differentiated.
SCAN_WORDS = (b"jax", b"scan(", b"grad")
