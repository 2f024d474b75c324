"""Writes reports to stdout or to a file, in any format."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TextIO, TypeVar

from ..console import is_quiet, wants_color
from ..errors import UsageError
from ..text import SourceFile
from .content import Report
from .outputs import write_file
from .terminal.display import Screen, display_path, printable, terminal_width

T = TypeVar("T")

_DEFAULT_WIDTH = 100
_MAX_WIDTH = 140


def write_report(
    report: Report,
    output_format: str,
    to: TextIO | Path,
    *,
    count_only: bool = False,
) -> str:
    """Write a report in one of the formats.

    Args:
        report: the report; if it has sites, the text formats show their table.
        output_format: the name of the format.
        to: a stream or a file.
        count_only: in the text formats, show the number of findings of each rule.

    Returns:
        What was written.

    Raises:
        UsageError: the file cannot be written.
    """
    from .terminal.statistics import statistics
    from .terminal.summary import summary

    screen = screen_of(to)
    text = output_format in ("full", "concise")
    if text and report.sites is not None:
        from .terminal.table import render

        written = write_lines(render(report, screen), to)
    elif text and count_only:
        end = () if is_quiet() else summary(report, screen)
        written = write_lines([*statistics(report, screen), *end], to)
    else:
        # The module of the format.
        package = _PACKAGES.get(output_format, "machine_readable")
        module = import_module(f".{package}.{output_format}", __package__)
        written = write_lines(module.render(report, screen), to)
    if output_format == "github":
        try:
            module.write_step_summary(report)
        except OSError as error:
            # The annotations are written, so the job need not fail.
            say(f"warning: the job summary cannot be written: {error}")
    return written


def write_result(
    result: T,
    output_format: str,
    to: TextIO | Path,
    render: Callable[[T, Screen], str],
    lines: Callable[[T, Screen], Iterable[str]],
) -> None:
    """Write what a command that runs code found.

    Args:
        result: what it found.
        output_format: `full` or `json`.
        to: a stream or a file.
        render: returns the result as JSON.
        lines: returns the result as text.
    """
    write_lines((render if output_format == "json" else lines)(result, screen_of(to)), to)


def write_diff(before: SourceFile, after: SourceFile, stream: TextIO) -> None:
    """Write a diff that `git apply` accepts, colored on a terminal.

    A patch is bytes, so the lines keep the file's own encoding.
    """
    from ..text.diff import unified_diff

    screen = screen_of(stream)
    lines = unified_diff(before, after, display_path(before.path, screen.folder)).split("\n")[:-1]
    if screen.is_terminal:
        stream.writelines(
            screen.paint(printable(line), *_diff_style(line)) + "\n" for line in lines
        )
        return
    stream.flush()
    for number, line in enumerate(lines):
        encoding = "utf-8" if number < 2 else before.encoding
        stream.buffer.write(f"{line}\n".encode(encoding, "surrogateescape"))
    stream.buffer.flush()


# The packages of the human-readable formats.
_PACKAGES = {"full": "terminal", "concise": "terminal", "html": "pages", "markdown": "pages"}


def _diff_style(line: str) -> tuple[str, ...]:
    for start, style in (("+++", "bold"), ("---", "bold"), ("@@", "cyan")):
        if line.startswith(start):
            return (style,)
    return {"+": ("green",), "-": ("red",)}.get(line[:1], ())


def write_lines(lines: Iterable[str] | str, to: TextIO | Path) -> str:
    """Write lines, which may be painted, or a text; return what was written.

    Raises:
        UsageError: the stream or file cannot be written.
    """
    pieces = [lines] if isinstance(lines, str) else [line + "\n" for line in lines]
    text = "".join(pieces)
    if isinstance(to, Path):
        write_file(to, text)
    else:
        try:
            to.writelines(pieces)
            to.flush()
        except BrokenPipeError:
            raise  # handled by the command line
        except OSError as error:
            raise UsageError(f"the report cannot be written: {error.strerror}") from error
    return text


def screen_of(to: TextIO | Path) -> Screen:
    """Return the screen behind a stream; what is no terminal, or a file, has a fixed width."""
    if isinstance(to, Path) or not to.isatty():
        colour = not isinstance(to, Path) and wants_color(False)
        return Screen(_DEFAULT_WIDTH, colour, Path.cwd())
    width = min(terminal_width(to, _DEFAULT_WIDTH), _MAX_WIDTH)
    return Screen(width, wants_color(True), Path.cwd(), is_terminal=True)


def say(message: str) -> None:
    """Print a message that is not part of the report to stderr; if quiet, only errors."""
    if is_quiet() and not message.startswith("error:"):
        return
    for line in message.splitlines():
        print(printable(line), file=sys.stderr)
