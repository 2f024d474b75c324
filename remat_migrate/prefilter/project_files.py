"""The prefilter for a project: which of its Python files may apply a checkpoint, without parsing.

Most files that mention a checkpoint save models, or mention it in a comment. An application needs
an attribute, an imported name, or a string: `nn.remat`, `from jax import checkpoint`,
`getattr(jax, "remat")`. Where a name is imported, it must be of the family, or come from a file of
the project. If in doubt, a file may apply a checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import SourceError
from ..libraries.apis import KNOWN_PACKAGES, ApiTable
from .code import code_of
from .first_look import FirstLook
from .imports import Import, imports_of, without_imports
from .mentions import BY_NAME, FAR, NAMESPACE, QUOTES, SPACE
from .word_search import Places, WordSearch
from .words import FLAGS, LIBRARY

# What stands before an attribute: `jax.`, `a.b.`, `f(x).`
_BEFORE = re.compile(rb"(?:(\w+)((?:\s*\.\s*\w+)*)|[)\]}\"'])\s*(?:\\\s*)*\.\s*(?:\\\s*)*\Z")
# The usual names of modules of the checkpoint family.
_SHORT = frozenset({"nn", "linen", "partitioning", "lift", "eqx", "adc", "ad_checkpoint"})


@dataclass(frozen=True, slots=True)
class _Seen:
    """The result of the first look at a file.

    Attributes:
        sure: whether it suffices to parse the file.
        known: whether the file names one of the libraries.
    """

    sure: bool
    known: bool


class Prefilter:
    """Tells which files of a project may apply a checkpoint."""

    def __init__(
        self,
        apis: ApiTable,
        packages: Iterable[str],
        words: Iterable[str],
        find: Callable[[str, Path], Path | None],
        module_name: Callable[[Path], str],
        read: Callable[[Path], bytes],
    ) -> None:
        """Create a prefilter.

        Args:
            apis: the checkpoint family, including what is added to it later.
            packages: the packages of wrappers that the settings name.
            words: further words that make a file matter, for rules that look for other things.
            find: returns the file that a dotted name means in another file.
            module_name: returns the dotted name of a file.
            read: returns the bytes of a Python file, or of the code of a notebook.
        """
        self._apis = apis
        self._find = find
        self._module_name = module_name
        self._read = read
        self._words = tuple(words)
        # In files without one of these, the names mean something else unless they are imported.
        self._library = WordSearch((*LIBRARY, *(package.encode() for package in packages)))
        self._first_looks: dict[Path, _Seen | None] = {}
        self._codes: dict[Path, bytes] = {}
        self._imports: dict[Path, list[Import]] = {}
        self._rests: dict[Path, bytes] = {}
        self._imported: dict[Path, list[Path]] = {}

    def forget(self) -> None:
        """Forget the words of the first look, because the family has grown."""
        vars(self).pop("first_look", None)

    @cached_property
    def first_look(self) -> FirstLook:
        """The first look at the bytes of a file."""
        return FirstLook(self._apis.last_names, self._words)

    def inspect(self, path: Path, data: bytes, words: Places) -> bool:
        """Return whether a file needs a closer look, and keep what that takes.

        `words` are the places of words that `first_look` found in it.
        """
        if path not in self._first_looks:
            self._first_looks[path] = self._inspect(path, data, words)
        return self._first_looks[path] is not None

    def may_hold(self, path: Path) -> bool:
        """Return whether a file may apply a checkpoint or hold what else rules look for."""
        if path not in self._first_looks:
            data = self._read_or_nothing(path)
            self.inspect(path, data, self.first_look.search.places(data))
        seen = self._first_looks[path]
        return seen is not None and (seen.sure or any(self._evidence(path, seen)))

    def _inspect(self, path: Path, data: bytes, words: Places) -> _Seen | None:
        look = self.first_look
        if not look.may_hold(data, words):
            return None
        if look.suppresses(data, words) or any(flag in words for flag in FLAGS):
            return _Seen(True, True)
        known = self._names_library(data)
        if known and look.is_wanted(words):
            return _Seen(True, True)
        self._codes[path] = code_of(data)
        return _Seen(False, known)

    def _names_library(self, data: bytes) -> bool:
        return b"jax" in data or bool(self._library.places(data))

    def _evidence(self, path: Path, seen: _Seen) -> Iterator[bool]:
        """Yield for each mention in a file whether it may be a checkpoint."""
        code = self._codes[path]
        names = sorted(self._apis.last_names)
        if seen.known and NAMESPACE in code:
            yield True
        if seen.known and any(function in code for function in BY_NAME):
            yield any(quote + name.encode() + quote in code for name in names for quote in QUOTES)
        for one in self._imports_of(path):
            if one.base and one.name in names:
                yield self._may_denote(path, _joined(self._absolute(path, one.base), one.name))
            elif one.base and one.name == "*":
                for name in names:
                    if re.search(rb"(?<![\w.])%s\b" % name.encode(), code):
                        yield self._may_denote(path, _joined(self._absolute(path, one.base), name))
        for name in names:
            for before in _attributes_of(self._rest_of(path), name.encode()):
                yield self._is_reached(path, before, name, seen.known)

    def _is_reached(self, path: Path, before: bytes, name: str, known: bool) -> bool:
        """Return whether an attribute of the expression before it may be a checkpoint."""
        chain = _BEFORE.search(before)
        if chain is None or chain[1] is None:
            return known  # the attribute of a result or an element
        root = chain[1].decode(errors="replace")
        rest = b"".join(chain[2].split()).decode(errors="replace")
        if known or name == "remat" or (root + rest).rpartition(".")[2] in _SHORT:
            bindings = [one for one in self._imports_of(path) if one.bound == root]
            if not bindings or _is_rebound(self._rest_of(path), root):
                return True
        return self._may_be_imported(path, f"{root}{rest}.{name}")

    def _may_be_imported(self, path: Path, dotted: str) -> bool:
        """Return whether a dotted name in a file may be a checkpoint through its imports."""
        bound, _, rest = dotted.partition(".")
        for one in self._imports_of(path):
            base = self._absolute(path, one.base)
            if one.name == "*":
                meant = _joined(base, dotted)
            elif one.bound != bound:
                continue
            elif one.base:
                meant = _joined(base, one.name, rest)
            else:  # `import a.b` binds `a`
                is_whole = one.bound != one.name.partition(".")[0]
                meant = _joined(one.name if is_whole else one.bound, rest)
            if self._may_denote(path, meant):
                return True
        return False

    def _may_denote(self, path: Path, dotted: str) -> bool:
        """Return whether an absolute dotted name that a file imports may be a checkpoint: any name
        from a file that can be found may.
        """
        if self._apis.find(dotted) is not None:
            return True
        parts = dotted.split(".")
        if parts[0] in KNOWN_PACKAGES:
            return False
        return any(self._find(".".join(parts[:n]), path) for n in range(len(parts) - 1, 0, -1))

    def _absolute(self, path: Path, base: str) -> str:
        """Return the dotted name of the module that `from base import` names in a file."""
        relative = base.lstrip(".")
        level = len(base) - len(relative)
        if not level:
            return relative
        parts = self._module_name(path).split(".")
        drop = level - (1 if path.name == "__init__.py" else 0)
        parts = parts[: len(parts) - drop] if drop else parts
        return ".".join([*parts, *([relative] if relative else [])])

    def names_in_code(self, path: Path, word: bytes) -> bool:
        """Return whether a word that a file contains is in its code, too."""
        return re.search(rb"\b%s\b" % re.escape(word), self._code_of(path)) is not None

    def imports_any(self, path: Path, goals: Collection[Path], known: dict[Path, bool]) -> bool:
        """Return whether a file imports one of `goals`, directly or through other files.

        `known` caches the answers for these goals.
        """
        seen, left = {path}, [path]
        while left:
            for file in self.imported_files(left.pop()):
                if file in goals or known.get(file):
                    known[path] = True
                    return True
                if file not in seen and file not in known:
                    seen.add(file)
                    left.append(file)
        known.update(dict.fromkeys(seen, False))
        return False

    def imported_files(self, path: Path) -> list[Path]:
        """Return the files of the project that the imports of a file name."""
        if path not in self._imported:
            names: dict[str, None] = {}
            for one in self._imports_of(path):
                dotted = self._absolute(path, one.base) if one.base else one.name
                if dotted.partition(".")[0] in KNOWN_PACKAGES:
                    continue
                if one.base and one.name != "*":
                    names[f"{dotted}.{one.name}" if dotted else one.name] = None
                while dotted:
                    names[dotted] = None
                    dotted = dotted.rpartition(".")[0]
            found = (self._find(name, path) for name in names)
            self._imported[path] = [file for file in dict.fromkeys(found) if file is not None]
        return self._imported[path]

    def _code_of(self, path: Path) -> bytes:
        if path not in self._codes:
            self._codes[path] = code_of(self._read_or_nothing(path))
        return self._codes[path]

    def _imports_of(self, path: Path) -> list[Import]:
        if path not in self._imports:
            self._imports[path] = list(imports_of(self._code_of(path)))
        return self._imports[path]

    def _rest_of(self, path: Path) -> bytes:
        if path not in self._rests:
            self._rests[path] = without_imports(self._code_of(path))
        return self._rests[path]

    def _read_or_nothing(self, path: Path) -> bytes:
        try:
            return self._read(path)
        except SourceError:
            return b""  # reported if it is a target


def _joined(*parts: str) -> str:
    return ".".join(filter(None, parts))


def _attributes_of(code: bytes, name: bytes) -> Iterator[bytes]:
    """Yield the code before each attribute of a name, including the dot."""
    length = len(name)
    at = code.find(name)
    while at >= 0:
        end = at + length
        after = code[end : end + 1]
        if not (after.isalnum() or after == b"_"):
            before = code[max(0, at - FAR) : at]
            if before.rstrip(SPACE).endswith(b"."):
                yield before
        at = code.find(name, end)


def _is_rebound(rest: bytes, name: str) -> bool:
    """Return whether an imported name may be bound to something else, such as a parameter.

    `rest` is the code of the file without its imports.
    """
    word = re.escape(name.encode())
    return re.search(rb"(?<![\w.])%s\s*(?:=(?!=)|[,:)]|in\b)" % word, rest) is not None
