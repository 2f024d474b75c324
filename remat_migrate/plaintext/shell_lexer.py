"""The tokens of a shell script: words with their quotes, operators, line ends.

Enough of POSIX shell and bash to know where a word ends; nothing is expanded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from .setting import TextSyntaxError

_OPERATORS = (
    "<<<", "<<-", "&>>", ";;&",
    "&&", "||", ";;", ";&", "|&", "<<", ">>", "&>", ">&", "<&", "<>", ">|",
    ";", "&", "|", "(", ")", "<", ">",
)  # fmt: skip
BLANK = re.compile(r"(?:[ \t]|\\\r?\n)+")
_NEWLINE = re.compile(r"\r?\n")
_WORD_ENDS = frozenset(" \t\r\n;&|()<>")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=")


class ShellSyntaxError(TextSyntaxError):
    """The text is not a script that can be read."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it stands in the script.

    Attributes:
        start, end: its offsets.
        text: its characters, quotes and all.
        inner: the ranges of the commands in its `$(...)` and backquotes.
        elements: the words of an array, `NAME=(a b c)`.
    """

    start: int
    end: int
    text: str
    inner: tuple[tuple[int, int], ...] = ()
    elements: tuple[Word, ...] | None = None


@dataclass(slots=True)
class Token:
    """A word, an operator, a line end, or the end of the script: `kind` says which."""

    kind: Literal["word", "operator", "newline", "end"]
    start: int
    end: int
    text: str
    word: Word | None = None


@dataclass(slots=True)
class Lexer:
    """Reads tokens of `text` up to `end`; `pending` are here-documents whose lines are to come."""

    text: str
    end: int
    indent: str
    pending: list[tuple[str, bool, list[tuple[int, int]]]] = field(default_factory=list)

    def next(self, at: int) -> Token:
        """The token at or after an offset, here-documents behind its newline skipped."""
        while True:
            blank = BLANK.match(self.text, at, self.end)
            at = blank.end() if blank else at
            if at >= self.end:
                return Token("end", self.end, self.end, "")
            if self.text[at] == "#":
                line = self.text.find("\n", at, self.end)
                at = self.end if line < 0 else line
                continue
            break
        newline = _NEWLINE.match(self.text, at, self.end)
        if newline:
            return Token("newline", at, self._after_documents(newline.end()), "\n")
        if self.text.startswith(("<(", ">("), at):
            word = self.word(at)
            return Token("word", at, word.end, word.text, word)
        for operator in _OPERATORS:
            if self.text.startswith(operator, at) and at + len(operator) <= self.end:
                return Token("operator", at, at + len(operator), operator)
        word = self.word(at)
        following = self.text[word.end : word.end + 1]
        if word.text.isdigit() and following in ("<", ">") and following:
            return self.next(word.end)  # the file descriptor of a redirection
        return Token("word", at, word.end, word.text, word)

    def _after_documents(self, at: int) -> int:
        for terminator, tabs, ranges in self.pending:
            start = at
            while at < self.end:
                stop = self.text.find("\n", at, self.end)
                stop = self.end if stop < 0 else stop
                line = self.text[at:stop].rstrip("\r").removeprefix(self.indent)
                here = at
                at = min(stop + 1, self.end)
                if (line.lstrip("\t") if tabs else line) == terminator:
                    ranges.append((start, here))
                    break
            else:
                ranges.append((start, self.end))
        self.pending.clear()
        return at

    def word(self, start: int) -> Word:
        """The word that starts at an offset."""
        at = start
        inner: list[tuple[int, int]] = []
        if self.text.startswith(("<(", ">("), at):
            at = self._parenthesis(at + 1, inner)
        while at < self.end:
            letter = self.text[at]
            if letter == "\\":
                at += 2
            elif letter == "'":
                at = self._find("'", at + 1) + 1
            elif letter == '"':
                at = self._double_quoted(at + 1, inner)
            elif letter == "`":
                stop = self._find("`", at + 1)
                inner.append((at + 1, stop))
                at = stop + 1
            elif letter == "$":
                at = self._dollar(at, inner)
            elif letter == "(" and _ASSIGNMENT.fullmatch(self.text, start, at):
                return self._array(start, at)
            elif letter in _WORD_ENDS:
                break
            else:
                at += 1
        if at > self.end:
            raise ShellSyntaxError(f"a word at {start} does not end")
        if at == start:
            raise ShellSyntaxError(f"no word at {start}")
        return Word(start, at, self.text[start:at], tuple(inner))

    def _find(self, what: str, at: int) -> int:
        found = self.text.find(what, at, self.end)
        if found < 0:
            raise ShellSyntaxError(f"a {what} before {at} is not closed")
        return found

    def _double_quoted(self, at: int, inner: list[tuple[int, int]]) -> int:
        while at < self.end:
            letter = self.text[at]
            if letter == '"':
                return at + 1
            if letter == "\\":
                at += 2
            elif letter == "`":
                stop = self._find("`", at + 1)
                inner.append((at + 1, stop))
                at = stop + 1
            elif letter == "$":
                at = self._dollar(at, inner)
            else:
                at += 1
        raise ShellSyntaxError('a " is not closed')

    def _dollar(self, at: int, inner: list[tuple[int, int]]) -> int:
        if self.text.startswith("$((", at):
            return self.nested(at + 1, "(", ")")
        if self.text.startswith("$(", at):
            return self._parenthesis(at + 1, inner)
        if self.text.startswith("${", at):
            return self.nested(at + 1, "{", "}")
        if self.text.startswith("$'", at):
            at += 2
            while at < self.end and self.text[at] != "'":
                at += 2 if self.text[at] == "\\" else 1
            return at + 1
        return at + 1

    def _parenthesis(self, at: int, inner: list[tuple[int, int]]) -> int:
        """Past the parenthesis that opens at an offset; what is in it are commands."""
        stop = self.nested(at, "(", ")")
        inner.append((at + 1, stop - 1))
        return stop

    def nested(self, at: int, opening: str, closing: str) -> int:
        """Past the bracket that closes the one at an offset; quotes hide brackets."""
        depth = 0
        while at < self.end:
            letter = self.text[at]
            if letter == "\\":
                at += 1
            elif letter == "'" and opening == "(":
                at = self._find("'", at + 1)
            elif letter == '"':
                at = self._double_quoted(at + 1, []) - 1
            elif letter == opening:
                depth += 1
            elif letter == closing:
                depth -= 1
                if depth == 0:
                    return at + 1
            at += 1
        raise ShellSyntaxError(f"a {opening} is not closed")

    def _array(self, start: int, at: int) -> Word:
        elements: list[Word] = []
        at += 1
        while True:
            blank = re.compile(r"(?:[ \t\r\n]|\\\r?\n|#[^\n]*)*").match(self.text, at, self.end)
            at = blank.end() if blank else at
            if at >= self.end:
                raise ShellSyntaxError("an array is not closed")
            if self.text[at] == ")":
                end = at + 1
                inner = tuple(part for element in elements for part in element.inner)
                return Word(start, end, self.text[start:end], inner, tuple(elements))
            elements.append(self.word(at))
            at = elements[-1].end
