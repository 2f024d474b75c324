"""Parameters of networks, for units that call `net.apply(params, ...)`.

What a network gets as its parameters has the structure that its own `init` makes. An error inside
`apply` tells which network and which inputs: `init` is traced with the other arguments of the call.
"""

from __future__ import annotations

import re
from types import FrameType, TracebackType
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp

from ..frameworks import flax_units
from . import blame, candidates
from .containers import OpenDict, OpenObject
from .node import ARRAY, DICT, KEY, TREE, Choice, Node, Plan, Tree, array
from .type_hints import name_of_step

_KEY_WANTED = re.compile(r'needs PRNG for "([^"]*)"')


class _Call(NamedTuple):
    """A call of `apply`: what holds variables, `init` with the other arguments, and random keys.

    `frames` are those of all callers, and `place` their instructions.
    """

    given: List[Any]
    init: Callable[[], List[Any]]  # the variables that `given` should be
    rngs: Any
    frames: Tuple[TracebackType, ...] = ()

    @property
    def place(self) -> Tuple[Tuple[str, int], ...]:
        return tuple((at.tb_frame.f_code.co_filename, at.tb_lasti) for at in self.frames)


def learn(error: BaseException, search: Any) -> BaseException:
    """Give the inputs that a network got as its variables the structure that its `init` makes.

    Called while the pass is still traced. Returns the error that the pass is about: that of `init`
    if it fails.
    """
    call = _innermost_call(error)
    if call is None:
        return error
    if _learn_keys(call, str(error), search):
        return error
    try:
        # In a trace of its own, JAX could not tell which inputs a value depends on.
        made = jax.eval_shape(call.init) if search.folding else call.init()
    except Exception as failure:  # the other arguments are wrong, too
        return failure.with_traceback(_continued(call.frames, failure.__traceback__))
    search.place = call.place
    for given, wanted in zip(call.given, made):
        _match(given, wanted, search)
    return error


def _innermost_call(error: BaseException) -> Optional[_Call]:
    found: Optional[_Call] = None
    callers: List[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        call = None
        if module == "flax.linen.module" and name == "apply":
            call = _flax(frame)
        elif module == "haiku._src.transform" and name == "apply_fn" and "f" in frame.f_locals:
            call = _haiku(frame)
        if call is not None:
            found = call._replace(frames=tuple(callers))
        callers.append(trace)
        trace = trace.tb_next
    return found


def _continued(
    callers: Sequence[TracebackType], end: Optional[TracebackType]
) -> Optional[TracebackType]:
    """Return the traceback of an error that was raised below these callers."""
    for at in reversed(callers):
        end = TracebackType(end, at.tb_frame, at.tb_lasti, at.tb_lineno)
    return end


def _flax(frame: FrameType) -> Optional[_Call]:
    held = frame.f_locals
    if not all(name in held for name in ("self", "variables", "args", "kwargs")):
        return None
    module, args, kwargs = held["self"], _live(held["args"]), _live(held["kwargs"])
    rngs = held.get("rngs")
    names = [name for name in rngs if type(name) is str] if isinstance(rngs, dict) else []

    def init() -> List[Any]:
        made = flax_units.init_variables(module, args, kwargs, held.get("method"), names)
        return [made]

    return _Call([held["variables"]], init, rngs)


def _haiku(frame: FrameType) -> Optional[_Call]:
    held = frame.f_locals
    if not all(name in held for name in ("params", "state", "args", "kwargs")):
        return None
    import haiku

    args, kwargs, function = _live(held["args"]), _live(held["kwargs"]), held["f"]

    def init() -> List[Any]:
        transformed = haiku.transform_with_state(function)
        return list(transformed.init(jax.random.PRNGKey(0), *args, **kwargs))

    return _Call([held["params"], held["state"]], init, None)


def _live(tree: Any) -> Any:
    """Return arguments without the tracers of transformations that have ended with the error."""

    def live(leaf: Any) -> Any:
        if not isinstance(leaf, jax.core.Tracer):
            return leaf
        outer = leaf
        while True:
            inner = getattr(outer, "primal", None)
            if not isinstance(inner, jax.core.Tracer):
                break
            outer = inner
        return jnp.zeros(leaf.shape, leaf.dtype) if hasattr(outer, "batch_dim") else outer

    return jax.tree_util.tree_map(live, tree)


def _match(given: Any, made: Any, search: Any) -> None:
    """Give the inputs that `given` consists of the structure and shapes of `made`."""
    node = _node_of(given, search)
    if node is not None:
        become(node, made, search)
    elif isinstance(given, Mapping):
        known = made if isinstance(made, Mapping) else {}
        for name in list(given):
            part = _node_of(given[name], search)
            if name in known or (part is not None and part.is_guess):
                _match(given[name], known.get(name, {}), search)


def _node_of(thing: Any, search: Any) -> Optional[Node]:
    """Return the input that a value is."""
    if isinstance(thing, (OpenDict, OpenObject)):
        node: Node = vars(thing)["_ticket"].node
        return node
    own = search.passed_values.get(id(thing))
    if own is not None and own[1] is thing:
        found: Node = own[0]
        return found
    # Transformations rebuild trees.
    leaves = jax.tree_util.tree_leaves(thing)
    if not leaves or not all(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return None
    nodes = {node for leaf in leaves for node in blame.dependencies(leaf, search)}
    if isinstance(thing, jax.core.Tracer) and len(nodes) == 1:
        (node,) = nodes
        return node if node.choice.kind == KEY or node.choice.value[0] == thing.shape else None
    parents = {node.parent for node in nodes}
    parent = parents.pop() if len(parents) == 1 else None
    if parent is None:
        return None
    given: Any = jax.tree_util.tree_structure(search.passed_value(parent))
    return parent if given == jax.tree_util.tree_structure(thing) else None


def become(node: Node, made: Any, search: Any) -> None:
    """Make an input a tree of arrays like `made`, whose leaves have shapes and dtypes."""
    pairs, structure = jax.tree_util.tree_flatten_with_path(made)
    leaves = tuple((tuple(leaf.shape), str(leaf.dtype)) for _, leaf in pairs)
    choice = Choice(TREE, Tree(structure, leaves, of_network=True))
    if node.pinned or node.choice.key() == choice.key():
        return
    if node.is_tree and node.choice.value.structure == structure:
        if node.choice.value.made_by is not None:
            return  # the project makes it so: the other arguments do not fit
        if search.taught.get(node.number, search.place) != search.place:
            return  # it fits another call of the network: the other arguments of this one do not
    search.taught[node.number] = search.place
    node.assign(choice)
    node.children = {}
    for number, (path, _) in enumerate(pairs):
        names = tuple(map(name_of_step, path))
        shape, dtype = leaves[number]
        leaf = Choice(KEY, ("typed", 0)) if dtype.startswith("key<") else array(shape, dtype)
        child = search.new((*node.path, *names), node, None, Plan([leaf]))
        node.children[str(number)] = child
    search.fresh = True


def _learn_keys(call: _Call, message: str, search: Any) -> bool:
    """Make the inputs that are passed as random keys keys; return whether there were others."""
    wanted = _KEY_WANTED.findall(message)
    node = _node_of(call.rngs, search)
    if node is not None and (node.choice.kind != KEY or "RNG" in message):
        known = tuple(node.children) if node.choice.kind == DICT else ()
        names = (*known, *(name for name in wanted or ["dropout"] if name not in known))
        if wanted or not known:
            node.assign(Choice(DICT, names))
            search.fresh = True
            return True
        return False
    values = call.rngs.values() if isinstance(call.rngs, dict) else []
    others = [other for other in (_node_of(one, search) for one in values) if other is not None]
    others = [other for other in others if other.choice.kind == ARRAY]
    for other in others:
        other.assign(candidates.PRNG[0], candidates.PRNG[1:])
        search.fresh = True
    return bool(others)
