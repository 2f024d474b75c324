"""The keys of the settings table: how their values are checked and converted.

`partial-remat-migrate.json` lists them: a JSON schema in the form of SchemaStore, for editors, too.
"""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import SettingsError
from .settings import Globs, PerFileIgnore, Wrapper, did_you_mean

TABLE = "tool.remat-migrate"
SCHEMA = Path(__file__).parent / "partial-remat-migrate.json"

# The types of JSON: their Python types, and their names in messages.
_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a string"),
    "boolean": ((bool,), "a boolean"),
    "integer": ((int,), "an integer"),
    "number": ((float, int), "a number"),
    "array": ((list,), "an array"),
    "object": ((dict,), "a table"),
}
_BOUNDS = {
    "minimum": (operator.ge, "of at least"),
    "exclusiveMinimum": (operator.gt, "above"),
    "exclusiveMaximum": (operator.lt, "below"),
}


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of the table."""
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return found


def check(value: object, schema: Mapping[str, Any], name: str) -> None:
    """Check a value by the parts of JSON Schema that the settings use.

    Args:
        value: the value.
        schema: its schema.
        name: the file and the dotted name of the key, for messages.

    Raises:
        SettingsError: the value does not match the schema.
    """
    options = schema.get("anyOf", [schema])
    fitting = next((one for one in options if type(value) in _TYPES[one["type"]][0]), None)
    if fitting is None or not _is_allowed(value, fitting):
        names = {kind: shown for kinds, shown in _TYPES.values() for kind in kinds[:1]}
        kind = names.get(type(value), f"a {type(value).__name__}")
        shown = "; names with dots need quotes" if isinstance(value, dict) else f" {value!r}"
        expected = " or ".join(map(_described, options))
        raise SettingsError(f"{name}: expected {expected}, got {kind}{shown}")
    for item in value if isinstance(value, list) else ():
        check(item, fitting["items"], name)
    known = fitting.get("properties", {})
    names = fitting.get("propertyNames", {}).get("pattern", "")
    for key, item in value.items() if isinstance(value, dict) else ():
        if not re.search(names, key):
            raise SettingsError(f"{name}: the name {key!r} does not match {names}")
        inner = known.get(key) or fitting["additionalProperties"]
        if not inner:
            hint = did_you_mean(key, known) or f"; known keys: {', '.join(known)}"
            raise SettingsError(f"{name.replace(': ', ': unknown key ', 1)}.{key}{hint}")
        check(item, inner, f"{name}.{key}")


def _is_allowed(value: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, str):
        if value not in schema.get("enum", [value]):
            return False
        return re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, list):
        return len(value) >= int(schema.get("minItems", 0))
    if isinstance(value, dict):
        return True
    return all(
        holds(value, schema[bound]) for bound, (holds, _) in _BOUNDS.items() if bound in schema
    )


def _described(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f'"{one}"' for one in schema["enum"])
    bounds = [
        f" {words} {schema[bound]}" for bound, (_, words) in _BOUNDS.items() if bound in schema
    ]
    examples = [f' such as "{one}"' for one in schema.get("examples", ())]
    return "".join([_TYPES[schema["type"]][1], *bounds, *examples])


def converted(key: str, value: Any, name: str, base: Path) -> Any:
    """Return a value of the table as `Settings` has it.

    Args:
        key: the key.
        value: a value that matches the schema.
        name: the file and the dotted name of the key, for messages.
        base: the folder that paths and globs are relative to.

    Raises:
        SettingsError: the value is not of the form that the key needs.
    """
    match key:
        case "select" | "extend-select" | "ignore":
            return tuple(code.upper() for code in value)
        case "exclude":
            return Globs(base, tuple(value))
        case "per-file-ignores":
            return tuple(
                PerFileIgnore(base, glob, tuple(code.upper() for code in hidden))
                for glob, hidden in value.items()
            )
        case "jax-version":
            return tuple(int(part) for part in value.split("."))
        case "baseline":
            return _path(value, name, base)
        case "search-path":
            folders = [_path(text, name, base) for text in value]
            # Of a virtual environment, its packages.
            inside = "lib/python*/site-packages"
            return tuple(f for folder in folders for f in (folder, *sorted(folder.glob(inside))))
        case "wrappers" | "scans":
            return tuple(Wrapper(function, like) for function, like in value.items())
        case "verify":
            # Links are not resolved: the python of a virtual environment is one.
            files = [file for file in ("cases", "python") if file in value]
            return value | {f: os.path.abspath(_path(value[f], name, base)) for f in files}
    return value


def _path(text: str, name: str, base: Path) -> Path:
    """Return a path relative to the folder of the settings; `~` is a home folder."""
    try:
        return base / Path(text).expanduser()
    except RuntimeError as error:
        raise SettingsError(f"{name}: {text!r}: {error}") from error
