"""The cache as the commands `check` and `report` use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..discovery.discover import Survey, survey
from ..engine.baseline import BaselineChoice
from ..report.outputs import Output, adds_to_summary
from ..settings import Options

if TYPE_CHECKING:
    from ..engine.analyse import Analysis
    from .record import Outcome
    from .slot import CacheSlot


@dataclass(frozen=True, slots=True)
class RunCache:
    """The cache of one run, which by default stores nothing.

    Attributes:
        about: the files and settings of the run, if known already.
        slot: where the outcome is looked up and stored; None without a cache.
    """

    about: Survey | None = None
    slot: CacheSlot | None = None

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of an identical run."""
        return self.slot.outcome if self.slot else None

    def recording(self) -> AbstractContextManager[None]:
        """Record what is written to stdout and stderr meanwhile."""
        return self.slot.record.listening() if self.slot else nullcontext()

    def record_file(self, file: Path, text: str) -> None:
        """Record a text that was written to a file."""
        if self.slot:
            self.slot.record.add(str(file), text)

    def store(self, code: int, analysis: Analysis) -> None:
        """Store the outcome, unless a file could not be read or a rule failed."""
        files = analysis.project.files
        if self.slot and not (analysis.faults or files.unreadable):
            self.slot.store(code, files)


def run_cache(
    command: str,
    parameters: Mapping[str, object],
    paths: Sequence[Path],
    options: Options,
    known: BaselineChoice,
    outputs: Sequence[Output],
) -> RunCache:
    """Return the cache of a run that writes nothing but its report.

    Args:
        command: the name of the command.
        parameters: its parameters.
        paths: the paths to check.
        options: the options for the analysis.
        known: the baseline options.
        outputs: the reports to write.

    Raises:
        UsageError: a path does not exist.
        SettingsError: the settings or the options are invalid.
    """
    if Path("-") in paths or known.write or adds_to_summary(outputs):
        return RunCache()
    about = survey(paths, options)
    from .slot import find_slot

    read = filter(None, [known.used(about.settings)])
    written = [output.file for output in outputs if output.file]
    return RunCache(about, find_slot(command, parameters, about, read, written))
