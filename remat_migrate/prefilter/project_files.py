"""What the bytes of a Python file tell before it is parsed: whether a checkpoint may stand in it.

Most files that mention a checkpoint save models, or say the word in a comment. An application needs
an attribute, an imported name, or a string: `nn.remat`, `from jax import checkpoint`,
`getattr(jax, "remat")`. Where the name comes from is followed through the imports of the files of
the project, in their text. What cannot be told this way may hold one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import SourceError
from ..libraries.apis import KNOWN_PACKAGES, ApiTable
from .code import code_of
from .mentions import BY_NAME, FAR, NAMESPACE, QUOTES, SPACE, is_of_word, shows_name
from .words import FLAGS, SUPPRESSION, WORDS

# What stands before `import` in its statement.
_FROM = re.compile(rb"\s*(?:from\b\s*(?P<base>[.\s]*[\w.]*)\s*)?\Z")
_IMPORTED = re.compile(rb"(\*|\w[\w. \t]*?)(?:\s+as\s+(\w+))?\s*(?:,|$)")
_CONTINUED = re.compile(rb"\\\r?\n")
# What stands before an attribute: `jax.`, `a.b.`, `f(x).`
_BEFORE = re.compile(rb"(?:(\w+)((?:\s*\.\s*\w+)*)|[)\]}\"'])\s*(?:\\\s*)*\.\s*(?:\\\s*)*\Z")
# What is not called at once is given a name, put into a container, or passed on.
_GIVEN = rb"(?:[=:,{\[(]|\b(?:return|else|or|and))\s*['\"]?[\w.]*\b(?:%s)\b(?!\s*\()"
# Packages of checkpoints, and usual names of their modules.
_LIBRARY = (b"jax", b"flax", b"haiku", b"equinox", b"nnx", b"hk.", b"brainstate", b"JAX", b"Jax")
_SHORT = frozenset({"nn", "linen", "partitioning", "lift", "eqx", "adc", "ad_checkpoint"})


@dataclass(frozen=True, slots=True)
class Import:
    """A name that an import statement binds.

    Attributes:
        base: the module it is imported from, with leading dots; "" of `import a.b`.
        name: what is imported: `*`, a name, or the dotted name of a module.
        bound: the name that it is given.
    """

    base: str
    name: str
    bound: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the first look at a file says.

    Attributes:
        sure: whether that is enough to look at it in full.
        known: whether it names one of the libraries.
    """

    sure: bool
    known: bool


class Glimpse:
    """Tells of the files of a project whether a checkpoint may stand in them."""

    def __init__(
        self,
        apis: ApiTable,
        packages: Iterable[str],
        words: Iterable[str],
        find: Callable[[str, Path], Path | None],
        module_name: Callable[[Path], str],
        read: Callable[[Path], bytes],
    ) -> None:
        """What is asked, and where answers are.

        Args:
            apis: the checkpoint family; what is added to it later counts as well.
            packages: the packages of wrappers that the settings name.
            words: further words that make a file matter, for rules that look for something else.
            find: the file of the project that a dotted name means, seen from another one.
            module_name: the dotted name of a file.
            read: the bytes of a Python file, or of the code of a notebook.
        """
        self._apis = apis
        self._find = find
        self._module_name = module_name
        self._read = read
        self._words = tuple(word.encode() for word in words)
        # Elsewhere these names are somebody else's, unless an import leads to the library.
        self._library = (*_LIBRARY, *sorted({package.encode() for package in packages}))
        self._seen: dict[Path, _Seen | None] = {}
        self._codes: dict[Path, bytes] = {}
        self._imports: dict[Path, list[Import]] = {}
        self._rests: dict[Path, bytes] = {}
        self._imported: dict[Path, list[Path]] = {}
        self._exporting: dict[tuple[Path, str], bool] = {}
        self._asking: list[tuple[Path, str]] = []

    def forget(self) -> None:
        """Drop what is known of names that files export, because more Apis are."""
        self._exporting.clear()

    @property
    def needles(self) -> tuple[bytes, ...]:
        """Parts of words, one of which is in any file that may hold a checkpoint."""
        names = {name.encode() for name in self._apis.last_names}
        other = {name for name in names if b"remat" not in name and b"checkpoint" not in name}
        found = {*WORDS, *self._words, *other}
        # A word that has another one in it need not be looked for.
        return tuple(w for w in sorted(found) if not any(o in w for o in found if o != w))

    def look(self, path: Path, data: bytes) -> bool:
        """Whether a file is worth a closer look; what that takes is kept, not the file's bytes."""
        if path not in self._seen:
            self._seen[path] = self._look(path, data)
        return self._seen[path] is not None

    def may_hold(self, path: Path) -> bool:
        """Whether a file may hold a checkpoint, or another thing that rules look for."""
        if path not in self._seen:
            self.look(path, self._read_or_nothing(path))
        seen = self._seen[path]
        return seen is not None and (seen.sure or any(self._evidence(path, seen)))

    def _look(self, path: Path, data: bytes) -> _Seen | None:
        if (b"RMT" in data or b"remat-migrate" in data) and SUPPRESSION.search(data):
            return _Seen(True, True)
        names = [name.encode() for name in self._apis.last_names]
        wanted = any(word in data for word in self._words)
        if not (wanted or shows_name(data, names) or FLAGS[1] in data):
            return None
        if any(flag in data for flag in FLAGS):
            return _Seen(True, True)
        known = self._names_library(data)
        if known and wanted:
            return _Seen(True, True)
        self._codes[path] = code_of(data)
        return _Seen(False, known)

    def _names_library(self, data: bytes) -> bool:
        return any(word in data for word in self._library)

    def _evidence(self, path: Path, seen: _Seen) -> Iterator[bool]:
        """Whether the mentions in a file may each be a checkpoint."""
        code = self._codes[path]
        names = sorted(self._apis.last_names)
        if seen.known and NAMESPACE in code:
            yield True
        if seen.known and any(function in code for function in BY_NAME):
            yield any(quote + name.encode() + quote in code for name in names for quote in QUOTES)
        for one in self._imports_of(path):
            if one.base and one.name in names:
                yield self._gives(path, one.base, one.name)
            elif one.base and one.name == "*":
                for name in names:
                    if re.search(rb"(?<![\w.])%s\b" % name.encode(), code):
                        yield self._gives(path, one.base, name)
        for name in names:
            for before in _attributes_of(self._rest_of(path), name.encode()):
                yield self._is_reached(path, before, name, seen.known)

    def _is_reached(self, path: Path, before: bytes, name: str, known: bool) -> bool:
        """Whether an attribute of what is written before it may be a checkpoint."""
        chain = _BEFORE.search(before)
        if chain is None or chain[1] is None:
            return known  # of a result, or an element
        root = chain[1].decode(errors="replace")
        rest = b"".join(chain[2].split()).decode(errors="replace")
        if known or name == "remat" or (root + rest).rpartition(".")[2] in _SHORT:
            bindings = [one for one in self._imports_of(path) if one.bound == root]
            if not bindings or _is_rebound(self._rest_of(path), root):
                return True
        return self._binds(path, root, rest, name)

    def _binds(self, path: Path, bound: str, rest: str, name: str) -> bool:
        """Whether `bound.rest.name` may be a checkpoint by an import of a file."""
        key = (path, f"{bound}{rest}.{name}")
        if key in self._asking:
            return False  # files that import one another
        self._asking.append(key)
        found = any(
            self._leads(path, one, f".{bound}{rest}" if one.name == "*" else rest, name)
            for one in self._imports_of(path)
            if one.bound == bound or (one.base and one.name == "*")
        )
        self._asking.pop()
        return found

    def _leads(self, path: Path, one: Import, rest: str, name: str) -> bool:
        """Whether `bound.rest.name` may be a checkpoint, where an import gives `bound`."""
        base = self._absolute(path, one.base)
        if one.name == "*":
            dotted = base
        elif one.base:
            dotted = f"{base}.{one.name}" if base else one.name
        else:  # `import a.b` binds `a`
            dotted = one.name if one.bound != one.name.partition(".")[0] else one.bound
        whole = dotted + rest
        if self._apis.find(f"{whole}.{name}") is not None:
            return True
        if whole.partition(".")[0] in KNOWN_PACKAGES:
            return False
        found = self._find(whole, path)
        if found is not None:
            return self._exports(found, name)
        # What is imported is not a module: something that a module of the project holds.
        inner = whole
        while inner:
            held = self._find(inner, path)
            if held is not None:
                if self._names_library(self._read_or_nothing(held)):
                    return True
                bound, _, more = whole[len(inner) + 1 :].partition(".")
                rest = f".{more}" if more else ""
                return _is_assigned(self._code_of(held), bound) or self._binds(
                    held, bound, rest, name
                )
            inner = inner.rpartition(".")[0]
        return False

    def _gives(self, path: Path, base: str, name: str) -> bool:
        """Whether `from base import name` may give a checkpoint."""
        dotted = self._absolute(path, base)
        if self._apis.find(f"{dotted}.{name}") is not None:
            return True
        if dotted.partition(".")[0] in KNOWN_PACKAGES:
            return False
        found = self._find(dotted, path)
        return found is not None and self._exports(found, name)

    def _exports(self, path: Path, name: str) -> bool:
        """Whether a module-level name of a file may be a checkpoint."""
        key = (path, name)
        if key in self._asking:
            return False  # files that import one another; another way may lead out
        if key not in self._exporting:
            self._asking.append(key)
            found = self._finds_export(path, name)
            self._asking.pop()
            if not found and self._asking:
                return False  # perhaps only because of what is asked already
            self._exporting[key] = found
        return self._exporting[key]

    def _finds_export(self, path: Path, name: str) -> bool:
        if self._apis.find(f"{self._module_name(path)}.{name}") is not None:
            return True
        data = self._read_or_nothing(path)
        if name.encode() not in data and b"*" not in data:
            return False
        code = self._code_of(path)
        if _is_assigned(code, name) and (self._names_library(data) or _is_renamed(code, name)):
            return True
        for one in self._imports_of(path):
            if one.base and one.bound == name and self._gives(path, one.base, one.name):
                return True
            if one.base and one.name == "*" and self._gives(path, one.base, name):
                return True
        return False

    def _absolute(self, path: Path, base: str) -> str:
        """The dotted name of the module that `from base import` names in a file."""
        relative = base.lstrip(".")
        level = len(base) - len(relative)
        if not level:
            return relative
        parts = self._module_name(path).split(".")
        drop = level - (1 if path.name == "__init__.py" else 0)
        parts = parts[: len(parts) - drop] if drop else parts
        return ".".join([*parts, *([relative] if relative else [])])

    # -- by other names

    def uses(self, path: Path, word: bytes) -> bool:
        """Whether the code of a file has a word that its bytes have."""
        return re.search(rb"\b%s\b" % re.escape(word), self._code_of(path)) is not None

    def gives(self, path: Path, words: Iterable[str]) -> bool:
        """Whether a file may give another name to what one of `words` means, or put it away."""
        words = frozenset(words)
        if any(one.name in words and one.bound != one.name for one in self._imports_of(path)):
            return True
        each = b"|".join(re.escape(word.encode()) for word in sorted(words))
        rest = self._rest_of(path)
        for found in re.finditer(_GIVEN % each, rest):
            line = rest[rest.rfind(b"\n", 0, found.start()) + 1 : found.start()]
            if not line.lstrip().startswith(b"@"):
                return True
        return False

    def reaches(self, path: Path, goals: Collection[Path], known: dict[Path, bool]) -> bool:
        """Whether a file imports one of `goals`, directly or through other files of the project.

        `known` keeps what is found of these goals.
        """
        seen, left = {path}, [path]
        while left:
            for file in self._imported_files(left.pop()):
                if file in goals or known.get(file):
                    known[path] = True
                    return True
                if file not in seen and file not in known:
                    seen.add(file)
                    left.append(file)
        known.update(dict.fromkeys(seen, False))
        return False

    def _imported_files(self, path: Path) -> list[Path]:
        """The files of the project that the imports of a file name."""
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
            self._rests[path] = _without_imports(self._code_of(path))
        return self._rests[path]

    def _read_or_nothing(self, path: Path) -> bytes:
        try:
            return self._read(path)
        except SourceError:
            return b""  # reported where it is a target


def imports_of(code: bytes) -> Iterator[Import]:
    """The names that the import statements of a file bind, from its code."""
    return (one for _, _, found in _import_statements(code) for one in found)


def _import_statements(code: bytes) -> Iterator[tuple[int, int, list[Import]]]:
    """The import statements of a file: start, end and the names that they bind."""
    code = _CONTINUED.sub(lambda found: b" " * len(found[0]), code)
    at = code.find(b"import")
    while at >= 0:
        end = at + len(b"import")
        start = max(code.rfind(mark, 0, at) for mark in (b"\n", b";", b":")) + 1
        head = _FROM.match(code[start:at])
        if head is not None and not is_of_word(code[end : end + 1]):
            rest = code[end : end + 1 + FAR].lstrip(b" \t")
            close = (b")",) if rest.startswith(b"(") else (b"\n", b";", b"\r")
            ends = [place for mark in close if (place := code.find(mark, end)) >= 0]
            names = code[end : min(ends, default=len(code))]
            base = b"".join((head["base"] or b"").split()).decode(errors="replace")
            yield start, end + len(names), list(_bound(base, names))
            end += len(names)
        at = code.find(b"import", end)


def _bound(base: str, names: bytes) -> Iterator[Import]:
    for name, other in _IMPORTED.findall(names.strip(b" \t\r\n(") + b","):
        text = b"".join(name.split()).decode(errors="replace")
        bound = other.decode(errors="replace")
        yield Import(base, text, bound or (text if base else text.partition(".")[0]))


def _attributes_of(code: bytes, name: bytes) -> Iterator[bytes]:
    """What stands before each attribute of a name, up to its dot."""
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


def _is_assigned(code: bytes, name: str) -> bool:
    """Whether a name may be given a value by other than an import or a definition."""
    word = re.escape(name.encode())
    given = rb"(?<![\w.])%s\s*(?:=(?!=)|:=|:[^=\n()]*=(?!=)|,[^=\n()]*=(?!=)|[)\]]\s*=(?!=)|in\b)"
    return re.search(given % word, code) is not None


def _is_renamed(code: bytes, name: str) -> bool:
    """Whether a name is given what another name means: `checkpoint = ops.save`."""
    word = re.escape(name.encode())
    return re.search(rb"(?m)^[ \t]*%s[ \t]*=[ \t]*[\w.]+[ \t]*$" % word, code) is not None


def _without_imports(code: bytes) -> bytes:
    parts = []
    at = 0
    for start, end, _ in _import_statements(code):
        parts.append(code[at:start])
        at = end
    return b"".join((*parts, code[at:]))


def _is_rebound(rest: bytes, name: str) -> bool:
    """Whether a name that is imported may be something else in places, as a parameter is.

    `rest`: the file's code without its imports.
    """
    word = re.escape(name.encode())
    return re.search(rb"(?<![\w.])%s\s*(?:=(?!=)|[,:)]|in\b)" % word, rest) is not None
