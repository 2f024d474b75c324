"""Needs: places that need the value of a parameter, or of a JAX result, at trace time."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from ..names.module import Module
from ..names.scopes import FunctionNode
from .dependence import CONSTANTS, UNSEEN

# Reasons that are told apart.
BRANCH = "a branch on it"
LOOP = "a loop condition"
ASSERTION = "an assertion on it"
AND_OR = "`and`/`or` on it"
NOT = "`not` on it"
MATCH = "a match on it"
IDENTITY = "an identity test"
ORDER = "its order"
CONDITIONS = frozenset({BRANCH, LOOP, ASSERTION})
# Reasons that need the truth of a value, which for a container is known, whatever its items are.
TRUTH = frozenset({*CONDITIONS, AND_OR, NOT})

# A caller is told of so many places that need the same parameter in the same way: otherwise each
# of n functions that call one another would know every place in all of them.
_MOST_ALIKE = 20


@dataclass(frozen=True, slots=True)
class Need:
    """A place that needs a value at trace time.

    Attributes:
        parameter: the parameter that the value depends on, or CONSTANTS or UNSEEN.
        index: the item that is needed, if it is only one; see Dependence.
        module: the module with the place.
        node: the expression that must be concrete.
        reason: what needs it.
        certain: False if the value only reaches a place that may need it.
        opaque: whether that is code that cannot be seen.
        called: whether the value, or a method of it that arrays do not have, is called.
        type_test: whether the code tests the type of the value, or whether it is the same object as
            another, which differs for a tracer.
        changed: whether the code changes the object, of which a checkpointed function gets a copy,
            or sees the order of a dictionary, which the copy does not keep.
        stored: whether it puts something computed into the object.
        operands: further parameters; there is no need unless they are Python values.
        traced: the operations in between; see Dependence.
        is_result: whether the value is certainly a result of JAX, which a checkpoint traces
            whatever goes in.
        passed: whether a result is passed to a function that computes with it.
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
    changed: bool = False
    stored: bool = False
    operands: frozenset[str] = frozenset()
    traced: frozenset[tuple[Module, ast.expr]] = frozenset()
    is_result: bool = False
    passed: bool = False

    @property
    def operations(self) -> list[tuple[Module, ast.expr]]:
        """The operations in `traced`, in source order."""
        return sorted(self.traced, key=lambda t: (t[0].source.path, t[0].span(t[1])))

    @property
    def is_of_parameter(self) -> bool:
        """Whether the place needs a parameter as it is, rather than something computed from it."""
        return _is_parameter(self.module, self.node)

    @property
    def is_of_truth(self) -> bool:
        """Whether the place needs only the truth of parameters as they are: `if not cache`."""
        if self.reason not in TRUTH or self.index is not None or self.traced:
            return False
        waiting: list[ast.expr] = [self.node]
        while waiting:
            match waiting.pop():
                case ast.BoolOp(values=values):
                    waiting += values
                case ast.UnaryOp(op=ast.Not(), operand=operand):
                    waiting.append(operand)
                case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                    pass
                case node if not _is_parameter(self.module, node):
                    return False
        return True

    def argument(self, function: FunctionNode) -> int | str | None:
        """Return the index if the parameter is `*args` or `**kwargs`, whose items are arguments."""
        a = function.args
        stars = [p.arg for p in (a.vararg, a.kwarg) if p is not None]
        return self.index if self.parameter in stars else None


def _is_parameter(module: Module, node: ast.expr) -> bool:
    bindings = module.reaching(node) if isinstance(node, ast.Name) else frozenset()
    return bool(bindings) and all(b.kind == "parameter" for b in bindings)


_NONE: frozenset[tuple[Module, ast.expr]] = frozenset()


def merged_needs(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Merge the needs of each place into one with operations and one without, in the same order.

    Otherwise every call on the path to a need would double them; see `dependence.merged`.
    """
    found: dict[tuple[Need, bool], frozenset[tuple[Module, ast.expr]]] = {}
    for need in needs:
        alike = (replace(need, traced=_NONE) if need.traced else need, bool(need.traced))
        found[alike] = found.get(alike, _NONE) | need.traced
    return tuple(
        replace(need, traced=traced) if traced else need for (need, _), traced in found.items()
    )


def passed_on(needs: Iterable[Need]) -> Iterator[Need]:
    """Yield the needs of a function that concern its callers; of many that are alike, the first."""
    alike: Counter[tuple[object, ...]] = Counter()
    for need in needs:
        reason = need.reason if need.reason in TRUTH else ""
        kind = (
            *(need.parameter, need.index, reason, need.certain, need.opaque, need.called),
            *(need.type_test, need.operands, bool(need.traced), need.is_result),
            *(need.passed, need.changed, need.stored),
        )
        alike[kind] += 1
        if alike[kind] <= _MOST_ALIKE:
            yield need


@dataclass(frozen=True, slots=True)
class NeededResult:
    """A place that needs the value of a result of JAX, which a checkpoint traces whatever goes in.

    If nothing traced goes in, the operation can run at compile time.

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
