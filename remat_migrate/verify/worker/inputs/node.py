"""The values to make: a tree of nodes, one for each parameter and for each part of it.

Each has a `Choice`, and further choices to try if this one is wrong.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

Shape = Tuple[int, ...]

ARRAY = "array"  # value: shape, dtype name; traced in the search
CONSTANT = "constant"  # the same, but concrete while tracing: code reads its values
KEY = "key"  # value: "raw" or "typed", number of keys (0: a single key)
VALUE = "value"  # a Python object, passed unchanged
DICT = "dict"  # value: names of its entries; None: those that code reads of it
LIST = "list"  # value: how many
TUPLE = "tuple"  # the same, or annotations of the entries
INSTANCE = "instance"  # value: the class; children are the arguments of its constructor
FIELDS = "fields"  # value: settings; children are the fields that may have other values
TREE = "tree"  # value: a Tree; children are its leaves, numbered
ABSENT = "absent"  # a missing entry of a dictionary
GUESS = "guess"  # what its name and its uses in the code tell, see `guesses`


class Choice(NamedTuple):
    """One way to make a node; the meaning of `value` depends on the kind, see above."""

    kind: str
    value: Any = None

    def key(self) -> Tuple[str, str, str]:
        """Return a key that is equal for choices that make the same value."""
        return self.kind, type(self.value).__name__, repr(self.value)


class Tree(NamedTuple):
    """The structure of a pytree, with the shape and dtype of each array, and what made it."""

    structure: Any
    leaves: Tuple[Tuple[Shape, str], ...]
    made_by: Any = None


class Plan(NamedTuple):
    """Choices for a node, the best first, and other values that are worth a separate case."""

    choices: List[Choice]
    alternatives: List[Choice] = []
    closed: bool = False  # comparisons add no alternatives


def array(shape: Sequence[int], dtype: str = "float32") -> Choice:
    """Return the choice of an array."""
    return Choice(ARRAY, (tuple(shape), dtype))


def value(thing: Any) -> Choice:
    """Return the choice of a Python value."""
    return Choice(VALUE, thing)


class Node:
    """One value to make, at a path such as ("params", "norm", "scale")."""

    def __init__(
        self,
        number: int,
        path: Tuple[str, ...],
        parent: Optional["Node"] = None,
        annotation: Any = None,
    ) -> None:
        self.number = number
        self.path = path
        self.parent = parent
        self.annotation = annotation
        self.children: Dict[str, Node] = {}
        self.attributes: Set[str] = set()
        self.pinned = False
        # It is only a guess, which an error may be about.
        self.is_guess = False
        self.follow(Plan([Choice(ABSENT)]))

    def follow(self, plan: Plan, guesses: Sequence[Choice] = ()) -> None:
        """Take the first choice of a plan; `guesses` are what GUESS stands for."""
        self.plan = plan
        self._guesses = list(guesses)
        self.alternatives = list(plan.alternatives)
        self.forget()

    def forget(self) -> None:
        """Forget everything that was found out about it."""
        self.choose(self.plan.choices)

    def choose(self, choices: Sequence[Choice]) -> None:
        """Take the first of `choices`, keep the others for later."""
        self.choice, *self.queue = self._guessed(choices)

    def _guessed(self, choices: Sequence[Choice]) -> List[Choice]:
        """Return choices with the guesses in place of GUESS."""
        lists = [self._guesses if choice.kind == GUESS else [choice] for choice in choices]
        return [choice for choices in lists for choice in choices]

    def assign(self, choice: Choice, others: Sequence[Choice] = ()) -> None:
        """Take another choice; parts of what it was are not parts of what it is now."""
        if choice.kind in (INSTANCE, FIELDS, TREE) or choice.kind != self.choice.kind:
            self.children = {}
        left = [*others, *self.queue, self.choice]
        self.queue = [other for other in left if other.key() != choice.key()]
        self.choice = choice

    def state(self) -> Tuple[Any, ...]:
        """Return what is decided, for `set_state`."""
        return (
            self.choice,
            list(self.queue),
            self.pinned,
            self.plan,
            dict(self.children),
        )

    def set_state(self, state: Tuple[Any, ...]) -> None:
        """Return to a state."""
        self.choice, queue, self.pinned, self.plan, children = state
        self.queue, self.children = list(queue), dict(children)

    def offer(self, choices: Sequence[Choice]) -> None:
        """Note values that deserve a case of their own."""
        if self.plan.closed:
            return
        known = {choice.key() for choice in self.alternatives}
        for choice in choices:
            if choice.key() not in known:
                known.add(choice.key())
                self.alternatives.append(choice)

    @property
    def inside(self) -> bool:
        """Return whether it is part of a container or object, rather than an argument."""
        return self.parent is not None and self.parent.choice.kind not in (INSTANCE, FIELDS)

    @property
    def name(self) -> str:
        """The last part of its path that is a name; list elements have that of the list."""
        for part in reversed(self.path):
            if not part.isdigit():
                return part
        return ""

    @property
    def label(self) -> str:
        """Its path as an expression: `params['norm']['scale']`, `cfg.pool`."""
        text = self.path[0] if self.path else ""
        above = [self]
        while above[-1].parent is not None:
            above.append(above[-1].parent)
        for node in reversed(above[:-1]):
            last = node.path[-1]
            kind = node.parent.choice.kind if node.parent else DICT
            if kind in (INSTANCE, FIELDS) or (node.parent and node.parent.attributes):
                text += "." + last
            else:
                text += "[{}]".format(last if last.isdigit() else repr(last))
        return text

    def walk(self) -> List["Node"]:
        """Return the node and all nodes in use below it."""
        found = [self]
        for name, child in self.children.items():
            if self.in_use(name):
                found += child.walk()
        return found

    def in_use(self, name: str) -> bool:
        """Return whether a child is part of the current choice."""
        kind = self.choice.kind
        if kind in (LIST, TUPLE, TREE):
            return name.isdigit() and int(name) < self.count()
        if kind == DICT and self.choice.value is not None:
            return name in self.choice.value
        return kind in (DICT, INSTANCE, FIELDS)

    @property
    def is_tree(self) -> bool:
        """Return whether it is a tree of arrays of known structure."""
        return self.choice.kind == TREE

    @property
    def in_tree(self) -> bool:
        """Return whether it is an array of such a tree."""
        return self.parent is not None and self.parent.is_tree

    def count(self) -> int:
        """Return the number of elements of a list or tuple, of leaves of a tree."""
        wanted = self.choice.value
        if isinstance(wanted, Tree):
            return len(wanted.leaves)
        return wanted if isinstance(wanted, int) else len(wanted)
