"""Measure the effect of fixes that move checkpoints, and refuse those that do not pay.

Each fix is applied alone in a copy of the project, and each configured target is measured and
compiled there. A fix pays if it lowers the peak, of live bytes or of the compiled program, by a
larger share than it adds operations, or if it removes operations without raising the peak.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..engine.analyse import Analysis
from ..engine.fix_rounds import FixOutcome
from ..engine.progress import Progress
from ..errors import RematMigrateError
from ..rule import Finding, Safety
from ..verify.copies.workspace import Workspace, make_workspace
from ..verify.fixes import FindingKey, finding_key
from ..verify.scratch import scratch_folder
from .measurement import Measurement
from .options import MeasureOptions, options_of_targets
from .session import measure
from .target import Target, parse_target

# Computes the fixes in memory, except those for which the function returns True.
ComputeFixes = Callable[[Callable[[Finding], bool]], FixOutcome[Analysis]]

# Smaller shares of the live peak, the compiled peak and the operations count as no difference.
_PEAK, _COMPILED, _OPERATIONS = 0.005, 0.02, 0.005


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a fix on a target: each figure without and with the fix.

    Attributes:
        target: target as the user named it.
        peak: peak of live bytes.
        operations: operations of the gradient computation.
        compiled: temporary bytes of the compiled program; None if compiling failed.
        is_reached: whether the target runs what the fix changes.
    """

    target: str
    peak: tuple[int, int]
    operations: tuple[int, int]
    compiled: tuple[int, int] | None
    is_reached: bool = True

    @property
    def objection(self) -> str:
        """Why the fix does not pay; empty if it does."""
        saved = _share_saved(self.peak)
        saved_compiled = _share_saved(self.compiled) if self.compiled else 0.0
        added = -_share_saved(self.operations)
        if saved < -_PEAK or saved_compiled < -_COMPILED:
            return "it raises the peak"
        gained = max(
            saved if saved > _PEAK else 0.0,
            saved_compiled if saved_compiled > _COMPILED else 0.0,
        )
        if added > _OPERATIONS and gained <= added:
            return "it adds a larger share of operations than it saves of memory"
        if gained == 0.0 and added >= -_OPERATIONS:
            return "it makes no measurable difference"
        return ""


@dataclass(frozen=True, slots=True)
class FixEffects:
    """The measured fixes.

    Attributes:
        kept: fixes that pay, with their effect.
        refused: fixes that do not pay, with their effect, or why they could not be measured.
    """

    kept: tuple[tuple[Finding, Effect], ...] = ()
    refused: Mapping[FindingKey, Effect | str] = field(default_factory=dict)


def measure_fixes(
    compute_fixes: ComputeFixes,
    root: Path,
    names: Sequence[str],
    options: MeasureOptions,
    folder: Path,
    progress: Progress,
) -> FixEffects:
    """Measure each fix that may change memory or time.

    Args:
        compute_fixes: computes the fixes in memory.
        root: project folder.
        names: targets to measure.
        options: how to measure them.
        folder: folder that the names are relative to.
        progress: reports progress.

    Raises:
        VerificationError: a target cannot be measured without any fix.
    """
    compiling = options_of_targets(replace(options, compile=True), names)
    moves = [a for a in compute_fixes(lambda finding: False).applied if _may_cost(a.finding)]
    if not moves:
        return FixEffects()
    keys = {finding_key(applied.finding) for applied in moves}
    targets = [parse_target(name, folder) for name in names]
    progress("the targets as they are", 0, len(moves) + 1)
    before = [measure(target, how, folder) for target, how in zip(targets, compiling, strict=True)]
    kept: list[tuple[Finding, Effect]] = []
    refused: dict[FindingKey, Effect | str] = {}
    for number, applied in enumerate(moves, 1):
        key = finding_key(applied.finding)
        progress(f"the fix of {applied.finding.code}", number, len(moves) + 1)
        others = keys - {key}
        outcome = compute_fixes(lambda finding, others=others: finding_key(finding) in others)  # type: ignore[misc]
        try:
            effects = _effects(applied.finding, outcome, root, targets, before, compiling, folder)
        except RematMigrateError as error:
            refused[key] = f"with it the target cannot be measured: {error}"
            continue
        best = next((effect for effect in effects if not effect.objection), None)
        raised = next((e for e in effects if e.objection.startswith("it raises")), None)
        if best is not None and raised is None:
            kept.append((applied.finding, best))
        else:
            reached = next((effect for effect in effects if effect.is_reached), None)
            refused[key] = raised or reached or effects[0]
    return FixEffects(tuple(kept), refused)


def _may_cost(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.safety is Safety.UNSAFE


def _effects(
    finding: Finding,
    outcome: FixOutcome[Analysis],
    root: Path,
    targets: Sequence[Target],
    before: Sequence[Measurement],
    options: Sequence[MeasureOptions],
    folder: Path,
) -> list[Effect]:
    with scratch_folder() as scratch:
        texts = {change.path: change.after.data for change in outcome.changes}
        copy = make_workspace(root, scratch / root.name, texts)
        return [
            _effect(finding, target, old, measure(_moved(target, copy), how, copy.at(folder)))
            for target, old, how in zip(targets, before, options, strict=True)
        ]


def _moved(target: Target, copy: Workspace) -> Target:
    """Return the same function in a copy of its project."""
    return replace(
        target,
        path=target.path and copy.at(target.path),
        root=copy.at(target.root),
        folders=tuple(copy.at(folder) for folder in target.folders),
    )


def _effect(finding: Finding, target: Target, old: Measurement, new: Measurement) -> Effect:
    compiled = None
    if old.compiled_bytes is not None and new.compiled_bytes is not None:
        compiled = old.compiled_bytes, new.compiled_bytes
    return Effect(
        target.text,
        (old.cost.peak_bytes, new.cost.peak_bytes),
        (old.cost.flops, new.cost.flops),
        compiled,
        _is_reached(finding, old, new),
    )


def _is_reached(finding: Finding, old: Measurement, new: Measurement) -> bool:
    """Return whether a target runs a checkpoint that a fix changes, adds or removes."""
    if _applied(old) != _applied(new):
        return True
    first, _ = finding.source.position(finding.span.start)
    last, _ = finding.source.position(finding.span.end)
    return any(site.path == finding.path and first <= site.line <= last for site in old.sites)


def _applied(found: Measurement) -> Counter[tuple[str, str, int]]:
    return Counter((site.api, site.function, site.applications) for site in found.sites)


def _share_saved(figures: tuple[int, int]) -> float:
    """Return the share of the first figure by which the second is lower."""
    return (figures[0] - figures[1]) / max(figures[0], 1)
