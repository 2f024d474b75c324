"""How far a long run is: a line on a terminal that is gone when the run is done.

It is drawn by a thread of its own, so that the time goes on where one step takes minutes, and so
that saying how far things are costs next to nothing. rich draws it where it is installed, imported
only then; else it is a line of text. click's bar stays on the screen, and breaks into two lines in
a narrow terminal.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO

from ..engine.progress import Progress, silent

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_EVERY = 0.1
_MOST_COLUMNS = 100
_WIDEST_BAR = 30


@dataclass(frozen=True, slots=True)
class State:
    """How far a run is.

    Attributes:
        label: what the run does.
        what: what it is at.
        done: steps that are done.
        total: all steps; of one it is not known how far it is.
        seconds: how long it has taken.
    """

    label: str
    what: str
    done: int
    total: int
    seconds: float


class Drawing(Protocol):
    """A way to draw a state."""

    def show(self, state: State) -> None:
        """Draw, in place of what was drawn before."""

    def erase(self) -> None:
        """Leave the terminal as it was."""


@contextmanager
def progress_bar(label: str = "Verifying", after: float = 0.0) -> Iterator[Progress]:
    """A line on standard error that comes with the first news, if that is a terminal.

    It goes when all is done, so that what is said then stands alone.

    Args:
        label: what is done.
        after: seconds from the first news before which nothing is drawn.
    """
    if not is_wanted(sys.stderr):
        yield silent
        return
    bar = Bar(label, lambda: drawing(sys.stderr), after)
    try:
        yield bar.tell
    finally:
        bar.close()


def is_wanted(stream: TextIO) -> bool:
    """Whether to draw on a stream: a terminal that can move back, and that somebody looks at."""
    if os.environ.get("TERM") == "dumb" or os.environ.get("CI"):
        return False
    return stream.isatty()


class Bar:
    """Draws what it is told from the first news until all is done, each time anew."""

    def __init__(self, label: str, drawn: Callable[[], Drawing], after: float) -> None:
        self._label = label
        self._drawn = drawn
        self._after = after
        self._news = ("", 0, 0)
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def tell(self, what: str, done: int, total: int) -> None:
        """Note how far things are."""
        self._news = (what, done, total)
        if done >= total:
            self.close()
        elif self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Erase what is drawn; news that come later draw it again."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _draw(self) -> None:
        start = time.monotonic()
        if self._stop.wait(self._after):
            return
        on = self._drawn()
        try:
            while True:
                what, done, total = self._news
                on.show(State(self._label, what, done, total, time.monotonic() - start))
                if self._stop.wait(_EVERY):
                    break
            on.erase()
        except OSError:
            return  # the terminal was closed: nobody is there to be told


def drawing(stream: TextIO) -> Drawing:
    """rich's drawing where it is installed, else a line of text."""
    try:
        return RichBar(stream)
    except ImportError:
        return Line(stream)


class Line:
    """A line of text: `Verifying 3/12  0:07  loss`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, state: State) -> None:
        """Draw the line, cut to the terminal's width."""
        from ..report.terminal.display import printable, truncate

        counts = f" {state.done}/{state.total}" if state.total > 1 else ""
        text = f"{state.label}{counts}  {clock(state.seconds)}  {printable(state.what)}"
        # The cursor goes back, so that an error's lines do not start behind it.
        self._put(f"\r\x1b[2K{truncate(text, _columns(self._stream) - 1)}\r")

    def erase(self) -> None:
        """Leave an empty line."""
        self._put("\r\x1b[2K")

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class RichBar:
    """rich's bar."""

    def __init__(self, stream: TextIO) -> None:
        """Load rich.

        Raises:
            ImportError: it is not installed.
        """
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._width = _columns(stream)
        self._drawn = max(4, min(_WIDEST_BAR, self._width // 4))
        self._bar: RichProgress = Progress(
            *(
                TextColumn("{task.description}", markup=False),
                BarColumn(self._drawn),
                TextColumn("{task.fields[counts]}", markup=False),
                TextColumn("{task.fields[what]}", markup=False),
            ),
            console=Console(file=stream, width=self._width, highlight=False),
            transient=True,
            auto_refresh=False,
        )
        self._task: TaskID | None = None

    def show(self, state: State) -> None:
        """Draw the bar; where it is not known how far things are it moves to and fro."""
        from ..report.terminal.display import printable, truncate

        counts = f"{state.done}/{state.total}" if state.total > 1 else ""
        counts = f"{counts}  {clock(state.seconds)}".strip()
        # Three blanks between four columns; a line that breaks could not be erased.
        room = self._width - len(state.label) - self._drawn - len(counts) - 3
        what = truncate(printable(state.what), room - 1)
        total = state.total if state.total > 1 else None
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(state.label, total=total, counts=counts, what=what)
        self._bar.update(
            self._task, completed=state.done, total=total, counts=counts, what=what, refresh=True
        )

    def erase(self) -> None:
        """Take the bar off the screen, and show the cursor again."""
        self._bar.stop()


def clock(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _columns(stream: TextIO) -> int:
    from ..report.terminal.display import terminal_width  # which --help does not wait for

    return min(terminal_width(stream, _MOST_COLUMNS), _MOST_COLUMNS)
