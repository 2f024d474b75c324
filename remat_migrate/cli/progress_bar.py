"""A progress bar on stderr for long steps, which disappears when they are done.

A thread draws it, so that the clock runs during a step that takes minutes and reporting progress
costs next to nothing. The thread imports rich when it first draws. Where stderr is no terminal, a
line is printed now and then.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol, TextIO

from ..console import is_quiet

_INTERVAL = 0.1
# Between two lines; programs that wait for output often give up after some minutes.
_LINE_INTERVAL = 30.0
_BAR_WIDTH = 20
_ERASE_LINE = "\r\x1b[2K"


class ProgressBar(Protocol):
    """A callback for progress reports; see `engine.progress`."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Record progress."""

    def erased(self) -> AbstractContextManager[None]:
        """Return a context in which lines can be printed in place of the bar."""


@contextmanager
def progress_bar(label: str = "Verifying", after: float = 0.0) -> Iterator[ProgressBar]:
    """Yield a callback whose reports are drawn on stderr, or printed if that is no terminal.

    Args:
        label: the name of the step.
        after: how many seconds after the first report the bar appears.
    """
    is_drawn = is_interactive(sys.stderr)
    # The output of checks, which start later, is cached and compared.
    if not is_drawn and (after or is_quiet()):
        yield _NoBar()
        return
    bar = (Bar if is_drawn else Lines)(sys.stderr, label, after)
    try:
        yield bar
    finally:
        bar.close()


def is_interactive(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that can redraw a line."""
    if os.environ.get("TERM") == "dumb" or os.environ.get("CI") or is_quiet():
        return False
    return stream.isatty()


class _NoBar:
    def __call__(self, what: str, done: int, total: int) -> None:
        pass

    @contextmanager
    def erased(self) -> Iterator[None]:
        yield


class Bar:
    """Draws the latest report until all steps are done or the bar is closed."""

    _erase = _ERASE_LINE

    def __init__(self, stream: TextIO, label: str, after: float) -> None:
        self._stream = stream
        self._label = label
        self._after = after
        self._latest = ("", 0, 0)
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._drawing = threading.Lock()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Record progress; see `engine.progress`."""
        self._latest = (what, done, total)
        if done >= total:
            self.close()
        elif self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()

    @contextmanager
    def erased(self) -> Iterator[None]:
        """Erase the bar for as long as lines are printed."""
        with self._drawing:
            if self._thread is not None:
                self._write(self._erase)
            yield

    def close(self) -> None:
        """Erase the bar. A later report draws it again."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _write(self, text: str) -> None:
        # A closed terminal must not end the run.
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()

    def _draw(self) -> None:
        if self._stop.wait(self._after):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        from ..report.terminal.display import printable

        display = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(_BAR_WIDTH),
            TimeElapsedColumn(),
            TextColumn(
                "{task.fields[what]}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
            ),
            console=Console(file=self._stream, highlight=False),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            expand=True,
        )
        # A closed terminal must not end the run.
        with suppress(OSError), display:
            task = display.add_task(self._label, total=None, what="")
            while True:
                what, done, total = self._latest
                is_counted = total > 1
                with self._drawing:
                    display.update(
                        task,
                        completed=done,
                        total=total if is_counted else None,
                        description=f"{self._label} {done}/{total}" if is_counted else self._label,
                        what=printable(what),
                        refresh=True,
                    )
                if self._stop.wait(_INTERVAL):
                    break


class Lines(Bar):
    """Prints the latest report as a line now and then, until all steps are done."""

    _erase = ""

    def _draw(self) -> None:
        from ..report.terminal.display import printable

        while not self._stop.wait(_LINE_INTERVAL):
            what, done, total = self._latest
            count = f" {done}/{total}" if total > 1 else ""
            with self._drawing:
                self._write(f"{self._label}{count}: {printable(what)}\n")
