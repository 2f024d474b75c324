"""What a run writes, taken down while it is written, and written again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from ..report.outputs import write_file

# What `Written.to` is for the two streams; a file is named by its path as it was given.
OUT, ERR = 1, 2


@dataclass(frozen=True, slots=True)
class Written:
    """A text, and where it went: to standard output, standard error, or a file."""

    to: int | str
    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run wrote, in order, and its exit code."""

    written: tuple[Written, ...]
    code: int

    def replay(self) -> int:
        """Write all of it again; the exit code.

        Raises:
            UsageError: a file cannot be written.
        """
        for one in self.written:
            if isinstance(one.to, str):
                write_file(Path(one.to), one.text)
            else:
                stream = sys.stdout if one.to == OUT else sys.stderr
                # In lines, so that it is noticed soon if nobody reads them.
                stream.writelines(one.text.splitlines(keepends=True))
                stream.flush()
        return self.code


class Record:
    """Takes down what goes to the standard streams while it listens, and to files.

    Attributes:
        is_whole: whether nothing was written that could not be taken down.
    """

    def __init__(self) -> None:
        self.is_whole = True
        self._pieces: list[tuple[int | str, list[str]]] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take down what goes to the streams meanwhile; it goes there all the same."""
        out, err = _Overheard(sys.stdout, OUT, self), _Overheard(sys.stderr, ERR, self)
        with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
            yield

    def add(self, to: int | str, text: str) -> None:
        """Take down what was written to a stream or a file."""
        if not self._pieces or self._pieces[-1][0] != to:
            self._pieces.append((to, []))
        self._pieces[-1][1].append(text)

    def outcome(self, code: int) -> Outcome:
        """All of it, with the exit code."""
        return Outcome(tuple(Written(to, "".join(texts)) for to, texts in self._pieces), code)


class _Overheard:
    """A stream whose text is taken down; in everything else it is the stream itself."""

    def __init__(self, stream: TextIO, to: int, record: Record) -> None:
        self._stream = stream
        self._to = to
        self._record = record

    def write(self, text: str) -> int:
        """Write a text."""
        written = self._stream.write(text)
        self._record.add(self._to, text)
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            self._record.is_whole = False
        return getattr(self._stream, name)
