"""Rewrites that several rules share: static arguments, closures, options, and placement.

The analysis decides, a rewrite returns the Changes, and the rule explains them. If a rewrite is not
possible, it raises `Refused` with the reason.
"""

from .refusal import Refused

__all__ = ["Refused"]
