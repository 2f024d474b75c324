"""The data of a unit's module, which each run finds as it was."""

from __future__ import annotations

import contextlib
import copy
import operator
from typing import Any, Dict, Iterator, List, Tuple

import jax
import numpy as np

from .environment import projects
from .frameworks import nnx_modules
from .lookup import attribute, unwrapped

# Whether a run has changed data of its module, which the next would have found without `restored`.
is_changed = False

_PLAIN = (bool, int, float, str, dict, list, set, np.ndarray, jax.Array)


def data_of(function: Any) -> Dict[str, Any]:
    """Return the data that code may change in the module of a function of the project, by name."""
    scope = attribute(unwrapped(function), "__globals__", {})
    if not projects.is_project_file(scope.get("__file__")):
        return {}
    return {
        name: value
        for name, value in scope.items()
        if not name.startswith("__")
        and (isinstance(value, _PLAIN) or nnx_modules.is_module_class(type(value)))
    }


@contextlib.contextmanager
def restored(function: Any) -> Iterator[None]:
    """Put back, in the end, the data of the module of a function, and what it holds now.

    What a run leaves there, such as traced values in a cache or in an NNX module, would be found by
    the next. That there is something is noted in `is_changed`.
    """
    data = data_of(function)
    held: List[Tuple[Any, Any]] = []
    slots: List[Tuple[Any, str, Any]] = []
    waiting: List[Any] = [data]
    seen = set()
    while waiting:
        one = waiting.pop()
        if nnx_modules.is_stateful(one):
            slots += [(one, name, getattr(one, name)) for name in _slots_of(one)]
            one = vars(one)
        if type(one) in (dict, list, set, np.ndarray) and id(one) not in seen:
            seen.add(id(one))
            held.append((one, copy.copy(one)))
            if type(one) is not np.ndarray:
                waiting += one.values() if type(one) is dict else one
    try:
        yield
    finally:
        global is_changed
        scope = attribute(unwrapped(function), "__globals__", {})
        is_changed |= any(scope.get(name) is not value for name, value in data.items())
        for container, content in held:
            if _is_same(container, content):
                continue
            is_changed = True
            if type(container) is np.ndarray:
                container[...] = content
                continue
            container.clear()
            (container.extend if type(container) is list else container.update)(content)
        for owner, name, value in slots:
            object.__setattr__(owner, name, value)  # NNX refuses to change a variable in a trace
        scope.update(data)


def _is_same(container: Any, content: Any) -> bool:
    """Return whether a container holds the same objects, or numbers, as this copy of it."""
    if type(container) is np.ndarray:
        return bool(container.tobytes() == content.tobytes())
    if type(container) is dict:
        return _is_same([*container, *container.values()], [*content, *content.values()])
    return len(container) == len(content) and all(map(operator.is_, container, content))


def _slots_of(value: Any) -> Iterator[str]:
    for cls in type(value).__mro__:
        yield from (name for name in getattr(cls, "__slots__", ()) if hasattr(value, name))
