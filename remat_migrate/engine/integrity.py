"""Checking that edits changed a file only where they were made.

Codemods produce syntax trees and therefore valid code. As a safeguard, the new file is parsed
again: statements and comments that no edit touches must be the same as before.
"""

from __future__ import annotations

import ast
import builtins
import json
import tokenize
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ..analysis.names.module import Module
from ..discovery.file_kinds import is_python_source
from ..errors import BoundReached, SourceError
from ..text import Edit, OffsetMap, SourceFile, first_line, read_source
from ..text.comments import comments_of
from ..text.escapes import BrokenEscape
from .large_stack import with_large_stack

_READERS: Mapping[str, Callable[[str], object]] = {
    ".ipynb": json.loads,
    ".json": json.loads,
    ".toml": tomllib.loads,
}


class Obstacle(str):
    """Why a fix cannot be made although the rule is right: its changes contradict one another,
    LibCST cannot parse the code, or the file's encoding cannot represent the new text.
    """


def check_integrity(before: SourceFile, after_text: str, edits: Sequence[Edit]) -> str | None:
    """Return what is wrong with an edited file; None if nothing is.

    Python code must compile, with the same statements and comments outside the edits, and must not
    read a name in a scope where nothing binds it. JSON, notebooks and TOML must still parse.
    The file's encoding must be able to represent any text.

    Args:
        before: the original file.
        after_text: its text with the edits applied.
        edits: the edits, without overlaps.
    """
    python = is_python_source(before)
    after = before.replaced(after_text)
    reason = _encoding_fault(after, python)
    if reason is None and python:
        reason = _python_fault(before, after, edits)
    elif reason is None:
        reason = _data_fault(before, after)
    return reason


def _encoding_fault(after: SourceFile, python: bool) -> str | None:
    try:
        again = read_source(after.path, after.encode(after.text), python=python)
    except UnicodeEncodeError as error:
        return _not_encodable(repr(error.object[error.start]), after)
    except UnicodeError:  # idna, which has no position
        return _not_encodable("the new text", after)
    except BrokenEscape as error:
        return str(error)
    except SourceError as error:
        return f"the new text cannot be read back: {error}"
    if again.text == after.text:
        return None
    if after.container is not None:
        return "the cells of the notebook, or their lines that are not Python, would change"
    return _not_encodable("the new text", after)


def _not_encodable(what: str, after: SourceFile) -> Obstacle:
    return Obstacle(
        f"{what} cannot be encoded in the file's encoding, {after.encoding}; convert the file to"
        " UTF-8"
    )


def _data_fault(before: SourceFile, after: SourceFile) -> str | None:
    if _is_data(before) and not _is_data(after):
        return f"the new text is not valid {before.path.suffix[1:]}"
    return None


def _is_data(source: SourceFile) -> bool:
    """Return whether a file is valid in the format that its name promises, if it can be parsed."""
    try:
        _READERS.get(source.path.suffix, str)(source.text)
    except (ValueError, RecursionError):
        return False
    return True


def _python_fault(before: SourceFile, after: SourceFile, edits: Sequence[Edit]) -> str | None:
    try:
        old = before.parse()
    except SourceError as error:
        return f"the old text: {error}"
    try:
        new = after.parse()
    except SourceError as error:
        cause = error.__cause__
        message = cause.msg if isinstance(cause, SyntaxError) else error
        return f"the new text does not parse: {message} (line {error.line})"
    offsets = OffsetMap(edits)

    def fault() -> str | None:
        return (
            _statement_fault(before, old, after, new, offsets)
            or _compile_fault(old, new)
            or _name_fault(Module(before, old, ""), Module(after, new, ""))
            or _comment_fault(before, after, offsets)
        )

    try:
        return with_large_stack(fault)
    except BoundReached as error:
        return str(error)
    except RecursionError:
        return "the code is nested too deeply to be compared"
    except (SyntaxError, tokenize.TokenError) as error:
        return f"the text cannot be tokenized: {error}"


def _statement_fault(
    before: SourceFile, old: ast.Module, after: SourceFile, new: ast.Module, offsets: OffsetMap
) -> str | None:
    """Return which statement that no edit touches changes; None if none does.

    Its text is the same, so it is the same statement if one of its kind has its place.
    """
    statements = (node for node in ast.walk(new) if isinstance(node, ast.stmt))
    places = {(type(node), *after.span(node)) for node in statements}
    for statement in _untouched(before, old.body, offsets):
        start, end = before.span(statement)
        place = type(statement), offsets.moved(start), offsets.moved(end - 1) + 1
        if place not in places:
            code = _short(before.segment(statement))
            return f"the code on line {statement.lineno} would change: {code}"
    return None


def _untouched(
    source: SourceFile, block: Sequence[ast.stmt], offsets: OffsetMap
) -> Iterator[ast.stmt]:
    """Yield the outermost statements whose lines no edit touches."""
    for statement in block:
        last = statement.end_lineno or statement.lineno
        start, end = source.line_starts[first_line(statement) - 1], source.span(statement).end + 1
        if hasattr(statement, "body"):
            # Text inserted next to its lines may become part of it.
            start, end = start - 1, [*source.line_starts, len(source.text)][last] + 1
        if offsets.untouched(start, end):
            yield statement
            continue
        for _, inner in ast.iter_fields(statement):
            if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                yield from _untouched(source, inner, offsets)


def _compile_fault(old: ast.Module, new: ast.Module) -> str | None:
    """Return why the new code does not compile: a `nonlocal` that names nothing, for example.

    Code that did not compile before, such as a notebook with `await`, need not compile now.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(old, "<old>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return None
        try:
            compile(new, "<new>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return f"the new text does not compile: {error}"
    return None


def _name_fault(before: Module, after: Module) -> str | None:
    """Return which name is read where nothing binds it; None if that holds for none.

    Names that are read unbound no more often than before are left alone.
    """
    known = Counter(name.id for name in _unbound(before, ()))
    bound = [module.flow(module.scope_of(module.tree)).bound for module in (before, after)]
    gone = bound[0] - bound[1]
    for name in _unbound(after, gone):
        known[name.id] -= 1
        if known[name.id] < 0:
            return f"`{name.id}`, used on line {name.lineno} of the new text, would not be defined"
    return None


def _unbound(module: Module, gone: Collection[str]) -> Iterator[ast.Name]:
    """Yield the reads of names that nothing binds, as far as scopes and the order of code tell.

    `from m import *` may bind any name but those in `gone`.
    """
    has_star = any(isinstance(node, ast.alias) and node.name == "*" for node in module.nodes)
    for node in module.nodes:
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        scope = module.scope_at(node)
        flow = module.flow(scope)
        if node.id in flow.bound and not scope.is_class:
            if not module.is_written_elsewhere(scope, node.id) and not flow.uses.get(node):
                yield node
        elif not module.reaching(node) and not hasattr(builtins, node.id):
            in_class = any(isinstance(around, ast.ClassDef) for around in module.ancestors(node))
            if node.id == "__class__" and in_class:
                continue
            if not has_star or node.id in gone:
                yield node


def _comment_fault(before: SourceFile, after: SourceFile, offsets: OffsetMap) -> str | None:
    """Return which comment that no edit touches is lost; None if none is."""
    if "#" not in before.text:
        return None
    now = {comment.start: comment.text for comment in comments_of(after)}
    for comment in comments_of(before):
        if not offsets.untouched(comment.start, comment.end):
            continue
        if not now.get(offsets.moved(comment.start), "").startswith(comment.text):
            line, _ = before.position(comment.start)
            return f"the comment on line {line} would be lost: {_short(comment.text)}"
    return None


def _short(text: str) -> str:
    first = text.strip().partition("\n")[0].rstrip()
    return f"`{first[:57]}...`" if len(first) > 60 else f"`{first}`"
