"""A setting in a Makefile: variables, `export`, and recipe commands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..text.replacements import Causes, united
from .lines import logical_lines
from .lists import BLANKS, drop_items
from .setting import Setting, TextPlan, TextSyntaxError
from .shell import plan_shell

_OPERATOR = r"(?:::?:?=|\?=|\+=|!=|=)"
_MODIFIERS = r"(?:(?:override|export|private)[ \t]+)*"
_ASSIGNMENT = re.compile(rf"[ ]*{_MODIFIERS}([\w.-]+)[ \t]*{_OPERATOR}[ \t]*")
_FOR_TARGET = re.compile(
    rf"[^\t#:=\n][^:=#\n]*::?[ \t]*{_MODIFIERS}([\w.-]+)[ \t]*{_OPERATOR}[ \t]*"
)
_EXPORT = re.compile(r"[ ]*(?:un)?export[ \t]+")
_CONDITION = re.compile(r"[ ]*(?:else[ \t]+)?if(?:n?eq|n?def)\b")
_PREFIX = re.compile(r"\t[ \t]*[@+-]*[ \t]*(?:[@+-]+[ \t]*)*")
_COMMENT = re.compile(r"(?<!\\)#")


@dataclass(slots=True)
class _Recipe:
    """The recipe lines of one rule: their ranges, and the causes of their removal."""

    lines: list[tuple[int, int, Causes | None]] = field(default_factory=list)

    def write(self, text: str, plan: TextPlan) -> None:
        """Plan the removal of lines; a rule that had a recipe keeps one."""
        gone = [(start, end, causes) for start, end, causes in self.lines if causes is not None]
        for index, (start, end, causes) in enumerate(gone):
            if index == 0 and len(gone) == len(self.lines):
                plan.put(start, end, "\t@:", united(why for *_, why in gone))
            else:
                plan.drop_lines(text, start, end, causes)
        self.lines.clear()


def plan_makefile(text: str, setting: Setting, plan: TextPlan) -> None:
    """Add the uses of a setting in a Makefile, and their removal, to `plan`."""
    shown = _without_references(text)
    recipe = _Recipe()
    defining = False
    for start, end in logical_lines(text):
        line = text[start:end]
        if line.startswith("\t") or (defining and not line.startswith("endef")):
            recipe.lines.append((start, end, _plan_recipe(text, shown, start, end, setting, plan)))
            continue
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        recipe.write(text, plan)
        defining = line.lstrip().startswith("define ")
        if setting.pattern.search(line):
            _plan_line(text, shown, start, end, setting, plan)
    recipe.write(text, plan)


def _without_references(text: str) -> str:
    """Replace `$$` by a single dollar and make references by underscores, at the same offsets."""
    shown = list(text)
    at = text.find("$")
    while 0 <= at < len(text) - 1:
        following = text[at + 1]
        stop = at + 2
        if following == "$":
            shown[at] = "_"
        elif following in "({":
            depth, closing = 0, ")" if following == "(" else "}"
            stop = at + 1
            while stop < len(text) and text[stop] != "\n":
                depth += (text[stop] == following) - (text[stop] == closing)
                stop += 1
                if depth == 0:
                    break
        if following != "$":
            shown[at:stop] = "_" * (stop - at)
        at = text.find("$", stop)
    return "".join(shown)


def _plan_recipe(
    text: str, shown: str, start: int, end: int, setting: Setting, plan: TextPlan
) -> Causes | None:
    """Plan a recipe line; return the causes of its removal, or None if something is left of it."""
    prefix = _PREFIX.match(text, start, end)
    return _plan_command(text, shown, prefix.end() if prefix else start, end, setting, plan)


def _plan_command(
    text: str,
    shown: str,
    start: int,
    end: int,
    setting: Setting,
    plan: TextPlan,
    *,
    strict: bool = False,
) -> Causes | None:
    found = setting.pattern.search(text, start, end)
    if found is None:
        return None
    plan.add_reads(setting.reading, text, start, end)
    inner = plan.fork()
    try:
        causes = plan_shell(shown, setting, inner, start, end, strict=strict)
    except TextSyntaxError as error:
        plan.refuse(*found.span(), "variable", f"cannot parse the command: {error}")
        return None
    if causes is not None:
        inner.pieces.clear()  # all of it goes with its line
    elif not inner.uses and not inner.reads and _is_hidden(text, shown, start, end, setting):
        plan.refuse(*found.span(), "option", "it is an argument of a make function")
    return plan.adopt(inner, causes)


def _is_hidden(text: str, shown: str, start: int, end: int, setting: Setting) -> bool:
    """Return whether the setting is passed to a make function."""
    return setting.tells(text[start:end].replace(",", " ")) and not setting.occurs(shown[start:end])


def _plan_line(
    text: str, shown: str, start: int, end: int, setting: Setting, plan: TextPlan
) -> None:
    """Plan a line outside a recipe: an assignment, an export, a condition, or a rule."""
    comment = _COMMENT.search(text, start, end)
    stop = comment.start() if comment else end
    while stop > start and text[stop - 1] in " \t":
        stop -= 1
    assignment = _ASSIGNMENT.match(text, start, stop) or _FOR_TARGET.match(text, start, stop)
    if assignment is not None:
        if assignment.group(1) == setting.variable:
            value = text[assignment.end() : stop]
            if causes := plan.take(assignment.start(1), stop, "variable", value):
                plan.drop_lines(text, start, stop, causes)
            return
        causes = _plan_command(text, shown, assignment.end(), stop, setting, plan, strict=True)
        if causes is not None:
            plan.put(start + len(text[start : assignment.end()].rstrip()), stop, "", causes)
    elif (export := _EXPORT.match(text, start, stop)) is not None:
        _plan_export(text, export.end(), start, stop, setting, plan)
    elif _CONDITION.match(text, start, stop):
        plan.add_reads(setting.pattern, text, start, stop)
    elif ";" in text[start:stop]:
        _plan_command(text, shown, text.index(";", start, stop) + 1, stop, setting, plan)
    else:
        plan.add_reads(setting.reading, text, start, stop)


def _plan_export(
    text: str, names: int, start: int, stop: int, setting: Setting, plan: TextPlan
) -> None:
    """Plan `export A NAME`."""
    words = [word.span() for word in re.compile(r"\S+").finditer(text, names, stop)]
    gone: dict[int, Causes] = {}
    for index, word in enumerate(words):
        if text[slice(*word)] == setting.variable and (causes := plan.take(*word, "variable")):
            gone[index] = causes
    if len(gone) == len(words):
        plan.drop_lines(text, start, stop, united(gone.values()))
    else:
        drop_items(text, words, gone, BLANKS, plan)
