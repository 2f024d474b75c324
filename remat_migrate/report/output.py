"""Where a report goes: standard output or a file, in one of the formats."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from ..errors import UsageError
from . import concise, full, json, table
from .content import Report
from .display import Screen, wants_colour
from .summary import statistics, summary

_WIDTH = 100
_WIDEST = 140


def write_report(
    report: Report, output_format: str, file: Path | None, *, count_only: bool = False
) -> None:
    """Write a report in the format `full`, `concise` or `json`.

    Args:
        report: what to write; with sites, the text formats show their table instead of findings.
        output_format: the format's name.
        file: where to; None for standard output.
        count_only: in the text formats, show the number of findings by rule instead of each.

    Raises:
        UsageError: the file cannot be written.
    """
    screen = screen_of(sys.stdout) if file is None else Screen(_WIDTH, False, Path.cwd())
    if output_format == "json":
        lines: Iterable[str] = [json.render(report, screen)]
    elif report.sites is not None:
        lines = table.render(report, screen)
    elif count_only:
        lines = [*statistics(report), *summary(report, screen)]
    else:
        lines = {"full": full.render, "concise": concise.render}[output_format](report, screen)
    if file is None:
        sys.stdout.writelines(line + "\n" for line in lines)
        sys.stdout.flush()
        return
    try:
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output-file: {file}: {error.strerror or error}") from error


def screen_of(stream: TextIO) -> Screen:
    """The screen behind a stream; one of fixed width and no colour if it is no terminal."""
    if not stream.isatty():
        return Screen(_WIDTH, False, Path.cwd())
    width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDEST)
    return Screen(width, wants_colour(True), Path.cwd())
