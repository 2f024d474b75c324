"""The project: its modules that can matter, linked; what rules ask."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ..errors import SourceError
from ..settings import Settings
from ..source import SourceFile
from ..source.text import may_be_notebook
from ..source.words import bound_aliases
from .apis import ApiTable
from .application import api_of
from .classes import class_chain
from .evaluate import Evaluator
from .files import Files, Words, default_search_path, may_differentiate_scan
from .kinds import Kinds
from .module import Module
from .need import Learned
from .needs import Needs
from .placement import Placement
from .sites import Site, find_sites, interesting_names
from .transforms import TransformTable
from .use_search import find_uses
from .uses import Uses
from .values import Class, External, Function, ModuleValue, Values
from .wrappers import find_handing_on, find_wrappers, note_passed_apis

# `concrete=concrete`: an option that is handed on.
_HANDED_ON = re.compile(rb"\bconcrete\s*=\s*(?!True\b|False\b|None\b)[A-Za-z_]\w*\s*[,)]")

_SET = re.compile(rb"\bconcrete\s*=\s*(?:True|False)\b")
# `dict(concrete=True)` or `{"concrete": True}`
_OPTION = re.compile(rb"\bconcrete\s*=[^=]|['\"]concrete['\"]\s*:")
_SPREAD = re.compile(rb"\b(?:remat|checkpoint)\([^()]*\*\*\s*\w+\s*,?\s*\)")

# `def remat(*args, **kwargs)`
_HANDING_ON = re.compile(rb"def (?:remat|checkpoint)\(\s*\*\s*\w")

# Files with one of these may hold a checkpoint, or a wrapper of one.
_WRITTEN = ("concrete", "remat", "checkpoint")

# The names in a file's imports, without the words of the language.
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_NAME = re.compile(rb"\w+")

# `from jax import checkpoint`, which others may import from here.
_IMPORTED = re.compile(rb"^[ \t]*from\b[^\n]*\bimport\b[^\n]*\b(remat|checkpoint)\b", re.MULTILINE)

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
    ) -> None:
        """Read the targets that can matter; `context` files are read when something needs them.

        Modules of a `previous` project whose text is still the same are taken from it. `learned`
        are needs that running the code showed.
        """
        self.settings = settings
        self._learned = learned
        self.targets = frozenset((*targets, *texts))
        self.apis = ApiTable({w.name: w.like for w in settings.wrappers})
        search_path = settings.search_path or default_search_path(settings.root)
        self.files = Files(settings.root, targets, context, overlay, search_path)
        self.evaluator = Evaluator(self.apis, self.find_module)
        self.evaluator.transforms = TransformTable({s.name: s.like for s in settings.scans})
        self.evaluator.find_installed = self._find_installed
        self.errors: list[SourceError] = []
        self._parsed: dict[Path, Module | None] = {}
        self._sites: dict[Module, list[Site]] = {}
        # Modules in which there are no sites.
        self._bare: set[Module] = set()
        self._uses: dict[Site, Uses] = {}
        self.modules: dict[Path, Module] = {}
        self.texts: dict[Path, SourceFile] = {}
        self._wrappers: set[str] = set()
        self.readers: dict[Module, list[Site]] = {}
        self._previous = previous._parsed if previous is not None else {}
        self._read_targets()
        self._read_texts(texts)
        self._note_passed()
        self._take_option_holders()

    # -- reading

    def _read_targets(self) -> None:
        wrappers = {w.name.partition(".")[0] for w in self.settings.wrappers}
        words = self._words = Words(self.apis.last_names, wrappers)
        rest: list[tuple[Path, bytes]] = []
        handing_on: list[Path] = []
        scanning: list[Path] = []
        for path in self.files.targets:
            try:
                data = self.files.code(path, self.apis.last_names)
                if _HANDING_ON.search(data):
                    handing_on.append(path)
                if words.match(data):
                    self.files.read(path, data)
                    self._take(path)
                else:
                    _check_text(path, data, self.files)
                    rest.append((path, data))
                    if may_differentiate_scan(data):
                        scanning.append(path)
            except SourceError as error:
                self.errors.append(error)
        self._find_wrappers(handing_on)
        self._take_importers(rest, words)
        self._take_scanning(scanning)

    def _take_importers(self, rest: Sequence[tuple[Path, bytes]], words: Words) -> None:
        """Take files that only use an alias of an Api, or a wrapper, that another file exports."""
        others = self._exporters([data for _, data in rest], words)
        aliases = self._exported_aliases([*self.modules.values(), *others])
        if not aliases:
            return
        each = "|".join(map(re.escape, sorted(aliases)))
        imported = re.compile(rf"(?s)\bimport\b.*\b(?:{each})\b".encode())
        stems = [s.encode() for s in {s for found in aliases.values() for s in found}]
        for path, data in rest:
            if any(stem in data for stem in stems) and imported.search(data):
                try:
                    self._take(path)
                except SourceError as error:
                    self.errors.append(error)

    def _take_scanning(self, paths: Sequence[Path]) -> None:
        """Take files that hold no checkpoint, but a scan and a gradient."""
        for path in paths:
            if path not in self.modules and (module := self.module(path)) is not None:
                self.modules[path] = module
                self._bare.add(module)

    def _find_wrappers(self, handing_on: Sequence[Path]) -> None:
        """Take the project's own wrappers for Apis of the project.

        They hand `concrete` on, or everything: `def remat(*args, **kwargs)` in the files
        `handing_on`.
        """
        mentioning = {p: self.files.data(p) for p in self.files.mentioning(_WRITTEN)}
        optional = {path: data for path, data in mentioning.items() if b"concrete" in data}
        paths = [path for path, data in optional.items() if _HANDED_ON.search(data)]
        if any(_SET.search(data) for data in optional.values()):
            # `def wrapper(f, **options): return jax.checkpoint(f, **options)`
            paths += [path for path, data in mentioning.items() if _SPREAD.search(data)]
        modules = [module for path in paths if (module := self.module(path)) is not None]
        found = [w for module in modules for w in find_wrappers(module, self.evaluator)]
        for path in handing_on:
            if (module := self.module(path)) is not None:
                found += find_handing_on(module, self.evaluator)
        for wrapper in found:
            self.apis.add(wrapper)
            self._wrappers.add(wrapper.name)
        if found:
            self.evaluator.forget()

    def _note_passed(self) -> None:
        """Follow Apis that are passed to functions of the project."""
        noted = False
        for module in list(self.modules.values()):
            for site in self.sites_in(module):
                if site.form in ("reference", "partial"):
                    reference = site.reference
                    if site.form == "partial":
                        holder = module.parent(reference)
                        assert isinstance(holder, ast.expr)
                        reference = holder
                    noted = note_passed_apis(module, reference, self.evaluator) or noted
        if noted:
            self._sites.clear()

    def _take_option_holders(self) -> None:
        """Take targets that only hold options: `OPTIONS = dict(concrete=True)`."""
        for module in list(self.modules.values()):
            for site in self.sites_in(module):
                for option in site.arguments.values():
                    path = option.module.source.path
                    if path in self.targets and path not in self.modules:
                        self.modules[path] = option.module
        # Those that only files outside of the targets use.
        mentioning = self.files.mentioning(_WRITTEN)
        for path in self.targets.intersection(mentioning).difference(self.modules):
            if _OPTION.search(self.files.data(path)):
                self._take_option_holder(path, [p for p in mentioning if p not in self.targets])

    def _take_option_holder(self, path: Path, others: Sequence[Path]) -> None:
        """Take a target if one of the files that are only read applies options from it."""
        name = (path.parent.name if path.name == "__init__.py" else path.stem).encode()
        for other in others:
            data = self.files.data(other)
            if name not in data or not self._words.match(data):
                continue
            module = self.module(other)
            for site in self.sites_in(module) if module is not None else ():
                for option in site.arguments.values():
                    if option.module.source.path == path:
                        self.modules[path] = option.module
                        self.readers.setdefault(option.module, []).append(site)

    def _take(self, path: Path) -> None:
        module = self.module(path)
        if module is None:
            raise self._failed(path)
        self.modules[path] = module

    def _failed(self, path: Path) -> SourceError:
        try:
            self.files.read(path).parse()
        except SourceError as error:
            return error
        return SourceError(path, "cannot be parsed")

    def _exporters(self, importing: Sequence[bytes], words: Words) -> list[Module]:
        """Files that are only read, with a checkpoint, and that one of the texts imports."""
        mentioning = [p for p in self.files.mentioning(_WRITTEN) if p not in self.targets]
        if not (importing and mentioning):
            return []
        lines = (line for data in importing for line in _IMPORTS.findall(data))
        imported = {name.decode() for line in lines for name in _NAME.findall(line)}
        found = []
        for path in mentioning:
            if not self._is_among(imported, path):
                continue
            data = self.files.data(path)
            names = {*bound_aliases(data), *_IMPORTED.findall(data)}
            if words.match(data) and any(name in text for name in names for text in importing):
                found.append(self.module(path))
        return [module for module in found if module is not None]

    def _is_among(self, imported: Collection[str], path: Path) -> bool:
        """Whether a file, or a package that may offer what is in it, is among imported names."""
        if path.name == "__init__.py":
            return path.parent.name in imported
        if path.stem in imported:
            return True
        if path.parent.name not in imported:
            return False
        try:
            return path.stem.encode() in self.files.data(path.parent / "__init__.py")
        except SourceError:
            return False

    def _exported_aliases(self, modules: Iterable[Module]) -> dict[str, set[str]]:
        """Module-level names that are Apis or partials of them, with the last parts of the names of
        the modules or packages that they may be imported from."""
        found: dict[str, set[str]] = {}
        for name in self._wrappers:
            *package, last = name.split(".")
            found.setdefault(last, set()).update(package[-2:])
        for module in modules:
            names = interesting_names(module, self.evaluator)
            scope = module.scope_of(module.tree)
            for name in names & scope.bound:
                values = self.evaluator.member(module, name)
                if any(api_of(self.apis, value) is not None for value in values):
                    found.setdefault(name, set()).update(module.name.split(".")[-2:])
        return found

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

    def _find_subclasses(self) -> None:
        """Note who inherits from whom: a method of a base may call what a subclass assigns."""
        known = False
        for module in [m for m in self._parsed.values() if m is not None]:
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
        return Needs(self.evaluator, self._learned)

    @cached_property
    def kinds(self) -> Kinds:
        """Whether an argument is a value of Python or an array."""
        return Kinds(self)

    @cached_property
    def placement(self) -> Placement:
        """What is differentiated, what runs in loops, and where checkpoints stand in it."""
        return Placement(self)

    def uses(self, site: Site) -> Uses:
        """The calls of what a site makes, and where it goes out of sight."""
        if not self._uses:
            self._find_subclasses()
        if site not in self._uses:
            self._uses[site] = find_uses(self, site)
        return self._uses[site]

    @cached_property
    def sites(self) -> list[Site]:
        """The sites of all targets, by path and place."""
        return [s for path in sorted(self.modules) for s in self.sites_in(self.modules[path])]

    def sites_in(self, module: Module) -> list[Site]:
        """The sites of one module."""
        if module not in self._sites:
            bare = module in self._bare
            self._sites[module] = [] if bare else find_sites(module, self.evaluator)
        return self._sites[module]

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


def _check_text(path: Path, data: bytes, files: Files) -> None:
    """A file that cannot matter is still reported when it is not text."""
    if not may_be_notebook(path) and (b"\0" in data or not data.isascii()):
        files.read(path, data)
