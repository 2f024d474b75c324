"""The commands of a shell script, read from the syntax tree of the bash grammar.

The grammar attaches a redirection to a whole pipeline, and what follows a here-document to the
here-document. In this tree every command has its own words and redirections, and lists are flat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from .grammars import Range, check, descendants, parse, without
from .lines import line_start
from .setting import TextSyntaxError

if TYPE_CHECKING:
    from tree_sitter import Node

_OPERATORS = frozenset((";", "&", "&&", "||", "|", "|&", ";;", ";&", ";;&"))
_STATEMENTS = frozenset(
    {
        "command", "declaration_command", "unset_command", "variable_assignment",
        "variable_assignments", "test_command", "list", "pipeline", "negated_command",
        "redirected_statement", "if_statement", "while_statement", "for_statement",
        "c_style_for_statement", "case_statement", "function_definition", "compound_statement",
        "subshell",
    }
)  # fmt: skip
_COMPOUND = {
    "if_statement": "if",
    "while_statement": "while",
    "for_statement": "for",
    "c_style_for_statement": "for",
    "case_statement": "case",
    "function_definition": "function",
    "compound_statement": "group",
    "subshell": "subshell",
}
_TESTS = frozenset(("if", "elif", "while", "until"))
_BODIES = frozenset(("then", "else", "do", "{", "("))
_CLAUSES = frozenset(("elif_clause", "else_clause", "do_group", "case_item"))
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
# The grammar has no node for a word that is `-`.
_DASH = re.compile(r"(?<!\S)-[ \t]+\Z")
_GAP = re.compile(r"(?:[ \t\r-]|\\\r?\n)*")
_SUBSTITUTIONS = frozenset(("command_substitution", "process_substitution"))


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the script.

    Attributes:
        start, end: its offsets.
        text: its source, including quotes.
        inner: the lists of commands in its `$(...)` and backquotes.
        elements: the words of an array, `NAME=(a b c)`.
    """

    start: int
    end: int
    text: str
    inner: tuple[CommandList, ...] = ()
    elements: tuple[Word, ...] | None = None


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection; `body` is the range of the lines of a here-document."""

    start: int
    end: int
    operator: str
    target: str
    body: Range | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Simple:
    """A simple command: assignments, name, arguments, and redirections, in order."""

    start: int
    end: int
    parts: tuple[Word | Redirect, ...]

    @property
    def words(self) -> list[Word]:
        """The words, without the redirections."""
        return [part for part in self.parts if isinstance(part, Word)]

    @property
    def redirects(self) -> list[Redirect]:
        """The redirections."""
        return [part for part in self.parts if isinstance(part, Redirect)]


@dataclass(frozen=True, eq=False, slots=True)
class Compound:
    """An `if`, `while`, `for`, `case`, group, subshell, or function definition.

    `tests` are the lists used as conditions and `bodies` the others; `words` are the subjects of a
    `for` or a `case`.
    """

    kind: str
    start: int
    end: int
    tests: tuple[CommandList, ...] = ()
    bodies: tuple[CommandList, ...] = ()
    words: tuple[Word, ...] = ()


Command = Simple | Compound


@dataclass(frozen=True, eq=False, slots=True)
class Link:
    """A command of a list and the operator after it (`""` at the end of the list)."""

    command: Command
    operator: str = ""
    negated: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class CommandList:
    """Consecutive commands."""

    links: tuple[Link, ...] = ()


def parse_shell(
    text: str, start: int, end: int, skipped: Sequence[Range], occurs: Callable[[str], bool]
) -> CommandList:
    """Parse the commands in `text[start:end]`.

    Args:
        text: the whole text; offsets in the result refer to it.
        start: where the script starts.
        end: where it ends.
        skipped: ranges within it that are not part of it, in order.
        occurs: whether a text contains what the caller looks for. Other statements are not
            expanded.

    Raises:
        TextSyntaxError: the script has a syntax error or unsupported syntax.
    """
    body = text[start:end].rstrip()
    if body.endswith("\\") and not body.endswith("\\\\"):
        body = body.rstrip("\\ \t\r\n")  # a line that goes on, at the end of the script
    end = start + len(body)
    ranges = without((part for part in skipped if part[1] <= end), start, end)
    if not ranges:
        return CommandList()
    root = parse("bash", text, ranges)
    check(text, root)
    return _Reader(text, start, skipped, occurs).commands(root.children)


class _Reader:
    def __init__(
        self, text: str, start: int, skipped: Sequence[Range], occurs: Callable[[str], bool]
    ) -> None:
        self.text = text
        self.start = start
        self.skipped = skipped
        self.occurs = occurs

    def commands(self, nodes: Sequence[Node], before: Sequence[Link] = ()) -> CommandList:
        """Return the commands among some nodes, each with the operator after it, following
        `before`.
        """
        links = list(before)
        for node in nodes:
            if node.type in _STATEMENTS:
                links += self.links(node)
            elif node.type in _OPERATORS and links:
                links[-1] = replace(links[-1], operator=node.type)
        return CommandList(tuple(links))

    def links(self, node: Node) -> list[Link]:
        """Return a statement as a flat list of commands."""
        match node.type:
            case "list" | "pipeline":
                return self._chain(node)
            case "negated_command":
                first, *others = self.commands(node.children[1:]).links
                return [replace(first, negated=True), *others]
            case "redirected_statement":
                return self._redirected(node)
            case kind if kind in _COMPOUND:
                return [Link(self._compound(node, _COMPOUND[kind]))]
        return self._simple(node)

    def _chain(self, node: Node) -> list[Link]:
        # The tree of `a && b && c` nests to the left, as deep as the chain is long.
        rest: list[Node] = []
        while node.type in ("list", "pipeline"):
            rest += reversed(node.children[1:])
            node = node.children[0]
        return list(self.commands([node, *reversed(rest)]).links)

    def _redirected(self, node: Node) -> list[Link]:
        redirects = [child for child in node.children if child.type in _REDIRECTS]
        parts = [part for redirect in redirects for part in self._redirect(redirect)]
        body = node.child_by_field_name("body")
        links = self.links(body) if body is not None else [Link(Simple(*node.byte_range, ()))]
        last = links[-1].command
        if isinstance(last, Simple):
            first, *others = self._split([*last.parts, *parts])
            links[-1:] = [replace(first, negated=links[-1].negated), *others]
        else:
            links[-1] = replace(links[-1], command=replace(last, end=parts[-1].end))
        # The grammar puts commands after `<<EOF` on its line below the here-document.
        behind = [child for redirect in redirects for child in redirect.children]
        flat = [n for c in behind for n in (c.children if c.type == "pipeline" else [c])]
        return list(self.commands(flat, links).links)

    def _redirect(self, node: Node) -> list[Word | Redirect]:
        """Return a redirection, and the words and redirections that the grammar attaches to it."""
        operator = next(child for child in node.children if not child.is_named)
        rest = node.children[node.children.index(operator) + 1 :]
        if node.type != "heredoc_redirect":
            target, *others = rest
            found = Redirect(node.start_byte, target.end_byte, operator.type, self._text(target))
            return [found, *map(self.word, others)]
        mark, *others = rest
        body = next((child.byte_range for child in others if child.type == "heredoc_body"), None)
        start = Redirect(node.start_byte, mark.end_byte, operator.type, self._text(mark), body)
        inner = [part for c in others if c.type in _REDIRECTS for part in self._redirect(c)]
        return [start, *map(self.word, node.children_by_field_name("argument")), *inner]

    def _compound(self, node: Node, kind: str) -> Compound:
        if not self.occurs(self._text(node)):
            return Compound("other", *node.byte_range)
        tests: list[CommandList] = []
        bodies: list[CommandList] = []
        if kind == "function":
            body = node.child_by_field_name("body")
            assert body is not None
            bodies.append(self.commands([body]))
        else:
            self._clauses(node, tests, bodies)
        words = tuple(self.word(value) for value in node.children_by_field_name("value"))
        return Compound(kind, *node.byte_range, tuple(tests), tuple(bodies), words)

    def _clauses(self, node: Node, tests: list[CommandList], bodies: list[CommandList]) -> None:
        """Add the lists of a compound command, which keywords separate."""
        into: list[CommandList] | None = bodies if node.type == "case_item" else None
        held: list[Node] = []
        for child in node.children:
            begins = tests if child.type in _TESTS else bodies if child.type in _BODIES else None
            if begins is None and child.type not in _CLAUSES:
                held.append(child)
                continue
            if into is not None:
                into.append(self.commands(held))
            into, held = begins, []
            if child.type in _CLAUSES:
                self._clauses(child, tests, bodies)
        if into is not None:
            into.append(self.commands(held))

    def _simple(self, node: Node) -> list[Link]:
        parts: list[Word | Redirect] = []
        for child in [node] if node.type == "variable_assignment" else node.children:
            if child.type in _REDIRECTS:
                parts += self._redirect(child)
            elif child.type == "subshell":
                raise TextSyntaxError(f"{self._text(child)!r} is not supported")
            elif child.type != "comment" and child.start_byte < child.end_byte:
                parts.append(self.word(child))
        return self._split(parts)

    def _split(self, parts: Sequence[Word | Redirect]) -> list[Link]:
        """Split parts into commands at line ends, which the grammar sometimes ignores."""
        line = max(self.start, line_start(self.text, parts[0].start))
        if _DASH.search(self.text, line, parts[0].start):
            raise TextSyntaxError("'-' is not supported")  # the item of a list in prose
        lines: list[list[Word | Redirect]] = []
        end = -1
        for part in parts:
            inner = [skipped for skipped in self.skipped if end <= skipped[0] < part.start]
            between = without(inner, end, part.start) if lines else []
            gap = "".join(self.text[low:high] for low, high in between)
            if not lines or (not _GAP.fullmatch(gap) and "\n" in gap):
                lines.append([])
            elif not _GAP.fullmatch(gap):
                raise TextSyntaxError(f"{gap.strip()!r} is not supported")
            lines[-1].append(part)
            end = part.end
        return [Link(Simple(line[0].start, line[-1].end, tuple(line))) for line in lines]

    def word(self, node: Node) -> Word:
        """Return a word with the commands in it."""
        start, end = node.byte_range
        text = self._text(node)
        if not self.occurs(text):
            return Word(start, end, text)
        nodes = [node] if node.type in _SUBSTITUTIONS else descendants(node, _SUBSTITUTIONS)
        inner = tuple(self.commands(child.children) for child in nodes)
        value = node.child_by_field_name("value") if node.type == "variable_assignment" else None
        elements = None
        whole = node if value is None else value
        if whole.type == "concatenation":
            if any(a.end_byte < b.start_byte for a, b in pairwise(whole.children)):
                raise TextSyntaxError(f"{text!r} is not supported")  # several words
        if value is not None and value.type == "array":
            elements = tuple(self.word(child) for child in value.named_children)
        return Word(start, end, text, inner, elements)

    def _text(self, node: Node) -> str:
        return self.text[slice(*node.byte_range)]
