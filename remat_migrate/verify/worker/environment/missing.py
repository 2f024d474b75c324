"""Stand-ins for what cannot be imported.

A stand-in can be imported from, subclassed, used as a decorator, an annotation, or a default, and
is never an instance of anything. Whatever needs its value raises an error that names it.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..lookup import has
from . import ledger
from .ledger import Reason


class MissingDependency(Exception):
    """The code computes with something that could not be imported."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


# What replaces a name that a stand-in is asked for, None for nothing: `imports` adds it.
bridges: List[Callable[[str], Optional[Any]]] = []


class Missing:
    """Stands in for a module, or anything in it.

    Attributes:
        _name: the dotted name.
        _reason: why there is only a stand-in.
        _members: its attributes so far.
    """

    def __init__(self, name: str, reason: Reason) -> None:
        self.__dict__.update(_name=name, _reason=reason, _members={})

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return self._name.rpartition(".")[2]
        if name.startswith("__") and name.endswith("__") and name != "__version__":
            raise AttributeError("%s has no attribute %s" % (self._name, name))
        members: Dict[str, Any] = self._members
        if name not in members:
            full = "%s.%s" % (self._name, name)
            known = [found for find in bridges for found in [find(full)] if found is not None]
            members[name] = known[0] if known else _member(full, self._reason)
        return members[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._members[name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what is decorated, on import, and else a stand-in for the result."""
        if ledger.state.importing:
            if len(args) == 1 and _is_decorated(args[0]):
                return args[0]
        elif any(_holds_array(value) for value in (*args, *kwargs.values())):
            self._needed()
        return Missing("%s()" % self._name, self._reason)

    def __getitem__(self, key: Any) -> Any:
        if not ledger.state.importing and _holds_array(key):
            self._needed()
        return Missing("%s[]" % self._name, self._reason)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not ledger.state.importing:  # a registry of something that is missing
            self._needed()

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[type, ...]:
        return (self._base(),)

    def _base(self) -> type:
        """Return the class that stands in for a base class."""
        if "__base__" not in self._members:
            name = self._name.rpartition(".")[2]
            names = {"_stand_in": self, "__module__": __name__}
            self._members["__base__"] = type(name, (MissingBase,), names)
        found: type = self._members["__base__"]
        return found

    def __instancecheck__(self, instance: Any) -> bool:
        return "__base__" in self._members and isinstance(instance, self._base())

    def __subclasscheck__(self, subclass: Any) -> bool:
        return "__base__" in self._members and issubclass(subclass, self._base())

    def __or__(self, other: Any) -> Any:
        # Nothing is an instance of a stand-in, so a union with it is what else it has.
        is_type = isinstance(other, type) or type(other).__module__ in ("typing", "types")
        return other if is_type else self._combined(other)

    __ror__ = __or__

    def __eq__(self, other: Any) -> Any:
        if other is self or ledger.state.importing:
            return other is self
        return self._needed()

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return "<stand-in for %s>" % self._name

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def _combined(self, *operands: Any) -> Any:
        """Return the result of an operator: a stand-in on import, and an error at run time."""
        if ledger.state.importing:
            return Missing(self._name, self._reason)
        return self._needed()

    def _needed(self, *operands: Any) -> Any:
        ledger.touch(self._reason)
        raise MissingDependency(explain(self), self._reason)


_COMBINING = (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "matmul", "rmatmul", "truediv", "rtruediv"),
    *("floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "and", "rand", "xor", "rxor"),
    *("lshift", "rlshift", "rshift", "rrshift", "neg", "pos", "abs", "invert"),
)
_NEEDING = (
    *("lt", "le", "gt", "ge", "bool", "int", "float", "complex", "index", "len", "iter", "next"),
    *("contains", "array", "jax_array", "delitem", "fspath", "round"),
)
for _names, _method in ((_COMBINING, Missing._combined), (_NEEDING, Missing._needed)):
    for _name in _names:
        setattr(Missing, "__%s__" % _name, _method)


def refuse(value: Any) -> None:
    """Raise an error that names a stand-in, if the value is one."""
    if isinstance(value, Missing):
        value._needed()


def explain(value: Missing) -> str:
    """Return a message that names a stand-in whose value is needed."""
    reason = value._reason
    if reason.kind == "failed":
        return "it needs %s, which is not set: importing it: %s" % (value._name, reason.text)
    return "it needs %s: %s" % (value._name, reason)


class MissingBase:
    """Stands in for a base class: takes any arguments, and every attribute is a stand-in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return getattr(type(self)._stand_in, name)  # type: ignore[attr-defined]


def _member(name: str, reason: Reason) -> Any:
    """Return an attribute of a stand-in: an exception class where the name is one's."""
    last = name.rpartition(".")[2]
    if last[:1].isupper() and last.endswith(("Error", "Exception", "Warning")):
        return type(last, (Exception,), {})
    return Missing(name, reason)


def _is_decorated(value: Any) -> bool:
    """Return whether a decorator is applied to this."""
    kinds = (types.FunctionType, functools.partial, staticmethod, classmethod, property)
    if isinstance(value, kinds) or hasattr(type(value), "__wrapped__"):
        return True
    return (isinstance(value, type) and _is_of_project(value)) or has(value, "__wrapped__")


def _is_of_project(value: type) -> bool:
    from . import projects

    return projects.is_project_module(value.__module__)


def _holds_array(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(parts, (list, tuple)) or isinstance(value, dict):
        return any(_holds_array(part) for part in parts)
    if isinstance(value, (Missing, MissingBase)):
        return False
    return has(value, "dtype") and has(value, "shape")
