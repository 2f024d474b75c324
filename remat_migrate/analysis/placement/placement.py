"""Where checkpoints are: what is differentiated, what runs in loops, and how functions are used."""

from __future__ import annotations

import ast
from functools import cached_property, partial

from ..names.module import Module
from ..project import Project
from ..sites.passed_arguments import PassedArguments
from ..sites.site import Site
from ..values.evaluator import Evaluator
from .call_graph import DifferentiatedFunctions, find_differentiated
from .occurrences import FunctionTracker, Occurrence
from .operations import Operations
from .transforms import LoopUse, Transforms

# How many functions may lie between a checkpoint and the loop that runs it.
_DEPTH = 4


def placement_of(project: Project) -> Placement:
    """Return what is differentiated and what runs in loops in a project."""
    return project.once(Placement)


class Placement:
    """What is differentiated and what runs in loops, and where functions are used."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.arguments = project.once(PassedArguments)
        self.operations = project.once(Operations)
        self.transforms = project.once(Transforms)
        self._occurrences: dict[tuple[ast.AST, bool], tuple[Occurrence, ...]] = {}

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator of the project."""
        return self.project.evaluator

    @cached_property
    def differentiated(self) -> DifferentiatedFunctions:
        """The functions that run inside something differentiated."""
        return find_differentiated(self.project)

    @cached_property
    def differentiated_backward(self) -> DifferentiatedFunctions:
        """The functions that run inside something that is differentiated in reverse mode."""
        return find_differentiated(self.project, backward=True)

    def occurrences(
        self, module: Module, function: ast.AST, *, through: bool = False
    ) -> tuple[Occurrence, ...]:
        """Return what happens to a function within its module.

        `function` is an expression that makes a function, a definition, or a decorator (for the
        result of decorating). Names, attributes of `self`, `jax.jit`, and partials are followed;
        with `through`, also arguments of the project's functions.
        """
        key = (function, through)
        if key not in self._occurrences:
            self._occurrences[key] = ()  # a function that is passed to itself
            found = FunctionTracker(self.project, module, through=through).start(function)
            self._occurrences[key] = tuple(found)
        return self._occurrences[key]

    def of_site(self, site: Site, *, through: bool = False) -> tuple[Occurrence, ...]:
        """Return what happens to what a site makes.

        With `through`, this includes a checkpoint that is passed on as a wrapper: `repeat(f,
        wrap=remat)`.
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
        return tuple(FunctionTracker(self.project, site.module, through=True).wrapper(node))

    def loops_of(
        self, occurrence: Occurrence, *, through: bool = False, depth: int = 0
    ) -> tuple[LoopUse, ...]:
        """Return the loops that run a function where it occurs; none if something else also runs
        it.

        The function is the loop body, or is called by a function that only runs in loops.
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

    def compiles_to_loop(self, loop: LoopUse, occurrence: Occurrence) -> bool:
        """Return whether the compiler sees the loop that runs a function.

        If the function is passed to helpers, these calls determine the number of iterations and the
        unrolling.
        """
        if not occurrence.passed:
            return loop.compiled == "yes"
        numbers = partial(self.arguments.numbers, via=occurrence.via)
        return loop.compiles_to_loop(numbers) == "yes"
