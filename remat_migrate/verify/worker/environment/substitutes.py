"""Make what stands for a module, or an attribute of one, that does not exist."""

from __future__ import annotations

import importlib
import opcode
import sys
import types
from types import FrameType
from typing import Any, Dict, Optional, Tuple

from . import guards, ledger, projects, renamed
from .bridging import bridge, is_checkpoint, may_ask
from .distributions import distribution
from .ledger import Reason
from .missing import Missing

_READS_ATTRIBUTE = frozenset(["LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"])


# Attributes of real modules that the project asked for in vain.
ATTRIBUTES: Dict[Tuple[str, str], Any] = {}


class Namespace(Missing):
    """A module that is gone, of which some members were bridged."""

    def __getattr__(self, name: str) -> Any:
        file = str(sys._getframe(1).f_globals.get("__file__"))
        full = "%s.%s" % (self._name, name)
        if name.startswith("__"):
            return super().__getattr__(name)
        found = bridge(full, file)
        if found is None and is_checkpoint(full):
            raise AttributeError("%s does not exist" % full)
        if found is None and renamed.has_members(full):
            return Namespace(full, self._reason)
        if found is None:
            reason = self._reason._replace(name=full)
            ledger.note(file, reason)
            return Missing(full, reason)
        return found


def module_for(name: str, error: BaseException, file: str) -> Any:
    """Return what stands for a module, or a member of one, that cannot be imported."""
    found = bridge(name, file)
    if found is not None:
        return found
    reason = _reason(name, error)
    if renamed.has_members(name):
        return Namespace(name, reason)
    ledger.note(file, reason)
    return Missing(name, reason)


def _reason(name: str, error: BaseException) -> Reason:
    top = name.partition(".")[0]
    package = sys.modules.get(top)
    lacking = getattr(error, "name", None) or ""
    not_found = isinstance(error, ModuleNotFoundError)
    if not_found and lacking.partition(".")[0] != top:
        text = "(it needs %s, which is not installed)" % lacking
        return Reason(name, text, "missing", distribution(lacking))
    if not_found and getattr(package, "__file__", None) is None:  # perhaps a namespace package
        whole = name if top == "google" else top  # shared by many distributions
        return Reason(whole, "(not installed)", "missing", distribution(name))
    if not_found or isinstance(error, AttributeError):
        if projects.is_project_module(top):
            return Reason(name, "(not in the project)", "missing")
        version = getattr(package, "__version__", "")
        return Reason(name, "(not in %s)" % ("%s %s" % (top, version)).strip(), "missing")
    what = "%s: %s" % (type(error).__name__, _first_line(error))
    return Reason(name, "(cannot be imported: %s)" % what, "missing")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else ""


def hook_attributes(module: Any) -> None:
    """Let the project read attributes of a module that do not exist and have substitutes."""
    original = vars(module).get("__getattr__")
    if getattr(original, "_remat_migrate", False):
        return

    def __getattr__(name: str) -> Any:
        try:
            if original is not None:
                return original(name)
            raise AttributeError("module %r has no attribute %r" % (module.__name__, name))
        except AttributeError as error:
            found = _asked_attribute(module, name, error, sys._getframe(1))
            if found is None:
                raise
            return found

    __getattr__._remat_migrate = True  # type: ignore[attr-defined]
    module.__getattr__ = __getattr__


def _asked_attribute(
    module: Any, name: str, error: AttributeError, frame: FrameType
) -> Optional[Any]:
    file = frame.f_globals.get("__file__")
    ours = projects.is_project_file(file)
    if not (ours or may_ask(frame.f_globals)) or not _reads_attribute(frame):
        return None
    known = ATTRIBUTES.get((module.__name__, name)) if ours else None
    full = "%s.%s" % (module.__name__, name)
    if guards.expects(frame, error):
        return None
    if known is None and hasattr(module, "__path__") and _import_part(full, str(file)):
        return getattr(module, name)
    found = bridge(full, str(file)) if known is None else known
    if found is None and renamed.has_members(full) and not is_checkpoint(full):
        found = ATTRIBUTES[module.__name__, name] = Namespace(full, _reason(full, error))
    return found


def _import_part(name: str, file: str) -> bool:
    """Import a module that its package no longer imports by itself; return whether it exists."""
    try:
        importlib.import_module(name)
    except Exception:
        return False
    ledger.note(file, Reason(name, "-> import %s" % name, "bridged"))
    return True


def stand_in_for_attribute(error: AttributeError, file: str) -> bool:
    """Provide a stand-in for the attribute of a library's module that a file asked for.

    Returns:
        whether there is one now, so that the statement may be tried again.
    """
    module, name = getattr(error, "obj", None), getattr(error, "name", None)
    if not isinstance(module, types.ModuleType) or name is None:
        return False
    full = "%s.%s" % (module.__name__, name)
    if (module.__name__, name) in ATTRIBUTES or is_checkpoint(full):
        return False
    if _import_part(full, file):
        return True
    if projects.is_project_file(getattr(module, "__file__", None)):
        return False
    ATTRIBUTES[module.__name__, name] = module_for(full, error, file)
    hook_attributes(module)
    return True


def _reads_attribute(frame: FrameType) -> bool:
    """Return whether the frame reads an attribute; `hasattr` and `getattr` call a function."""
    code = frame.f_code.co_code[frame.f_lasti]
    return opcode.opname[code] in _READS_ATTRIBUTE
