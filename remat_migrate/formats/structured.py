"""A setting in YAML and TOML: environments, argument lists, and commands."""

from __future__ import annotations

import re
from collections import Counter

from ..text.replacements import Causes, united
from .lines import line_end, line_start, next_line
from .lists import COMMAS, drop_items
from .setting import Setting, TextPlan, TextSyntaxError
from .shell import plan_argv, plan_shell
from .trees import (
    Entry,
    Item,
    Mapping,
    Node,
    Scalar,
    Sequence,
    Table,
    parse_toml,
    parse_yaml,
)

# An empty value of one of these keys means the same as no such key.
_ENVIRONMENTS = re.compile(
    r"(?i)(.*[_-])?(env|environ|environment|envs|env_?vars|environment_?variables|variables|vars"
    r"|set_?env|pass_?env|passthrough|build[_-]?args)"
)
_ARGUMENTS = re.compile(r"(?i)(.*[_-])?(args?|arguments|argv|flags|options|opts|params)|entrypoint")
_SCRIPTS = re.compile(
    r"(?i)(before_|after_)?script|run|commands?|steps|install|before_install|test"
)
_PROSE = re.compile(
    r"(?i)name|title|display_?name|description|help|doc|comment|message|label|id|readme|summary"
)
# What a workflow step may have besides its script.
_STEP = frozenset({"name", "run", "shell", "if", "working-directory", "displayName", "script"})
# GitHub expands these templates before the shell runs.
_TEMPLATE = re.compile(r"\$\{\{[^\n]*?\}\}")
_ENTRY_NAMES = frozenset({"name", "key", "Name", "Key"})
_ENTRY_REST = frozenset({"value", "valueFrom", "Value", "ValueFrom", "optional", "type"})
# pytest-env writes `D:NAME=value` for a default and `R:` for a raw value.
_PREFIXES = r"(?:[DR]:)*"


def plan_yaml(text: str, setting: Setting, plan: TextPlan) -> None:
    """Add the uses of a setting in a YAML file, and their removal, to `plan`.

    Raises:
        TextSyntaxError: the file cannot be parsed.
    """
    planner = _Planner(text, setting, plan, is_toml=False)
    for root in parse_yaml(text, setting.occurs):
        planner.visit(root, "")


def plan_toml(text: str, setting: Setting, plan: TextPlan) -> None:
    """Add the uses of a setting in a TOML file, and their removal, to `plan`."""
    planner = _Planner(text, setting, plan, is_toml=True)
    tables = parse_toml(text, setting.occurs)
    # How many tables have a name, or one that begins with it.
    names = Counter(t.name[:length] for t in tables for length in range(1, len(t.name) + 1))
    for table in tables:
        causes = planner.visit(table.values, "") if table.values.entries else None
        if causes is not None and _may_go(table, names):
            plan.drop_lines(text, *table.header, causes)


def _may_go(table: Table, names: Counter[tuple[str, ...]]) -> bool:
    """Return whether an empty table can be removed."""
    return (
        bool(table.name)
        and not table.is_array
        and _ENVIRONMENTS.fullmatch(table.name[-1]) is not None
        and names[table.name] == 1
    )


class _Planner:
    """Visits nodes; `visit` returns the causes if nothing is left of a node.

    Visiting a node plans the removal of its parts. The parent plans the removal of an empty node.
    """

    def __init__(self, text: str, setting: Setting, plan: TextPlan, *, is_toml: bool) -> None:
        self.text = text
        self.setting = setting
        self.plan = plan
        self.is_toml = is_toml
        name = re.escape(setting.variable)
        self._assignment = re.compile(rf"{_PREFIXES}{name}(?:\s*=(.*))?", re.DOTALL)
        self._line = re.compile(
            rf"[ \t]*{_PREFIXES}({name}\s*=[ \t]*(\S*))[ \t]*\r?$", re.MULTILINE
        )

    def visit(self, node: Node, key: str, *, among: int = 0) -> Causes | None:
        """Plan a node under `key`, which is one of `among` items of a sequence."""
        if not self.setting.occurs(self.text[node.outer[0] : node.outer[1]]):
            return None
        match node:
            case Scalar():
                return self._scalar(node, key)
            case Mapping():
                return self._mapping(node, among)
            case Sequence():
                return self._sequence(node, key)

    def value(self, node: Node) -> str:
        """Return the text of a scalar, without its quotes."""
        return self.text[node.start : node.end] if isinstance(node, Scalar) else ""

    def _is_behind_dash(self, at: int) -> bool:
        return bool(self.text[line_start(self.text, at) : at].strip())

    # -- mappings

    def _mapping(self, node: Mapping, among: int) -> Causes | None:
        gone: dict[int, Causes] = {}
        for index, entry in enumerate(node.entries):
            key = self.value(entry.key)
            if key == self.setting.variable:
                value = self.value(entry.value)
                causes = self.plan.take(entry.start, entry.end, "variable", value)
            elif key == self.setting.option:
                reason = "it is unclear whether the program passes this to JAX"
                self.plan.refuse(*entry.key.outer, "option", reason)
                causes = None
            else:
                causes = self.visit(entry.value, key)
                if causes is not None and self._is_step(node, entry, among):
                    return causes
                if causes is not None and not self._may_go(key, entry.value):
                    self._empty(entry, causes)
                    causes = None
            if causes is not None:
                gone[index] = causes
        self._drop_entries(node, gone)
        return united(gone.values()) if len(gone) == len(node.entries) else None

    def _may_go(self, key: str, value: Node) -> bool:
        """Return whether an entry with an empty value can be removed."""
        if value.anchor and re.search(rf"\*{re.escape(value.anchor)}(?![\w-])", self.text):
            return False
        if isinstance(value, Scalar) and self.is_toml:
            return False
        return bool(
            _ENVIRONMENTS.fullmatch(key) or (_ARGUMENTS.fullmatch(key) and not self.is_toml)
        )

    def _is_step(self, node: Mapping, entry: Entry, among: int) -> bool:
        """Return whether a removed script was all that an item of a list did."""
        keys = {self.value(other.key) for other in node.entries}
        is_script = isinstance(entry.value, Scalar) and bool(keys & {"run", "script"})
        return is_script and among > 1 and keys <= _STEP

    def _empty(self, entry: Entry, causes: Causes) -> None:
        """Plan an empty value for an entry that must stay."""
        value = entry.value
        match value:
            case Scalar(style=style):
                is_script = style in ("literal", "folded") or _SCRIPTS.fullmatch(
                    self.value(entry.key)
                )
                self.plan.put(*value.outer, '":"' if is_script else '""', causes)
            case Mapping(flow=False):
                self.plan.put(entry.colon, entry.colon, " {}", causes)
            case Sequence(flow=False):
                self.plan.put(entry.colon, entry.colon, " []", causes)

    def _drop_entries(self, node: Mapping, gone: dict[int, Causes]) -> None:
        entries = node.entries
        if node.flow:
            spans = [(entry.start, entry.end) for entry in entries]
            drop_items(self.text, spans, gone, COMMAS, self.plan)
            return
        leading = 0
        if self._is_behind_dash(entries[0].start):
            # The first entry is on the line of its item's dash; the next one takes its place.
            while leading in gone:
                leading += 1
            if 0 < leading < len(entries):
                causes = united(gone[index] for index in range(leading))
                self.plan.put(entries[0].start, entries[leading].start, "", causes)
            elif leading:
                leading = 1  # what becomes of the first is for the item to say
        for index, causes in gone.items():
            if index >= leading:
                self.plan.drop_lines(
                    self.text, entries[index].start, _head_end(entries[index]), causes
                )

    # -- sequences

    def _sequence(self, node: Sequence, key: str) -> Causes | None:
        gone: dict[int, Causes] = {}
        words: dict[int, Scalar] = {}
        scripts = self._holds_scripts(node, key)
        is_prose = not _ARGUMENTS.fullmatch(key) and any(
            re.search(r"\s", self.value(item.value)) for item in node.items
        )
        for index, item in enumerate(node.items):
            if isinstance(item.value, Scalar):
                causes = None
                named = self._assignment.fullmatch(self.value(item.value))
                if named and _ENVIRONMENTS.fullmatch(key):
                    value = named.group(1) or ""
                    causes = self.plan.take(*item.value.outer, "variable", value)
                elif scripts or self._is_script(item.value):
                    causes = self._scalar(item.value, key)
                elif not (is_prose and self.value(item.value) == self.setting.variable):
                    words[index] = item.value
            else:
                causes = self._named(item) or self.visit(item.value, "", among=len(node.items))
                if causes is not None and not self._goes_whole(item, key):
                    self._empty_item(item, causes)
                    causes = None
            if causes is not None:
                gone[index] = causes
        for scalar in words.values():
            self._note_reads(scalar)
        spans = [(scalar.start, scalar.end) for scalar in words.values()]
        for at, causes in plan_argv(self.text, spans, self.setting, self.plan).items():
            gone[list(words)[at]] = causes
        everything = united(gone.values()) if len(gone) == len(node.items) else None
        if scripts and everything is not None:
            self.plan.put(*node.items[0].value.outer, '":"', everything)
            del gone[0]
            everything = None
        self._drop_items(node, gone)
        return everything

    def _holds_scripts(self, node: Sequence, key: str) -> bool:
        """Return whether the items are commands, not the words of one command."""
        scalars = [item.value for item in node.items if isinstance(item.value, Scalar)]
        if not _SCRIPTS.fullmatch(key):
            return False
        first = self.value(scalars[0]) if scalars else ""
        return key != "command" or re.search(r"\s", first) is not None

    def _is_script(self, item: Scalar) -> bool:
        """Return whether an item is a whole command, not a word of one."""
        value = self.value(item)
        return item.style in ("literal", "folded") or (
            re.search(r"\S\s+\S", value) is not None and self.setting.tells(value)
        )

    def _goes_whole(self, item: Item, key: str) -> bool:
        """Return whether to remove an empty item: a step, or the mapping of one variable."""
        if not isinstance(item.value, Mapping):
            return False
        keys = {self.value(entry.key) for entry in item.value.entries}
        whole = self._is_named(item.value) or bool(keys & {"run", "script"})
        return whole or _ENVIRONMENTS.fullmatch(key) is not None

    def _is_named(self, node: Mapping) -> bool:
        keys = {self.value(e.key): self.value(e.value) for e in node.entries}
        names = [key for key in keys if key in _ENTRY_NAMES]
        return (
            len(names) == 1
            and keys[names[0]] == self.setting.variable
            and (set(keys) - set(names) <= _ENTRY_REST)
        )

    def _named(self, item: Item) -> Causes | None:
        """Plan the Kubernetes form, `- name: NAME` with its `value:`."""
        if not isinstance(item.value, Mapping) or not self._is_named(item.value):
            return None
        values = [e.value for e in item.value.entries if self.value(e.key) in ("value", "Value")]
        shown = self.value(values[0]) if values else ""
        return self.plan.take(item.value.outer[0], item.end, "variable", shown)

    def _empty_item(self, item: Item, causes: Causes) -> None:
        """Plan an empty item that must stay, because removing it would renumber the others."""
        value = item.value
        if isinstance(value, Scalar) or value.flow:
            return
        empty = "{}" if isinstance(value, Mapping) else "[]"
        start = value.outer[0]
        if not self._is_behind_dash(start):
            self.plan.put(item.start + 1, item.start + 1, f" {empty}", causes)
        elif isinstance(value, Mapping):
            self.plan.put(start, _head_end(value.entries[0]), empty, causes)
        else:
            self.plan.put(*value.outer, empty, causes)

    def _drop_items(self, node: Sequence, gone: dict[int, Causes]) -> None:
        if node.flow:
            spans = [item.value.outer for item in node.items]
            drop_items(self.text, spans, gone, COMMAS, self.plan)
            return
        nested = self._is_behind_dash(node.items[0].start)
        if nested and len(gone) == len(node.items):
            return  # `- - x`: for the item around it to say
        for index, causes in gone.items():
            item = node.items[index]
            if nested and index == 0:
                self.plan.put(item.start, node.items[1].start, "", causes)
            else:
                self.plan.drop_lines(self.text, item.start, item.end, causes)

    # -- scalars

    def _scalar(self, node: Scalar, key: str) -> Causes | None:
        """Plan a command line or a script; return the causes if nothing is left of it."""
        self._note_reads(node)
        value = self.value(node)
        lines = self.is_toml and "\n" in value
        told = self.setting.tells(f" {value}") or (lines and self._line.search(value))
        if _PROSE.fullmatch(key) or not told:
            return None
        inner = self.plan.fork()
        strict = not (_SCRIPTS.fullmatch(key) or _ENVIRONMENTS.fullmatch(key))
        strict = strict and node.style not in ("literal", "folded")
        shown = self._as_read(node)
        try:
            if lines:
                causes = None
                self._plan_lines(shown, node, inner, strict=strict)
            else:
                skipped = self._indents(node)
                causes = plan_shell(
                    shown, self.setting, inner, *node.span, skipped=skipped, strict=strict
                )
        except TextSyntaxError as error:
            self.plan.refuse(*node.span, "variable", f"cannot parse the command: {error}")
            return None
        if causes is not None:
            inner.pieces.clear()
        return self.plan.adopt(inner, causes)

    def _plan_lines(self, shown: str, node: Scalar, plan: TextPlan, *, strict: bool) -> None:
        """Plan the lines of another tool's settings (`legacy_tox_ini`) or of a script."""
        at = node.start
        while at < node.end:
            end = min(line_end(self.text, at), node.end)
            found = self._line.match(self.text, at, end)
            if found is not None:
                if causes := plan.take(*found.span(1), "variable", found.group(2)):
                    plan.drop_lines(self.text, at, end, causes)
            elif self.setting.tells(f" {self.text[at:end]}"):
                plan_shell(shown, self.setting, plan, at, end, strict=strict)
            at = next_line(self.text, at)

    def _indents(self, node: Scalar) -> list[tuple[int, int]]:
        """Return the ranges of the indentation in a block scalar."""
        lines = re.compile(rf"^{node.indent}", re.MULTILINE).finditer(self.text, *node.span)
        return [line.span() for line in lines] if node.indent else []

    def _note_reads(self, node: Scalar) -> None:
        self.plan.add_reads(self.setting.reading, self.text, *node.span)

    def _as_read(self, node: Scalar) -> str:
        """Return the file's text with a scalar as its reader sees it, at the same offsets."""
        value = self.value(node)
        body = _TEMPLATE.sub(lambda m: "_" * len(m.group()), value)
        if node.style == "double":
            body = re.sub(r'\\(["\\/])', r"_\1", body)
            body = body.replace("\\n", " \n").replace("\\t", "  ")
        elif node.style in ("folded", "plain", "single"):
            body = re.sub(r"(?<![ ])(\r?\n)", lambda m: " " * len(m.group()), body)
        if body == value:
            return self.text
        return self.text[: node.start] + body + self.text[node.end :]


def _head_end(entry: Entry) -> int:
    """Return where an entry ends, or its first line if its value starts below it."""
    below = isinstance(entry.value, Mapping | Sequence) and not entry.value.flow
    return entry.colon if below else entry.end
