"""What identifies a finding although lines move or code is reformatted.

That is the rule, the file, the enclosing definition, and the innermost statement without comments
and layout, of a compound one only the header. A finding in a file that is not Python is identified
by its line.
"""

from __future__ import annotations

import ast
import bisect
import copy
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from ..discovery.file_kinds import is_python_source
from ..errors import SourceError
from ..rule import Finding
from ..text import SourceFile, first_line

# The path, the code, the enclosing definition, and the statement; several findings may agree in it.
Key = tuple[Path, str, str, str]
# The same with a path that is relative to a folder, with `/`.
Identity = tuple[str, str, str, str]

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# The parts of a compound statement that are not its header.
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")
_MOST_CHARACTERS = 1_000
_BYTES = 16


def fingerprints(findings: Sequence[Finding], root: Path) -> Mapping[Finding, str]:
    """Return a unique digest for each finding; those that agree are numbered in order."""
    counts: Counter[Identity] = Counter()
    digests: dict[Finding, str] = {}
    for finding, one in identities(findings, root).items():
        counts[one] += 1
        # File names that are not UTF-8 contain lone surrogates.
        data = "\0".join((*one, str(counts[one]))).encode("utf-8", "surrogatepass")
        digests[finding] = hashlib.blake2b(data, digest_size=_BYTES).hexdigest()
    return digests


def identities(findings: Sequence[Finding], root: Path) -> Mapping[Finding, Identity]:
    """Return the identity of each finding, in the order in which equal ones are counted."""
    ordered = sorted(findings, key=lambda finding: finding.order)
    return {finding: (_relative(finding.path, root), *key_of(finding)[1:]) for finding in ordered}


def key_of(finding: Finding) -> Key:
    """Return what identifies a finding in a run, although other findings are fixed."""
    names, statement = _place(finding.source, finding.line)
    text = _header(statement) if statement else ""
    text = " ".join((text or finding.source.line_text(finding.line)).split())
    return finding.path, finding.code, ".".join(names), text[:_MOST_CHARACTERS].rstrip(", ")


def _relative(path: Path, root: Path) -> str:
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


@lru_cache(maxsize=4)
def _parsed(source: SourceFile) -> tuple[ast.AST | None, Callable[[ast.AST], list[ast.stmt]]]:
    """Return the tree of a file, and a function that returns the blocks of its nodes."""
    try:
        return source.parse() if is_python_source(source) else None, cache(_block)
    except SourceError:
        return None, _block


def _place(source: SourceFile, line: int) -> tuple[list[str], ast.stmt | None]:
    """Return the names of the definitions around a line, and the innermost statement on it."""
    node, block_of = _parsed(source)
    names: list[str] = []
    found: ast.stmt | None = None
    while node is not None:
        block = block_of(node)
        at = bisect.bisect_right(block, line, key=first_line)
        node = block[at - 1] if at and line <= (block[at - 1].end_lineno or line) else None
        if node is not None:
            names += [found.name] if isinstance(found, _Definition) else []
            found = node
    return names, found


def _block(node: ast.AST) -> list[ast.stmt]:
    """Return the statements directly in a node, in order."""
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, ast.excepthandler | ast.match_case):
            found += _block(child)
    return found


def _header(statement: ast.stmt) -> str:
    """Return a statement without comments, of a compound one the header; "" if that is too long."""
    bare = copy.copy(statement)
    for part in _PARTS:
        if isinstance(getattr(bare, part, None), list):
            setattr(bare, part, [])
    try:
        return ast.unparse(bare)
    # A sum of a thousand terms, a very long integer, a backslash in an f-string.
    except (RecursionError, ValueError):
        return ""
