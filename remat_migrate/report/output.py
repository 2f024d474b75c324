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

    screen = screen_for(to)
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
        _write_step_summary(report)
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
    write_lines((render if output_format == "json" else lines)(result, screen_for(to)), to)


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


def _write_step_summary(report: Report) -> None:
    from .machine_readable.github import write_step_summary

    try:
        write_step_summary(report)
    except OSError as error:
        # The annotations are written, so the job need not fail.
        say(f"warning: the job summary cannot be written: {error}")


# The packages of the human-readable formats.
_PACKAGES = {"full": "terminal", "concise": "terminal", "html": "pages", "markdown": "pages"}


def _diff_style(line: str) -> tuple[str, ...]:
    for start, style in (("+++", "bold"), ("---", "bold"), ("@@", "cyan")):
        if line.startswith(start):
            return (style,)
    return {"+": ("green",), "-": ("red",)}.get(line[:1], ())


def screen_for(to: TextIO | Path) -> Screen:
    """Return the screen behind a stream, or what a report in a file is written for."""
    return Screen(_DEFAULT_WIDTH, False, Path.cwd()) if isinstance(to, Path) else screen_of(to)


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


def screen_of(stream: TextIO) -> Screen:
    """Return the screen behind a stream; with a fixed width if it is not a terminal."""
    is_terminal = stream.isatty()
    width = min(terminal_width(stream, _DEFAULT_WIDTH), _MAX_WIDTH) if is_terminal else None
    return Screen(
        width or _DEFAULT_WIDTH,
        wants_color(is_terminal),
        Path.cwd(),
        is_terminal,
    )


def say(message: str) -> None:
    """Print a message that is not part of the report to stderr; if quiet, only errors."""
    if is_quiet() and not message.startswith("error:"):
        return
    for line in message.splitlines():
        print(printable(line), file=sys.stderr)
