"""The output formats, and which report goes where.

Every command line is parsed with this module, so it imports nothing heavy; a format's module is
imported where it is used.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..discovery.named_outputs import write_named
from ..errors import UsageError

# Names the file that GitHub shows as the summary of a job.
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
FORMATS = (
    "full",
    "concise",
    "json",
    "sarif",
    "github",
    "gitlab",
    "junit",
    "rdjson",
    "html",
    "markdown",
)


@dataclass(frozen=True, slots=True)
class Output:
    """A format, and the file that it is written to; None is stdout."""

    format: str
    file: Path | None = None


def destinations(outputs: Sequence[Output], file: Path | None) -> tuple[Output, ...]:
    """Return what is written where; `file` is for the one format that names none.

    Raises:
        UsageError: two formats go to the same place.
    """
    outputs = outputs or (Output("full"),)
    placed = tuple(Output(output.format, output.file or file) for output in outputs)
    for number, output in enumerate(placed):
        for other in placed[:number]:
            if other.file == output.file:
                where = output.file or "stdout"
                raise UsageError(
                    f"--output-format: {other.format} and {output.format} cannot both go to"
                    f" {where}: write --output-format {output.format}=FILE"
                )
    return placed


def write_file(file: Path, text: str) -> None:
    """Write a report to a file.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        write_named(file, text.encode())
    except OSError as error:
        raise UsageError(f"--output-file: {file}: {error.strerror or error}") from error


def adds_to_summary(outputs: Sequence[Output]) -> bool:
    """Return whether a format also appends to the job summary on GitHub."""
    formats = {output.format for output in outputs}
    return "github" in formats and bool(os.environ.get(SUMMARY_VARIABLE))


def shows_placements(outputs: Sequence[Output]) -> bool:
    """Return whether a format shows what other placements of checkpoints need."""
    return not {output.format for output in outputs}.isdisjoint(("html", "markdown"))


def needs_rules(outputs: Sequence[Output]) -> bool:
    """Return whether a format lists the rules that ran."""
    return any(output.format == "sarif" for output in outputs)
