"""Cache entries as bytes: a header with a checksum, then JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from .record import Outcome, Written

# Increment when the format, or what outcomes depend on, changes.
VERSION = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """An outcome and everything it depends on.

    Attributes:
        key: the command, its settings, and its environment.
        counts: the numbers of Python targets, other targets, and context files.
        files: the state of each listed file, in order.
        recent: the listed files whose state does not tell whether they changed.
        contents: content hashes of some listed files, including all recent ones.
        outside: the state of each other file that the run read or looked for.
        words: the words that the run searched for, decoded as Latin-1.
        looks: the names and the words of each first look at files.
        used: the listed files that contain one of the words, that matter to one of the looks, or
            that were read for other reasons.
        outcome: the output and the exit code.
    """

    key: str
    counts: tuple[int, ...]
    files: Mapping[str, str]
    recent: frozenset[str]
    contents: Mapping[str, str]
    outside: Mapping[str, str]
    words: tuple[str, ...]
    looks: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    used: frozenset[str]
    outcome: Outcome


def dump(entry: Entry) -> bytes:
    """Serialize an entry."""
    document = {
        "key": entry.key,
        "counts": entry.counts,
        "files": entry.files,
        "recent": sorted(entry.recent),
        "contents": entry.contents,
        "outside": entry.outside,
        "words": entry.words,
        "looks": entry.looks,
        "used": sorted(entry.used),
        "written": [[one.to, one.text] for one in entry.outcome.written],
        "code": entry.outcome.code,
    }
    body = json.dumps(document, separators=(",", ":")).encode()
    return _header(body) + body


def load(data: bytes) -> Entry | None:
    """Parse an entry; None if it is damaged or of another version."""
    header, newline, body = data.partition(b"\n")
    if header + newline != _header(body):
        return None
    document = json.loads(body)
    return Entry(
        document["key"],
        tuple(document["counts"]),
        document["files"],
        frozenset(document["recent"]),
        document["contents"],
        document["outside"],
        tuple(document["words"]),
        tuple((tuple(names), tuple(words)) for names, words in document["looks"]),
        frozenset(document["used"]),
        Outcome(tuple(Written(to, text) for to, text in document["written"]), document["code"]),
    )


def _header(body: bytes) -> bytes:
    return f"remat-migrate cache {VERSION} {hashlib.sha256(body).hexdigest()}\n".encode()
