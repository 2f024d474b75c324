"""The inputs of a unit as far as they are known, and passes that find out more.

Each pass runs the unit abstractly. Undecided inputs are passed as probes, which their uses decide;
decided inputs are passed as values. `descent` handles errors.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp

from ..lookup import unwrapped
from ..project import constructors, produced
from ..work import TooManyOperations, operations
from . import blame, candidates, construct, networks, type_hints
from .blame import Blame
from .containers import LIBRARIES, ProbeDict, ProbeObject, Ticket, WatchedStr, watched
from .node import (
    ABSENT,
    ARRAY,
    CONSTANT,
    FIELDS,
    INSTANCE,
    KEY,
    LIKE,
    LIST,
    OBJECT,
    PROBE,
    TREE,
    TUPLE,
    VALUE,
    Choice,
    Node,
    Plan,
    value,
)
from .probe import Probe

Call = Callable[[Tuple[Any, ...], Dict[str, Any]], Any]
Snapshot = Dict[int, Any]

# Of a pass in which JAX runs each iteration of its loops: operations.
_MOST_UNROLLED = 8_000
# To get past an error, once the search has got past the one before.
_PASSES_FOR_NEXT = 25
# With all that, how many times the work that was allowed at first.
_MOST_TIMES = 4


class OutOfTime(BaseException):
    """The time for a unit is over. Not an Exception, so that the unit's handlers ignore it."""


# Exceptions that must not be taken for errors of the unit.
NOT_OURS = (OutOfTime, KeyboardInterrupt, GeneratorExit)


class Budget:
    """The passes and the work that are left, which do not depend on the load of the machine."""

    def __init__(self, tries: int, work: float) -> None:
        self.tries = tries
        self.deadline = operations.count + work
        self.latest = operations.count + _MOST_TIMES * work
        self.last = operations.count

    def spend(self) -> bool:
        """Take one pass; False when nothing is left."""
        self.tries -= 1
        self.last = operations.count
        return self.tries >= 0 and operations.count < self.deadline

    def extend(self) -> None:
        """Allow some more passes like the last, which got further."""
        more = operations.count + _PASSES_FOR_NEXT * (operations.count - self.last)
        self.deadline = max(self.deadline, min(more, self.latest))

    def left(self) -> float:
        """Return the work that is left: operations to trace."""
        return self.deadline - operations.count


class Search:
    """The inputs of one unit: a tree of nodes for each parameter."""

    def __init__(
        self,
        classes: Sequence[type],
        names_read: Sequence[str],
        producers: Optional[produced.Producers] = None,
    ) -> None:
        self.classes = list(classes)
        self.producers = producers or produced.Producers(classes)
        self.names_read = list(names_read)
        self.nodes: Dict[int, Node] = {}
        self.roots: List[Tuple[inspect.Parameter, Node]] = []
        self.decisions = 0
        # Code reads values that JAX computes from constants: compute them while tracing.
        self.folding = False
        self.tried_folding = False
        self.last_error: Optional[BaseException] = None
        # Its loops are traced as loops: the iterations are too many to run each.
        self.has_long_loops = False
        # By number, the places in the code where a network told what an input should be.
        self.taught: Dict[int, Any] = {}
        self.place: Any = ()
        # A library wants strings that are no subclass.
        self.plain_text = False
        self.start()

    def start(self) -> None:
        """Reset the state of a pass."""
        self.fresh = False
        self.blamed: Optional[Blame] = None
        self.leaves: Dict[str, Any] = {}
        self.is_called = False
        self.passed_values: Dict[int, Tuple[Node, Any]] = {}
        self.values: Dict[int, Any] = {}

    # Nodes

    def new(
        self,
        path: Tuple[str, ...],
        parent: Optional[Node] = None,
        annotation: Any = None,
        plan: Optional[Plan] = None,
    ) -> Node:
        """Add a node."""
        node = Node(len(self.nodes), path, parent, annotation, plan)
        self.nodes[node.number] = node
        return node

    def in_use(self) -> List[Node]:
        """Return all nodes of the current inputs."""
        return [node for _, root in self.roots for node in root.walk()]

    def child(self, node: Node, name: Any) -> Node:
        """Return the node of an entry, element, or attribute."""
        text = str(name)
        if text not in node.children:
            annotation = type_hints.of_part(node, text)
            plan = type_hints.plan_by_annotation(text, annotation, True) if annotation else None
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
        """Note a key that a dictionary is asked for and may lack: worth a separate case."""
        if name not in node.children:
            plan = Plan([Choice(ABSENT)], [Choice(ABSENT), Choice("probe")])
            node.children[name] = self.new((*node.path, name), node, None, plan)

    def decide(self, node: Node, choices: Sequence[Choice]) -> None:
        """Decide a node by a use of its probe."""
        self.decisions += 1
        self.fresh = True
        if node.plan and node.plan.choices and node.plan.choices[0].kind == PROBE:
            # Annotated as an array, so neither a list nor a number.
            choices = sorted(choices, key=lambda choice: choice.kind != ARRAY)
        node.choose(choices, self.decisions)

    def objects(self, node: Node, attribute: str) -> List[Choice]:
        """Return the project's classes that have the attributes that were read, or any object."""
        node.attributes.add(attribute)
        fitting = [cls for cls in self.classes if constructors.offers(cls, node.attributes)]
        for cls in constructors.classes():
            if cls not in fitting and all(callable(vars(cls).get(n)) for n in node.attributes):
                fitting.append(cls)
        return [Choice(INSTANCE, cls) for cls in _outermost_first(fitting)] + [Choice(OBJECT)]

    def offer_other_keys(self, node: Node, frame: FrameType) -> None:
        """Offer the other keys of the dictionary in which a string is looked up."""
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module in LIBRARIES or node.choice is None:
            return
        for key in blame.keys_at(frame, node.choice.value):
            node.offer([node.choice, value(key)])

    # Values passed to the unit

    def arguments(self) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Return the arguments of this pass."""
        return construct.arguments(self.roots, self.passed_value)

    def passed_value(self, node: Node) -> Any:
        """Return the value of a node in this pass: a probe while it is undecided."""
        if node.choice is None:
            if node.number not in self.values:
                self.values[node.number] = Probe(node, self)
            return self.values[node.number]
        return self.current(node)

    def current(self, node: Node) -> Any:
        """Return the value of a decided node in this pass."""
        choice = node.choice
        assert choice is not None
        if choice.kind in (ARRAY, KEY):
            # Decided during a pass, perhaps in an inner trace: create it for each use.
            leaf = self.leaves.get(_leaf_name(node))
            return _abstract(choice) if leaf is None else leaf
        held = self.values.get(node.number, None)
        if held is None or isinstance(held, Probe):
            held = self.values[node.number] = self._build(node, choice)
            self.passed_values[id(held)] = (node, held)
        return held

    def _build(self, node: Node, choice: Choice) -> Any:
        if choice.kind == VALUE:
            text = type(choice.value) is str and not self.plain_text
            return watched(node, self, choice.value) if text else choice.value
        if choice.kind == LIKE:
            return self.passed_value(self.nodes[choice.value])
        if choice.kind == CONSTANT:
            return construct.random_array(node, choice, 0)
        if choice.kind == INSTANCE:
            construct.add_parameters(self, node)
            return construct.instance(node, self.passed_value)
        if choice.kind == FIELDS:
            produced.add_fields(self, node)
            return produced.with_fields(node, self.passed_value)
        if choice.kind in (LIST, TUPLE):
            parts = [self.passed_value(self.child(node, str(at))) for at in range(node.count())]
            return parts if choice.kind == LIST else tuple(parts)
        if choice.kind == TREE:
            leaves = [self.passed_value(node.children[str(at)]) for at in range(node.count())]
            return jax.tree_util.tree_unflatten(choice.value.structure, leaves)
        names = list(node.children) if choice.value is None else choice.value
        children = {name: self.child_present(node, name) for name in names}
        held = {
            name: self.passed_value(child) for name, child in children.items() if child is not None
        }
        if choice.kind == OBJECT:
            return ProbeObject(Ticket(node, self), held)
        return held if choice.value is not None else ProbeDict(Ticket(node, self), held.items())

    def child_present(self, node: Node, name: str) -> Optional[Node]:
        """Return a child, or None if it is absent."""
        child = node.children.get(name) or self.child(node, name)
        return None if child.choice is not None and child.choice.kind == ABSENT else child

    # Passes

    def attempt(self, call: Call, jit: bool) -> Optional[BaseException]:
        """Run one pass; return the error that ended it."""
        self.start()
        self.producers.refresh(self)
        self.start()
        leaves = {
            _leaf_name(node): _struct(node.choice)
            for node in self.in_use()
            if node.choice is not None and node.choice.kind in (ARRAY, KEY)
        }

        def traced(inputs: Dict[str, Any]) -> List[Any]:
            self.leaves = inputs
            try:
                args, kwargs = self.arguments()
                self.is_called = True
                leaves = jax.tree_util.tree_leaves(call(args, kwargs))
            except Exception as error:
                # Ask during the trace: afterwards JAX cannot tell what an array depends on.
                about = networks.learn(error, self)
                if not self.fresh:
                    self.blamed = blame.find_blame(about, self)
                if about is not error:
                    raise about from error
                raise
            return [leaf for leaf in leaves if isinstance(leaf, jax.Array)]

        try:
            if self.folding and not leaves:
                # Nothing to trace: later runs reuse what is compiled now.
                traced({})
                return None
            with contextlib.ExitStack() as stack:
                unrolled = not (jit or self.folding or self.has_long_loops)
                if unrolled:
                    # Without inner jits JAX can tell which inputs a value depends on. Not while
                    # folding: whole compiled functions take a fraction of the time.
                    stack.enter_context(jax.disable_jit())
                if self.folding:
                    stack.enter_context(jax.ensure_compile_time_eval())
                # What JAX has compiled or traced before is not traced again, so count as before.
                again = jit or self.folding
                most = _MOST_UNROLLED if unrolled else math.inf
                stack.enter_context(operations.again() if again else operations.counted(most))
                jax.eval_shape(traced, leaves)
        except TooManyOperations:
            self.has_long_loops = True
            return self.attempt(call, jit)
        except NOT_OURS:
            raise
        except BaseException as error:  # `sys.exit` and pytest outcomes are not Exceptions
            if WatchedStr.__name__ in str(error) and not self.plain_text:
                self.plain_text = self.fresh = True
            return error
        return None

    def assign(self, node: Node, choice: Choice, others: Sequence[Choice] = ()) -> None:
        """Make something else of a node; `others`: what else it may be."""
        if node.choice is None:
            self.decisions += 1
            node.order = self.decisions
        node.assign(choice, others)

    def forget_after(self, node: Node) -> None:
        """Forget the arrays that were decided after a node, for their shapes may follow from it."""
        for other in self.in_use():
            if other.order > node.order and other.choice is not None and not other.pinned:
                if other.choice.kind == ARRAY and not other.in_tree:
                    other.forget()

    # States

    def save(self) -> Snapshot:
        """Return what is decided."""
        return {number: node.state() for number, node in self.nodes.items()}

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a state; nodes added since are not in use."""
        for number, node in self.nodes.items():
            if number in snapshot:
                node.set_state(snapshot[number])
            else:
                node.forget()


def _outermost_first(classes: Sequence[type]) -> List[type]:
    """Return the classes that others make after those."""
    made = {
        name
        for cls in classes
        for method in vars(cls).values()
        for name in getattr(getattr(unwrapped(method), "__code__", None), "co_names", ())
        if name != cls.__name__
    }
    return sorted(classes, key=lambda cls: cls.__name__ in made)


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
