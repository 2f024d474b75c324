"""The verdicts of verification, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .display import Screen, pluralize, printable

if TYPE_CHECKING:
    from ...rule import Finding
    from ...verify.evidence import Proof, Verdict
    from ..content import Report

# The worst first.
_STYLES = {
    "differs": "red",
    "fails-after": "red",
    "fails-before": "yellow",
    "not-exercised": "yellow",
    "close": "yellow",
    "equal": "green",
}
_ORDER = tuple(_STYLES)
_MOST_SUBSTITUTES = 3
_INPUTS = {"declared": "declared inputs", "recorded": "recorded inputs", "made": "generated inputs"}
_MOST_SHAPES = 3


def verdict_lines(report: Report, screen: Screen) -> Iterator[str]:
    """Yield a report's verdicts, and the reverted fixes."""
    if report.proved is None:
        return
    proved = report.proved
    yield from proof_lines(proved.proof, screen, also=proved.wrong)
    for item in proved.reverted:
        label = screen.paint("reverted", "red", "bold")
        yield _about(item.finding, item.reason, label, screen)
    for applied, reason in proved.unproved:
        yield _about(applied.finding, reason, screen.paint("not proved", "yellow"), screen)


def _about(finding: Finding, reason: str, label: str, screen: Screen) -> str:
    place = f"{screen.path(finding.path)}:{finding.source.line_place(finding.span.start)}"
    return f"{label} {place} {finding.code}: {printable(_one_line(reason))}"


def proof_lines(
    proof: Proof,
    screen: Screen,
    also: Sequence[Verdict] = (),
) -> Iterator[str]:
    """Yield a line for each verdict, the worst first, how a command ended, and notes."""
    shown = worst_verdicts((*proof.verdicts, *also))
    width = max((len(v.outcome) for v in shown), default=0)
    for verdict in shown:
        if not verdict.unit.is_text:
            yield from _lines_of(verdict, screen, width)
    texts = [verdict for verdict in shown if verdict.unit.is_text]
    outcome = screen.paint(f"{'not-exercised':<{width}}", _STYLES["not-exercised"])
    for detail in dict.fromkeys(verdict.detail for verdict in texts):
        files = ", ".join(screen.path(v.unit.path) for v in texts if v.detail == detail)
        yield f"{outcome}  {files} ({printable(detail)})"
    if proof.command:
        yield from _command(proof, screen)
    for note in proof.notes:
        yield f"note: {printable(note)}"
    if any("no inputs found" in verdict.detail for verdict in shown):
        yield "note: to provide inputs, pass --cases FILE, or --command with what runs the code"


def _lines_of(verdict: Verdict, screen: Screen, width: int) -> Iterator[str]:
    """Yield a verdict on code, and what was raised if it is wrong."""
    outcome = screen.paint(f"{verdict.outcome:<{width}}", _STYLES[verdict.outcome])
    place = f"{screen.path(verdict.unit.path)}:{verdict.unit.line}"
    rest = basis(verdict)
    yield f"{outcome}  {place} {printable(unit_of(verdict))}{rest and f' ({printable(rest)})'}"
    if verdict.outcome.is_wrong:
        yield from (f"    {printable(line)}" for line in verdict.traceback.rstrip().splitlines())


def proved_summary(report: Report) -> str:
    """Return how many fixes were proved, not exercised, and reverted; empty without proof."""
    if report.proved is None:
        return ""
    fixes = sum((report.fixed or {}).values())
    unproved = min(fixes, len(report.proved.unproved))
    parts = [f"proved {fixes - unproved} by running the code"]
    if unproved:
        parts.append(f"{unproved} not proved")
    if reverted := len(report.proved.reverted):
        parts.append(f"{reverted} reverted")
    return ", ".join(parts)


def tally(proof: Proof) -> str:
    """Return `Compared 12 units: 11 equal, 1 not exercised.`, and how many units are left."""
    left = f"Interrupted: {pluralize(proof.left, 'unit')} not compared." if proof.left else ""
    if not proof.verdicts:
        return left or "Nothing to compare: no unit differs."
    counts = Counter(str(verdict.outcome) for verdict in proof.verdicts)
    parts = [f"{counts[o]} {words(o)}" for o in reversed(_ORDER) if counts[o]]
    compared = f"Compared {pluralize(len(proof.verdicts), 'unit')}: {', '.join(parts)}."
    return f"{compared} {left}".rstrip()


def verdict_counts(verdicts: Sequence[Verdict]) -> Mapping[str, int]:
    """Count the verdicts of each outcome."""
    counts = Counter(str(verdict.outcome) for verdict in verdicts)
    return {outcome: counts[outcome] for outcome in reversed(_ORDER)}


def worst_verdicts(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Sort verdicts: wrong ones first, equal ones last."""
    return sorted(verdicts, key=lambda verdict: _ORDER.index(verdict.outcome))


def unit_of(verdict: Verdict) -> str:
    """Return what a verdict is on: the name of a function or class, or the module."""
    return verdict.unit.qualname or "the module"


def basis(verdict: Verdict) -> str:
    """Return what a verdict is based on, or what differs."""
    return "; ".join(_facts(verdict))


def _facts(verdict: Verdict) -> Iterator[str]:
    if verdict.outcome in ("equal", "close"):
        yield _basis(verdict)
        if verdict.substituted:
            yield f"substitutes: {', '.join(verdict.substituted[:_MOST_SUBSTITUTES])}"
        return
    if verdict.inputs:
        yield _INPUTS[verdict.inputs]
    if verdict.max_abs is not None and verdict.outcome == "differs":
        yield f"largest difference {verdict.max_abs:.2g}, relative {verdict.max_rel:.2g}"
    if verdict.detail:
        yield _one_line(verdict.detail)
    if verdict.difference and verdict.outcome == "differs":
        yield _one_line(verdict.difference)


def _basis(verdict: Verdict) -> str:
    parts = [_INPUTS[verdict.inputs]] if verdict.inputs else []
    if verdict.shapes:
        more = " ..." if len(verdict.shapes) > _MOST_SHAPES else ""
        parts.append(" ".join(verdict.shapes[:_MOST_SHAPES]).replace(": ", ":") + more)
    if verdict.inputs != "made":
        parts.append(pluralize(verdict.calls, "call"))
    if verdict.detail:
        parts.append(_one_line(verdict.detail))
    if verdict.evidence in ("program", "both"):
        parts.append("same program")
    if verdict.unit.qualname and verdict.evidence != "program":
        parts.append(f"largest difference {verdict.max_abs or 0:.2g}")
    if verdict.difference:
        parts.append(f"not the same program: {_one_line(verdict.difference)}")
    return ", ".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def words(outcome: str) -> str:
    """Return an outcome as words: `not exercised`."""
    return outcome.replace("-", " ")


def _command(proof: Proof, screen: Screen) -> Iterator[str]:
    command = proof.command
    assert command is not None
    before, after = command.seconds
    took = (
        f"{before:.0f} s before, {after:.0f} s after, {pluralize(command.calls, 'call')} recorded"
    )
    if command.wrong:
        head, _, tail = command.wrong.partition("\n")
        yield screen.paint(f"the command `{printable(command.command)}`: {printable(head)}", "red")
        yield from (printable(line) for line in tail.splitlines())
    else:
        status = f"exited with status {command.after} before and after ({took})"
        yield f"the command `{printable(command.command)}` {status}"
