"""A setting in a YAML file: environments, lists of arguments, commands; and the file without it."""

from __future__ import annotations

import re

from ..source.pieces import Causes
from .lines import drop_lines, line_end, line_start
from .setting import Setting, TextPlan, TextSyntaxError
from .shell import plan_argv, plan_shell
from .values import Entry, Item, Mapping, Node, Scalar, Sequence
from .written_lists import COMMAS, drop_items
from .yaml_tree import parse_yaml

# A key of these with nothing in it means the same as no such key.
_ENVIRONMENTS = re.compile(
    r"(?i)(.*[_-])?(env|environ|environment|envs|env_?vars|environment_?variables|variables|vars"
    r"|pass_?env|passthrough|build[_-]?args)"
)
_ARGUMENTS = re.compile(r"(?i)(.*[_-])?(args?|arguments|argv|flags|options|opts|params)")
_SCRIPTS = re.compile(
    r"(?i)(before_|after_)?script|run|commands?|steps|install|before_install|test"
)
_PROSE = re.compile(r"(?i)name|title|display_?name|description|help|doc|comment|message|label|id")
# What a step of a workflow may have besides the script that is all it does.
_STEP = frozenset({"name", "run", "shell", "if", "working-directory", "displayName", "script"})
# What GitHub puts in before the shell gets to see it.
_TEMPLATE = re.compile(r"\$\{\{[^\n]*?\}\}")
_ENTRY_NAMES = frozenset({"name", "key", "Name", "Key"})
_ENTRY_REST = frozenset({"value", "valueFrom", "Value", "ValueFrom", "optional", "type"})


def plan_yaml(text: str, setting: Setting, plan: TextPlan) -> None:
    """Note the uses of a setting in a YAML file in `plan`, and what takes them out.

    Raises:
        TextSyntaxError: the file cannot be read.
    """
    planner = _Planner(text, setting, plan)
    for root in parse_yaml(text, setting.occurs):
        planner.visit(root, "")


class _Planner:
    """Visits nodes; `visit` gives the causes for which nothing is left of a node.

    What is left of a node is planned when it is visited; that a node with nothing left goes is for
    the node around it to plan.
    """

    def __init__(self, text: str, setting: Setting, plan: TextPlan) -> None:
        self.text = text
        self.setting = setting
        self.plan = plan

    def visit(self, node: Node, key: str, *, among: int = 0) -> Causes | None:
        """Plan a node that stands under `key`, as one of `among` items of a sequence."""
        if not self.setting.occurs(self.text[node.outer[0] : node.outer[1]]):
            return None
        match node:
            case Scalar():
                return self._scalar(node, key)
            case Mapping():
                return self._mapping(node, among)
            case Sequence():
                return self._sequence(node, key)

    def value(self, scalar: Scalar) -> str:
        """A scalar's characters, without its quotes."""
        return self.text[scalar.start : scalar.end]

    # -- mappings

    def _mapping(self, node: Mapping, among: int) -> Causes | None:
        gone: dict[int, Causes] = {}
        for index, entry in enumerate(node.entries):
            key = self.value(entry.key)
            if key == self.setting.variable:
                causes = self.plan.take(
                    entry.start, entry.end, "variable", self._shown(entry.value)
                )
            elif key == self.setting.option:
                reason = "whether the program hands this to JAX cannot be seen"
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
        everything = frozenset[int]().union(*gone.values())
        self._drop_entries(node, gone)
        return everything if len(gone) == len(node.entries) else None

    def _shown(self, node: Node) -> str:
        return self.value(node) if isinstance(node, Scalar) else ""

    def _may_go(self, key: str, value: Node) -> bool:
        """Whether an entry whose value is empty means nothing."""
        if value.anchor and re.search(rf"\*{re.escape(value.anchor)}(?![\w-])", self.text):
            return False
        return bool(_ENVIRONMENTS.fullmatch(key) or _ARGUMENTS.fullmatch(key))

    def _is_step(self, node: Mapping, entry: Entry, among: int) -> bool:
        """Whether a script that does nothing any more was all that an item of a list does."""
        keys = {self.value(other.key) for other in node.entries}
        is_script = isinstance(entry.value, Scalar) and bool(keys & {"run", "script"})
        return is_script and among > 1 and keys <= _STEP

    def _empty(self, entry: Entry, causes: Causes) -> None:
        """Plan an entry whose value has nothing left but must not go."""
        value = entry.value
        match value:
            case Scalar(style="literal" | "folded"):
                self.plan.put(value.outer[0], value.outer[1], '":"', causes)
            case Scalar():
                self.plan.put(value.outer[0], value.outer[1], self._idle(entry.key), causes)
            case Mapping(flow=False):
                self.plan.put(entry.colon, entry.colon, " {}", causes)
            case Sequence(flow=False):
                self.plan.put(entry.colon, entry.colon, " []", causes)

    def _idle(self, key: Scalar) -> str:
        return '":"' if _SCRIPTS.fullmatch(self.value(key)) else '""'

    def _drop_entries(self, node: Mapping, gone: dict[int, Causes]) -> None:
        if node.flow:
            spans = [(entry.start, entry.end) for entry in node.entries]
            drop_items(self.text, spans, gone, COMMAS, self.plan)
            return
        entries = node.entries
        leading = 0
        if self._is_behind_dash(entries[0].start):
            # The first entry stands on the line of its item's dash; another takes its place.
            while leading in gone:
                leading += 1
            if 0 < leading < len(entries):
                causes = frozenset[int]().union(*(gone[index] for index in range(leading)))
                self._up_to(entries[0].start, entries[leading].start, causes)
            elif leading:
                leading = 1  # what becomes of the first is for the item to say
        for index, causes in gone.items():
            if index >= leading:
                self._drop_entry(entries[index], causes)

    def _drop_entry(self, entry: Entry, causes: Causes) -> None:
        drop_lines(self.text, entry.start, _head_end(entry), self.plan, causes)

    def _is_behind_dash(self, at: int) -> bool:
        return bool(self.text[line_start(self.text, at) : at].strip())

    def _up_to(self, start: int, end: int, causes: Causes) -> None:
        """Take `[start, end)` out, but for a comment on its first line."""
        stop = line_end(self.text, start)
        comment = re.compile(r"\s#").search(self.text, start, stop)
        if comment is not None and stop < end:
            self.plan.put(start, comment.start() + 1, "", causes)
        else:
            self.plan.put(start, end, "", causes)

    # -- sequences

    def _sequence(self, node: Sequence, key: str) -> Causes | None:
        gone: dict[int, Causes] = {}
        scalars = [
            (index, item.value)
            for index, item in enumerate(node.items)
            if isinstance(item.value, Scalar) and item.value.style != "null"
        ]
        scripts = self._holds_scripts([scalar for _, scalar in scalars], key)
        if scripts:
            for index, scalar in scalars:
                causes = self._scalar(scalar, key)
                if causes is not None:
                    gone[index] = causes
        else:
            gone = self._arguments(scalars, key)
        for index, item in enumerate(node.items):
            if isinstance(item.value, Scalar):
                continue
            causes = self._named(item) or self.visit(item.value, "", among=len(node.items))
            if causes is None:
                continue
            if self._is_pair(item, key) or self._whole(item):
                gone[index] = causes
            else:
                self._empty_item(item, causes)
        everything = frozenset[int]().union(*gone.values())
        if scripts and len(gone) == len(node.items) and not _ARGUMENTS.fullmatch(key):
            first = node.items[0].value
            self.plan.put(*first.outer, '":"', everything)
            del gone[0]
            everything = frozenset()
        self._drop_items(node, gone)
        return everything if len(gone) == len(node.items) else None

    def _is_pair(self, item: Item, key: str) -> bool:
        """`environment: [{NAME: 0}]`, a list of mappings of one entry each."""
        return isinstance(item.value, Mapping) and _ENVIRONMENTS.fullmatch(key) is not None

    def _whole(self, item: Item) -> bool:
        """Whether an item goes as a whole: a step, or one that was named after the variable."""
        if not isinstance(item.value, Mapping):
            return False
        keys = {self.value(entry.key) for entry in item.value.entries}
        return self._is_named(item.value) or bool(keys & {"run", "script"})

    def _is_named(self, node: Mapping) -> bool:
        keys = {self.value(e.key): self._shown(e.value) for e in node.entries}
        names = [key for key in keys if key in _ENTRY_NAMES]
        return (
            len(names) == 1
            and keys[names[0]] == self.setting.variable
            and (set(keys) - set(names) <= _ENTRY_REST)
        )

    def _named(self, item: Item) -> Causes | None:
        """`- name: NAME` with its `value:`, as Kubernetes has it."""
        if not isinstance(item.value, Mapping) or not self._is_named(item.value):
            return None
        values = [e.value for e in item.value.entries if self.value(e.key) in ("value", "Value")]
        shown = self._shown(values[0]) if values else ""
        return self.plan.take(item.value.outer[0], item.end, "variable", shown)

    def _holds_scripts(self, scalars: list[Scalar], key: str) -> bool:
        if any(s.style in ("literal", "folded") for s in scalars) or _SCRIPTS.fullmatch(key):
            return not _is_argv(key, [self.value(s) for s in scalars])
        if _ARGUMENTS.fullmatch(key) or key == "entrypoint":
            return False
        return any(re.search(r"\s", self.value(scalar)) for scalar in scalars)

    def _arguments(self, scalars: list[tuple[int, Scalar]], key: str) -> dict[int, Causes]:
        gone: dict[int, Causes] = {}
        rest: list[tuple[int, Scalar]] = []
        for index, scalar in scalars:
            self._note_reads(scalar)
            if self.value(scalar) == self.setting.variable and _ENVIRONMENTS.fullmatch(key):
                causes = self.plan.take(*scalar.outer, "variable")
                if causes is not None:
                    gone[index] = causes
            else:
                rest.append((index, scalar))
        spans = [(scalar.start, scalar.end) for _, scalar in rest]
        dropped = plan_argv(self.text, spans, self.setting, self.plan)
        return gone | {rest[at][0]: causes for at, causes in dropped.items()}

    def _empty_item(self, item: Item, causes: Causes) -> None:
        """Plan an item that has nothing left but must not go: that would number the others anew."""
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
                drop_lines(self.text, item.start, item.end, self.plan, causes)

    # -- scalars

    def _scalar(self, node: Scalar, key: str) -> Causes | None:
        """A command line or a script; the causes for which nothing is left of it."""
        self._note_reads(node)
        value = self.value(node)
        if _PROSE.fullmatch(key) or not self.setting.tells(f" {value}"):
            return None
        shown = self._as_read(node)
        inner = self.plan.fork()
        strict = not (_SCRIPTS.fullmatch(key) or _ENVIRONMENTS.fullmatch(key))
        strict = strict and node.style not in ("literal", "folded")
        try:
            causes = plan_shell(
                shown,
                self.setting,
                inner,
                node.start,
                node.end,
                skipped=self._indents(node),
                strict=strict,
            )
        except TextSyntaxError as error:
            self.plan.refuse(
                node.start, node.end, "variable", f"the command cannot be read: {error}"
            )
            return None
        if causes is not None:
            inner.pieces.clear()
        return self.plan.adopt(inner, causes)

    def _indents(self, node: Scalar) -> list[tuple[int, int]]:
        """The indentation of the lines of a block scalar."""
        lines = re.compile(rf"^{node.indent}", re.MULTILINE).finditer(
            self.text, node.start, node.end
        )
        return [line.span() for line in lines] if node.indent else []

    def _note_reads(self, node: Scalar) -> None:
        for found in self.setting.reading.finditer(self.text, node.start, node.end):
            self.plan.reads.append(found.span())

    def _as_read(self, node: Scalar) -> str:
        """The file's text with a scalar as its reader gets it, at the same offsets."""
        body = _TEMPLATE.sub(lambda m: "_" * len(m.group()), self.value(node))
        if node.style == "double":
            body = re.sub(r'\\(["\\/])', r"_\1", body)
            body = body.replace("\\n", " \n").replace("\\t", "  ")
        if node.style in ("folded", "plain", "double", "single"):
            folded = re.sub(r"(?<![ ])(\r?\n)", lambda m: " " * len(m.group()), body)
            if node.style != "double":
                body = folded
        return self.text[: node.start] + body + self.text[node.end :]


def _head_end(entry: Entry) -> int:
    """Where an entry ends, or its first line if its value stands below."""
    below = isinstance(entry.value, Mapping | Sequence) and not entry.value.flow
    return entry.colon if below else entry.end


def _is_argv(key: str, values: list[str]) -> bool:
    """Whether `command:` holds the words of one command and not a list of commands."""
    return key == "command" and not re.search(r"\s", values[0] if values else "")
