"""Where checkpoints are: what is differentiated, what runs in loops, and how functions are used."""

from __future__ import annotations

import ast
from functools import cached_property, partial

from ..project import Project
from ..sites.passed_arguments import numbers
from ..sites.site import Site
from ..values.evaluator import Evaluator
from ..values.values import Class, Function, Wrapped, layers
from .call_graph import DifferentiatedFunctions, find_differentiated
from .occurrences import Occurrence, find_occurrences
from .operations import Operations
from .transforms import Derivative, LoopUse, transforms_in

# How many functions may lie between a checkpoint and the loop that runs it.
_DEPTH = 4


def placement_of(project: Project) -> Placement:
    """Return what is differentiated and what runs in loops in a project."""
    return project.once(Placement)


class Placement:
    """What is differentiated and what runs in loops, and where functions are used."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.operations = project.once(Operations)
        self._occurrences: dict[Site | Function, tuple[Occurrence, ...]] = {}

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

    def occurrences(self, origin: Site | Function) -> tuple[Occurrence, ...]:
        """Return what happens to a function, or to what a site makes, in the project.

        Nothing does if the site only names its Api.
        """
        if isinstance(origin, Site) and origin.application is None:
            return ()
        if origin not in self._occurrences:
            self._occurrences[origin] = tuple(find_occurrences(self.project, origin))
        return self._occurrences[origin]

    @cached_property
    def transformed(self) -> dict[ast.AST, list[LoopUse | Derivative]]:
        """The loops and gradients of each class, and of each function that another one makes, by
        the class and the place that makes the function.
        """
        found: dict[ast.AST, list[LoopUse | Derivative]] = {}
        for module in self.project.modules.values():
            for use in transforms_in(self.project, module).values():
                for layer in (layer for value in use.functions for layer in layers(value)):
                    if isinstance(layer, Wrapped | Class):
                        found.setdefault(layer.node, []).append(use)
        return found

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
        for outer in self.occurrences(Function(module, around)):
            loops = self.loops_of(outer, depth + 1)
            if not loops:
                return ()
            found += loops
        return tuple(found)

    def compiles_to_loop(self, loop: LoopUse) -> bool:
        """Return whether the compiler sees a loop, whatever the project's calls of the function
        around it pass for the number of iterations and the unrolling.
        """
        return loop.compiles_to_loop(partial(numbers, self.project)) == "yes"
