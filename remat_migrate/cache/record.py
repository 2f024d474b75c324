"""Recording what a run writes, and replaying it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from ..report.outputs import write_file

# `Written.to` for the two streams; for a file it is the path as given.
OUT, ERR = 1, 2


@dataclass(frozen=True, slots=True)
class Written:
    """A text and where it was written: stdout, stderr, or a file."""

    to: int | str
    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The output of a run, in order, and its exit code."""

    written: tuple[Written, ...]
    code: int

    def replay(self) -> int:
        """Write the output again and return the exit code.

        Raises:
            UsageError: a file cannot be written.
        """
        for one in self.written:
            if isinstance(one.to, str):
                write_file(Path(one.to), one.text)
            else:
                stream = sys.stdout if one.to == OUT else sys.stderr
                # By line, to notice a broken pipe early.
                stream.writelines(one.text.splitlines(keepends=True))
                stream.flush()
        return self.code


class Record:
    """Records what is written to stdout, stderr and files.

    Attributes:
        is_complete: whether everything that was written could be recorded.
    """

    def __init__(self) -> None:
        self.is_complete = True
        self._pieces: list[tuple[int | str, list[str]]] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record what is written to the streams meanwhile."""
        out, err = _RecordedStream(sys.stdout, OUT, self), _RecordedStream(sys.stderr, ERR, self)
        with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
            yield

    def add(self, to: int | str, text: str) -> None:
        """Record a text that was written to a stream or a file."""
        if not self._pieces or self._pieces[-1][0] != to:
            self._pieces.append((to, []))
        self._pieces[-1][1].append(text)

    def outcome(self, code: int) -> Outcome:
        """Return everything recorded, with the exit code."""
        return Outcome(tuple(Written(to, "".join(texts)) for to, texts in self._pieces), code)


class _RecordedStream:
    """A stream whose output is recorded."""

    def __init__(self, stream: TextIO, to: int, record: Record) -> None:
        self._stream = stream
        self._to = to
        self._record = record

    def write(self, text: str) -> int:
        """Write and record a text."""
        written = self._stream.write(text)
        self._record.add(self._to, text)
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        """Write and record texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            self._record.is_complete = False
        return getattr(self._stream, name)
