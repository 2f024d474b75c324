"""What a report contains, whatever its format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from ..rule import Finding, Rule, Safety, Severity
from ..text import SourceFile

if TYPE_CHECKING:
    from ..analysis import Site
    from ..engine.analyse import Fault, Hidden
    from ..engine.baseline import Comparison
    from ..measure.measurement import Measurement
    from ..measure.worker.records import SiteMeasurement
    from ..verify.evidence import Verdict
    from ..verify.fixes import Proved

Risk = Literal["high", "medium", "low", "none"]

# The worst first.
RISKS: Sequence[Risk] = get_args(Risk)
_RISKS: Mapping[Severity, Risk] = {"error": "high", "warning": "medium", "note": "low"}
_CONFIDENCES = ("high", "medium", "low")


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A row of the table of sites.

    Attributes:
        site: the site.
        risk: the risk of its worst finding.
        findings: those that touch its statement, or code elsewhere that it depends on.
        weights: what it saves and costs, for each function that it is applied to in a target.
    """

    site: Site
    risk: Risk
    findings: tuple[Finding, ...]
    weights: tuple[SiteMeasurement, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """Return the codes of its findings, sorted."""
        return tuple(sorted({finding.code for finding in self.findings}))


@dataclass(frozen=True, slots=True)
class Weighed:
    """The measurements of the configured targets.

    Attributes:
        found: a measurement for each target that could be measured.
        failed: the reason for each other target.
    """

    found: tuple[Measurement, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def sites(self) -> tuple[SiteMeasurement, ...]:
        """Return the checkpoints of all targets."""
        return tuple(site for one in self.found for site in one.sites)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run.

    Attributes:
        findings: the findings that are left, sorted.
        files: the number of files analysed.
        root: the project's folder.
        hidden: the findings that comments, settings or the baseline hide.
        rules: the rules that ran.
        fixed: the number of fixed findings by code; None where no fixing was asked for.
        unsafe: whether unsafe fixes are allowed.
        sites: the table of sites; None where it was not asked for.
        sources: the text of every file that a fix edits.
        proved: the result of verifying the fixes; None if they were not verified.
        weighed: the measurements of checkpoints; None where no target is configured.
        faults: the rules that failed.
        baseline: how the run compares with a baseline; None without one.
        fails: whether a finding fails the run.
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
    fails: Callable[[Finding], bool] = lambda finding: finding.severity != "note"

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Return the findings of severity `error` and `warning`."""
        return tuple(finding for finding in self.findings if finding.severity != "note")

    @property
    def advice(self) -> tuple[Finding, ...]:
        """Return the findings of severity `note`."""
        return tuple(finding for finding in self.findings if finding.severity == "note")

    @property
    def suppressed(self) -> tuple[Finding, ...]:
        """Return the findings that comments or settings hide."""
        return tuple(hidden.finding for hidden in self.hidden if hidden.by != "baseline")

    @property
    def known(self) -> tuple[Finding, ...]:
        """Return the findings that the baseline hides."""
        return tuple(hidden.finding for hidden in self.hidden if hidden.by == "baseline")

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdicts on the new code, and those for which fixes were reverted."""
        proved = self.proved
        return (*proved.proof.verdicts, *proved.wrong) if proved else ()

    @property
    def reverted(self) -> int:
        """Return how many fixes verification reverted."""
        return len(self.proved.reverted) if self.proved else 0

    @property
    def risks(self) -> list[tuple[Risk, int]]:
        """Return how many checkpoints, or else findings, have each risk, the worst first."""
        risks = map(risk_of, self.findings) if self.sites is None else (s.risk for s in self.sites)
        counts = Counter(risks)
        return [(risk, counts[risk]) for risk in RISKS]


def count_fixes(findings: Sequence[Finding], safety: Safety) -> int:
    """Count the findings with an automatic fix of a safety that the run can apply."""
    return sum(finding.has_fix(safety) for finding in findings)


def risk_of(finding: Finding) -> Risk:
    """Return the risk of a finding, which follows from its severity."""
    return _RISKS[finding.severity]


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, then by confidence; otherwise the order is kept."""
    return sorted(
        findings,
        key=lambda one: (RISKS.index(risk_of(one)), _CONFIDENCES.index(one.confidence)),
    )


def remark(finding: Finding) -> str:
    """Return why there is no fix, or more about the problem, unless the fix says the same."""
    fix = finding.fix
    return "" if fix is not None and fix.title == finding.reason else finding.reason
