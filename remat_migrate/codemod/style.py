"""How a project formats its code: the settings of its formatter, else what the file shows."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..text import SourceFile
from ..text.escapes import bare_lines_of
from ..text.regular_files import read_regular

_DEFAULT, _LONGEST = 88, 120
_NARROW = 80  # where blocks are indented by two spaces


@dataclass(frozen=True, slots=True)
class Style:
    """The layout of new code.

    Attributes:
        width: how long a line may be.
        continuation: the indentation of the lines within brackets.
        fills: whether arguments that do not fit on a line share lines, as yapf has them.
    """

    width: int
    continuation: str = "    "
    fills: bool = False


def style_of(source: SourceFile, indent: str) -> Style:
    """Return the style of a file whose blocks are indented by `indent`."""
    # A language server runs for days: changed settings are read again.
    every = (_settings(f, tuple(_modified(f / n) for n in _FILES)) for f in source.path.parents)
    found = next(filter(None, every), None)
    width, continuation = _shown(source.text, indent)
    if found is not None and found.length is not None:
        width = found.length
    return Style(width, continuation, found is not None and found.is_yapf)


@lru_cache(maxsize=16)
def _shown(text: str, indent: str) -> tuple[int, str]:
    """Return the length of the longest line of a text, and the indentation within its brackets."""
    lines = bare_lines_of(text)
    default = _NARROW if len(indent) == 2 else _DEFAULT
    lengths = (len(line) for line in lines if not _CANNOT_BREAK.search(line))
    width = max([default, *(length for length in lengths if length <= _LONGEST)])
    return width, _continuation(lines, indent)


# Comments and text, which formatters leave as they are.
_CANNOT_BREAK = re.compile(r"#|https?:|[\"']\W*$")


def _continuation(lines: list[str], default: str) -> str:
    """Return the most common indentation of lines after an opening bracket."""
    found: Counter[str] = Counter()
    for line, following in pairwise(lines):
        if line.endswith(("(", "[", "{")):
            above = line[: len(line) - len(line.lstrip())]
            below = following[: len(following) - len(following.lstrip())]
            if len(above) < len(below) <= len(above) + 8:
                found[below.removeprefix(above)] += 1
    return found.most_common(1)[0][0] if found else default


# -- settings


@dataclass(frozen=True, slots=True)
class _Settings:
    length: int | None
    is_yapf: bool = False


def _modified(path: Path) -> int:
    """Return the time of a file's last change; 0 if it does not exist."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache
def _settings(folder: Path, modified: tuple[int, ...]) -> _Settings | None:
    """Return what a folder configures for formatters, or else for linters and editors.

    `modified` are the times at which its files were changed.
    """
    if not any(modified):
        return None
    tools = _table(_toml(folder / "pyproject.toml"), "tool")
    for table in (
        *(_table(tools, name) for name in ("black", "pyink", "ruff")),
        _toml(folder / "ruff.toml"),
        _toml(folder / ".ruff.toml"),
    ):
        if isinstance(length := table.get("line-length"), int):
            return _Settings(length)
    yapf = _table(tools, "yapf") or _ini(folder / ".style.yapf", "style")
    if yapf := yapf or _ini(folder / "setup.cfg", "yapf"):
        length = str(yapf.get("column_limit", 79 if yapf.get("based_on_style") == "pep8" else 80))
        return _Settings(int(length) if _LENGTH.fullmatch(length) else None, is_yapf=True)
    if "black" in tools:
        return _Settings(_DEFAULT)
    hooks = _text(folder / ".pre-commit-config.yaml")
    if hook := re.search(rf"--line-length[\s=,'\"]+({_LENGTH.pattern})\b", hooks):
        return _Settings(int(hook.group(1)))
    return next(map(_Settings, _limits(folder)), None)


def _limits(folder: Path) -> Iterator[int]:
    """Yield the line lengths that linters and editors are told."""
    for name, section, key in _INI:
        value = str(_ini(folder / name, section).get(key, ""))
        if _LENGTH.fullmatch(value):
            yield int(value)


_LENGTH = re.compile(r"[0-9]{1,4}")
_INI = (
    *(
        (name, section, "max-line-length")
        for section in ("flake8", "pycodestyle")
        for name in (".flake8", "setup.cfg", "tox.ini")
    ),
    *((name, "FORMAT", "max-line-length") for name in (".pylintrc", "pylintrc")),
    (".editorconfig", "*.py", "max_line_length"),
    (".editorconfig", "*", "max_line_length"),
)


_FILES = (
    *("ruff.toml", ".ruff.toml", "pyproject.toml", ".style.yapf", ".pre-commit-config.yaml"),
    *dict.fromkeys(name for name, _, _ in _INI),
)


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode()
    except (OSError, UnicodeDecodeError):
        return ""  # not there, or for others to complain about


def _toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (ValueError, RecursionError):  # Not TOML, or a number of thousands of digits.
        return {}


def _table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tables.get(name)
    return found if isinstance(found, dict) else {}


def _ini(path: Path, section: str) -> Mapping[str, Any]:
    """Return a section of a file; the lines of `.editorconfig` above the first one are in none."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string("[top]\n" + _text(path))
    except configparser.Error:
        return {}
    return parser[section] if parser.has_section(section) else {}
