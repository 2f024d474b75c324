"""The functions that a module passes to JAX's transformations, found on first use."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..names.mentions import find_mentions
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..sites.passed_arguments import PassedArguments
from ..values.callees import order
from ..values.evaluator import Evaluator
from ..values.values import Value, Values
from .differentiation import Derivative, derivative_rules, find_derivatives
from .loops import LoopUse, find_loops
from .operations import Operations
from .transformed_functions import find_transformed

_Read = tuple[Module, ast.Name | ast.Attribute]


@dataclass(frozen=True, slots=True)
class _Uses:
    loops: tuple[LoopUse, ...]
    derivatives: tuple[Derivative, ...]
    by_node: dict[ast.expr, LoopUse | Derivative]
    bodies: frozenset[ast.expr | None]


class AppliedTransforms:
    """The derivatives and loops of a project, module by module."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.arguments = project.once(PassedArguments)
        self.operations = project.once(Operations)
        self._uses: dict[Module, _Uses] = {}
        self._rules: dict[Module, frozenset[FunctionNode]] = {}
        self._reads: dict[str, dict[Value, list[_Read]]] = {}

    def reads_of(self, name: str, values: Values) -> list[_Read]:
        """Return where the project's modules read a name, or an alias of it, that may denote one of
        some values."""
        if name not in self._reads:
            self._reads[name] = self._find_reads(name)
        known = self._reads[name]
        found = (read for value in sorted(values, key=order) for read in known.get(value, ()))
        return list(dict.fromkeys(found))

    def _find_reads(self, name: str) -> dict[Value, list[_Read]]:
        found: dict[Value, list[_Read]] = {}
        for module in self.project.modules.values():
            mentions = find_mentions(module)
            for one in sorted({name, *mentions.renamed.get(name, ())}):
                for node in mentions.reads(one):
                    for value in self.evaluator.values(module, node):
                        found.setdefault(value, []).append((module, node))
        return found

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator of the project."""
        return self.project.evaluator

    def _uses_in(self, module: Module) -> _Uses:
        if module not in self._uses:
            found = find_transformed(module, self.evaluator, self.arguments)
            loops = tuple(find_loops(found, self.evaluator))
            derivatives = tuple(find_derivatives(found, self.evaluator))
            every: list[LoopUse | Derivative] = [*loops, *derivatives]
            by_node = {one.use.subject or one.node: one for one in every}
            bodies = frozenset(loop.use.subject for loop in loops)
            self._uses[module] = _Uses(loops, derivatives, by_node, bodies)
        return self._uses[module]

    def use_at(self, module: Module, node: ast.expr) -> LoopUse | Derivative | None:
        """Return the transformation of the function that an expression denotes, or that a decorator
        decorates.
        """
        return self._uses_in(module).by_node.get(node)

    def is_body(self, module: Module, node: ast.expr) -> bool:
        """Return whether an expression denotes the body of a loop that it is passed to."""
        return node in self._uses_in(module).bodies

    def loops(self, module: Module) -> tuple[LoopUse, ...]:
        """Return the loops of a module."""
        return self._uses_in(module).loops

    def derivatives(self, module: Module) -> tuple[Derivative, ...]:
        """Return the places in a module that differentiate functions."""
        return self._uses_in(module).derivatives

    def in_derivative_rule(self, module: Module, node: ast.AST) -> bool:
        """Return whether code is part of a custom derivative rule."""
        if module not in self._rules:
            self._rules[module] = derivative_rules(module, self.evaluator)
        rules = self._rules[module]
        return any(around in rules for around in (node, *module.ancestors(node)))
