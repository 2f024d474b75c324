"""One run of the tool up to its analysis: paths and options to a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.libraries.apis import APIS, ApiTable
from ..analysis.libraries.transforms import LOOPS
from ..analysis.needs.need import Learned
from ..discovery.discover import Targets, context_files, discover, is_python
from ..discovery.globs import matcher
from ..discovery.survey import Options, Survey, chosen_settings, survey
from ..errors import SettingsError, UsageError
from ..rule import Finding, Rule, Safety
from ..settings import Settings, check_codes, did_you_mean
from ..text import SourceFile, read_source
from .analyse import Analysis, Hidden, Request, analyse, enabled_rules, load_rules
from .baseline import Baseline, Comparison, Coverage, Sieve, compared
from .progress import Progress, silent

if TYPE_CHECKING:
    from .apply import Outcome

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Run:
    """A request, with what is beside it.

    Attributes:
        request: what is to be analysed.
        overlay: the text that came by standard input, if one did.
        folders: those that were named, or the current one.
        baseline: findings that are known, and neither reported nor mended.
        progress: is told how far an analysis is.
    """

    request: Request
    overlay: dict[Path, SourceFile] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    baseline: Baseline | None = None
    progress: Progress = silent

    @property
    def targets(self) -> frozenset[Path]:
        """The files to look at, and to fix."""
        return frozenset((*self.request.targets.python, *self.request.targets.texts))

    def showing(self, paths: frozenset[Path]) -> Run:
        """The same run for the findings of some of its files."""
        return replace(self, request=replace(self.request, shown=paths))

    @property
    def files(self) -> int:
        """How many files are looked at."""
        return len(self.targets)


def prepare(paths: Sequence[Path], options: Options) -> Run:
    """The run over the files below `paths`, the current folder without any.

    Raises:
        UsageError: a path does not exist.
        SettingsError: the settings or the options are wrong.
        PluginError: the rules cannot be loaded.
    """
    return prepare_surveyed(survey(paths, options))


def prepare_surveyed(about: Survey) -> Run:
    """The run over what a survey has found.

    Raises:
        SettingsError: the settings name what there is not.
        PluginError: the rules cannot be loaded.
    """
    rules = _rules(about.settings)
    targets, context = about.as_paths()
    return Run(Request(about.settings, targets, context, rules), folders=about.folders)


def prepare_text(data: bytes, filename: Path, options: Options) -> Run:
    """The run over one text that is to be seen as the file `filename`, which need not exist.

    Raises:
        SourceError: the text cannot be decoded.
        SettingsError: the settings or the options are wrong.
        PluginError: the rules cannot be loaded.
    """
    path = filename.resolve()
    if path.is_dir():
        raise UsageError(f"--stdin-filename: {filename} is a folder")
    settings = chosen_settings([path], options)
    rules = _rules(settings)
    script = data.startswith(b"#!") and b"python" in data.partition(b"\n")[0]
    python = is_python(path, data) or script
    if matcher(settings.exclude, settings.base)(path):
        targets = Targets((), ())
    elif python:
        targets = Targets((path,), ())
    else:
        targets = Targets((), (path,))
    context = context_files(settings.root, targets) if targets.python else ()
    source = read_source(path, data, python=python)
    return Run(Request(settings, targets, context, rules), {path: source})


def prepare_open(root: Path | None, opened: Mapping[Path, bool], options: Options) -> Run:
    """The run over a project, for the findings of its files that are open in an editor.

    Args:
        root: the project's folder; None for files that belong to no project.
        opened: the open files, which need not exist, and whether each is Python.
        options: as on the command line.

    Raises:
        SettingsError: the settings or the options are wrong.
        PluginError: the rules cannot be loaded.
    """
    settings = chosen_settings([root] if root else list(opened), options)
    rules = _rules(settings)
    found = discover([root], settings) if root else Targets((), ())
    excluded = matcher(settings.exclude, settings.base)
    wanted = {path: python for path, python in opened.items() if not excluded(path)}
    python = {path for path, is_it in wanted.items() if is_it}
    texts = wanted.keys() - python
    targets = Targets(
        tuple(sorted({*found.python, *python} - texts)),
        tuple(sorted({*found.texts, *texts} - python)),
    )
    context = context_files(settings.root, targets) if root else targets.python
    return Run(Request(settings, targets, context, rules, shown=frozenset(wanted)))


def look(run: Run) -> Analysis:
    """What the rules find; what the baseline knows is hidden."""
    return known_hidden(run, analyse(run.request, run.overlay, progress=run.progress))


def known_hidden(run: Run, analysis: Analysis) -> Analysis:
    """An analysis in which what the run's baseline knows is hidden."""
    return _sifted(analysis, Sieve(run.baseline)) if run.baseline else analysis


def compare(run: Run, analysis: Analysis) -> Comparison | None:
    """What the baseline says of an analysis; None without one."""
    if run.baseline is None:
        return None
    known = [hidden.finding for hidden in analysis.hidden if hidden.by == "baseline"]
    return compared(run.baseline, known, coverage(run, analysis))


def coverage(run: Run, analysis: Analysis) -> Coverage:
    """What an analysis says something about: nothing about files that could not be read."""
    unread = {error.path for error in analysis.project.errors}
    failed = {fault.code for fault in analysis.faults}
    codes = {rule.code for rule in enabled_rules(run.request.rules, run.request.settings)}
    return Coverage(run.targets - unread, run.folders, frozenset(codes - failed))


def mend(
    run: Run,
    *,
    unsafe: bool,
    withheld: Callable[[Finding], bool] = lambda finding: False,
    learned: frozenset[Learned] = frozenset(),
    previous: Analysis | None = None,
) -> Outcome[Analysis]:
    """What the fixes make of the targets, in memory.

    Args:
        run: the run.
        unsafe: whether fixes that are not safe are made, too.
        withheld: whether the fix of a finding must not be made.
        learned: what running the code has shown that Python needs.
        previous: an earlier analysis, for what it has read.
    """
    # Only fixes need what follows.
    from ..text.atomic import write_obstacle
    from .apply import fix_to_fixed_point

    last = previous
    request = replace(run.request, learned=learned)
    sieve = Sieve(run.baseline) if run.baseline else None

    def analyse_again(texts: Mapping[Path, SourceFile]) -> Analysis:
        nonlocal last
        last = analyse(request, {**run.overlay, **texts}, last, run.progress)
        return _sifted(last, sieve) if sieve else last

    return fix_to_fixed_point(
        analyse_again,
        frozenset({Safety.SAFE, Safety.UNSAFE} if unsafe else {Safety.SAFE}),
        lambda path: path in run.overlay or (path in run.targets and not write_obstacle(path)),
        lambda finding: withheld(finding) or (sieve is not None and sieve.spares(finding)),
    )


def _sifted(analysis: Analysis, sieve: Sieve) -> Analysis:
    new, known = sieve.part(analysis.findings)
    hidden = (*analysis.hidden, *(Hidden(finding, "baseline") for finding in known))
    return replace(analysis, findings=new, hidden=hidden)


def _rules(settings: Settings) -> tuple[Rule, ...]:
    """The rules that are installed, once it is known that all that settings name is there."""
    rules = load_rules()
    check_codes(settings, (rule.code for rule in rules))
    _check_wrappers(settings)
    return rules


def _check_wrappers(settings: Settings) -> None:
    """Insist that the settings' wrappers and scans are like functions that there are."""
    for wrapper in settings.wrappers:
        if ApiTable().find(wrapper.like) is None:
            raise SettingsError(
                f"{settings.config}: tool.remat-migrate.wrappers.{wrapper.name}: no checkpoint of"
                f" a library is called {wrapper.like}{did_you_mean(wrapper.like, APIS)}"
            )
    for scan in settings.scans:
        if scan.like not in LOOPS:
            raise SettingsError(
                f"{settings.config}: tool.remat-migrate.scans.{scan.name}: no loop of a library is"
                f" called {scan.like}{did_you_mean(scan.like, LOOPS)}"
            )
