"""Let imports of the project succeed: bridge removed names, and stand in for the rest.

`install` replaces `__import__` for the whole process. Imports that code expects to fail do fail:
under `try` with a handler, in `find_spec`, in `hasattr`. Libraries see nothing but bridged names.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
import types
from types import FrameType
from typing import Any, Dict, Optional, Sequence

from ..import_hooks import after_import
from . import guards, ledger, missing, projects, renamed
from .bridging import (
    LIBRARIES,
    accept_keywords,
    bridge,
    bridge_member,
    bridged,
    is_checkpoint,
    may_ask,
)
from .ledger import Reason
from .missing import Missing
from .substitutes import ATTRIBUTES, hook_attributes, module_for

_import = builtins.__import__
# Modules that could not be imported, by name.
_failed: Dict[str, BaseException] = {}


def install() -> None:
    """Take over imports in this process."""
    if builtins.__import__ is _import:
        builtins.__import__ = _replaced_import  # type: ignore[assignment]
        missing.bridges.append(bridge_member)
        for name in renamed.modules():
            after_import(name, hook_attributes)
        for function in {row.function for row in renamed.KEYWORDS}:
            action = functools.partial(accept_keywords, function)
            after_import(function.rpartition(".")[0], action)


def _replaced_import(
    name: str,
    globals: Optional[Dict[str, Any]] = None,
    locals: Optional[Dict[str, Any]] = None,
    fromlist: Sequence[str] = (),
    level: int = 0,
) -> Any:
    """Import like `__import__`, for the project with substitutes."""
    file = (globals or {}).get("__file__")
    ours = projects.is_project_file(file)
    if not ours and not (may_ask(globals) and name.partition(".")[0] in LIBRARIES):
        return _import(name, globals, locals, fromlist, level)
    request = _Request(name, globals or {}, fromlist or (), level, sys._getframe(1), ours)
    try:
        if request.absolute in _failed:
            raise _failed[request.absolute]
        found = _import(name, globals, locals, fromlist, level)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if guards.expects(request.frame, error) or not request.may_replace():
            raise
        return request.substitute(error)
    if ours:
        request.link()
    return request.with_members(found)


class _Request:
    """One import statement."""

    def __init__(
        self,
        name: str,
        names: Dict[str, Any],
        members: Sequence[str],
        level: int,
        frame: FrameType,
        ours: bool,
    ) -> None:
        self.frame = frame
        self._file = str(names.get("__file__"))
        self._names = names
        self._members = [m for m in members if isinstance(m, str)]
        self._level = level
        self._name = name
        self._ours = ours
        self.absolute = _absolute(name, names, level)

    def may_replace(self) -> bool:
        """Return whether a failed import may have a substitute."""
        if self._ours:
            return True
        asked = ["%s.%s" % (self.absolute, m) for m in self._members] or [self.absolute]
        return all(bridged(each) is not None for each in asked)

    def substitute(self, error: BaseException) -> Any:
        """Return what the statement gets in place of a module that cannot be imported."""
        if not self._members:
            return self._top(error)
        module = _existing(self.absolute)
        if module is None:
            module = module_for(self.absolute, error, self._file)
        elif self._level:
            # A file outside of a package imports its neighbour.
            reason = Reason("." * self._level + self._name, "-> %s" % self.absolute, "bridged")
            ledger.note(self._file, reason)
        return self.with_members(module)

    def _top(self, error: BaseException) -> Any:
        """Return the first package of `import a.b.c`; what is missing becomes an attribute."""
        parts = self.absolute.split(".")
        found = _existing(parts[0])
        if found is None:
            return module_for(parts[0], error, self._file)
        parent = found
        for end in range(2, len(parts) + 1):
            name = ".".join(parts[:end])
            module = _existing(name)
            if module is None:
                ATTRIBUTES[parent.__name__, parts[end - 1]] = module_for(name, error, self._file)
                hook_attributes(parent)
                break
            parent = module
        return found

    def with_members(self, module: Any) -> Any:
        """Return the module, or a namespace with substitutes for members that it lacks."""
        if isinstance(module, Missing):
            if "*" in self._members:
                return self._everything(module)
            return module
        lacking = {}
        for member in self._members:
            if member != "*":
                error = self._lacks(module, member)
                if error is not None:
                    lacking[member] = error
        if not lacking or guards.expects(self.frame, ImportError()):
            return module
        substitutes = {}
        for member, error in lacking.items():
            full = "%s.%s" % (module.__name__, member)
            found = bridge(full, self._file)
            if found is None and self._ours and not is_checkpoint(full):
                found = module_for(full, error, self._file)
            if found is None:
                return module
            substitutes[member] = found
        return _Overlay(module, substitutes)

    def _lacks(self, module: Any, member: str) -> Optional[BaseException]:
        """Return why a module lacks a member; None if it does not."""
        try:
            getattr(module, member)
            return None
        except AttributeError as error:
            reason: BaseException = error
        except Exception as error:
            return error  # a lazy module whose part cannot be imported
        name = "%s.%s" % (getattr(module, "__name__", ""), member)
        if name in sys.modules:
            return None
        if hasattr(module, "__path__"):
            # Importing a module that is not there is silent; one that fails may hide others.
            try:
                importlib.import_module(name)
                return None
            except Exception as error:
                reason = error
        return reason

    def _everything(self, module: Missing) -> Any:
        """Return a namespace with the names that the code takes from `from missing import *`."""
        names = _undefined_names(self._file)
        found = types.SimpleNamespace(**{name: getattr(module, name) for name in names})
        found.__all__ = list(names)
        return found

    def link(self) -> None:
        """Record which files of the project this statement imports."""
        linked = ledger.state.imports.setdefault(self._file, set())
        for name in [self.absolute] + ["%s.%s" % (self.absolute, m) for m in self._members]:
            path = getattr(sys.modules.get(name), "__file__", None)
            if path != self._file and projects.is_project_file(path):
                linked.add(str(path))


class _Overlay:
    """A module with some more members, for one import statement."""

    def __init__(self, module: Any, members: Dict[str, Any]) -> None:
        self.__name__ = module.__name__
        self.__dict__.update(members)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _absolute(name: str, names: Dict[str, Any], level: int) -> str:
    if not level:
        return name
    package = names.get("__package__") or str(names.get("__name__", "")).rpartition(".")[0]
    parts = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([part for part in (*parts, name) if part])


def _existing(name: str) -> Any:
    """Return a module if it can be imported; None if it cannot."""
    if name in _failed:
        return None
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _failed[name] = error
        return None


def _undefined_names(file: str) -> Sequence[str]:
    """Return the global names that a file reads and never binds."""
    import symtable

    with open(file, encoding="utf-8") as source:
        table = symtable.symtable(source.read(), file, "exec")
    bound = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    used = set()
    waiting = [table]
    while waiting:
        each = waiting.pop()
        waiting += each.get_children()
        used |= {s.get_name() for s in each.get_symbols() if s.is_global() and s.is_referenced()}
    used |= {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    return sorted(used - bound - set(dir(builtins)) - {"__file__", "__name__", "__doc__"})
