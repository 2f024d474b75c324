"""Solve one chain for budgets, and trace and compile its placements.

The expected cost of a placement is the sum of its stages; the whole gradient is then traced with
it. If that exceeds the budget, the chain is solved for less memory; if it uses clearly less than
expected, for more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..measure.worker.records import Chain, Need
from .chain import Arc, Run, Writable, promise, runs_of
from .obvious import obvious_paths
from .plan import Placement, decisions
from .solve import Solver

_ROUNDS = 6
# A plan that needs less than this share of the budget, and less than expected, may be improved.
_CAREFUL = 0.97
# The factor by which a budget must shrink for the next plan to differ.
_STEP = 0.995
# FLOPs that differ by less than this share are about equal.
EQUAL = 1.001
# Budgets that are tried for the Pareto front.
_POINTS = 16

_Ask = Callable[..., Mapping[str, Any]]


class Gradient:
    """The gradient computation of the target, traced and compiled once for each placement.

    Attributes:
        bare: its cost without checkpoints.
    """

    def __init__(self, bare: Need, asked: _Ask, seconds: float = math.inf) -> None:
        """Remember how to ask the measuring process, and the time that compiling may take."""
        self.bare = bare
        self._asked = asked
        self._traced: dict[tuple[Run, ...], Need] = {(): bare}
        self._compiled: dict[tuple[Run, ...], int] = {}
        self._seconds = seconds
        self._longest = 0.0

    def can_compile(self, count: int) -> bool:
        """Return whether there is time to compile some more placements."""
        return count * self._longest <= self._seconds

    @property
    def tried(self) -> int:
        """The number of placements that were traced."""
        return len(self._traced) - 1

    def traced(self, runs: tuple[Run, ...]) -> Need:
        """Return the cost with checkpoints on runs of equations."""
        if runs not in self._traced:
            self._traced[runs] = Need(*self._asked("trace", runs=runs)["need"])
        return self._traced[runs]

    def compiled(self, runs: tuple[Run, ...]) -> int:
        """Return the bytes of the compiled program besides its inputs."""
        if runs not in self._compiled:
            start = time.monotonic()
            self._compiled[runs] = self._asked("compile_runs", runs=runs)["bytes"]
            took = time.monotonic() - start
            self._longest = max(self._longest, took)
            self._seconds -= took
        return self._compiled[runs]


class Planner:
    """Solves one chain for budgets and traces the placements."""

    def __init__(self, chain: Chain, gradient: Gradient, source: Writable | None = None) -> None:
        """Plan for a chain; with a `source`, only what can be written into it."""
        self._chain, self._gradient, self._source = chain, gradient, source
        self._solver = Solver(chain, source)
        self._least: dict[int, float] = {}

    def least(self, limit: int) -> float:
        """Return the expected FLOPs of the cheapest placement; infinite if there is none."""
        if limit not in self._least:
            path = self._solver.solve(limit)
            self._least[limit] = self._promise(path).flops if path else float("inf")
        return self._least[limit]

    def within(self, limit: int) -> list[Placement]:
        """Return the placements tried for a budget."""
        tried: list[Placement] = []
        seen: set[tuple[Arc, ...]] = set()
        # Expected peaks: `low` turned out to be within the budget, `high` above.
        aim, low, high = float(limit), 0.0, float("inf")
        for _ in range(_ROUNDS):
            path = self._solver.solve(int(aim))
            if path is None:
                # The placement with the lowest peak may need less than expected.
                path = self._solver.lowest()
                if path in seen:
                    break
            path = self._frugal(path)
            known = path in seen
            seen.add(path)
            placement = self.placement(path)
            tried.append(placement)
            needed = placement.measured.peak_bytes
            if needed > limit:
                # Every budget down to the expected peak gives the same path.
                high = min(high, aim, float(promise(path).peak_bytes))
                aim = high * min(limit / needed, _STEP)
                if low:
                    aim = max(aim, (low + high) / 2)
            elif (
                needed < _CAREFUL * limit
                and not known
                # Below what was promised, or after a step that may have been too large.
                and (promise(path).peak_bytes > needed or high < float("inf"))
            ):
                low = max(low, aim)
                aim = min(aim * limit / needed, high * _STEP)
            else:
                break
            if aim <= low:
                break
        return tried

    def _frugal(self, path: tuple[Arc, ...]) -> tuple[Arc, ...]:
        """Return a path that needs less memory for about the same FLOPs, if there is one."""
        most = EQUAL * self._promise(path).flops
        for _ in range(_ROUNDS):
            lower = self._solver.solve(int(_STEP * promise(path).peak_bytes))
            if lower is None or self._promise(lower).flops > most:
                break
            path = lower
        return path

    def front(self) -> list[tuple[str, tuple[Arc, ...]]]:
        """Return paths for budgets from the lowest possible to that without checkpoints."""
        lowest = self._solver.lowest()
        low, high = promise(lowest).peak_bytes, self._gradient.bare.peak_bytes
        paths = [lowest]
        for number in range(1, _POINTS + 1):
            # Growing steps: FLOPs change fastest where memory is scarce.
            path = self._solver.solve(int(low * (max(high, low) / low) ** (number / _POINTS)))
            if path is not None:
                paths.append(path)
        return [("", path) for path in dict.fromkeys(paths)]

    def obvious(self, is_wanted: Callable[[Need], bool]) -> list[tuple[str, tuple[Arc, ...]]]:
        """Return the obvious placements whose expected cost is wanted: their names and paths."""
        every = obvious_paths(self._chain, self._solver.arcs, self._source)
        return [(name, path) for name, path in every if is_wanted(self._promise(path))]

    def runs(self, path: tuple[Arc, ...]) -> tuple[Run, ...]:
        """Return the runs of equations under a checkpoint."""
        return runs_of(self._chain, path)

    def _promise(self, path: tuple[Arc, ...]) -> Need:
        return promise(path, self._gradient.bare.flops)

    def placement(self, path: tuple[Arc, ...], name: str = "") -> Placement:
        """Return the traced placement of a path."""
        runs = self.runs(path)
        measured = self._gradient.traced(runs)
        return Placement(decisions(self._chain, path), self._promise(path), measured, runs, name)
