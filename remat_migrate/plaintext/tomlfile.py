"""A setting in a TOML file: environments, lists of arguments, commands; and the file without it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..source.pieces import Causes
from .lines import drop_lines, line_end, next_line
from .setting import Setting, TextPlan, TextSyntaxError
from .shell import plan_argv, plan_shell
from .toml_tree import Table, parse_toml
from .values import Entry, Mapping, Node, Scalar
from .values import Sequence as Array
from .written_lists import COMMAS, drop_items

_ENVIRONMENTS = re.compile(
    r"(?i)(.*[_-])?(env|environ|environment|envs|env_?vars|environment_?variables|variables|vars"
    r"|set_?env|pass_?env|build[_-]?args)"
)
_PROSE = re.compile(r"(?i)name|title|description|help|doc|comment|message|label|readme|summary")
# pytest-env writes `D:NAME=value` for a default and `R:` for a raw value.
_PREFIXES = r"(?:[DR]:)*"


def plan_toml(text: str, setting: Setting, plan: TextPlan) -> None:
    """Note the uses of a setting in a TOML file in `plan`, and what takes them out.

    Raises:
        TextSyntaxError: the file cannot be read.
    """
    tables = parse_toml(text)
    planner = _Planner(text, setting, plan)
    for table in tables:
        gone = planner.pairs(table.entries)
        for index, causes in gone.items():
            pair = table.entries[index]
            drop_lines(text, pair.start, pair.end, plan, causes)
        if gone and len(gone) == len(table.entries) and _may_go(table, tables):
            everything = frozenset[int]().union(*gone.values())
            drop_lines(text, *table.header, plan, everything)


def _may_go(table: Table, tables: Sequence[Table]) -> bool:
    """Whether a table with nothing in it means nothing."""
    inside = (other for other in tables if other is not table)
    return (
        bool(table.name)
        and not table.is_array
        and _ENVIRONMENTS.fullmatch(table.name[-1]) is not None
        and not any(other.name[: len(table.name)] == table.name for other in inside)
    )


class _Planner:
    def __init__(self, text: str, setting: Setting, plan: TextPlan) -> None:
        self.text = text
        self.setting = setting
        self.plan = plan

    def pairs(self, pairs: Sequence[Entry]) -> dict[int, Causes]:
        """Plan the values of some pairs; those of which nothing is left, by index."""
        gone: dict[int, Causes] = {}
        for index, pair in enumerate(pairs):
            if not self.setting.occurs(self.text[pair.start : pair.end]):
                continue
            key = self._shown(pair.key)
            causes: Causes | None = None
            if key == self.setting.variable:
                causes = self.plan.take(pair.start, pair.end, "variable", self._shown(pair.value))
            elif key == self.setting.option:
                reason = "whether the program hands this to JAX cannot be seen"
                self.plan.refuse(pair.start, pair.end, "option", reason)
            else:
                causes = self.visit(pair.value, key)
                if causes is not None and not _ENVIRONMENTS.fullmatch(key):
                    causes = None  # `args = []`: the collection was emptied in its place
            if causes is not None:
                gone[index] = causes
        return gone

    def _shown(self, value: Node) -> str:
        start, end = (value.start, value.end) if isinstance(value, Scalar) else value.outer
        return self.text[start:end]

    def visit(self, value: Node, key: str) -> Causes | None:
        """Plan a value; the causes for which a collection has nothing left."""
        match value:
            case Scalar():
                self._string(value, key)
            case Array():
                return self._array(value, key)
            case Mapping():
                gone = self.pairs(value.entries)
                spans = [(pair.start, pair.end) for pair in value.entries]
                self._drop(value, spans, gone)
                if gone and len(gone) == len(value.entries):
                    return frozenset[int]().union(*gone.values())
        return None

    def _drop(
        self, value: Array | Mapping, spans: Sequence[tuple[int, int]], gone: dict[int, Causes]
    ) -> None:
        drop_items(self.text, spans, gone, COMMAS, self.plan)

    def _array(self, value: Array, key: str) -> Causes | None:
        gone: dict[int, Causes] = {}
        rest: list[tuple[int, Scalar]] = []
        for index, item in enumerate(i.value for i in value.items):
            if not isinstance(item, Scalar):
                self.visit(item, key)
                continue
            if not self._is_command(item):
                found = re.fullmatch(
                    rf"{_PREFIXES}{self.setting.variable}(?:\s*=(.*))?",
                    self._shown(item),
                    re.DOTALL,
                )
                named = found is not None and (
                    found.group(1) is not None or _ENVIRONMENTS.fullmatch(key)
                )
                if found is None or not named or self._takes(value, index):
                    rest.append((index, item))
                elif causes := self.plan.take(*item.outer, "variable", found.group(1) or ""):
                    gone[index] = causes
            else:
                self._string(item, key)
        spans = [(item.start, item.end) for _, item in rest]
        for at, causes in plan_argv(self.text, spans, self.setting, self.plan).items():
            gone[rest[at][0]] = causes
        for _, item in rest:
            self._note_reads(item)
        self._drop(value, [item.value.outer for item in value.items], gone)
        if gone and len(gone) == len(value.items):
            return frozenset[int]().union(*gone.values())
        return None

    def _takes(self, value: Array, index: int) -> bool:
        """Whether the item before is an option that takes a variable, and goes with it."""
        before = value.items[index - 1].value if index else None
        return isinstance(before, Scalar) and self._shown(before).startswith("-")

    def _is_command(self, item: Scalar) -> bool:
        """Whether an item is a whole command line and not one of its words."""
        value = self._shown(item)
        return re.search(r"\S\s+\S", value) is not None and self.setting.tells(value)

    def _note_reads(self, value: Scalar) -> None:
        for found in self.setting.reading.finditer(self.text, value.start, value.end):
            self.plan.reads.append(found.span())

    def _string(self, value: Scalar, key: str) -> None:
        """A string that is a command line, or lines of assignments or commands."""
        self._note_reads(value)
        shown = self._shown(value)
        lines = re.search(rf"^\s*{_PREFIXES}{self.setting.variable}\s*=", shown, re.MULTILINE)
        if _PROSE.fullmatch(key) or not (lines or self.setting.tells(f" {shown}")):
            return
        inner = self.plan.fork()
        body = self._as_read(value)
        try:
            self._script(value, body, inner, strict=not _ENVIRONMENTS.fullmatch(key))
        except TextSyntaxError as error:
            reason = f"the text cannot be read as a command: {error}"
            self.plan.refuse(value.start, value.end, "variable", reason)
            return
        self.plan.adopt(inner)

    def _as_read(self, value: Scalar) -> str:
        """The file's text with a string as its reader gets it, at the same offsets."""
        if value.style != "double":
            return self.text
        body = self.text[value.start : value.end]
        body = re.sub(r'\\(["\\])', r"_\1", body).replace("\\n", " \n").replace("\\t", "  ")
        return self.text[: value.start] + body + self.text[value.end :]

    def _script(self, value: Scalar, body: str, plan: TextPlan, *, strict: bool) -> None:
        lines = _lines(self.text, value)
        assignment = re.compile(rf"[ \t]*{_PREFIXES}({self.setting.variable}\s*=[^\n]*)")
        if len(lines) == 1:
            plan_shell(body, self.setting, plan, value.start, value.end, strict=strict)
            return
        # Several lines: settings of another tool (`legacy_tox_ini`), or a script.
        for start, end in lines:
            found = assignment.match(self.text, start, end)
            given = found.group(1).partition("=")[2].strip() if found is not None else ""
            if found is not None and not re.search(r"\s", given):
                if causes := plan.take(*found.span(1), "variable", given):
                    drop_lines(self.text, start, end, plan, causes)
            elif self.setting.tells(f" {self.text[start:end]}"):
                plan_shell(body, self.setting, plan, start, end, strict=strict)


def _lines(text: str, value: Scalar) -> list[tuple[int, int]]:
    """The lines of a string of several, as ranges without their line endings."""
    found: list[tuple[int, int]] = []
    at = value.start
    while at < value.end:
        found.append((at, min(line_end(text, at), value.end)))
        at = next_line(text, at)
    return found
