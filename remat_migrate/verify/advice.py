"""Suggest a remedy for code that cannot be imported or run during verification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def advice(error: Mapping[str, Any], python: Path, platform: str) -> str:
    """Return a remedy, empty if none is known.

    Args:
        error: an error as `failures.describe` returns it.
        python: the interpreter that ran the code.
        platform: the JAX platform.
    """
    kind, message = error["type"], error["message"]
    if kind == "ModuleNotFoundError":
        return f"install it for {python}, or pass an interpreter that has it with --python PATH"
    if "backend" in message and any(word in message for word in ("Unknown", "no platforms", "No ")):
        return f"JAX runs on {platform} here; choose another platform with --platform NAME"
    return ""
