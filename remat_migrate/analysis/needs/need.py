"""A need: a place where Python must know the value of a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..names.module import Module
from ..names.scopes import FunctionNode, parameters


@dataclass(frozen=True, slots=True)
class Need:
    """A place where Python must know the value of a parameter.

    Attributes:
        parameter: its name.
        index: the item of it, where only one is needed, see Dependence.
        module: where.
        node: the expression that must have a value.
        reason: what for.
        certain: False when the value only goes somewhere that may need it.
        opaque: whether that is code that cannot be seen.
        called: whether the value is called, or a method of it that no array has.
        type_test: whether it is asked what kind of value it is (`isinstance`): a tracer is another.
        operands: further parameters without whose being Python values there is no need.
        traced: see Dependence.
    """

    parameter: str
    index: int | str | None
    module: Module
    node: ast.expr
    reason: str
    certain: bool = True
    opaque: bool = False
    called: bool = False
    type_test: bool = False
    operands: frozenset[str] = frozenset()
    traced: frozenset[tuple[Module, ast.expr]] = frozenset()

    @property
    def operations(self) -> list[tuple[Module, ast.expr]]:
        """`traced`, in order of place."""
        return sorted(self.traced, key=lambda t: (t[0].source.path, t[0].span(t[1])))

    def argument(self, function: FunctionNode) -> int | str | None:
        """The index, where the parameter is `*args` or `**kwargs`, whose items are arguments."""
        a = function.args
        stars = [p.arg for p in (a.vararg, a.kwarg) if p is not None]
        return self.index if self.parameter in stars else None


@dataclass(frozen=True, slots=True)
class Learned:
    """A need that running the code showed.

    Attributes:
        path: the file of the function.
        function: its qualified name, with those of the functions around it.
        parameter: the parameter whose value Python needed.
    """

    path: Path
    function: str
    parameter: str


def merged_needs(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Needs of one place as one with all operations, and one without where there is one.

    They keep the order of their first. See `dependence.merged`: every call on the way to a need
    would double them.
    """
    found: dict[tuple[Need, bool], frozenset[tuple[Module, ast.expr]]] = {}
    for need in needs:
        alike = (replace(need, traced=frozenset()), bool(need.traced))
        found[alike] = found.get(alike, frozenset()) | need.traced
    return tuple(replace(need, traced=traced) for (need, _), traced in found.items())


def learned_needs(learned: Iterable[Learned], module: Module, node: FunctionNode) -> Iterator[Need]:
    """What running the code showed of a function, each at one place."""
    if not learned or isinstance(node, ast.Lambda):
        return
    name = module.qualified_name(node).removeprefix(f"{module.name}.")
    for lesson in sorted(learned, key=str):
        if (lesson.path, lesson.function) == (module.source.path, name):
            if (use := _mention(node, lesson.parameter)) is not None:
                reason = "when it ran, Python needed the value"
                yield Need(lesson.parameter, None, module, use, reason)


def _mention(node: FunctionNode, name: str) -> ast.expr | None:
    """The first use of a parameter; the parameter itself where `eval` or `locals()` reads it."""
    for use in ast.walk(node):
        if isinstance(use, ast.Name) and use.id == name:
            return use
    for parameter in parameters(node):
        if parameter.arg == name:
            return ast.copy_location(ast.Name(name, ast.Load()), parameter)
    return None
