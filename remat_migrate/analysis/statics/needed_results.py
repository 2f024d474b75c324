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

    def may_be_traced(self, closed: Collection[str]) -> bool:
        """Return whether something besides arguments goes in that may be traced; the calls do not
        pass the parameters in `closed`.
        """
        return any(n.parameter == UNSEEN or n.parameter in closed for n in self.sources)


def needed_results(needs: Iterable[Need]) -> Iterator[NeededResult]:
    """Yield the results among the needs of a function, each place once."""
    by_place: dict[ast.expr, list[Need]] = {}
    for need in needs:
        if need.certain and need.is_result:
            by_place.setdefault(need.node, []).append(need)
    for sources in by_place.values():
        traced = frozenset().union(*(need.traced for need in sources))
        yield NeededResult(replace(sources[0], traced=traced), tuple(sources))
