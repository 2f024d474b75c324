"""Values as pickles that another worker process can load.

Only workers load them: unpickling runs code, and a worker runs the user's code anyway. Classes and
functions are pickled by name, so that the migrated ones are loaded on the other side; see `names`.
"""

from __future__ import annotations

import copyreg
import importlib
import io
import os
import pickle
import types
from collections.abc import Collection
from typing import Any

import jax
import numpy as np

from ..frameworks import flax_modules
from ..lookup import has
from . import arrays, names
from .names import CannotLoad

__all__ = ["CannotLoad", "CannotSave", "load", "save"]

# Objects of these have arrays of their own, such as the state of a generator or an index.
_OPAQUE = ("numpy.random", "pandas.", "scipy.")
# Their functions are written by the standard pickler.
_OWN_MODULES = (__name__, names.__name__, arrays.__name__)
_METHODS: Any = (types.MethodType, types.BuiltinMethodType, type([].__len__))
_HEAP_TYPE = 1 << 9


class CannotSave(Exception):
    """A part of a value cannot be pickled; the message says what kind it is."""


def save(
    value: Any, path: Any, main: str | None = None, positive: Collection[int] | None = None
) -> None:
    """Pickle a value into a file, whose folder is created; write nothing if that fails.

    Args:
        value: the value.
        path: the file to write.
        main: the module name to write in place of `__main__`, under which other processes import
            the same file.
        positive: to keep only shapes and dtypes of arrays and tracers, which are loaded with made
            numbers: the ids of those for which these are positive.

    Raises:
        CannotSave: the value has a part that cannot be pickled.
        OSError: the file cannot be written.
    """
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, main, positive).dump(value)
    except CannotSave:
        raise
    except RecursionError:
        raise CannotSave("a value nested too deeply") from None
    except Exception as error:  # reducing objects runs the user's code
        raise CannotSave(f"{type(error).__name__}: {error}") from error
    os.makedirs(os.path.dirname(str(path)), exist_ok=True)
    with open(str(path), "wb") as file:
        file.write(buffer.getbuffer())


def load(path: Any) -> Any:
    """Return the value that was saved in a file; modules that it names are imported.

    Raises:
        CannotLoad: a name no longer exists, or a class does not accept the state of its object.
        OSError: the file cannot be read.
    """
    with open(str(path), "rb") as file:
        data = file.read()
    try:
        return pickle.loads(data)
    except CannotLoad:
        raise
    except Exception as error:
        raise CannotLoad("{}: {}".format(type(error).__name__, error)) from error


class _Pickler(pickle.Pickler):
    """Pickles what the standard pickler refuses; for the arguments, see `save`."""

    def __init__(self, file: Any, main: str | None, positive: Collection[int] | None) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._main = main
        self._positive = positive
        self._arrays = 0
        self._unbinder = flax_modules.Unbinder()

    def reducer_override(self, value: Any) -> Any:
        """Return how to make a value that is not of a built-in type; see `__reduce__`."""
        if isinstance(value, jax.Array | np.ndarray):
            return self._array(value)
        if isinstance(value, jax.tree_util.PyTreeDef):
            tree = jax.tree_util.tree_unflatten(value, [0] * value.num_leaves)
            return jax.tree_util.tree_structure, (tree,)
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (self._module(value.__name__),)
        if flax_modules.is_module(value):
            return self._linen(value)
        if names.is_named(value) and not _is_method(value):
            return self._named(value)
        if self._positive is not None and type(value).__module__.startswith(_OPAQUE):
            return pickle.loads, (pickle.dumps(value),)  # its arrays are none of the program
        return self._found(value) if _is_bare(value) else NotImplemented

    def _array(self, array: Any) -> Any:
        """Reduce an array or a tracer, to its shape and dtype if only those are kept."""
        if self._positive is not None and arrays.has_numbers(array):
            self._arrays += 1
            return arrays.abstract(array, self._arrays, id(array) in self._positive)
        if isinstance(array, jax.core.Tracer):
            raise CannotSave("a value that JAX is tracing")
        return NotImplemented if isinstance(array, np.ndarray) else arrays.reduced(array)

    def _module(self, name: str) -> str:
        """Return the name under which another process imports a module."""
        if name != "__main__":
            return name
        if self._main is None:
            raise CannotSave("an object of the script that is being run")
        return self._main

    def _linen(self, module: Any) -> Any:
        """Reduce a Flax module without the parent and the variables that it may be bound to."""
        unbound = self._unbinder.unbound(module)
        if unbound is not module:
            return _unchanged, (unbound,)
        cls = flax_modules.nearest_class(module, names.find)
        return _linen, (cls, dict(flax_modules.fields(module)))

    def _named(self, value: Any) -> Any:
        """Reduce a class, function or callable object to its name."""
        own = isinstance(value, types.FunctionType) and value.__module__ in _OWN_MODULES
        if own or value in (type(None), type(...), type(NotImplemented)):
            return NotImplemented  # the standard pickler writes these by name
        found = self._found(value)
        if found is NotImplemented and isinstance(value, types.FunctionType):
            return self._nested(value)
        if found is NotImplemented and (isinstance(value, type) or not _is_object(value)):
            raise CannotSave(f"{value.__module__}.{names.own_name(value)}")
        return found

    def _found(self, value: Any) -> Any:
        """Reduce a value to the name by which a module holds it, if one does."""
        found = names.find(value)
        if found is None:
            return NotImplemented
        return names.lookup, tuple(found._replace(module=self._module(found.module)))

    def _nested(self, function: Any) -> Any:
        """Reduce a function defined in another function, with what it closes over."""
        place = names.find_nested(function)
        if place is None:
            raise CannotSave(f"{function.__module__}.{function.__qualname__}")
        place = place._replace(module=self._module(place.module))
        closure = names.closure(function)
        state = (closure, function.__defaults__, function.__kwdefaults__)
        return names.nested, (*place, list(closure)), state, None, None, names.fill


def _is_method(value: Any) -> bool:
    """Return whether a value is a method bound to an object, as `[].append`."""
    owner = getattr(value, "__self__", None)
    return isinstance(value, _METHODS) and not isinstance(owner, (types.ModuleType, type(None)))


def _is_bare(value: Any) -> bool:
    """Return whether an object has no state: a sentinel, compared by identity."""
    if type(value) in copyreg.dispatch_table:
        return False
    reduced = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    make, arguments, *state = reduced if isinstance(reduced, tuple) else (None, ())
    is_new = make is copyreg.__newobj__ and len(arguments) == 1  # type: ignore[attr-defined]
    return is_new and all(part is None or part == {} for part in state)


def _is_object(value: Any) -> bool:
    """Return whether a callable is an object with a state, neither built in nor jitted."""
    return bool(type(value).__flags__ & _HEAP_TYPE) and not has(value, "lower")


def _unchanged(value: Any) -> Any:
    return value


def _linen(cls: Any, fields: dict[str, Any]) -> Any:
    return cls(parent=None, **fields)
