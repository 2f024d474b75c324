"""What identifies a finding although lines move or code is reformatted.

That is the rule, the file, the enclosing definition, and the statement without comments and layout.
Of a compound statement only the header counts, of a decorator only itself, of an import only the
names concerned. A finding in a comment is identified by the words of the comment, one in a file
that is not Python by its line.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from ..discovery.file_kinds import is_python_source
from ..errors import SourceError
from ..rule import Finding
from ..text import SourceFile, Span, first_line

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# The parts of a compound statement that are not its header; decorators count by themselves.
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")
_MOST_CHARACTERS = 1_000
_BYTES = 16


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """What identifies a finding; several findings may agree in it.

    Attributes:
        path: the file, relative to a folder, with `/`.
        code: the code of the rule.
        within: the dotted name of the enclosing definition; empty at module level.
        statement: the statement on one line, without comments.
    """

    path: str
    code: str
    within: str
    statement: str


def fingerprints(findings: Sequence[Finding], root: Path) -> Mapping[Finding, str]:
    """Return a unique digest for each finding; those that agree are numbered in order."""
    found = identities(findings, root)
    counts: Counter[Identity] = Counter()
    digests: dict[Finding, str] = {}
    for finding in in_order(found):
        one = found[finding]
        counts[one] += 1
        # File names that are not UTF-8 contain lone surrogates.
        data = "\0".join((*astuple(one), str(counts[one]))).encode("utf-8", "surrogatepass")
        digests[finding] = hashlib.blake2b(data, digest_size=_BYTES).hexdigest()
    return digests


def identities(findings: Sequence[Finding], root: Path) -> Mapping[Finding, Identity]:
    """Return the identity of each finding, in the order of `findings`."""
    files: dict[SourceFile, _File] = {}
    found: dict[Finding, Identity] = {}
    for finding in findings:
        file = files.setdefault(finding.source, _File(finding.source))
        path = relative_path(finding.path, root)
        found[finding] = Identity(path, finding.code, *file.place(finding.span))
    return found


def in_order(findings: Mapping[Finding, Identity]) -> list[Finding]:
    """Return findings in the order in which equal ones are counted."""
    return sorted(findings, key=lambda one: (str(one.path), *one.span, one.message))


def relative_path(path: Path, root: Path) -> str:
    """Return `path` relative to `root`, with `/`; absolute if it is on another drive."""
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


class _File:
    """One file, parsed once for all its findings."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._statements: dict[int, tuple[str, ast.stmt]] | None = None
        self._shown: dict[tuple[ast.AST, ...], str] = {}

    def place(self, span: Span) -> tuple[str, str]:
        """Return the enclosing definition and the statement of a finding."""
        if self._statements is None:
            self._statements = _by_line(self._source)
        line, column = self._source.position(span.start)
        text = self._source.line_text(line)
        within, node = self._statements.get(line, ("", None))
        if text[column - 1 :].startswith("#") or node is None:
            words = text[column - 1 :] if node is not None else text
            return within, _on_one_line(words).rstrip(", ")
        if isinstance(node, _Definition):
            for decorator in node.decorator_list:
                if decorator.lineno <= line <= (decorator.end_lineno or line):
                    return within, "@" + self._on_one_line(decorator)
            within = within.rpartition(".")[0]
        names: list[ast.alias] = []
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [name for name in node.names if self._source.span(name).overlaps(span)]
        return within, self._on_one_line(node, *names)

    def _on_one_line(self, node: ast.stmt | ast.expr, *names: ast.alias) -> str:
        key = (node, *names)
        if key not in self._shown:
            bare = copy.copy(node)
            for part in _PARTS:
                if isinstance(getattr(node, part, None), list):
                    setattr(bare, part, [])
            if names and isinstance(bare, ast.Import | ast.ImportFrom):
                bare.names = list(names)
            try:
                text = ast.unparse(bare)
            # A sum of a thousand terms, a very long integer, a backslash in an f-string.
            except (RecursionError, ValueError):
                text = self._source.line_text(node.lineno)
            self._shown[key] = _on_one_line(text)
        return self._shown[key]


def _by_line(source: SourceFile) -> dict[int, tuple[str, ast.stmt]]:
    """Return the innermost statement on each line of a Python file, and the definition around it.

    A definition is around its own header.
    """
    found: dict[int, tuple[str, ast.stmt]] = {}
    try:
        waiting = [("", node) for node in source.parse().body] if is_python_source(source) else []
    except SourceError:
        return found
    while waiting:
        around, node = waiting.pop()
        within = f"{around}.{node.name}".lstrip(".") if isinstance(node, _Definition) else around
        for line in range(first_line(node), (node.end_lineno or node.lineno) + 1):
            found[line] = within, node
        inner: list[ast.AST] = [node]
        for child in inner:  # handlers and cases hold statements, too
            for part in ast.iter_child_nodes(child):
                if isinstance(part, ast.stmt):
                    waiting.append((within, part))
                elif isinstance(part, ast.excepthandler | ast.match_case):
                    inner.append(part)
    return found


def _on_one_line(text: str) -> str:
    return " ".join(text.split())[:_MOST_CHARACTERS]
