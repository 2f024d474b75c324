"""Settings that a project's own context managers change: `with override(solver="euler"):`."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

from ..frameworks import pure_functions
from ..frameworks.abstraction import evaluated
from ..instances import sizes, variations

_MOST = 4

Case = Dict[str, Any]


@contextlib.contextmanager
def active(case: Case) -> Iterator[None]:
    """Enter the context manager of a case, if it has one."""
    with contextlib.ExitStack() as stack:
        if case.get("within"):
            module, name, changes = case["within"]
            stack.enter_context(getattr(importlib.import_module(module), name)(**changes))
        yield


def overridden(
    unit: Callable[..., Any],
    load: Callable[[], Case],
    functions: Sequence[Any],
    read: Sequence[str],
    options: Mapping[str, Sequence[str]],
) -> Iterator[Tuple[str, Case]]:
    """Yield the case under other settings: all that are read at once, else each alone.

    `load` returns a copy of the case, `functions` are those that the unit reaches, and they read
    the names `read`.
    """
    for manager in _managers(functions):
        changes = _changes(manager, read, options)
        together = {name: value for change in reversed(changes) for name, value in change.items()}
        for change in [together, *changes[:_MOST]] if together else ():
            case = dict(load(), within=(manager.__module__, manager.__name__, change))
            if _runs(unit, case):
                said = " and ".join("{}={!r}".format(*pair) for pair in sorted(change.items()))
                yield "{}({})".format(manager.__name__, said), dict(load(), within=case["within"])
                if change is together:
                    break


def _managers(functions: Sequence[Any]) -> List[Any]:
    """Return the context managers beside what functions use that take changes by name."""
    modules: Dict[str, Any] = {}
    for function in functions:
        home = function.__module__
        modules[home] = sys.modules.get(home)
        for thing in list(function.__globals__.values()):
            if inspect.ismodule(thing):
                if thing.__name__.partition(".")[0] == home.partition(".")[0]:
                    modules[thing.__name__] = thing
    found = []
    for name, module in modules.items():
        for thing in list(vars(module).values()) if module else ():
            if inspect.isfunction(thing) and thing.__module__ == name and _takes_changes(thing):
                found.append(thing)
    return found


def _takes_changes(function: Any) -> bool:
    if function.__code__.co_filename != contextlib.__file__:
        return False
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return not needed and any(p.kind is p.VAR_KEYWORD for p in parameters)


def _changes(
    manager: Any, read: Sequence[str], options: Mapping[str, Sequence[str]]
) -> List[Dict[str, Any]]:
    """Return other values of the settings that a context manager yields."""
    try:
        with manager() as settings:
            if not sizes.holds_settings(settings):
                return []
            known = sizes.attributes(settings)
            others = variations.variations(settings, read, options)[1:]
    except Exception:  # the project's own
        return []
    found = [
        {name: value for name, value in sizes.attributes(other).items() if value != known[name]}
        for other in others
    ]
    return [change for change in found if change]


def _runs(unit: Callable[..., Any], case: Case) -> bool:
    try:
        with active(case):
            for call in pure_functions.prepare(unit, case)[-1:]:
                evaluated(*call[1:])
    except Exception:  # the unit does not work with these settings
        return False
    return True
