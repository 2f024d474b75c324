"""The formats that a report can be written in, and what goes where.

Each format is a module of its name in a package of `report/`, imported only where it is asked for;
nothing is imported here, because every command line is read by this.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError

# Names the file that the summary of a job on GitHub is made of.
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
# In these nothing is said about the rules that ran.
_WITHOUT_RULES = frozenset(FORMATS) - {"sarif"}


@dataclass(frozen=True, slots=True)
class Output:
    """A format, and the file that it is written to; None: standard output."""

    format: str
    file: Path | None = None


def destinations(outputs: Sequence[Output], file: Path | None) -> tuple[Output, ...]:
    """What is written where; `file` is for the one format that names none.

    Raises:
        UsageError: two go to the same place.
    """
    outputs = outputs or (Output("full"),)
    placed = tuple(Output(output.format, output.file or file) for output in outputs)
    for number, output in enumerate(placed):
        for other in placed[:number]:
            if other.file == output.file:
                where = output.file or "standard output"
                raise UsageError(
                    f"--output-format: {other.format} and {output.format} cannot both go to"
                    f" {where}: write --output-format {output.format}=FILE"
                )
    return placed


def write_file(file: Path, text: str) -> None:
    """Write a report's file.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        # Line feeds everywhere: what reads it may run on another system.
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"--output-file: {file}: {error.strerror or error}") from error


def adds_to_summary(outputs: Sequence[Output]) -> bool:
    """Whether one of the formats adds to the summary of a job on GitHub, besides what it writes."""
    return bool(os.environ.get(SUMMARY_VARIABLE)) and any(
        output.format == "github" for output in outputs
    )


def shows_placements(outputs: Sequence[Output]) -> bool:
    """Whether one of the formats shows what other placements of checkpoints would need."""
    return any(output.format in ("html", "markdown") for output in outputs)


def needs_rules(outputs: Sequence[Output]) -> bool:
    """Whether one of the formats says which rules ran, besides what they found."""
    return any(output.format not in _WITHOUT_RULES for output in outputs)
