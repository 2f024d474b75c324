"""The settings as TOML, for `--show-settings`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from .keys import TABLE
from .settings import Settings, Wrapper


def settings_lines(settings: Settings) -> Iterator[str]:
    """Yield the settings as TOML, every key with its value."""
    yield f"[{TABLE}]"
    for key in ("select", "extend_select", "ignore"):
        yield _pair(key, getattr(settings, key))
    patterns = [(globs.base, glob) for globs in settings.exclude for glob in globs.patterns]
    yield from _with_bases("exclude", patterns)
    yield _pair("fail_on", settings.fail_on)
    yield _pair("jax_version", ".".join(map(str, settings.jax_version)))
    yield _pair("max_file_size", settings.max_file_size)
    if settings.baseline:
        yield _pair("baseline", settings.baseline)
    yield _pair("search_path", settings.search_path)
    if settings.per_file_ignores:
        yield from ("", f"[{TABLE}.per-file-ignores]")
        for one in settings.per_file_ignores:
            yield f"{_value(one.glob)} = {_value(one.codes)}  # relative to {one.base}"
    for name in ("wrappers", "scans"):
        found: tuple[Wrapper, ...] = getattr(settings, name)
        yield from _table(name, {one.name: one.like for one in found})
    yield from _table("verify", settings.verify)
    yield from _table("measure", settings.measure)


def _pair(key: str, value: object) -> str:
    return f"{key.replace('_', '-')} = {_value(value)}"


def _with_bases(key: str, patterns: list[tuple[Path, str]]) -> Iterator[str]:
    """Yield an array of patterns, each with the folder that it is relative to."""
    if not patterns:
        yield f"{key} = []"
        return
    yield f"{key} = ["
    for base, glob in patterns:
        yield f"    {_value(glob)},  # relative to {base}"
    yield "]"


def _table(name: str, values: Mapping[str, object]) -> Iterator[str]:
    if values:
        yield from ("", f"[{TABLE}.{name}]")
        for key, value in values.items():
            yield f"{key if key.isidentifier() or '-' in key else _value(key)} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_value(str(key))} = {_value(one)}" for key, one in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    # Strings, numbers and booleans of JSON are TOML.
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)
