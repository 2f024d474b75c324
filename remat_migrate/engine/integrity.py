"""Checking that edits changed a file only where they were made.

Codemods produce syntax trees and therefore valid code. As a safeguard, the new file is parsed
again: statements and comments that no edit touches must be the same as before.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import tokenize
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from ..analysis.names.module import Module
from ..errors import BoundReached, SourceError
from ..text import Edit, OffsetMap, SourceFile, first_line, read_source
from ..text.comments import comments_of
from ..text.escapes import BrokenEscape
from .large_stack import with_large_stack


class EncodingFault(str):
    """What is wrong with an edited file is its encoding, and not the rule."""


_SHEBANG = re.compile(r"#![^\n]*\bpython")


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
    python = is_python(before)
    after = before.replaced(after_text)
    reason = _encoding_fault(after, python)
    if reason is None and python:
        reason = _python_fault(before, after, edits)
    elif reason is None:
        reason = _data_fault(before, after)
    return reason


def is_python(source: SourceFile) -> bool:
    """Return whether a file is Python: by name or first line, or because it is a notebook."""
    if source.path.suffix in (".py", ".pyi", ".pyw") or source.container is not None:
        return True
    return not source.path.suffix and _SHEBANG.match(source.text) is not None


def _encoding_fault(after: SourceFile, python: bool) -> str | None:
    try:
        again = read_source(after.path, after.encode(after.text), python=python)
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        return _not_encodable(repr(bad), after)
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


def _not_encodable(what: str, after: SourceFile) -> EncodingFault:
    return EncodingFault(
        f"{what} cannot be encoded in the file's encoding, {after.encoding}; convert the file to"
        " UTF-8"
    )


def _data_fault(before: SourceFile, after: SourceFile) -> str | None:
    readers: dict[str, Callable[[str], object]] = {
        ".ipynb": json.loads,
        ".json": json.loads,
        ".toml": tomllib.loads,
    }
    reader = readers.get(before.path.suffix)
    if reader is None:
        return None
    try:
        reader(before.text)
    except ValueError:
        return None
    except RecursionError:
        return "the text is nested too deeply to be compared"
    try:
        reader(after.text)
    except ValueError as error:
        return f"the new text is not valid {before.path.suffix[1:]}: {error}"
    return None


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
    # Statements with the same text are equal. Those that no edit touches are still there.
    untouched = set(_untouched(before, old.body, offsets))
    body = sorted(old.body, key=lambda statement: statement not in untouched)
    texts, new_texts = _texts(before, body), _texts(after, new.body)
    changed = _unmatched(body, texts, new_texts)
    made = _unmatched(new.body, new_texts, texts)

    def fault() -> str | None:
        return (
            _statement_fault(before, changed, after, made, offsets)
            or _compile_fault(old, new)
            or _name_fault(Module(before, old, ""), Module(after, new, ""))
            or _comment_fault(before, after, offsets)
        )

    try:
        try:
            return fault()
        except RecursionError:
            return with_large_stack(fault)
    except BoundReached as error:
        return str(error)
    except RecursionError:
        return "the code is nested too deeply to be compared"
    except (SyntaxError, tokenize.TokenError) as error:
        return f"the text cannot be tokenized: {error}"


def _statement_fault(
    before: SourceFile,
    changed: Sequence[ast.stmt],
    after: SourceFile,
    made: Sequence[ast.stmt],
    offsets: OffsetMap,
) -> str | None:
    """Return which statement that no edit touches changes; None if none does."""
    missing = list(_untouched(before, changed, offsets))
    # Some may be inside edited statements.
    inner = [n for s in made for n in ast.walk(s) if isinstance(n, ast.stmt)] if missing else []
    missing = _unmatched(missing, _texts(before, missing), _texts(after, inner))
    missing = _unmatched(missing, map(_shape, missing), map(_shape, inner))
    if not missing:
        return None
    code = _short(before.segment(missing[0]))
    return f"the code on line {missing[0].lineno} would change: {code}"


def _unmatched(
    statements: Sequence[ast.stmt], keys: Iterable[object], others: Iterable[object]
) -> list[ast.stmt]:
    """Return the statements whose keys are not among `others`, counting duplicates."""
    found = Counter(others) if statements else Counter()
    unmatched = []
    for statement, key in zip(statements, keys, strict=True):
        if found[key]:
            found[key] -= 1
        else:
            unmatched.append(statement)
    return unmatched


def _texts(source: SourceFile, statements: Sequence[ast.stmt]) -> list[str]:
    """Return the source text of statements, including decorators."""
    return [source.text[slice(*source.full_span(statement))] for statement in statements]


def _shape(tree: ast.stmt) -> tuple[object, ...]:
    """Return the structure of a statement, like `ast.dump` but without recursion."""
    return tuple(
        (type(node), *((name, _label(value)) for name, value in ast.iter_fields(node)))
        for node in ast.walk(tree)
    )


def _label(value: object) -> object:
    """Return a field without its child nodes, which `ast.walk` visits separately."""
    if isinstance(value, ast.AST):
        return ast.AST
    if isinstance(value, list):
        return tuple(map(_label, value))
    return repr(value)


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
    gone = before.scope_of(before.tree).bound - after.scope_of(after.tree).bound
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
        if node.id in scope.bound and not scope.is_class:
            if not module.is_written_elsewhere(scope, node.id):
                if not module.flow(scope).uses.get(node):
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
