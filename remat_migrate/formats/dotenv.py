"""A setting in a `.env` file, which has one `NAME=value` per line."""

from __future__ import annotations

import re

from .lines import line_end, next_line
from .setting import Setting, TextPlan, TextSyntaxError
from .shell import plan_shell
from .shell_words import PROSE_NAME

_LINE = re.compile(r"[ \t]*(?:export[ \t]+)?([\w.]+)[ \t]*(?:=|$)", re.MULTILINE)
_VALUE = re.compile(r"""[ \t]*("(?:\\.|[^"\\])*"|'[^']*'|[^\n#]*?(?=[ \t]+#|[ \t]*\r?$))""", re.M)


def plan_dotenv(text: str, setting: Setting, plan: TextPlan) -> None:
    """Add the uses of a setting in a `.env` file, and their removal, to `plan`."""
    at = 0
    while at < len(text):
        end = line_end(text, at)
        line = _LINE.match(text, at, end)
        if line is None:
            at = next_line(text, at)
            continue
        value = _VALUE.match(text, line.end())
        assert value is not None
        if line.group(1) == setting.variable:
            causes = plan.take(line.start(1), value.end(), "variable", value.group(1).strip("\"'"))
            if causes is not None:
                plan.drop_lines(text, at, value.end(), causes)
        elif not PROSE_NAME.search(line.group(1)):
            _plan_value(text, value, setting, plan)
        at = next_line(text, max(end, value.end()))


def _plan_value(text: str, value: re.Match[str], setting: Setting, plan: TextPlan) -> None:
    plan.add_reads(setting.reading, text, *value.span(1))
    if not setting.tells(value.group(1)):
        return
    quoted = value.group(1)[:1] in ('"', "'")
    start, end = value.start(1) + quoted, value.end(1) - quoted
    inner = plan.fork()
    try:
        plan_shell(text, setting, inner, start, end, strict=True)
    except TextSyntaxError as error:
        plan.refuse(start, end, "option", f"cannot parse the value as a command: {error}")
        return
    plan.adopt(inner)
