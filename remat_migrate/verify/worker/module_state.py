"""The data that a unit may change besides its arguments, which each run finds as they were.

These are the variables of its module, and of other modules of the project that the code of the unit
names, and the attributes of classes, functions, and objects there.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
import random
import sys
import types
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Set, Tuple

import jax
import numpy as np

from .environment import projects
from .frameworks import flax_modules, nnx_modules
from .lookup import attribute, code_names, has, unwrapped

# Whether a run has changed such data, which the next would have found without `restored`.
is_changed = False

_RANDOM = (np.random.Generator, np.random.RandomState, random.Random)
_PLAIN = (bool, int, float, str, dict, list, set, np.ndarray, jax.Array, *_RANDOM)
# How many calls deep code is read.
_DEPTH = 4
_FUNCTION = types.FunctionType


class Owner(NamedTuple):
    """What has data: the namespace of a module, a class, a function, or an object.

    Attributes:
        of: the owner; for a module its dictionary.
        label: what precedes the names of its data in messages.
        file: the file of its module.
        name: the name in that module that leads to it; empty for the module.
        names: the names of the data; empty for all.
    """

    of: Any
    label: str
    file: str
    name: str
    names: Set[str]

    @property
    def data(self) -> Dict[str, Any]:
        """Its data by name."""
        return {
            name: value
            for name, value in _namespace(self.of).items()
            if not name.startswith("__")
            and (name in self.names or not self.names)
            and (isinstance(value, _PLAIN) or nnx_modules.is_module_class(type(value)))
        }

    def put(self, name: str, value: Any) -> None:
        """Set one of its data."""
        if isinstance(self.of, type):
            setattr(self.of, name, value)
        else:
            _namespace(self.of)[name] = value


def _namespace(owner: Any) -> Any:
    return owner if isinstance(owner, dict) else vars(owner)


def owners_of(function: Any) -> Iterable[Owner]:
    """Return what has data that a function of the project may change, its module first."""
    start = unwrapped(function)
    start = attribute(start, "__func__", start)
    return _owners(start) if isinstance(start, types.FunctionType) else ()


@functools.lru_cache(maxsize=256)
def _owners(start: types.FunctionType) -> Iterable[Owner]:
    found: Dict[int, Owner] = {}
    if not projects.is_project_file(start.__globals__.get("__file__")):
        return ()
    scope = start.__globals__
    found[id(scope)] = Owner(scope, "", scope["__file__"], "", set())
    waiting: List[Tuple[Any, str, FrozenSet[str], int]] = []

    def add(of: Any, label: str, module: str, name: str) -> bool:
        file = getattr(sys.modules.get(module), "__file__", None)
        if id(of) in found or not projects.is_project_file(file):
            return False
        found[id(of)] = Owner(of, label, str(file), name, set())
        return True

    def use(scope: Dict[str, Any], names: FrozenSet[str], left: int) -> None:
        """Note that code reads these names of a module."""
        read = names.intersection(scope)
        if read and scope is not start.__globals__:
            add(scope, scope["__name__"] + ".", scope["__name__"], "")
            if id(scope) in found:
                found[id(scope)].names.update(read)
        waiting.extend((scope[name], name, names, left) for name in sorted(read) if left)

    # A method changes the attributes of its class, which it need not name.
    use(start.__globals__, frozenset([start.__qualname__.partition(".")[0]]), _DEPTH)
    waiting.append((start, start.__name__, frozenset(), _DEPTH))
    while waiting:
        thing, name, names, left = waiting.pop()
        thing = unwrapped(thing) if callable(thing) else thing
        if isinstance(thing, types.ModuleType):
            use(vars(thing), names, left)
        elif isinstance(thing, types.FunctionType):
            if add(thing, thing.__qualname__ + ".", thing.__module__, name):
                use(thing.__globals__, code_names(thing.__code__), left - 1)
        elif isinstance(thing, type):
            if add(thing, thing.__qualname__ + ".", thing.__module__, name):
                members = [attribute(m, "__func__", m) for m in vars(thing).values()]
                waiting += [(m, name, names, left) for m in members if isinstance(m, _FUNCTION)]
        elif has(thing, "__dict__") and not flax_modules.is_module(thing):
            if not nnx_modules.is_stateful(thing):
                if add(thing, name + ".", type(thing).__module__, name):
                    waiting.append((type(thing), type(thing).__name__, names, left))
    return tuple(found.values())


@contextlib.contextmanager
def restored(function: Any) -> Iterator[None]:
    """Put back, in the end, the data that a function may change, and what these hold now.

    What a run leaves there, such as traced values in a cache or in an NNX module, would be found by
    the next. That there is something is noted in `is_changed`.
    """
    data = [(owner, owner.data) for owner in owners_of(function)]
    held: List[Tuple[Any, Any]] = []
    slots: List[Tuple[Any, str, Any]] = []
    drawn: List[Tuple[Any, Any]] = []
    waiting: List[Any] = [values for _, values in data]
    seen = set()
    while waiting:
        one = waiting.pop()
        if nnx_modules.is_stateful(one):
            slots += [(one, name, getattr(one, name)) for name in _slots_of(one)]
            one = vars(one)
        if isinstance(one, _RANDOM):
            one = getattr(one, "bit_generator", one)
            drawn.append((one, copy.deepcopy(_drawn_state(one))))
        if type(one) in (dict, list, set, np.ndarray) and id(one) not in seen:
            seen.add(id(one))
            held.append((one, copy.copy(one)))
            if type(one) is not np.ndarray:
                waiting += one.values() if type(one) is dict else one
    try:
        yield
    finally:
        global is_changed
        for container, content in held:
            if _is_same(container, content):
                continue
            is_changed = True
            if type(container) is np.ndarray:
                container[...] = content
                continue
            container.clear()
            (container.extend if type(container) is list else container.update)(content)
        for one, state in drawn:
            if isinstance(one, np.random.BitGenerator):
                one.state = state
            else:
                one.__setstate__(state)
        for one, name, value in slots:
            object.__setattr__(one, name, value)  # NNX refuses to change a variable in a trace
        for owner, values in data:
            now = owner.data
            for name in [name for name in values if now.get(name) is not values[name]]:
                is_changed = True
                owner.put(name, values[name])


def _drawn_state(source: Any) -> Any:
    """Return the state of a source of random numbers."""
    return source.state if isinstance(source, np.random.BitGenerator) else source.__getstate__()


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
