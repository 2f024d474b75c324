"""Notebooks in Markdown: MyST `{code-cell}` directives and jupytext Python fences.

A file is a notebook if it has a `{code-cell}`, or if its YAML header has a `jupytext:` entry; code
in other Markdown is only shown. The view has the same lines as the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from .escapes import (
    BrokenEscape,
    escape_line,
    escaped,
    free_mark,
    lines_of,
    original,
    original_column,
)
from .magics import cells_as_python

_HEAD = re.compile(
    rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
_CODE_CELL = re.compile(rb"^(?:`{3,}|~{3,}|:{3,})[ \t]*\{code-cell\}", re.MULTILINE)
_JUPYTEXT = re.compile(rb"^jupytext[ \t]*:", re.MULTILINE)
_FORMAT = re.compile(rb"^[ \t]+format_name[ \t]*:[ \t]*['\"]?(\w+)", re.MULTILINE)
_KERNEL = re.compile(
    rb"^(?:kernelspec|kernel_info)[ \t]*:[^\n]*\n((?:[ \t]+[^\n]*\n)+)", re.MULTILINE
)
_LANGUAGE = re.compile(rb"^[ \t]+language[ \t]*:[ \t]*['\"]?([\w+#-]+)", re.MULTILINE)
_KERNEL_NAME = re.compile(rb"^[ \t]+name[ \t]*:[ \t]*['\"]?([\w.+#-]+)", re.MULTILINE)
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,}|:{3,})[ \t]*(.*)")
_DIRECTIVE = re.compile(r"\{code-cell\}\s*([\w.+-]*)")
_FIRST_WORD = re.compile(r"\{?\.?([\w.+-]*)")
_PYTHON = re.compile(r"(?:i?python[\d.]*|py)?", re.IGNORECASE)
_OPTION = re.compile(r":[\w-]+:(?:\s|$)")
_OTHER_KERNEL = re.compile(
    r"(?:ir|julia|bash|zsh|calysto|javascript|typescript|deno|rust|scala|sas|matlab|octave|xcpp|go|"
    r"gonb|ruby|haskell|perl|sql|xsql|maxima|sagemath)(?![a-z]).*",
    re.IGNORECASE,
)


def is_notebook(data: bytes) -> bool:
    """Return whether a Markdown file is a Python notebook."""
    if b"{code-cell}" not in data and b"jupytext" not in data:
        return False
    head = _head(data)
    if not _is_in_python(head):
        return False
    return bool(_JUPYTEXT.search(head) or _CODE_CELL.search(data))


def is_python_kernel(language: str, kernel: str) -> bool:
    """Return whether a notebook is in Python, judged by its language or else its kernel name."""
    if language:
        return bool(_PYTHON.fullmatch(language)) or language.lower() in ("sage", "xonsh")
    return not _OTHER_KERNEL.fullmatch(kernel)


@dataclass(frozen=True, eq=False)
class MarkdownNotebook:
    """A Markdown notebook as one Python module.

    Attributes:
        text: the file.
        view: its lines; those that are not Python are escaped.
        mark: the character that marks escaped lines.
    """

    text: str
    view: str
    mark: str

    @cached_property
    def _escaped(self) -> list[str]:
        return list(escaped(self.mark, self.view))

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in lines_of(self.text):
            starts.append(starts[-1] + len(line))
        return starts

    def restore(self, view: str) -> str:
        """Return the text of the file that has this view.

        Raises:
            BrokenEscape: a line that is not Python was changed.
        """
        if view == self.view:
            return self.text
        if list(escaped(self.mark, view)) != self._escaped:
            raise BrokenEscape("the edit changes a line of the notebook that is not Python")
        return "".join(original(self.mark, line) for line in lines_of(view))

    def as_reread(self, view: str) -> str:
        """Return the view that reading the changed file again gives."""
        return view

    def reread(self, text: str) -> MarkdownNotebook:
        """Return the notebook with another text."""
        return read_markdown(text)

    def cell(self, view: str, offset: int) -> tuple[int, int] | None:
        """Return None: lines of Markdown are numbered over the whole file."""
        return None

    def file_offset(self, view: str, offset: int) -> int:
        """Return the offset in the file of a character of the view."""
        start = max(view.rfind("\n", 0, offset), view.rfind("\r", 0, offset)) + 1
        number = len(lines_of(view[:start]))
        line = lines_of(view[start:offset] + view[offset:].split("\n", 1)[0])
        column = original_column(self.mark, line[0], offset - start) if line else 0
        return self._starts[min(number, len(self._starts) - 1)] + column


def read_markdown(text: str) -> MarkdownNotebook:
    """Read a Markdown file as a notebook.

    Raises:
        ValueError: the file contains every private-use character, so none is left for a mark.
    """
    mark = free_mark(text)
    if mark is None:
        raise ValueError("uses every private-use character")
    lines = lines_of(text)
    cells = _cells(lines, text.encode(errors="replace"))
    texts = ["".join(lines[start:end]) for start, end in cells]
    read = cells_as_python(texts, mark)
    parts: list[str] = []
    at = 0
    for (start, end), cell in zip(cells, read, strict=True):
        parts += (escape_line(mark, line) for line in lines[at:start])
        parts.append(cell)
        at = end
    parts += (escape_line(mark, line) for line in lines[at:])
    return MarkdownNotebook(text, "".join(parts), mark)


def _head(data: bytes) -> bytes:
    found = _HEAD.match(data)
    return found.group(1) if found else b""


def _is_in_python(head: bytes) -> bool:
    kernel = _KERNEL.search(head)
    about = kernel.group(1) if kernel else b""
    language, name = _LANGUAGE.search(about), _KERNEL_NAME.search(about)
    return is_python_kernel(
        language.group(1).decode(errors="replace") if language else "",
        name.group(1).decode(errors="replace") if name else "",
    )


def _cells(lines: list[str], data: bytes) -> list[tuple[int, int]]:
    """Return the code lines of each cell, as half-open ranges of line numbers from 0."""
    head = _head(data)
    written = _FORMAT.search(head)
    # Fences are cells only if directives are not; otherwise they only show Python.
    fences = bool(_JUPYTEXT.search(head)) and not (
        written.group(1) == b"myst" if written else _CODE_CELL.search(data)
    )
    found: list[tuple[int, int]] = []
    number = head.count(b"\n") + 2 if head else 0
    while number < len(lines):
        line = lines[number]
        if line.lstrip(" ").startswith("<!--") and "-->" not in line:
            number = _after_comment(lines, number)
            continue
        fence = _FENCE.match(line)
        if fence is None or (fence[2][0] == "`" and "`" in fence[3]):
            number += 1
            continue
        end = _fence_end(lines, number + 1, fence[2])
        if end is None:  # runs to the end of the file
            end = len(lines)
        if fence[2][0] == ":" and not _DIRECTIVE.match(fence[3]):
            number += 1  # a colon fence holds Markdown
            continue
        if not fence[1] and _is_cell(fence[3].strip(), fences):
            found.append((_after_options(lines, number + 1, end), end))
        number = end + 1
    return found


def _is_cell(info: str, fences: bool) -> bool:
    if directive := _DIRECTIVE.match(info):
        return bool(_PYTHON.fullmatch(directive[1]))
    word = _FIRST_WORD.match(info)
    return (
        fences
        and not info.startswith("{")
        and bool(word and word[1])
        and bool(_PYTHON.fullmatch(word[1] if word else ""))
    )


def _fence_end(lines: list[str], number: int, fence: str) -> int | None:
    closing = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
    for at in range(number, len(lines)):
        if closing.match(lines[at].rstrip("\r\n")):
            return at
    return None


def _after_comment(lines: list[str], number: int) -> int:
    for at in range(number, len(lines)):
        if "-->" in lines[at]:
            return at + 1
    return len(lines)


def _after_options(lines: list[str], number: int, end: int) -> int:
    """Return the line after the options of a cell: `:tags: [a]`, or a YAML block."""
    if number < end and lines[number].rstrip() == "---":
        for at in range(number + 1, end):
            if lines[at].rstrip() == "---":
                return at + 1
        return number
    while number < end and _OPTION.match(lines[number]):
        number += 1
    return number
