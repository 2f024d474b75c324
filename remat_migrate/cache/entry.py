"""Entries of the cache as bytes: a line with a checksum, then JSON.

What is read is checked to the last value: a file that is damaged, cut off or of another version of
this format is no entry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from .record import ERR, OUT, Outcome, Written

# Of what is written, and of how outcomes depend on what: to be raised when either changes.
VERSION = 1

_CODES = (0, 1)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Entry:
    """An outcome with all that it depends on.

    Attributes:
        key: the command, its settings and surroundings.
        counts: how many of the files are Python targets, other targets, and context.
        files: the state of each file that was listed, in the order in which they were.
        recent: those of them whose state does not tell whether they have changed.
        contents: the hash of the content of some of them, all of `recent` among them.
        outside: the state of each other file that was read or looked for.
        outcome: what the run wrote, and its exit code.
    """

    key: str
    counts: tuple[int, ...]
    files: Mapping[str, str]
    recent: frozenset[str]
    contents: Mapping[str, str]
    outside: Mapping[str, str]
    outcome: Outcome


def dump(entry: Entry) -> bytes:
    """An entry as bytes."""
    document = {
        "key": entry.key,
        "counts": entry.counts,
        "files": entry.files,
        "recent": sorted(entry.recent),
        "contents": entry.contents,
        "outside": entry.outside,
        "written": [[one.to, one.text] for one in entry.outcome.written],
        "code": entry.outcome.code,
    }
    data = json.dumps(document, separators=(",", ":")).encode()
    return _head(data) + data


def load(data: bytes) -> Entry | None:
    """The entry that bytes hold; None if they hold none."""
    head, line_feed, body = data.partition(b"\n")
    if head + line_feed != _head(body):
        return None
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    try:
        return _entry(document)
    except (_Damaged, KeyError):
        return None


class _Damaged(Exception):
    """A value is not of its kind."""


def _head(data: bytes) -> bytes:
    return f"remat-migrate cache {VERSION} {hashlib.sha256(data).hexdigest()}\n".encode()


def _entry(document: object) -> Entry:
    if not isinstance(document, dict):
        raise _Damaged
    key, code = document["key"], document["code"]
    if not (isinstance(key, str) and type(code) is int and code in _CODES):
        raise _Damaged
    contents = _texts_by_name(document["contents"])
    recent = frozenset(_list_of(str, document["recent"]))
    if not recent <= contents.keys():
        raise _Damaged
    return Entry(
        key,
        tuple(_list_of(int, document["counts"])),
        _texts_by_name(document["files"]),
        recent,
        contents,
        _texts_by_name(document["outside"]),
        Outcome(tuple(map(_written, _list_of(list, document["written"]))), code),
    )


def _list_of(kind: type[_T], value: object) -> list[_T]:
    if not isinstance(value, list) or any(type(item) is not kind for item in value):
        raise _Damaged
    return value


def _texts_by_name(value: object) -> dict[str, str]:
    # The names in an object of JSON are always texts.
    if not isinstance(value, dict) or not set(map(type, value.values())) <= {str}:
        raise _Damaged
    return value


def _written(value: list[object]) -> Written:
    match value:
        case [str() as file, str() as text]:
            return Written(file, text)
        case [int() as stream, str() as text] if stream in (OUT, ERR):
            return Written(int(stream), text)
    raise _Damaged
