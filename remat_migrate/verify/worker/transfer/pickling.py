"""Values as pickles that another worker process can load.

Only workers load them: unpickling runs code, and a worker runs the user's code anyway. Classes and
functions are pickled by name, so that the migrated ones are loaded on the other side; see `names`.
"""

from __future__ import annotations

import copyreg
import enum
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
from . import arrays, constructed, names
from .names import CannotLoad

__all__ = ["CannotLoad", "CannotSave", "load", "save"]

_PROTOCOL = pickle.HIGHEST_PROTOCOL
# Objects of these have arrays of their own, such as the state of a generator or an index.
_OPAQUE = ("numpy.random", "pandas.", "scipy.")
_CONSTANT_TYPES = (type(None), type(...), type(NotImplemented))
# Their functions are written by the standard pickler.
_OWN_MODULES = (__name__, names.__name__, arrays.__name__, constructed.__name__)
_METHODS: Any = (types.MethodType, types.BuiltinMethodType, type([].__len__))


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
        try:
            _Pickler(buffer, main, positive).dump(value)
        except _Refused:
            buffer = io.BytesIO()
            _Pickler(buffer, main, positive, again=True).dump(value)
    except _Refused as refused:
        raise CannotSave(str(refused)) from refused.__cause__
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


class _Refused(Exception):
    """A part of the value cannot be pickled."""

    def __init__(self, part: Any, reason: str = "") -> None:
        super().__init__(_kind(part) + (f" ({reason})" if reason else ""))


class _Pickler(pickle.Pickler):
    """Pickles what the standard pickler refuses.

    Args:
        file: where to write.
        main: see `save`.
        positive: see `save`.
        again: whether to let objects be constructed again, where it is known how.
    """

    def __init__(
        self, file: Any, main: str | None, positive: Collection[int] | None, again: bool = False
    ) -> None:
        super().__init__(file, protocol=_PROTOCOL)
        self._again = again
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
        if isinstance(value, jax.Device):
            return _device, (value.platform, value.id)
        if isinstance(value, enum.Enum) and type(value).__members__.get(value.name) is value:
            return getattr, (type(value), value.name)
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (self._module(value.__name__, value),)
        if flax_modules.is_module(value):
            return self._linen(value)
        again = constructed.reduced(value) if self._again else None
        if again is not None:
            return again
        if names.is_named(value) and not _is_method(value):
            return self._named(value)
        return self._object(value)

    def _array(self, array: Any) -> Any:
        """Reduce an array or a tracer, to its shape and dtype if only those are kept."""
        try:
            if self._positive is not None and arrays.has_numbers(array):
                self._arrays += 1
                return arrays.abstract(array, self._arrays, id(array) in self._positive)
            if isinstance(array, jax.core.Tracer):
                raise _Refused(array)
            return self._object(array) if isinstance(array, np.ndarray) else arrays.reduced(array)
        except (TypeError, RuntimeError) as error:
            raise _Refused(array, str(error)) from error

    def _module(self, name: str, value: Any) -> str:
        """Return the name under which another process imports the module of a value."""
        if name != "__main__":
            return name
        if self._main is None:
            raise _Refused(value, "of the script that is being run")
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
        if own or (isinstance(value, type) and value in _CONSTANT_TYPES):
            return NotImplemented  # the standard pickler writes these by name
        found = names.find(value)
        if found is not None:
            return self._found(found, value)
        if isinstance(value, types.FunctionType):
            return self._nested(value)
        if isinstance(value, type) or not names.is_object(value):
            raise _Refused(value)
        return self._object(value)

    def _found(self, found: names.Name, value: Any) -> Any:
        return names.lookup, tuple(found._replace(module=self._module(found.module, value)))

    def _nested(self, function: Any) -> Any:
        """Reduce a function defined in another function, with what it closes over."""
        place = names.find_nested(function)
        if place is None:
            local = names.LOCALS in function.__qualname__ or function.__name__ == "<lambda>"
            raise _Refused(function, "" if local else "its name belongs to another object")
        place = place._replace(module=self._module(place.module, function))
        closure = names.closure(function)
        state = (closure, function.__defaults__, function.__kwdefaults__)
        return names.nested, (*place, list(closure)), state, None, None, names.fill

    def _object(self, value: Any) -> Any:
        """Reduce any other object by its own protocol."""
        if self._positive is not None and type(value).__module__.startswith(_OPAQUE):
            return pickle.loads, (pickle.dumps(value),)  # its arrays are none of the program
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts: Any = value.__reduce_ex__(_PROTOCOL) if reduce is None else reduce(value)
        except RecursionError:
            raise
        except Exception as error:  # each type has its own way of refusing
            raise _Refused(value, str(error)) from error
        if isinstance(parts, str) or _is_bare(parts):
            found = names.find(value)
            if found is not None:
                return self._found(found, value)
        return parts


def _is_method(value: Any) -> bool:
    """Return whether a value is a method bound to an object, as `[].append`."""
    owner = getattr(value, "__self__", None)
    return isinstance(value, _METHODS) and not isinstance(owner, (types.ModuleType, type(None)))


def _is_bare(parts: tuple[Any, ...]) -> bool:
    """Return whether a reduced object has no state: a sentinel, compared by identity."""
    make, arguments, *state = parts
    is_new = make is copyreg.__newobj__ and len(arguments) == 1  # type: ignore[attr-defined]
    return is_new and all(part is None or part == {} for part in state)


def _unchanged(value: Any) -> Any:
    return value


def _device(platform: str, number: int) -> Any:
    for device in jax.devices(platform):
        if device.id == number:
            return device
    raise CannotLoad("there is no device {} of {}".format(number, platform))


def _linen(cls: Any, fields: dict[str, Any]) -> Any:
    return cls(parent=None, **fields)


def _kind(value: Any) -> str:
    """Return what a value is, in words."""
    if isinstance(value, jax.core.Tracer):
        return "a value that JAX is tracing"
    if isinstance(value, io.IOBase):
        return "an open file"
    if isinstance(value, types.GeneratorType):
        return "a generator"
    if type(value).__name__ in ("lock", "RLock"):
        return "a lock"
    if not names.is_named(value):
        return "an object of {}.{}".format(type(value).__module__, type(value).__qualname__)
    name = names.own_name(value) or "without a name"
    what = "a class" if isinstance(value, type) else "a function"
    what = "a lambda" if name.endswith("<lambda>") else what
    if names.LOCALS in name:
        what += " defined inside a function"
    return "{}, {}.{}".format(what, names.own_module(value), name)
