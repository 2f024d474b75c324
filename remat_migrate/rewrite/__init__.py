"""From a decision to edits: options, calls by position, closures, compile-time evaluation.

What several rules write stands here, between the model, which decides, and the rules, which
explain. A rewriting that cannot be done raises `Refused` with the reason.
"""

from .refusal import Refused

__all__ = ["Refused"]
