"""Digests of constants and of the parameters of primitives, the same in every process."""

from __future__ import annotations

import functools
import hashlib
import re
import types
import weakref
from typing import Any, Callable, Dict, Set, Tuple

import jax
import numpy as np

from ..jaxprs import is_jaxpr
from ..lookup import attribute, has
from ..transfer.arrays import is_key, key_data

Digest = str

# Parameters that change how a primitive is compiled, but not what it computes.
_IRRELEVANT = frozenset(
    ["name", "name_stack", "source_info", "debug_info", "linear", "unroll", "_split_transpose"]
)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_DEEPEST = 12
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis), slice)
# Both sides have the same release of these.
_LIBRARIES = frozenset(["jax", "jaxlib", "flax", "haiku", "equinox", "numpy"])

NumberJaxpr = Callable[[Any], Any]


class Opaque(Exception):
    """Two values of this kind cannot be told apart by their contents."""


def digest(*parts: Any) -> Digest:
    """Return a digest of values whose `repr` shows all of their contents."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def constant(value: Any) -> Digest:
    """Return the digest of an array or a number."""
    if has(value, "dtype") and is_key(value):
        return digest("key", str(value.dtype), constant(key_data(value)))
    array = np.asarray(value)
    if array.dtype == object:
        return digest("object", parameter(value, _no_jaxpr))
    data = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=12).hexdigest()
    return digest("constant", str(array.dtype), array.shape, data)


def parameters(params: Any, number: NumberJaxpr) -> Tuple[Any, ...]:
    """Return the parameters of a primitive as data; `number` turns a jaxpr into data.

    Raises:
        Opaque: a parameter cannot be told from others of its kind.
    """
    return tuple(
        (name, parameter(value, number))
        for name, value in sorted(params.items())
        if name not in _IRRELEVANT
    )


def parameter(value: Any, number: NumberJaxpr, depth: int = 0) -> Any:
    """Return one parameter as data; see `parameters`."""
    if depth > _DEEPEST:
        raise Opaque("a %s is nested too deeply" % type(value).__name__)

    def inner(part: Any) -> Any:
        return parameter(part, number, depth + 1)

    if isinstance(value, _PLAIN):
        return value
    if is_jaxpr(value):
        return ("jaxpr", number(value))
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, tuple(inner(part) for part in value))
    if isinstance(value, (set, frozenset)):
        return ("set", tuple(sorted(repr(inner(part)) for part in value)))
    if isinstance(value, dict):
        return ("dict", tuple(sorted((repr(inner(k)), inner(v)) for k, v in value.items())))
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        return constant(value)
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__)
    if isinstance(value, type):
        return (value.__module__, value.__qualname__)
    if callable(value) and not has(value, "shape"):
        return _function(value, inner)
    if "__repr__" not in _defined(type(value)):
        return (type(value).__qualname__, inner(_attributes(value)))
    return _ADDRESS.sub("", repr(value))


def _function(value: Any, inner: Callable[[Any], Any]) -> Any:
    """Return a function as data: its code, defaults, and the values that it closes over."""
    if isinstance(value, functools.partial):
        return ("partial", inner(value.func), inner(value.args), inner(value.keywords))
    if isinstance(value, weakref.ref):
        return inner(value())
    if isinstance(value, types.MethodType):
        return ("method", inner(value.__func__), inner(value.__self__))
    code = attribute(value, "__code__")
    closure = attribute(value, "__closure__")
    if code is not None and closure is None and _root(value) in _LIBRARIES:
        return ("function", value.__module__, value.__qualname__)
    if code is not None:
        scope = value.__globals__
        read = {name: scope[name] for name in code.co_names if name in scope}
        cells = [_contents(cell) for cell in closure or ()]
        known = [read, cells, value.__defaults__, value.__kwdefaults__]
        return ("function", _code(code, inner), inner(known))
    if isinstance(value, (types.BuiltinFunctionType, np.ufunc)):
        return ("builtin", getattr(value, "__module__", ""), value.__name__)
    wrapped = attribute(value, "__wrapped__")
    if wrapped is not None:
        return ("wrapped", type(value).__qualname__, inner(wrapped))
    held = _attributes(value)
    if held:
        return (type(value).__qualname__, inner(held))
    raise Opaque("a %s cannot be compared" % type(value).__qualname__)


def _defined(kind: type) -> Set[str]:
    """Return the names that a class or its bases other than `object` define."""
    return {name for base in kind.__mro__ if base is not object for name in vars(base)}


def _attributes(value: Any) -> Dict[str, Any]:
    slots = [s for s in getattr(type(value), "__slots__", ()) if not s.startswith("__")]
    return dict(attribute(value, "__dict__", {}), **{s: attribute(value, s) for s in slots})


def _root(function: Any) -> str:
    return (getattr(function, "__module__", None) or "").partition(".")[0]


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # not yet bound


def _code(code: types.CodeType, inner: Callable[[Any], Any]) -> Any:
    constants = [
        _code(part, inner) if isinstance(part, types.CodeType) else inner(part)
        for part in code.co_consts
    ]
    return (code.co_code, tuple(constants), code.co_names)


def _no_jaxpr(value: Any) -> Any:
    raise Opaque("a jaxpr is not a constant")
