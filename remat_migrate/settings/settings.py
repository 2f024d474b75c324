"""What can be set, and how the command line overrides it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from ..errors import SettingsError
from ..text.regular_files import MAX_BYTES

NEWEST_JAX = (0, 12, 0)

Severity = Literal["note", "warning", "error"]
# From least to most severe.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


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
    exclude: Globs | None = None
    fail_on: Severity = "warning"
    jax_version: tuple[int, ...] = NEWEST_JAX
    max_file_size: int = MAX_BYTES >> 20
    baseline: Path | None = None
    search_path: tuple[Path, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    scans: tuple[Wrapper, ...] = ()
    verify: Mapping[str, Any] = field(default_factory=dict)
    measure: Mapping[str, Any] = field(default_factory=dict)

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
    def table(self) -> dict[str, object]:
        """The options that override single settings, as a table of these."""
        table = {
            "select": list(self.select),
            "extend-select": list(self.extend_select),
            "ignore": list(self.ignore),
            "exclude": list(self.exclude),
            "jax-version": self.jax_version,
            "fail-on": self.fail_on,
        }
        return {key: value for key, value in table.items() if value}

    @property
    def chooses_rules(self) -> bool:
        """Whether the options may decide which rules run, or what they report."""
        return bool(self.config or self.overrides or self.table.keys() - {"exclude", "fail-on"})


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
