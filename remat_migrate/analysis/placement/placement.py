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
from .occurrences import Occurrence, find_occurrences
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
        self._occurrences: dict[ast.AST, tuple[Occurrence, ...]] = {}

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

    def occurrences(self, module: Module, function: ast.AST) -> tuple[Occurrence, ...]:
        """Return what happens to a function in the project.

        `function` is an expression that makes a function, a definition, or a decorator (for the
        result of decorating).
        """
        if function not in self._occurrences:
            self._occurrences[function] = ()  # a function that is passed to itself
            self._occurrences[function] = tuple(find_occurrences(self.project, module, function))
        return self._occurrences[function]

    def of_site(self, site: Site) -> tuple[Occurrence, ...]:
        """Return what happens to what a site makes; nothing if the site only names its Api."""
        node = site.application
        return self.occurrences(site.module, node) if node is not None else ()

    def loops_of(self, occurrence: Occurrence, depth: int = 0) -> tuple[LoopUse, ...]:
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
        for outer in self.occurrences(module, around):
            loops = self.loops_of(outer, depth + 1)
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
