"""The inputs of a unit as far as they are known, and passes that find out more.

Each pass runs the unit abstractly. `search_loop` handles errors.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp

from ..project import constructors, produced
from ..work import operations
from . import candidates, code_usage, construct, guesses, networks, type_hints, uses
from .candidates import MADE_UP
from .node import (
    ABSENT,
    ARRAY,
    CONSTANT,
    DICT,
    FIELDS,
    GUESS,
    INSTANCE,
    KEY,
    LIST,
    TUPLE,
    Choice,
    Node,
    Plan,
)

_TRACER: Any = jax.core.Tracer
_INPUT = re.compile(r"input_(\d+)_")

Call = Callable[[Tuple[Any, ...], Dict[str, Any]], Any]
Snapshot = Dict[int, Any]


class Budget:
    """The passes, the work, and the CPU time that are left.

    Work does not depend on the load of the machine, and rarely leaves any passes to the time.
    """

    def __init__(self, tries: int, work: float, end: float) -> None:
        """`work` counts operations; `end` is a time of `time.process_time`."""
        self.tries = tries
        self._deadline = operations.count + work
        self._end = end

    def spend(self) -> bool:
        """Take one pass; False when nothing is left."""
        self.tries -= 1
        in_time = operations.count < self._deadline and time.process_time() < self._end
        return self.tries >= 0 and in_time

    def part(self, tries: int) -> Budget:
        """Return a budget of the work and the time that are left."""
        return Budget(tries, self._deadline - operations.count, self._end)


class Search:
    """The inputs of one unit: a tree of nodes for each parameter."""

    def __init__(
        self,
        classes: Sequence[type],
        unit: Any,
        functions: Sequence[Any],
    ) -> None:
        self.classes = list(classes)
        self.producers = produced.Producers(classes)
        # What the functions that the unit reaches read, and how they use names.
        self.names_read = code_usage.names_read(functions)
        self.own_uses = uses.of_function(unit)
        self.uses = uses.of_all(functions)
        self.integers = code_usage.integers_read(unit)
        self.nodes: Dict[int, Node] = {}
        self.roots: List[Tuple[inspect.Parameter, Node]] = []
        # Code reads values that JAX computes from constants: compute them while tracing.
        self.folding = False
        self.last_error: Optional[BaseException] = None
        self.start()

    def start(self) -> None:
        """Reset the state of a pass."""
        self.fresh = False
        # Those that the error is about, as far as it or JAX tells.
        self.named: List[Node] = []
        # What inputs may be, if it is about the parameters of a network.
        self.wanted: networks.Wanted = []
        self.leaves: Dict[str, Any] = {}
        self.is_called = False
        self.values: Dict[int, Any] = {}

    # Nodes

    def new(
        self,
        path: Tuple[str, ...],
        parent: Optional[Node] = None,
        annotation: Any = None,
        plan: Optional[Plan] = None,
    ) -> Node:
        """Add a node; without a plan it is what its name and its uses tell."""
        node = Node(len(self.nodes), path, parent, annotation)
        self.nodes[node.number] = node
        use = self._use(node)
        guess = guesses.plan(node, use, self.objects)
        node.is_guess = plan is None
        node.follow(plan or guess, guess.choices)
        node.offer(guesses.others_of(node, use))
        texts = guesses.other_texts(node)
        if texts and candidates.switches_checkpoints(node.name):
            # Other settings vary with those checkpoints that are not the default.
            node.offer([node.choice])
            node.choose([*texts, *node.plan.choices])
        return node

    def _use(self, node: Node) -> uses.Use:
        """Return how code uses a name; of the elements of a list nothing is known."""
        if node.path[-1].isdigit():
            return uses.Use()
        own = self.own_uses.get(node.name)
        return own if own and own.says_much else self.uses.get(node.name, uses.Use())

    def in_use(self) -> List[Node]:
        """Return all nodes of the current inputs."""
        return [node for _, root in self.roots for node in root.walk()]

    def child(self, node: Node, name: Any) -> Node:
        """Return the node of an entry, element, or attribute."""
        text = str(name)
        if text not in node.children:
            annotation = type_hints.of_part(node, text)
            plan = type_hints.plan_by_annotation(text, annotation, True) if annotation else None
            if (
                plan is None
                and candidates.matches(candidates.KEYS, node.name)
                and not text.isdigit()
            ):
                plan = Plan(list(candidates.PRNG))
            node.children[text] = self.new((*node.path, text), node, annotation, plan)
            self.fresh = True
        child = node.children[text]
        if child.choice.kind == ABSENT and not child.pinned:
            child.choose([Choice(GUESS)])
        return child

    def want(self, node: Node, name: str) -> None:
        """Note a key that a dictionary is asked for and may lack: worth a separate case."""
        if name not in node.children:
            plan = Plan([Choice(ABSENT)], [Choice(ABSENT), Choice(GUESS)])
            node.children[name] = self.new((*node.path, name), node, None, plan)

    def objects(self, node: Node) -> List[Choice]:
        """Return the project's classes that have the attributes that were read, or any object."""
        fitting = [cls for cls in self.classes if constructors.offers(cls, node.attributes)]
        for cls in constructors.classes():
            if cls not in fitting and all(callable(vars(cls).get(n)) for n in node.attributes):
                fitting.append(cls)
        return [Choice(INSTANCE, cls) for cls in fitting] + [Choice(DICT)]

    # Values passed to the unit

    def arguments(self) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Return the arguments of this pass."""
        return construct.arguments(self.roots, self.passed_value)

    def passed_value(self, node: Node) -> Any:
        """Return the value of a node in this pass."""
        choice = node.choice
        if choice.kind in (ARRAY, KEY):
            # Found during a pass, perhaps in an inner trace: create it for each use.
            leaf = self.leaves.get(_leaf_name(node))
            return _abstract(choice) if leaf is None else leaf
        if node.number not in self.values:
            if choice.kind == CONSTANT:
                made = construct.random_array(node, choice, 0)
            else:
                self._grow(node)
                made = construct.built(node, self.passed_value)
            self.values[node.number] = made
        return self.values[node.number]

    def _grow(self, node: Node) -> None:
        """Add nodes for the parts of a value."""
        kind = node.choice.kind
        if kind == INSTANCE:
            construct.add_parameters(self, node)
        elif kind == FIELDS:
            produced.add_fields(self, node)
        elif kind in (LIST, TUPLE):
            for at in range(node.count()):
                self.child(node, str(at))
        elif kind == DICT:
            if node.choice.value is None:
                node.choice = Choice(DICT, self._entries(node))
            for name in node.choice.value:
                if name not in node.children:
                    self.child(node, name)

    def _entries(self, node: Node) -> Tuple[str, ...]:
        """Return the entries of a dictionary that code reads by its name, and those it may lack."""
        use = self._use(node)
        for name in use.asked:
            self.want(node, name)
        return tuple(dict.fromkeys([*use.keys, *use.asked, *sorted(node.attributes)])) or MADE_UP

    # Passes

    def attempt(self, call: Call) -> Optional[BaseException]:
        """Run one pass; return the error that ended it."""
        self.start()
        self.producers.refresh(self)
        self.start()
        for node in self.in_use():
            if node.is_tree:
                produced.add_leaves(self, node)
        leaves = {
            _leaf_name(node): _struct(node.choice)
            for node in self.in_use()
            if node.choice.kind in (ARRAY, KEY)
        }

        def traced(inputs: Dict[str, Any]) -> List[Any]:
            self.leaves = inputs
            try:
                args, kwargs = self.arguments()
                self.is_called = True
                leaves = jax.tree_util.tree_leaves(call(args, kwargs))
            except Exception as error:
                # Ask during the trace: afterwards JAX cannot tell what an array depends on.
                about, self.wanted = networks.learn(error)
                self.named = self._by_number(_text_of(about))
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
                if self.folding:
                    stack.enter_context(jax.ensure_compile_time_eval())
                stack.enter_context(operations.counted())
                jax.eval_shape(traced, leaves)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # `sys.exit` and pytest outcomes are not Exceptions
            return error
        return None

    def _by_number(self, message: str) -> List[Node]:
        numbers = {int(number) for number in _INPUT.findall(message)}
        return [self.nodes[number] for number in sorted(numbers)]

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


def _text_of(error: BaseException) -> str:
    """Return a text that names the inputs that an error is about, as far as JAX knows them."""
    tracer: Any = getattr(error, "obj", None)  # what lacks an attribute
    while isinstance(inner := getattr(tracer, "primal", getattr(tracer, "val", None)), _TRACER):
        tracer = inner
    if isinstance(tracer, _TRACER):
        try:
            tracer.__array__()
        except Exception as refusal:  # this always raises
            return str(refusal)
    return str(error)


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
