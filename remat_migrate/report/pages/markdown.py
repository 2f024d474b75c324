"""The `markdown` format: a comment on a pull request, the worst first, within GitHub's limit.

Written without jinja2, which is an optional dependency: the limit decides piece by piece what fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..content import Report
from ..terminal.display import Screen, pluralize
from ..terminal.statistics import rule_counts
from ..terminal.summary import shares
from ..terminal.verdicts import basis, unit_of, verdict_counts, words, worst_verdicts
from ..terminal.weights import operations, size
from .entries import Entries, FindingEntry, RelatedEntry
from .markdown_text import (
    escape,
    escape_element,
    fenced,
    format_code,
    format_prose,
    format_prose_element,
)

if TYPE_CHECKING:
    from ...measure.measurement import Measurement
    from ...verify.evidence import Verdict

# GitHub's limit of characters in a comment, apparently counted as JavaScript does.
MAX_LENGTH = 65_536
# Reserved for a line that counts what is omitted.
_RESERVE = 300
_MAX_RELATED = 12
_MAX_VERDICTS = 100
_SIGNS = {"high": "🔴", "medium": "🟠", "low": "🔵", "none": "⚪"}
_SEE_REPORT = "see the full report: `remat-migrate report --output-format html`"


def render(report: Report, screen: Screen) -> str:
    """Return the comment, with a count of what does not fit."""
    plain = Screen(screen.width, False, screen.folder)
    comment = _Comment(MAX_LENGTH)
    comment.add("\n".join(_head(report)) + "\n")
    targets = report.weighed.found if report.weighed else ()
    sections = [_measured(found, plain) for found in targets]
    sections += _verified(report, plain)
    omitted = [section for section in sections if not comment.add(section)]
    if omitted:
        comment.add(f"\n{pluralize(len(omitted), 'more section')}; {_SEE_REPORT}.\n")
    _add_findings([*Entries(report, plain).findings()], comment)
    return str(comment)


class _Comment:
    """A text with a limit."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._parts: list[str] = []

    def __str__(self) -> str:
        return "".join(self._parts)

    def add(self, text: str, reserve: int = 0) -> bool:
        """Add a text if it fits and leaves room for `reserve`; return whether it was added."""
        length = len(text.encode("utf-16-le", "surrogatepass")) // 2
        if length + reserve > self._room:
            return False
        self._parts.append(text)
        self._room -= length
        return True


def _head(report: Report) -> Iterator[str]:
    what = "Findings" if report.sites is None else "Checkpoints"
    yield f"## {what} in {escape(report.root.name or '/')}"
    yield ""
    if report.sites is not None:
        risks = ", ".join(f"{_SIGNS[risk]} {count} {risk}" for risk, count in report.risks)
        yield f"- **{pluralize(len(report.sites), 'checkpoint')}**: {risks}"
    found = f"**{pluralize(len(report.findings), 'finding')}**"
    if report.advice:
        found += f" ({len(report.advice)} of them advice)"
    details = ", ".join(shares(report.findings, unsafe=report.unsafe))
    by_code = ", ".join(
        f"{one.findings} {one.code} {one.name}" for one in rule_counts(report) if one.findings
    )
    yield f"- {found}: {details} ({by_code})" if details else f"- {found}"
    if report.fixed is not None:
        yield f"- **{sum(report.fixed.values())} fixed**"
    if report.suppressed:
        yield f"- {len(report.suppressed)} suppressed"
    if report.proved is not None:
        counts = verdict_counts(report.verdicts).items()
        verdicts = ", ".join(f"{count} {words(outcome)}" for outcome, count in counts if count)
        reverted = f", {report.reverted} reverted" if report.reverted else ""
        yield f"- verified: {verdicts or 'nothing differs'}{reverted}"
    if report.weighed is not None:
        for one in report.weighed.found:
            bare = f", {size(one.bare.peak_bytes)} without checkpoints" if one.sites else ""
            peak, flops = size(one.cost.peak_bytes), operations(one.cost.flops)
            yield f"- measured {format_code(one.target)}: traced peak {peak}{bare}, {flops}"
        for target, reason in report.weighed.failed.items():
            yield f"- not measured: {format_code(target)}: {escape(reason)}"


def _add_findings(findings: Sequence[FindingEntry], comment: _Comment) -> None:
    """Add each finding with its code and its fix, as long as there is room."""
    if not findings:
        return
    has_room = comment.add("\n### Findings and fixes\n", _RESERVE)
    omitted = 0
    for finding in findings:
        # A finding that does not fit may do so without its diff.
        if not has_room or not (
            comment.add(_details(finding), _RESERVE)
            or comment.add(_details(finding, short=True), _RESERVE)
        ):
            omitted += 1
    if omitted:
        comment.add(f"\nand {omitted} more not shown, {_SEE_REPORT}.\n")


def _details(finding: FindingEntry, *, short: bool = False) -> str:
    place = escape_element(str(finding.place))
    message = f"{finding.finding.code} {format_prose_element(finding.message)}"
    parts = [f"{_SIGNS[finding.risk]} <code>{place}</code> {message}</summary>\n"]
    if finding.code:
        parts.append(fenced(finding.code, "text"))
    for block in finding.note:
        if block.is_code:
            parts.append(fenced(block.pieces[0].text, "python"))
        else:
            parts.append(format_prose(block.pieces) + "\n")
    if finding.related and not short:
        parts.append("\n".join(_related(finding.related)) + "\n")
    if finding.title:
        parts.append(f"**{finding.tag.capitalize()}:** {format_prose(finding.title)}\n")
    if finding.diff and not short:
        parts.append(fenced(finding.diff, "diff"))
    elif finding.diff:
        parts.append(f"The diff is too long for a comment; {_SEE_REPORT}.\n")
    if finding.verdicts:
        parts.append("\n".join(map(_verdict, finding.verdicts)) + "\n")
    return "\n<details>\n<summary>" + "\n".join([*parts, "</details>\n"])


def _related(entries: Sequence[RelatedEntry]) -> Iterator[str]:
    for entry in entries[:_MAX_RELATED]:
        yield f"- {format_code(str(entry.place))} {format_prose(entry.message)}"
    if len(entries) > _MAX_RELATED:
        yield f"- and {len(entries) - _MAX_RELATED} more places"


def _verdict(one: Verdict) -> str:
    why = f" ({escape(text)})" if (text := basis(one)) else ""
    return f"- **{words(one.outcome)}** {format_code(unit_of(one))}{why}"


def _measured(found: Measurement, screen: Screen) -> str:
    """Return the checkpoints of a target."""
    target = f"<code>{escape_element(found.target)}</code>"
    lines: list[str] = []
    if found.sites:
        lines += ["| checkpoint | saves | costs | verdict |", "| --- | ---: | ---: | --- |"]
    for site in found.sites:
        place = format_code(f"{screen.path(site.path)}:{site.line}")
        saves, costs = size(site.peak_bytes_saved), operations(site.recomputed_flops)
        lines.append(f"| {place} | {saves} | {costs} | {words(site.verdict)} |")
    return _folded(f"Measured {target}", *lines) if lines else ""


def _verified(report: Report, screen: Screen) -> Iterator[str]:
    verdicts = worst_verdicts(report.verdicts)
    if verdicts:
        lines = [
            f"{_verdict(one)} in {format_code(f'{screen.path(one.unit.path)}:{one.unit.line}')}"
            for one in verdicts[:_MAX_VERDICTS]
        ]
        if (rest := len(verdicts) - _MAX_VERDICTS) > 0:
            lines.append(f"- and {rest} more")
        yield _folded(pluralize(len(verdicts), "verdict"), *lines)


def _folded(summary: str, *lines: str) -> str:
    body = "\n".join(lines)
    return f"\n<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>\n"
