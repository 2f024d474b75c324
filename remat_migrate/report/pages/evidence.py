"""What running and measuring showed, as plain data for pages: by checkpoint and by finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...text import SourceFile
from ..content import Report, SiteRow
from ..terminal.display import Screen, printable
from ..terminal.verdicts import facts, worst_first
from ..terminal.weights import effect, operations, size

if TYPE_CHECKING:
    from ...measure.measurement import Measurement
    from ...measure.worker.records import SiteMeasurement
    from ...verify.evidence import Verdict

_TONES = {
    "equal": "good",
    "differs": "bad",
    "fails-after": "bad",
    "saves": "good",
    "wasteful": "bad",
}


@dataclass(frozen=True, slots=True)
class VerdictEntry:
    """A verdict: on which unit, where it stands, what came out, and what that rests on."""

    unit: str
    path: str
    line: int
    outcome: str
    rests_on: str

    @property
    def tone(self) -> str:
        """`good`, `bad` or `open`."""
        return tone_of(self.outcome)


@dataclass(frozen=True, slots=True)
class WeightEntry:
    """What a checkpoint does in a target: bytes of the peak saved, operations added, a verdict."""

    target: str
    function: str
    applications: int
    saved: int
    again: int
    verdict: str
    effect: str
    notes: tuple[str, ...]

    @property
    def tone(self) -> str:
        """`good`, `bad` or `open`."""
        return tone_of(self.verdict.replace(" ", "-"))

    @property
    def saves(self) -> str:
        """The bytes, for a reader."""
        return size(self.saved)

    @property
    def costs(self) -> str:
        """The operations, for a reader."""
        return operations(self.again)


class Evidence:
    """The evidence of a report, found by the place in the source."""

    def __init__(self, report: Report, screen: Screen) -> None:
        self._verdicts: dict[Path, dict[str, VerdictEntry]] = {}
        for verdict in all_verdicts(report):
            units = self._verdicts.setdefault(verdict.unit.path, {})
            units[verdict.unit.qualname] = entry_of(verdict, screen)
        self._of: dict[int, Measurement] = {}
        for found in report.weighed.found if report.weighed else ():
            self._of |= {id(weight): found for weight in found.sites}

    def verdicts_at(self, places: Sequence[tuple[SourceFile, int]]) -> tuple[VerdictEntry, ...]:
        """The verdicts on the units that these places (a file and an offset) are in."""
        found: dict[tuple[str, str], VerdictEntry] = {}
        for source, offset in places:
            if units := self._verdicts.get(source.path):
                name = _unit_name(source, offset)
                if name in units:
                    found[units[name].path, name] = units[name]
        return tuple(found.values())

    def weights(self, row: SiteRow) -> tuple[WeightEntry, ...]:
        """What was measured of a site."""
        return tuple(weight_entry(weight, self._of[id(weight)]) for weight in row.weights)


def weight_entry(weight: SiteMeasurement, found: Measurement) -> WeightEntry:
    """What a checkpoint saves and costs as a reader is shown it."""
    notes = [printable(weight.note)] if weight.note else []
    if weight.compiled is not None:
        with_it, without = map(size, weight.compiled)
        notes.append(f"compiled: {with_it} of temporary memory with it, {without} without")
    return WeightEntry(
        printable(found.target),
        printable(weight.function),
        weight.applications,
        weight.peak_bytes_saved,
        weight.recomputed_flops,
        weight.verdict.replace("-", " "),
        effect(weight, found),
        tuple(notes),
    )


def tone_of(outcome: str) -> str:
    """How a reader takes an outcome: `good`, `bad` or `open`."""
    return _TONES.get(outcome, "open")


def all_verdicts(report: Report) -> tuple[Verdict, ...]:
    """The verdicts on what was kept, and those for which fixes were reverted."""
    if report.proved is None:
        return ()
    return (*report.proved.proof.verdicts, *report.proved.wrong)


def verdict_entries(report: Report, screen: Screen) -> tuple[VerdictEntry, ...]:
    """All verdicts, the worst first."""
    return tuple(entry_of(verdict, screen) for verdict in worst_first(all_verdicts(report)))


def entry_of(verdict: Verdict, screen: Screen) -> VerdictEntry:
    """A verdict as a reader is shown it."""
    text = verdict.detail if verdict.unit.is_text else ""
    return VerdictEntry(
        printable(verdict.unit.qualname) or ("" if verdict.unit.is_text else "the module"),
        screen.path(verdict.unit.path),
        verdict.unit.line,
        str(verdict.outcome),
        text or printable("; ".join(facts(verdict))),
    )


def _unit_name(source: SourceFile, offset: int) -> str:
    from ...errors import SourceError
    from ...verify.units.module_diff import unit_at

    try:
        return unit_at(source.text, offset) or ""
    except (SyntaxError, SourceError):
        return ""  # not Python, as the unit of a text file has no name either
