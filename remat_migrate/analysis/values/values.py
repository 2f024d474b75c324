"""What an expression may denote, as far as checkpoints are concerned.

A value is symbolic: a function of the project, an external name, the result of applying an Api to a
function. Evaluation returns a set of values; an empty set means that nothing is known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ...errors import BoundReached
from ..names.module import FunctionNode, Module

# Checkpoints, transforms, and partials around one function: each is looked through again and again.
_MOST_LAYERS = 200


@dataclass(frozen=True, slots=True)
class _Holder:
    """A value that holds others. Its hash is kept: the values in one another may be many.

    Raises:
        BoundReached: they are too many.
    """

    _hash: int = field(init=False, repr=False, compare=False)
    _depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names: tuple[str, ...] = self.__match_args__
        parts = tuple(getattr(self, name) for name in names)
        depth = 1 + max(part._depth if isinstance(part, _Holder) else 0 for part in parts)
        if depth > _MOST_LAYERS:
            raise BoundReached(
                f"a function is in more than {_MOST_LAYERS} checkpoints, transforms, and partials"
            )
        object.__setattr__(self, "_depth", depth)
        object.__setattr__(self, "_hash", hash((type(self), parts)))

    def __hash__(self) -> int:
        return self._hash


# `dataclass` would give each of its subclasses a hash of its own.
_kept_hash = _Holder.__hash__


@dataclass(frozen=True, slots=True)
class External:
    """Something outside the project, by qualified name; also every Api and every builtin."""

    name: str


@dataclass(frozen=True, slots=True)
class ModuleValue:
    """A module of the project."""

    module: Module


@dataclass(frozen=True, slots=True)
class Function:
    """A function, method, or lambda of the project, before its decorators."""

    module: Module
    node: FunctionNode


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the project.

    If `exact`, it is this class; otherwise it may be a subclass, as the class of `self` may.
    """

    module: Module
    node: ast.ClassDef
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Instance(_Holder):
    """An instance of a class."""

    cls: Value
    __hash__ = _kept_hash


@dataclass(frozen=True, slots=True)
class Bound(_Holder):
    """A method with the instance that it is bound to."""

    func: Value
    receiver: Value
    __hash__ = _kept_hash


@dataclass(frozen=True, slots=True)
class Partial(_Holder):
    """`func` with some arguments, and the call that passed them.

    If `by_functools`, the call is `functools.partial(func, ...)`; otherwise it is a call of `func`
    itself without the function to wrap (`nnx.remat(prevent_cse=False)`).
    """

    func: Value
    module: Module
    call: ast.Call
    by_functools: bool = True
    __hash__ = _kept_hash


@dataclass(frozen=True, slots=True)
class Applied(_Holder):
    """An Api applied to `target`.

    `node` is the application: the call, or the decorator expression. The target is None if it is
    unknown.
    """

    module: Module
    node: ast.expr
    target: Value | None
    __hash__ = _kept_hash


@dataclass(frozen=True, slots=True)
class Wrapped(_Holder):
    """A transformation (`jax.jit`, `jax.grad`) of `func` that is called with the same arguments."""

    how: str
    func: Value
    module: Module
    node: ast.expr
    __hash__ = _kept_hash


@dataclass(frozen=True, slots=True)
class Container:
    """A list, tuple, set, dict, or comprehension."""

    module: Module
    node: ast.expr


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: number, string, bool, or None. `1`, `1.0`, and `True` are different literals."""

    value: object

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value


@dataclass(frozen=True, slots=True)
class Parameter:
    """The argument for a parameter."""

    module: Module
    function: FunctionNode
    name: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an external function."""

    name: str


Value = (
    External
    | ModuleValue
    | Function
    | Class
    | Instance
    | Bound
    | Partial
    | Applied
    | Wrapped
    | Container
    | Constant
    | Parameter
    | Result
)
Values = frozenset[Value]
NOTHING: Values = frozenset()


def alternatives(node: ast.expr) -> list[ast.expr]:
    """Return the parts of which the value of an expression is one: those of `a if test else b`,
    `a or b`, and `(name := a)`. Other expressions have none.
    """
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.BoolOp(values=values):
            return values
        case ast.NamedExpr(value=value) | ast.Starred(value=value) | ast.Await(value=value):
            return [value]
    return []


def union(parts: Iterable[Values]) -> Values:
    """Return the values that are in any of some sets."""
    return NOTHING.union(*parts)


def around(node: ast.expr, values: Iterable[Value], wrap: Callable[[Value], Value]) -> Values:
    """Return what a call or decorator makes of some values: `wrap` of each.

    In `for _ in range(3): f = jax.checkpoint(f)`, one checkpoint stands for all: nothing is put
    around what the same node made.
    """
    return frozenset(wrap(value) for value in values if not _is_made_by(node, value))


def _is_made_by(node: ast.expr, value: Value) -> bool:
    made = (layer for layer in layers(value) if isinstance(layer, Applied | Wrapped | Partial))
    return any(node is (m.call if isinstance(m, Partial) else m.node) for m in made)


def layers(value: Value | None) -> Iterator[Value]:
    """Yield a value and what it wraps, outermost first: checkpoints, transforms, partials."""
    while value is not None:
        yield value
        match value:
            case Applied(target=inner) | Wrapped(func=inner) | Partial(func=inner):
                value = inner
            case Bound(func=inner):
                value = inner
            case _:
                return


def underlying(value: Value | None) -> Value | None:
    """Return the function that calling a value runs in the end, or the class that it
    instantiates.
    """
    *_, last = layers(value) if value is not None else (None,)
    return None if isinstance(last, Applied) else last  # what a last Applied wraps is not seen


def order(value: Value) -> tuple[str, str, int, int]:
    """Return a reproducible sort key for values."""
    inner = underlying(value)
    inner = inner.cls if isinstance(inner, Instance) else inner
    if isinstance(inner, Function | Class):
        return type(value).__name__, *inner.module.position(inner.node)
    return type(value).__name__, getattr(inner, "name", ""), 0, 0


# How many arguments `apply` takes before those of the function: parameters, state, random key.
_LEADING = {"haiku.transform": 2, "haiku.transform_with_state": 3}
_WITHOUT_KEY = "haiku.without_apply_rng"
_METHODS = ("init", "apply")
# Methods of a model that call it.
APPLY = frozenset({"apply", "init", "init_with_output", "lazy_init"})


def transformed(name: str, module: Module, node: ast.expr, inner: Values) -> Values:
    """Return what a Haiku transform makes of its first argument; nothing for other functions.

    Such a pair of `init` and `apply` is an instance of the wrapped function, as a Flax module is an
    instance of its class: both have an `apply` that runs something else with some of its arguments.
    """
    if name in _LEADING:
        return frozenset(Instance(Wrapped(name, value, module, node)) for value in inner)
    if name == _WITHOUT_KEY:
        return frozenset(
            Instance(Wrapped(name, value.cls, module, node))
            for value in inner
            if isinstance(value, Instance) and isinstance(value.cls, Wrapped)
        )
    return NOTHING


def makes_pair(name: str) -> bool:
    """Return whether a function returns such a pair."""
    return name in _LEADING or name == _WITHOUT_KEY


def is_transformed(value: Value) -> bool:
    """Return whether a value is such a pair."""
    match value:
        case Instance(cls=Wrapped(how=how)):
            return makes_pair(how)
    return False


def unpacked(value: Value, step: int) -> Values:
    """Return what `init, apply = haiku.transform(f)` binds to a name."""
    if not is_transformed(value) or step not in (0, 1):
        return NOTHING
    return frozenset((Bound(External(f"flax.linen.Module.{_METHODS[step]}"), value),))


def leading_arguments(method: str, model: Value) -> int:
    """Return how many arguments `apply` or `init` of a model takes before those it passes on."""
    if method != "apply" or not is_transformed(model):
        return 1  # the variables, or the random key
    assert isinstance(model, Instance)
    count, wrapped = 0, model.cls
    while isinstance(wrapped, Wrapped):
        count += -1 if wrapped.how == _WITHOUT_KEY else _LEADING.get(wrapped.how, 0)
        wrapped = wrapped.func
    return count
