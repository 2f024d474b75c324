"""A search for inputs under which a function can be traced.

Each pass runs the function abstractly. What is undecided is handed out as probes, which decide
themselves by how they are used. An error is a conflict between the inputs that it is about: the
one that was decided last takes its next choice, and if it has none left, those that it conflicted
with do (conflict-directed backjumping).
"""

from __future__ import annotations

import contextlib
import inspect
import time
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp

from . import annotated, candidates, construct, fault, remedies
from .containers import LIBRARIES, ProbeDict, ProbeObject, Ticket, watched
from .node import (
    ABSENT,
    ARRAY,
    CONSTANT,
    INSTANCE,
    KEY,
    LIKE,
    LIST,
    OBJECT,
    TUPLE,
    VALUE,
    Choice,
    Node,
    Plan,
    value,
)
from .probe import Probe

Call = Callable[[Tuple[Any, ...], Dict[str, Any]], Any]
Snapshot = Dict[int, Tuple[Any, ...]]


class OutOfTime(BaseException):
    """The time for a unit is over. Not an Exception: the unit's own handlers must let it pass."""


class Budget:
    """Passes and seconds that are left."""

    def __init__(self, tries: int, seconds: float) -> None:
        self.tries = tries
        self.deadline = time.monotonic() + seconds

    def spend(self) -> bool:
        """Take one pass; False when nothing is left."""
        self.tries -= 1
        return self.tries >= 0 and time.monotonic() < self.deadline

    def left(self) -> float:
        """Seconds."""
        return self.deadline - time.monotonic()


class Search:
    """The inputs of one unit: a tree of nodes for each parameter."""

    def __init__(self, classes: Sequence[type], names_read: Sequence[str]) -> None:
        self.classes = list(classes)
        self.names_read = frozenset(names_read)
        self.nodes: Dict[int, Node] = {}
        self.roots: List[Tuple[inspect.Parameter, Node]] = []
        self.decisions = 0
        # Python looks at what JAX computes from known numbers alone: compute that while tracing.
        self.folding = False
        self.last_error: Optional[BaseException] = None
        self.start()

    def start(self) -> None:
        """Before a pass."""
        self.fresh = False
        self.leaves: Dict[str, Any] = {}
        self.handed_out: Dict[int, Tuple[Node, Any]] = {}
        self.values: Dict[int, Any] = {}

    # Nodes

    def new(
        self,
        path: Tuple[str, ...],
        parent: Optional[Node] = None,
        annotation: Any = None,
        plan: Optional[Plan] = None,
    ) -> Node:
        """A node, and its number."""
        node = Node(len(self.nodes), path, parent, annotation, plan)
        self.nodes[node.number] = node
        return node

    def in_use(self) -> List[Node]:
        """All nodes of the inputs as they are now."""
        return [node for _, root in self.roots for node in root.walk()]

    def child(self, node: Node, name: Any) -> Node:
        """An entry, element or attribute."""
        text = str(name)
        if text not in node.children:
            annotation = annotated.of_part(node, text)
            plan = annotated.plan_by_annotation(text, annotation, True) if annotation else None
            if plan is None and candidates.is_keys(node.name) and not text.isdigit():
                plan = Plan(list(candidates.PRNG))
            node.children[text] = self.new((*node.path, text), node, annotation, plan)
            self.fresh = True
        child = node.children[text]
        if child.choice is not None and child.choice.kind == ABSENT and not child.pinned:
            child.plan = None
            child.forget()
        return child

    def want(self, node: Node, name: str) -> None:
        """A key that a dictionary is asked for, and may lack: a case of its own."""
        if name not in node.children:
            plan = Plan([Choice(ABSENT)], [Choice(ABSENT), Choice("probe")])
            node.children[name] = self.new((*node.path, name), node, None, plan)

    def decide(self, node: Node, choices: Sequence[Choice]) -> None:
        """A probe has found out what it is."""
        self.decisions += 1
        self.fresh = True
        node.choose(choices, self.decisions)

    def touch(self, node: Node) -> None:
        """A probe goes through a tree function, or into a transformation."""

    def objects(self, node: Node, attribute: str) -> List[Choice]:
        """What may have the attributes that were read: a class of the project, or any object."""
        node.attributes.add(attribute)
        fitting = [cls for cls in self.classes if construct.has(cls, node.attributes)]
        return [Choice(INSTANCE, cls) for cls in fitting] + [Choice(OBJECT)]

    def looked_up(self, node: Node, frame: FrameType) -> None:
        """A string is hashed: the other keys of the dictionary deserve a case each."""
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module in LIBRARIES or node.choice is None:
            return
        for key in fault.keys_at(frame, node.choice.value):
            node.offer([node.choice, value(key)])

    # What is handed out

    def arguments(self) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """The arguments of this pass."""
        return construct.arguments(self.roots, self.handed)

    def handed(self, node: Node) -> Any:
        """What stands for a node in this pass: a probe as long as it is undecided."""
        if node.choice is None:
            if node.number not in self.values:
                self.values[node.number] = Probe(node, self)
            return self.values[node.number]
        return self.current(node)

    def current(self, node: Node) -> Any:
        """What a decided node is in this pass."""
        choice = node.choice
        assert choice is not None
        if choice.kind in (ARRAY, KEY):
            # Decided in the midst of a pass, perhaps in an inner trace: made anew for each use.
            leaf = self.leaves.get(_leaf_name(node))
            return _abstract(choice) if leaf is None else leaf
        held = self.values.get(node.number, None)
        if held is None or isinstance(held, Probe):
            held = self.values[node.number] = self._build(node, choice)
            self.handed_out[id(held)] = (node, held)
        return held

    def _build(self, node: Node, choice: Choice) -> Any:
        if choice.kind == VALUE:
            text = type(choice.value) is str
            return watched(node, self, choice.value) if text else choice.value
        if choice.kind == LIKE:
            return self.handed(self.nodes[choice.value])
        if choice.kind == CONSTANT:
            return construct.random_array(node, choice, 0)
        if choice.kind == INSTANCE:
            construct.add_parameters(self, node)
            return construct.instance(node, self.handed)
        if choice.kind in (LIST, TUPLE):
            parts = [self.handed(self.child(node, str(at))) for at in range(node.count())]
            return parts if choice.kind == LIST else tuple(parts)
        names = choice.value or list(node.children)
        children = {name: self.child_present(node, name) for name in names}
        held = {name: self.handed(child) for name, child in children.items() if child is not None}
        if choice.kind == OBJECT:
            return ProbeObject(Ticket(node, self), held)
        return held if choice.value else ProbeDict(Ticket(node, self), held.items())

    def child_present(self, node: Node, name: str) -> Optional[Node]:
        """A child, unless it is left out."""
        child = node.children.get(name) or self.child(node, name)
        return None if child.choice is not None and child.choice.kind == ABSENT else child

    # Passes

    def attempt(self, call: Call, jit: bool) -> Optional[BaseException]:
        """One pass; the error that it ended in."""
        self.start()
        leaves = {
            _leaf_name(node): _struct(node.choice)
            for node in self.in_use()
            if node.choice is not None and node.choice.kind in (ARRAY, KEY)
        }

        def traced(inputs: Dict[str, Any]) -> List[Any]:
            self.leaves = inputs
            args, kwargs = self.arguments()
            leaves = jax.tree_util.tree_leaves(call(args, kwargs))
            return [leaf for leaf in leaves if isinstance(leaf, jax.Array)]

        try:
            with contextlib.ExitStack() as stack:
                if not jit:
                    stack.enter_context(jax.disable_jit())
                if self.folding:
                    stack.enter_context(jax.ensure_compile_time_eval())
                jax.eval_shape(traced, leaves)
        except Exception as error:
            return error
        return None

    def solve(self, call: Call, budget: Budget) -> Optional[str]:
        """Search until it can be traced, with `jit` and without; else what is in the way."""
        last = ""
        jit = False
        while budget.spend():
            error = self.attempt(call, jit)
            if error is None:
                left = [node for node in self.in_use() if node.choice is None]
                for node in left:
                    self.decide(node, candidates.leftover(node.name, node.inside))
                    node.unused = True
                if not left and (jit or self.folding):
                    return None
                jit = not left
                continue
            last, self.last_error = remedies.describe(error), error
            # What was decided in this pass is handed out as itself in the next: blame can wait.
            if not self.fresh and not self.learn(error):
                return last
            jit = jit and not self.fresh
        return last or "no time left"

    def learn(self, error: BaseException) -> bool:
        """Change what the error is about; False if there is nothing left to change."""
        found = fault.find(error, self)
        if remedies.needs_value(error) and not self.folding and not found.depend:
            self.folding = True
            return True
        undecided = [node for node in found.nodes if node.choice is None]
        if remedies.STRUCTURE.search(str(error)) and self._alike(found.nodes):
            return True
        if undecided:
            for node in undecided[:1]:
                self.decide(node, remedies.by_error(node, found))
            return True
        movable = [node for node in found.nodes if not node.pinned]
        if remedies.needs_value(error):
            self._prefer_values(movable, found)
        else:
            for node in movable:
                node.prefer(remedies.repaired(node, str(error)))
        return self._backjump(movable) or self._backjump(
            [
                node
                for node in sorted(self.in_use(), key=lambda node: -node.order)
                if not node.pinned and node not in found.nodes and node.order
            ]
        )

    def _alike(self, nodes: Sequence[Node]) -> bool:
        """Trees that have to have the same structure: what is undecided follows the first."""
        trees = [node for node in nodes if not candidates.is_number(node.name)]
        trees.sort(key=lambda node: (node.choice is None, node.number))
        followers = [node for node in trees[1:] if node.choice is None]
        for node in followers:
            others = candidates.leftover(node.name, node.inside)
            self.decide(node, [Choice(LIKE, trees[0].number), *others])
        return bool(followers)

    def _prefer_values(self, nodes: List[Node], found: fault.Fault) -> None:
        """A Python value instead of a traced array."""
        for node in nodes:
            if node.choice is not None and node.choice.kind in (ARRAY, KEY):
                node.prefer(remedies.python_values(node, found))
        # A number is a likelier guess than an activation.
        nodes.sort(key=lambda node: (not candidates.is_number(node.name), -node.order))

    def _backjump(self, nodes: Sequence[Node]) -> bool:
        pool = list(nodes)
        while pool:
            node = pool.pop(0)
            node.conflicts |= set(pool)
            if node.advance():
                self._forget_after(node)
                return True
            earlier = (set(pool) | node.conflicts) - {node}
            pool = sorted((n for n in earlier if n.order < node.order), key=lambda n: -n.order)
            if pool and node.order:
                node.forget()
        return False

    def _forget_after(self, node: Node) -> None:
        """Arrays decided later took their shapes from what has now changed."""
        for other in self.in_use():
            later = other.order > node.order and node.order
            if later and other.choice is not None and other.choice.kind == ARRAY:
                if not other.pinned:
                    other.forget()

    # States

    def save(self) -> Snapshot:
        """What is decided."""
        return {
            number: (node.choice, list(node.queue), set(node.tried), node.order, node.unused)
            for number, node in self.nodes.items()
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a state; what was found later is undecided, and so is what was never used."""
        for number, node in self.nodes.items():
            node.pinned = False
            if number in snapshot and not snapshot[number][4]:
                node.choice, queue, tried, node.order, node.unused = snapshot[number]
                node.queue, node.tried, node.conflicts = list(queue), set(tried), set()
            else:
                node.forget()


def _leaf_name(node: Node) -> str:
    return "input_{}_".format(node.number)


def _struct(choice: Choice) -> Any:
    if choice.kind == KEY:
        return construct.key(choice)
    shape, dtype = choice.value
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))  # type: ignore[no-untyped-call]


def _abstract(choice: Choice) -> Any:
    if choice.kind == KEY:
        return construct.key(choice)
    shape, dtype = choice.value
    return jnp.zeros(shape, dtype)
