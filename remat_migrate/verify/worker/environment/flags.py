"""Command-line flags have their defaults: nobody parses a command line in a worker."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from typing import Any, Dict

from ..import_hooks import after_import
from . import ledger, projects

# The flags that each file defines, by name.
_defined: Dict[str, Dict[str, Any]] = {}


def install() -> None:
    """Let code read its flags in this process."""
    after_import("absl.flags", _parse_absl_flags)
    after_import("ml_collections.config_flags.config_flags", _default_config_files)
    original = argparse.ArgumentParser.parse_known_args

    @functools.wraps(original)
    def parse_known_args(self: Any, *args: Any, **kwargs: Any) -> Any:
        if ledger.state.importing:
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
        if ledger.state.importing:
            flag.allow_override = True
            frame = sys._getframe(1)
            while not projects.is_project_file(frame.f_code.co_filename) and frame.f_back:
                frame = frame.f_back
            _defined.setdefault(frame.f_code.co_filename, {})[name] = flag
        define(self, name, flag)

    values.__setitem__ = __setitem__


def activate(file: str) -> None:
    """Give flags the meaning that a file defines, where others define them, too."""
    flags = sys.modules.get("absl.flags")
    if flags is not None:
        flags.FLAGS._flags().update(_defined.get(file, {}))


def _default_config_files(config_flags: Any) -> None:
    """Read `configs/default.py` beside a script whose file of settings has no default."""
    define = config_flags.DEFINE_config_file

    @functools.wraps(define)
    def define_config_file(name: str, default: Any = None, *args: Any, **kwargs: Any) -> Any:
        path = sys._getframe(1).f_code.co_filename
        if default is None and projects.is_project_file(path):
            beside = os.path.join(os.path.dirname(path), "configs", "default.py")
            default = beside if os.path.isfile(beside) else None
        return define(name, default, *args, **kwargs)

    config_flags.DEFINE_config_file = define_config_file
