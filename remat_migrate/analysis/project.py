"""The project: its parsed modules and what is known about them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar, TypeVarTuple, cast

from ..errors import SourceError
from ..libraries.apis import ApiTable
from ..libraries.transforms import TransformTable
from ..prefilter.project_files import Prefilter
from ..settings import NearestSettings, Settings
from ..text import SourceFile
from ..text.source_file import may_be_notebook
from .files import Files
from .names.module import Module
from .values.evaluator import Evaluator
from .values.values import External, Values

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Project:
    """The modules of one run and what is known about them. `loading.load_project` makes one.

    Attributes:
        settings: the settings of the run.
        reported: the files whose findings are reported; fixes do not depend on them.
        modules: the Python files that may matter, parsed.
        texts: the other files that may matter.
        errors: files that cannot be read or parsed.
        apis: the checkpoint family, including wrappers that the settings name.
        files: the files of the project, by path and dotted name.
        prefilter: tells which files may apply a checkpoint, and what they import.
        evaluator: evaluates expressions of any module.
        without_sites: modules that hold no site, as far as their text shows.
    """

    def __init__(
        self,
        settings: Settings,
        files: Files,
        *,
        nearest: NearestSettings,
        previous: Project | None = None,
        reported: frozenset[Path] = frozenset(),
        words: Iterable[str] = (),
    ) -> None:
        """Modules of the `previous` project are reused where their text is unchanged; `words` are
        further words that make a file matter.
        """
        self.settings = settings
        self._nearest = nearest
        self.reported = reported
        self.apis = ApiTable({w.name: w.like for w in settings.wrappers})
        self.files = files
        self.prefilter = Prefilter(
            self.apis,
            (wrapper.name.partition(".")[0] for wrapper in settings.wrappers),
            words,
            files.find,
            files.module_name,
            lambda path: files.code(path, self.apis.last_names),
        )
        self.evaluator = Evaluator(self.apis, self.find_module)
        self.evaluator.transforms = TransformTable({s.name: s.like for s in settings.scans})
        self.evaluator.find_installed = self._find_installed
        self.errors: list[SourceError] = []
        self.modules: dict[Path, Module] = {}
        self.texts: dict[Path, SourceFile] = {}
        self.without_sites: set[Module] = set()
        self._parsed: dict[Path, Module | SourceError] = {}
        self._previous = previous._parsed if previous is not None else {}
        self._answers: dict[tuple[object, ...], object] = {}

    def jax_version(self, path: Path) -> tuple[int, ...]:
        """Return the JAX version that a file is migrated to."""
        return self._nearest.of(path).jax_version

    def module(self, path: Path) -> Module | None:
        """Return the parsed module of a file, or None if it cannot be parsed."""
        found = self._parsed_or_error(path)
        return found if isinstance(found, Module) else None

    def parse(self, path: Path) -> Module:
        """Return the parsed module of a file.

        Raises:
            SourceError: the file cannot be read or parsed.
        """
        found = self._parsed_or_error(path)
        if isinstance(found, SourceError):
            raise found
        return found

    def _parsed_or_error(self, path: Path) -> Module | SourceError:
        if path not in self._parsed:
            try:
                self._parsed[path] = self._parse(path)
            except SourceError as error:
                self._parsed[path] = error
        return self._parsed[path]

    def _parse(self, path: Path) -> Module:
        source = self.files.read(path)
        known = self._previous.get(path)
        if isinstance(known, Module) and known.source.text == source.text:
            return known
        name, is_package = self.files.module_name(path), path.name == "__init__.py"
        return Module(source, source.parse(), name, is_package, self.files.is_own(path))

    @property
    def parsed(self) -> list[Module]:
        """The modules parsed so far, whether or not they may matter."""
        return [found for found in self._parsed.values() if isinstance(found, Module)]

    def find_module(self, dotted: str, importer: Module) -> Module | None:
        """Return the project's module that `import dotted` in `importer` means."""
        path = self.files.find(dotted, importer.source.path)
        return self.module(path) if path is not None else None

    def _find_installed(self, dotted: str) -> Module | None:
        path = self.files.find_installed(dotted)
        return self.module(path) if path is not None else None

    def mentioning(self, words: Sequence[str]) -> list[Module]:
        """Return the modules of the project that contain one of `words`."""
        found = map(self.module, self.files.mentioning(words))
        return [module for module in found if module is not None]

    def unreadable(self, paths: Iterable[Path], words: Sequence[str]) -> list[Path]:
        """Return those of some files that contain one of `words` and are not readable as Python."""
        encoded = (word.encode(errors="surrogateescape") for word in words)
        each = re.compile(rb"\b(?:%s)\b" % b"|".join(map(re.escape, encoded)))
        return [
            path
            for path in paths
            if self.module(path) is None
            and not may_be_notebook(path)
            and each.search(self.files.data(path))
        ]

    def once(self, question: Callable[[Project, *Ts], T], *about: *Ts) -> T:
        """Return the answer to a question about the project, or about something in it, which is
        asked only once.
        """
        key = (question, *about)
        if key not in self._answers:
            self._answers[key] = question(self, *about)
        return cast(T, self._answers[key])

    def forget(self, question: object) -> None:
        """Drop the answers to a question."""
        self._answers = {key: known for key, known in self._answers.items() if key[0] != question}

    def values(self, module: Module, node: ast.expr) -> Values:
        """Return what an expression of a module may denote."""
        return self.evaluator.values(module, node)

    def qualified(self, module: Module, node: ast.expr) -> frozenset[str]:
        """Return the names of libraries that an expression may denote."""
        return frozenset(v.name for v in self.values(module, node) if isinstance(v, External))
