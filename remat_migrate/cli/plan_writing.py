"""Write a plan into the source of its target, and measure what was written."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ..analysis import Project
from ..analysis.loading import load_project
from ..engine.fix_rounds import FileChange
from ..engine.journal import write_changes
from ..engine.run import Run, prepare
from ..engine.undo import undo
from ..errors import VerificationError
from ..measure.options import MeasureOptions
from ..measure.session import measuring
from ..measure.target import Target
from ..plan.applying import Source
from ..plan.plan import Plan
from ..report.output import say, screen_of
from ..report.terminal.plans import exceeded_line, rewritten_lines, written_lines
from ..settings import Options
from ..text import SourceFile
from ..verify.scratch import scratch_folder
from ..verify.worker.program.agreement import DIFFERS, SAME, agreement
from .exit_codes import CLEAN, FINDINGS, VERIFICATION_FAILED

# The rewritten source may need this much more than planned, if that is within the budget.
_CLOSE = 1.1


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a written placement was reverted, and the exit code."""

    text: str
    code: int


class Writing:
    """Writes plans for one target."""

    def __init__(self, target: Target, options: MeasureOptions, base: Path) -> None:
        """Prepare to write into the project of a target.

        Args:
            target: the planned function.
            options: how to measure it.
            base: the folder that names in the options are relative to.
        """
        self._target, self._options, self._base = target, options, base
        self._source: Source | None = None

    @cached_property
    def _run(self) -> Run:
        return prepare([self._target.root], Options())

    def open_source(self, sites: Sequence[tuple[Path, int]]) -> Source:
        """Open the source, given the files and lines of its current checkpoints."""
        self._source = Source(self._opened, self._target, self._options.argnums, sites)
        return self._source

    def _opened(self, texts: Mapping[Path, SourceFile]) -> Project:
        run = self._run
        return load_project(run.settings, run.targets.python, (), run.context, overlay=texts)

    def write(self, plan: Plan) -> int:
        """Write a plan, or the next best if that turns out wrong; return the exit code.

        Raises:
            VerificationError: the rewritten source fails.
        """
        assert self._source is not None
        if not plan.is_met:
            say("No files changed: the budget cannot be met.")
            return FINDINGS
        failures: list[_Failure | VerificationError] = []
        with scratch_folder() as scratch:
            for number, placement in enumerate((plan.best, *plan.others)):
                new = self._source.apply(placement.stages)
                if new.obstacles:
                    continue
                if not new.changes:
                    say("No files changed: the source already follows the plan.")
                    return CLEAN
                if not failures:
                    with measuring(self._target, self._options, self._base) as session:
                        session.ask("program", folder=str(scratch / "old"))
                folder = scratch / str(number)
                failure = self._write(replace(plan, best=placement), new.changes, folder)
                if failure is None:
                    return CLEAN
                failures.append(failure)
        if isinstance(failures[0], VerificationError):
            raise failures[0]
        say(f"No files changed: {failures[0].text}")
        return failures[0].code

    def _write(
        self, plan: Plan, changes: Sequence[FileChange], folder: Path
    ) -> _Failure | VerificationError | None:
        """Write and measure; revert it and return why, if it is not what was planned."""
        root = self._run.settings.root
        write_changes(changes, root)
        try:
            with measuring(self._target, self._options, self._base) as session:
                session.ask("program", folder=str(folder))
        except VerificationError as error:
            undo(root)
            return VerificationError(f"no files changed: the rewritten source fails: {error}")
        program, cost = agreement(str(folder.parent / "old"), str(folder)), session.measurement.cost
        if program.state == DIFFERS:
            undo(root)
            text = f"the rewritten source is not the same program: {program.detail}"
            return _Failure(text, VERIFICATION_FAILED)
        if cost.peak_bytes > min(plan.most_traced, _CLOSE * plan.best.measured.peak_bytes):
            undo(root)
            return _Failure(exceeded_line(plan, cost), FINDINGS)
        for line in written_lines(changes, screen_of(sys.stderr)):
            say(line)
        for line in rewritten_lines(plan, cost):
            say(line)
        if program.state == SAME:
            say("Both are the same program, but for checkpoints: values and gradients are equal.")
        return None
