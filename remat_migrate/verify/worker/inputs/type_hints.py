"""Plan arguments from annotations and defaults."""

from __future__ import annotations

import contextlib
import enum
import inspect
import sys
import typing
from typing import Any, Callable, Dict, List, Optional, Tuple

import jax.numpy as jnp

from ..frameworks import flax_modules
from ..lookup import has, unwrapped
from ..project import settings
from . import candidates, shapes, stand_in
from .node import (
    ARRAY,
    DICT,
    FIELDS,
    GUESS,
    INSTANCE,
    KEY,
    LIST,
    TUPLE,
    Choice,
    Node,
    Plan,
    array,
    value,
)

NONE = value(None)
# Larger defaults of sizes have smaller ones beside them.
_LARGE = 128
_OTHER_DTYPES = {"float32": "bfloat16", "bfloat16": "float32"}
_UNKNOWN = (Any, object, inspect.Parameter.empty, type(Ellipsis))
_MAPPINGS = (
    "dict",
    "Dict",
    "Mapping",
    "MutableMapping",
    "OrderedDict",
    "FrozenDict",
    "FlatMapping",
)
_SEQUENCES = ("list", "List", "Sequence", "Iterable", "Collection", "MutableSequence", "Iterator")
_SIMPLE = (bool, int, float, str, complex)
_ARRAY_NAMES = ("Array", "ndarray", "ArrayImpl", "DeviceArray", "ArrayLike", "Tracer")


def of_callable(function: Callable[..., Any]) -> Dict[str, Any]:
    """Return annotations by parameter; those that cannot be evaluated stay strings."""
    target: Any = unwrapped(function) if callable(function) else function
    while has(target, "func") and not has(target, "__annotations__"):
        target = target.func
    if isinstance(target, type) and not _is_data_class(target):
        target = target.__init__  # type: ignore[misc]
    # Keep the metadata of jaxtyping and Annotated.
    # It fails on names that exist only for type checkers.
    with contextlib.suppress(Exception):
        return dict(typing.get_type_hints(target, include_extras=True))
    found = {}
    names = _globals_of(target)
    for owner in reversed(getattr(target, "__mro__", (target,))):
        for name, annotation in getattr(owner, "__annotations__", {}).items():
            if isinstance(annotation, str):
                with contextlib.suppress(Exception):
                    annotation = eval(annotation, names)
            found[name] = annotation
    return found


def _is_data_class(cls: type) -> bool:
    """Return whether the constructor of a class is derived from its annotations."""
    return hasattr(cls, "__dataclass_fields__") or hasattr(cls, "_fields")


def _globals_of(target: Any) -> Dict[str, Any]:
    if has(target, "__globals__"):
        return dict(target.__globals__)
    module = sys.modules.get(getattr(target, "__module__", ""))
    return dict(vars(module)) if module else {}


def plan_for(
    name: str, annotation: Any, default: Any, siblings: Tuple[str, ...] = ()
) -> Optional[Plan]:
    """Return what to make for a parameter; None if only its uses can tell."""
    said = plan_by_annotation(name, annotation)
    if default is not inspect.Parameter.empty:
        return plan_by_default(name, default, said)
    return said or candidates.plan_by_name(name, False, siblings)


def plan_by_default(name: str, default: Any, said: Optional[Plan]) -> Plan:
    """Keeps the default, and other values that are worth a case; `said` by the annotation."""
    if default is None and not candidates.matches(candidates.DTYPE, name):
        named = candidates.plan_by_name(name, False)
        others = [choice for choice in (said or Plan([])).choices if choice.key() != NONE.key()]
        others = others or (named.choices if named else []) or [Choice(GUESS)]
        return Plan([NONE, *others], [NONE, others[0]])
    if found := plan_of_value(name, default):
        kinds = (ARRAY, GUESS) if type(default) is float else ()
        arrays = [choice for choice in said.choices if choice.kind in kinds] if said else []
        return found._replace(alternatives=[*found.alternatives, *arrays])
    if type(default) is int and default > _LARGE and candidates.is_number(name):
        # Arrays of this size are large; the code may want to divide them by it.
        return Plan([value(size) for size in (default, candidates.LENGTH, candidates.BATCH)])
    more = said.alternatives if said and not isinstance(default, (list, dict)) else []
    closed = said is not None and said.closed
    return Plan([value(default)], [value(default), *more] if more else [], closed)


def plan_of_value(name: str, held: Any) -> Optional[Plan]:
    """Plan a known value that may be another: a flag, a rate, an option, settings, or a count.

    Counts matter where they may switch something off. None for others.
    """
    if type(held) is bool:
        return candidates.flag(name, held)
    if type(held) is float:
        rates = candidates.rates_of(name, held)
        return Plan(rates, rates)
    if isinstance(held, enum.Enum):
        return Plan([value(held)], [value(member) for member in type(held)])
    if candidates.matches(candidates.DTYPE, name):
        types = [value(held), *map(value, _other_dtypes(held))]
        return Plan(types, types)
    if settings.holds_settings(held) and not flax_modules.is_module(held):
        return Plan([Choice(FIELDS, settings.shallow(held))])
    if type(held) is str:
        return Plan([value(held)], [value(held)])
    counts = candidates.counts_of(held)
    return Plan(counts, counts) if counts else None


def _other_dtypes(held: Any) -> List[Any]:
    """Return another type to compute in, in the same form: bfloat16, or float32 in its place."""
    if held is None:
        return [jnp.bfloat16]
    if isinstance(held, str):
        return [other for name, other in _OTHER_DTYPES.items() if held == name]
    if isinstance(held, jnp.dtype):
        return [jnp.dtype(other) for name, other in _OTHER_DTYPES.items() if held == name]
    return [getattr(jnp, other) for n, other in _OTHER_DTYPES.items() if held is getattr(jnp, n)]


def plan_by_annotation(name: str, annotation: Any, inside: bool = False) -> Optional[Plan]:
    """Return what an annotation asks for; None if it says nothing."""
    if isinstance(annotation, str):
        return _plan_by_text(name, annotation, inside)
    if any(annotation is unknown for unknown in _UNKNOWN) or isinstance(annotation, typing.TypeVar):
        return None
    if annotation is None or annotation is type(None):
        return Plan([NONE])
    if hasattr(annotation, "dim_str") and hasattr(annotation, "dtypes"):
        return _jaxtyping(name, annotation, inside)
    if hasattr(annotation, "__supertype__"):
        return plan_by_annotation(name, annotation.__supertype__, inside)
    origin = getattr(annotation, "__origin__", None)
    arguments = getattr(annotation, "__args__", None) or ()
    if hasattr(annotation, "__metadata__"):  # Annotated[X, ...]
        return plan_by_annotation(name, origin, inside)
    if is_union(annotation):
        return _union(name, arguments, inside)
    if str(origin).endswith("Literal") or str(annotation).startswith("typing_extensions.Literal"):
        choices = [value(argument) for argument in arguments]
        return Plan(choices, choices, True)
    return _plan_by_class(name, annotation, origin, arguments, inside)


def is_union(annotation: Any) -> bool:
    """Return whether an annotation is a union of others."""
    origin = getattr(annotation, "__origin__", None)
    return origin is typing.Union or type(annotation).__name__ == "UnionType"


def _plan_by_class(
    name: str, annotation: Any, origin: Any, arguments: Tuple[Any, ...], inside: bool
) -> Optional[Plan]:
    plain = origin if isinstance(origin, type) else annotation
    title = getattr(plain, "__name__", None) or getattr(annotation, "_name", None) or ""
    title = title.rpartition(".")[2]
    if plain in _SIMPLE:
        return _simple(plain, name)
    if title in ("tuple", "Tuple"):
        return _tuple(arguments)
    if title in ("type", "Type"):
        return Plan([value(arguments[0])]) if arguments else None
    return _plan_by_title(name, title, inside) or _plan_of_instance(plain)


def _simple(plain: Any, name: str) -> Plan:
    if plain is bool:
        return Plan(candidates.both(), candidates.both())
    if plain is complex:
        return Plan([value(0.5 + 0.5j)])
    choices = {int: candidates.integers, float: candidates.floats, str: candidates.strings}
    return Plan(choices[plain](name))


def _plan_by_title(name: str, title: str, inside: bool) -> Optional[Plan]:
    """Plan an annotation by the last part of its name, which is the same in several libraries."""
    if title in _MAPPINGS:
        return Plan([Choice(DICT)])
    if title in _SEQUENCES:
        return Plan([Choice(LIST, count) for count in (2, 1, 3)])
    if title in ("Callable", "Initializer"):
        return Plan([value(jnp.tanh), value(stand_in.mixture)])
    if title in ("dtype", "DTypeLike", "DType"):
        return Plan([value(jnp.float32)])
    if title in _ARRAY_NAMES:
        return _array(name, inside)
    return Plan(list(candidates.PRNG)) if title.startswith("PRNGKey") else None


def _plan_of_instance(cls: Any) -> Optional[Plan]:
    """Plan an instance of a class."""
    if getattr(cls, "_is_protocol", False) and "__call__" in vars(cls):
        count = len(inspect.signature(cls.__call__).parameters) - 1
        return Plan([value(stand_in.Function(count))])
    if isinstance(cls, type) and issubclass(cls, enum.Enum):
        members = [value(member) for member in cls]
        return Plan(members, members)
    linen = flax_modules.linen()
    if linen is not None and cls is linen.Module:
        return Plan([value(linen.Dense(candidates.WIDTH))])
    if isinstance(cls, type) and _constructible(cls):
        return Plan([Choice(INSTANCE, cls), Choice(DICT)])
    return None


def _constructible(cls: type) -> bool:
    """Return whether a class is neither Python's nor JAX's own."""
    module = (cls.__module__ or "").partition(".")[0]
    return module not in (
        "builtins",
        "typing",
        "jax",
        "jaxlib",
        "numpy",
        "collections",
        "abc",
        "types",
    )


def _tuple(arguments: Tuple[Any, ...]) -> Plan:
    if not arguments:
        return Plan([Choice(TUPLE, count) for count in (2, 1, 3)])
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return Plan([Choice(TUPLE, (arguments[0],) * count) for count in (2, 1, 3)])
    return Plan([Choice(TUPLE, tuple(arguments))])


def _array(name: str, inside: bool) -> Plan:
    """Return an array for a name, or a random key if the name says so."""
    named = candidates.plan_by_name(name, inside)
    if named and named.choices[0].kind == KEY:
        return named
    return Plan(candidates.shapes(name, inside))


def _union(name: str, arguments: Tuple[Any, ...], inside: bool) -> Optional[Plan]:
    choices: List[Choice] = []
    alternatives: List[Choice] = []
    optional = False
    for argument in arguments:
        if argument is type(None):
            optional = True
            continue
        plan = plan_by_annotation(name, argument, inside)
        if plan is not None:
            choices += plan.choices
            alternatives += plan.alternatives
    if not choices and not optional:
        return None
    choices = choices or [Choice(GUESS)]
    if optional:
        alternatives = [*(alternatives or [choices[0]]), NONE]
        choices.append(NONE)
    return Plan(choices, alternatives)


def _jaxtyping(name: str, annotation: Any, inside: bool) -> Plan:
    """Plan `Float[Array, "batch dim"]`: a named axis has the same size everywhere."""
    dtypes = annotation.dtypes
    texts = [str(dtype) for dtype in dtypes] if isinstance(dtypes, (list, tuple)) else []
    if any("prng_key" in text or "key<" in text for text in texts):
        return Plan([Choice(KEY, ("typed", 0))])
    dtype = "float32"
    if texts and "float32" not in texts:
        for wanted in ("int32", "bool", "uint8", "uint32", "complex64", "bfloat16", "float16"):
            if wanted in texts:
                dtype = wanted
                break
    shape = shapes.named_axes(annotation.dim_str)
    others = [array(c.value[0], dtype) for c in candidates.shapes(name, inside)]
    return Plan(([array(shape, dtype)] if shape is not None else []) + others)


def _plan_by_text(name: str, text: str, inside: bool) -> Optional[Plan]:
    """Plan an annotation that could not be evaluated."""
    last = text.partition("[")[0].rpartition(".")[2].strip()
    if last in (simple := {cls.__name__: cls for cls in _SIMPLE}):
        return _simple(simple[last], name)
    return _plan_by_title(name, "PRNGKey" if "PRNGKey" in text else last, inside)


def of_part(node: Node, name: str) -> Any:
    """Return the annotation of an entry of a container; None if there is none."""
    if node.choice.kind == TUPLE:
        if isinstance(node.choice.value, tuple):
            return node.choice.value[int(name)]
    arguments = getattr(node.annotation, "__args__", None) or ()
    if is_union(node.annotation):
        held = [a for a in arguments if getattr(a, "__args__", None)]
        arguments = held[0].__args__ if held else [a for a in arguments if a is not type(None)]
    return arguments[-1] if arguments and not isinstance(arguments[-1], typing.TypeVar) else None


def name_of_step(step: Any) -> str:
    """Return the key, name, or index of a step of a path in a pytree."""
    for attribute in ("key", "name", "idx"):
        if hasattr(step, attribute):
            return str(getattr(step, attribute))
    return str(step)
