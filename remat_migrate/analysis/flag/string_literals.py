"""String literals in Python source: their value, and the source range of each character.

Concatenated literals (`"a" "b"`) are one text. In an f-string each `{...}` is one placeholder
character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Placeholder for the value of an expression in an f-string.
HOLE = "\ufffc"

_OPENING = re.compile(r"([A-Za-z]{0,2})('''|\"\"\"|'|\")")
_BETWEEN = re.compile(r"(?:\s|\\\r?\n|#[^\n]*)*")
_ESCAPE = re.compile(
    r"\\(?:\r?\n|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]*\}|[0-7]{1,3}|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Token:
    """One literal of a concatenation: its range with and without prefix and quotes."""

    start: int
    end: int
    inner_start: int
    inner_end: int


@dataclass(frozen=True, slots=True)
class LiteralText:
    """The text of a string literal.

    Attributes:
        segment: the literal's source.
        value: the characters it denotes; an expression in an f-string is `HOLE`.
        spans: for each character of `value`, its range in `segment`.
        tokens: the concatenated literals.
    """

    segment: str
    value: str
    spans: tuple[tuple[int, int], ...]
    tokens: tuple[_Token, ...]

    def without(self, pieces: Iterable[tuple[int, int, str]]) -> str:
        """Return the source with ranges of `value` replaced, which must not overlap."""
        cuts: list[tuple[int, int, str]] = []
        for start, end, put in pieces:
            for low, high in self._ranges(start, end):
                cuts.append((low, high, put))
                put = ""
        whole = list(self._emptied(cuts))
        cuts = [
            (start, end, put)
            for start, end, put in cuts
            if not any(low <= start and end <= high for low, high, _ in whole)
        ]
        found = self.segment
        for low, high, put in sorted((*cuts, *whole), reverse=True):
            found = found[:low] + put + found[high:]
        return found

    def _ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the source ranges of `value[start:end]`, one per literal."""
        for token in self.tokens:
            own = [
                span
                for span in self.spans[start:end]
                if token.inner_start <= span[0] and span[1] <= token.inner_end
            ]
            if own:
                yield own[0][0], own[-1][1]

    def _emptied(self, cuts: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
        """Yield removals of the literals that become empty, except the last one left."""
        empty = [
            sum(
                high - low
                for low, high, put in cuts
                if not put and token.inner_start <= low and high <= token.inner_end
            )
            == token.inner_end - token.inner_start
            for token in self.tokens
        ]
        if all(empty):
            empty = [False, *empty[1:]]
        for index, token in enumerate(self.tokens):
            if not empty[index]:
                continue
            before = self.tokens[index - 1].end if index else token.start
            after = self.tokens[index + 1].start if not index else token.end
            if "#" in self.segment[before : token.start] or "#" in self.segment[token.end : after]:
                yield token.start, token.end, '""'
            else:
                yield before, after, ""


def read_literal(segment: str) -> LiteralText | None:
    """Parse the source of a string literal; return None for bytes."""
    tokens: list[_Token] = []
    value: list[str] = []
    spans: list[tuple[int, int]] = []
    at = 0
    while True:
        between = _BETWEEN.match(segment, at)
        at = between.end() if between else at
        opening = _OPENING.match(segment, at)
        if opening is None:
            break
        prefix, quotes = opening.group(1).lower(), opening.group(2)
        if "b" in prefix:
            return None
        inner = opening.end()
        end = inner
        for letter, low, high in _characters(segment, inner, quotes, prefix):
            value.append(letter)
            spans += [(low, high)] * len(letter)
            end = high
        while not segment.startswith(quotes, end):
            end += 1  # a line continued inside the literal means nothing
        tokens.append(_Token(at, end + len(quotes), inner, end))
        at = end + len(quotes)
    return LiteralText(segment, "".join(value), tuple(spans), tuple(tokens)) if tokens else None


def _characters(segment: str, at: int, quotes: str, prefix: str) -> Iterator[tuple[str, int, int]]:
    """Yield the characters of one literal with their ranges, up to its closing quotes."""
    raw, formatted = "r" in prefix, "f" in prefix or "t" in prefix
    while at < len(segment) and not segment.startswith(quotes, at):
        letter = segment[at]
        if letter == "\\" and raw:
            yield from ((segment[i], i, i + 1) for i in (at, at + 1))
            at += 2
        elif letter == "\\":
            escape = _ESCAPE.match(segment, at)
            stop = escape.end() if escape else at + 1
            meant = _unescaped(segment[at:stop])
            if len(meant) > 1:
                # Python keeps the backslash of an unknown escape.
                yield from ((segment[i], i, i + 1) for i in range(at, stop))
            elif meant:
                yield meant, at, stop
            at = stop
        elif formatted and letter in "{}":
            if segment.startswith(letter * 2, at):
                yield letter, at, at + 2
                at += 2
            else:
                stop = _expression_end(segment, at)
                yield HOLE, at, stop
                at = stop
        else:
            yield letter, at, at + 1
            at += 1


def _unescaped(escape: str) -> str:
    if escape in ("\\\n", "\\\r\n"):
        return ""
    if escape[1] not in "\\'\"abfnrtvxuUN01234567":
        return escape
    return escape.encode("ascii", "backslashreplace").decode("unicode_escape")


def _expression_end(segment: str, at: int) -> int:
    """Return the offset after the brace that closes an f-string expression."""
    depth = 0
    while at < len(segment):
        opening = _OPENING.match(segment, at) if depth else None
        if opening is not None and not (at and segment[at - 1].isalnum()):
            quotes = opening.group(2)
            inner = _characters(segment, opening.end(), quotes, opening.group(1).lower())
            ends = [end for _, _, end in inner]
            at = max(ends, default=opening.end()) + len(quotes)
            continue
        if segment[at] in "{[(":
            depth += 1
        elif segment[at] in "}])":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at
