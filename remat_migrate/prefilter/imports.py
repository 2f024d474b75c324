"""The imports of a Python file, read from its code without parsing it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .mentions import FAR, is_of_word

# What stands before `import` in its statement.
_FROM = re.compile(rb"\s*(?:from\b\s*(?P<base>[.\s]*[\w.]*)\s*)?\Z")
_IMPORTED = re.compile(rb"(\*|\w[\w. \t]*?)(?:\s+as\s+(\w+))?\s*(?:,|$)")
_CONTINUED = re.compile(rb"\\\r?\n")


@dataclass(frozen=True, slots=True)
class Import:
    """A name that an import statement binds.

    Attributes:
        base: the module it is imported from, with leading dots; "" for `import a.b`.
        name: what is imported: `*`, a name, or the dotted name of a module.
        bound: the name that it gets.
    """

    base: str
    name: str
    bound: str


def imports_of(code: bytes) -> Iterator[Import]:
    """Yield the names that the import statements of a file bind, given its code."""
    return (one for _, _, found in _import_statements(code) for one in found)


def without_imports(code: bytes) -> bytes:
    """Return code without its import statements."""
    parts = []
    at = 0
    for start, end, _ in _import_statements(code):
        parts.append(code[at:start])
        at = end
    return b"".join((*parts, code[at:]))


def _import_statements(code: bytes) -> Iterator[tuple[int, int, list[Import]]]:
    """Yield the start and the end of each import statement, and the names that it binds."""
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
