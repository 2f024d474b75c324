"""The engine: files to findings. Loads the rules, runs them, takes away what is suppressed."""

from __future__ import annotations

import re
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..analysis import Project
from ..analysis.names.module import followed_last
from ..analysis.needs.need import Learned
from ..discovery.discover import Targets
from ..discovery.globs import matcher
from ..discovery.installed import Offer, offers
from ..errors import PluginError, SourceError
from ..rule import Finding, Rule
from ..settings import Settings
from ..suppressions import (
    Directive,
    SuppressionRule,
    may_be_idle,
    read_directives,
    unused_directives,
)
from ..text import SourceFile
from .large_stack import with_deep_stack
from .progress import Progress, silent

RULES = "remat_migrate.rules"
# A file that was not looked at must not pass for one without findings, whatever is selected.
UNREADABLE = "RMT000"

_TOO_DEEP = "cannot be followed: it is nested too deeply, or too long a chain of names leads on"

_CODE = re.compile(r"[A-Z]+[0-9]{3}")


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be analysed.

    Attributes:
        settings: the run's settings.
        targets: the files to look at and, where asked, to change.
        context: further Python files that are only read.
        rules: every rule that is loaded; the settings say which of them run.
        learned: what running the code has shown that Python needs.
        shown: those of the targets whose findings are asked for; None: all of them.
    """

    settings: Settings
    targets: Targets
    context: tuple[Path, ...]
    rules: tuple[Rule, ...]
    learned: frozenset[Learned] = frozenset()
    shown: frozenset[Path] | None = None

    def shows(self, path: Path) -> bool:
        """Whether the findings in a file are asked for."""
        return self.shown is None or path in self.shown


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that failed on a file: a defect of the tool or of a plug-in, not of the file."""

    code: str
    path: Path
    error: str
    trace: str

    def __str__(self) -> str:
        return f"{self.path}: the rule {self.code} failed: {self.error}"


@dataclass(frozen=True, slots=True)
class Hidden:
    """A finding that is not reported, and what took it away."""

    finding: Finding
    by: Literal["comment", "settings", "baseline"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analysis found.

    Attributes:
        project: the code as the rules saw it.
        findings: sorted by path, position and code.
        hidden: more findings, which a comment or the settings took away; sorted.
        faults: rules that failed; their other findings are there.
    """

    project: Project
    findings: tuple[Finding, ...]
    hidden: tuple[Hidden, ...] = ()
    faults: tuple[Fault, ...] = ()

    def source(self, path: Path) -> SourceFile:
        """The text of a file as the rules saw it.

        Raises:
            SourceError: it cannot be read.
        """
        if module := self.project.modules.get(path):
            return module.source
        return self.project.texts.get(path) or self.project.files.read(path)


def load_rules() -> tuple[Rule, ...]:
    """Every rule that an installed package offers, sorted by code.

    Raises:
        PluginError: a package's rules cannot be imported, are no rules, or share a code.
    """
    rules: dict[str, Rule] = {}
    owners: dict[str, str] = {}
    for offer in offers(RULES):
        owner = f"the package {offer.package}"
        for rule in _rules_of(offer, owner):
            if rule.code in rules:
                raise PluginError(
                    f"two rules have the code {rule.code}: one of {owners[rule.code]},"
                    f" one of {owner}; uninstall one of the two"
                )
            rules[rule.code] = rule
            owners[rule.code] = owner
    return tuple(rules[code] for code in sorted(rules))


def enabled_rules(rules: Sequence[Rule], settings: Settings) -> tuple[Rule, ...]:
    """The rules that the settings select.

    A rule that is off by default runs if it is named by its full code, or by a prefix that names
    none but such rules: nobody who asks for `RMT6` means its other rules. Of prefixes that select
    and ignore a rule the longer one decides; `ignore` where they are equally long.
    """
    on = [rule.code for rule in rules if rule.enabled]
    selected = (*settings.select, *settings.extend_select)
    asking = [prefix for prefix in selected if not any(code.startswith(prefix) for code in on)]
    return tuple(rule for rule in rules if _is_enabled(rule, settings, asking))


def analyse(
    request: Request,
    overlay: Mapping[Path, SourceFile] | None = None,
    previous: Analysis | None = None,
    progress: Progress = silent,
) -> Analysis:
    """Run the rules over the targets; `overlay` holds texts in place of what is on disk.

    What a `previous` analysis has read of files that are still the same is used again. A file that
    is too deep to be followed, even on a large stack, is one that cannot be read.
    """
    try:
        return _analyse(request, overlay, previous, progress, {})
    except RecursionError:
        pass  # hardly ever: what all others need not wait for is done now
    refused: dict[Path, SourceError] = {}

    def look() -> Analysis:
        while True:
            try:
                return _analyse(request, overlay, previous, progress, refused)
            except RecursionError as error:
                path = followed_last(error)
                if path is None or path in refused:
                    raise
                refused[path] = SourceError(path, _TOO_DEEP)

    return with_deep_stack(look)


def _analyse(
    request: Request,
    overlay: Mapping[Path, SourceFile] | None,
    previous: Analysis | None,
    progress: Progress,
    refused: Mapping[Path, SourceError],
) -> Analysis:
    """An analysis without the files that are `refused`, which count as unreadable.

    Raises:
        RecursionError: the code of a file is too deep to be followed.
    """
    settings, targets = request.settings, request.targets
    progress(f"reading {len(targets.python) + len(targets.texts)} files", 0, 1)
    enabled = enabled_rules(request.rules, settings)
    project = Project(
        settings,
        targets.python,
        targets.texts,
        request.context,
        overlay=overlay or {},
        previous=previous.project if previous is not None else None,
        learned=request.learned,
        words=sorted({word for rule in enabled for word in rule.words}),
        refused=refused,
    )
    faults: list[Fault] = []
    found = list(dict.fromkeys(_run_rules(request, enabled, project, faults, progress)))
    progress("", 1, 1)
    kept, commented = _heed_comments(found, request, project, enabled, faults)
    ignored = _per_file_ignores(settings)
    shown = [finding for finding in kept if not ignored(finding)]
    hidden = [Hidden(finding, "comment") for finding in commented]
    hidden += [Hidden(finding, "settings") for finding in kept if ignored(finding)]
    return Analysis(
        project,
        tuple(sorted(shown, key=_order)),
        tuple(sorted(hidden, key=lambda one: _order(one.finding))),
        tuple(faults),
    )


def _rules_of(offer: Offer, owner: str) -> Iterator[Rule]:
    try:
        offered = offer.load()
    except Exception as error:
        raise PluginError(
            f"{owner} offers rules that cannot be imported ({offer.value}):"
            f" {type(error).__name__}: {error}; update or uninstall it"
        ) from error
    classes = [offered] if isinstance(offered, type) else getattr(offered, "RULES", None)
    if classes is None:
        raise PluginError(f"{owner}: {offer.value} is neither a rule nor a module with RULES")
    for rule in classes:
        if not (isinstance(rule, type) and issubclass(rule, Rule)):
            raise PluginError(
                f"{owner}: {rule!r} in {offer.value} is not a subclass of remat_migrate.rule.Rule"
            )
        code, name = getattr(rule, "code", None), getattr(rule, "name", None)
        if not (isinstance(code, str) and _CODE.fullmatch(code) and isinstance(name, str) and name):
            raise PluginError(
                f"{owner}: {rule.__qualname__} needs a code of letters and three digits,"
                f" and a name; it has {code!r} and {name!r}"
            )
        yield rule()


def _is_enabled(rule: Rule, settings: Settings, asking: Sequence[str]) -> bool:
    """`asking`: the selected prefixes that name only rules that are off by default."""
    selected = (*settings.select, *settings.extend_select)
    chosen = _longest(rule.code, selected)
    if not chosen and not settings.select and rule.enabled:
        chosen = 1
    if rule.code == UNREADABLE:
        chosen = max(chosen, 1)
    elif not rule.enabled and not _longest(rule.code, asking):
        return False
    return chosen > _longest(rule.code, settings.ignore)


def _longest(code: str, prefixes: Sequence[str]) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=0)


def _run_rules(
    request: Request,
    rules: Sequence[Rule],
    project: Project,
    faults: list[Fault],
    progress: Progress,
) -> Iterator[Finding]:
    modules = [(path, it) for path, it in project.modules.items() if request.shows(path)]
    texts = [(path, it) for path, it in project.texts.items() if request.shows(path)]
    total = len(rules) * len(modules) + 1
    for number, rule in enumerate(rules):
        for finding in _guarded(rule, request.settings.root, rule.check_project(project), faults):
            if request.shows(finding.path):
                yield finding
        for at, (path, module) in enumerate(modules):
            progress(f"{rule.code} {path.name}", number * len(modules) + at, total)
            yield from _guarded(rule, path, rule.check(module, project), faults)
        for path, source in texts:
            yield from _guarded(rule, path, rule.check_text(source, project), faults)


def _guarded(
    rule: Rule, path: Path, findings: Iterator[Finding], faults: list[Fault]
) -> Iterator[Finding]:
    """The findings of a rule; if it fails, those before it did, and a fault."""
    try:
        yield from findings
    except RecursionError:
        raise  # a matter of the file, see `analyse`
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        faults.append(
            Fault(
                rule.code,
                path,
                f"{type(error).__name__}: {error} ({where})",
                "".join(traceback.format_exception(error)),
            )
        )


def _heed_comments(
    findings: Sequence[Finding],
    request: Request,
    project: Project,
    enabled: Sequence[Rule],
    faults: list[Fault],
) -> tuple[list[Finding], list[Finding]]:
    """What suppressions leave of `findings`, with findings about idle ones; what they took."""
    by_path: dict[Path, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
    sources = {path: (module.source, True) for path, module in project.modules.items()}
    sources |= {path: (source, False) for path, source in project.texts.items()}
    watchers = [rule for rule in enabled if isinstance(rule, SuppressionRule)]
    codes = {rule.code for rule in enabled}
    ran = frozenset(codes - {rule.code for rule in watchers})
    known = frozenset(rule.code for rule in request.rules)
    complete = all(rule.code in codes for rule in request.rules if rule.enabled)
    kept: list[Finding] = []
    taken: list[Finding] = []
    for path in filter(request.shows, dict.fromkeys((*sources, *by_path))):
        here = by_path[path]
        if path not in sources:  # a file that could not be read has no comments to heed
            kept += here
            continue
        source, python = sources[path]
        if not (here or may_be_idle(source, known)):
            continue
        directives = read_directives(source, python=python)
        shown, hidden = _split(here, directives)
        places = [
            (finding.source.position(finding.span.start)[0], finding.code) for finding in hidden
        ]
        unused = list(
            unused_directives(directives, places, ran=ran, known=known, complete=complete)
        )
        for rule in watchers if unused else ():
            about = _guarded(rule, path, rule.check_suppressions(source, unused), faults)
            # An idle `ignore-file` must not hide that it is idle.
            effective = directives if hidden else [d for d in directives if not d.whole_file]
            shown_about, hidden_about = _split(list(about), effective)
            shown += shown_about
            hidden += hidden_about
        kept += shown
        taken += hidden
    return kept, taken


def _split(
    findings: Sequence[Finding], directives: Sequence[Directive]
) -> tuple[list[Finding], list[Finding]]:
    """The findings that no directive covers, and those that one does."""
    kept: list[Finding] = []
    hidden: list[Finding] = []
    everywhere = [directive for directive in directives if directive.whole_file]
    by_line: dict[int, list[Directive]] = defaultdict(list)
    for directive in directives:
        for at in () if directive.whole_file else directive.lines:
            by_line[at].append(directive)
    for finding in findings:
        line, _ = finding.source.position(finding.span.start)
        near = (*everywhere, *by_line.get(line, ()))
        if any(directive.covers(line, finding.code) for directive in near):
            hidden.append(finding)
        else:
            kept.append(finding)
    return kept, hidden


def _per_file_ignores(settings: Settings) -> Callable[[Finding], bool]:
    """Whether the settings leave out a finding in its file."""
    ignores = [
        (matcher([glob], settings.base), codes) for glob, codes in settings.per_file_ignores.items()
    ]
    return lambda finding: any(
        finding.code.startswith(codes) and means(finding.path) for means, codes in ignores
    )


def _order(finding: Finding) -> tuple[str, int, int, str, str]:
    return (
        str(finding.path),
        finding.span.start,
        finding.span.end,
        finding.code,
        finding.message,
    )
