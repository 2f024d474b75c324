"""Where checkpoints stand: what differentiates, what loops, and what becomes of a checkpoint."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ..names.mentions import Mentions, find_mentions
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..sites.passed_arguments import Arguments
from ..sites.site import Site
from ..values.evaluator import Evaluator
from .call_graph import Reach, find_reach
from .differentiation import Derivative, derivative_rules, find_derivatives
from .loops import LoopUse, find_loops, is_real
from .occurrences import Follow, Occurrence
from .transformed_functions import Transformed, find_transformed
from .whole_and_last import DifferentiatedPart, find_parts

# How many functions lie between a checkpoint and the loop that runs it.
_DEPTH = 4


def placement_of(project: Project) -> Placement:
    """Return what is differentiated and what runs in loops in a project."""
    return project.once(Placement)


@dataclass(eq=False, slots=True)
class Placement:
    """What is known of gradients and loops, module by module, found when first asked for."""

    project: Project
    arguments: Arguments = field(init=False)
    _mentions: dict[Module, Mentions] = field(default_factory=dict)
    _transformed: dict[Module, list[Transformed]] = field(default_factory=dict)
    _uses: dict[Module, dict[ast.expr, LoopUse | Derivative]] = field(default_factory=dict)
    _loops: dict[Module, tuple[LoopUse, ...]] = field(default_factory=dict)
    _derivatives: dict[Module, tuple[Derivative, ...]] = field(default_factory=dict)
    _rules: dict[Module, frozenset[FunctionNode]] = field(default_factory=dict)
    _occurrences: dict[tuple[ast.AST, bool], tuple[Occurrence, ...]] = field(default_factory=dict)
    _reach: Reach | None = None
    _reach_back: Reach | None = None
    _parts: dict[Module, list[DifferentiatedPart]] | None = None

    def __post_init__(self) -> None:
        self.arguments = Arguments(self.project)

    @property
    def evaluator(self) -> Evaluator:
        """What tells what an expression denotes."""
        return self.project.evaluator

    def mentions(self, module: Module) -> Mentions:
        """Where a module reads each name."""
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
        """What is done to the function that an expression is, or that a decorator decorates."""
        if module not in self._uses:
            every: list[LoopUse | Derivative] = [*self.loops(module), *self.derivatives(module)]
            self._uses[module] = {found.use.subject or found.node: found for found in every}
        return self._uses[module].get(node)

    def loops(self, module: Module) -> tuple[LoopUse, ...]:
        """The loops of a module."""
        if module not in self._loops:
            self._loops[module] = tuple(find_loops(self._all(module), self.evaluator))
        return self._loops[module]

    def derivatives(self, module: Module) -> tuple[Derivative, ...]:
        """The places in a module where functions are differentiated."""
        if module not in self._derivatives:
            self._derivatives[module] = tuple(find_derivatives(self._all(module), self.evaluator))
        return self._derivatives[module]

    @property
    def reach(self) -> Reach:
        """Which functions run inside something differentiated."""
        if self._reach is None:
            self._reach = find_reach(self)
        return self._reach

    @property
    def reach_back(self) -> Reach:
        """Which functions run inside something whose gradient goes backward."""
        if self._reach_back is None:
            self._reach_back = find_reach(self, backward=True)
        return self._reach_back

    def parts(self, module: Module) -> list[DifferentiatedPart]:
        """The checkpoints of a module that are the whole, or the last stage, of what is
        differentiated."""
        if self._parts is None:
            self._parts = find_parts(self)
        return self._parts.get(module, [])

    def in_derivative_rule(self, module: Module, node: ast.AST) -> bool:
        """Whether code is part of a function's own derivative rule."""
        if module not in self._rules:
            self._rules[module] = derivative_rules(module, self.evaluator)
        rules = self._rules[module]
        return any(around in rules for around in (node, *module.ancestors(node)))

    def occurrences(
        self, module: Module, function: ast.AST, *, through: bool = False
    ) -> tuple[Occurrence, ...]:
        """What becomes of a function within its module.

        `function` is an expression that makes one, a definition, or a decorator: what it makes of
        what is below it. Names, attributes of `self`, `jax.jit` and partials are followed; and
        arguments into the project's functions that they are passed to, if `through`.
        """
        key = (function, through)
        if key not in self._occurrences:
            self._occurrences[key] = ()  # a function that is passed to itself
            found = Follow(self, module, through=through).start(function)
            self._occurrences[key] = tuple(found)
        return self._occurrences[key]

    def of_site(self, site: Site, *, through: bool = False) -> tuple[Occurrence, ...]:
        """What becomes of what a site makes.

        If `through`, also of a checkpoint that is passed on as a wrapper: `repeat(f, wrap=remat)`.
        """
        if site.application is not None:
            return self.occurrences(site.module, site.application, through=through)
        if not through or site.form not in ("reference", "partial"):
            return ()
        node = site.reference
        if site.form == "partial":
            holder = site.module.parent(node)
            assert isinstance(holder, ast.expr)
            node = holder
        return tuple(Follow(self, site.module, through=True).wrapper(node))

    def loops_of(
        self, occurrence: Occurrence, *, through: bool = False, depth: int = 0
    ) -> tuple[LoopUse, ...]:
        """The loops in whose rounds a function is run where it occurs; none if also elsewhere.

        It is the body, or is called by a function that is run in loops and nowhere else.
        """
        if occurrence.loop is not None:
            return (occurrence.loop,)
        if occurrence.how != "called" or depth > _DEPTH:
            return ()
        module = occurrence.module
        around = module.enclosing_function(occurrence.node)
        if around is None:
            return ()
        found: list[LoopUse] = []
        for outer in self.occurrences(module, around, through=through):
            loops = self.loops_of(outer, through=through, depth=depth + 1)
            if not loops:
                return ()
            found += loops
        return tuple(found)

    def is_real(self, loop: LoopUse, occurrence: Occurrence) -> bool:
        """Whether the compiler sees a loop, for a function that is run by it.

        Where the function is passed to helpers, these calls say how many rounds there are, and
        whether they are unrolled; of a loop beside it other callers may do so.
        """
        if not occurrence.passed:
            return loop.real == "yes"
        return is_real(
            loop.use, lambda module, node: self.arguments.numbers(module, node, occurrence.via)
        )
