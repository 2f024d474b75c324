"""Suppressions: `# noqa: RMT101` on a logical line, `# remat-migrate: ignore-file` for a file.

A logical line is a simple statement, the header of a compound one, or a decorator, including all
its physical lines. A bare `# noqa` suppresses every finding on its line, as in other linters, and
is never reported as unused, because it may be meant for another tool.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .codemod.changes import SetComment
from .rule import Finding, Rule
from .text import SourceFile, Span
from .text.escapes import MARK

_CODE = r"[A-Za-z]+[0-9]+"
_NOQA = re.compile(
    rf"#\s*noqa\b(?:\s*:\s*(?P<codes>{_CODE}(?:(?:\s*,\s*|\s+){_CODE})*)(?![\w-])|(?!\s*:))",
    re.IGNORECASE,
)
_IGNORE_FILE = re.compile(r"#\s*remat-migrate:\s*ignore-file\b", re.IGNORECASE)
# In shell, YAML, TOML and Makefiles, a comment starts a line or follows whitespace.
_TEXT_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")


@dataclass(frozen=True, slots=True)
class Directive:
    """A suppression in a comment.

    Attributes:
        span: its characters, from `#` to the last code.
        comment: the whole comment.
        lines: the physical lines it applies to, from 1; empty on a line of its own.
        codes: the codes or prefixes it names, as written; empty for all codes.
        whole_file: whether it applies to the whole file.
    """

    span: Span
    comment: Span
    lines: range
    codes: tuple[str, ...] = ()
    whole_file: bool = False

    def covers(self, line: int, code: str) -> bool:
        """Return whether a finding of `code` that starts on `line` is suppressed."""
        if self.whole_file:
            return True
        return line in self.lines and (
            not self.codes or any(code.startswith(named.upper()) for named in self.codes)
        )


def suppressed_at(source: SourceFile, code: str, *, python: bool) -> Callable[[int], bool]:
    """Return a function that tells whether findings of a rule at an offset are suppressed."""
    directives = read_directives(source, python=python)

    def is_suppressed(offset: int) -> bool:
        line, _ = source.position(offset)
        return any(directive.covers(line, code) for directive in directives)

    return is_suppressed


@dataclass(frozen=True, slots=True)
class Unused:
    """An unused suppression, or the unused part of one.

    Attributes:
        directive: the suppression.
        codes: its unused codes, as written; empty if all of it is unused.
        unknown: the unused codes that no rule has.
    """

    directive: Directive
    codes: tuple[str, ...]
    unknown: tuple[str, ...] = ()


class SuppressionRule(Rule):
    """A rule about unused suppressions, which runs after all other rules."""

    def check_suppressions(self, source: SourceFile, unused: Sequence[Unused]) -> Iterator[Finding]:
        """Yield findings about the unused suppressions of a file; by default none."""
        return iter(())


def read_directives(source: SourceFile, *, python: bool) -> tuple[Directive, ...]:
    """Return the suppressions in a file's comments, in order.

    Raises:
        SyntaxError: `python` is true, but the file is not valid Python.
        tokenize.TokenError: likewise.
    """
    folded = source.text.casefold()
    if "noqa" not in folded and "ignore-file" not in folded:
        return ()
    comments = _python_comments(source) if python else _text_comments(source)
    return tuple(
        directive
        for comment, lines in comments
        for directive in _directives_of(source.text, comment, lines)
    )


def suppression(source: SourceFile, line: int, code: str) -> SetComment | None:
    """Return a Change that suppresses the findings of `code` on `line` of a Python file, if any."""
    changes, _ = suppress_all(source, [(line, code)])
    return next(iter(changes), None)


def suppress_all(
    source: SourceFile, places: Iterable[tuple[int, str]]
) -> tuple[list[SetComment], list[tuple[int, str]]]:
    """Return Changes that suppress findings in a Python file.

    Extends an existing `# noqa` with codes on the logical line; otherwise adds a comment at the end
    of the line, or of the next line that can have one if a string or a backslash continues.

    Args:
        source: the file.
        places: the line and the code of each finding.

    Returns:
        The Changes; the places where there can be no comment.
    """
    try:
        directives = [one for one in read_directives(source, python=True) if one.codes]
        logical = {row: rows for rows in _logical_lines(source) for row in rows}
        ends = {one.start[0] for one in _tokens(source) if one.type in _ENDS}
    except (SyntaxError, tokenize.TokenError):
        return [], list(places)
    extended = {row: one for one in directives for row in one.lines}
    # Per logical line: the directive to extend, or the line to add a comment to, and the codes.
    wanted: dict[range, tuple[Directive | int, list[str]]] = {}
    left: list[tuple[int, str]] = []
    for line, code in places:
        rows = logical.get(line, range(0))
        at = extended.get(line) or next((row for row in rows if row >= line and row in ends), None)
        if at is None:
            left.append((line, code))
            continue
        codes = wanted.setdefault(rows, (at, []))[1]
        if code not in codes:
            codes.append(code)
    return [_comment_of(source, at, codes) for at, codes in wanted.values()], left


def _comment_of(source: SourceFile, at: Directive | int, codes: Sequence[str]) -> SetComment:
    """Return the Change that adds codes to a directive, or at the end of a line."""
    if isinstance(at, Directive):
        start, end = at.comment
        middle = at.span.end
        text = f"{source.text[start:middle]}, {', '.join(codes)}{source.text[middle:end]}"
        return SetComment.of(source, at.comment, text)
    text, start = source.line_text(at), source.line_starts[at - 1]
    # Replace trailing whitespace.
    place = Span(start + len(text.rstrip()), start + len(text))
    return SetComment.of(source, place, f"  # noqa: {', '.join(codes)}")


# Where such a token is, a line ends outside of strings and without a backslash.
_ENDS = frozenset({tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT})


def may_be_unused(source: SourceFile, known: frozenset[str]) -> bool:
    """Return whether a file without findings may have suppressions that name `known` codes.

    This avoids tokenizing the many files with `# noqa` comments of other linters.
    """
    letters = "|".join(sorted({_letters(code) for code in known}))
    named = re.compile(rf"noqa\b.*\b(?:{letters})[0-9]", re.IGNORECASE)
    return bool(named.search(source.text) or _IGNORE_FILE.search(source.text))


def unused_directives(
    directives: Sequence[Directive],
    suppressed: Sequence[tuple[int, str]],
    *,
    ran: frozenset[str],
    known: frozenset[str],
    complete: bool,
) -> Iterator[Unused]:
    """Yield the unused suppressions of a file.

    Args:
        directives: all suppressions of the file.
        suppressed: line and code of every suppressed finding.
        ran: the codes of the rules that ran; other codes may be used in another run.
        known: the codes of all rules.
        complete: whether all rules ran that are on by default.
    """
    by_line: dict[int, set[str]] = {}
    for line, code in suppressed:
        by_line.setdefault(line, set()).add(code)
    here = {
        lines: {code for line in lines for code in by_line.get(line, ())}
        for lines in {directive.lines for directive in directives}
    }
    for directive in directives:
        if directive.whole_file:
            if complete and not suppressed:
                yield Unused(directive, ())
            continue
        unused_codes = tuple(
            code
            for code in directive.codes
            if _is_ours(code, known)
            and {rule for rule in known if rule.startswith(code.upper())} <= ran
            and not any(found.startswith(code.upper()) for found in here[directive.lines])
        )
        if unused_codes:
            unknown = tuple(
                c for c in unused_codes if not any(k.startswith(c.upper()) for k in known)
            )
            yield Unused(directive, unused_codes, unknown)


def _is_ours(code: str, known: frozenset[str]) -> bool:
    """Return whether a code has the letters of a known rule, rather than of another tool."""
    return any(_letters(rule) == _letters(code) for rule in known)


def _letters(code: str) -> str:
    return code.upper().rstrip("0123456789")


def _directives_of(text: str, comment: Span, lines: range) -> Iterator[Directive]:
    for found in _NOQA.finditer(text, *comment):
        codes = re.split(r"[\s,]+", found["codes"]) if found["codes"] else []
        yield Directive(Span(*found.span()), comment, lines, tuple(codes))
    for found in _IGNORE_FILE.finditer(text, *comment):
        yield Directive(Span(*found.span()), comment, lines, whole_file=True)


def _python_comments(source: SourceFile) -> Iterator[tuple[Span, range]]:
    """Yield each comment with the physical lines of its logical line, if it shares one."""
    starts = source.line_starts
    pending: list[Span] = []
    first: int | None = None
    for token in _tokens(source):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            start = starts[row - 1] + column
            # Without the marker that a notebook's view appends.
            own = token.string.partition(f"#{MARK}")[0].rstrip()
            comment = Span(start, start + len(own))
            if first is None:
                yield comment, range(0)
            else:
                pending.append(comment)
        elif token.type == tokenize.NEWLINE:
            # A line with only whitespace and a backslash also ends a logical line.
            for comment in pending:
                yield comment, range(first or row, row + 1)
            pending, first = [], None
        elif first is None and token.type not in _BETWEEN_LINES:
            first = row


_BETWEEN_LINES = frozenset(
    {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING}
)


def _logical_lines(source: SourceFile) -> Iterator[range]:
    """Yield the physical lines of each logical line that has code."""
    first: int | None = None
    for token in _tokens(source):
        if token.type == tokenize.NEWLINE:
            yield range(first or token.start[0], token.start[0] + 1)
            first = None
        elif first is None and token.type not in (*_BETWEEN_LINES, tokenize.COMMENT):
            first = token.start[0]


def _tokens(source: SourceFile) -> Iterator[tokenize.TokenInfo]:
    # Split as the parser does; tokenize does not recognize a lone "\r".
    lines = (source.line_text(number) + "\n" for number in range(1, len(source.line_starts) + 1))
    return tokenize.generate_tokens(lambda: next(lines, ""))


def _text_comments(source: SourceFile) -> Iterator[tuple[Span, range]]:
    for number, start in enumerate(source.line_starts, 1):
        line = source.line_text(number)
        if found := _TEXT_COMMENT.search(line):
            alone = not line[: found.start()].strip()
            yield (
                Span(start + found.start(), start + found.end()),
                range(0) if alone else range(number, number + 1),
            )
