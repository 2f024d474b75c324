"""What is reported, whatever the format: findings, their number, and the table of sites."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..rule import Finding, Rule, Safety, Severity
from ..text import SourceFile, Span

if TYPE_CHECKING:
    from ..analysis import Module, Site
    from ..engine.analyse import Fault, Hidden
    from ..engine.baseline import Comparison
    from ..measure.measurement import Measurement
    from ..measure.worker.records import SiteMeasurement
    from ..verify.fixes import Proved

Risk = Literal["high", "medium", "low", "none"]

_RISKS: Mapping[str, Risk] = {"error": "high", "warning": "medium", "note": "low"}
_RANK: Sequence[Risk] = ("none", "low", "medium", "high")


@dataclass(frozen=True, slots=True)
class SiteRow:
    """One site of the report: what it applies to what, and the findings that concern it.

    Attributes:
        site: the site.
        risk: that of its worst finding.
        findings: those that touch its statement, or a place elsewhere that it depends on.
        weights: what it saves and costs: one for each function that it is applied to in a target.
    """

    site: Site
    risk: Risk
    findings: tuple[Finding, ...]
    weights: tuple[SiteMeasurement, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of its findings, sorted."""
        return tuple(sorted({finding.code for finding in self.findings}))


@dataclass(frozen=True, slots=True)
class Weighed:
    """What measuring the configured targets gave.

    Attributes:
        found: a measurement for each target that could be measured.
        failed: the other ones, with the reason.
    """

    found: tuple[Measurement, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def sites(self) -> tuple[SiteMeasurement, ...]:
        """The checkpoints of all targets."""
        return tuple(site for one in self.found for site in one.sites)


@dataclass(frozen=True, slots=True)
class Report:
    """What a run has to say.

    Attributes:
        findings: what is left, sorted.
        files: how many files were looked at.
        root: the project's folder.
        hidden: findings that a comment or the settings took away.
        rules: the rules that ran.
        fixed: how many findings were mended, by code; None where no fix was asked for.
        unsafe: whether unsafe fixes are allowed.
        sites: the table of sites; None where it was not asked for.
        sources: the text of every file that a fix edits.
        proved: what running the code before and after the fixes showed; None if it was not run.
        weighed: what the checkpoints save and cost; None where no target is configured.
        faults: rules that failed.
        baseline: what a baseline says of the run; None without one.
        fail_on: the least severity of findings that fail the run.
    """

    findings: tuple[Finding, ...]
    files: int
    root: Path = Path("/")
    hidden: tuple[Hidden, ...] = ()
    rules: tuple[Rule, ...] = ()
    fixed: Mapping[str, int] | None = None
    unsafe: bool = False
    sites: tuple[SiteRow, ...] | None = None
    sources: Mapping[Path, SourceFile] = field(default_factory=dict)
    proved: Proved | None = None
    weighed: Weighed | None = None
    faults: tuple[Fault, ...] = ()
    baseline: Comparison | None = None
    fail_on: Severity = "warning"

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are more than advice."""
        return tuple(finding for finding in self.findings if finding.severity != "note")

    @property
    def advice(self) -> tuple[Finding, ...]:
        """The findings of severity `note`."""
        return tuple(finding for finding in self.findings if finding.severity == "note")

    @property
    def suppressed(self) -> tuple[Finding, ...]:
        """The findings that a comment or the settings took away."""
        return tuple(hidden.finding for hidden in self.hidden if hidden.by != "baseline")

    @property
    def known(self) -> tuple[Finding, ...]:
        """The findings that the baseline took away."""
        return tuple(hidden.finding for hidden in self.hidden if hidden.by == "baseline")

    def count(self, safety: Safety) -> int:
        """How many findings have a fix of this safety that edits something."""
        return count_fixes(self.findings, safety)


def count_fixes(findings: Sequence[Finding], safety: Safety) -> int:
    """How many findings have a fix of this safety that edits something."""
    return sum(
        finding.fix is not None and bool(finding.fix.changes) and finding.fix.safety is safety
        for finding in findings
    )


def risk_of(finding: Finding) -> Risk:
    """The risk that a finding is."""
    return _RISKS[finding.severity]


def site_rows(
    sites: Sequence[Site], findings: Sequence[Finding], weights: Sequence[SiteMeasurement] = ()
) -> tuple[SiteRow, ...]:
    """The table of sites: each with the findings that concern it.

    Args:
        sites: the sites.
        findings: a site's own are those that touch its statement, or the options, partials and
            names that it is made of, wherever these are written, and those that name the site.
        weights: likewise what was measured, see `_shared_out`.
    """
    by_path: dict[Path, list[Finding]] = defaultdict(list)
    named: dict[Site, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
        for site in finding.sites:
            named[site].append(finding)
    measured = {weight.path for weight in weights}
    heads: dict[Path, list[Span]] = {}
    own: dict[Site, Span] = {}
    for site in sites:
        path = site.module.source.path
        if path in by_path or path in measured:
            if path not in heads:
                heads[path] = list(statement_heads(site.module))
            own[site] = _innermost(heads[path], site.span)
    shares = _shared_out(weights, own)
    rows = []
    for site in sites:
        places = [(site.module.source.path, own.get(site, site.span)), *_parts(site)]
        touching = [
            finding
            for path, span in places
            for finding in by_path.get(path, ())
            if span.overlaps(finding.span)
        ]
        touching = list(dict.fromkeys((*touching, *named.get(site, ()))))
        risks = [risk_of(finding) for finding in touching]
        rows.append(
            SiteRow(
                site,
                max(risks, key=_RANK.index, default="none"),
                tuple(touching),
                tuple(shares.get(site, ())),
            )
        )
    return tuple(rows)


def _parts(site: Site) -> Iterator[tuple[Path, Span]]:
    """Where the options of a site, its partials and what these are called are written."""
    from ..analysis.values.values import Partial

    callee, read = site.callee, [(site.module, site.reference)]
    while isinstance(callee, Partial):
        yield callee.module.source.path, callee.module.span(callee.call)
        callee = callee.func
    for option in site.arguments.values():
        yield option.module.source.path, option.module.span(option.keyword or option.value)
        read.append((option.module, option.value))
    seen: set[ast.expr] = set()
    while read:
        module, node = read.pop()
        if isinstance(node, ast.Name) and node not in seen:
            seen.add(node)
            for binding in module.reaching(node):
                if binding.kind == "assign" and binding.value is not None and not binding.path:
                    yield module.source.path, module.span(binding.value)
                    read.append((module, binding.value))


def _shared_out(
    weights: Sequence[SiteMeasurement], statements: Mapping[Site, Span]
) -> Mapping[Site, list[SiteMeasurement]]:
    """Each weight with the sites that it may be of.

    It is of those at its line, or else of those whose statement it stands in; of several, of those
    that are applied there, and of those to what was measured.
    """
    shares: dict[Site, list[SiteMeasurement]] = defaultdict(list)
    for weight in weights:
        inside: list[Site] = []
        for site, statement in statements.items():
            source = site.module.source
            first, last = (source.position(at)[0] for at in (statement.start, statement.end))
            if source.path == weight.path and first <= weight.line <= last:
                inside.append(site)
        at_line = [site for site in inside if _line(site) == weight.line]
        candidates = at_line or inside
        for is_likelier in (_is_applied, partial(_has_name, weight)):
            candidates = [site for site in candidates if is_likelier(site)] or candidates
        for site in candidates:
            shares[site].append(weight)
    return shares


def _line(site: Site) -> int:
    return site.module.source.position(site.span.start)[0]


def _is_applied(site: Site) -> bool:
    return site.application is not None


def _has_name(weight: SiteMeasurement, site: Site) -> bool:
    names = (weight.function, site.target or "")
    return len({name.rpartition(".")[2] for name in names}) == 1


def statement_heads(module: Module) -> Iterator[Span]:
    """Each statement of a module, a compound one up to its first inner statement.

    A decorated definition starts at its first decorator.
    """
    source = module.source
    for node in ast.walk(module.tree):
        if isinstance(node, ast.stmt):
            whole = source.span(node)
            inner = [
                source.full_span(child).start
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt | ast.excepthandler)
            ]
            inner += [source.span(case.body[0]).start for case in getattr(node, "cases", ())]
            yield Span(source.full_span(node).start, min(inner, default=whole.end))


def _innermost(heads: Sequence[Span], place: Span) -> Span:
    around = [head for head in heads if head.start <= place.start and place.end <= head.end]
    return min(around, key=lambda head: head.end - head.start, default=place)
