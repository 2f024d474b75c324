"""Running the rules over the files of a run, and applying suppressions."""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ..analysis import Project
from ..analysis.loading import load_project
from ..analysis.names.module import followed_last
from ..analysis.version_guards import is_dead
from ..discovery.globs import matcher
from ..errors import BoundReached, SourceError
from ..rewrite.uncertain_sites import uncertain_site
from ..rule import Finding, Fix, Related, Rule
from ..settings import NearestSettings
from ..suppressions import Suppressions, may_be_unused, read_directives
from ..text import SourceFile
from .large_stack import with_large_stack
from .rules import UNUSED, enabled_rules
from .run import Run

_TOO_DEEP = "the code is nested too deeply, or uses too long a chain of names, to be analysed"


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that raised an exception: a bug in the tool or in a plug-in."""

    code: str
    path: Path
    error: str
    trace: str

    def __str__(self) -> str:
        return f"{self.path}: rule {self.code} failed: {self.error}"


@dataclass(frozen=True, slots=True)
class Hidden:
    """A finding that is not reported, and what hides it."""

    finding: Finding
    by: Literal["comment", "settings", "baseline"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the rules found.

    Attributes:
        project: the code as the rules saw it.
        findings: the findings to report, sorted by path, position and code.
        hidden: findings hidden by a comment, the settings or a baseline, sorted likewise.
        faults: rules that failed; their findings up to then are included.
    """

    project: Project
    findings: tuple[Finding, ...]
    hidden: tuple[Hidden, ...] = ()
    faults: tuple[Fault, ...] = ()

    def source(self, path: Path) -> SourceFile:
        """Return the text of a file as the rules saw it.

        Raises:
            SourceError: the file cannot be read.
        """
        if module := self.project.modules.get(path):
            return module.source
        return self.project.texts.get(path) or self.project.files.read(path)


def analyse(
    run: Run,
    texts: Mapping[Path, SourceFile] | None = None,
    previous: Analysis | None = None,
) -> Analysis:
    """Run the enabled rules over the targets.

    Args:
        run: the run.
        texts: texts that replace what is on disk, on top of the run's overlay.
        previous: an earlier analysis, whose unchanged files are reused.
    """
    overlay = {**run.overlay, **(texts or {})}
    refused: dict[Path, SourceError] = {}
    while True:
        try:
            return with_large_stack(lambda: _analyse(run, overlay, previous, refused))
        except RecursionError as error:
            path = followed_last(error)
            if path is None or path in refused:
                raise
            is_bound = isinstance(error, BoundReached)
            refused[path] = SourceError(path, str(error) if is_bound else _TOO_DEEP)


def _analyse(
    run: Run,
    overlay: Mapping[Path, SourceFile],
    previous: Analysis | None,
    refused: Mapping[Path, SourceError],
) -> Analysis:
    """Analyse everything but the `refused` files, which are reported as unreadable.

    Raises:
        RecursionError: the code of a file is nested too deeply, or is beyond a bound.
    """
    run.progress(f"reading {len(run.files)} files", 0, 1)
    rules = run.enabled_rules
    project = load_project(
        run.settings,
        run.targets.python,
        run.targets.texts,
        run.context,
        overlay=overlay,
        previous=previous.project if previous is not None else None,
        reported=run.reported,
        words=sorted({word for rule in rules for word in rule.words}),
        refused=refused,
        nearest=run.nearest,
    )
    faults: list[Fault] = []
    enabled = _enabled(run)
    found = list(dict.fromkeys(_run_rules(run, rules, enabled, project, faults)))
    found = [one for one in found if not is_dead(project, one.path, one.span.start)]
    run.progress("", 1, 1)
    kept, suppressed = found, list[Finding]()
    if not run.ignores_comments:
        kept, suppressed = _suppress(found, run, project, enabled, faults)
    hidden = [Hidden(finding, "comment") for finding in suppressed]
    shown = []
    for finding in kept:
        if _is_ignored(run.nearest, finding):
            hidden.append(Hidden(finding, "settings"))
        else:
            shown.append(finding)
    return Analysis(
        project,
        tuple(sorted(shown, key=lambda finding: finding.order)),
        tuple(sorted(hidden, key=lambda one: one.finding.order)),
        tuple(faults),
    )


Enabled = Callable[[Path], frozenset[Rule]]


def _enabled(run: Run) -> Enabled:
    """Return a function that returns the rules that are enabled for a file."""
    rules = {id(one): frozenset(enabled_rules(run.rules, one)) for one in run.nearest.every}
    return lambda path: rules[id(run.nearest.of(path))]


def _run_rules(
    run: Run, rules: Sequence[Rule], enabled: Enabled, project: Project, faults: list[Fault]
) -> Iterator[Finding]:
    reported = run.reported
    modules = [(path, module) for path, module in project.modules.items() if path in reported]
    texts = [(path, source) for path, source in project.texts.items() if path in reported]
    total = len(rules) * len(modules) + 1
    for number, rule in enumerate(rules):
        for finding in _guarded(rule, run.settings.root, rule.check_project(project), faults):
            if finding.path in reported and rule in enabled(finding.path):
                yield finding
        for at, (path, module) in enumerate(modules):
            if rule not in enabled(path):
                continue
            run.progress(f"{rule.code} {path.name}", number * len(modules) + at, total)
            for finding in _guarded(rule, path, rule.check(module, project), faults):
                yield _on_every_path(project, finding)
        for path, source in texts:
            if rule in enabled(path):
                yield from _guarded(rule, path, rule.check_text(source, project), faults)


def _on_every_path(project: Project, finding: Finding) -> Finding:
    """Return a finding; without its fix if that edits what is a checkpoint on some paths only."""
    if finding.fix is None or not finding.fix.is_automatic:
        return finding
    site = uncertain_site(project, finding.fix.changes)
    if site is None:
        return finding
    name = site.module.segment(site.reference)
    title = f"`{name}` is not `{site.api}` on every path; where it is, {finding.fix.title}"
    place = Related(site.module.source, site.span, "may call another function")
    return replace(finding, fix=Fix.manual(title), reason=title, related=(*finding.related, place))


def _guarded(
    rule: Rule, path: Path, findings: Iterator[Finding], faults: list[Fault]
) -> Iterator[Finding]:
    """Yield a rule's findings; if it raises an exception, record a fault."""
    try:
        yield from findings
    except RecursionError:
        raise  # `analyse` retries on a large stack.
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        message = f"{type(error).__name__}: {error} ({where})"
        faults.append(Fault(rule.code, path, message, "".join(traceback.format_exception(error))))


def _suppress(
    findings: Sequence[Finding],
    run: Run,
    project: Project,
    enabled: Enabled,
    faults: list[Fault],
) -> tuple[list[Finding], list[Finding]]:
    """Apply suppression comments.

    Returns:
        The findings that are left, with those about unused suppressions; the suppressed findings.
    """
    by_path: dict[Path, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
    sources = {module.source.path: module.source for module in project.parsed} | project.texts
    known = frozenset(rule.code for rule in run.rules)
    kept: list[Finding] = []
    suppressed: list[Finding] = []
    for path in filter(run.reported.__contains__, dict.fromkeys((*sources, *by_path))):
        here, source = by_path[path], sources.get(path)
        if source is None or not (here or may_be_unused(source, known)):
            kept += here  # An unreadable file has no comments.
            continue
        rules = enabled(path)
        ran = frozenset(rule.code for rule in rules) - {UNUSED}
        complete = all(rule in rules for rule in run.rules)
        suppressions = Suppressions(read_directives(source, python=path not in project.texts))
        shown, hidden = _split(here, suppressions)
        places = [(finding.line, finding.code) for finding in hidden]
        unused = list(suppressions.unused(places, ran=ran, known=known, complete=complete))
        for rule in rules if unused else ():
            about = _guarded(rule, path, rule.check_suppressions(source, unused), faults)
            # An unused `ignore-file` must not hide the finding about itself.
            if not hidden:
                lines = (d for d in suppressions.directives if not d.whole_file)
                suppressions = Suppressions(lines)
            shown_about, hidden_about = _split(list(about), suppressions)
            shown += shown_about
            hidden += hidden_about
        kept += shown
        suppressed += hidden
    return kept, suppressed


def _split(
    findings: Sequence[Finding], suppressions: Suppressions
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that are not suppressed, and those that are."""
    kept: list[Finding] = []
    suppressed: list[Finding] = []
    for finding in findings:
        (suppressed if suppressions.cover(finding.line, finding.code) else kept).append(finding)
    return kept, suppressed


def _is_ignored(nearest: NearestSettings, finding: Finding) -> bool:
    """Return whether `per-file-ignores` hides a finding."""
    return any(
        finding.code.startswith(one.codes) and matcher((one.glob,), one.base)(finding.path)
        for one in nearest.of(finding.path).per_file_ignores
    )
