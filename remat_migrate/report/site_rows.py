"""The table of sites: which findings and measurements concern each checkpoint."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..rule import Finding
from ..text import SourceFile, Span
from .content import RISKS, Risk, SiteRow, risk_of

if TYPE_CHECKING:
    from ..analysis import Site
    from ..measure.worker.records import SiteMeasurement


def site_rows(
    sites: Sequence[Site], findings: Sequence[Finding], weights: Sequence[SiteMeasurement] = ()
) -> tuple[SiteRow, ...]:
    """Return a row for each site with the findings and measurements that concern it.

    A finding concerns a site if it names the site, or touches the site's statement or the code of
    the options, partials and names that the site is made of.
    """
    by_line: dict[tuple[Path, int], list[Finding]] = defaultdict(list)
    by_site: dict[Site, list[Finding]] = defaultdict(list)
    for finding in findings:
        for line in _lines(finding.source, finding.span):
            by_line[finding.path, line].append(finding)
        for site in finding.sites:
            by_site[site].append(finding)
    heads = {site: _head(site) for site in sites} if findings or weights else {}
    shares = _assign_weights(weights, heads)
    rows = []
    for site in sites:
        spans = [(site.module.source, heads.get(site, site.span)), *_code_of(site)]
        touching = [
            finding
            for source, span in spans
            for line in _lines(source, span)
            for finding in by_line.get((source.path, line), ())
            if finding.span.overlaps(span)
        ]
        own = tuple(dict.fromkeys((*touching, *by_site[site])))
        risks: list[Risk] = ["none", *map(risk_of, own)]
        risk = min(risks, key=RISKS.index)
        rows.append(SiteRow(site, risk, own, tuple(shares[site])))
    return tuple(rows)


def _lines(source: SourceFile, span: Span) -> range:
    """Return the numbers of the lines that a span touches."""
    return range(source.position(span.start)[0], source.position(span.end)[0] + 1)


def _head(site: Site) -> Span:
    """Return the statement of a site, a compound one up to the first statement in it."""
    source, statement = site.module.source, site.module.statement(site.reference)
    whole = source.full_span(statement)
    inner = [
        source.full_span(child).start
        for child in ast.iter_child_nodes(statement)
        if isinstance(child, ast.stmt | ast.excepthandler)
    ]
    inner += [source.span(case.body[0]).start for case in getattr(statement, "cases", ())]
    return Span(whole.start, min(inner, default=whole.end))


def _code_of(site: Site) -> Iterator[tuple[SourceFile, Span]]:
    """Yield the code of a site's options and partials, and of the names that they read."""
    from ..analysis.values.values import Partial

    callee, read = site.callee, [(site.module, site.reference)]
    while isinstance(callee, Partial):
        yield callee.module.source, callee.module.span(callee.call)
        callee = callee.func
    for option in site.arguments.values():
        yield option.module.source, option.module.span(option.keyword or option.value)
        read.append((option.module, option.value))
    seen: set[ast.expr] = set()
    while read:
        module, node = read.pop()
        if isinstance(node, ast.Name) and node not in seen:
            seen.add(node)
            for binding in module.reaching(node):
                if binding.kind == "assign" and binding.value is not None and not binding.path:
                    yield module.source, module.span(binding.value)
                    read.append((module, binding.value))


def _assign_weights(
    weights: Sequence[SiteMeasurement], statements: Mapping[Site, Span]
) -> Mapping[Site, list[SiteMeasurement]]:
    """Assign each measurement to the sites in the statement around its line.

    Among several sites, those on the line, those that are applied, and those whose target has the
    measured function's name are preferred, in this order.
    """
    shares: dict[Site, list[SiteMeasurement]] = defaultdict(list)
    for weight in weights:
        candidates = [
            site
            for site, statement in statements.items()
            if site.module.source.path == weight.path
            and weight.line in _lines(site.module.source, statement)
        ]
        for is_preferred in (_is_on_line, _is_applied, _has_name):
            preferred = [site for site in candidates if is_preferred(site, weight)]
            candidates = preferred or candidates
        for site in candidates:
            shares[site].append(weight)
    return shares


def _is_on_line(site: Site, weight: SiteMeasurement) -> bool:
    return site.module.source.position(site.span.start)[0] == weight.line


def _is_applied(site: Site, weight: SiteMeasurement) -> bool:
    return site.application is not None


def _has_name(site: Site, weight: SiteMeasurement) -> bool:
    names = (weight.function, site.target or "")
    return len({name.rpartition(".")[2] for name in names}) == 1
