"""The keys of the settings table: how each is parsed, its JSON schema, and what it means."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import SettingsError
from .settings import (
    SEVERITIES,
    PerFileIgnore,
    Severity,
    Wrapper,
    codes,
    did_you_mean,
    parse_version,
)

TABLE = "tool.remat-migrate"
_WILD = re.compile(r"[*?[]")
# A glob must not walk through the whole disk.
_MOST_WILD = 3
_MOST_FOLDERS = 1_000
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")

Schema = Mapping[str, object]
_STRING: Schema = {"type": "string"}
_BOOLEAN: Schema = {"type": "boolean"}
_STRINGS: Schema = {"type": "array", "items": _STRING}
_CODES: Schema = {"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z]+[0-9]*$"}}
_SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0}
_TARGETS: Schema = {"anyOf": [_STRING, _STRINGS]}


def _table_of(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


_WRAPPERS = _table_of(
    {
        "anyOf": [
            _STRING,
            {
                "type": "object",
                "additionalProperties": False,
                "required": ["like"],
                "properties": {"like": _STRING},
            },
        ]
    }
)
_SHARE: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of the settings table.

    Attributes:
        about: what it sets, in a sentence or two.
        schema: the JSON schema of its value.
        parse: returns the value as `Settings` holds it; None for the keys of a nested table, which
            are parsed where they are used.
    """

    about: str
    schema: Schema
    parse: Callable[[Key, object], object] | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the settings in a file, with parsers for its value.

    Attributes:
        origin: the name of the file, for messages; `--config` for an override.
        base: the folder that paths and globs are relative to.
        name: the dotted name of the key.
    """

    origin: str
    base: Path
    name: str

    def within(self, name: str) -> Key:
        """Return a key of the table at this key."""
        return Key(self.origin, self.base, f"{self.name}.{name}")

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
        return SettingsError(f"{self.origin}: {self.name}: expected {expected}, got {kind}{shown}")

    def table(self, value: object, known: Iterable[str] | None = None) -> dict[str, object]:
        """Parse a table and check its keys."""
        if not isinstance(value, dict):
            raise self.error("a table", value)
        if known is not None:
            names = list(known)
            for name in value:
                if name not in names:
                    raise SettingsError(
                        f"{self.origin}: unknown key {self.name}.{name}"
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
        return codes(self.strings(value), f"{self.origin}: {self.name}")

    def version(self, value: object) -> tuple[int, ...]:
        """Parse a version."""
        if not isinstance(value, str):
            raise self.error('a version such as "0.12.0"', value)
        return parse_version(value, f"{self.origin}: {self.name}")

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

    def per_file_ignores(self, value: object) -> tuple[PerFileIgnore, ...]:
        """Parse a table from globs to codes."""
        return tuple(
            PerFileIgnore(self.base, glob, self.within(glob).codes(hidden))
            for glob, hidden in self.table(value).items()
        )

    def nested(self, value: object) -> dict[str, object]:
        """Parse `verify` or `measure`, whose values are parsed where they are used."""
        known = {"verify": VERIFY, "measure": MEASURE}[self.name.rpartition(".")[2]]
        table = self.table(value, known)
        for name in _FILES & table.keys():
            if isinstance(text := table[name], str):
                # Links are not resolved: the python of a virtual environment is one.
                table[name] = os.path.abspath(self.within(name).path(text))
        return table

    def path(self, text: str) -> Path:
        """Return a path relative to the folder of the settings; `~` is a home folder."""
        try:
            return self.base / Path(text).expanduser()
        except RuntimeError as error:
            raise SettingsError(f"{self.origin}: {self.name}: {text!r}: {error}") from error

    def file(self, value: object) -> Path:
        """Parse a file name, relative to the folder of the settings."""
        if not isinstance(value, str) or not value:
            raise self.error("a file name", value)
        return self.path(value)

    def folders(self, value: object) -> tuple[Path, ...]:
        """Parse an array of folders or globs, relative to the folder of the settings."""
        return tuple(folder for text in self.strings(value) for folder in self._matching(text))

    def _matching(self, text: str) -> list[Path]:
        """Return the folders that a glob matches; the text as a path if it is none."""
        path, parts = self.path(text), Path(text).expanduser().parts
        first = next((n for n, part in enumerate(parts) if _WILD.search(part)), None)
        if first is None:
            return [path]
        wild = parts[first:]
        if sum(bool(_WILD.search(part)) for part in wild) > _MOST_WILD or "**" in wild:
            raise SettingsError(
                f"{self.origin}: {self.name}: {text!r}: at most {_MOST_WILD} parts of a path may"
                " have wildcards, and none may be **"
            )
        try:
            found = sorted(self.base.joinpath(*parts[:first]).glob("/".join(wild)))
        except (OSError, ValueError) as error:
            raise SettingsError(f"{self.origin}: {self.name}: {text!r}: {error}") from error
        if len(found) > _MOST_FOLDERS:
            raise SettingsError(
                f"{self.origin}: {self.name}: {text!r} matches more than {_MOST_FOLDERS} folders"
            )
        return found

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
                    f'{self.origin}: {self.name}: quote the dotted name: "{name}.…" = …'
                )
            value = self.table(value, ["like"]).get("like")
        if not isinstance(value, str):
            raise self.error('a JAX function name or {like = "…"}', value)
        for text in (name, value):
            if not _DOTTED.fullmatch(text):
                raise SettingsError(
                    f"{self.origin}: {self.name}: {text!r} is not a dotted Python name"
                )
        return Wrapper(name, value)


# The keys of `[tool.remat-migrate.verify]`.
VERIFY: Mapping[str, Setting] = {
    "cases": Setting(
        "Python file of functions that return arguments for the compared units.", _STRING
    ),
    "command": Setting("Command that exercises the code, and so provides inputs.", _STRING),
    "python": Setting("Interpreter with JAX and the project's packages.", _STRING),
    "tolerance": Setting(
        "Largest relative difference for float32, or a table of them by dtype.",
        {"anyOf": [_SHARE, _table_of(_SHARE)]},
    ),
    "timeout": Setting("Seconds that each unit may take.", _SECONDS),
    "command-timeout": Setting("Seconds that each run of the command may take.", _SECONDS),
    "project-tests": Setting(
        "Whether to run the project's tests where no inputs can be generated.", _BOOLEAN
    ),
    "test-budget": Setting("Seconds that these tests may take in all.", _SECONDS),
    "memory": Setting(
        'Memory of each process in addition to what imports take, such as "8GiB".',
        {"anyOf": [_STRING, {"type": "integer", "exclusiveMinimum": 0}]},
    ),
    "platform": Setting("Platform that JAX runs on.", _STRING),
}
# The keys of `[tool.remat-migrate.measure]`.
MEASURE: Mapping[str, Setting] = {
    "target": Setting("Function to measure, as module:function, or several.", _TARGETS),
    "args": Setting(
        "Function that returns the arguments of all targets, or one for each of them.",
        {"anyOf": [_STRING, _STRINGS]},
    ),
    "grad": Setting(
        "How to differentiate the target.",
        {"type": "string", "enum": ["value_and_grad", "grad", "none"]},
    ),
    "argnums": Setting(
        "Arguments to differentiate with respect to.",
        {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
    ),
    "has-aux": Setting("Whether the target returns a loss and auxiliary data.", _BOOLEAN),
    "x64": Setting("Whether to enable 64-bit types.", _BOOLEAN),
    "compile": Setting("Whether to compile the gradient computation, too.", _BOOLEAN),
    "device": Setting('Device to fit on: a name such as "H100", or its memory.', _STRING),
    "devices": Setting(
        "Number of virtual CPU devices for meshes.", {"type": "integer", "minimum": 1}
    ),
}
_FILES = frozenset({"cases", "python"})

# The keys of `[tool.remat-migrate]`, except `extend` and `extend-exclude`, which `reading` applies.
SETTINGS: Mapping[str, Setting] = {
    "select": Setting(
        "Codes or prefixes of codes to enable; by default every rule that is on by default.",
        _CODES,
        Key.codes,
    ),
    "extend-select": Setting("Codes or prefixes to enable in addition.", _CODES, Key.codes),
    "ignore": Setting(
        "Codes or prefixes to disable; the longest matching prefix wins.", _CODES, Key.codes
    ),
    "per-file-ignores": Setting(
        "Codes or prefixes to hide in the files that a gitignore pattern matches.",
        _table_of(_CODES),
        Key.per_file_ignores,
    ),
    "extend": Setting(
        "Settings file to inherit from, relative to this one; the keys here take precedence.",
        _STRING,
        Key.file,
    ),
    "exclude": Setting(
        "Gitignore patterns of files and folders to skip unless they are given explicitly.",
        _STRINGS,
        Key.strings,
    ),
    "extend-exclude": Setting(
        "Patterns to exclude in addition to inherited ones.", _STRINGS, Key.strings
    ),
    "fail-on": Setting(
        'Lowest severity that fails a run, by default "warning".',
        {"type": "string", "enum": list(SEVERITIES)},
        Key.severity,
    ),
    "jax-version": Setting(
        "JAX version to migrate to, by default the newest known.", _STRING, Key.version
    ),
    "max-file-size": Setting(
        "Size in MiB above which files are not read, by default 64.",
        {"type": "integer", "minimum": 0},
        Key.count,
    ),
    "baseline": Setting("File of known findings.", _STRING, Key.file),
    "search-path": Setting(
        "Folders in which imported packages are looked up; globs are allowed.",
        _STRINGS,
        Key.folders,
    ),
    "wrappers": Setting(
        "Functions that apply a checkpoint, each with the JAX function that it is like.",
        _WRAPPERS,
        Key.wrappers,
    ),
    "scans": Setting(
        "Functions that run a function in a loop, each with the JAX loop that it is like.",
        _WRAPPERS,
        Key.wrappers,
    ),
    "verify": Setting("How --verify and verify run the code.", {}, Key.nested),
    "measure": Setting("What report, measure and plan measure.", {}, Key.nested),
}
