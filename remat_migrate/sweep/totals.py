"""What a sweep leaves when all sources are checked: tables, a page, and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..report.machine_readable.shared import encodable
from ..report.pages.html import render_sweep
from .record import RECORD, SEVERITIES, Record, folder_of
from .sources import Source
from .store import Store
from .tables import fix_counts, repository_row, verdict_counts, write_tables

PAGE = "index.html"

# The rows of the page: a browser takes no more, and the tables have all.
MOST_ROWS = 1_000
_RISKS = ("high", "medium", "low", "none")


@dataclass(slots=True)
class Totals:
    """What a sweep found in all sources together.

    Attributes:
        statuses: sources by their status.
        findings: findings by severity.
        files: files checked.
        with_findings: sources with findings.
        fixes: findings by the safety of their fix.
        risks: sites by risk.
        verdicts: units by verdict: equal, wrong, not_exercised.
        rules: by code: the name, the findings, the sources, and the findings with a fix.
        patches: sources with a patch.
        exit_codes: the exit codes of the runs.
        worst: rows of the sources with the most and worst findings, the worst first.
        failed: the sources that were not checked, or not completely.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    files: int = 0
    with_findings: int = 0
    fixes: Counter[str] = field(default_factory=Counter)
    risks: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    patches: int = 0
    exit_codes: set[int] = field(default_factory=set)
    worst: list[Mapping[str, Any]] = field(default_factory=list)
    failed: list[Record] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Add a source."""
        self.statuses[record["status"]] += 1
        self.findings.update(record["severities"])
        self.files += record["files"]
        self.with_findings += bool(record["findings"])
        self.fixes += fix_counts(record)
        self.risks.update(site["risk"] for site in record["sites"])
        self.verdicts += verdict_counts(record)
        self.patches += bool(record["patched_files"])
        self.exit_codes.add(record["exit_code"])
        if record["status"] != "checked":
            self.failed.append(record)
        for code in {finding["code"] for finding in record["findings"]}:
            own = [finding for finding in record["findings"] if finding["code"] == code]
            rule = self.rules.setdefault(
                code, {"name": own[0]["name"], "findings": 0, "repositories": 0, "fixes": 0}
            )
            rule["findings"] += len(own)
            rule["repositories"] += 1
            rule["fixes"] += sum(bool(f["fix"]) and f["fix"]["safety"] != "manual" for f in own)


def write_results(sources: Sequence[Source], store: Store) -> Totals:
    """Write the tables and the page, from the records of the sources.

    Raises:
        StoreFailed: a record cannot be read, or a result cannot be written.
    """
    totals = Totals()
    ranked: list[tuple[tuple[int, ...], Mapping[str, Any]]] = []

    def records() -> Iterator[Record]:
        for source in sources:
            record = store.read_json(f"{folder_of(source)}/{RECORD}")
            totals.add(record)
            if record["findings"] or record["sites"]:
                ranked.append(_ranked(record))
            yield record

    write_tables(records(), store)
    ranked.sort(key=lambda one: one[0], reverse=True)
    totals.worst = [row for _, row in ranked[:MOST_ROWS]]
    rules = sorted(totals.rules.items(), key=lambda one: (-one[1]["findings"], one[0]))
    store.write(PAGE, encodable(render_sweep(totals, rules, MOST_ROWS)).encode())
    return totals


def _ranked(record: Record) -> tuple[tuple[int, ...], Mapping[str, Any]]:
    """Return the rank of a source, and its row on the page."""
    risks = Counter(site["risk"] for site in record["sites"])
    error, warning, note = (record["severities"][severity] for severity in SEVERITIES)
    rank = (error, warning, *(risks[risk] for risk in _RISKS), note)
    return rank, {**repository_row(record), "name": record["name"], "risks": risks}
