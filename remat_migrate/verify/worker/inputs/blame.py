"""Find the inputs that an error is about.

If a shape does not fit or a value must be concrete, JAX's message names arguments only sometimes.
Otherwise the arrays in the failing statement are asked which inputs they depend on.
"""

from __future__ import annotations

import ast
import linecache
import re
from types import FrameType
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import jax

from ..lookup import attribute
from .containers import LIBRARIES, ProbeDict, ProbeObject, WatchedStr
from .node import ARRAY, KEY, LIST, TUPLE, VALUE, Node
from .probe import Probe

INPUT = re.compile(r"input_(\d+)_")
_LIBRARIES = LIBRARIES | frozenset(
    ["functools", "contextlib", "dataclasses", "inspect", "typing", "enum", "copy", "collections"]
)
_OWN_PACKAGE = __name__.partition(".")[0]
_MISSING = object()
_trees: Dict[str, Optional[ast.Module]] = {}


class Blame(NamedTuple):
    """An error, the inputs it may be about, and the literals in the statement that raised it."""

    error: BaseException
    nodes: List[Node]  # the last decided comes first
    depend: bool  # something in the statement depends on a traced input
    numbers: List[Any]  # constants in the statement
    place: Tuple[Tuple[str, str, int], ...]  # file, function, and instruction, outermost first
    keys: List[Any]  # keys of the dictionaries in the statement


def find_blame(error: BaseException, search: Any) -> Blame:
    """Return what an error of a pass is about."""
    message = str(error)
    named = _by_number(message, search)
    frames, callee = _frames(error)
    numbers: List[Any] = []
    keys: List[Any] = []
    nodes: List[Node] = []
    if frames:
        statement = statement_of(*frames[-1])
        found = list(_named_values(statement, frames[-1][0])) if statement is not None else []
        numbers = _numbers(statement)
        keys = [key for _, thing in found if type(thing) is dict for key in thing]
        keys += _written_keys(statement)
        nodes += _inputs_among(found, search)
    if callee is not None:
        code = callee.f_code
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]:
            nodes += _nodes(callee.f_locals.get(name), search, 1)
    pending = getattr(error, "obj", None)
    nodes += _nodes(pending, search, 0)
    for argument in getattr(error, "args", ()):
        nodes += [argument._ticket.node] if isinstance(argument, Probe) else []
    for frame, line in reversed(frames[:-1]):
        # In a loop that JAX traces by itself, nothing depends on the inputs: ask the callers.
        if not named and not any(_is_traced(node) for node in nodes):
            statement = statement_of(frame, line)
            found = list(_named_values(statement, frame)) if statement is not None else []
            nodes += _inputs_among(found, search)
    nodes = named or nodes
    if re.search("unsupported operand.*'(list|tuple)'", message):
        # Transformations rebuild lists, so that the one in the statement is none that was passed.
        kinds = (LIST, TUPLE)
        lists = [n for n in search.in_use() if n.choice is not None and n.choice.kind in kinds]
        nodes = lists or nodes
    # A wrong part may mean that the whole is wrong.
    nodes = _distinct(nodes + [node.parent for node in nodes if node.parent and node.parent.order])
    nodes.sort(key=lambda node: -node.order)
    depend = any(map(_is_traced, nodes))
    return Blame(error, nodes, depend, numbers, _place(error, search.is_called), keys)


def _by_number(message: str, search: Any) -> List[Node]:
    numbers = {int(number) for number in INPUT.findall(message)}
    return [search.nodes[number] for number in sorted(numbers)]


def _is_traced(node: Node) -> bool:
    return node.choice is None or node.choice.kind in (ARRAY, KEY)


def _inputs_among(found: List[Tuple[str, Any]], search: Any) -> List[Node]:
    """Return the inputs that named values are, hold, or were computed from."""
    nodes: List[Node] = []
    for name, thing in found:
        nodes += _nodes(thing, search, 2)
        nodes += _by_name(name, thing, search)
    return nodes


def _distinct(nodes: List[Node]) -> List[Node]:
    return list(dict.fromkeys(nodes))


def _numbers(statement: Optional[ast.AST]) -> List[Any]:
    """Return the numbers that a statement mentions."""
    found = []
    for part in ast.walk(statement) if statement is not None else ():
        number = part.value if hasattr(part, "value") else getattr(part, "n", None)
        if isinstance(part, ast.Constant) and type(number) in (int, float):
            found.append(number)
    return found


def _frames(
    error: BaseException,
) -> Tuple[List[Tuple[FrameType, int]], Optional[FrameType]]:
    """Return the frames of the user's code with their lines, and the library frame below."""
    own: List[Tuple[FrameType, int]] = []
    callee = None
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in _LIBRARIES and module != _OWN_PACKAGE:
            # A frame continues after the error (in `finally`); use the line of the traceback.
            own.append((trace.tb_frame, trace.tb_lineno))
            callee = None
        elif own and callee is None and module != _OWN_PACKAGE:
            callee = trace.tb_frame
        trace = trace.tb_next
    return own, callee


def _place(error: BaseException, is_called: bool) -> Tuple[Tuple[str, str, int], ...]:
    """Return where in the user's code an error was raised, so that progress can be compared.

    The arguments are constructed before the unit is called.
    """
    place = [("", "", int(is_called))]
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in _LIBRARIES and module != _OWN_PACKAGE:
            code = trace.tb_frame.f_code
            place.append((code.co_filename, code.co_name, trace.tb_lasti))
        trace = trace.tb_next
    return tuple(place)


def statement_of(frame: FrameType, line: int) -> Optional[ast.AST]:
    """Return the innermost statement at a line; for one with a body, its head."""
    filename = frame.f_code.co_filename
    if filename not in _trees:
        linecache.checkcache(filename)
        try:
            _trees[filename] = ast.parse("".join(linecache.getlines(filename)))
        except (SyntaxError, ValueError):
            _trees[filename] = None
    tree = _trees[filename]
    best: Optional[ast.AST] = None
    for part in ast.walk(tree) if tree is not None else ():
        if isinstance(part, (ast.stmt, ast.Lambda)):
            if part.lineno <= line <= (getattr(part, "end_lineno", None) or part.lineno):
                if best is None or part.lineno >= best.lineno:  # type: ignore[attr-defined]
                    best = part
    if isinstance(best, ast.Raise) and tree is not None:
        # The conditions around a `raise` tell what is wrong.
        around = [
            part.test
            for part in ast.walk(tree)
            if isinstance(part, ast.If) and any(inner is best for inner in ast.walk(part))
        ]
        raised = [best.exc] if best.exc is not None else []
        return ast.Tuple([*around[-2:], *raised], ast.Load())
    return _head(best) if best is not None else None


def _head(statement: ast.AST) -> ast.AST:
    if isinstance(statement, (ast.If, ast.While)):
        return statement.test
    if isinstance(statement, ast.For):
        return statement.iter
    if isinstance(statement, ast.With):
        return ast.Tuple([item.context_expr for item in statement.items], ast.Load())
    if isinstance(statement, ast.Lambda):
        return statement.body
    return statement


def keys_at(frame: FrameType, known: Any) -> List[Any]:
    """Return the keys of the dictionaries in a frame's statement that have the key `known`."""
    place = (frame.f_code.co_filename, frame.f_lineno)
    if place not in _keys:
        _keys[place] = []
        statement = statement_of(frame, frame.f_lineno)
        for _, thing in _named_values(statement, frame) if statement is not None else ():
            if type(thing) is dict and any(key == known for key in thing if type(key) is str):
                _keys[place] += [key for key in thing if type(key) is str]
        written = _written_keys(statement)
        _keys[place] += written if known in written else []
    return _keys[place]


def _written_keys(statement: Optional[ast.AST]) -> List[Any]:
    """Return the string keys of dictionary displays in a statement."""
    tables = [part for part in ast.walk(statement or ast.Pass()) if isinstance(part, ast.Dict)]
    keys = [getattr(key, "value", None) for table in tables for key in table.keys]
    return [key for key in keys if type(key) is str]


_keys: Dict[Tuple[str, int], List[Any]] = {}


def _named_values(expression: ast.AST, frame: FrameType) -> Iterator[Tuple[str, Any]]:
    """Yield the names in an expression with their values; `params["w"]` counts as one."""
    if isinstance(expression, (ast.Attribute, ast.Subscript)):
        thing = _resolve(expression, frame)
        if thing is not _MISSING:
            yield getattr(expression, "attr", ""), thing
            return
    if isinstance(expression, ast.Name):
        thing = _resolve(expression, frame)
        if thing is not _MISSING:
            yield expression.id, thing
        return
    for part in ast.iter_child_nodes(expression):
        yield from _named_values(part, frame)


def _resolve(expression: ast.AST, frame: FrameType) -> Any:
    """Return the value of a name, attribute, or constant entry, without running code."""
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id, frame.f_globals.get(expression.id, _MISSING))
    if isinstance(expression, ast.Attribute):
        owner = _resolve(expression.value, frame)
        if owner is _MISSING or isinstance(owner, (Probe, type(ast))):
            return _MISSING
        if expression.attr in getattr(type(owner), "_fields", ()):
            return getattr(owner, expression.attr)
        held = attribute(owner, "__dict__")
        return held.get(expression.attr, _MISSING) if isinstance(held, dict) else _MISSING
    if isinstance(expression, ast.Subscript):
        owner = _resolve(expression.value, frame)
        try:
            key = ast.literal_eval(getattr(expression.slice, "value", expression.slice))
        except (ValueError, TypeError, SyntaxError):
            try:
                key = ast.literal_eval(expression.slice)
            except (ValueError, TypeError, SyntaxError):
                return _MISSING
        if isinstance(owner, dict):
            return dict.get(owner, key, _MISSING)
        if isinstance(owner, (list, tuple)) and isinstance(key, int) and key < len(owner):
            return owner[key]
    return _MISSING


def _nodes(thing: Any, search: Any, depth: int) -> List[Node]:
    """Return the inputs that a value is, holds, or was computed from."""
    if isinstance(thing, (Probe, WatchedStr)):
        ticket = thing._ticket
        return [ticket.node] if ticket is not None else []
    own = search.passed_values.get(id(thing))
    nodes = [own[0]] if own is not None and own[1] is thing else []
    if isinstance(thing, jax.core.Tracer):
        return nodes + dependencies(thing, search)
    if depth and isinstance(thing, (dict, list, tuple)) and len(thing) <= 8:
        parts = dict.values(thing) if isinstance(thing, dict) else thing
        for part in parts:
            nodes += _nodes(part, search, depth - 1)
    if isinstance(thing, ProbeDict):
        nodes.append(thing._ticket.node)
    if isinstance(thing, ProbeObject):
        nodes.append(thing.__dict__["_ticket"].node)
    return nodes


def _by_name(name: str, thing: Any, search: Any) -> List[Node]:
    """Return inputs with the same name and value or shape, where the value is not traced."""
    shape = thing.shape if isinstance(thing, jax.core.Tracer) else None
    if not name or not (isinstance(thing, (bool, int, float, tuple)) or shape):
        return []
    return [
        node
        for node in search.in_use()
        if node.name == name
        and node.choice is not None
        and (
            (node.choice.kind == ARRAY and node.choice.value[0] == shape)
            or (
                node.choice.kind == VALUE
                and type(node.choice.value) is type(thing)
                and not shape
                and node.choice.value == thing
            )
        )
    ]


def dependencies(tracer: Any, search: Any) -> List[Node]:
    """Return the inputs that a tracer was computed from, according to JAX's error message."""
    for _ in range(8):
        inner = getattr(tracer, "primal", getattr(tracer, "val", None))
        if not isinstance(inner, jax.core.Tracer):
            break
        tracer = inner
    try:
        tracer.__array__()
    except Exception as error:  # this always raises, and the message names the inputs
        return _by_number(str(error), search)
    return []
