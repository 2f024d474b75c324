"""Command-line flags have their defaults: nobody parses a command line in a worker."""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
from typing import Any, Callable, Dict, Set

from ..import_hooks import after_import
from . import ledger, projects

# The flags that each file defines, by name.
_defined: Dict[str, Dict[str, Any]] = {}

# The flags that do not have their defaults.
_changed: Set[int] = set()

# How often a script does something, and how often is enough.
_REPEATS = re.compile(
    r"(\w+_)?(steps|iters|iterations|epochs|repeats?|trials|batches|batch_size|runs)"
)
_FEW = 2


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


def small(file: str, shrunk: Callable[[Dict[str, Any]], Dict[str, Any]]) -> Dict[str, Any]:
    """Return smaller values for the numeric flags of a script, where they have others.

    `shrunk` returns smaller sizes by name.
    """
    defaults = {name: flag.default for name, flag in _defined.get(file, {}).items()}
    numbers = {name: value for name, value in defaults.items() if type(value) is int}
    found = shrunk(numbers) if numbers else {}
    found = {n: min(v, _FEW) if _REPEATS.fullmatch(n) else v for n, v in found.items()}
    return {name: value for name, value in found.items() if value != numbers[name]}


def use(file: str, values: Dict[str, Any]) -> None:
    """Give flags of a file these values, and its others their defaults."""
    for name, flag in _defined.get(file, {}).items():
        if name in values or id(flag) in _changed:
            flag.value = values.get(name, flag.default)
            if name in values:
                _changed.add(id(flag))
            else:
                _changed.discard(id(flag))


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
