"""Fixes that move checkpoints, weighed: one that does not pay for itself is not made.

Each is made alone, in a copy of the project, and every target that the settings name is measured
there and compiled. What speaks for a fix is a lower peak, of live bytes or of the compiled program,
by a larger share than it adds operations; or fewer operations and no higher peak.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..engine.analyse import Analysis
from ..engine.apply import Outcome
from ..engine.progress import Progress
from ..errors import RematMigrateError
from ..rule import Finding, Safety
from ..verify.copies.workspace import Workspace, make_workspace, remove_workspace
from ..verify.fixes import FindingKey, finding_key
from .measurement import Measurement
from .options import MeasureOptions
from .target import Target, parse_target
from .weigh import weigh

# Makes the fixes in memory, without those withheld.
Mend = Callable[[Callable[[Finding], bool]], Outcome[Analysis]]

# Less than this share of a peak, live or compiled, is no difference; nor of the operations.
_PEAK, _COMPILED, _OPERATIONS = 0.005, 0.02, 0.005


@dataclass(frozen=True, slots=True)
class Effect:
    """What a fix does to a target: each figure without it and with it.

    Attributes:
        target: as the user named it.
        peak: bytes.
        operations: of the gradient computation.
        compiled: bytes of temporary memory; None where compiling failed.
    """

    target: str
    peak: tuple[int, int]
    operations: tuple[int, int]
    compiled: tuple[int, int] | None

    @property
    def objection(self) -> str:
        """What speaks against the fix; nothing if it pays."""
        saved = _share(self.peak)
        fused = _share(self.compiled) if self.compiled else 0.0
        added = -_share(self.operations)
        if saved < -_PEAK or fused < -_COMPILED:
            return "it raises the peak"
        gained = max(saved if saved > _PEAK else 0.0, fused if fused > _COMPILED else 0.0)
        if added > _OPERATIONS and gained <= added:
            return "it adds a larger share of operations than it saves of memory"
        if gained == 0.0 and added >= -_OPERATIONS:
            return "it changes nothing that can be measured"
        return ""


@dataclass(frozen=True, slots=True)
class Weighed:
    """The fixes that were weighed.

    Attributes:
        kept: those that pay, with what they do.
        refused: those that do not, with what they do, or why that is not known.
    """

    kept: tuple[tuple[Finding, Effect], ...] = ()
    refused: Mapping[FindingKey, Effect | str] = field(default_factory=dict)


def weigh_fixes(
    mend: Mend,
    root: Path,
    names: Sequence[str],
    options: MeasureOptions,
    folder: Path,
    progress: Progress,
) -> Weighed:
    """Weigh each fix that may change memory or time.

    Args:
        mend: makes the fixes in memory.
        root: the project's folder.
        names: the targets to measure.
        options: how to measure them.
        folder: the one that the names are seen from.
        progress: is told what is being done.

    Raises:
        VerificationError: a target cannot be measured as it is.
    """
    compiling = replace(options, compile=True)
    moves = [a for a in mend(lambda finding: False).applied if _may_cost(a.finding)]
    if not moves:
        return Weighed()
    keys = {finding_key(applied.finding) for applied in moves}
    targets = [parse_target(name, folder) for name in names]
    progress("what there is", 0, len(moves) + 1)
    before = [weigh(target, compiling, folder) for target in targets]
    kept: list[tuple[Finding, Effect]] = []
    refused: dict[FindingKey, Effect | str] = {}
    for number, applied in enumerate(moves, 1):
        key = finding_key(applied.finding)
        progress(f"the fix of {applied.finding.code}", number, len(moves) + 1)
        others = keys - {key}
        outcome = mend(lambda finding, others=others: finding_key(finding) in others)  # type: ignore[misc]
        try:
            effects = _effects(outcome, root, targets, before, compiling, folder)
        except RematMigrateError as error:
            refused[key] = f"with it the target cannot be measured: {error}"
            continue
        best = next((effect for effect in effects if not effect.objection), None)
        raised = next((e for e in effects if e.objection.startswith("it raises")), None)
        if best is not None and raised is None:
            kept.append((applied.finding, best))
        else:
            refused[key] = raised or effects[0]
    return Weighed(tuple(kept), refused)


def _may_cost(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.safety is Safety.UNSAFE


def _effects(
    outcome: Outcome[Analysis],
    root: Path,
    targets: Sequence[Target],
    before: Sequence[Measurement],
    options: MeasureOptions,
    folder: Path,
) -> list[Effect]:
    scratch = Path(os.path.realpath(tempfile.mkdtemp(prefix="remat-migrate-")))
    try:
        texts = {change.path: change.after.data for change in outcome.changes}
        copy = make_workspace(root, scratch / root.name, texts)
        effects = []
        for target, old in zip(targets, before, strict=True):
            new = weigh(_moved(target, copy), options, copy.at(folder))
            effects.append(_effect(target, old, new))
        return effects
    finally:
        remove_workspace(scratch)


def _moved(target: Target, copy: Workspace) -> Target:
    """The same function in a copy of its project."""
    return replace(
        target,
        path=target.path and copy.at(target.path),
        root=copy.at(target.root),
        folders=tuple(copy.at(folder) for folder in target.folders),
    )


def _effect(target: Target, old: Measurement, new: Measurement) -> Effect:
    compiled = None
    if old.compiled_bytes is not None and new.compiled_bytes is not None:
        compiled = old.compiled_bytes, new.compiled_bytes
    return Effect(
        target.text,
        (old.cost.peak_bytes, new.cost.peak_bytes),
        (old.cost.flops, new.cost.flops),
        compiled,
    )


def _share(figures: tuple[int, int]) -> float:
    """By which share of the first figure the second one is lower."""
    return (figures[0] - figures[1]) / max(figures[0], 1)
