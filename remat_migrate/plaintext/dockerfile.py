"""A setting in a Dockerfile: `ENV`, `ARG`, and commands in the shell form and the JSON form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..source.pieces import Causes, Piece
from .lines import line_end, line_start, next_line
from .listing import drop_elements
from .setting import Setting, TextPlan, TextSyntaxError
from .shell import plan_argv, plan_shell, plan_words
from .shell_tree import Word

_ESCAPE = re.compile(r"#\s*escape\s*=\s*([\\`])")
_KEYWORD = re.compile(
    r"[ \t]*(?:ONBUILD[ \t]+)?([A-Za-z]+)(?:[ \t]+|(?=\\?\r?\n|$))", re.IGNORECASE
)
_WORD = re.compile(r"""(?:\\[^\n]|"(?:\\.|[^"\\])*"|'[^']*'|[^\s\\"'])+""")
_FLAG = re.compile(r"[ \t]*--[a-z-]+(?:=\S+)?")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")
_DOCUMENT = re.compile(r"[ \t]*<<-?[\"']?\w+[\"']?[ \t]*\r?\n")
_SHELL = re.compile(r"#!.*\b(?:ba|da|z|k)?sh\b")
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


@dataclass(frozen=True, slots=True)
class _Instruction:
    keyword: str
    start: int
    arguments: int
    end: int
    comments: tuple[tuple[int, int], ...]


def plan_dockerfile(text: str, setting: Setting, plan: TextPlan) -> None:
    """Note the uses of a setting in a Dockerfile in `plan`, and what takes them out."""
    directive = _ESCAPE.match(text)
    escape = directive.group(1) if directive else "\\"
    for instruction in _instructions(text, escape):
        if not setting.pattern.search(text, instruction.start, instruction.end):
            continue
        shown = _without_comments(text, instruction, escape)
        inner = plan.fork()
        try:
            _plan_instruction(shown, instruction, setting, inner)
        except TextSyntaxError as error:
            hit = setting.pattern.search(text, instruction.start, instruction.end)
            assert hit is not None
            plan.refuse(*hit.span(), "variable", f"the command cannot be read: {error}")
            continue
        inner.pieces = [
            kept for piece in inner.pieces for kept in _beside_comments(text, piece, instruction)
        ]
        plan.adopt(inner)


def _instructions(text: str, escape: str) -> Iterator[_Instruction]:
    at = 0
    while at < len(text):
        start, stop = at, line_end(text, at)
        line = text[start:stop]
        at = next_line(text, at)
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        comments: list[tuple[int, int]] = []
        while line.rstrip().endswith(escape) and at < len(text):
            while True:
                begin, stop = at, line_end(text, at)
                line = text[begin:stop]
                at = next_line(text, at)
                if line.strip() and not line.lstrip().startswith("#"):
                    break
                comments.append((begin, at))
                if at >= len(text):
                    break
        end = stop
        for terminator in _HEREDOC.findall(text[start:end]):
            while at < len(text):
                begin, stop = at, line_end(text, at)
                at = next_line(text, at)
                end = stop
                if text[begin:stop].strip() == terminator:
                    break
        keyword = _KEYWORD.match(text, start, end)
        if keyword:
            yield _Instruction(keyword.group(1).upper(), start, keyword.end(), end, tuple(comments))


def _without_comments(text: str, instruction: _Instruction, escape: str) -> str:
    """The text as the builder reads it: lines of comment within the instruction blanked out."""
    shown = text
    for start, end in instruction.comments:
        shown = shown[:start] + " " * (end - start) + shown[end:]
    if escape != "\\":
        start, end = instruction.start, instruction.end
        body = re.sub(r"`(?=[ \t]*\r?\n)", "\\\\", shown[start:end])
        shown = shown[:start] + body + shown[end:]
    return shown


def _beside_comments(text: str, piece: Piece, instruction: _Instruction) -> Iterator[Piece]:
    """A piece without the lines of comment that it spans."""
    start, end, put, causes = piece
    spanned = [
        (low, high)
        for low, high in instruction.comments
        if start <= low and high <= end and text[low:high].strip()
    ]
    if not spanned:
        yield piece
    elif start <= instruction.start and instruction.end <= end:
        for low, high in zip(
            (start, *(high for _, high in spanned)),
            (*(low for low, _ in spanned), end),
            strict=True,
        ):
            yield low, high, put if high == end else "", causes
    elif end < instruction.end and text[end : line_end(text, end)].strip():
        # Something follows: the line of what goes, or all but its backslash, goes alone.
        line, below = line_start(text, start), next_line(text, start)
        if text[line:start].strip():
            yield start, len(text[:below].rstrip()) - 1, put, causes
        else:
            yield line, below, put, causes
    else:
        # What goes was the last: the line before it does not go on any more.
        yield start, line_end(text, start), put, causes
        yield len(text[: spanned[-1][1]].rstrip("\r\n")), end, "", causes


def _plan_instruction(
    text: str, instruction: _Instruction, setting: Setting, plan: TextPlan
) -> None:
    start, end = instruction.arguments, instruction.end
    match instruction.keyword:
        case "ENV" | "ARG":
            causes = _plan_variables(text, instruction, setting, plan)
        case "RUN" | "CMD" | "ENTRYPOINT":
            while flag := _FLAG.match(text, start, end):
                start = flag.end()
            causes = _plan_command(text, start, end, setting, plan)
            if instruction.keyword != "RUN":
                causes = None
        case "HEALTHCHECK":
            command = re.compile(r"\bCMD\s+").search(text, start, end)
            causes = None
            if command:
                _plan_command(text, command.end(), end, setting, plan)
        case "COPY" | "ADD":
            causes = None
            if hit := setting.pattern.search(text, start, end):
                plan.refuse(*hit.span(), "variable", "it stands in a here-document")
        case _:
            causes = None
    for found in setting.reading.finditer(text, start, end):
        plan.reads.append(found.span())
    if causes is not None:
        plan.put(instruction.start, next_line(text, end), "", causes)


def _plan_variables(
    text: str, instruction: _Instruction, setting: Setting, plan: TextPlan
) -> Causes | None:
    words: list[Word] = []
    at = instruction.arguments
    gap = re.compile(r"(?:\s|\\(?=[ \t]*\r?\n))*")
    while True:
        blank = gap.match(text, at, instruction.end)
        word = _WORD.match(text, blank.end() if blank else at, instruction.end)
        if word is None:
            break
        words.append(Word(word.start(), word.end(), word.group()))
        at = word.end()
    if words and words[0].text == setting.variable and instruction.keyword == "ENV":
        # The old form, `ENV NAME value`.
        value = text[words[0].end : instruction.end].strip()
        return plan.take(words[0].start, instruction.end, "variable", value)
    return plan_words(text, words, setting, plan)


def _plan_command(
    text: str, start: int, end: int, setting: Setting, plan: TextPlan
) -> Causes | None:
    document = _DOCUMENT.match(text, start, end)
    if document is not None:
        start, end = document.end(), line_start(text, end)
        if text.startswith("#!", start) and not _SHELL.match(text, start):
            raise TextSyntaxError("it is a here-document for another program")
        plan_shell(text, setting, plan, start, end)
        return None
    body = text[start:end].strip()
    if not body.startswith("["):
        return plan_shell(text, setting, plan, start, end)
    opening = text.index("[", start)
    try:
        items = json.loads(re.sub(r"\\\s*\n", "  ", text[opening:end]))
    except ValueError:
        return plan_shell(text, setting, plan, start, end)
    found = list(_STRING.finditer(text, opening, end))
    if len(found) != len(items):
        return None
    dropped = plan_argv(text, [m.span(1) for m in found], setting, plan)
    closing = text.rindex("]", start, end)
    drop_elements(text, [m.span() for m in found], dropped, (opening + 1, closing), plan)
    return None
