"""Values as Python source: literals, constructor calls, and names of arrays in a file."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import sys
import types
from typing import Any, Dict, List, Mapping, Sequence, Set

import jax
import jax.numpy as jnp
import numpy as np

from ..frameworks import flax_modules
from ..lookup import attribute
from ..transfer import names
from ..transfer.arrays import is_key

_WIDTH = 88
# Joins the keys of nested dictionaries in the names of their arrays.
SEPARATOR = " / "
_OWN = __name__.partition(".")[0]


class CannotWrite(Exception):
    """A value cannot be written as source; the message says which kind of value."""


class Writer:
    """Turns values into expressions.

    Attributes:
        arrays: the arrays that the expressions refer to by name.
        modules: the modules that they need.
    """

    def __init__(self) -> None:
        self.arrays: Dict[str, Any] = {}
        self.modules: Set[str] = set()
        self._around: List[Any] = []

    def expression(self, value: Any, place: str) -> str:
        """Return an expression for a value.

        Args:
            value: the value.
            place: the name of an array if it is one, and the beginning of the names otherwise.

        Raises:
            CannotWrite: it has a part that cannot be written.
        """
        if any(value is outer for outer in self._around):
            raise CannotWrite("an object that contains itself")
        self._around.append(value)
        try:
            return self._expression(value, place)
        finally:
            self._around.pop()

    def name(self, value: Any) -> str:
        """Return the dotted name of a class or function, whose module is imported."""
        found = names.find(value)
        if found is None or found.inner:
            raise CannotWrite("a function or class without a name: {!r}".format(value)[:80])
        return self.dotted(_public_module(value, found), found.qualname)

    def dotted(self, module: str, qualname: str) -> str:
        """Return a dotted name whose module is imported."""
        if module.partition(".")[0] in (_OWN, "__main__"):
            raise CannotWrite("a stand-in for an argument that is a function or an object")
        if module == "builtins":
            return qualname
        self.modules.add(module)
        return "{}.{}".format(module, qualname)

    def _expression(self, value: Any, place: str) -> str:
        if value is None or value is ... or isinstance(value, (bool, str, bytes)):
            return repr(value)
        if isinstance(value, enum.Enum):
            return self.name(type(value)) + "." + value.name
        if type(value) in (int, float, complex):
            finite = type(value) is int or math.isfinite(abs(value))
            return repr(value) if finite else "{}({!r})".format(type(value).__name__, str(value))
        if isinstance(value, (jax.Array, np.ndarray, np.generic)):
            return self._array(value, place)
        if isinstance(value, np.dtype):
            return 'jnp.dtype("{}")'.format(value)
        if isinstance(value, Mapping):
            return self._mapping(value, place)
        if isinstance(value, (tuple, list, set, frozenset)):
            return self._sequence(value, place)
        if isinstance(value, functools.partial):
            self.modules.add("functools")
            given = self.items(value.args, value.keywords, place)
            return composed("functools.partial", [self.expression(value.func, place), *given])
        if isinstance(value, types.ModuleType):
            self.modules.add(value.__name__)
            return value.__name__
        if isinstance(value, types.MethodType):
            return self.expression(value.__self__, place) + "." + value.__name__
        if flax_modules.is_module(value):
            cls = flax_modules.nearest_class(flax_modules.unbound(value), names.find)
            fields = dict(flax_modules.fields(flax_modules.unbound(value)))
            return composed(self.name(cls), self.items((), fields, place))
        if names.is_named(value):
            return self.name(value)
        return self._object(value, place)

    def items(self, args: Sequence[Any], kwargs: Mapping[str, Any], place: str) -> List[str]:
        """Return the arguments of a call, by position and by name."""
        found = [self.expression(x, _below(place, str(i))) for i, x in enumerate(args)]
        named = [(name, self.expression(x, _below(place, name))) for name, x in kwargs.items()]
        return found + ["{}={}".format(name, text) for name, text in named]

    def _array(self, value: Any, place: str) -> str:
        if isinstance(value, jax.Array) and is_key(value):
            self.arrays[place] = np.asarray(jax.random.key_data(value))
            implementation = str(jax.random.key_impl(value))
            return 'jax.random.wrap_key_data(array("{}"), impl="{}")'.format(place, implementation)
        if value.dtype == object or value.dtype.kind in "OSUMm":
            raise CannotWrite("an array of {}".format(value.dtype))
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return "np.{}({!r})".format(value.dtype, value.item())
        if getattr(value, "weak_type", False) and not value.shape:
            return "jnp.asarray({!r})".format(value.item())
        self.arrays[place] = np.asarray(value)
        is_jax = isinstance(value, jax.Array)
        return '{}("{}")'.format("array", place) if is_jax else 'ARRAYS["{}"]'.format(place)

    def _mapping(self, value: Any, place: str) -> str:
        plain = {}
        if type(value) is dict and _is_tree(value):
            self._store(value, place)
            return 'tree("{}")'.format(place)
        plain = dict(value.items())
        pairs = [
            "{}: {}".format(self.expression(k, place), self.expression(x, _below(place, str(k))))
            for k, x in plain.items()
        ]
        text = composed("", pairs, "{}")
        if type(value) is dict:
            return text
        kind = type(value)
        if kind.__name__ == "FrozenDict" or kind.__name__ == "OrderedDict":
            return "{}({})".format(self.name(kind), text)
        raise CannotWrite("a mapping of {}.{}".format(kind.__module__, kind.__qualname__))

    def _store(self, value: Mapping[str, Any], place: str) -> None:
        for key, part in value.items():
            if isinstance(part, dict):
                self._store(part, _below(place, key))
            else:
                self.arrays[_below(place, key)] = np.asarray(part)

    def _sequence(self, value: Any, place: str) -> str:
        if hasattr(value, "_fields"):
            fields = dict(zip(value._fields, value))
            return composed(self.name(type(value)), self.items((), fields, place))
        items = self.items(list(value), {}, place)
        if type(value) is tuple:
            return "({},)".format(items[0]) if len(items) == 1 else composed("", items)
        if type(value) is list:
            return composed("", items, "[]")
        if type(value) in (set, frozenset):
            return "{}([{}])".format(type(value).__name__, ", ".join(sorted(items)))
        raise CannotWrite("a sequence of {}".format(type(value).__qualname__))

    def _object(self, value: Any, place: str) -> str:
        cls = type(value)
        if cls.__module__.partition(".")[0] in ("jax", "jaxlib", "numpy"):
            raise CannotWrite("an object of {}.{}".format(cls.__module__, cls.__qualname__))
        attributes = attribute(value, "__dict__")
        if attributes is None:
            raise CannotWrite("an object of {}.{}".format(cls.__module__, cls.__qualname__))
        name = self.name(cls)
        if dataclasses.is_dataclass(cls) and "__init__" in vars(cls):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(cls) if f.init}
            if set(fields) == set(attributes) and not hasattr(cls, "__post_init__"):
                return composed(name, self.items((), fields, place))
        # Names such as `__doc__` are about the object, not of its state.
        attributes = {k: x for k, x in attributes.items() if not k.startswith("__")}
        if not all(each.isidentifier() for each in attributes):
            raise CannotWrite("an object of {}.{}".format(cls.__module__, cls.__qualname__))
        items = self.items((), attributes, place)
        if cls is types.SimpleNamespace:  # `object` cannot create one
            return composed(name, items)
        return composed("restore", [name, *items])


def composed(head: str, items: Sequence[str], brackets: str = "()") -> str:
    """Return a call or a literal on one line if it fits, else with an item on each."""
    line = head + brackets[0] + ", ".join(items) + brackets[1]
    if "\n" not in line and len(line) <= _WIDTH:
        return line
    inner = "".join("    {},\n".format(item.replace("\n", "\n    ")) for item in items)
    return "{}{}\n{}{}".format(head, brackets[0], inner, brackets[1])


def _public_module(value: Any, found: names.Name) -> str:
    """Return the shortest module of the same package that holds a value under a public path."""
    if "._" not in found.module:
        return found.module
    top = found.module.partition(".")[0] + "."
    for name in sorted(sys.modules, key=lambda each: (len(each), each)):
        if name.startswith(top) and "._" not in name:
            if getattr(sys.modules[name], found.qualname, None) is value:
                return name
    return found.module


def _below(place: str, key: str) -> str:
    return place + SEPARATOR + key


def _is_tree(value: Mapping[Any, Any]) -> bool:
    """Return whether nested dictionaries hold nothing but arrays of JAX."""
    return bool(value) and all(
        isinstance(key, str)
        and SEPARATOR not in key
        and "; " not in key
        and (_is_tree(part) if isinstance(part, dict) else _is_plain(part))
        for key, part in value.items()
    )


def _is_plain(value: Any) -> bool:
    return isinstance(value, jax.Array) and not is_key(value) and not value.weak_type


def storable(arrays: Mapping[str, Any]) -> Dict[str, Any]:
    """Return arrays of NumPy's own dtypes; the names of others tell their dtype."""
    found: Dict[str, Any] = {}
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1:
            found[name] = array
        else:
            wide = np.float32 if jnp.issubdtype(array.dtype, jnp.floating) else np.int32
            found["{}; {}".format(name, array.dtype)] = array.astype(wide)
    return found
