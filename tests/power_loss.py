"""A model of the possible disk contents after a power loss.

The data written to a file is guaranteed once the file is synced; before that, any part of it may be
on disk. A name that was created, moved or removed is guaranteed once its folder is synced; before
that it may be old or new, independently of others. These are the guarantees of POSIX; common file
systems guarantee more.
"""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kill_faults import Event

_ENTRY = re.compile(r"[0-9]{6,}-[0-9a-f-]+(\.open)?\.json")
# Name changes: from one path to another, or to nothing.
_Names = Mapping[Path, int | None]


@dataclass(slots=True)
class _Content:
    """The content of a file as programs see it, and the part guaranteed to be on disk."""

    seen: bytes
    safe: bytes
    is_safe: bool = True


@dataclass(slots=True)
class Disk:
    """A disk after the first calls of a run."""

    contents: list[_Content] = field(default_factory=list)
    names: dict[Path, int] = field(default_factory=dict)
    safe_names: dict[Path, int] = field(default_factory=dict)
    folders: set[Path] = field(default_factory=set)
    pending: list[tuple[Path, _Names]] = field(default_factory=list)

    @classmethod
    def of(cls, root: Path) -> Disk:
        """Return a disk with a project on it, fully synced."""
        disk = cls()
        for path in root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                disk.names[path] = disk.safe_names[path] = len(disk.contents)
                disk.contents.append(_Content(data, data))
        return disk

    def take(self, event: Event) -> None:
        """Apply one more call."""
        path = event.path
        if event.name == "open" and event.creates and path not in self.names:
            self.contents.append(_Content(b"", b""))
            self._name(path.parent, {path: len(self.contents) - 1})
        elif event.name == "mkdir":
            self.contents.append(_Content(b"", b""))
            self.folders.add(path)
            self._name(path.parent, {path: len(self.contents) - 1})
        elif event.name == "write":
            content = self.contents[self.names[path]]
            content.seen += event.data
            content.is_safe = False
        elif event.name == "fsync" and path in self.names and path not in self.folders:
            content = self.contents[self.names[path]]
            content.safe, content.is_safe = content.seen, True
        elif event.name == "fsync":
            for folder, names in self.pending:
                if folder == path:
                    _apply(self.safe_names, names)
            self.pending = [(folder, names) for folder, names in self.pending if folder != path]
        elif event.name == "replace" and event.to is not None:
            self._name(path.parent, {event.to: self.names[path], path: None})
        elif event.name == "unlink" and path in self.names:
            self._name(path.parent, {path: None})

    def _name(self, folder: Path, names: _Names) -> None:
        self.pending.append((folder, names))
        _apply(self.names, names)

    def after_a_loss(self, chance: random.Random | None, everything: bool) -> dict[Path, bytes]:
        """Return the files on disk after a power loss.

        Args:
            chance: chooses which unsynced changes are on disk; without it, all or none are.
            everything: without `chance`, whether all name changes are on disk, without the unsynced
                data.
        """
        names = dict(self.safe_names)
        for _, change in self.pending:
            if chance.random() < 0.5 if chance else everything:
                _apply(names, change)
        found = {}
        for path, number in names.items():
            if path in self.folders:
                continue
            above = [folder for folder in path.parents if folder in self.folders]
            if all(folder in names for folder in above):
                found[path] = self._bytes(self.contents[number], chance)
        return found

    @staticmethod
    def _bytes(content: _Content, chance: random.Random | None) -> bytes:
        if content.is_safe:
            return content.safe
        kept = chance.randrange(len(content.seen) + 1) if chance else 0
        return content.seen[:kept] + b"\0" * (len(content.seen) - kept)


def _apply(names: dict[Path, int], change: _Names) -> None:
    for path, number in change.items():
        if number is None:
            names.pop(path, None)
        else:
            names[path] = number


def losses(
    before: Disk, events: Sequence[Event], chance: random.Random, each: int
) -> Iterator[tuple[int, dict[Path, bytes]]]:
    """Yield possible disk contents after a power loss at every call of a run.

    Each item is the number of the last call and the files: with no unsynced change, with all name
    changes but no unsynced data, and with random choices, the given number of times.
    """
    for number in range(len(events) + 1):
        if number:
            before.take(events[number - 1])
        for everything in (False, True):
            yield number, before.after_a_loss(None, everything)
        for _ in range(each):
            yield number, before.after_a_loss(chance, True)


def lost_by(
    found: Mapping[Path, bytes], root: Path, old: Mapping[str, bytes], new: Mapping[str, bytes]
) -> str:
    """Describe a file that is neither old nor new, or that undo cannot restore."""
    saved: dict[str, bytes] = {}
    for path, data in found.items():
        if path.parent == root / ".remat_migrate/journal" and _ENTRY.fullmatch(path.name):
            try:
                for item in json.loads(data)["files"]:
                    saved[item["path"]] = zlib.decompress(base64.b64decode(item["old"]))
            except ValueError:
                return f"{path.name} is damaged"
    for name, content in old.items():
        here = found.get(root / name)
        if here not in (content, new[name]):
            return f"{name} is neither old nor new"
        if here != content and saved.get(name) != content:
            return f"{name} is new, and the journal does not have the old one"
    return ""
