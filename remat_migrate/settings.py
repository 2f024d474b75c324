"""The settings in `[tool.remat-migrate]` of pyproject.toml."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from .errors import SettingsError
from .text.regular_files import read_regular
from .text.source_file import MAX_BYTES

NEWEST_JAX = (0, 12, 0)

Severity = Literal["note", "warning", "error"]
# From least to most severe.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

_TABLE = "tool.remat-migrate"
_CODE = re.compile(r"[A-Z]+[0-9]*")
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_VERIFY_KEYS = (
    "cases",
    "command",
    "python",
    "baseline-python",
    "tolerance",
    "timeout",
    "command-timeout",
    "project-tests",
    "test-budget",
    "memory",
    "platform",
)
_MEASURE_KEYS = (
    "target",
    "args",
    "grad",
    "argnums",
    "has-aux",
    "jit",
    "x64",
    "remat3",
    "compile",
    "device",
    "devices",
)


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
class Settings:
    """The settings of a run.

    Globs are gitignore patterns relative to the folder of `config`.

    Attributes:
        root: the project folder.
        config: the pyproject.toml that the settings come from, if any.
        select: prefixes of codes to enable; empty for every rule that is on by default.
        extend_select: prefixes of codes to enable in addition.
        ignore: prefixes of codes to disable; the longest matching prefix wins.
        per_file_ignores: prefixes of codes to hide, by glob.
        exclude: globs of files and folders to skip unless they are given explicitly.
        fail_on: the lowest severity that fails a run.
        jax_version: the JAX version to migrate to.
        max_file_size: larger files are not read, and reported as unreadable.
        baseline: the file of known findings.
        search_path: folders in which imported packages are looked up.
        wrappers: user-defined functions that apply a checkpoint.
        scans: user-defined functions that run a function in a loop.
        verify: the table `[tool.remat-migrate.verify]`.
        measure: the table `[tool.remat-migrate.measure]`.
    """

    root: Path = field(default_factory=Path.cwd)
    config: Path | None = None
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
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
        """Return the folder that globs are relative to."""
        return self.config.parent if self.config else self.root


@dataclass(frozen=True, slots=True)
class Options:
    """The command-line options for the analysis; empty values and None defer to the settings.

    `force_exclude` excludes files even if they are given explicitly.
    """

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    jax_version: str | None = None
    force_exclude: bool = False
    fail_on: Severity | None = None

    @property
    def chooses_rules(self) -> bool:
        """Whether the options decide which rules run, or what they report."""
        return bool(self.select or self.extend_select or self.ignore or self.jax_version)


def load_settings(root: Path, start: Path) -> Settings:
    """Return the settings for a file or folder of the project at `root`.

    They come from the nearest pyproject.toml at or above `start` that has a table
    `[tool.remat-migrate]`.

    Raises:
        SettingsError: the TOML is invalid, a key unknown, or a value of the wrong type.
    """
    for folder in (start, *start.parents):
        config = folder / "pyproject.toml"
        table = _read_table(config)
        if table is not None:
            return _from_table(table, config, root)
    return Settings(root=root)


def with_options(settings: Settings, options: Options) -> Settings:
    """Override settings with options from the command line.

    `select` replaces every choice of rules in the settings; `extend_select` and `ignore` add to it.

    Raises:
        SettingsError: an option is not a valid code or version.
    """
    if options.select:
        settings = replace(settings, select=(), extend_select=(), ignore=())
    version = options.jax_version
    return replace(
        settings,
        select=_codes(options.select, "--select") or settings.select,
        extend_select=settings.extend_select + _codes(options.extend_select, "--extend-select"),
        ignore=settings.ignore + _codes(options.ignore, "--ignore"),
        jax_version=_version(version, "--jax-version") if version else settings.jax_version,
        fail_on=options.fail_on or settings.fail_on,
    )


def fails_run(severity: Severity, fail_on: Severity) -> bool:
    """Return whether a finding of this severity fails a run."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(fail_on)


def check_codes(settings: Settings, known: Iterable[str]) -> None:
    """Check that every code in the settings is a prefix of a known one.

    Raises:
        SettingsError: one is not.
    """
    codes = sorted(known)
    named = {
        "select": settings.select,
        "extend-select": settings.extend_select,
        "ignore": settings.ignore,
        "per-file-ignores": [c for codes in settings.per_file_ignores.values() for c in codes],
    }
    for key, prefixes in named.items():
        for prefix in prefixes:
            if not any(code.startswith(prefix) for code in codes):
                hint = did_you_mean(prefix, codes) if prefix[-3:].isdecimal() else ""
                raise SettingsError(
                    f"{key}: no rule code starts with {prefix}{hint};"
                    " run `remat-migrate rules` to list all rules"
                )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?` for the closest known word, or nothing."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _read_table(config: Path) -> dict[str, object] | None:
    """Return the settings table of a pyproject.toml; None without file or table."""
    try:
        data = read_regular(config)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SettingsError(f"{config}: cannot be read: {error.strerror or error}") from error
    # Skip parsing, and errors, in the many files that have no settings for this tool.
    if b"remat-migrate" not in data:
        return None
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise SettingsError(f"{config}: is not valid UTF-8: {error}") from error
    except ValueError as error:  # also of numbers with thousands of digits
        raise SettingsError(f"{config}: is not valid TOML: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{config}: is nested too deeply") from error
    tools = document.get("tool", {})
    if not isinstance(tools, dict) or "remat-migrate" not in tools:
        return None
    return _Key(config, _TABLE).table(tools["remat-migrate"])


def _from_table(table: Mapping[str, object], config: Path, root: Path) -> Settings:
    readers: dict[str, Callable[[_Key, object], object]] = {
        "select": _Key.codes,
        "extend-select": _Key.codes,
        "ignore": _Key.codes,
        "per-file-ignores": lambda key, value: {
            glob: key.within(glob).codes(codes) for glob, codes in key.table(value).items()
        },
        "exclude": _Key.strings,
        "fail-on": _Key.severity,
        "jax-version": _Key.version,
        "max-file-size": _Key.count,
        "baseline": _Key.file,
        "search-path": _Key.folders,
        "wrappers": _Key.wrappers,
        "scans": _Key.wrappers,
        "verify": lambda key, value: key.table(value, _VERIFY_KEYS),
        "measure": lambda key, value: key.table(value, _MEASURE_KEYS),
    }
    _Key(config, _TABLE).table(table, readers)
    values = {
        name.replace("-", "_"): readers[name](_Key(config, f"{_TABLE}.{name}"), value)
        for name, value in table.items()
    }
    return replace(Settings(root=root, config=config), **values)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Key:
    """A key in the settings, with parsers for its value."""

    config: Path
    name: str

    def within(self, name: str) -> _Key:
        """Return a key of the table at this key."""
        return _Key(self.config, f"{self.name}.{name}")

    def error(self, expected: str, value: object) -> SettingsError:
        """Return the error for a value of the wrong type."""
        kinds = {
            bool: "a boolean",
            str: "a string",
            int: "an integer",
            float: "a float",
            list: "an array",
            dict: "a table",
        }
        kind = kinds.get(type(value), f"a {type(value).__name__}")
        shown = "" if isinstance(value, dict | list) else f" {value!r}"
        return SettingsError(f"{self.config}: {self.name}: expected {expected}, got {kind}{shown}")

    def table(self, value: object, known: Iterable[str] | None = None) -> dict[str, object]:
        """Parse a table and check its keys."""
        if not isinstance(value, dict):
            raise self.error("a table", value)
        if known is not None:
            names = list(known)
            for name in value:
                if name not in names:
                    raise SettingsError(
                        f"{self.config}: unknown key {self.name}.{name}"
                        + (did_you_mean(name, names) or f"; known keys: {', '.join(names)}")
                    )
        return value

    def strings(self, value: object) -> tuple[str, ...]:
        """Parse an array of strings."""
        if not isinstance(value, list):
            raise self.error("an array of strings", value)
        for item in value:
            if not isinstance(item, str):
                raise self.error("an array of strings", item)
        return tuple(value)

    def codes(self, value: object) -> tuple[str, ...]:
        """Parse an array of codes or prefixes of codes."""
        return _codes(self.strings(value), f"{self.config}: {self.name}")

    def version(self, value: object) -> tuple[int, ...]:
        """Parse a version."""
        if not isinstance(value, str):
            raise self.error('a version such as "0.12.0"', value)
        return _version(value, f"{self.config}: {self.name}")

    def severity(self, value: object) -> Severity:
        """Parse a severity."""
        for severity in SEVERITIES:
            if value == severity:
                return severity
        raise self.error('"note", "warning" or "error"', value)

    def count(self, value: object) -> int:
        """Parse a number that is not negative."""
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.error("a non-negative integer", value)
        return value

    def file(self, value: object) -> Path:
        """Parse a file name, relative to the folder of the settings."""
        if not isinstance(value, str) or not value:
            raise self.error("a file name", value)
        return self.config.parent / Path(value).expanduser()

    def folders(self, value: object) -> tuple[Path, ...]:
        """Parse an array of folders or globs, relative to the folder of the settings."""
        base = self.config.parent
        folders: list[Path] = []
        for text in self.strings(value):
            folder = Path(text).expanduser()
            if not any(letter in text for letter in "*?["):
                folders.append(base / folder)
            elif folder.is_absolute():
                folders += sorted(Path(folder.anchor).glob(str(folder.relative_to(folder.anchor))))
            else:
                folders += sorted(base.glob(str(folder)))
        return tuple(folders)

    def wrappers(self, value: object) -> tuple[Wrapper, ...]:
        """Parse a table from qualified names to library functions."""
        return tuple(
            self.within(name).wrapper(name, entry) for name, entry in self.table(value).items()
        )

    def wrapper(self, name: str, value: object) -> Wrapper:
        """Parse the name of a library function, or a table with `like`."""
        if isinstance(value, dict):
            # In TOML, an unquoted `a.b = "jax.checkpoint"` means a nested table.
            if "like" not in value and value:
                raise SettingsError(
                    f'{self.config}: {self.name}: quote the dotted name: "{name}.…" = …'
                )
            value = self.table(value, ["like"]).get("like")
        if not isinstance(value, str):
            raise self.error('a JAX function name or {like = "…"}', value)
        for text in (name, value):
            if not _DOTTED.fullmatch(text):
                raise SettingsError(
                    f"{self.config}: {self.name}: {text!r} is not a dotted Python name"
                )
        return Wrapper(name, value)


def _codes(texts: Iterable[str], where: str) -> tuple[str, ...]:
    codes = tuple(text.strip().upper() for text in texts)
    for code in codes:
        if not _CODE.fullmatch(code):
            raise SettingsError(f"{where}: {code!r} is not a rule code or prefix, such as RMT101")
    return codes


def _version(text: str, where: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(\.\d+)+", text.strip()):
        raise SettingsError(f"{where}: {text!r} is not a JAX version, such as 0.12.0")
    return tuple(int(part) for part in text.strip().split("."))
