"""Which of the files that a user named are looked at: those that can matter.

First by their bytes (`glimpse.py`); then files that use a checkpoint by another name, which a file
of the project gives it; last those that hold options, or a scan that is differentiated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SourceError
from ..source.text import may_be_notebook, read_source
from ..source.words import bound_aliases, may_differentiate_scan
from .application import api_of
from .glimpse import Glimpse
from .module import Module
from .naming import interesting_names
from .wrappers import find_handing_on, find_wrappers, note_passed_apis

if TYPE_CHECKING:
    from .project import Project

# `concrete=concrete`: an option that is handed on.
_HANDED_ON = re.compile(rb"concrete\s*=\s*(?!True\b|False\b|None\b)[A-Za-z_]\w*\s*[,)]")

_SET = re.compile(rb"concrete\s*=\s*(?:True|False)\b")
# `dict(concrete=True)` or `{"concrete": True}`
_OPTION = re.compile(rb"\bconcrete\s*=[^=]|['\"]concrete['\"]\s*:")
_SPREAD = re.compile(rb"\b(?:remat|checkpoint)\([^()]*\*\*\s*\w+\s*,?\s*\)")

# `def remat(*args, **kwargs)`
_HANDING_ON = re.compile(rb"def (?:remat|checkpoint)\(\s*\*\s*\w")

_CONCRETE = b"concrete"

# In so many bytes a file may declare its encoding.
_COOKIE = 400


class Selection:
    """The choice of a project's modules, made once, when the project is."""

    def __init__(self, project: Project, words: Iterable[str]) -> None:
        """`words`: further words for which a file is looked at."""
        self.project = project
        self.files = project.files
        self.evaluator = project.evaluator
        # Modules in which there are no sites.
        self.bare: set[Module] = set()
        # Targets that may hold a checkpoint, by their words.
        self._candidates: list[Path] = []
        self._wrappers: set[str] = set()
        self._glimpse = Glimpse(
            project.apis,
            (w.name.partition(".")[0] for w in project.settings.wrappers),
            words,
            self.files.find,
            self.files.module_name,
            lambda path: self.files.code(path, project.apis.last_names),
        )

    def choose(self) -> None:
        """Fill the project's `modules`, `errors` and `readers`."""
        scanning: list[Path] = []
        optional: list[Path] = []
        handing_on: list[Path] = []
        needles = self._glimpse.needles
        for path in self.files.targets:
            try:
                data = self.files.code(path, self.project.apis.last_names)
                _check_text(path, data)
                if _CONCRETE in data:
                    optional.append(path)
                for needle in needles:
                    if needle in data:
                        if self._glimpse.look(path, data):
                            self._candidates.append(path)
                            if _HANDING_ON.search(data):
                                handing_on.append(path)
                        break
                if may_differentiate_scan(data):
                    scanning.append(path)
            except SourceError as error:
                self.project.errors.append(error)
        self._find_wrappers(optional, handing_on)
        for path in self._candidates:
            self._take_if(path)
        self._take_importers()
        for path in scanning:
            self._take_scanning(path)
        self._note_passed()
        self._take_option_holders(optional)

    # -- by their bytes

    def _take_if(self, path: Path) -> None:
        if self._glimpse.may_hold(path):
            try:
                self._take(path)
            except SourceError as error:
                self.project.errors.append(error)

    def _take(self, path: Path) -> None:
        module = self.project.module(path)
        if module is None:
            raise self._failed(path)
        self.project.modules[path] = module

    def _failed(self, path: Path) -> SourceError:
        try:
            self.files.read(path).parse()
        except SourceError as error:
            return error
        return SourceError(path, "cannot be parsed")

    def _take_scanning(self, path: Path) -> None:
        """Take a file that holds no checkpoint, but a scan and a gradient."""
        if path not in self.project.modules and (module := self.project.module(path)) is not None:
            self.project.modules[path] = module
            self.bare.add(module)

    # -- by other names

    @cached_property
    def _others(self) -> list[Path]:
        """The files that are only read, and may hold a checkpoint or an option of one."""
        needles = (*self._glimpse.needles, _CONCRETE)
        found = []
        for path in self.files.all:
            if path not in self.project.targets:
                data = self._data(path)
                if any(needle in data for needle in needles):
                    found.append(path)
        return found

    def _find_wrappers(self, optional: Sequence[Path], handing_on: Sequence[Path]) -> None:
        """Take the project's own wrappers for Apis of the project.

        They hand `concrete` on, or everything: `def remat(*args, **kwargs)` in the files
        `handing_on`.
        """
        wide = {path: self._data(path) for path in (*optional, *self._others)}
        narrow = {path: data for path, data in wide.items() if _CONCRETE in data}
        paths = [path for path, data in narrow.items() if _HANDED_ON.search(data)]
        if any(_SET.search(data) for data in narrow.values()):
            # `def wrapper(f, **options): return jax.checkpoint(f, **options)`
            paths += [path for path in self._spreading() if path not in paths]
        modules = [module for path in paths if (module := self.project.module(path)) is not None]
        found = [w for module in modules for w in find_wrappers(module, self.evaluator)]
        for path in handing_on:
            if (module := self.project.module(path)) is not None:
                found += find_handing_on(module, self.evaluator)
        for wrapper in found:
            self.project.apis.add(wrapper)
            self._wrappers.add(wrapper.name)
        if found:
            self.evaluator.forget()
            self._glimpse.forget()

    def _spreading(self) -> Iterator[Path]:
        """The files in which a checkpoint is applied with options that are spread."""
        for path in (*self._candidates, *self._others):
            if self._glimpse.may_hold(path) and _SPREAD.search(self._data(path)):
                yield path

    def _take_importers(self) -> None:
        """Take files that use an Api, or a wrapper, by a name that another file gives it."""
        names: dict[str, set[str]] = {}
        for name in self._wrappers:
            *package, last = name.split(".")
            names.setdefault(last, set()).update(package[-2:])
        modules = [*self.project.modules.values(), *self._exporters()]
        while True:
            for module in modules:
                for name in self._exported_aliases(module):
                    names.setdefault(name, set()).update(module.name.split(".")[-2:])
            new = {name: names[name] for name in names if name not in self.evaluator.aliases}
            if not new:
                return
            self.evaluator.aliases |= new.keys()
            modules = list(self._importers(new))

    def _exporters(self) -> Iterator[Module]:
        """Files that are only read, and give a checkpoint a name of their own."""
        for path in self._others:
            data = self._data(path)
            if any(bound_aliases(data)) and self._glimpse.may_hold(path):
                if (module := self.project.module(path)) is not None:
                    yield module

    def _exported_aliases(self, module: Module) -> Iterator[str]:
        """The module-level names that are Apis or partials of them, but for the Apis' own names.

        Those are followed by `Glimpse`.
        """
        names = interesting_names(module, self.evaluator)
        scope = module.scope_of(module.tree)
        for name in sorted((names & scope.bound) - self.project.apis.last_names):
            values = self.evaluator.member(module, name)
            if any(api_of(self.project.apis, value) is not None for value in values):
                yield name

    def _importers(self, names: Mapping[str, Collection[str]]) -> Iterator[Module]:
        """Take the targets that use one of the names; they, and files that give it another name."""
        each = b"|".join(re.escape(name.encode()) for name in sorted(names))
        used = re.compile(rb"\b(?:%s)\b" % each)
        renamed = re.compile(rb"\b(?:%s)\s+as\s|=\s*[\w.(\s]*\b(?:%s)\b" % (each, each))
        needles = [name.encode() for name in sorted(names)]
        stems = sorted({stem.encode() for found in names.values() for stem in found})
        for path in self.files.all:
            data = self._data(path)
            if not (any(one in data for one in needles) and any(stem in data for stem in stems)):
                continue
            start = data.find(b"import")
            if start < 0 or used.search(data, start) is None:
                continue
            if path in self.project.targets:
                try:
                    self._take(path)
                except SourceError as error:
                    self.project.errors.append(error)
                    continue
                yield self.project.modules[path]
            elif renamed.search(data) and (module := self.project.module(path)) is not None:
                yield module

    # -- by what is passed on

    def _note_passed(self) -> None:
        """Follow Apis that are passed to functions of the project."""
        project, noted = self.project, False
        for module in list(project.modules.values()):
            for site in project.sites_in(module):
                if site.form in ("reference", "partial"):
                    reference = site.reference
                    if site.form == "partial":
                        holder = module.parent(reference)
                        assert isinstance(holder, ast.expr)
                        reference = holder
                    noted = note_passed_apis(module, reference, self.evaluator) or noted
        if noted:
            project.forget_sites()

    def _take_option_holders(self, optional: Sequence[Path]) -> None:
        """Take targets that only hold options: `OPTIONS = dict(concrete=True)`."""
        project = self.project
        for module in list(project.modules.values()):
            for site in project.sites_in(module):
                for option in site.arguments.values():
                    path = option.module.source.path
                    if path in project.targets and path not in project.modules:
                        project.modules[path] = option.module
        # Those that only files outside of the targets use.
        for path in optional if self._others else ():
            if path not in project.modules and _OPTION.search(self._data(path)):
                self._take_option_holder(path)

    def _take_option_holder(self, path: Path) -> None:
        """Take a target if one of the files that are only read applies options from it."""
        project = self.project
        name = (path.parent.name if path.name == "__init__.py" else path.stem).encode()
        for other in self._others:
            data = self._data(other)
            if name not in data or not self._glimpse.may_hold(other):
                continue
            module = project.module(other)
            for site in project.sites_in(module) if module is not None else ():
                for option in site.arguments.values():
                    if option.module.source.path == path:
                        project.modules[path] = option.module
                        project.readers.setdefault(option.module, []).append(site)

    def _data(self, path: Path) -> bytes:
        """The bytes of a file that were read before; nothing of one that cannot be."""
        try:
            return self.files.code(path, self.project.apis.last_names)
        except SourceError:
            return b""  # reported where it is a target


def _check_text(path: Path, data: bytes) -> None:
    """A file that cannot matter is still reported when it is not text.

    Raises:
        SourceError: it is not.
    """
    if may_be_notebook(path) or (data.isascii() and b"\0" not in data):
        return
    try:
        if b"\0" not in data and b"coding" not in data[:_COOKIE]:
            data.decode()
            return
    except UnicodeDecodeError:
        pass  # told with its place
    read_source(path, data)
