"""Results of JAX functions whose values Python needs, though a checkpoint traces them.

Inside a checkpointed function, the result of every `jax.numpy` operation is a tracer, whatever goes
in. If nothing traced goes in, the operation can run at compile time.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from ..needs.dependence import CONSTANTS, UNSEEN
from ..needs.need import Need
from ..project import Project
from ..values.callees import Target, is_pytree
from ..values.classes import class_annotations
from ..values.declarations import annotation_kind
from ..values.evaluator import class_chain
from ..values.values import Class


@dataclass(frozen=True, slots=True)
class NeededResult:
    """A place that needs the value of a result.

    Attributes:
        need: the place, with all operations that lead to it.
        sources: the needs of all that goes into it.
    """

    need: Need
    sources: tuple[Need, ...]

    @property
    def parameters(self) -> set[str]:
        """The parameters that go in."""
        return {need.parameter for need in self.sources} - {CONSTANTS, UNSEEN}

    def may_be_traced(self, project: Project, target: Target, closed: Collection[str]) -> bool:
        """Return whether something besides arguments goes in that may be traced.

        Args:
            project: the project.
            target: the function.
            closed: the parameters that the calls do not pass.
        """
        return any(
            need.parameter == UNSEEN
            or (need.parameter in closed and not _is_declared(project, target, need))
            for need in self.sources
        )


def needed_results(needs: Iterable[Need]) -> Iterator[NeededResult]:
    """Yield the results among the needs of a function, each place once."""
    by_place: dict[ast.expr, list[Need]] = {}
    for need in needs:
        if need.certain and need.is_result:
            by_place.setdefault(need.node, []).append(need)
    for sources in by_place.values():
        traced = frozenset().union(*(need.traced for need in sources))
        yield NeededResult(replace(sources[0], traced=traced), tuple(sources))


def _is_declared(project: Project, target: Target, need: Need) -> bool:
    """Return whether what goes in is a field of `self` that is declared, and holds no array."""
    cls = target.owner
    if cls is None or not isinstance(need.index, str) or is_pytree(project.evaluator, cls):
        return False
    for owner in class_chain(project.evaluator, cls):
        if isinstance(owner, Class) and need.index in class_annotations(owner.node):
            return annotation_kind(class_annotations(owner.node)[need.index]) != "array"
    return False
