"""Find the inputs that an error is about.

If a shape does not fit or a value must be concrete, JAX's message names arguments only sometimes.
Otherwise the values that the failing expression mentions are asked which inputs they depend on.
"""

from __future__ import annotations

import dis
import functools
import re
from types import CodeType, FrameType, TracebackType
from typing import Any, List, NamedTuple, Optional, Set, Tuple

import jax

from .containers import LIBRARIES, OpenDict, OpenObject
from .node import ARRAY, KEY, LIST, TUPLE, VALUE, Node

INPUT = re.compile(r"input_(\d+)_")
_LIBRARIES = LIBRARIES | frozenset(
    ["functools", "contextlib", "dataclasses", "inspect", "typing", "enum", "copy", "collections"]
)
_CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT")
# Conditions around a `raise` that tell what is wrong.
_MOST_TESTS = 2
_OWN_PACKAGE = __name__.partition(".")[0]


class Blame(NamedTuple):
    """An error, the inputs it may be about, and the literals in the expression that raised it."""

    error: BaseException
    nodes: List[Node]  # guesses come first, the last of them before others
    depend: bool  # something in the expression depends on a traced input
    numbers: List[Any]  # constants in the expression
    place: Tuple[Tuple[str, str, int], ...]  # file, function, and instruction, outermost first
    keys: List[Any]  # keys of the dictionaries in the expression, and its strings


class _Mentioned(NamedTuple):
    """What an expression mentions: variables with their values, attributes and keys, constants."""

    values: List[Tuple[str, Any]]
    words: Set[str]
    constants: List[Any]


def find_blame(error: BaseException, search: Any) -> Blame:
    """Return what an error of a pass is about."""
    message = str(error)
    named = _by_number(message, search)
    frames, callee = _frames(error)
    first = _Mentioned([], set(), [])
    if frames:
        first = _mentioned(frames[-1].tb_frame, frames[-1].tb_lasti)
    nodes = _inputs_among(first, search)
    if callee is not None:
        code = callee.f_code
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]:
            nodes += _nodes(callee.f_locals.get(name), search, 1)
    nodes += _nodes(getattr(error, "obj", None), search, 0)
    for at in reversed(frames[:-1]):
        # In a loop that JAX traces by itself, nothing depends on the inputs: ask the callers.
        if not named and not any(map(_is_traced, nodes)):
            nodes += _inputs_among(_mentioned(at.tb_frame, at.tb_lasti), search)
    nodes = named or nodes
    if re.search("unsupported operand.*'(list|tuple)'", message):
        # Transformations rebuild lists, so that the one in the statement is none that was passed.
        kinds = (LIST, TUPLE)
        lists = [n for n in search.in_use() if n.choice.kind in kinds]
        nodes = lists or nodes
    # A wrong part may mean that the whole is wrong.
    nodes = nodes + [node.parent for node in nodes if node.parent and node.parent.is_guess]
    nodes = sorted(dict.fromkeys(nodes), key=lambda node: (not node.is_guess, -node.number))
    numbers = [each for each in first.constants if type(each) in (int, float)]
    keys = [key for _, thing in first.values if type(thing) is dict for key in thing]
    keys += [each for each in first.constants if type(each) is str]
    depend = any(map(_is_traced, nodes))
    return Blame(error, nodes, depend, numbers, _place(error, search.is_called), keys)


def _by_number(message: str, search: Any) -> List[Node]:
    numbers = {int(number) for number in INPUT.findall(message)}
    return [search.nodes[number] for number in sorted(numbers)]


def _mentioned(frame: FrameType, last: int) -> _Mentioned:
    """Return what the expression of an instruction mentions; for a `raise`, what led to it."""
    found = _Mentioned([], set(), [])
    steps = _instructions(frame.f_code)
    known = {**frame.f_globals, **frame.f_locals}
    # Python 3.11 leaves a call at its caches, which are behind it.
    places = [at for at, step in enumerate(steps) if step.offset <= last][-1:]
    if any(steps[at].opname == "RAISE_VARARGS" for at in places):
        tests = [at for at, s in enumerate(steps) if s.offset < last and "POP_JUMP" in s.opname]
        places += tests[-_MOST_TESTS:]
    # A jump has the position of its whole statement, and what it tests comes before it.
    spans = [steps[at - ("POP_JUMP" in steps[at].opname)].positions for at in places]
    lines = [line for span in spans if span for line in (span.lineno, span.end_lineno) if line]
    for step in steps:
        line = step.positions.lineno if step.positions else None
        if not lines or line is None or not min(lines) <= line <= max(lines):
            continue
        operands = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if step.opname in _CONSTANTS:
            found.constants.extend(operands)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            found.words.add(step.argval)
        elif step.opname.startswith("LOAD"):
            names = [name for name in operands if type(name) is str]
            found.values.extend((name, known[name]) for name in names if name in known)
    return found


@functools.lru_cache(maxsize=1024)
def _instructions(code: CodeType) -> List[dis.Instruction]:
    return list(dis.get_instructions(code))


def _is_traced(node: Node) -> bool:
    return node.choice.kind in (ARRAY, KEY)


def _inputs_among(found: _Mentioned, search: Any) -> List[Node]:
    """Return the inputs that mentioned values are, hold, or were computed from."""
    nodes: List[Node] = []
    for name, thing in found.values:
        nodes += _nodes(thing, search, 2)
        nodes += _by_name(name, thing, search)
    words = found.words.union(each for each in found.constants if type(each) is str)
    return nodes + [
        node for node in search.in_use() if node.parent is not None and node.name in words
    ]


def _frames(
    error: BaseException,
) -> Tuple[List[TracebackType], Optional[FrameType]]:
    """Return the tracebacks in the user's code, and the library frame below."""
    own: List[TracebackType] = []
    callee = None
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in _LIBRARIES and module != _OWN_PACKAGE:
            own.append(trace)
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


def _nodes(thing: Any, search: Any, depth: int) -> List[Node]:
    """Return the inputs that a value is, holds, or was computed from."""
    own = search.passed_values.get(id(thing))
    nodes = [own[0]] if own is not None and own[1] is thing else []
    if isinstance(thing, jax.core.Tracer):
        return nodes + dependencies(thing, search)
    if depth and isinstance(thing, (dict, list, tuple)) and len(thing) <= 8:
        parts = dict.values(thing) if isinstance(thing, dict) else thing
        for part in parts:
            nodes += _nodes(part, search, depth - 1)
    if isinstance(thing, (OpenDict, OpenObject)):
        nodes.append(vars(thing)["_ticket"].node)
    return nodes


def _by_name(name: str, thing: Any, search: Any) -> List[Node]:
    """Return inputs with the same name and value or shape, where the value is not traced."""
    shape = thing.shape if isinstance(thing, jax.core.Tracer) else None
    if not name or not (isinstance(thing, (bool, int, float, str, tuple)) or shape):
        return []
    return [
        node
        for node in search.in_use()
        if node.name == name
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
