"""Removes items from lists in a text: words, commands, or elements between commas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..text.replacements import Causes, united
from .lines import line_start, next_line
from .setting import TextPlan

# What may follow an item. `kept` is more than a separator and stays with the item.
COMMAS = re.compile(r"(?:\s|#[^\n]*\n)*,")
BLANKS = re.compile(r"(?!)")
COMMANDS = re.compile(r"[ \t]*(?:(?P<kept>&)|;)(?![;&])")
CHAINED = re.compile(r"[ \t]*&&")

_LINE_END = re.compile(r"[ \t]*(?P<goes_on>\\)?(?:#.*)?\r?$", re.MULTILINE)
_GOES_ON = re.compile(r"[ \t]*\\(?=\r?\n)")


def drop_items(
    text: str,
    items: Sequence[tuple[int, int]],
    gone: Mapping[int, Causes],
    separator: re.Pattern[str],
    plan: TextPlan,
) -> None:
    """Plan the removal of list items with their separators, and of lines that hold nothing else.

    Args:
        text: the text.
        items: the range of each item.
        gone: the indices of the items to remove, with their causes.
        separator: what may follow an item.
        plan: the plan to add to.
    """
    first = 0
    for stop in range(1, len(items) + 1):
        if stop < len(items) and (stop - 1 in gone) == (stop in gone):
            continue
        if first in gone:
            causes = united(gone[at] for at in range(first, stop))
            for start, end in _ranges(text, items, first, stop, separator):
                plan.put(start, end, "", causes)
        first = stop


def _ranges(
    text: str,
    items: Sequence[tuple[int, int]],
    first: int,
    stop: int,
    separator: re.Pattern[str],
) -> Iterator[tuple[int, int]]:
    start, end = items[first][0], items[stop - 1][1]
    own = separator.match(text, end)
    behind = own.end() if own else end
    # The end of the previous item, without and with its separator.
    before, separated = (items[first - 1][1],) * 2 if first else (start, start)
    if first and (found := separator.match(text, before)):
        separated = found.end()
        before = separated if found.groupdict().get("kept") else before
    is_last = stop == len(items)
    following = end if is_last else items[stop][0]
    rest = _LINE_END.match(text, behind)
    joint = _GOES_ON.match(text, separated) if first else None
    # Whether the next item is on a line that continues this one.
    goes_on = rest is not None and rest["goes_on"] and not joint
    leads = not is_last and (goes_on or (separator is CHAINED and not first))
    if rest and not text[line_start(text, start) : start].strip() and not leads:
        if first and is_last and not own:
            yield before, separated
        if joint and not rest["goes_on"]:
            yield joint.span()
        for item in items[first:stop]:
            found = separator.match(text, item[1])
            yield line_start(text, item[0]), next_line(text, found.end() if found else item[1])
        return
    if is_last and "#" in text[separated:start]:
        yield before, separated
        yield start, behind
    elif is_last and separator is COMMANDS and "\n" in text[separated:start] and not joint:
        yield start, behind
    elif is_last:
        yield (separated, behind) if own else (before, end)
    elif first and "\n" in text[behind:following] and "\n" not in text[separated:start]:
        yield (separated, behind) if before == separated else (before, end)
    elif "#" in text[behind:following]:
        yield (
            start,
            behind + len(text[behind:following]) - len(text[behind:following].lstrip(" \t")),
        )
    else:
        yield start, following
