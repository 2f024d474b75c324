"""Judge whether a unit's edited code was executed: equal results of other code prove nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_not
from pathlib import Path
from typing import Any

from .evidence import BothExecuted, Evidence, Executed, Outcome, Spot, Unit, Verdict


class Spots:
    """The edited pieces of one side, by the numbers that its workers know them by."""

    def __init__(self, pieces: Iterable[tuple[Path, Spot]]) -> None:
        self.pieces = tuple(dict.fromkeys(pieces))

    def executed(self, report: Mapping[str, Any]) -> Executed:
        """Return what a worker's report says was executed."""
        return Executed(
            frozenset(self.pieces[number] for number in report["ran"]),
            frozenset((*self.pieces[number], name) for number, name in report["created"]),
            frozenset((*self.pieces[number], name) for number, name in report["called"]),
            frozenset((*self.pieces[number], index) for number, index in report["decided"]),
        )


def all_of(runs: Iterable[BothExecuted]) -> BothExecuted:
    """Return what several runs executed."""
    old, new = Executed(), Executed()
    for before, after in runs:
        old, new = old | before, new | after
    return old, new


def together(verdicts: Iterable[Verdict]) -> BothExecuted:
    """Return what the runs behind some verdicts executed."""
    return all_of(v.executed for v in verdicts if v.executed and not v.outcome.is_wrong)


def weakest_evidence(found: Iterable[Evidence | None]) -> Evidence | None:
    """Return the weakest evidence among several runs: numbers if they differ."""
    kinds = set(found)
    if kinds and kinds <= {Evidence.PROGRAM, Evidence.BOTH}:
        return Evidence.PROGRAM if Evidence.PROGRAM in kinds else Evidence.BOTH
    return Evidence.NUMBERS if kinds - {None} else None


def graded(evidence: Evidence | None) -> Outcome:
    """Return the outcome where nothing differs: numbers alone do not tell what was not tried."""
    return Outcome.CLOSE if evidence is Evidence.NUMBERS else Outcome.EQUAL


def reaches(unit: Unit, executed: BothExecuted | None) -> bool:
    """Return whether a run reached the edited code inside a unit on both sides."""
    sides = executed or (Executed(), Executed())
    for pieces, side in zip((unit.before, unit.after), sides, strict=True):
        inside = {(unit.path, spot) for spot in pieces if not spot.at_import}
        if inside and inside.isdisjoint(side.ran):
            return False
    return True


def missing(unit: Unit, executed: BothExecuted) -> str:
    """Return which edited piece of a unit was not executed; empty if all were."""
    old, new = executed
    for pieces, side, whose in ((unit.after, new, ""), (unit.before, old, " of the old code")):
        for spot in pieces:
            if (unit.path, spot) not in side.ran:
                return f"line {spot.first}{whose} did not run"
            for index, outcome in enumerate(spot.outcomes):
                if (unit.path, spot, index) not in side.decided:
                    return f"line {spot.first}{whose}: {spot.text} was never {outcome}"
        for path, spot, name in sorted(side.created - side.called):
            if path == unit.path and spot in pieces:
                return f"the checkpoint of {name} at line {spot.first}{whose} was never called"
    return ""


def is_unproved(verdict: Verdict) -> bool:
    """Return whether a verdict says nothing about the edit, for which callers may say more."""
    return verdict.takes_others or verdict.outcome in (
        Outcome.NOT_EXERCISED,
        Outcome.FAILS_BEFORE,
    )


def alone(verdict: Verdict, *earlier: Verdict) -> Verdict:
    """Return the verdict of a unit from what its own runs executed, including earlier ones.

    It is equal only if all of its edited code ran and nothing differed.
    """
    if verdict.executed is None:
        return verdict
    verdict = replace(verdict, executed=together([*earlier, verdict]))
    assert verdict.executed is not None
    if verdict.outcome is Outcome.EQUAL and (lacks := missing(verdict.unit, verdict.executed)):
        return replace(verdict, outcome=Outcome.NOT_EXERCISED, detail=lacks)
    return verdict


def settled(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Return final verdicts: what a unit does not reach may have run as a part of others."""
    everything = together(verdicts)
    found = tuple(
        _through(verdict, verdicts) or verdict
        if is_unproved(verdict) and not missing(verdict.unit, everything)
        else verdict
        for verdict in verdicts
    )
    # What reads a value may itself have run as a part of others.
    changed = any(map(is_not, found, verdicts))
    return settled(found) if changed else found


def _through(verdict: Verdict, others: Sequence[Verdict]) -> Verdict | None:
    """Return the verdict on a unit that ran as a part of others."""
    found = [v for v in others if v.unit.key != verdict.unit.key and _runs(v, verdict.unit)]
    if not found:
        return None
    evidence = weakest_evidence(v.evidence for v in found)
    return replace(
        found[0],
        unit=verdict.unit,
        outcome=graded(evidence),
        max_abs=max(v.max_abs or 0.0 for v in found),
        max_rel=max(v.max_rel or 0.0 for v in found),
        detail="through " + ", ".join(v.unit.name for v in found[:2]),
        evidence=evidence,
        traceback="",
        through=tuple(v.unit.name for v in found),
        executed=verdict.executed,
        takes_others=False,
    )


def _runs(verdict: Verdict, unit: Unit) -> bool:
    """Return whether the run behind a verdict executed edited code of another unit."""
    if not verdict.executed or verdict.returns_nothing:
        return False
    own = {(unit.path, spot) for spot in (*unit.before, *unit.after)}
    inside = {(path, spot) for path, spot in own if not spot.at_import}
    for side in verdict.executed:
        if inside & side.ran or any((path, spot) in own for path, spot, _ in side.called):
            return True
    # It reads a value that was edited; where it does so, it ran.
    reader = {(verdict.unit.path, s) for s in (*verdict.unit.before, *verdict.unit.after)}
    reads = bool(own & reader) or unit.key in verdict.unit.uses
    same = verdict.outcome in (Outcome.EQUAL, Outcome.CLOSE)
    return reads and not inside and same
