"""What a function computes, in order of evaluation: products, softmaxes, elementwise functions.

The order tells a head, whose softmax follows its last product, from an attention block. The number
of operations estimates how many arrays the backward pass needs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..values.callees import targets_of
from ..values.evaluator import Evaluator
from ..values.values import External, Function, Instance
from .call_graph import own_nodes
from .workload import COMPILED_LOOPS, DEPTH, HEAVY, LINEAR, callees, makes_function

Kind = Literal["product", "softmax", "elementwise", "broadcast", "unknown"]

_SOFTMAX = re.compile(
    r"soft(max|plus)|log(sumexp|addexp|_sigmoid)|cross_entropy|^exp$|_integer_labels"
)
_BROADCAST = frozenset(
    {"broadcast_to", "broadcast_arrays", "broadcast_in_dim", "expand_dims", "meshgrid", "outer",
     "repeat", "tile", "kron"}
)  # fmt: skip
_LAYERS = re.compile(r"(?:flax|haiku|equinox)\..*(?:Dense|Linear|Conv|Attention|Einsum|MLP|RNN)")
_LOOPS = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.GeneratorExp
# How many iterations a loop is taken to have, and how many operations unknown code.
_ITERATIONS = 4
_UNKNOWN = 50
_MOST = 2000


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that a call or an operator computes.

    Attributes:
        kind: what it is.
        node: the call or operator in the function that was asked about.
        weight: how many arrays the backward pass may need for it.
    """

    kind: Kind
    node: ast.AST
    weight: int = 1


class Operations:
    """What the functions of a project compute."""

    def __init__(self, project: Project) -> None:
        self._evaluator: Evaluator = project.evaluator
        self._known: dict[FunctionNode, tuple[Operation, ...]] = {}

    def of(self, function: Function, depth: int = 0) -> tuple[Operation, ...]:
        """Return the operations of a function, with those of the functions that it calls."""
        node = function.node
        if node not in self._known:
            self._known[node] = ()  # of a recursion
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            found = self._of_nodes(function.module, body, depth)
            self._known[node] = tuple(islice(found, _MOST))
        return self._known[node]

    def after(self, function: Function, call: ast.Call) -> list[Operation]:
        """Return the operations of a function on the result of one of its calls.

        Leaves out what is returned beside the first result, such as metrics.
        """
        found = self.of(function)
        places = [i for i, operation in enumerate(found) if operation.node is call]
        derived = _made_from(function.node, call)
        beside = {
            part
            for node in own_nodes(function.node)
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple)
            for other in node.value.elts[1:]
            for part in ast.walk(other)
        }
        return [
            operation
            for operation in (found[places[-1] + 1 :] if places else ())
            if operation.node not in beside and _reads(operation.node, call, derived)
        ]

    def _of_nodes(
        self, module: Module, nodes: Iterable[ast.AST], depth: int
    ) -> Iterator[Operation]:
        for node in nodes:
            yield from self._of_node(module, node, depth)

    def _of_node(self, module: Module, node: ast.AST, depth: int) -> Iterator[Operation]:
        if isinstance(node, FunctionNode | ast.ClassDef):
            return
        inner = self._of_nodes(module, ast.iter_child_nodes(node), depth)
        yield from _repeated(inner) if isinstance(node, _LOOPS) else inner
        match node:
            case ast.BinOp(op=ast.MatMult()):
                yield Operation("product", node)
            case ast.BinOp(op=ast.Pow()):
                yield Operation("elementwise", node)
            case ast.Subscript(ctx=ast.Load()) if _adds_axis(module, node):
                yield Operation("broadcast", node, 0)
            case ast.Call():
                for operation in self._of_call(module, node, depth):
                    yield Operation(operation.kind, node, operation.weight)

    def _of_call(self, module: Module, call: ast.Call, depth: int) -> Iterator[Operation]:
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        values = callees(self._evaluator, module, call)
        functions = {t.function for v in values for t in targets_of(self._evaluator, v)}
        if functions:
            for function in functions if depth < DEPTH else ():
                yield from self.of(function, depth + 1)
        elif name in _BROADCAST:
            yield Operation("broadcast", call, 0)
        elif _SOFTMAX.search(name):
            yield Operation("softmax", call)
        elif f".{name}" in COMPILED_LOOPS:
            for arg in call.args:
                for value in self._evaluator.values(module, arg):
                    for target in targets_of(self._evaluator, value) if depth < DEPTH else ():
                        yield from _repeated(self.of(target.function, depth + 1))
        elif name in HEAVY or any(_is_layer(value) for value in values):
            yield Operation("product", call)
        elif name not in LINEAR and not makes_function(self._evaluator, module, call):
            library = all(isinstance(value, External) for value in values)
            of_array = not values and isinstance(call.func, ast.Attribute) and name != "apply"
            known = (values and library) or of_array
            yield Operation("elementwise", call) if known else Operation("unknown", call, _UNKNOWN)


def is_head(operations: Sequence[Operation]) -> bool:
    """Return whether operations end with a softmax of a product, or may do so."""
    products = [i for i, operation in enumerate(operations) if operation.kind == "product"]
    rest = operations[products[-1] + 1 :] if products else operations
    wanted = ("softmax", "unknown") if products else ("broadcast", "unknown")
    return any(operation.kind in wanted for operation in rest)


def weight(operations: Iterable[Operation]) -> int:
    """Return about how many arrays the backward pass needs for operations."""
    return sum(operation.weight for operation in operations)


def _made_from(function: FunctionNode, call: ast.Call) -> set[str]:
    """Return the local names that hold the result of a call, or something made from it."""
    names: set[str] = set()
    assigned = [n for n in own_nodes(function) if isinstance(n, ast.Assign | ast.AugAssign)]
    for statement in sorted(assigned, key=lambda n: n.lineno):
        if _reads(statement.value, call, names):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return names


def _reads(node: ast.AST, call: ast.Call, names: set[str]) -> bool:
    return any(
        part is call or (isinstance(part, ast.Name) and part.id in names) for part in ast.walk(node)
    )


def _repeated(operations: Iterable[Operation]) -> list[Operation]:
    return list(islice(operations, _MOST // _ITERATIONS)) * _ITERATIONS


def _is_layer(value: object) -> bool:
    return (
        isinstance(value, Instance)
        and isinstance(value.cls, External)
        and _LAYERS.match(value.cls.name) is not None
    )


def _adds_axis(module: Module, node: ast.Subscript) -> bool:
    """Return whether `x[:, None]` may be broadcast; `labels[:, None]` selects elements."""
    match module.parent(node):
        case ast.Call(func=ast.Name(id="take_along_axis") | ast.Attribute(attr="take_along_axis")):
            return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(part, ast.Constant) and part.value is None for part in parts)
