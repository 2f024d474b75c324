"""Probes: arguments whose uses show what a unit expects.

The first use of a probe decides what it is. A probe that is indexed by a string becomes a
dictionary; one whose truth value is taken, a bool; one that is multiplied with an array, an array
of a matching shape. It behaves like that from then on, and the next pass of the search passes the
value itself.

To JAX a probe is a pytree without leaves, so it passes through `grad`, `jit`, and tree functions.
"""

from __future__ import annotations

import operator
import sys
from typing import Any, Callable, List

import jax
import jax.numpy as jnp
import numpy as np

from ..frameworks import flax_modules
from ..lookup import attribute, has
from . import candidates, shapes
from .containers import Ticket, library_frame
from .node import ARRAY, CONSTANT, DICT, LIST, VALUE, Choice, Node, array, value

_ARRAY_ATTRIBUTES = frozenset(
    name for name in dir(jax.Array) if not name.startswith("_")
) | frozenset(("shape", "dtype", "ndim", "size", "T", "at"))
_DICT_ATTRIBUTES = frozenset(["items", "keys", "values", "get", "pop", "update", "setdefault"])
_ARRAY_ANYWHERE = frozenset(("shape", "dtype", "ndim"))


class Probe:
    """An argument of which nothing is known before it is used."""

    __slots__ = ("_ticket",)
    __array_ufunc__ = None
    _ticket: Ticket

    def __init__(self, node: Node, search: Any) -> None:
        ticket = Ticket(node, search)
        ticket.probe = self
        object.__setattr__(self, "_ticket", ticket)

    def __repr__(self) -> str:
        return "<input_{}_>".format(self._ticket.node.number)

    __str__ = __repr__

    def __getattr__(self, name: str) -> Any:
        node = self._ticket.node
        if name == "__jax_array__":
            # Array operators ask for it before they try ours, which see the other operand.
            if sys._getframe(1).f_globals.get("__name__", "").endswith("array_methods"):
                raise AttributeError(name)
            if sys._getframe(1).f_code.co_name in ("typeof", "shaped_abstractify"):
                # JAX refuses it in either case; the next pass gets an array.
                _settled(self, "array")
            return lambda: _settled(self, "array")
        if name.startswith("__"):
            raise AttributeError(name)
        if library_frame(1):
            if name in _ARRAY_ANYWHERE and node.choice is None:
                _decide(self, _arrays(node))
            elif node.choice is None or node.choice.kind not in (ARRAY, CONSTANT):
                raise AttributeError(name)
        elif node.choice is None:
            _decide_by_attribute(self, name)
        return getattr(_current(self), name)

    def __setattr__(self, name: str, thing: Any) -> None:
        if self._ticket.node.choice is None:
            _decide(self, self._ticket.search.objects(self._ticket.node, name))
        setattr(_current(self), name, thing)

    def __bool__(self) -> bool:
        node = self._ticket.node
        if node.choice is None:
            if candidates.is_number(node.name) and (candidates.is_setting(node) or not node.inside):
                _decide(self, candidates.numbers(node.name) + candidates.both())
                node.offer([value(0)])
            else:
                _decide(self, candidates.both() + candidates.numbers(node.name))
                node.offer(candidates.both())
        return bool(_current(self))

    def __index__(self) -> int:
        return operator.index(_settled(self, "integer"))

    def __int__(self) -> int:
        return int(_settled(self, "integer"))

    def __float__(self) -> float:
        return float(_settled(self, "float"))

    def __complex__(self) -> complex:
        return complex(_settled(self, "float"))

    def __round__(self, *digits: int) -> Any:
        return round(_settled(self, "float"), *digits)

    def __trunc__(self) -> int:
        return int(_settled(self, "float"))

    def __ceil__(self) -> Any:
        return _settled(self, "float").__ceil__()

    def __floor__(self) -> Any:
        return _settled(self, "float").__floor__()

    def __format__(self, specification: str) -> str:
        node = self._ticket.node
        if node.choice is None and library_frame(1):
            return repr(self)  # in an error message
        if node.choice is None:
            named = candidates.is_number(node.name)
            first, last = (candidates.integers, candidates.strings)[:: 1 if named else -1]
            _decide(self, first(node.name) + last(node.name))
        return format(_current(self), specification)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(_settled(self, "float"), *args)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it; an undecided probe becomes a function."""
        if self._ticket.node.choice is None:
            _decide(self, _functions(self._ticket.node, args, kwargs))
        return _current(self)(*args, **kwargs)

    def remat_migrate_callable(self, is_class: bool) -> Any:
        """Return what is passed; an undecided probe becomes a function or a class of Flax."""
        if self._ticket.node.choice is None:
            functions = _functions(self._ticket.node, (), {})
            _decide(self, [value(flax_modules.linen().Dense)] if is_class else functions)
        return _current(self)

    def __len__(self) -> int:
        if self._ticket.node.choice is None:
            _decide(self, _sequences(self._ticket.node))
        return len(_current(self))

    def __iter__(self) -> Any:
        if self._ticket.node.choice is None:
            _decide(self, _sequences(self._ticket.node))
        return iter(_current(self))

    def __contains__(self, item: Any) -> bool:
        if self._ticket.node.choice is None:
            text = isinstance(item, str)
            _decide(self, [Choice(DICT)] if text else _sequences(self._ticket.node))
        return item in _current(self)

    def __getitem__(self, index: Any) -> Any:
        node = self._ticket.node
        if node.choice is None:
            if isinstance(index, str):
                _decide(self, [Choice(DICT)])
            elif isinstance(index, (int, Probe)) and not isinstance(index, bool):
                _decide(self, _sequences(node))
            else:
                parts = index if isinstance(index, tuple) else (index,)
                axes = [part for part in parts if part is not None and part is not Ellipsis]
                _decide(self, shapes.at_least(_arrays(node), len(axes)))
        return _current(self)[_plain(index)]

    def __setitem__(self, index: Any, thing: Any) -> None:
        if self._ticket.node.choice is None:
            _decide(
                self, [Choice(DICT)] if isinstance(index, str) else _sequences(self._ticket.node)
            )
        _current(self)[index] = thing

    def __hash__(self) -> int:
        node = self._ticket.node
        if node.choice is not None and node.choice.kind == VALUE:
            return hash(node.choice.value)
        return id(self)

    def __eq__(self, other: Any) -> Any:
        if other is self or other is None or library_frame(1):
            return other is self
        return _compare(self, other, operator.eq)

    def __ne__(self, other: Any) -> Any:
        if other is self or other is None or library_frame(1):
            return other is not self
        return _compare(self, other, operator.ne)


def _compare(probe: Probe, other: Any, operation: Callable[[Any, Any], Any]) -> Any:
    node = probe._ticket.node
    if node.choice is None:
        plain = _plain(other)
        if isinstance(plain, bool):
            _decide(probe, candidates.both(plain))
            node.offer(candidates.both())
        elif isinstance(plain, str):
            _decide(probe, [value(plain), value("other")])
            node.offer([value(plain), value("other")])
        elif isinstance(plain, (int, float)) and _compared_as_array(node):
            _decide(probe, _arrays(node) + candidates.around(plain))
        elif isinstance(plain, (int, float)):
            _decide(probe, candidates.around(plain) + _arrays(node))
            node.offer(candidates.around(plain))
        elif _is_array(plain):
            _decide(probe, shapes.beside(_arrays(node), plain.shape))
        elif isinstance(plain, Probe):
            return operation(probe._ticket, plain._ticket)
        else:
            _decide(probe, [value(plain)])
    return operation(_current(probe), _plain(other))


def _order(operation: Callable[[Any, Any], Any]) -> Callable[[Probe, Any], Any]:
    return lambda probe, other: _compare(probe, other, operation)


def _binary(operation: Callable[[Any, Any], Any], reflected: bool) -> Callable[[Probe, Any], Any]:
    def apply(probe: Probe, other: Any) -> Any:
        if probe._ticket.node.choice is None:
            _decide_by_operand(probe, other, operation, reflected)
        mine = _current(probe)
        # This one is decided now; the other may take its shape from it.
        return operation(_plain(other), mine) if reflected else operation(mine, other)

    return apply


def _unary(operation: Callable[[Any], Any]) -> Callable[[Probe], Any]:
    def apply(probe: Probe) -> Any:
        node = probe._ticket.node
        if node.choice is None:
            number = _is_number(node)
            _decide(probe, candidates.numbers(node.name) if number else _arrays(node))
        return operation(_current(probe))

    return apply


for _name in [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
]:
    _operation = getattr(operator, "__{}__".format(_name))
    setattr(Probe, "__{}__".format(_name), _binary(_operation, False))
    setattr(Probe, "__r{}__".format(_name), _binary(_operation, True))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Probe, "__{}__".format(_name), _unary(getattr(operator, "__{}__".format(_name))))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Probe, "__{}__".format(_name), _order(getattr(operator, "__{}__".format(_name))))


def _decide(probe: Probe, choices: List[Choice]) -> None:
    probe._ticket.search.decide(probe._ticket.node, choices)


def _current(probe: Probe) -> Any:
    """Return the value that the probe stands for in this pass."""
    return probe._ticket.search.current(probe._ticket.node)


def _plain(thing: Any) -> Any:
    """Return the value of a probe that is decided, other values unchanged."""
    if isinstance(thing, Probe) and thing._ticket.node.choice is not None:
        return _current(thing)
    return thing


def _is_array(thing: Any) -> bool:
    return not isinstance(thing, Probe) and has(thing, "shape") and has(thing, "dtype")


def _is_number(node: Node) -> bool:
    """Return whether a node is likely to be a Python number."""
    return candidates.is_setting(node) or (not node.inside and candidates.is_number(node.name))


def _compared_as_array(node: Node) -> bool:
    """Return whether a comparison with a number is likely to be elementwise."""
    return len(node.name) > 1 and candidates.looks_like_array(node.name)


def _arrays(node: Node) -> List[Choice]:
    return candidates.shapes(node.name, node.inside)


def _settled(probe: Probe, kind: str) -> Any:
    node = probe._ticket.node
    if node.choice is None:
        if kind == "array" and candidates.is_setting(node):
            _decide(probe, candidates.numbers(node.name) + _arrays(node))
        elif kind == "array":
            texts = not node.inside and candidates.is_text(node.name)
            _decide(probe, (candidates.strings(node.name) if texts else []) + _arrays(node))
        elif kind == "integer":
            _decide(probe, candidates.integers(node.name))
        else:
            _decide(probe, candidates.floats(node.name) + candidates.integers(node.name))
    return _current(probe)


def _functions(node: Node, args: Any, kwargs: Any) -> List[Choice]:
    """Return candidates for a function that is called with these arguments."""
    from . import stand_in

    # The elements of a list are different functions, so that one in place of another shows.
    number = int(node.path[-1]) if node.path[-1].isdigit() else 0
    found = [value(jnp.tanh), value(stand_in.Function(len(args), tuple(kwargs), number))]
    if number:
        return found[::-1]
    owner = node.parent.choice if node.parent is not None else None
    if owner is not None and flax_modules.is_module_class(owner.value):
        # A field that makes layers, as in `self.conv(64, (3, 3))` and `self.norm()(x)`.
        linen = flax_modules.linen()
        if not args:
            return [value(linen.LayerNorm), *found]
        if isinstance(args[0], int):
            kernel = len(args) > 1 or "kernel_size" in kwargs
            return [value(linen.Conv if kernel else linen.Dense), *found]
    return found if len(args) + len(kwargs) == 1 else found[::-1]


def _sequences(node: Node) -> List[Choice]:
    lists = [Choice(LIST, count) for count in (2, 3, 1, 4)]
    arrays = shapes.at_least(_arrays(node), 1)
    if not node.inside and node.path[-1] not in ("params", "weights", "xs"):
        first = arrays[0].value
        named = candidates.shapes("", False)[0].value != first or len(node.name) == 1
        if named and not candidates.is_sequence(node.name):
            return arrays + lists
    return [*lists, Choice(DICT), *arrays]


def _decide_by_attribute(probe: Probe, name: str) -> None:
    node = probe._ticket.node
    node.attributes.add(name)
    objects = probe._ticket.search.objects(node, name)
    if name in _DICT_ATTRIBUTES:
        _decide(probe, [Choice(DICT), *objects])
    elif name in _ARRAY_ATTRIBUTES and not candidates.is_settings(node.name):
        _decide(probe, _arrays(node) + objects)
    else:
        _decide(probe, objects)


def _decide_by_operand(
    probe: Probe, other: Any, operation: Callable[[Any, Any], Any], reflected: bool
) -> None:
    """Decide a probe by the other operand of an operator."""
    node = probe._ticket.node
    plain = _plain(other)
    arrays = _arrays(node)
    number = _is_number(node)
    if isinstance(plain, Probe):
        # Decide this one by its name; the other has to fit.
        _decide(probe, candidates.numbers(node.name) + arrays if number else arrays)
    elif isinstance(plain, str):
        _decide(probe, candidates.strings(node.name))
    elif isinstance(plain, (list, tuple)):
        if operation is operator.mul:
            _decide(probe, candidates.integers(node.name))
        else:
            _decide(probe, [Choice("list" if isinstance(plain, list) else "tuple", 2)])
    elif number and (isinstance(plain, (int, float)) or attribute(plain, "ndim") is not None):
        _decide(probe, candidates.numbers(node.name) + arrays)
    elif not _is_array(plain):
        _decide(probe, arrays + candidates.numbers(node.name))
    elif operation is operator.matmul:
        _decide(probe, shapes.multiplied(arrays, plain.shape, reflected))
    elif operation in (operator.and_, operator.or_, operator.xor):
        masks = [array(c.value[0], "bool") for c in arrays]
        _decide(probe, shapes.beside(masks, plain.shape))
    else:
        _decide(probe, shapes.beside(arrays, plain.shape))


jax.tree_util.register_pytree_node(
    Probe, lambda probe: ((), probe._ticket), lambda ticket, _: ticket.probe
)
