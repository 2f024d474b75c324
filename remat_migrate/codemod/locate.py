"""Finds the LibCST nodes of `ast` nodes, in one top-level statement at a time.

LibCST parses a hundred times slower than `ast`, so that only the statements a fix touches are
parsed. Both count lines and columns alike, except that LibCST leaves the parentheses of tuples and
generator expressions out.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from ..errors import CodemodError, UnreadableCodeError
from ..text import SourceFile, first_line
from .changes import File

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement

# LibCST takes kilobytes for each character of a list, and ends the process if it gets none.
_LONGEST = 1 << 20
_LONE_RETURN = re.compile(r"\r(?!\n)")
_INDENTATION = re.compile(r"(?m)^[^\n#]*:[ \t]*(?:#[^\n]*)?\r?\n(?:[ \t]*\r?\n)*([ \t]+)\S")


class Chunk:
    """The top-level statements that share lines, and the blank and commented lines above them.

    Attributes:
        source: the file.
        statements: the `ast` statements: one, unless semicolons join them.
        start: the offset after the line of the statement above.
        end: the offset after the line on which the statements end.
    """

    def __init__(
        self, source: SourceFile, statements: Sequence[ast.stmt], start: int, end: int
    ) -> None:
        self.source = source
        self.statements = statements
        self.start = start
        self.end = end

    @cached_property
    def text(self) -> str:
        """The source code, with the lines above it."""
        return self.source.text[self.start : self.end]

    @cached_property
    def module(self) -> cst.Module:
        """The parsed code.

        Raises:
            UnreadableCodeError: LibCST cannot parse it.
        """
        module = self._parsed(self.text)
        if not _INDENTATION.search(self.text):
            # LibCST goes by the blocks of the code that it parses; where there are none, new
            # ones are indented as in the rest of the file.
            indented = module.with_changes(default_indent=config_of(self.source).default_indent)
            return indented if indented.code == module.code else module
        return module

    def _parsed(self, text: str) -> cst.Module:
        line, _ = self.source.position(self.first_line)
        if len(text) > _LONGEST:
            raise UnreadableCodeError(f"the statement on line {line} is longer than 1 MB")
        if not _LONE_RETURN.search(text):
            with contextlib.suppress(cst.ParserSyntaxError, RecursionError):
                return cst.parse_module(text, config_of(self.source))
        raise UnreadableCodeError(f"LibCST cannot parse the statement on line {line}")

    @cached_property
    def first_line(self) -> int:
        """The offset of the line on which the first statement starts, its decorators counted."""
        if not self.statements:
            return self.end
        return self.source.line_starts[first_line(self.statements[0]) - 1]

    @cached_property
    def lead(self) -> Sequence[cst.EmptyLine]:
        """The blank and commented lines above the statement."""
        return self._parsed(self.source.text[self.start : self.first_line]).header

    @property
    def rest(self) -> str:
        """The source code of the statement, without the lines above it."""
        return self.source.text[self.first_line : self.end]

    def code(self, statements: Sequence[Statement]) -> str:
        """Return the source code of new statements in the place of this one."""
        return self.module.with_changes(header=[], body=statements).code

    def code_of_lines(self, lines: Sequence[cst.EmptyLine]) -> str:
        """Return the source code of blank and commented lines."""
        module = cst.Module([], default_newline=self.source.newline)
        return "".join(map(module.code_for_node, lines))

    # -- positions

    @cached_property
    def _places(self) -> _Places:
        first = self.source.position(self.start)[0]
        return _Places(self.module, first - 1)

    def find(self, node: ast.AST) -> cst.CSTNode:
        """Return the LibCST node of an expression, argument, parameter, statement, or alias.

        Raises:
            UnreadableCodeError: LibCST reads the code in another way.
        """
        start, end = self.source.span(node)  # type: ignore[arg-type]
        found = self._places.at(self.source, start, end, node)
        if found is None:
            line, _ = self.source.position(start)
            raise UnreadableCodeError(f"LibCST reads the code on line {line} in another way")
        return found

    def statement(self, node: ast.AST) -> cst.CSTNode:
        """Return the LibCST node of a statement that can be removed, replaced, or preceded.

        Raises:
            CodemodError: it is an `elif`.
        """
        found = self.find(node)
        if isinstance(self.parents[found], cst.If):
            raise CodemodError("an `elif` cannot be changed by itself")
        return found

    def holder(self, node: ast.AST) -> cst.CSTNode:
        """Return the holder of an item of a list: an argument, element, decorator, or alias."""
        found = self.find(node)
        if isinstance(found, cst.Arg | cst.ImportAlias | cst.ImportStar | cst.Param):
            return found
        above = self.parents[found]
        if isinstance(node, ast.expr) and isinstance(above, _HOLDERS):
            return above
        return found

    @property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        """The nodes that hold others."""
        return self._places.parents


_HOLDERS = (
    cst.Arg,
    cst.Element,
    cst.StarredElement,
    cst.DictElement,
    cst.StarredDictElement,
    cst.Decorator,
)

# The LibCST nodes that start where an `ast` node does; expressions must end there as well.
_KINDS: dict[type[ast.AST], tuple[type[cst.CSTNode], ...]] = {
    ast.keyword: (cst.Arg,),
    ast.alias: (cst.ImportAlias, cst.ImportStar),
    ast.stmt: (cst.BaseSmallStatement, cst.BaseCompoundStatement),
    ast.Starred: (cst.Arg, cst.StarredElement),
}


class _Places:
    """The nodes of a chunk by the places where they start and end."""

    def __init__(self, module: cst.Module, above: int) -> None:
        places = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
        self.at_start: dict[tuple[int, int], list[cst.CSTNode]] = {}
        self.ends: dict[cst.CSTNode, tuple[int, int]] = {}
        for node, place in places.items():
            start = place.start.line + above, place.start.column
            self.at_start.setdefault(start, []).append(node)
            self.ends[node] = place.end.line + above, place.end.column
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        stack: list[cst.CSTNode] = [module]
        while stack:
            node = stack.pop()
            for child in node.children:
                self.parents[child] = node
                stack.append(child)

    def at(self, source: SourceFile, start: int, end: int, node: ast.AST) -> cst.CSTNode | None:
        """Return the node of an `ast` node that starts and ends at some offsets."""
        found = self._matching(source, start, end, node)
        text = source.text
        if found is None and isinstance(node, ast.Tuple | ast.GeneratorExp):
            # LibCST leaves their parentheses out.
            inside = start + 1 + len(re.match(r"\s*", text[start + 1 :]).group())  # type: ignore[union-attr]
            kinds = cst.Tuple if isinstance(node, ast.Tuple) else cst.GeneratorExp
            nodes = self.at_start.get(self._place(source, inside), ())
            fits = [n for n in nodes if isinstance(n, kinds)]
            found = max(fits, key=lambda n: self.ends[n], default=None)
        return found

    @staticmethod
    def _place(source: SourceFile, offset: int) -> tuple[int, int]:
        line, column = source.position(offset)
        return line, column - 1

    def _matching(
        self, source: SourceFile, start: int, end: int, node: ast.AST
    ) -> cst.CSTNode | None:
        nodes = self.at_start.get(self._place(source, start), ())
        for kind, kinds in _KINDS.items():
            if isinstance(node, kind):
                return next((n for n in nodes if isinstance(n, kinds)), None)
        if isinstance(node, ast.arg):
            above = (self.parents[n] for n in nodes if isinstance(n, cst.Name))
            return next((n for n in above if isinstance(n, cst.Param)), None)
        last = self._place(source, end)
        expressions = (n for n in nodes if isinstance(n, cst.BaseExpression))
        return next((n for n in expressions if self.ends[n] == last), None)


_CHUNKS: WeakKeyDictionary[File, Sequence[Chunk]] = WeakKeyDictionary()


def node_of(file: File, node: ast.expr) -> cst.BaseExpression:
    """Return the LibCST node of an expression, with the comments and the layout in it.

    Raises:
        UnreadableCodeError: LibCST cannot parse the statement.
    """
    at = file.source.span(node).start
    chunk = next(chunk for chunk in chunks_of(file) if at < chunk.end)
    found = chunk.find(node)
    assert isinstance(found, cst.BaseExpression)
    return found


def chunks_of(file: File) -> Sequence[Chunk]:
    """Return the top-level statements of a file, those that share a line together.

    The same ones at each call, so that a statement that several fixes touch is parsed once.
    """
    if file not in _CHUNKS:
        _CHUNKS[file] = tuple(_chunks(file.source, file.tree))
    return _CHUNKS[file]


def _chunks(source: SourceFile, tree: ast.Module) -> Iterator[Chunk]:
    starts, text = source.line_starts, source.text
    at = 0
    group: list[ast.stmt] = []
    for index, statement in enumerate(tree.body):
        group.append(statement)
        following = tree.body[index + 1] if index + 1 < len(tree.body) else None
        last = statement.end_lineno or statement.lineno
        if following is not None and first_line(following) <= last:
            continue
        end = starts[last] if last < len(starts) else len(text)
        yield Chunk(source, group, at, end)
        at, group = end, []


@lru_cache(maxsize=4)
def config_of(source: SourceFile) -> cst.PartialParserConfig:
    """Return the indentation and line ending of new lines in a file."""
    found = _INDENTATION.search(source.text)
    indent = found.group(1) if found else "    "
    return cst.PartialParserConfig(
        default_indent=indent if len(indent) <= 8 else "    ", default_newline=source.newline
    )
