"""Text in GitHub's Markdown that stays text: no markup, mentions, references or links."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape as escape_html

from ..terminal.display import printable, shorten
from .code import Piece

_MAX_CODE = 160
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-!|<>~&$^=])")
# What begins a mention, the number of an issue, or an address.
_REFERENCE = re.compile(r"[@#](?=\w)|\bGH-(?=\w)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_ZERO_WIDTH_SPACE = "\u200b"


def escape(text: str) -> str:
    """Return text in which nothing is markup."""
    return _MARKUP.sub(r"\\\1", _without_references(_one_line(text)))


def format_code(text: str) -> str:
    """Return text as inline code, in a table too."""
    text = shorten(_one_line(text).strip(), _MAX_CODE)
    if not text:
        return ""
    if "`" in text or "|" in text or "\\" in text:
        # Inside and outside tables these have different meanings between backquotes.
        return f"<code>{escape_element(text)}</code>"
    return f"`{text}`"


def escape_element(text: str) -> str:
    """Return text for an HTML element within Markdown, where Markdown's marks still count."""
    text = escape_html(_without_references(_one_line(text)))
    return re.sub(r"[\\`*_\[\]|~$@]", lambda found: f"&#{ord(found[0])};", text)


def format_prose(pieces: Sequence[Piece]) -> str:
    """Return prose with its code as inline code."""
    return _joined(pieces, format_code, escape)


def format_prose_element(pieces: Sequence[Piece]) -> str:
    """Return prose with its code for an HTML element."""
    return _joined(pieces, lambda text: f"<code>{escape_element(text)}</code>", escape_element)


def fenced(text: str, language: str) -> str:
    """Return a code block whose fence is longer than any run of backquotes in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _joined(pieces: Sequence[Piece], code: Callable[[str], str], text: Callable[[str], str]) -> str:
    return "".join(code(one.text) if one.is_code else text(one.text) for one in pieces)


def _one_line(text: str) -> str:
    return printable(re.sub(r"\s+", " ", text))


def _without_references(text: str) -> str:
    return _REFERENCE.sub(lambda found: found[0] + _ZERO_WIDTH_SPACE, text)
