"""A setting in a Dockerfile: `ENV`, `ARG`, and commands in shell form and exec form.

This module splits the file into instructions line by line and parses their arguments as shell. The
published Dockerfile grammar supports neither `ARG NAME=` nor comments within an instruction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..text.replacements import Causes
from .grammars import Range, without
from .lines import line_end, line_start, next_line
from .lists import COMMAS, drop_items
from .setting import Setting, TextPlan, TextSyntaxError
from .shell import plan_argv, plan_shell, plan_variables

_ESCAPE = re.compile(r"#\s*escape\s*=\s*`")
_KEYWORD = re.compile(r"[ \t]*(?:ONBUILD[ \t]+)?([A-Za-z]+)(?:[ \t]+|(?=\\?\r?\n|$))", re.I)
_FLAGS = re.compile(r"(?:[ \t]*--[a-z-]+(?:=\S+)?)*")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")
_DOCUMENT = re.compile(r"[ \t]*<<-?[\"']?\w+[\"']?[ \t]*\r?\n(?P<program>#!.*)?")
_SHELL = re.compile(r"#!.*\b(?:ba|da|z|k)?sh\b")
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


@dataclass(frozen=True, slots=True)
class _Instruction:
    """An instruction; `arguments` is where its arguments start, `comments` are comment lines within
    it.
    """

    keyword: str
    start: int
    arguments: int
    end: int
    comments: tuple[Range, ...]


def plan_dockerfile(text: str, setting: Setting, plan: TextPlan) -> None:
    """Add the uses of a setting in a Dockerfile, and their removal, to `plan`."""
    if _ESCAPE.match(text):
        text = re.sub(r"`(?=[ \t]*\r?\n)", "\\\\", text)
    for instruction in _instructions(text):
        hit = setting.pattern.search(text, instruction.start, instruction.end)
        if hit is None:
            continue
        lines = without(instruction.comments, instruction.start, next_line(text, instruction.end))
        inner = plan.fork()
        try:
            causes = _plan_instruction(text, instruction, setting, inner)
        except TextSyntaxError as error:
            plan.refuse(*hit.span(), "variable", f"cannot parse the command: {error}")
            continue
        for start, end in lines:
            inner.add_reads(setting.reading, text, start, end)
            if causes is not None:
                inner.put(start, end, "", causes)
        plan.adopt(inner)


def _instructions(text: str) -> Iterator[_Instruction]:
    at = 0
    while at < len(text):
        start = last = at
        end, at = line_end(text, at), next_line(text, at)
        keyword = _KEYWORD.match(text, start, end)
        comments: list[Range] = []
        while text[last:end].rstrip().endswith("\\") and at < len(text) and keyword:
            below, line = next_line(text, at), text[at : line_end(text, at)].lstrip()
            if line and not line.startswith("#"):
                last, end = at, line_end(text, at)
            else:
                comments.append((at, below))
            at = below
        for terminator in _HEREDOC.findall(text, start, end) if keyword else ():
            while at < len(text):
                line, end = text[at : line_end(text, at)], line_end(text, at)
                at = next_line(text, at)
                if line.strip() == terminator:
                    break
        if keyword:
            name = keyword.group(1).upper()
            yield _Instruction(name, start, keyword.end(), end, tuple(comments))


def _plan_instruction(
    text: str, instruction: _Instruction, setting: Setting, plan: TextPlan
) -> Causes | None:
    """Plan one instruction; return the causes of its removal, or None if something is left of
    it.
    """
    start, end, comments = instruction.arguments, instruction.end, instruction.comments
    match instruction.keyword:
        case "ENV" | "ARG":
            return plan_variables(text, start, end, setting, plan, skipped=comments)
        case "RUN" | "CMD" | "ENTRYPOINT":
            flags = _FLAGS.match(text, start, end)
            assert flags is not None
            causes = _plan_command(text, flags.end(), end, comments, setting, plan)
            return causes if instruction.keyword == "RUN" else None
        case "HEALTHCHECK":
            if command := re.compile(r"\bCMD\s+").search(text, start, end):
                _plan_command(text, command.end(), end, comments, setting, plan)
        case "COPY" | "ADD":
            if hit := setting.pattern.search(text, start, end):
                plan.refuse(*hit.span(), "variable", "it is in a here-document")
    return None


def _plan_command(
    text: str,
    start: int,
    end: int,
    comments: tuple[Range, ...],
    setting: Setting,
    plan: TextPlan,
) -> Causes | None:
    document = _DOCUMENT.match(text, start, end)
    if document is not None:
        if document["program"] and not _SHELL.match(document["program"]):
            raise TextSyntaxError("it is a here-document for another program")
        plan_shell(text, setting, plan, document.end(), line_start(text, end))
        return None
    opening = start + len(text[start:end]) - len(text[start:end].lstrip())
    try:
        items = json.loads(re.sub(r"\\\s*\n", "  ", text[opening:end]))
        strings = list(_STRING.finditer(text, opening, end))
    except ValueError:
        return plan_shell(text, setting, plan, start, end, skipped=comments)
    if isinstance(items, list) and len(strings) == len(items):
        dropped = plan_argv(text, [m.span(1) for m in strings], setting, plan)
        drop_items(text, [m.span() for m in strings], dropped, COMMAS, plan)
    return None
