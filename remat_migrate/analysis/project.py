"""The project: its modules that can matter, linked; what rules ask."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ..errors import SourceError
from ..settings import Settings
from ..text import SourceFile
from ..text.source_file import may_be_notebook
from .files import Files
from .libraries.apis import ApiTable
from .libraries.transforms import TransformTable
from .names.module import Module
from .needs.need import Learned
from .needs.needs import Needs
from .placement.placement import Placement
from .selection import Selection
from .sites.call_search import find_uses
from .sites.site import Site, find_sites
from .sites.subclasses import Subclasses
from .sites.uses import Uses
from .statics.argument_kinds import Kinds
from .values.classes import class_chain
from .values.evaluator import Evaluator
from .values.overrides import Overrides
from .values.values import Class, External, Function, ModuleValue, Values

# A text file without one of these cannot set the flag, nor suppress a finding.
TEXT_WORDS = (
    b"jax_new_checkpoint",
    b"JAX_NEW_CHECKPOINT",
    b"jax_remat_barrier",
    b"JAX_REMAT_BARRIER",
    b"RMT",
)


class Project:
    """The modules of one run.

    Attributes:
        settings: what the run is asked to do.
        targets: the files that the user named; only these are edited.
        modules: the Python targets that can matter, parsed.
        texts: the other targets that can matter.
        errors: targets that could not be read or parsed.
        apis: the checkpoint family, with the wrappers that the settings name.
        evaluator: evaluates expressions of any module.
        readers: of targets that hold options, the sites in other files that use them.
    """

    def __init__(
        self,
        settings: Settings,
        targets: Sequence[Path],
        texts: Sequence[Path] = (),
        context: Sequence[Path] = (),
        overlay: Mapping[Path, SourceFile] | None = None,
        previous: Project | None = None,
        learned: frozenset[Learned] = frozenset(),
        words: Iterable[str] = (),
        refused: Mapping[Path, SourceError] | None = None,
    ) -> None:
        """Read the targets that can matter; `context` files are read when something needs them.

        Modules of a `previous` project whose text is still the same are taken from it. `learned`
        are needs that running the code showed. `words` are more words that make a file matter.
        What is `refused` counts as unreadable.
        """
        self.settings = settings
        self._learned = learned
        self.targets = frozenset((*targets, *texts))
        self.apis = ApiTable({w.name: w.like for w in settings.wrappers})
        self.files = Files(settings.root, targets, context, overlay, settings.search_path, refused)
        self.evaluator = Evaluator(self.apis, self.find_module)
        self.evaluator.transforms = TransformTable({s.name: s.like for s in settings.scans})
        self.evaluator.find_installed = self._find_installed
        self.errors: list[SourceError] = []
        self._parsed: dict[Path, Module | None] = {}
        self._sites: dict[Module, list[Site]] = {}
        self._uses: dict[Site | Function, Uses] = {}
        self.modules: dict[Path, Module] = {}
        self.texts: dict[Path, SourceFile] = {}
        self.readers: dict[Module, list[Site]] = {}
        self._previous = previous._parsed if previous is not None else {}
        self._selection = Selection(self, words)
        self._selection.choose()
        self._read_texts(texts)
        known = {error.path for error in self.errors}
        self.errors += [
            error
            for path, error in (refused or {}).items()
            if path in self.targets and path not in known
        ]

    # -- reading

    def _read_texts(self, texts: Sequence[Path]) -> None:
        for path in texts:
            try:
                data = self.files.data(path)
                if any(word in data for word in TEXT_WORDS):
                    self.texts[path] = self.files.read(path, data, python=False)
            except SourceError as error:
                self.errors.append(error)

    def module(self, path: Path) -> Module | None:
        """The parsed module of a file, None if it cannot be parsed."""
        if path not in self._parsed:
            try:
                source = self.files.read(path)
                known = self._previous.get(path)
                if known is not None and known.source.text == source.text:
                    self._parsed[path] = known
                    return known
                tree = source.parse()
            except SourceError:
                self._parsed[path] = None  # reported as RMT000 where it is a target
                return None
            self._parsed[path] = Module(
                source,
                tree,
                self.files.module_name(path),
                path.name == "__init__.py",
                path in self.targets,
            )
        return self._parsed[path]

    @property
    def parsed(self) -> list[Module]:
        """The modules that were parsed so far, targets or not."""
        return [module for module in self._parsed.values() if module is not None]

    def find_module(self, dotted: str, importer: Module) -> Module | None:
        """The project's module that `import dotted` in `importer` means."""
        path = self.files.find(dotted, importer.source.path)
        return self.module(path) if path is not None else None

    def _find_installed(self, dotted: str) -> Module | None:
        path = self.files.find_installed(dotted)
        return self.module(path) if path is not None else None

    def mentioning(self, words: Sequence[str]) -> list[Module]:
        """The modules of the whole project, targets or not, that contain one of `words`."""
        found = []
        for path in self.files.mentioning(words):
            module = self.module(path)
            if module is not None:
                found.append(module)
        return found

    def unreadable(self, words: Sequence[str]) -> list[Path]:
        """The files of the project that cannot be read as Python and hold one of `words`."""
        encoded = (word.encode(errors="surrogateescape") for word in words)
        each = re.compile(rb"\b(?:%s)\b" % b"|".join(map(re.escape, encoded)))
        return [
            path
            for path in self.files.mentioning(words)
            if self.module(path) is None
            and not may_be_notebook(path)
            and each.search(self.files.data(path))
        ]

    def _find_subclasses(self) -> None:
        """Note who inherits from whom: a method of a base may call what a subclass assigns."""
        known = False
        for module in self.parsed:
            for node in module.nodes:
                if isinstance(node, ast.ClassDef) and node.bases:
                    own = Class(module, node)
                    for base in class_chain(self.evaluator, own):
                        if isinstance(base, Class) and base != own:
                            self.evaluator.subclasses.setdefault(base.node, []).append(own)
                            known = True
        if known:
            self.evaluator.forget()

    # -- questions

    @cached_property
    def needs(self) -> Needs:
        """Which parameters of a function Python must know."""
        return Needs(Overrides(self.evaluator), self._learned)

    @cached_property
    def overrides(self) -> Overrides:
        """What method calls may run, subclasses in all files of the project included."""
        return Overrides(self.evaluator, Subclasses(self).of)

    @cached_property
    def needs_with_overrides(self) -> Needs:
        """The same as `needs` where an object may be an instance of a subclass.

        This takes a search for subclasses, so it is for what is rewritten, not for what is checked.
        """
        return Needs(self.overrides, self._learned)

    @cached_property
    def kinds(self) -> Kinds:
        """Whether an argument is a value of Python or an array."""
        return Kinds(self)

    @cached_property
    def placement(self) -> Placement:
        """What is differentiated, what runs in loops, and where checkpoints stand in it."""
        return Placement(self)

    def uses(self, made: Site | Function) -> Uses:
        """The calls of what a site makes, or of a function, and where it goes out of sight."""
        if not self._uses:
            self._find_subclasses()
        if made not in self._uses:
            self._uses[made] = Uses()  # of a recursion
            self._uses[made] = find_uses(self, made)
        return self._uses[made]

    @cached_property
    def sites(self) -> list[Site]:
        """The sites of all targets, by path and place."""
        return [s for path in sorted(self.modules) for s in self.sites_in(self.modules[path])]

    def sites_in(self, module: Module) -> list[Site]:
        """The sites of one module."""
        if module not in self._sites:
            bare = module in self._selection.bare
            self._sites[module] = [] if bare else find_sites(module, self.evaluator)
        return self._sites[module]

    def forget_sites(self) -> None:
        """Drop the sites that were found, because more is known."""
        self._sites.clear()

    def values(self, module: Module, node: ast.expr) -> Values:
        """What an expression of a module may denote."""
        return self.evaluator.values(module, node)

    def qualified(self, module: Module, node: ast.expr) -> frozenset[str]:
        """The dotted names that an expression may denote; empty when nothing is known."""
        found: set[str] = set()
        for value in self.values(module, node):
            match value:
                case External(name):
                    found.add(name)
                case Function(module=owner, node=definition) | Class(module=owner, node=definition):
                    found.add(owner.qualified_name(definition))
                case ModuleValue(module=owner):
                    found.add(owner.name)
        return frozenset(found)
