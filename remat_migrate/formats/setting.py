"""A library setting, which has an environment variable and a command-line option."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from .lines import line_start, next_line

if TYPE_CHECKING:
    from ..text.replacements import Causes, Piece

Form = Literal["variable", "option", "read"]

_YES = frozenset({"1", "true", "t", "yes", "y", "on"})
_NO = frozenset({"0", "false", "f", "no", "n", "off"})


class TextSyntaxError(Exception):
    """A text has a syntax error or uses unsupported syntax; nothing is planned.

    Attributes:
        readable: the offset up to which the text consists of whole, supported statements.
    """

    def __init__(self, message: str, readable: int = 0) -> None:
        super().__init__(message)
        self.readable = readable


def read_bool(text: str) -> bool | None:
    """Parse a Boolean such as `1` or `"off"`; return None if the text is not one."""
    word = text.strip().strip("\"'").lower()
    return True if word in _YES else False if word in _NO else None


@dataclass(frozen=True)
class Setting:
    """A setting with its two names, such as `JAX_ENABLE_X64` and `jax_enable_x64`."""

    variable: str
    option: str

    def is_option(self, word: str) -> bool:
        """Return whether an unquoted word is the option: `--name`, `--noname`, or
        `--name=value`.
        """
        return re.fullmatch(rf"--?(no)?{self.option}(=\S*)?", word) is not None

    def takes_next(self, word: str, following: str) -> bool:
        """Return whether a word is `--name` and the next word is its value."""
        named = word.lstrip("-") == self.option
        return named and read_bool(following) is not None

    def is_assignment(self, word: str) -> bool:
        """Return whether a word is `NAME=value`."""
        return re.match(rf"{self.variable}\+?=", word) is not None

    def tells(self, text: str) -> bool:
        """Return whether a text that may be prose uses the setting as a command or code would."""
        option, variable = self.option, self.variable
        found = re.search(
            rf"(^|[\s\"'])(--?(no)?{option}\b|{variable}=)|[\"']({option}|{variable})[\"']", text
        )
        return found is not None

    def occurs(self, text: str) -> bool:
        """Return whether a text contains either name."""
        return self.variable in text or self.option in text

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches either name as a whole word."""
        return re.compile(rf"(?<!\w)(?:{self.variable}|(?:no)?{self.option})(?!\w)")

    @property
    def reading(self) -> re.Pattern[str]:
        """Matches a read of the variable: `$NAME`, `${NAME:-0}`, `$(NAME)`, or `env.NAME`."""
        name = self.variable
        return re.compile(
            rf"\$\{{?{name}(?!\w)|\$\({name}\)|(?<!\w)env\.{name}(?!\w)|env\[.{name}.\]"
        )


@dataclass(frozen=True, slots=True)
class TextUse:
    """A use of a setting in a text.

    Attributes:
        start, end: its offsets.
        form: whether the variable is set, the option is passed, or the variable is read.
        value: what it is set to, as written; "" if it is unset or passed on.
        refused: why it cannot be removed; "" if it can.
    """

    start: int
    end: int
    form: Form
    value: str = ""
    refused: str = ""


@dataclass(slots=True)
class TextPlan:
    """The uses in a text and the pieces that remove them. Causes are indices of `uses`.

    Attributes:
        uses: the uses found, including those that stay.
        pieces: the removals and replacements.
        reads: where the variable is read; a read outside every piece is a use.
        keep_variable: why the variable must stay set; "" if it need not.
        keep_option: why the option must stay; "" if it need not.
        is_suppressed: whether to leave the use at an offset alone.
    """

    uses: list[TextUse] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    reads: list[tuple[int, int]] = field(default_factory=list)
    keep_variable: str = ""
    keep_option: str = ""
    is_suppressed: Callable[[int], bool] = lambda offset: False

    def take(
        self, start: int, end: int, form: Form, value: str = "", refused: str = ""
    ) -> Causes | None:
        """Add a use to remove; return its causes, or None if it must stay."""
        if self.is_suppressed(start):
            refused = refused or "it is suppressed"
        elif form in ("variable", "option"):
            refused = refused or (self.keep_variable if form == "variable" else self.keep_option)
        self.uses.append(TextUse(start, end, form, value, refused))
        return None if refused else frozenset((len(self.uses) - 1,))

    def refuse(self, start: int, end: int, form: Form, reason: str) -> None:
        """Add a use that stays."""
        self.uses.append(TextUse(start, end, form, "", reason))

    def add_reads(
        self, pattern: re.Pattern[str], text: str, start: int, end: int = sys.maxsize
    ) -> None:
        """Add the matches of a pattern, such as `Setting.reading`, as reads of the variable."""
        self.reads += [found.span() for found in pattern.finditer(text, start, end)]

    def put(self, start: int, end: int, text: str, causes: Causes) -> None:
        """Replace a range."""
        if start < end or text:
            self.pieces.append((start, end, text, causes))

    def drop_lines(self, text: str, start: int, end: int, causes: Causes) -> None:
        """Remove whole lines, including a comment after `end`."""
        self.put(line_start(text, start), next_line(text, end), "", causes)

    def covers(self, start: int, end: int) -> bool:
        """Return whether a piece covers a range."""
        return any(low <= start and end <= high for low, high, _, _ in self.pieces)

    def fork(self) -> TextPlan:
        """Return an empty plan with the same conditions, for `adopt` to merge if planning
        succeeds.
        """
        return TextPlan(
            keep_variable=self.keep_variable,
            keep_option=self.keep_option,
            is_suppressed=self.is_suppressed,
        )

    def adopt(self, other: TextPlan, causes: Causes | None = None) -> Causes | None:
        """Merge another plan into this one; return `causes` of that plan, renumbered."""
        shift = len(self.uses)
        self.uses += other.uses
        self.reads += other.reads
        self.pieces += [
            (start, end, text, frozenset(c + shift for c in why))
            for start, end, text, why in other.pieces
        ]
        return None if causes is None else frozenset(c + shift for c in causes)
