"""Progress of long steps on stderr: a bar on a terminal, which disappears, else a line at times."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from ..console import is_quiet

if TYPE_CHECKING:
    from rich.progress import Progress

# Between two lines; programs that wait for output often give up after some minutes.
_LINE_INTERVAL = 30.0
_BAR_WIDTH = 20


@contextmanager
def progress_bar(label: str = "Verifying", after: float = 0.0) -> Iterator[ProgressBar]:
    """Yield a callback whose reports are drawn on stderr, or printed if that is no terminal.

    Args:
        label: the name of the step.
        after: how many seconds from now the bar appears.
    """
    bar = ProgressBar(label, after)
    try:
        yield bar
    finally:
        bar.close()


def is_interactive(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that can redraw a line."""
    if os.environ.get("TERM") == "dumb" or os.environ.get("CI") or is_quiet():
        return False
    return stream.isatty()


class ProgressBar:
    """A callback for progress reports; see `engine.run`."""

    def __init__(self, label: str, after: float) -> None:
        self._label = label
        self._is_drawn = is_interactive(sys.stderr)
        # The output of checks, which start later, is cached and compared.
        self._is_silent = not self._is_drawn and (bool(after) or is_quiet())
        self._due = monotonic() + (after if self._is_drawn else _LINE_INTERVAL)
        self._display: Progress | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show progress."""
        if self._is_silent or monotonic() < self._due:
            return
        from ..report.terminal.display import printable

        text = f"{self._label} {done}/{total}" if total > 1 else self._label
        # A closed terminal must not end the run.
        with suppress(OSError):
            if not self._is_drawn:
                self._due = monotonic() + _LINE_INTERVAL
                print(f"{text}: {printable(what)}", file=sys.stderr, flush=True)
                return
            if self._display is None:
                self._display = _display()
                self._display.start()
            # A thread of rich draws this, so that the clock runs during a step that takes minutes.
            [task] = self._display.tasks
            task.completed, task.total = done, total if total > 1 else None
            task.description, task.fields["what"] = text, printable(what)

    def close(self) -> None:
        """Erase the bar."""
        if self._display is not None:
            with suppress(OSError):
                self._display.stop()


def _display() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    cut = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    display = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(_BAR_WIDTH),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}", markup=False, table_column=cut),
        console=Console(file=sys.stderr, highlight=False),
        transient=True,
        redirect_stdout=False,
        expand=True,
    )
    display.add_task("", total=None, what="")
    return display
