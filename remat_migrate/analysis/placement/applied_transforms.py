"""The functions that a module passes to JAX's transformations, found on first use."""

from __future__ import annotations

import ast

from ..names.mentions import Mentions, find_mentions
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..sites.passed_arguments import Arguments
from ..values.evaluator import Evaluator
from .differentiation import Derivative, derivative_rules, find_derivatives
from .loops import LoopUse, find_loops
from .transformed_functions import Transformed, find_transformed


class AppliedTransforms:
    """The derivatives and loops of a project, module by module."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.arguments = Arguments(project)
        self._mentions: dict[Module, Mentions] = {}
        self._transformed: dict[Module, list[Transformed]] = {}
        self._uses: dict[Module, dict[ast.expr, LoopUse | Derivative]] = {}
        self._loops: dict[Module, tuple[LoopUse, ...]] = {}
        self._derivatives: dict[Module, tuple[Derivative, ...]] = {}
        self._rules: dict[Module, frozenset[FunctionNode]] = {}

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator of the project."""
        return self.project.evaluator

    def mentions(self, module: Module) -> Mentions:
        """Return the mentions in a module."""
        if module not in self._mentions:
            self._mentions[module] = find_mentions(module)
        return self._mentions[module]

    def _all(self, module: Module) -> list[Transformed]:
        if module not in self._transformed:
            mentions = self.mentions(module)
            self._transformed[module] = find_transformed(
                module, mentions, self.evaluator, self.arguments
            )
        return self._transformed[module]

    def use_at(self, module: Module, node: ast.expr) -> LoopUse | Derivative | None:
        """Return the transformation of the function that an expression denotes, or that a decorator
        decorates.
        """
        if module not in self._uses:
            every: list[LoopUse | Derivative] = [*self.loops(module), *self.derivatives(module)]
            self._uses[module] = {found.use.subject or found.node: found for found in every}
        return self._uses[module].get(node)

    def loops(self, module: Module) -> tuple[LoopUse, ...]:
        """Return the loops of a module."""
        if module not in self._loops:
            self._loops[module] = tuple(find_loops(self._all(module), self.evaluator))
        return self._loops[module]

    def derivatives(self, module: Module) -> tuple[Derivative, ...]:
        """Return the places in a module that differentiate functions."""
        if module not in self._derivatives:
            self._derivatives[module] = tuple(find_derivatives(self._all(module), self.evaluator))
        return self._derivatives[module]

    def in_derivative_rule(self, module: Module, node: ast.AST) -> bool:
        """Return whether code is part of a custom derivative rule."""
        if module not in self._rules:
            self._rules[module] = derivative_rules(module, self.evaluator)
        rules = self._rules[module]
        return any(around in rules for around in (node, *module.ancestors(node)))
