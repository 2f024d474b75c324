"""Process state that the code under test may change for everything that runs after it.

A worker runs the units of a project one after the other in one process. A unit that changes the
working folder, the environment, a function of the standard library, or the JAX configuration would
affect the verdicts of others, so the process is not used again.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import signal
import sys
import threading
import time
from typing import Any, Dict, List

# Modules that the worker itself needs.
_MODULES = (builtins, io, json, json.decoder, json.encoder, os, os.path, signal, threading, time)


def snapshot() -> Dict[str, Any]:
    """Return the state of the process that outlives a call, by name."""
    found: Dict[str, Any] = {
        "the folder": _working_folder(),
        "os.environ": dict(os.environ),
        "sys.path": list(sys.path),
        "sys.meta_path": [id(finder) for finder in sys.meta_path],
        "sys.path_hooks": [id(hook) for hook in sys.path_hooks],
        "the recursion limit": sys.getrecursionlimit(),
        "a timer": signal.getitimer(signal.ITIMER_REAL)[0] > 0,
        "signal handlers": [signal.getsignal(number) for number in signal.Signals],
        "threads": {thread.ident for thread in threading.enumerate()},
        "jax.config": _jax_settings(),
    }
    for stream in ("stdin", "stdout", "stderr"):
        value = getattr(sys, stream, None)
        found["sys." + stream] = (id(value), getattr(value, "closed", None))
    for module in _MODULES:
        names = vars(module)
        found[module.__name__] = {name: id(value) for name, value in names.items()}
    return found


def resident_bytes() -> int:
    """Return the resident memory of the process in bytes; 0 if the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, TypeError):
        return 0


def changes(before: Dict[str, Any], most: int) -> List[str]:
    """Return the names of the state that has changed since `before`.

    That is memory where the process has more than `most` bytes: what one unit keeps, another lacks.
    """
    if resident_bytes() > most:
        return ["memory"]
    try:
        after = snapshot()
    except Exception as error:
        return [repr(error)]  # something that `snapshot` needs is missing
    return [name for name, value in before.items() if not _is_unchanged(value, after[name])]


def _is_unchanged(old: Any, new: Any) -> bool:
    if isinstance(old, set):
        return bool(new <= old)  # ended threads do no harm
    if isinstance(old, dict) and old and all(isinstance(v, int) for v in old.values()):
        # Nobody uses new names in a module.
        return all(new.get(name) == value for name, value in old.items())
    return bool(old == new)


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # the folder was removed


def _jax_settings() -> Dict[str, str]:
    jax = sys.modules.get("jax")
    values = getattr(getattr(jax, "config", None), "values", None) or {}
    return {name: repr(value) for name, value in dict(values).items()}
