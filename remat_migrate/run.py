"""One run of the tool up to its analysis: paths and options to a request."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .discover import Targets, context_files, discover, find_root, is_python
from .engine import Request, load_rules
from .errors import UsageError
from .globs import matcher
from .rule import Rule
from .settings import Settings, check_codes, load_settings, with_options
from .source import SourceFile, read_source

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says about the analysis; empty and None leave it to the settings."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    jax_version: str | None = None
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A request, with the text that came by standard input if one did."""

    request: Request
    overlay: dict[Path, SourceFile] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """How many files are looked at."""
        return len(self.request.targets.python) + len(self.request.targets.texts)


def prepare(paths: Sequence[Path], options: Options) -> Run:
    """The run over the files below `paths`, the current folder without any.

    Raises:
        UsageError: a path does not exist.
        SettingsError: the settings or the options are wrong.
        PluginError: the rules cannot be loaded.
    """
    paths = paths or [Path.cwd()]
    settings, rules = _settings(paths, options)
    targets = discover(paths, settings)
    context = context_files(settings.root, targets) if targets.python else ()
    return Run(Request(settings, targets, context, rules))


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
    settings, rules = _settings([path], options)
    script = data.startswith(b"#!") and b"python" in data.partition(b"\n")[0]
    python = is_python(path) or script
    if matcher(settings.exclude, settings.base)(path):
        targets = Targets((), ())
    elif python:
        targets = Targets((path,), ())
    else:
        targets = Targets((), (path,))
    context = context_files(settings.root, targets) if targets.python else ()
    source = read_source(path, data, python=python)
    return Run(Request(settings, targets, context, rules), {path: source})


def _settings(paths: Sequence[Path], options: Options) -> tuple[Settings, tuple[Rule, ...]]:
    start = Path(os.path.realpath(paths[0]))
    settings = with_options(
        load_settings(find_root(paths), start),
        select=options.select,
        extend_select=options.extend_select,
        ignore=options.ignore,
        jax_version=options.jax_version,
        jobs=options.jobs,
    )
    rules = load_rules()
    check_codes(settings, (rule.code for rule in rules))
    return settings, rules
