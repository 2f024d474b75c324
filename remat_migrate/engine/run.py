"""A run: paths and options from the command line or an editor, turned into what is analysed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..discovery.discover import (
    Survey,
    Targets,
    context_files,
    discover,
    is_excluded,
    nearest_settings,
    survey,
)
from ..discovery.file_kinds import is_python
from ..discovery.globs import matcher
from ..errors import SettingsError, UsageError
from ..libraries.apis import APIS, ApiTable
from ..libraries.transforms import LOOPS
from ..rule import Finding, Rule
from ..settings import NearestSettings, Options, Settings
from ..settings.settings import check_codes, did_you_mean, fails_run
from ..text import SourceFile, read_source
from .baseline import Baseline
from .rules import enabled_rules, load_rules

# Takes the current step's description, the steps done, and the total number of steps.
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Run:
    """What to analyse.

    Attributes:
        settings: the settings of the run.
        nearest: the settings of each file.
        targets: the files to check and, on request, fix.
        context: further Python files, which are only read. They are analysed like the targets, so
            that fixes do not depend on which files are named.
        rules: every loaded rule; the settings enable some of them.
        shown: the targets whose findings are reported; None for all of them.
        overlay: texts that replace what is on disk: stdin, open documents.
        folders: the folders on the command line, or the current one.
        baseline: known findings, which are neither reported nor fixed.
        ignores_comments: whether findings that comments suppress are reported, too.
        progress: receives the progress of analyses.
    """

    settings: Settings
    nearest: NearestSettings
    targets: Targets
    context: tuple[Path, ...]
    rules: tuple[Rule, ...]
    shown: frozenset[Path] | None = None
    overlay: Mapping[Path, SourceFile] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    baseline: Baseline | None = None
    ignores_comments: bool = False
    progress: Progress = silent

    @property
    def files(self) -> frozenset[Path]:
        """The files to check, of all kinds."""
        return frozenset((*self.targets.python, *self.targets.texts))

    @property
    def enabled_rules(self) -> tuple[Rule, ...]:
        """The rules that the settings enable for some file."""
        enabled = {rule for one in self.nearest.every for rule in enabled_rules(self.rules, one)}
        return tuple(rule for rule in self.rules if rule in enabled)

    def fails(self, finding: Finding) -> bool:
        """Return whether a finding fails the run."""
        return fails_run(finding.severity, self.nearest.of(finding.path).fail_on)

    @property
    def reported(self) -> frozenset[Path]:
        """The files whose findings are reported."""
        return self.files if self.shown is None else self.shown


def prepare(paths: Sequence[Path], options: Options, about: Survey | None = None) -> Run:
    """Return a run over the files under `paths`, by default the current folder.

    `about` is a survey of these files, if there is one.

    Raises:
        UsageError: a path does not exist.
        SettingsError: the settings or the options are invalid, or name an unknown rule or function.
        PluginError: the rules cannot be loaded.
    """
    about = about or survey(paths, options)
    return Run(
        about.settings,
        about.nearest,
        about.targets,
        about.context,
        _rules(about.nearest),
        folders=about.folders,
    )


def prepare_stdin(data: bytes, filename: Path, options: Options) -> Run:
    """Return a run over `data` as the content of `filename`, which need not exist.

    Raises:
        SourceError: the data cannot be decoded.
        SettingsError, PluginError: see `prepare`.
    """
    path = filename.resolve()
    if path.is_dir():
        raise UsageError(f"--stdin-filename: {filename} is a folder")
    python = is_python(path, data)
    run = prepare_open(None, {path: python}, options)
    return replace(run, overlay={path: read_source(path, data, python=python)})


def prepare_open(root: Path | None, opened: Mapping[Path, bool], options: Options) -> Run:
    """Return a run over a project, restricted to the files that are open in an editor.

    Args:
        root: the project folder, all of which is checked; None to check the files alone.
        opened: the open files, which need not exist, and whether each is Python.
        options: as on the command line.

    Raises:
        SettingsError, PluginError: see `prepare`.
    """
    nearest = nearest_settings([root] if root else list(opened), options)
    found = discover([root], nearest) if root else Targets((), ())
    nearest.read({str(path.parent) for path in opened})
    rules = _rules(nearest)
    settings = nearest.of_run()
    wanted = {path: is_py for path, is_py in opened.items() if not is_excluded(nearest, path)}
    python = {path for path, is_py in wanted.items() if is_py}
    texts = wanted.keys() - python
    targets = Targets(
        tuple(sorted({*found.python, *python} - texts)),
        tuple(sorted({*found.texts, *texts} - python)),
    )
    context = context_files(settings.root, targets) if targets.python else ()
    return Run(settings, nearest, targets, context, rules, shown=frozenset(wanted))


def _rules(nearest: NearestSettings) -> tuple[Rule, ...]:
    """Load the rules and check that every rule and function in the settings exists."""
    rules = load_rules()
    for settings in nearest.every:
        check_codes(settings, (rule.code for rule in rules))
        for one in settings.per_file_ignores:
            matcher((one.glob,), one.base)  # raises if it is not a pattern
        _check_functions(settings)
    return rules


def _check_functions(settings: Settings) -> None:
    wrong = [("wrappers", one) for one in settings.wrappers if not ApiTable().find(one.like)]
    wrong += [("scans", one) for one in settings.scans if one.like not in LOOPS]
    for key, one in wrong:
        kind, known = ("checkpoint", [*APIS]) if key == "wrappers" else ("loop", [*LOOPS])
        raise SettingsError(
            f"{settings.origin}: tool.remat-migrate.{key}.{one.name}: unknown {kind} function"
            f" {one.like}{did_you_mean(one.like, known)}"
        )
