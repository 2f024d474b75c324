"""The code of a Python file, without comments and long strings, found without parsing it."""

from __future__ import annotations

import re

# A comment or a string, whichever comes first. Of a string: its prefix and its quotes.
_TOKEN = re.compile(
    rb"#[^\r\n]*"
    rb"|(?P<prefix>\b[A-Za-z]{1,2})?"
    rb"(?P<quote>\"\"\"|'''|\"|')"
)
_ENDS = {
    b'"""': re.compile(rb'[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""', re.DOTALL),
    b"'''": re.compile(rb"[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''", re.DOTALL),
    b'"': re.compile(rb'[^"\\\r\n]*(?:\\(?:\r\n|.)[^"\\\r\n]*)*"', re.DOTALL),
    b"'": re.compile(rb"[^'\\\r\n]*(?:\\(?:\r\n|.)[^'\\\r\n]*)*'", re.DOTALL),
}
# A string of one word may be a name: `getattr(jax, "checkpoint")`.
_WORD = re.compile(rb"\w+")
_FORMATTED = frozenset(b"fFtT")


def code_of(data: bytes) -> bytes:
    """Return the code of a Python file, with each string of several words replaced by an empty one.

    F-strings are kept, because they contain expressions, and so is the rest of their line, where a
    quote may belong to them (PEP 701). The result may contain more than the code, never less. Lines
    end with `\\n`.
    """
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    parts: list[bytes] = []
    kept = at = 0
    search = _TOKEN.search
    while (token := search(data, at)) is not None:
        start, at = token.span()
        quote = token["quote"]
        if quote is None:
            parts.append(data[kept:start])
            kept = at
            continue
        end = _ENDS[quote].match(data, at)
        if end is None:
            if len(quote) == 3:
                break  # searching for the end of each would take quadratic time
            continue  # an unterminated string: this is not Python
        at = end.end()
        prefix = token["prefix"] or b""
        if not _FORMATTED.isdisjoint(prefix):
            if b"\n" not in end[0]:
                line = data.find(b"\n", at)
                at = len(data) if line < 0 else line
            continue
        text = end[0][: -len(quote)]
        if _WORD.fullmatch(text) is None:
            parts.append(data[kept:start])
            parts.append(b'""')
            kept = at
    parts.append(data[kept:])
    return b"".join(parts)
