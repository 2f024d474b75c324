"""What can be set, and how the command line overrides it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from ..errors import SettingsError
from ..text.regular_files import MAX_BYTES

NEWEST_JAX = (0, 12, 0)

Severity = Literal["note", "warning", "error"]
# From least to most severe.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

_CODE = re.compile(r"[A-Z]+[0-9]*")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A user-defined function that behaves like a library function.

    Attributes:
        name: its qualified name, such as `mypkg.layers.maybe_remat`.
        like: the library function with the same signature: an Api or a loop.
    """

    name: str
    like: str = "jax.checkpoint"


@dataclass(frozen=True, slots=True)
class Globs:
    """Gitignore patterns, and the folder that they are relative to."""

    base: Path
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PerFileIgnore:
    """Prefixes of codes to hide in the files that a gitignore pattern matches."""

    base: Path
    glob: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a folder, or of a run.

    Attributes:
        root: the project folder.
        config: the pyproject.toml that the settings come from, if any.

    `keys` says what the others are.
    """

    root: Path = field(default_factory=Path.cwd)
    config: Path | None = None
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[PerFileIgnore, ...] = ()
    exclude: tuple[Globs, ...] = ()
    fail_on: Severity = "warning"
    jax_version: tuple[int, ...] = NEWEST_JAX
    max_file_size: int = MAX_BYTES >> 20
    baseline: Path | None = None
    search_path: tuple[Path, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    scans: tuple[Wrapper, ...] = ()
    verify: Mapping[str, object] = field(default_factory=dict)
    measure: Mapping[str, object] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        """Return the folder that paths in `verify` and `measure` are relative to."""
        return self.config.parent if self.config else self.root

    @property
    def origin(self) -> str:
        """Return the name of the file of the settings, for messages."""
        return str(self.config or "--config")


@dataclass(frozen=True, slots=True)
class Options:
    """The command-line options for the analysis; empty values and None defer to the settings.

    Attributes:
        select, extend_select, ignore, jax_version, fail_on: as in the settings.
        force_exclude: exclude files even if they are given explicitly.
        exclude: patterns that replace those in the settings, relative to the current folder.
        config: the file that replaces all other settings.
        overrides: TOML documents that override settings.
    """

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    jax_version: str | None = None
    force_exclude: bool = False
    fail_on: Severity | None = None
    exclude: tuple[str, ...] = ()
    config: Path | None = None
    overrides: tuple[str, ...] = ()

    @property
    def chooses_rules(self) -> bool:
        """Whether the options may decide which rules run, or what they report."""
        return bool(
            self.select
            or self.extend_select
            or self.ignore
            or self.jax_version
            or self.config
            or self.overrides
        )


def with_options(settings: Settings, options: Options) -> Settings:
    """Override settings with options from the command line.

    `select` replaces every choice of rules in the settings; `extend_select` and `ignore` add to it.

    Raises:
        SettingsError: an option is not a valid code or version.
    """
    if options.select:
        settings = replace(settings, select=(), extend_select=(), ignore=())
    version = options.jax_version
    exclude = settings.exclude
    if options.exclude:
        exclude = (Globs(Path.cwd(), options.exclude),)
    return replace(
        settings,
        select=codes(options.select, "--select") or settings.select,
        extend_select=settings.extend_select + codes(options.extend_select, "--extend-select"),
        ignore=settings.ignore + codes(options.ignore, "--ignore"),
        jax_version=parse_version(version, "--jax-version") if version else settings.jax_version,
        fail_on=options.fail_on or settings.fail_on,
        exclude=exclude,
    )


def fails_run(severity: Severity, fail_on: Severity) -> bool:
    """Return whether a finding of this severity fails a run."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(fail_on)


def check_codes(settings: Settings, known: Iterable[str]) -> None:
    """Check that every code in the settings is a prefix of a known one.

    Raises:
        SettingsError: one is not.
    """
    named = {
        "select": settings.select,
        "extend-select": settings.extend_select,
        "ignore": settings.ignore,
        "per-file-ignores": [code for one in settings.per_file_ignores for code in one.codes],
    }
    rules = sorted(known)
    for key, prefixes in named.items():
        check_known(key, prefixes, rules)


def check_known(name: str, prefixes: Iterable[str], rules: Sequence[str]) -> None:
    """Check that each prefix is one of a rule's code; `name` says where it stands.

    Raises:
        SettingsError: one is not.
    """
    for prefix in prefixes:
        if not any(rule.startswith(prefix) for rule in rules):
            hint = did_you_mean(prefix, rules) if prefix[-3:].isdecimal() else ""
            hint = hint or "; see `remat-migrate rules`"
            raise SettingsError(f"{name}: no rule code starts with {prefix}{hint}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?` for the closest known word, or nothing."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def codes(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """Return codes or prefixes of codes in upper case.

    Raises:
        SettingsError: one is neither.
    """
    found = tuple(text.strip().upper() for text in texts)
    for code in found:
        if not _CODE.fullmatch(code):
            raise SettingsError(f"{where}: {code!r} is not a rule code or prefix, such as RMT101")
    return found


def parse_version(text: str, where: str) -> tuple[int, ...]:
    """Return the numbers of a version.

    Raises:
        SettingsError: it is not one.
    """
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+", text.strip()):
        raise SettingsError(f"{where}: {text!r} is not a JAX version, such as 0.12.0")
    return tuple(int(part) for part in text.strip().split("."))
