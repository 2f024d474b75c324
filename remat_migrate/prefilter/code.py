"""The code of a Python file, without comments and long strings, found without parsing it."""

from __future__ import annotations

import re


def _string(quote: str, kept: str, last: str) -> str:
    """Return the pattern of what follows the first quote of a string.

    Args:
        quote: the character.
        kept: the group for all of it, in strings to keep: one of a single word, as it may be a name
            (`getattr(jax, "checkpoint")`); an f-string, with the rest of the line; three quotes
            without an end, with the rest of the file, as searching for the end of each would take
            quadratic time.
        last: the group for the last quote of other strings.
    """
    two = quote * 2
    long = rf"{two}[^{quote}\\]*+(?:(?:\\.|{quote}(?!{two}))[^{quote}\\]*+)*+{two}"
    short = rf"(?!{two})[^{quote}\\\r\n]*+(?:\\(?:\r\n|.)[^{quote}\\\r\n]*+)*+"
    prefixes = ("[fFtT]", "[A-Za-z][fFtT]", "[fFtT][A-Za-z]")
    formatted = "|".join(rf"(?<=\b{prefix}{quote})" for prefix in prefixes)
    word = rf"(?:{two}\w++{two}|\w++){quote}"
    return (
        rf"(?<={quote})(?:(?P<{kept}>{word}|(?:{formatted})(?:{long}|{short}){quote}[^\n]*+)"
        rf"|(?:{long}|{short})(?P<{last}>{quote})|(?P<{kept}_rest>{two}.*+))"
    )


# A comment or a string, whichever comes first; comments are reduced to their first character.
_TOKEN = re.compile(
    rf"(?P<first>[#\"'])(?:{_string(chr(34), 'a', 'b')}|{_string(chr(39), 'c', 'd')}"
    r"|(?<=#)[^\r\n]*+)".encode(),
    re.DOTALL,
)


def code_of(data: bytes) -> bytes:
    """Return the code of a Python file, with each string of several words replaced by an empty one.

    F-strings are kept but for `#`, because they contain expressions, and so is the rest of their
    line, where a quote may belong to them (PEP 701). The result may contain more than the code,
    never less. Lines end with `\\n`.
    """
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    # The groups of each match hold what is kept, in order; `sub` would take three times as long.
    return b"".join(filter(None, _TOKEN.split(data))).replace(b"#", b"")
