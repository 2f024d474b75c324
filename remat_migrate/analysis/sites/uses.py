"""Where a function is called, and where it goes out of sight."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ..names.module import Module
from ..names.scopes import FunctionNode
from ..values.bind import Arguments, bind_call, with_partials
from ..values.values import Value


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One call of a function, or of its checkpoint.

    Attributes:
        module: where.
        node: the call.
        callee: what is called.
        first: the index of the argument that is the function's first: 1 for `jax.vjp(f, x)` and
            `model.apply(variables, x)`.
        skip: how many leading parameters of the function are bound already (`self`).
        partials: calls of `functools.partial` that give some of the arguments, outermost last.
        own: whether nothing else than this function (or its unwrapped self) can be called here.
        through: the function that makes the call, such as `jax.vjp`; "" for a plain call.
    """

    module: Module
    node: ast.Call
    callee: Value
    first: int = 0
    skip: int = 0
    partials: tuple[tuple[Module, ast.Call], ...] = ()
    own: bool = True
    through: str = ""

    @property
    def arguments(self) -> tuple[list[ast.expr], list[ast.keyword]]:
        """Positional and keyword arguments, those of partials included."""
        partials = (call for _, call in self.partials)
        return with_partials(self.node.args[self.first :], self.node.keywords, partials)

    def bound_to(self, function: FunctionNode) -> Arguments:
        """Return the arguments by the parameters of a function that it calls."""
        return bind_call(function, *self.arguments, self.skip)

    def module_of(self, argument: ast.expr) -> Module:
        """Return the module in which an argument is written: a partial may stand in another."""
        for module, call in self.partials:
            if argument in call.args or any(argument is k.value for k in call.keywords):
                return module
        return self.module


@dataclass(frozen=True, eq=False, slots=True)
class Escape:
    """A place where a function goes out of sight, so that calls may be unseen."""

    module: Module
    node: ast.expr | FunctionNode
    reason: str


@dataclass(slots=True)
class Uses:
    """The calls of a function, and what is not known of them.

    Attributes:
        calls: the calls.
        given: of partials that go out of sight, what they give.
        escapes: where it goes out of sight.
        differentiated: the positions that a gradient is taken of, each with a place that says so.
    """

    calls: list[Call] = field(default_factory=list)
    given: list[Call] = field(default_factory=list)
    escapes: list[Escape] = field(default_factory=list)
    differentiated: dict[int, tuple[Module, ast.expr]] = field(default_factory=dict)
