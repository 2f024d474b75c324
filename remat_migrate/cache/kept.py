"""What the commands `check` and `report` keep of a run, and play back of an earlier one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..discovery.survey import Options, Survey, survey
from ..engine.baseline import BaselineChoice
from ..report.outputs import Output, adds_to_summary

if TYPE_CHECKING:
    from ..engine.analyse import Analysis
    from .recall import Recall
    from .record import Outcome

# A few files, as a commit hook names them, are seldom the same twice.
_FEW = 50


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a run; nothing by default.

    Attributes:
        about: what the run is about, where that is known already.
        recall: where an earlier outcome was looked for, and this one is to be kept.
    """

    about: Survey | None = None
    recall: Recall | None = None

    @property
    def outcome(self) -> Outcome | None:
        """What an earlier run that was the same has written."""
        return self.recall.outcome if self.recall else None

    def listening(self) -> AbstractContextManager[None]:
        """Takes down what goes to the standard streams meanwhile."""
        return self.recall.record.listening() if self.recall else nullcontext()

    def wrote(self, file: Path, text: str) -> None:
        """Takes down what was written to a file."""
        if self.recall:
            self.recall.record.add(str(file), text)

    def keep(self, code: int, analysis: Analysis) -> None:
        """Keep the run, with its exit code, unless the next one may do better."""
        files = analysis.project.files
        if self.recall and not (analysis.faults or files.unreadable):
            self.recall.keep(code, files.beyond)


def kept_run(
    command: str,
    parameters: Mapping[str, object],
    paths: Sequence[Path],
    options: Options,
    known: BaselineChoice,
    outputs: Sequence[Output],
    *,
    measures: bool = False,
) -> Kept:
    """What is kept of a run that writes nothing but its report.

    Args:
        command: the command's name.
        parameters: all that it was given, by name.
        paths: what it runs over.
        options: what it was told about the analysis.
        known: what it was told about findings that are known.
        outputs: what it writes.
        measures: whether it measures what the settings name.

    Raises:
        UsageError: a path does not exist.
        SettingsError: the settings or the options are wrong.
    """
    few = 0 < len(paths) <= _FEW and all(path.is_file() for path in paths)
    if few or Path("-") in paths or known.write or adds_to_summary(outputs):
        return Kept()
    about = survey(paths, options)
    # To measure runs the project's code, in its own environment.
    if measures and "target" in about.settings.measure:
        return Kept(about)
    from .recall import recall

    baseline = known.used(about.settings)
    read = [baseline] if baseline else []
    written = [output.file for output in outputs if output.file]
    return Kept(about, recall(command, parameters, about, read, written))
