"""Reading settings: the nearest pyproject.toml, and `--config`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import SettingsError
from ..text.regular_files import read_regular
from .settings import Options, Settings

_NAME = "pyproject.toml"
# Chosen by one layer of settings as a whole.
_CHOICES = ("select", "extend_select", "ignore")

# A repository's settings must not hang a run: what each value costs is bounded when it is read.
_MOST_BYTES = 1 << 20
_MOST_CHARACTERS = 100_000
# `tomllib` takes quadratic time for dotted keys.
_MOST_DOTS = 300


def load_settings(root: Path, start: Path, options: Options | None = None) -> Settings:
    """Return the settings for a file or folder of the project at `root`.

    They come from the nearest pyproject.toml at or above `start` that has a table
    `[tool.remat-migrate]`, and are overridden by the options.

    Raises:
        SettingsError: the TOML is invalid, a key unknown, or a value of the wrong type.
    """
    options = options or Options()
    folders = () if options.config else (start, *start.parents)
    found = (file for folder in folders if has_settings(file := folder / _NAME))
    return settings_in(next(found, None), root, options)


def settings_in(config: Path | None, root: Path, options: Options) -> Settings:
    """Return the settings in a file, overridden by the options.

    Raises:
        SettingsError: see `load_settings`.
    """
    settings = Settings(root=root, config=options.config or config)
    if file := settings.config:
        base = Path.cwd() if options.config else file.parent
        table = _read_table(file, is_named=True) or {}
        settings = _with_table(settings, table, str(file), base)
    for text in options.overrides:
        settings = _with_table(settings, _override(text), "--config", Path.cwd())
    if options.table:
        table = _checked(options.table, "the command line")
        settings = _with_table(settings, table, "the command line", Path.cwd())
    return settings


def _override(text: str) -> dict[str, object]:
    """Parse a TOML pair KEY=VALUE."""
    try:
        table = _parsed(text.encode(errors="surrogateescape"), "--config")
    except SettingsError as error:
        key, _, value = text.partition("=")
        if not re.fullmatch(r"\s*[\w.-]+\s*", value):
            raise
        quoted = f'{key.strip()}="{value.strip()}"'
        raise SettingsError(f"{error}; quote strings: --config '{quoted}'") from error
    return _checked(table, "--config")


def has_settings(config: Path) -> bool:
    """Return whether a pyproject.toml exists and has a table for this tool.

    Raises:
        SettingsError: it cannot be read, or is not valid TOML.
    """
    return _read_table(config) is not None


def _with_table(
    settings: Settings, table: Mapping[str, object], origin: str, base: Path
) -> Settings:
    """Override settings with a table of them.

    `select` replaces every choice of rules; otherwise `extend-select` and `ignore` add to it.
    Tables are merged, except for `per-file-ignores`.
    """
    from .keys import TABLE, converted  # not needed where there are no settings

    values = {
        key.replace("-", "_"): converted(key, value, f"{origin}: {TABLE}.{key}", base)
        for key, value in table.items()
    }
    if "select" in values:
        settings = replace(settings, **dict.fromkeys(_CHOICES, ()))  # type: ignore[arg-type]
    for name in ("extend_select", "ignore"):
        if name in values:
            values[name] = getattr(settings, name) + values[name]
    for name in ("verify", "measure"):
        if name in values:
            values[name] = {**getattr(settings, name), **values[name]}
    for name in ("wrappers", "scans"):
        if name in values:
            values[name] = _merged(values[name], getattr(settings, name))
    return replace(settings, **values)


def _merged(wrappers: Iterable[Any], others: Iterable[Any]) -> tuple[Any, ...]:
    """Return wrappers by name, the first of each."""
    found: dict[str, Any] = {}
    for one in (*wrappers, *others):
        found.setdefault(one.name, one)
    return tuple(found.values())


def _read_table(config: Path, *, is_named: bool = False) -> dict[str, object] | None:
    """Return the settings table of a file; None without file or table.

    Args:
        config: the file.
        is_named: whether the user named the file, which must exist, and may consist of the table
            alone unless it is a pyproject.toml.
    """
    try:
        data = read_regular(config)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not is_named:
            return None
        raise SettingsError(f"{config}: no such file") from error
    except OSError as error:
        raise SettingsError(f"{config}: cannot be read: {error.strerror or error}") from error
    is_bare = is_named and config.name != _NAME
    # Skip parsing, and errors, in the many files that have no settings for this tool.
    if not is_bare and b"remat-migrate" not in data:
        return None
    document = _parsed(data, str(config))
    tools = document.get("tool", {})
    if not isinstance(tools, dict) or "remat-migrate" not in tools:
        return _checked(document, str(config)) if is_bare else None
    return _checked(tools["remat-migrate"], str(config))


def _checked(table: Any, origin: str) -> dict[str, Any]:
    """Return a table of settings, which has known keys with values of their types.

    Raises:
        SettingsError: it has not, is too large, or has a value that no setting has.
    """
    import json

    try:
        text = json.dumps(table, allow_nan=False, default=str)
    except ValueError as error:
        raise SettingsError(f"{origin}: a number is not finite, or too large") from error
    if len(text) > _MOST_CHARACTERS or re.search(r"[0-9]{20}", text):
        raise SettingsError(f"{origin}: the settings, or a number in them, are too large")
    if "\\u0000" in text:
        raise SettingsError(f"{origin}: a string has a NUL character")
    from .keys import TABLE, check, schema  # not needed where there are no settings

    check(table, schema(), f"{origin}: {TABLE}")
    checked: dict[str, Any] = table
    return checked


def _parsed(data: bytes, origin: str) -> dict[str, object]:
    import tomllib

    if len(data) > _MOST_BYTES:
        raise SettingsError(f"{origin}: is larger than {_MOST_BYTES >> 20} MiB")
    if any(part.count(b".") > _MOST_DOTS for part in re.split(rb"[\r\n=]", data)):
        raise SettingsError(f"{origin}: has a line of more than {_MOST_DOTS} dots")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise SettingsError(f"{origin}: is not valid UTF-8: {error}") from error
    except ValueError as error:  # also of numbers with thousands of digits
        raise SettingsError(f"{origin}: is not valid TOML: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{origin}: is nested too deeply") from error
