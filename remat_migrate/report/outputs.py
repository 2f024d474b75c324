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
# What each is, as the documentation lists it.
FORMATS = {
    "full": "Findings with their code, for a terminal.",
    "concise": "One line for each finding.",
    "json": "One object: findings with their edits, sites, verdicts, and a summary.",
    "sarif": "SARIF 2.1.0 for code scanning: rules with their help, fixes as edits, suppressed and"
    " known findings, and fingerprints that do not change when lines move.",
    "github": "Annotations in GitHub Actions, at most ten per level. The job summary is the"
    " Markdown report.",
    "gitlab": "A code quality report for GitLab merge requests.",
    "junit": "One test suite per file, and one test case per rule that found something in it.",
    "rdjson": "For reviewdog, which posts a fix as a suggestion if the fix changes one place.",
    "html": "A page for reviewers, as a single file. It needs"
    " `pip install 'remat-migrate[report]'`.",
    "markdown": "A comment for a pull request: the worst findings first, at most 65,536"
    " characters.",
}


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


def write_file(file: Path, text: str | bytes) -> None:
    """Write a report to a file.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        write_named(file, text if isinstance(text, bytes) else text.encode())
    except OSError as error:
        raise UsageError(f"--output-file: {file}: {error.strerror or error}") from error


def adds_to_summary(outputs: Sequence[Output]) -> bool:
    """Return whether a format also appends to the job summary on GitHub."""
    formats = {output.format for output in outputs}
    return "github" in formats and bool(os.environ.get(SUMMARY_VARIABLE))


def shows_placements(outputs: Sequence[Output]) -> bool:
    """Return whether a format shows what other placements of checkpoints need."""
    return any(output.format == "html" for output in outputs)


def needs_rules(outputs: Sequence[Output]) -> bool:
    """Return whether a format lists the rules that ran."""
    return any(output.format == "sarif" for output in outputs)
