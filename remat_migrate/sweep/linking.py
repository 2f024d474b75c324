"""Split a large run into parts that do not matter to each other.

Files matter to each other if they may apply a checkpoint and one imports the other, directly or
through others. First, chunks of files are searched for words, as the prefilter does; then for
imports of the files found. The files that imports connect form components, and some components
a part. The analysis of a part reads other files where it needs them, so its findings are those of
the whole run. Where one component has most files, one worker checks most of the run.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path

from ..analysis.files import Files
from ..analysis.project import Project
from ..discovery.survey import Survey
from ..engine.run import Run, prepare_survey
from ..errors import SourceError
from ..text.source_file import check_text

# `from . import name`: does not name its package.
_RELATIVE = re.compile(rb"from\s*\.")
_WORD = re.compile(rb"\w+")
# More than the longest list of names in brackets that is likely.
_LONG_IMPORT = 4_000
# Each part takes seconds before its first file is checked.
_FEWEST = 50

Edges = Mapping[int, Sequence[int]]


class Tree:
    """The Python files of a large run, by their numbers.

    Attributes:
        files: all files that may be read.
    """

    def __init__(self, about: Survey) -> None:
        self.run: Run = prepare_survey(about)
        settings, nearest = self.run.settings, self.run.nearest
        self.files = Files(
            settings.root,
            self.run.targets.python,
            self.run.context,
            search_path=settings.search_path,
            limit=lambda path: nearest.of(path).max_file_size << 20,
        )
        words = sorted({word for rule in self.run.enabled_rules for word in rule.words})
        self._project = Project(settings, self.files, nearest=nearest, words=words)

    def __len__(self) -> int:
        return len(self.files.all)

    @cached_property
    def _number(self) -> Mapping[Path, int]:
        return {path: number for number, path in enumerate(self.files.all)}

    def candidates(self, start: int, stop: int) -> list[int]:
        """Return the files in a range that may matter, judging by their words."""
        found = range(start, min(stop, len(self)))
        return [number for number in found if self._may_matter(self.files.all[number])]

    def _may_matter(self, path: Path) -> bool:
        look = self._project.prefilter.first_look
        try:
            data, words = self.files.looked_at(path, look)
            check_text(path, data)
            return bool(words) and look.matters(data, words)
        except SourceError:
            return True  # to be reported

    def imports(
        self, start: int, stop: int, stems: Set[bytes], packages: Set[Path]
    ) -> dict[int, list[int]]:
        """Return, for files in a range, the files that they import.

        Args:
            start: the first file.
            stop: the file behind the last one.
            stems: only for files whose import statements have one of these words,
            packages: or that are below one of these folders and have a relative import.
        """
        found = {}
        for number in range(start, min(stop, len(self))):
            path = self.files.all[number]
            try:
                data = self.files.data(path)
            except SourceError:
                continue  # reported in its part
            if b"import" not in data:
                continue
            if not stems.isdisjoint(_imported_words(data)) or (
                _RELATIVE.search(data) and not packages.isdisjoint(path.parents)
            ):
                imported = self._project.prefilter.imported_files(path)
                found[number] = [self._number[file] for file in imported]
        return found

    def stems(self, numbers: Iterable[int]) -> tuple[set[bytes], set[Path]]:
        """Return the words by which files are imported, and the folders of the packages."""
        stems, packages = set(), set()
        for number in numbers:
            path = self.files.all[number]
            if path.name == "__init__.py":
                packages.add(path.parent)
                stems.add(path.parent.name.encode(errors="surrogateescape"))
            else:
                stems.add(path.stem.encode(errors="surrogateescape"))
        return stems, packages


def _imported_words(data: bytes) -> set[bytes]:
    """Return the words of the import statements in some code, and more."""
    words: set[bytes] = set()
    at = data.find(b"import")
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = at + len(b"import")
        if data[end : end + 3].lstrip(b" \t").startswith((b"(", b"\\")):
            end += _LONG_IMPORT
        else:
            end = data.find(b"\n", end)
        words.update(_WORD.findall(data[start : end if end >= 0 else len(data)]))
        at = data.find(b"import", at + 1)
    return words


class Linking:
    """Finds the components: first the files that import some, then those that import these."""

    def __init__(self, candidates: Iterable[int]) -> None:
        self._new = set(candidates)
        self._linked = set(self._new)
        self._imports: dict[int, Sequence[int]] = {}

    @property
    def searched(self) -> Collection[int]:
        """The files whose importers have to be found next; none at the end."""
        return self._new

    def add_imports(self, imports: Edges) -> None:
        """Add which files import which, for files that may import one of `searched`."""
        self._imports.update(imports)

    def advance(self) -> None:
        """Go on to the importers of `searched`, after the imports of all files were added."""
        self._new = {
            number
            for number, imported in self._imports.items()
            if number not in self._linked and not self._linked.isdisjoint(imported)
        }
        self._linked |= self._new

    def parts(self, size: int, workers: int) -> list[list[int]]:
        """Return the linked files in parts.

        Args:
            size: the number of files in a part, if they are not connected.
            workers: the number of workers, each of which gets equally many parts if there are
                enough files.
        """
        components = sorted(self._components(), key=lambda one: (-len(one), one))
        rounds = math.ceil(len(self._linked) / (size * workers))
        fewest = min(size, _FEWEST)
        count = max(1, min(rounds * workers, len(self._linked) // fewest))
        parts: list[list[int]] = [[] for _ in range(count)]
        for component in components:
            min(parts, key=len).extend(component)
        return [sorted(part) for part in parts if part] or [[]]

    def _components(self) -> Iterator[list[int]]:
        leader = {number: number for number in self._linked}

        def find(number: int) -> int:
            while leader[number] != number:
                leader[number] = leader[leader[number]]
                number = leader[number]
            return number

        for number in self._linked:
            for imported in self._imports.get(number, ()):
                if imported in leader:
                    leader[find(number)] = find(imported)
        members = defaultdict(list)
        for number in sorted(self._linked):
            members[find(number)].append(number)
        yield from members.values()
