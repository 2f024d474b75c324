"""Add up the records of a sweep, for the summary and the page."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .record import SEVERITIES
from .tables import Record, fix_counts, repository_row, verdict_counts

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

    @property
    def sources(self) -> int:
        """The number of sources."""
        return self.statuses.total()

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

    def keeping_worst(self, records: Iterable[Record]) -> Iterator[Record]:
        """Add records while they are read, and keep the rows of the worst sources."""
        ranked: list[tuple[tuple[int, ...], int, Mapping[str, Any]]] = []
        for number, record in enumerate(records):
            self.add(record)
            if record["findings"] or record["sites"]:
                risks = Counter(site["risk"] for site in record["sites"])
                rank = tuple(record["severities"][severity] for severity in SEVERITIES)
                rank = (*rank[:2], *(risks[risk] for risk in _RISKS), rank[2])
                row = {**repository_row(record), "name": record["name"], "risks": risks}
                # Of equal ranks, the first sources are kept.
                entry = (rank, -number, row)
                if len(ranked) < MOST_ROWS:
                    heapq.heappush(ranked, entry)
                else:
                    heapq.heappushpop(ranked, entry)
            yield record
        self.worst = [row for _, _, row in sorted(ranked, reverse=True, key=lambda one: one[:2])]
