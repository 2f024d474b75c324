"""Settings: `[tool.remat-migrate]` of pyproject.toml as one frozen value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from .errors import SettingsError
from .text.atomic import read_regular

NEWEST_JAX = (0, 12, 0)

Severity = Literal["note", "warning", "error"]
# The least severe first.
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
)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A user's own function that is like one of a library, as named in the settings.

    `name` is the qualified name (`mypkg.layers.maybe_remat`), `like` the function whose options
    and order of arguments it follows: an Api, or a loop.
    """

    name: str
    like: str = "jax.checkpoint"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is asked to do.

    Attributes:
        root: the project's folder.
        config: the pyproject.toml that the settings come from, None without one.
        select: prefixes of codes (`RMT1`); empty: every rule that is on by default.
        extend_select: prefixes of codes to add to `select`.
        ignore: prefixes of codes to leave out; of two that match, the longer one decides.
        per_file_ignores: glob of files to prefixes of codes that are not reported there.
        exclude: globs of files and folders to pass by, unless named directly.
        fail_on: the least severity of findings that fail a run.
        jax_version: the JAX that the code shall run under afterwards.
        jobs: processes to use, 0 for as many as there are cores.
        baseline: the file of findings that are known.
        search_path: folders where imported packages are looked up.
        wrappers: the user's own functions that apply a checkpoint.
        scans: the user's own functions that run a function in a loop.
        verify: `[tool.remat-migrate.verify]` as it stands.
        measure: `[tool.remat-migrate.measure]` as it stands.

    Globs are gitignore patterns relative to the folder of `config`.
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
    jobs: int = 0
    baseline: Path | None = None
    search_path: tuple[Path, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    scans: tuple[Wrapper, ...] = ()
    verify: Mapping[str, object] = field(default_factory=dict)
    measure: Mapping[str, object] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        """The folder that globs are relative to."""
        return self.config.parent if self.config else self.root


def load_settings(root: Path, start: Path) -> Settings:
    """The settings that hold for `start`, a file or folder of the project at `root`.

    They come from the nearest pyproject.toml at or above `start` that has a table
    `[tool.remat-migrate]`; defaults without one.

    Raises:
        SettingsError: invalid TOML, an unknown key, a value of the wrong type.
    """
    for folder in (start, *start.parents):
        config = folder / "pyproject.toml"
        table = _read_table(config)
        if table is not None:
            return _from_table(table, config, root)
    return Settings(root=root)


def with_options(
    settings: Settings,
    *,
    select: tuple[str, ...] = (),
    extend_select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    jax_version: str | None = None,
    jobs: int | None = None,
    fail_on: Severity | None = None,
) -> Settings:
    """`settings` with what the command line says.

    `select` sets aside every choice of codes in the settings; `extend_select` and `ignore` add.

    Raises:
        SettingsError: something is not a code or a version.
    """
    if select:
        settings = replace(settings, select=(), extend_select=(), ignore=())
    return replace(
        settings,
        select=tuple(_code(c, "--select") for c in select) or settings.select,
        extend_select=(
            *settings.extend_select,
            *(_code(c, "--extend-select") for c in extend_select),
        ),
        ignore=(*settings.ignore, *(_code(c, "--ignore") for c in ignore)),
        jax_version=(
            _version(jax_version, "--jax-version") if jax_version else settings.jax_version
        ),
        jobs=settings.jobs if jobs is None else jobs,
        fail_on=fail_on or settings.fail_on,
    )


def fails_run(severity: Severity, fail_on: Severity) -> bool:
    """Whether a finding of this severity fails a run."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(fail_on)


def check_codes(settings: Settings, known: Iterable[str]) -> None:
    """Insist that every code that the settings name is a prefix of one of `known`.

    Raises:
        SettingsError: one is not, with the nearest code that is.
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
                raise SettingsError(
                    f"{key}: no rule has the code {prefix}{did_you_mean(prefix, codes)}"
                    " (all of them: remat-migrate rules)"
                )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` with the word of `known` nearest to `word`, or nothing."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _read_table(config: Path) -> dict[str, object] | None:
    """The settings table of one pyproject.toml; None where there is no file or no table."""
    try:
        data = read_regular(config, linked=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SettingsError(f"{config}: cannot be read: {error.strerror or error}") from error
    # Most pyproject.toml have nothing for us: those are not parsed, and need not be valid.
    if b"remat-migrate" not in data:
        return None
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise SettingsError(f"{config}: is not UTF-8, as TOML must be: {error}") from error
    except tomllib.TOMLDecodeError as error:
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
        "jobs": _Key.count,
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
    """A place in the settings, and the ways to read the value that stands there."""

    config: Path
    name: str

    def within(self, name: str) -> _Key:
        """The key `name` of the table at this key."""
        return _Key(self.config, f"{self.name}.{name}")

    def wrong(self, expected: str, value: object) -> SettingsError:
        """The error that the value is not of the expected kind."""
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
        """A table, of which every key must be one of `known`."""
        if not isinstance(value, dict):
            raise self.wrong("a table", value)
        if known is not None:
            names = list(known)
            for name in value:
                if name not in names:
                    raise SettingsError(
                        f"{self.config}: unknown key {self.name}.{name}"
                        + (did_you_mean(name, names) or f"; known: {', '.join(names)}")
                    )
        return value

    def strings(self, value: object) -> tuple[str, ...]:
        """An array of strings."""
        if not isinstance(value, list):
            raise self.wrong("an array of strings", value)
        for item in value:
            if not isinstance(item, str):
                raise self.wrong("an array of strings", item)
        return tuple(value)

    def codes(self, value: object) -> tuple[str, ...]:
        """An array of codes or prefixes of codes."""
        return tuple(_code(code, f"{self.config}: {self.name}") for code in self.strings(value))

    def version(self, value: object) -> tuple[int, ...]:
        """A version, written as a string."""
        if not isinstance(value, str):
            raise self.wrong('a version such as "0.12.0"', value)
        return _version(value, f"{self.config}: {self.name}")

    def severity(self, value: object) -> Severity:
        """A severity."""
        for severity in SEVERITIES:
            if value == severity:
                return severity
        raise self.wrong('"note", "warning" or "error"', value)

    def count(self, value: object) -> int:
        """A number from 0."""
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong("a whole number from 0", value)
        return value

    def file(self, value: object) -> Path:
        """A file, relative to the settings' own folder."""
        if not isinstance(value, str) or not value:
            raise self.wrong("the name of a file", value)
        return self.config.parent / Path(value).expanduser()

    def folders(self, value: object) -> tuple[Path, ...]:
        """An array of folders, relative to the settings' own; one may be a glob."""
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
        """A table from qualified names to the Api that each is like."""
        return tuple(
            self.within(name).wrapper(name, entry) for name, entry in self.table(value).items()
        )

    def wrapper(self, name: str, value: object) -> Wrapper:
        """One wrapper: the name of an Api, or a table with `like`."""
        if isinstance(value, dict):
            # An unquoted `a.b = "jax.checkpoint"` is TOML for a table within a table.
            if "like" not in value and value:
                raise SettingsError(
                    f'{self.config}: {self.name}: write the dotted name in quotes: "{name}.…" = …'
                )
            value = self.table(value, ["like"]).get("like")
        if not isinstance(value, str):
            raise self.wrong('the name of a JAX function or {like = "…"}', value)
        for text in (name, value):
            if not _DOTTED.fullmatch(text):
                raise SettingsError(
                    f"{self.config}: {self.name}: {text!r} is not a dotted Python name"
                )
        return Wrapper(name, value)


def _code(text: str, where: str) -> str:
    code = text.strip().upper()
    if not _CODE.fullmatch(code):
        raise SettingsError(f"{where}: {text!r} is not a code or the start of one, such as RMT101")
    return code


def _version(text: str, where: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(\.\d+)+", text.strip()):
        raise SettingsError(f"{where}: {text!r} is not a JAX version such as 0.12.0")
    return tuple(int(part) for part in text.strip().split("."))
