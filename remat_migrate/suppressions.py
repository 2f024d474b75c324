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


class Suppressions:
    """The suppressions of a file, in order."""

    def __init__(self, directives: Iterable[Directive]) -> None:
        self.directives = tuple(directives)
        self._whole_file = any(directive.whole_file for directive in self.directives)
        self._by_line: dict[int, list[Directive]] = defaultdict(list)
        for directive in self.directives:
            for line in directive.lines:
                self._by_line[line].append(directive)

    def cover(self, line: int, code: str) -> bool:
        """Return whether findings of a code on a line are suppressed."""
        return self._whole_file or any(
            directive.covers(line, code) for directive in self._by_line.get(line, ())
        )

    def unused(
        self,
        suppressed: Sequence[tuple[int, str]],
        *,
        ran: frozenset[str],
        known: frozenset[str],
        complete: bool,
    ) -> Iterator[tuple[Directive, tuple[str, ...]]]:
        """Yield the unused suppressions, each with its unused codes: none if all of it is unused.

        Args:
            suppressed: line and code of every suppressed finding.
            ran: the codes of the rules that ran; other codes may be used in another run.
            known: the codes of all rules.
            complete: whether all rules ran that are on by default.
        """
        used = {
            (directive, named)
            for line, code in suppressed
            for directive in self._by_line.get(line, ())
            for named in directive.codes
            if code.startswith(named.upper())
        }
        for directive in self.directives:
            codes = tuple(
                code
                for code in directive.codes
                if (directive, code) not in used
                and _is_ours(code, known)
                and {rule for rule in known if rule.startswith(code.upper())} <= ran
            )
            if codes or (directive.whole_file and complete and not suppressed):
                yield directive, codes


def suppressed_at(source: SourceFile, code: str, *, python: bool) -> Callable[[int], bool]:
    """Return a function that tells whether findings of a rule at an offset are suppressed."""
    suppressions = Suppressions(read_directives(source, python=python))
    return lambda offset: suppressions.cover(source.position(offset)[0], code)


def read_directives(source: SourceFile, *, python: bool) -> tuple[Directive, ...]:
    """Return the suppressions in a file's comments, in order.

    Raises:
        SyntaxError: `python` is true, but the file is not valid Python.
        tokenize.TokenError: likewise.
    """
    folded = source.text.casefold()
    if "noqa" not in folded and "ignore-file" not in folded:
        return ()
    lines = logical_lines(source) if python else _text_lines(source)
    return tuple(one for line in lines for one in line.directives(source.text))


def may_be_unused(source: SourceFile, known: frozenset[str]) -> bool:
    """Return whether a file without findings may have suppressions that name `known` codes.

    This avoids tokenizing the many files with `# noqa` comments of other linters.
    """
    letters = "|".join(sorted({_letters(code) for code in known}))
    named = re.compile(rf"noqa\b.*\b(?:{letters})[0-9]", re.IGNORECASE)
    return bool(named.search(source.text) or _IGNORE_FILE.search(source.text))


def _is_ours(code: str, known: frozenset[str]) -> bool:
    """Return whether a code has the letters of a known rule, rather than of another tool."""
    return any(_letters(rule) == _letters(code) for rule in known)


def _letters(code: str) -> str:
    return code.upper().rstrip("0123456789")


# Tokens that do not begin a logical line.
_LAYOUT = {tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_BETWEEN_LINES = _LAYOUT | {tokenize.NL, tokenize.COMMENT}


@dataclass(slots=True)
class LogicalLine:
    """A logical line, or a line without code.

    Attributes:
        rows: its physical lines, from 1; empty for a line without code.
        comments: the comments on them.
    """

    rows: range
    comments: list[Span] = field(default_factory=list)

    def directives(self, text: str) -> Iterator[Directive]:
        """Yield the suppressions in its comments."""
        for comment in self.comments:
            for found in _NOQA.finditer(text, *comment):
                codes = re.split(r"[\s,]+", found["codes"]) if found["codes"] else []
                yield Directive(Span(*found.span()), comment, self.rows, tuple(codes))
            for found in _IGNORE_FILE.finditer(text, *comment):
                yield Directive(Span(*found.span()), comment, self.rows, whole_file=True)


def logical_lines(source: SourceFile) -> Iterator[LogicalLine]:
    """Yield the logical lines of a Python file.

    Raises:
        SyntaxError, tokenize.TokenError: it is not valid Python.
    """
    # Split as the parser does; tokenize does not recognize a lone "\r".
    physical = (source.line_text(number) + "\n" for number in range(1, len(source.line_starts) + 1))
    line, first = LogicalLine(range(0)), 0
    for token in tokenize.generate_tokens(lambda: next(physical, "")):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            start = source.line_starts[row - 1] + column
            # Without the marker that a notebook's view appends.
            own = token.string.partition(f"#{MARK}")[0].rstrip()
            line.comments.append(Span(start, start + len(own)))
        if token.type == tokenize.NEWLINE or (token.type == tokenize.NL and not first):
            if token.type == tokenize.NEWLINE:
                # A line with only whitespace and a backslash also ends a logical line.
                line.rows = range(first or row, row + 1)
            yield line
            line, first = LogicalLine(range(0)), 0
        elif not first and token.type not in _BETWEEN_LINES:
            first = row


def _text_lines(source: SourceFile) -> Iterator[LogicalLine]:
    for number, start in enumerate(source.line_starts, 1):
        line = source.line_text(number)
        if found := _TEXT_COMMENT.search(line):
            rows = range(number, number + 1) if line[: found.start()].strip() else range(0)
            yield LogicalLine(rows, [Span(start + found.start(), start + found.end())])
