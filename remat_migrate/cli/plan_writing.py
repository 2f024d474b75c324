"""Write a plan into the source of its target, and measure what was written."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..analysis import Project
from ..analysis.loading import load_project
from ..engine.fix_rounds import FileChange
from ..engine.run import prepare
from ..engine.undo import undo
from ..engine.writing import write_changes
from ..errors import VerificationError
from ..measure.options import MeasureOptions
from ..measure.session import measuring
from ..measure.target import Target
from ..measure.worker.schedules import sizes_of
from ..plan.applying import AppliedPlan, Source
from ..plan.chain import Place
from ..plan.plan import Obstacle, Placement, Plan, is_as_planned
from ..report.output import say, screen_of
from ..report.terminal.plans import exceeded_line, rewritten_lines, unwritable_lines, written_lines
from ..settings import Options
from ..text import SourceFile
from ..verify.scratch import scratch_folder
from ..verify.worker.program.agreement import DIFFERS, SAME, agreement
from .exit_codes import CLEAN, ERROR, FINDINGS, VERIFICATION_FAILED

# The rewritten source may need this much more than planned, if that is within the budget.
_CLOSE = 1.1


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a written placement was reverted, and the exit code."""

    text: str
    code: int


class Writing:
    """Writes plans for one target into its project."""

    def __init__(self, target: Target, options: MeasureOptions, base: Path) -> None:
        self._how = target, options, base
        self._run = prepare([target.root], Options())
        self._source: Source | None = None
        self._installed: list[Path] = []

    def open_source(
        self,
        sites: Sequence[tuple[Path, int]],
        stages: Collection[Path],
        values: Mapping[str, Place],
    ) -> Source:
        """Open the source. Files of installed packages are read, but not written.

        Args:
            sites: the files and lines of its current checkpoints.
            stages: the files of its stages.
            values: the assignments of values that policies save by name.
        """
        own = set(self._run.targets.python)
        paths = dict.fromkeys([*sorted(stages), *(path for path, _ in sites)])
        self._installed = [path for path in paths if path not in own and path.is_file()]
        self._source = Source(self._opened, sites, values)
        return self._source

    def _opened(self, texts: Mapping[Path, SourceFile]) -> Project:
        run = self._run
        targets = [*run.targets.python, *self._installed]
        return load_project(run.settings, targets, (), run.context, overlay=texts)

    def write(self, plan: Plan) -> int:
        """Write a plan, or the next best if that turns out wrong; return the exit code."""
        assert self._source is not None
        if plan.is_in_place:
            say("No files changed: the source already follows the plan.")
            return CLEAN
        obstacles = self._obstacles(self._source.apply(plan.best.stages))
        if obstacles:
            for line in unwritable_lines(obstacles, screen_of(sys.stderr)):
                say(line)
            return FINDINGS
        failures: list[_Failure] = []
        with scratch_folder() as scratch:
            for number, placement in enumerate((plan.best, *plan.others)):
                new = self._source.apply(placement.stages)
                if self._obstacles(new):
                    continue
                if not new.changes:
                    say("No files changed: the source already follows the plan.")
                    return CLEAN
                folder = scratch / str(number)
                with measuring(*self._how) as session:
                    session.ask("program", folder=str(folder / "old"))
                failure = self._write(plan, placement, new.changes, folder)
                if failure is None:
                    for one in failures[:1]:
                        say(f"The plan was not written: {one.text}")
                    return CLEAN
                failures.append(failure)
        first = failures[0]
        say(f"{'error: no' if first.code == ERROR else 'No'} files changed: {first.text}")
        return first.code

    def _obstacles(self, new: AppliedPlan) -> Sequence[Obstacle]:
        """Return why a placement cannot be written."""
        why = "the file belongs to an installed package"
        installed = [one.path for one in new.changes if one.path in self._installed]
        return [*new.obstacles, *(Obstacle(path, 1, why) for path in installed)]

    def _write(
        self,
        plan: Plan,
        placement: Placement,
        changes: Sequence[FileChange],
        folder: Path,
    ) -> _Failure | None:
        """Write and measure; revert it and return why, if it is not what was planned.

        A plan that was compiled is compiled again as it was written.
        """
        planned, promised = replace(plan, best=placement), plan.best
        compiled: int | None = None
        root = self._run.settings.root
        written = write_changes(changes, root)
        failure: _Failure | None = None
        try:
            with measuring(*self._how) as session:
                session.ask("program", folder=str(folder / "new"))
                if placement.compiled is not None:
                    compiled = int(session.ask("compile_target")["peak"])
            cost = session.measurement.cost
            peak = cost.peak_bytes if compiled is None else compiled
            most = _CLOSE * placement.measured.peak_bytes
            program = agreement(str(folder / "old"), str(folder / "new"))
            if program.state == DIFFERS:
                text = f"the rewritten source is not the same program: {program.detail}"
                failure = _Failure(text, VERIFICATION_FAILED)
            elif peak > plan.budget_bytes or cost.peak_bytes > most:
                failure = _Failure(exceeded_line(planned, cost, compiled), FINDINGS)
        except VerificationError as error:
            failure = _Failure(f"the rewritten source fails: {error}", ERROR)
        except BaseException:  # interrupted
            undo(root, written=written)
            say("No files changed.")
            raise
        if failure is not None:
            undo(root, written=written)
            return failure
        as_planned = placement is promised and is_as_planned(placement, cost, compiled)
        how = "as planned" if as_planned else "otherwise than planned"
        for line in written_lines(changes, how, screen_of(sys.stderr)):
            say(line)
        for line in rewritten_lines(promised, planned, cost, compiled):
            say(line)
        if program.state == SAME:
            in_segments = any(sizes_of(stage.decision) for stage in placement.stages)
            apart = "checkpoints and segments of loops" if in_segments else "checkpoints"
            say(f"Both are the same program, but for {apart}.")
            say("Values and gradients differ by rounding at most.")
        return None
