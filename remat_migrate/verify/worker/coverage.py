"""Notes which edited pieces of the project run, and which of its checkpoints are called.

The code of a file with edited pieces is compiled with a call before each of them, so that all other
code runs at full speed, under any interpreter, thread and tracer. Positions do not change.

An edited piece that applies a checkpoint only creates something. It has done its work when that is
called: `watched` functions of the checkpoint family note both. A caller may drop what it returns,
or test no more than its shape. So these values are marked in programs, see `jax_internals.mark`.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import json
import os
import sys
import types
from typing import (
    Any,
    Callable,
    Container,
    Dict,
    FrozenSet,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from .lookup import attribute

_RAN = "__remat_migrate_ran__"
_DECIDED = "__remat_migrate_decided__"
# What one checkpoint wraps: the edited piece that applies it, and a name.
_Application = Tuple[int, str]
_MISSING = object()
_TRUTH = ("true", "false")
FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)


class Spot(NamedTuple):
    """An edited piece; see `evidence.Spot`. `number` identifies it in replies."""

    number: int
    position: Tuple[int, int, int, int]
    first: int
    last: int
    is_expression: bool
    at_import: bool
    text: str = ""
    outcomes: Sequence[str] = ()


class _Notes:
    """What has run, in this process and since the last request began."""

    def __init__(self) -> None:
        self.at_import: Set[int] = set()
        self.ran: Set[int] = set()
        self.created_at_import: Set[_Application] = set()
        self.created: Set[_Application] = set()
        self.called: Set[_Application] = set()
        self.decided_at_import: Set[Tuple[int, int]] = set()
        self.decided: Set[Tuple[int, int]] = set()


_spots: Dict[str, List[Spot]] = {}
_known: Dict[int, Spot] = {}
_notes = _Notes()


def install(table: str) -> None:
    """Watch the spots of files.

    Args:
        table: JSON, a list of [path, line, column, end line, end column, first, last, whether it is
            an expression, whether importing runs it]. The index is the number of the spot.
    """
    for number, (path, *values) in enumerate(json.loads(table)):
        spot = Spot(number, tuple(values[:4]), *values[4:])
        _known[number] = spot
        for each in {os.path.abspath(path), os.path.realpath(path)}:
            _spots.setdefault(each, []).append(spot)
    if _spots:
        setattr(builtins, _RAN, _ran)
        setattr(builtins, _DECIDED, _decided)


def begin() -> None:
    """Begin a request: what ran until now belongs to imports."""
    _notes.created_at_import |= _notes.created
    for found in (_notes.ran, _notes.created, _notes.called, _notes.decided):
        found.clear()


def report() -> Dict[str, Any]:
    """Return what ran since `begin`, and of module-level code ever.

    Returns:
        {"ran": numbers of spots, "created" and "called": applications as [spot, name], "decided":
            decisions as [spot, index of the outcome]}
    """
    ran = _notes.ran | _notes.at_import | {number for number, _ in _notes.called}
    reported = {
        "ran": sorted(ran),
        "created": sorted(_notes.created | _notes.created_at_import),
        "called": sorted(_notes.called),
        "decided": sorted(_notes.decided | _notes.decided_at_import),
    }
    # What the search for inputs applies checkpoints to is not among what the next request runs.
    _notes.created = {one for one in _notes.created if _known[one[0]].at_import}
    return reported


def _ran(number: int) -> None:
    if _known[number].at_import:
        _notes.at_import.add(number)
    _notes.ran.add(number)


def _decided(number: int, value: Any, *options: Any) -> Any:
    """Return what a decision gives, and note its outcome.

    `value` is a condition; with `options`, a function that returns one of these.
    """
    _ran(number)
    if options:
        result = value(*options)
        outcomes = [i for i, one in enumerate(options) if one is result]
        outcomes = outcomes if len(outcomes) == 1 else []  # of equal ones, it is none
    else:
        result = value
        try:
            outcomes = [not value]
        except Exception:
            outcomes = [0, 1]  # an array, whose program has both
    at_import = _known[number].at_import
    found = _notes.decided_at_import if at_import else _notes.decided
    found.update((number, int(outcome)) for outcome in outcomes)
    return result


# -- probes


def watch(tree: ast.Module, path: str, skipped: Container[ast.stmt] = ()) -> None:
    """Put a call before each spot of a file; not before statements of the module to be skipped."""
    spots = _spots.get(os.path.realpath(path))
    if spots:
        _Probes(spots, skipped).visit(tree)
        ast.fix_missing_locations(tree)


class _Probes(ast.NodeTransformer):
    """Puts a statement before edited statements, and `call or expression` for expressions."""

    def __init__(self, spots: List[Spot], skipped: Container[ast.stmt]) -> None:
        self._skipped = skipped
        pieces = [s for s in spots if s.is_expression and not s.outcomes]
        self._statements = {s.position[:2]: s.number for s in spots if not s.is_expression}
        self._expressions = {s.position: s.number for s in pieces}
        self._decisions = {s.position: s for s in spots if s.outcomes}

    def generic_visit(self, node: Any) -> Any:
        super().generic_visit(node)
        for _, block in ast.iter_fields(node):
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                block[:] = [part for statement in block for part in self._probed(statement)]
        if isinstance(node, ast.expr):
            position = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
            number = self._expressions.get(position)  # type: ignore[arg-type]
            if decision := self._decisions.get(position):  # type: ignore[arg-type]
                node = ast.copy_location(_deciding(decision, node), node)
            if number is not None:
                call = ast.copy_location(_call(number), node)
                return ast.copy_location(ast.BoolOp(ast.Or(), [call, node]), node)
        return node

    def _probed(self, statement: Any) -> List[Any]:
        number = self._statements.get((statement.lineno, statement.col_offset))
        if number is None or _is_future_import(statement) or statement in self._skipped:
            return [statement]
        return [ast.copy_location(ast.Expr(_call(number)), statement), statement]


def _call(number: int) -> Any:
    return ast.Call(ast.Name(_RAN, ast.Load()), [ast.Constant(number)], [])


def _deciding(spot: Spot, node: Any) -> Any:
    """Return a decision with a call that notes its outcome."""
    given = [node] if tuple(spot.outcomes) == _TRUTH else [node.func, *node.args]
    return ast.Call(ast.Name(_DECIDED, ast.Load()), [ast.Constant(spot.number), *given], [])


def _is_future_import(statement: Any) -> bool:
    """Return whether a statement must come first in its file."""
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


# -- applications


def edited(frame: Any) -> Optional[Spot]:
    """Return the spot that a frame is executing."""
    path = frame.f_code.co_filename
    line = frame.f_lineno
    found = [s for s in _spots.get(path, ()) if s.first <= line <= s.last]
    return min(found, key=lambda spot: spot.last - spot.first) if found else None


def watched(checkpoint: Callable[..., Any], subject: str) -> Callable[..., Any]:
    """Return a function of the checkpoint family that notes what edited code applies it to.

    `subject` is the parameter that takes what is wrapped.
    """

    @functools.wraps(checkpoint)
    def watching(*args: Any, **options: Any) -> Any:
        made = checkpoint(*args, **options)
        spot = edited(sys._getframe(1))
        if spot is None:
            return made
        number = spot.number
        wrapped = args[0] if args else options.get(subject, _MISSING)
        if wrapped is not _MISSING:
            return _watched(number, wrapped, made, options.get("methods"))
        return lambda target: _watched(number, target, made(target), options.get("methods"))

    return watching


def _watched(number: int, wrapped: Any, made: Any, methods: Any) -> Any:
    """Return what a checkpoint function made, noting when it is called."""
    application = (number, attribute(wrapped, "__name__", type(wrapped).__name__))
    if isinstance(made, type):
        names = [*(methods or ()), "__call__"]
        found = [n for n in dict.fromkeys(names) if isinstance(attribute(made, n), FUNCTIONS)]
        if made is wrapped or not found:
            return made
        for name in found:
            setattr(made, name, _noting(getattr(made, name), application))
    elif isinstance(made, FUNCTIONS) or _is_compiled(made):
        made = _noting(made, application)
    elif made is wrapped or not _watch_objects(made, wrapped, application):
        return made
    _notes.created.add(application)
    return made


def _noting(function: Any, application: _Application) -> Any:
    @functools.wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        _notes.called.add(application)
        return note(_described(application), function(*args, **kwargs))

    return noting


def _described(application: _Application) -> str:
    number, name = application
    return "%s at line %d" % (name, _known[number].first)


def _is_compiled(value: Any) -> bool:
    """Return whether a value is the result of `jax.jit`."""
    return type(value).__module__.startswith("jaxlib") and callable(value)


# Of objects that wrap functions, such as those of Equinox: by what they wrap, who applied them.
_objects: Dict[Any, Set[_Application]] = {}
_kept: List[Any] = []


def _watch_objects(made: Any, wrapped: Any, application: _Application) -> bool:
    """Watch the calls of the objects of a class that wrap this; return whether that is possible."""
    kind = type(made)
    call = vars(kind).get("__call__")
    if not isinstance(call, types.FunctionType) or _key(wrapped) not in _keys(made):
        return False
    _objects.setdefault(_key(wrapped), set()).add(application)
    _kept.append(wrapped)
    if kind not in _objects:
        _objects[kind] = set()

        @functools.wraps(call)
        def noting(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = sorted({a for key in _keys(self) for a in _objects.get(key, ())})
            for application in found:
                _notes.called.add(application)
            result = call(self, *args, **kwargs)
            for application in found:
                result = note(_described(application), result)
            return result

        kind.__call__ = noting
    return True


def _key(wrapped: Any) -> Any:
    # Other objects are made anew whenever JAX takes them apart.
    return id(wrapped) if isinstance(wrapped, types.FunctionType) else type(wrapped)


def _keys(made: Any) -> FrozenSet[Any]:
    return frozenset(map(_key, attribute(made, "__dict__", {}).values()))


# Before the name of the checkpoint in the parameter of a mark.
MARK = "remat_migrate returned by "

_marked: Optional[Set[str]] = None


@contextlib.contextmanager
def marking(is_marking: bool) -> Iterator[Set[str]]:
    """Whether to mark what edited checkpoints return in programs that are traced meanwhile.

    Gives the checkpoints whose values were marked.
    """
    global _marked
    before, _marked = _marked, set() if is_marking else None
    try:
        yield set() if _marked is None else _marked
    finally:
        _marked = before


def note(checkpoint: str, result: Any) -> Any:
    """Mark what an edited checkpoint returned, and return it."""
    if _marked is None:
        return result
    from . import jax_internals  # imports JAX

    jax = sys.modules["jax"]
    try:
        leaves = jax.tree_util.tree_leaves(result)
    except (TypeError, ValueError):
        return result  # such as a dict with keys that have no order
    for leaf in filter(_is_number, leaves):
        _marked.add(checkpoint)
        jax_internals.mark(jax.numpy.asarray(leaf), MARK + checkpoint)
    return result


def _is_number(leaf: Any) -> bool:
    """Return whether a leaf is an array, or what JAX makes one of."""
    jax, numpy = sys.modules["jax"], sys.modules["numpy"]
    if isinstance(leaf, (numpy.ndarray, numpy.generic)):
        return any(jax.numpy.issubdtype(leaf.dtype, kind) for kind in (numpy.number, numpy.bool_))
    return isinstance(leaf, (jax.Array, bool, float, complex))
