"""Where a function is called, and where it escapes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ..names.module import Module, Place
from ..names.scopes import Definition, FunctionNode
from ..values.bind import Arguments, bind_call, with_partials
from ..values.values import Value


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One call of a function, or of its checkpoint.

    Attributes:
        module: the module.
        node: the call.
        callee: what is called.
        first: the index of the argument for the first parameter: 1 for `jax.vjp(f, x)` and
            `model.apply(variables, x)`.
        skip: how many leading parameters of the function are bound already (`self`).
        partials: calls of `functools.partial` that pass some of the arguments, outermost last.
        own: whether only this function (or its unwrapped version) can be called here.
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
        """The positional and keyword arguments, including those of partials."""
        partials = (call for _, call in self.partials)
        return with_partials(self.node.args[self.first :], self.node.keywords, partials)

    def bound_to(self, function: FunctionNode) -> Arguments:
        """Return the arguments by parameters of a function that it calls."""
        return bind_call(function, *self.arguments, self.skip)

    def module_of(self, argument: ast.expr) -> Module:
        """Return the module that contains an argument: a partial may be in another one."""
        for module, call in self.partials:
            if argument in call.args or any(argument is k.value for k in call.keywords):
                return module
        return self.module


@dataclass(frozen=True, eq=False, slots=True)
class Escape:
    """A place where a function escapes, so that some calls may be unknown."""

    module: Module
    node: ast.expr | FunctionNode
    reason: str


@dataclass(slots=True)
class Uses:
    """The calls of a function, and what is unknown about them.

    Attributes:
        calls: the calls.
        given: what partials that escape pass.
        escapes: where it escapes.
        decorated: the functions and classes that it decorates, each with the decorator.
        differentiated: the positions that are differentiated, each with a place that says so.
    """

    calls: list[Call] = field(default_factory=list)
    given: list[Call] = field(default_factory=list)
    escapes: list[Escape] = field(default_factory=list)
    decorated: list[tuple[Module, ast.expr, Definition]] = field(default_factory=list)
    differentiated: dict[int, Place] = field(default_factory=dict)

    @property
    def passing(self) -> list[Call]:
        """The calls, with those of partials that escape."""
        return [*self.calls, *self.given]


@dataclass(frozen=True, slots=True)
class Passed:
    """What is passed for a parameter.

    Attributes:
        places: what the known calls pass.
        definitions: the functions and classes that its function decorates, if it is the first.
        default: the default of the parameter, if it has one.
        unknown: a place where something else may be passed.
        defaulted: whether some call does not pass it.
    """

    places: tuple[Place, ...]
    definitions: tuple[tuple[Module, Definition], ...]
    default: Place | None
    unknown: tuple[Module, ast.expr | FunctionNode] | None
    defaulted: bool
