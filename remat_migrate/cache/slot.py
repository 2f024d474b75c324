"""The slot of one run in the cache: an earlier outcome is looked up, a new one stored."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..discovery.discover import Survey
from ..discovery.roots import repository
from ..errors import SourceError
from ..text.private_folders import PrivateFolder, open_private
from ..text.source_file import check_text
from .entry import VERSION, Entry, dump, load
from .file_states import content, content_hash, exists, hash_of, states_of
from .folder import cache_folder, store_entry
from .key import code_files, key_of
from .record import Outcome, Record

if TYPE_CHECKING:
    from ..analysis.files import Files

# The share of the run's time to spend on hashing contents, which pays off for files that are
# touched or checked out again.
_HASHING_SHARE = 0.02


def find_slot(
    command: str,
    parameters: Mapping[str, object],
    about: Survey,
    files: Iterable[Path] = (),
    outputs: Iterable[Path] = (),
) -> CacheSlot | None:
    """Find the slot of a run and look up its outcome; None without a usable cache.

    Args:
        command: the name of the command.
        parameters: its parameters.
        about: its settings and files.
        files: further files that it reads.
        outputs: the files that it writes reports to.
    """
    place = cache_folder()
    if place is None:
        return None
    with open_private(place, outside=repository(about.settings.root)) as folder:
        if folder is None:
            return None
        key = key_of(command, parameters, about)
        slot = CacheSlot(key, about, [os.path.abspath(file) for file in files], outputs)
        slot.look_up(folder)
        return slot


class CacheSlot:
    """The slot of one run.

    Attributes:
        outcome: the outcome of an identical earlier run, if there is one.
        record: records the output of this run.
    """

    def __init__(
        self, key: str, about: Survey, files: Sequence[str], outputs: Iterable[Path]
    ) -> None:
        """Take the states of the files that the run reads."""
        self.outcome: Outcome | None = None
        self.record = Record()
        self._key = key
        digest = hashlib.sha256(f"{VERSION}\n{key}".encode("utf-8", "surrogatepass"))
        self._name = f"{digest.hexdigest()}.json"
        self._outside = repository(about.settings.root)
        self._outputs = frozenset(map(str, outputs))
        targets = about.targets
        # Notebooks and scripts without a suffix are more than their bytes.
        listed = [*map(str, (*targets.python, *about.context))]
        self._python = frozenset(name for name in listed if name.endswith(".py"))
        self._limit = min(one.max_file_size for one in about.nearest.every) << 20
        self._counts = (len(targets.python), len(targets.texts), len(about.context))
        named = dict.fromkeys((*listed, *map(str, targets.texts), *map(str, files)))
        # Taken before anything is read, so that a later change gives another state.
        self._moment = time.time_ns()
        self._states = states_of(named, self._moment)
        self._hashes: dict[str, str | None] = {}

    def look_up(self, folder: PrivateFolder) -> None:
        """Look up the outcome in a folder."""
        entry = self._find(folder)
        if entry is not None:
            self.outcome = entry.outcome
        else:
            self._hashes = self._hash(self._states.recent)

    def store(self, code: int, files: Files) -> None:
        """Store the recorded output.

        Args:
            code: the exit code.
            files: the files of the run.
        """
        entry = self._entry(code, files)
        place = cache_folder()
        if entry is None or place is None:
            return
        with open_private(place, outside=self._outside) as folder:
            if folder is not None:
                store_entry(folder, self._name, dump(entry))

    def _find(self, folder: PrivateFolder) -> Entry | None:
        """Return the stored entry if everything that it depends on is unchanged."""
        data = folder.read(self._name)
        entry = load(data) if data is not None else None
        if entry is None or entry.key != self._key or entry.counts != self._counts:
            return None
        now = self._states
        if list(entry.files) != list(now.files):
            return None
        if (
            not {one.to for one in entry.outcome.written if isinstance(one.to, str)}
            <= self._outputs
        ):
            return None
        if states_of(entry.outside, self._moment).files != entry.outside:
            return None
        doubtful = {name for name, state in entry.files.items() if state != now.files[name]}
        doubtful |= entry.recent
        if not all(name in entry.contents or self._may_change(entry, name) for name in doubtful):
            return None
        found = self._contents(entry, doubtful)
        if found is None:
            return None
        if (now.files, now.recent) != (entry.files, entry.recent):
            contents = {**entry.contents, **found}
            if now.recent <= contents.keys():
                renewed = replace(entry, files=now.files, recent=now.recent, contents=contents)
                folder.write(self._name, dump(renewed))
        return entry

    def _may_change(self, entry: Entry, name: str) -> bool:
        """Return whether a Python file may change, as long as it matters to no search."""
        return name in self._python and name not in entry.used

    def _contents(self, entry: Entry, names: Iterable[str]) -> dict[str, str] | None:
        """Return the content hashes of files; None if the content of one matters and changed."""
        found: dict[str, str] = {}
        matters: Callable[[Path, bytes], bool] | None = None
        for name in names:
            data = content(name, self._states.files[name])
            if data is None:
                return None
            found[name] = hash_of(data)
            if found[name] == entry.contents.get(name):
                continue
            if not self._may_change(entry, name) or len(data) > self._limit:
                return None
            matters = matters or _matters_to(entry)
            if matters(Path(name), data):
                return None
        return found

    def _entry(self, exit_code: int, files: Files) -> Entry | None:
        """Return the entry to store; None if it is unclear what the outcome depends on."""
        if not self.record.is_complete:
            return None
        looked_at = {str(path): is_file for path, is_file in files.beyond.items()}
        names = dict.fromkeys(name for name in looked_at if name not in self._states.files)
        code = dict.fromkeys(code_files())
        outside = states_of({**names, **code}, self._moment)
        # A file that changed during the run may have done so before or after it was read.
        if outside.recent or not all(exists(outside.files[name]) for name in code):
            return None
        if any(exists(outside.files[name]) != looked_at[name] for name in names):
            return None
        # What is the same before and after the run is what the run read.
        if None in self._hashes.values() or self._hash(self._hashes) != self._hashes:
            return None
        known = {name: found for name, found in self._hashes.items() if found is not None}
        return Entry(
            self._key,
            self._counts,
            self._states.files,
            frozenset(known),
            {**known, **self._more_hashes(known)},
            outside.files,
            tuple(sorted({word.decode("latin-1") for one in files.searches for word in one.words})),
            tuple((look.names, look.words) for look in files.looks),
            frozenset(self._states.files.keys() & set(map(str, files.used))),
            self.record.outcome(exit_code),
        )

    def _hash(self, names: Iterable[str]) -> dict[str, str | None]:
        return {name: content_hash(name, self._states.files[name]) for name in names}

    def _more_hashes(self, known: Mapping[str, str]) -> dict[str, str]:
        """Hash further files while time allows, the most recently changed ones first."""
        end = time.process_time() * (1 + _HASHING_SHARE)
        found: dict[str, str] = {}
        names = self._states.files.keys() - known
        for name in sorted(names, key=self._states.changed, reverse=True):
            if time.process_time() > end:
                break
            if (content := content_hash(name, self._states.files[name])) is not None:
                found[name] = content
        return found


def _matters_to(entry: Entry) -> Callable[[Path, bytes], bool]:
    """Return a test of whether the content of a Python file matters to a run like an entry's."""
    from ..prefilter.first_look import FirstLook
    from ..prefilter.word_search import WordSearch

    search = WordSearch(word.encode("latin-1") for word in entry.words)
    looks = [FirstLook(names, words) for names, words in entry.looks]

    def matters(path: Path, data: bytes) -> bool:
        try:
            check_text(path, data)
        except SourceError:
            return True
        if search.places(data):
            return True
        return any(look.matters(data, look.search.places(data)) for look in looks)

    return matters
