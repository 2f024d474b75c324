"""Suppressions: `# noqa: RMT101` on a logical line, `# remat-migrate: ignore-file` for a file.

A logical line is a simple statement, the header of a compound one, or a decorator, including all
its physical lines. A bare `# noqa` suppresses every finding on its line, as in other linters, and
is never reported as unused, because it may be meant for another tool.
"""

from __future__ import annotations

import re
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

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


def covering(directives: Iterable[Directive]) -> Callable[[int, str], bool]:
    """Return a function that tells whether findings of a code on a line are suppressed."""
    by_line: dict[int, list[Directive]] = defaultdict(list)
    is_whole_file = False
    for directive in directives:
        is_whole_file = is_whole_file or directive.whole_file
        for line in directive.lines:
            by_line[line].append(directive)
    return lambda line, code: (
        is_whole_file or any(one.covers(line, code) for one in by_line.get(line, ()))
    )


def suppressed_at(source: SourceFile, code: str, *, python: bool) -> Callable[[int], bool]:
    """Return a function that tells whether findings of a rule at an offset are suppressed."""
    covers = covering(read_directives(source, python=python))
    return lambda offset: covers(source.position(offset)[0], code)


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
    lines = _logical_lines(source) if python else _text_lines(source)
    return tuple(one for line in lines for one in line.directives(source.text))


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
        lines = list(_logical_lines(source))
    except (SyntaxError, tokenize.TokenError):
        return [], list(places)
    by_row = {row: line for line in lines for row in line.rows}
    directives = (d for line in lines for d in line.directives(source.text) if d.codes)
    extended = {row: directive for directive in directives for row in directive.lines}
    # Per logical line: the directive to extend, or the line to add a comment to, and the codes.
    wanted: dict[range, tuple[Directive | int, list[str]]] = {}
    left: list[tuple[int, str]] = []
    for line, code in places:
        here = by_row.get(line, _LogicalLine(range(0)))
        at = extended.get(line) or next((row for row in here.free if row >= line), None)
        if at is None:
            left.append((line, code))
            continue
        codes = wanted.setdefault(here.rows, (at, []))[1]
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


# Tokens that do not begin a logical line.
_BETWEEN_LINES = frozenset(
    {
        tokenize.NL,
        tokenize.COMMENT,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.ENCODING,
    }
)


@dataclass(slots=True)
class _LogicalLine:
    """A logical line, or a line without code.

    Attributes:
        rows: its physical lines, from 1; empty for a line without code.
        comments: the comments on them.
        free: the physical lines that end outside of strings and without a backslash.
    """

    rows: range
    comments: list[Span] = field(default_factory=list)
    free: list[int] = field(default_factory=list)

    def directives(self, text: str) -> Iterator[Directive]:
        for comment in self.comments:
            for found in _NOQA.finditer(text, *comment):
                codes = re.split(r"[\s,]+", found["codes"]) if found["codes"] else []
                yield Directive(Span(*found.span()), comment, self.rows, tuple(codes))
            for found in _IGNORE_FILE.finditer(text, *comment):
                yield Directive(Span(*found.span()), comment, self.rows, whole_file=True)


def _logical_lines(source: SourceFile) -> Iterator[_LogicalLine]:
    # Split as the parser does; tokenize does not recognize a lone "\r".
    physical = (source.line_text(number) + "\n" for number in range(1, len(source.line_starts) + 1))
    line, first = _LogicalLine(range(0)), 0
    for token in tokenize.generate_tokens(lambda: next(physical, "")):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            start = source.line_starts[row - 1] + column
            # Without the marker that a notebook's view appends.
            own = token.string.partition(f"#{MARK}")[0].rstrip()
            line.comments.append(Span(start, start + len(own)))
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE):
            line.free.append(row)
        if token.type == tokenize.NEWLINE or (token.type == tokenize.NL and not first):
            if token.type == tokenize.NEWLINE:
                # A line with only whitespace and a backslash also ends a logical line.
                line.rows = range(first or row, row + 1)
            yield line
            line, first = _LogicalLine(range(0)), 0
        elif not first and token.type not in _BETWEEN_LINES:
            first = row


def _text_lines(source: SourceFile) -> Iterator[_LogicalLine]:
    for number, start in enumerate(source.line_starts, 1):
        line = source.line_text(number)
        if found := _TEXT_COMMENT.search(line):
            rows = range(number, number + 1) if line[: found.start()].strip() else range(0)
            yield _LogicalLine(rows, [Span(start + found.start(), start + found.end())])
