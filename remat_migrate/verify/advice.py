"""What to do about code that cannot be imported or run where it is verified."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def advice(error: Mapping[str, Any], python: Path, platform: str) -> str:
    """A remedy for an error as `failures.describe` gives it; empty if none is known.

    Args:
        error: the error.
        python: the interpreter that the code ran in.
        platform: what JAX ran on.
    """
    kind, message = error["type"], error["message"]
    if kind == "ModuleNotFoundError":
        return f"install it for {python}, or name the interpreter that has it: --python PATH"
    if kind == "ImportError" and "no known parent package" in message:
        return "its folder is no package: one needs an __init__.py"
    if "backend" in message and any(word in message for word in ("Unknown", "no platforms", "No ")):
        return f"JAX runs on {platform} here: --platform NAME says what else to run it on"
    if kind == "SystemExit" and "<module>" in error["traceback"]:
        return 'what shall not happen on import belongs under `if __name__ == "__main__":`'
    return ""
