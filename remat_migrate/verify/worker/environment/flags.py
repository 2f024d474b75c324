"""Command-line flags have their defaults: nobody parses a command line in a worker."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from ..import_hooks import after_import
from . import stand_ins


def install() -> None:
    """Let code read its flags in this process."""
    after_import("absl.flags", _parse_absl_flags)
    original = argparse.ArgumentParser.parse_known_args

    @functools.wraps(original)
    def parse_known_args(self: Any, *args: Any, **kwargs: Any) -> Any:
        if stand_ins.state.importing:
            for group in (*self._actions, *self._mutually_exclusive_groups):
                group.required = False
        return original(self, *args, **kwargs)

    argparse.ArgumentParser.parse_known_args = parse_known_args  # type: ignore[method-assign]


def _parse_absl_flags(flags: Any) -> None:
    """Mark flags as parsed, and let the scripts of a project define the same flags."""
    flags.FLAGS.mark_as_parsed()
    values = type(flags.FLAGS)
    define = values.__setitem__

    def __setitem__(self: Any, name: str, flag: Any) -> None:
        flag.allow_override |= bool(stand_ins.state.importing)
        define(self, name, flag)

    values.__setitem__ = __setitem__
