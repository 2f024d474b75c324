"""What running and measuring showed, for the checkpoints and findings of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...text import SourceFile
from ..content import Report, SiteRow
from ..terminal.display import Screen
from ..terminal.verdicts import facts, worst_first
from ..terminal.weights import effect, operations, size

if TYPE_CHECKING:
    from ...measure.measurement import Measurement
    from ...measure.worker.records import SiteMeasurement
    from ...verify.evidence import Verdict

# The worst first.
TONES = ("bad", "open", "good")
_TONES = {
    "equal": "good",
    "differs": "bad",
    "fails-after": "bad",
    "saves": "good",
    "wasteful": "bad",
}


def tone_of(outcome: str) -> str:
    """Return how a page colors an outcome of verifying or measuring: `good`, `bad` or `open`."""
    return _TONES.get(outcome, "open")


@dataclass(frozen=True, slots=True)
class VerdictEntry:
    """A verdict as a page shows it: unit, place, outcome, and what the outcome is based on."""

    unit: str
    path: str
    line: int
    outcome: str
    basis: str

    @property
    def tone(self) -> str:
        """Return `good`, `bad` or `open`."""
        return tone_of(self.outcome)


@dataclass(frozen=True, slots=True)
class WeightEntry:
    """What a checkpoint does in a measured target, in words."""

    weight: SiteMeasurement
    found: Measurement
    verdict: str
    tone: str
    saves: str
    costs: str
    effect: str
    notes: list[str]


def weight_entry(weight: SiteMeasurement, found: Measurement) -> WeightEntry:
    """Return what a checkpoint does in a measured target as a page shows it."""
    notes = [weight.note] if weight.note else []
    if weight.compiled is not None:
        with_it, without = map(size, weight.compiled)
        notes.append(
            f"compiled for {found.backend}: {with_it} of temporary memory with it,"
            f" {without} without"
        )
    return WeightEntry(
        weight,
        found,
        weight.verdict.replace("-", " "),
        tone_of(weight.verdict),
        size(weight.peak_bytes_saved),
        operations(weight.recomputed_flops),
        effect(weight, found),
        notes,
    )


class Evidence:
    """The verdicts and weights of a report, by place in the source."""

    def __init__(self, report: Report, screen: Screen) -> None:
        self._verdicts: dict[Path, dict[str, VerdictEntry]] = {}
        for verdict in all_verdicts(report):
            units = self._verdicts.setdefault(verdict.unit.path, {})
            units[verdict.unit.qualname] = verdict_entry(verdict, screen)
        self._measured = report.weighed.found if report.weighed else ()

    def verdicts_at(self, places: Sequence[tuple[SourceFile, int]]) -> tuple[VerdictEntry, ...]:
        """Return the verdicts on the units that contain the places, files with an offset each."""
        found: dict[VerdictEntry, None] = {}
        for source, offset in places:
            if units := self._verdicts.get(source.path):
                name = _unit_name(source, offset)
                if name in units:
                    found[units[name]] = None
        return tuple(found)

    def weights(self, row: SiteRow) -> tuple[WeightEntry, ...]:
        """Return what was measured of a site."""
        return tuple(
            weight_entry(weight, found)
            for weight in row.weights
            for found in self._measured
            if any(weight is site for site in found.sites)
        )


def all_verdicts(report: Report) -> tuple[Verdict, ...]:
    """Return the verdicts on the new code, and those for which fixes were reverted."""
    if report.proved is None:
        return ()
    return (*report.proved.proof.verdicts, *report.proved.wrong)


def verdict_entries(report: Report, screen: Screen) -> tuple[VerdictEntry, ...]:
    """Return all verdicts, the worst first."""
    return tuple(verdict_entry(verdict, screen) for verdict in worst_first(all_verdicts(report)))


def verdict_entry(verdict: Verdict, screen: Screen) -> VerdictEntry:
    """Return a verdict as a page shows it."""
    unit, is_text = verdict.unit, verdict.unit.is_text
    return VerdictEntry(
        unit.qualname or ("" if is_text else "the module"),
        screen.path(unit.path),
        unit.line,
        str(verdict.outcome),
        (is_text and verdict.detail) or "; ".join(facts(verdict)),
    )


def _unit_name(source: SourceFile, offset: int) -> str:
    from ...errors import SourceError
    from ...verify.units.module_diff import unit_at

    try:
        return unit_at(source.text, offset) or ""
    except (SyntaxError, SourceError):
        return ""  # not Python; the unit of a text file has no name either
