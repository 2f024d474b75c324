"""Loading a project: which of its files are parsed, because they may matter.

First the prefilter chooses files by their bytes. Then come files that use a checkpoint by a name
that another file gives it, those that differentiate what others define, and those with options.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import SourceError
from ..libraries.apis import Api
from ..prefilter.word_search import Places, WordSearch
from ..prefilter.words import (
    CONCRETE,
    DIFFERENTIATING,
    FLAGS,
    SCAN,
    may_differentiate,
    may_differentiate_scan,
)
from ..settings import NearestSettings, Options, Settings
from ..text import SourceFile
from ..text.source_file import check_text
from .files import Files
from .names.expected_failures import is_test
from .names.module import Module, find_mentions
from .project import Project
from .sites.find_sites import find_sites, sites_in
from .sites.options import find_wrappers, note_passed_apis
from .values.evaluator import interesting_names
from .values.values import Class, Values

# `concrete=concrete`: an option that is passed on.
_FORWARDED_OPTION = re.compile(rb"concrete\s*=\s*(?!True\b|False\b|None\b)[A-Za-z_]\w*\s*[,)]")

# `dict(concrete=True)` or `{"concrete": True}`
_OPTION = re.compile(rb"\bconcrete\s*=[^=]|['\"]concrete['\"]\s*[]:,]")
# `checkpoint(f, **options)`, `partial(checkpoint, **options)`, with calls among the arguments
_SPREAD = rb"\b(?:%s)\b[(,](?:[^()]|\([^()]*\)){0,400}?\*\*"


# For more files, the files that matter to them are not looked for: all may.
_FEW = 50

_LIBRARIES = ("jax", "flax", "haiku", "equinox", "optax")
_IMPORTS_LIBRARY = re.compile(
    rb"^[ \t]*(?:import|from)[ \t]+(?:%s)\b" % "|".join(_LIBRARIES).encode(), re.M
)


# A file that is not Python can set a flag or suppress a finding only with one of these.
TEXT_WORDS = (*FLAGS, b"RMT")


def load_project(
    settings: Settings,
    targets: Sequence[Path],
    texts: Sequence[Path] = (),
    context: Sequence[Path] = (),
    overlay: Mapping[Path, SourceFile] | None = None,
    previous: Project | None = None,
    reported: frozenset[Path] | None = None,
    words: Iterable[str] = (),
    refused: Mapping[Path, SourceError] | None = None,
    nearest: NearestSettings | None = None,
) -> Project:
    """Read the files that may matter into a project.

    Which files the user named makes no difference for fixes.

    Args:
        settings: the settings of the run.
        targets: the Python files that the user named.
        texts: the other files that the user named.
        context: the other Python files of the project.
        overlay: texts that take the place of files on disk.
        previous: a project whose modules are reused where their text is unchanged, and whose
            files are not read again where they did not matter.
        reported: the files whose findings are reported, by default the targets and texts.
        words: further words that make a file matter.
        refused: files that count as unreadable.
        nearest: the settings of each file; by default those of the run.
    """
    nearest = nearest or NearestSettings(settings, Options())
    before = previous.files if previous is not None else None
    files = Files(
        settings.root,
        targets,
        context,
        overlay,
        settings.search_path,
        refused,
        lambda path: nearest.of(path).max_file_size << 20,
        before,
    )
    project = Project(
        settings,
        files,
        nearest=nearest,
        previous=previous,
        reported=frozenset((*targets, *texts)) if reported is None else reported,
        words=words,
    )
    _Selection(project).choose()
    search = WordSearch(TEXT_WORDS)
    for path in texts:
        try:
            data, places = files.searched(path, search)
            # JSON has no comments that suppress findings.
            if places and (path.suffix != ".json" or any(flag in places for flag in FLAGS)):
                project.texts[path] = files.read(path, data, python=False)
        except SourceError as error:
            if path.suffix != ".json":  # it holds data rather than settings
                project.errors.append(error)
    known = {error.path for error in project.errors}
    project.errors += [e for path, e in (refused or {}).items() if path not in known]
    return project


class _Selection:
    """The choice of a project's modules, made once, when the project is loaded."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.files = project.files
        self.evaluator = project.evaluator
        # Files that may hold a checkpoint, by their words.
        self._candidates: list[Path] = []
        # Those that say `concrete`, that say `jax`, that scan, and those of them that
        # differentiate.
        self._optional: list[Path] = []
        self._with_jax: list[Path] = []
        self._scanning: list[Path] = []
        self._differentiated: list[Path] = []
        # Words by which other files may use an Api, with the files that define them.
        self._words: dict[str, set[Path]] = {}
        # The files that were searched for a word.
        self._users: set[tuple[str, Path]] = set()
        # Whether any file sets `concrete=`.
        self._is_set = False
        self._prefilter = project.prefilter

    def choose(self) -> None:
        """Fill the project's `modules` and `errors`."""
        for path in self.files.all:
            try:
                self._look_at(path)
            except SourceError as error:
                self.files.used.add(path)
                self.project.errors.append(error)
        may_matter = frozenset((*self._optional, *self._candidates, *self._differentiated))
        self.files.used.update(may_matter, self._scanning)
        near = self._near(may_matter)
        self._candidates, optional, differentiated = (
            [path for path in paths if path in near]
            for paths in (self._candidates, self._optional, self._differentiated)
        )
        self._find_wrappers(optional)
        for path in self._candidates:
            if self._prefilter.may_hold(path):
                self._take(path)
        self._take_importers()
        for path in dict.fromkeys((*differentiated, *self._differentiating())):
            self._take_without_sites(path)
        self._note_passed()
        self._take_option_holders(optional)

    def _look_at(self, path: Path) -> None:
        """Note what a file may hold, by its words."""
        data, words = self.files.looked_at(path, self._prefilter.first_look)
        check_text(path, data)
        if CONCRETE in words:
            self._optional.append(path)
        if words and self._prefilter.inspect(path, data, words):
            self._candidates.append(path)
        if not data or b"jax" in data:  # or not read again
            self._with_jax.append(path)
            if SCAN in words:
                self._scanning.append(path)
                if may_differentiate_scan(data):
                    self._differentiated.append(path)

    def _near(self, may_matter: frozenset[Path]) -> Collection[Path]:
        """Return those files that may matter to the ones whose findings are reported.

        Imports connect them, directly or through others. Returns all for many files, and where few
        may matter.
        """
        start = self.project.reported.intersection(self.files.all)
        if len(start) > _FEW or len(may_matter) <= _FEW or may_matter <= start:
            return may_matter
        imported, known = self._prefilter.imported_files, dict[Path, bool]()
        found, waiting = set[Path](), set(start)
        while waiting and not may_matter <= found:
            found |= waiting
            near = {
                file
                for path in waiting
                for file in imported(path)
                if file in may_matter or self._prefilter.imports_any(file, may_matter, known)
            }
            waiting = near.union(self._importing(waiting)) - found
        return found

    def _importing(self, paths: set[Path]) -> Iterator[Path]:
        """Yield the files that import one of some files."""
        packages = {path.parent for path in paths if path.name == "__init__.py"}
        names = {path.stem for path in paths} | {folder.name for folder in packages}
        users = self.files.mentioning(names)
        if packages:  # `from . import name`
            users += [p for p in self.files.all if not packages.isdisjoint(p.parents)]
        for path in users:
            if not paths.isdisjoint(self._prefilter.imported_files(path)):
                yield path

    def _take(self, path: Path) -> Module | None:
        """Add a file; None if it cannot be parsed, which is reported."""
        try:
            self.project.modules[path] = self.project.parse(path)
        except SourceError as error:
            self.project.errors.append(error)
        return self.project.modules.get(path)

    def _differentiating(self) -> Iterator[Path]:
        """Yield the files that may differentiate what files with checkpoints or scans define.

        The files between them are among them: a loss calls a model, which is in a third file.
        """
        goals, known = {*self.project.modules, *self._scanning}, dict[Path, bool]()
        imports_any = self._prefilter.imports_any
        if not goals:
            return
        search = WordSearch(word.encode() for word in DIFFERENTIATING)
        found = [
            path
            for path in self._with_jax
            if self.files.searched(path, search)[1] and may_differentiate(self._data(path))
        ]
        waiting = [path for path in found if imports_any(path, goals, known)]
        # `make_step(model)` is passed what it differentiates, by a file that imports both.
        passed = {path for path in found if path not in waiting and self._takes_functions(path)}
        for path in self._importing(passed):
            if path in goals or imports_any(path, goals, known):
                waiting += (path, *passed.intersection(self._prefilter.imported_files(path)))
        waiting = list(dict.fromkeys(waiting))
        seen = set(waiting)
        while waiting:
            path = waiting.pop()
            yield path
            for file in self._prefilter.imported_files(path):
                if file not in seen and (file in goals or imports_any(file, goals, known)):
                    seen.add(file)
                    waiting.append(file)

    def _takes_functions(self, path: Path) -> bool:
        """Return whether a file may differentiate what it is passed, to train it.

        Not a test; and the functions of libraries are known by name.
        """
        if is_test(path) or self.files.module_name(path).partition(".")[0] in _LIBRARIES:
            return False
        return _IMPORTS_LIBRARY.search(self._data(path)) is not None

    def _take_without_sites(self, path: Path) -> None:
        """Add a file that applies no checkpoint, but differentiates."""
        if path not in self.project.modules and (module := self.project.module(path)) is not None:
            self.project.modules[path] = module
            self.project.without_sites.add(module)

    def _find_wrappers(self, optional: Sequence[Path]) -> None:
        """Treat the project's own wrappers, which pass `concrete` on, as Apis."""
        wide = {path: self._data(path) for path in optional}
        narrow = {path: data for path, data in wide.items() if CONCRETE in data}
        paths = [path for path, data in narrow.items() if _FORWARDED_OPTION.search(data)]
        self._is_set = any(_OPTION.search(data) for data in narrow.values())
        if self._is_set:
            # `def wrapper(f, **options): return jax.checkpoint(f, **options)`
            paths += [path for path in self._spreading() if path not in paths]
        modules = [module for path in paths if (module := self.project.module(path)) is not None]
        self._add_wrappers([(m, w) for m in modules for w in find_wrappers(m, self.evaluator)])

    def _add_wrappers(self, found: Iterable[tuple[Module, Api]]) -> None:
        for module, wrapper in found:
            self.project.apis.add(wrapper)
            word = wrapper.name.rpartition(".")[2]
            self._words.setdefault(word, set()).add(module.source.path)
        if found:
            self.evaluator.forget()
            self._prefilter.forget()

    def _spreading(self) -> Iterator[Path]:
        """Yield the files that apply a checkpoint with `**options`."""
        for path in self._candidates:
            if self._prefilter.may_hold(path) and self._spreads(path, ("remat", "checkpoint")):
                yield path

    def _take_importers(self) -> None:
        """Add files that use an Api or a wrapper by a name that another file gives it."""
        modules = list(self.project.modules.values())
        asked: dict[str, set[Path]] = {}
        while True:
            for module in modules:
                path = module.source.path
                words = set(self._exported_words(module))
                if words and self._spreads(path, words):
                    self._add_wrappers([(module, w) for w in find_wrappers(module, self.evaluator)])
                for word in words:
                    if (word, path) not in self._users:
                        self._words.setdefault(word, set()).add(path)
            new = {
                w: rest for w, paths in self._words.items() if (rest := paths - asked.get(w, set()))
            }
            if not new:
                return
            for word, paths in new.items():
                asked.setdefault(word, set()).update(paths)
            self.evaluator.aliases |= new.keys()
            modules = list(self._importers(new))

    def _spreads(self, path: Path, words: Iterable[str]) -> bool:
        """Return whether a file may pass options on to one of `words`: `ck(f, **options)`."""
        each = b"|".join(re.escape(word.encode()) for word in sorted(words))
        return self._is_set and re.search(_SPREAD % each, self._data(path)) is not None

    def _exported_words(self, module: Module) -> Iterator[str]:
        """Yield the words by which other files may use an Api, or a partial of one, from a module.

        They are names in the module, and attributes of its classes. The Apis' own
        names are not among them: `Prefilter` follows those.
        """
        names = interesting_names(module, self.evaluator) - self.project.apis.last_names
        for name, values in self._exported_values(module, names) if names else ():
            if any(map(self.evaluator.holds_api, values)):
                yield name

    def _exported_values(
        self, module: Module, names: frozenset[str]
    ) -> Iterator[tuple[str, Values]]:
        """Yield what some names denote in a module, its classes, and its objects."""
        evaluator, mentions = self.evaluator, find_mentions(module)
        for name in sorted(names & module.flow(module.scope_of(module.tree)).bound):
            yield name, evaluator.member(module, name)
        for cls in (cls for classes in mentions.classes.values() for cls in classes):
            for name in sorted(names & module.flow(module.scope_of(cls)).bound):
                yield name, evaluator.attribute(Class(module, cls), name)

    def _importers(self, new: Mapping[str, Collection[Path]]) -> Iterator[Module]:
        """Add the files that use one of the words, and yield them.

        A file uses a word if it imports a file that defines it, directly or through others.
        """
        search = WordSearch(word.encode() for word in new)
        reached: dict[str, dict[Path, bool]] = {word: {} for word in new}
        for path in self.files.all:
            data, places = self._searched(path, search)
            words = [
                word
                for needle in sorted(places)
                if b"import" in data
                and self._prefilter.names_in_code(path, needle)
                and self._prefilter.imports_any(path, new[word := needle.decode()], reached[word])
            ]
            if not words:
                continue
            self._users.update((word, path) for word in words)
            if (module := self._take(path)) is not None:
                yield module

    def _note_passed(self) -> None:
        """Follow Apis that are passed to functions of the project."""
        project, noted = self.project, False
        for module in list(project.modules.values()):
            for site in sites_in(project, module):
                if site.form in ("reference", "partial"):
                    reference = site.reference
                    if site.form == "partial":
                        holder = module.parent(reference)
                        assert isinstance(holder, ast.expr)
                        reference = holder
                    noted = note_passed_apis(module, reference, self.evaluator) or noted
        if noted:
            project.forget(find_sites)  # more Apis are known now

    def _take_option_holders(self, optional: Sequence[Path]) -> None:
        """Add files that only hold options: `OPTIONS = dict(concrete=True)`."""
        project = self.project
        for module in list(project.modules.values()):
            for site in sites_in(project, module):
                for option in site.arguments.values():
                    path = option.module.source.path
                    if path not in project.modules and project.files.is_own(path):
                        project.modules[path] = option.module
        # Those that may pass an option to code of the project that passes it on.
        left = [path for path in optional if path not in project.modules]
        if left and any(True for _ in self._spreading()):
            for path in left:
                if _OPTION.search(self._data(path)):
                    self._take_without_sites(path)

    def _searched(self, path: Path, search: WordSearch) -> tuple[bytes, Places]:
        try:
            return self.files.searched(path, search, self.project.apis.last_names)
        except SourceError:
            return b"", {}  # reported if it was named

    def _data(self, path: Path) -> bytes:
        """Return the bytes of a file; nothing if it cannot be read."""
        try:
            return self.files.code(path, self.project.apis.last_names)
        except SourceError:
            return b""  # reported if it was named
