"""Stand-ins for what cannot be imported.

A stand-in can be imported from, subclassed, used as a decorator, an annotation, or a default, and
nothing but its subclasses is an instance of it. Whatever needs its value raises an error that names
it.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any, Dict, Tuple

from ..lookup import has
from . import ledger, projects
from .ledger import Reason


class MissingDependency(Exception):
    """The code computes with something that could not be imported."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


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
        if name.startswith("__"):
            raise AttributeError("%s has no attribute %s" % (self._name, name))
        members: Dict[str, Any] = self._members
        return members.setdefault(name, Missing("%s.%s" % (self._name, name), self._reason))

    def __setattr__(self, name: str, value: Any) -> None:
        self._members[name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what is decorated, or a stand-in for another result; not at run time."""
        self._importing_only()
        if len(args) == 1 and _is_decorated(args[0]):
            return args[0]
        return Missing("%s()" % self._name, self._reason)

    def __getitem__(self, key: Any) -> Any:
        self._importing_only()
        return Missing("%s[]" % self._name, self._reason)

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[type, ...]:
        return (self._base(),)

    def _base(self) -> type:
        """Return the class that stands in for a base class."""
        if "__base__" not in self._members:
            names = {"_stand_in": self, "__module__": __name__}
            self._members["__base__"] = type(self.__name__, (MissingBase,), names)
        found: type = self._members["__base__"]
        return found

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._base())

    def __subclasscheck__(self, subclass: Any) -> bool:
        return issubclass(subclass, self._base())

    def __or__(self, other: Any) -> Any:
        # Nothing is an instance of a stand-in, so a union with it is what else it has.
        self._importing_only()
        return other

    __ror__ = __or__

    def __eq__(self, other: Any) -> bool:
        # It asks whether an annotation is one of its own special forms.
        if sys._getframe(1).f_globals.get("__name__") != "typing":
            self._needed()
        return self is other

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return "<stand-in for %s>" % self._name

    def _importing_only(self) -> None:
        if not ledger.state.importing:
            self._needed()

    def _needed(self, *operands: Any) -> Any:
        ledger.touch(self._reason)
        raise MissingDependency(explain(self), self._reason)


_NEEDING = (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "matmul", "rmatmul", "truediv", "rtruediv"),
    *("floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "and", "rand", "xor", "rxor"),
    *("lshift", "rlshift", "rshift", "rrshift", "neg", "pos", "abs", "invert", "round"),
    *("ne", "lt", "le", "gt", "ge", "bool", "int", "float", "complex", "index", "len"),
    *("iter", "next", "contains", "array", "jax_array", "setitem", "delitem", "fspath", "enter"),
    *("exit", "copy", "deepcopy"),
)
for _name in _NEEDING:
    setattr(Missing, "__%s__" % _name, Missing._needed)


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
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(type(self)._stand_in, name)  # type: ignore[attr-defined]


def _is_decorated(value: Any) -> bool:
    """Return whether a decorator is applied to this."""
    kinds = (types.FunctionType, functools.partial, staticmethod, classmethod, property)
    if isinstance(value, type):
        return projects.is_project_module(value.__module__)
    return isinstance(value, kinds) or has(value, "__wrapped__")
