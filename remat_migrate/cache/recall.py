"""A run and what is kept of it: looked for before it, kept after it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..discovery.roots import repository
from ..discovery.survey import Survey
from .entry import VERSION, Entry, dump, load
from .folder import Folder, cache_folder, opened
from .key import code_files, key_of
from .record import Outcome, Record
from .states import content_of, is_there, states_of

# Contents are hashed in this share of the time that the run took, so that it pays for a file that
# is touched, or checked out again.
_SHARE = 0.02


def recall(
    command: str,
    parameters: Mapping[str, object],
    about: Survey,
    files: Iterable[Path] = (),
    outputs: Iterable[Path] = (),
) -> Recall | None:
    """Look for a run's outcome.

    Args:
        command: the command's name.
        parameters: what it was given, by name.
        about: its settings and files.
        files: more files that it reads.
        outputs: the files that it writes its report to.

    Returns:
        None if there is no cache that is fit for use.
    """
    place = cache_folder()
    if place is None:
        return None
    with opened(place, outside=repository(about.settings.root)) as folder:
        if folder is None:
            return None
        key = key_of(command, parameters, about)
        found = Recall(key, about, [os.path.abspath(file) for file in files], outputs)
        found.look_up(folder)
        return found


class Recall:
    """What is kept of one run.

    Attributes:
        outcome: what an earlier run that was the same has written; None if none is kept.
        record: takes down what this one writes.
    """

    def __init__(
        self, key: str, about: Survey, files: Sequence[str], outputs: Iterable[Path]
    ) -> None:
        """The run with a key, that is about some files, reads `files` and writes `outputs`."""
        self.outcome: Outcome | None = None
        self.record = Record()
        self._key = key
        digest = hashlib.sha256(f"{VERSION}\n{key}".encode("utf-8", "surrogatepass"))
        self._name = f"{digest.hexdigest()}.json"
        self._outside = repository(about.settings.root)
        self._outputs = frozenset(map(str, outputs))
        self._counts = (len(about.python), len(about.texts), len(about.context))
        named = dict.fromkeys((*about.python, *about.texts, *about.context, *files))
        # States are taken before anything is read: what changes later has another one.
        self._moment = time.time_ns()
        self._states = states_of(named, self._moment)
        self._contents: dict[str, str | None] = {}

    def look_up(self, folder: Folder) -> None:
        """Look for the outcome in a folder."""
        entry = self._known(folder)
        if entry is not None:
            self.outcome = entry.outcome
        else:
            self._contents = self._contents_of(self._states.recent)

    def keep(self, code: int, beyond: Mapping[Path, bool]) -> None:
        """Keep what the record holds, for the next run that is the same.

        Args:
            code: the exit code.
            beyond: what was looked at besides the files, and whether a file was there.
        """
        entry = self._entry(code, beyond)
        place = cache_folder()
        if entry is None or place is None:
            return
        with opened(place, outside=self._outside) as folder:
            if folder is not None:
                folder.write(self._name, dump(entry))

    def _known(self, folder: Folder) -> Entry | None:
        data = folder.read(self._name)
        entry = load(data) if data is not None else None
        if entry is None or entry.key != self._key or entry.counts != self._counts:
            return None
        now = self._states
        if list(entry.files) != list(now.files):
            return None
        files = {one.to for one in entry.outcome.written if isinstance(one.to, str)}
        if not files <= self._outputs:
            return None
        if states_of(entry.outside, self._moment).files != entry.outside:
            return None
        doubtful = {name for name, state in entry.files.items() if state != now.files[name]}
        doubtful |= entry.recent
        if not doubtful <= entry.contents.keys():
            return None
        if any(content_of(name, now.files[name]) != entry.contents[name] for name in doubtful):
            return None
        changed = (now.files, now.recent) != (entry.files, entry.recent)
        if changed and now.recent <= entry.contents.keys():
            new = replace(entry, files=now.files, recent=now.recent)
            folder.write(self._name, dump(new))
        return entry

    def _entry(self, exit_code: int, beyond: Mapping[Path, bool]) -> Entry | None:
        """What is kept; None if it cannot be told what the outcome depends on."""
        if not self.record.is_whole:
            return None
        looked_at = {str(path): there for path, there in beyond.items()}
        names = dict.fromkeys(name for name in looked_at if name not in self._states.files)
        code = dict.fromkeys(code_files())
        outside = states_of({**names, **code}, self._moment)
        # What has changed since the run began may have changed before it was read, or after it.
        if outside.recent or not all(is_there(outside.files[name]) for name in code):
            return None
        if any(is_there(outside.files[name]) != looked_at[name] for name in names):
            return None
        # The same before the run and after it: that is what the run has read.
        contents = self._contents
        if None in contents.values() or self._contents_of(contents) != contents:
            return None
        known = {name: found for name, found in contents.items() if found is not None}
        return Entry(
            self._key,
            self._counts,
            self._states.files,
            frozenset(known),
            {**known, **self._more_contents(known)},
            outside.files,
            self.record.outcome(exit_code),
        )

    def _contents_of(self, names: Iterable[str]) -> dict[str, str | None]:
        return {name: content_of(name, self._states.files[name]) for name in names}

    def _more_contents(self, known: Mapping[str, str]) -> dict[str, str]:
        """The hashes of as many files as time allows, those first that changed last."""
        end = time.process_time() * (1 + _SHARE)
        found: dict[str, str] = {}
        for name in sorted(
            self._states.files.keys() - known, key=self._states.changed, reverse=True
        ):
            if time.process_time() > end:
                break
            content = content_of(name, self._states.files[name])
            if content is not None:
                found[name] = content
        return found
