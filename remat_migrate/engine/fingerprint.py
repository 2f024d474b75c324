"""Fingerprints: what identifies a finding although lines move or code is reformatted.

A fingerprint covers the code of the rule, the path of the file, the enclosing definition and the
statement. Of a compound statement only the header counts, of a decorator only itself, of an import
only the names concerned. Statements are compared as syntax, so line breaks, whitespace,
parentheses, quotes, trailing commas and comments do not matter. A finding in a comment is
identified by the words of the comment, one in a file that is not Python by its line. Position and
message do not count.

Findings that agree in all of this are numbered in order.
"""

from __future__ import annotations

import ast
import bisect
import copy
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import SourceError
from ..rule import Finding
from ..text import SourceFile, Span, first_line
from ..text.tokens import Layout, Token
from .integrity import is_python

_Head = ast.stmt | ast.excepthandler | ast.match_case
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# The parts of a compound statement that are not its header; decorators count by themselves.
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")
_MEANINGLESS = frozenset({"ctx", "kind", "type_comment"})
_BYTES = 16
_MAX_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Identity:
    """What identifies a finding.

    Attributes:
        path: the file, relative to the given folder, with `/`.
        code: the code of the rule.
        within: the dotted name of the enclosing definition; empty at module level.
        statement: the statement for readers: one line, without comments.
        alike: the digest of all of this, shared by findings that agree in it.
        number: the number among those findings, from 1.
    """

    path: str
    code: str
    within: str
    statement: str
    alike: str
    number: int

    @property
    def fingerprint(self) -> str:
        """Return 32 hexadecimal digits, which are `alike` for the first of several findings."""
        return self.alike if self.number == 1 else _digest(self.alike, str(self.number))


def fingerprints(findings: Sequence[Finding], root: Path) -> Mapping[Finding, str]:
    """Return a unique fingerprint for each finding, with paths relative to `root`."""
    return {finding: one.fingerprint for finding, one in identities(findings, root).items()}


def identities(findings: Sequence[Finding], root: Path) -> Mapping[Finding, Identity]:
    """Return the identity of each finding, in the order of `findings`."""
    files: dict[SourceFile, _File] = {}
    known: dict[Finding, Identity] = {}
    counts: Counter[str] = Counter()
    for finding in sorted(dict.fromkeys(findings), key=_order):
        if finding.source not in files:
            files[finding.source] = _File(finding.source)
        place = files[finding.source].place(finding.span)
        path = relative_path(finding.path, root)
        alike = _digest(finding.code, path, place.within, place.meaning)
        counts[alike] += 1
        known[finding] = Identity(
            path, finding.code, place.within, place.shown, alike, counts[alike]
        )
    return {finding: known[finding] for finding in findings}


def relative_path(path: Path, root: Path) -> str:
    """Return `path` relative to `root`, with `/`; absolute if it is on another drive."""
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def _order(finding: Finding) -> tuple[str, int, int, str]:
    return (str(finding.path), finding.span.start, finding.span.end, finding.message)


def _digest(*parts: str) -> str:
    # File names that are not UTF-8 contain lone surrogates.
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class _Place:
    """The enclosing definition, and the statement as it is compared and as it is shown."""

    within: str
    meaning: str
    shown: str


class _File:
    """One file, parsed once for all its findings."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self._places: dict[tuple[ast.AST, ...], _Place] = {}
        self._inner: dict[_Head, list[_Head]] = {}

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None if the file is not valid Python."""
        if not is_python(self.source):
            return None
        try:
            return self.source.parse()
        except SourceError:
            return None

    @cached_property
    def comments(self) -> list[Token]:
        """The comments of a Python file."""
        return Layout(self.source).comments

    def place(self, span: Span) -> _Place:
        """Return the place of a finding with this span."""
        if self.tree is None:
            return self._line(span)
        if comment := self._comment(span.start):
            line, _ = self.source.position(span.start)
            words = f"# {' '.join(comment.text.lstrip('#').split())}"
            around = self._around(line, _first_line, _last_line)
            return _Place(_dotted(around), words, _cut(words))
        around = self._around(span.start, self._start, self._end)
        if not around:
            return self._line(span)
        *outer, head = around
        for decorator in getattr(head, "decorator_list", ()):
            if span.start <= self._end(decorator):
                return self._known(_dotted(around), "@", decorator)
        names: list[ast.alias] = []
        if isinstance(head, ast.Import | ast.ImportFrom):
            names = [name for name in head.names if self.source.span(name).overlaps(span)]
        return self._known(_dotted(outer), "", head, *names)

    def _known(self, within: str, sign: str, node: _Head | ast.expr, *names: ast.alias) -> _Place:
        key = (node, *names)
        if key not in self._places:
            bare = _bare(node, names)
            self._places[key] = _Place(within, sign + _meaning(bare), sign + self._shown(bare))
        return self._places[key]

    def _shown(self, node: _Head | ast.expr) -> str:
        try:
            return _cut(ast.unparse(node))
        # A sum of a thousand terms, a very long integer, a backslash in an f-string.
        except (RecursionError, ValueError):
            line, _ = self.source.position(self._start(node))
            return _cut(self.source.line_text(line))

    def _line(self, span: Span) -> _Place:
        line, _ = self.source.position(span.start)
        words = " ".join(self.source.line_text(line).split())
        return _Place("", words.rstrip(", "), _cut(words))

    def _comment(self, at: int) -> Token | None:
        line, column = self.source.position(at)
        if "#" not in self.source.line_text(line)[:column]:
            return None
        index = bisect.bisect_right(self.comments, at, key=lambda one: one.start) - 1
        return self.comments[index] if index >= 0 and at < self.comments[index].end else None

    def _around(
        self, at: int, start: Callable[[_Head], int], end: Callable[[_Head], int]
    ) -> list[_Head]:
        """Return the statements, handlers and cases that contain a place, outermost first."""
        assert self.tree is not None
        found: list[_Head] = []
        inner: Sequence[_Head] = self.tree.body
        while True:
            index = bisect.bisect_left(inner, at, key=end)
            if index == len(inner) or start(inner[index]) > at:
                return found
            node = inner[index]
            found.append(node)
            if node not in self._inner:
                children = ast.iter_child_nodes(node)
                self._inner[node] = [c for c in children if isinstance(c, _Head)]
            inner = self._inner[node]

    def _start(self, node: _Head | ast.expr) -> int:
        if isinstance(node, ast.match_case):
            return self.source.offset(node.pattern.lineno, node.pattern.col_offset)
        return self.source.full_span(node).start

    def _end(self, node: _Head | ast.expr) -> int:
        if isinstance(node, ast.match_case):
            node = node.body[-1]
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.source.offset(node.end_lineno, node.end_col_offset)


def _first_line(node: _Head) -> int:
    return node.pattern.lineno if isinstance(node, ast.match_case) else first_line(node)


def _last_line(node: _Head) -> int:
    last = node.body[-1] if isinstance(node, ast.match_case) else node
    assert last.end_lineno is not None
    return last.end_lineno


def _dotted(around: Sequence[_Head]) -> str:
    return ".".join(node.name for node in around if isinstance(node, _Definition))


def _bare(node: _Head | ast.expr, names: Sequence[ast.alias]) -> _Head | ast.expr:
    """Return a statement without body and decorators; an import with only `names`."""
    if isinstance(node, ast.expr):
        return node
    bare = copy.copy(node)
    for part in _PARTS:
        if isinstance(getattr(node, part, None), list):
            setattr(bare, part, [])
    if names and isinstance(bare, ast.Import | ast.ImportFrom):
        bare.names = list(names)
    return bare


def _meaning(node: ast.AST) -> str:
    """Return a syntax tree as text, the same for all spellings and Python versions.

    The output of `ast.dump` and `ast.unparse` depends on the version.
    """
    parts: list[str] = []
    stack: list[object] = [node]
    while stack:  # A long sum is nested too deeply for recursion.
        item = stack.pop()
        if isinstance(item, ast.AST):
            parts.append(f"{type(item).__name__}(")
            stack += [")", *reversed(list(_content(item)))]
        elif isinstance(item, list):
            parts.append("[")
            stack += ["]", *reversed(item)]
        else:
            parts.append(str(item))
    return " ".join(parts)


def _content(node: ast.AST) -> Iterator[object]:
    """Yield the meaningful fields of a node: name, then value as text or nodes."""
    match node:
        case ast.Constant(value=value):
            yield _constant(value)
        case ast.Expr(value=ast.Constant(value=str(text))):
            # Formatters reindent docstrings.
            yield _constant(" ".join(text.split()))
        case ast.JoinedStr(values=values):
            yield _merged(values)
        case ast.Delete(targets=[ast.Tuple(elts=targets)]):
            # Only here do redundant parentheses change the tree.
            yield from ("targets=", targets)
        case _:
            for name, value in ast.iter_fields(node):
                if value is None or value == [] or name in _MEANINGLESS:
                    continue
                yield from (f"{name}=", value)


def _merged(values: Sequence[ast.expr]) -> list[object]:
    """Return the parts of an f-string with adjacent texts joined, as versions differ in this."""
    parts: list[object] = []
    text = ""
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            text += value.value
            continue
        parts += [_constant(text), value] if text else [value]
        text = ""
    return [*parts, _constant(text)] if text else parts


def _constant(value: object) -> str:
    # What is printable differs between versions; converting a long integer to decimal fails.
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value)
    return ascii(value)


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MAX_SHOWN else f"{words[: _MAX_SHOWN - 1]}…"
