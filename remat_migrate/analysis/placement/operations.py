"""What a call runs, and what it computes: products, softmaxes, elementwise functions, in order.

The order tells a head, whose softmax follows its last product, from an attention block. The number
of operations estimates how many arrays the backward pass needs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Literal

from ...libraries.apis import TRACED_BODIES
from ..names.module import FunctionNode, Module, own_nodes
from ..project import Project
from ..sites.calls import apply_functions, resolved, values_through_callers
from ..values.evaluator import targets_of
from ..values.values import (
    Applied,
    Bound,
    Class,
    Constant,
    External,
    Function,
    Instance,
    Parameter,
    Partial,
    Result,
    Value,
    Values,
    Wrapped,
    is_transformed,
    layers,
    order,
    underlying,
)

Kind = Literal["product", "softmax", "loss", "elementwise", "broadcast", "draw", "unknown"]

# Functions by the last part of the name. These keep no arrays for the backward pass: sums, and the
# state of a Flax module.
_LINEAR = frozenset(
    {
        "sum", "mean", "max", "min", "nansum", "nanmean", "average", "any", "all", "asarray",
        "array", "astype", "reshape", "ravel", "squeeze", "transpose", "subtract", "add",
        "float32", "stack", "real", "item", "float", "len", "tuple", "list", "dict", "one_hot",
        "take_along_axis", "argmax", "argmin", "stop_gradient", "flatten", "swapaxes",
        "param", "variable", "make_rng", "sow", "perturb", "is_initializing", "split", "fold_in",
        "key", "PRNGKey", "tree_leaves", "leaves", "tree_flatten", "unflatten", "ravel_pytree",
    }
)  # fmt: skip
# Those that keep few, where nothing but the name is known.
_SMALL = frozenset(
    {
        "vdot", "square", "abs", "absolute", "where", "sqrt", "log", "log1p", "exp", "tanh", "var",
        "expand_dims", "l2_loss", "squared_error", "multiply", "divide", "norm",
        "clip", "maximum", "minimum", "power", "set", "std", "prod", "cumsum", "conj", "round",
    }
)  # fmt: skip
_PRODUCTS = frozenset(
    {
        "dot", "matmul", "einsum", "tensordot", "dot_general", "conv", "conv_general_dilated",
        "conv_general_dilated_local", "conv_transpose", "conv_with_general_padding", "inner",
        "outer", "kron", "dot_product_attention", "convolve", "correlate", "ragged_dot",
    }
)  # fmt: skip
# Those that run a function that they are given.
_RUNS = frozenset(
    {
        "scan", "map", "fori_loop", "while_loop", "cond", "switch", "associative_scan", "vectorize",
        "apply_along_axis", "apply_over_axes", "piecewise", "custom_root", "custom_linear_solve",
        "reduce", "reduce_window", "filter", "eval", "exec", "tree_map", "tree_reduce",
        "map_with_path", "tree_map_with_path", "tree_multimap",
    }
)  # fmt: skip
# Functions of libraries that run a function in a compiled loop.
_COMPILED_LOOPS = frozenset({"scan", "map", "fori_loop", "while_loop", "associative_scan"})
# Those that keep an array as large as the logits beside them; those that keep only one, which its
# gradient replaces; and, among all, those that keep two, such as a term for each class.
_SOFTMAX = re.compile(r"soft(max|plus)|log_sigmoid|cross_entropy|^exp$")
_LOSS = re.compile(r"log(sumexp|addexp)|integer_labels$")
_TWO = re.compile(r"sigmoid_|log_sigmoid|softplus|huber|cosh|cosine|focal|divergence")
# What selects or adds up: its result is small beside its argument.
_REDUCTIONS = frozenset({"sum", "mean", "max", "min", "average", "squeeze", "take_along_axis"})
_BROADCAST = frozenset(
    {"broadcast_to", "broadcast_arrays", "broadcast_in_dim", "expand_dims", "meshgrid", "outer",
     "repeat", "tile", "kron"}
)  # fmt: skip
_LIBRARIES = (
    "jax.", "numpy.", "optax.", "flax.linen.", "flax.nnx.", "haiku.", "equinox.", "einops.",
    "math.", "operator.", "chex.", "typing.", "functools.",
)  # fmt: skip
_LAYERS = re.compile(r"(?:flax|haiku|equinox)\..*(?:Dense|Linear|Conv|Attention|Einsum|MLP|RNN)")
_STACKS = re.compile("Attention|MLP|RNN")
_LIGHT_LAYERS = re.compile(r"(?:flax|haiku|equinox)\..*(?:Norm|Dropout|Embed|Identity|Pool)")
_CONTAINER_METHODS = frozenset((*dir(list), *dir(dict), *dir(str), *dir(set)))
# A function wrapped in one of these does the same work, unlike one in a derivative or a rule.
SAME_WORK = frozenset(
    {
        "jax.jit", "jax.pmap", "jax.vmap", "jax.named_call", "jax.shard_map",
        "jax.experimental.shard_map.shard_map", "jax.experimental.pjit.pjit",
        "equinox.filter_jit", "equinox.filter_vmap", "equinox.filter_pmap", "haiku.jit",
        "haiku.vmap", "haiku.named_call", "flax.nnx.jit", "flax.linen.jit", "haiku.transform",
        "haiku.transform_with_state", "haiku.without_apply_rng",
    }
)  # fmt: skip

_LOOPS = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.GeneratorExp
# How many iterations a loop is taken to have, and how many operations unknown code.
_ITERATIONS = 4
_UNKNOWN = 50
_MOST = 500
# What a call returns that does no work: the function that is called, or a module.
_MADE = Applied | Partial | Instance | Wrapped | Function
# How many calls deep functions are followed.
DEPTH = 20


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that a call or an operator computes.

    Attributes:
        kind: what it is.
        node: the call or operator in the function that was asked about.
        weight: how many arrays the backward pass may need for it.
        checkpoint: the outermost checkpoint that it runs in.
        function: the function that runs it, of a module that may matter.
    """

    kind: Kind
    node: ast.AST
    weight: int = 1
    checkpoint: Applied | None = None
    function: FunctionNode | None = None

    @property
    def is_work(self) -> bool:
        """Whether it is more than a reduction or an elementwise function, or may be."""
        return self.kind in ("product", "unknown")


class Operations:
    """What the calls of a project run, and what its functions compute."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.evaluator = project.evaluator
        self._known: dict[FunctionNode, tuple[Operation, ...]] = {}
        self._callees: dict[ast.Call, Values] = {}

    def callees(self, module: Module, call: ast.Call) -> Values:
        """Return what a call may run: of a module or a model, its `__call__`.

        Parameters stand for what callers pass, and `state.apply_fn` for what the project's training
        states receive.
        """
        if call not in self._callees:
            self._callees[call] = frozenset()  # of a recursion
            values = self.evaluator.values(module, call.func)
            match call.func:
                case ast.Attribute(attr="apply_fn") if not values:
                    values = self.project.once(apply_functions)
                case method if not values:
                    values = values_through_callers(self.project, module, method)
            if not any(keyword.arg == "method" for keyword in call.keywords):
                values = self.run_by(values)
            self._callees[call] = values
        return self._callees[call]

    def run_by(self, values: Iterable[Value], above: tuple[Parameter, ...] = ()) -> Values:
        """Return what calling one of some values runs.

        `above` are the parameters that are being resolved: what a recursion passes to itself stays
        one, as in `def f(g, n): return g if n == 0 else f(jax.grad(g), n - 1)`.
        """
        found = frozenset(inner for value in values for inner in self._run_by(value, above))
        known = frozenset(
            v for v in found if not isinstance(underlying(v), Parameter | Constant | Result)
        )
        return known or found

    def _run_by(self, value: Value, above: tuple[Parameter, ...]) -> Iterable[Value]:
        match value:
            case Parameter() if value not in above:
                passed = resolved(self.project, value)
                plain = frozenset(v for v in passed if isinstance(v, Parameter))
                return plain | self.run_by(passed - plain, (*above, value))
            case Applied(target=func) if func is not None:
                return {replace(value, target=inner) for inner in self._run_by(func, above)}
            case Wrapped(func=func) | Partial(func=func):
                return {replace(value, func=inner) for inner in self._run_by(func, above)}
            case Bound(func=External(name), receiver=Instance() as model) if name.endswith(
                ".apply"
            ):
                return self._run_by(model, above)
            case Instance(cls=Class()):
                return self.evaluator.attribute(value, "__call__") or {value}
            case Instance(cls=Applied() | Wrapped() as inner):
                return self._run_by(inner, above) if is_transformed(value) else {inner}
        return {value}

    def applied_by(self, module: Module, call: ast.Call) -> Applied | None:
        """Return the checkpoint that a call runs; None if it may run something else.

        `if remat: f = jax.checkpoint(f)` may leave it out.
        """
        if any(isinstance(v, Instance | Applied) for v in self.project.values(module, call)):
            return None  # a checkpointed class is instantiated, not run
        found: dict[ast.expr, Applied] = {}
        plain: set[FunctionNode] = set()
        wrapped: set[FunctionNode] = set()
        for value in sorted(self.callees(module, call), key=order):
            applied = outer_checkpoint(value)
            inside = {t.function.node for t in targets_of(self.evaluator, value)}
            if applied is not None:
                found[applied.node] = applied
                wrapped |= inside
            elif not inside:
                return None
            else:
                plain |= inside
        return next(iter(found.values())) if len(found) == 1 and plain <= wrapped else None

    def works(self, module: Module, node: ast.AST) -> bool:
        """Return whether an expression is a product, or a call that may compute one."""
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.MatMult)
        if not isinstance(node, ast.Call):
            return False
        return any(o.is_work or o.checkpoint for o in self.of_call(module, node))

    def is_loop(self, module: Module, call: ast.Call) -> bool:
        """Return whether a call runs a loop that is compiled."""
        return any(
            getattr(one, "name", getattr(one, "how", "")).rpartition(".")[2] in _COMPILED_LOOPS
            for value in self.callees(module, call)
            for one in layers(value)
            if isinstance(one, External | Wrapped)
        )

    def of(self, function: Function, depth: int = 0) -> tuple[Operation, ...]:
        """Return the operations of a function, with those of the functions that it calls."""
        node = function.node
        if node not in self._known:
            if depth > DEPTH:
                return (Operation("unknown", node, _UNKNOWN),)
            self._known[node] = ()  # of a recursion
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            found = self._of_nodes(function.module, body, depth)
            found = islice(found, _MOST)
            if function.module.source.path in self.project.modules:
                found = (o if o.function else replace(o, function=node) for o in found)
            self._known[node] = tuple(found)
        return self._known[node]

    def after(self, function: Function, call: ast.Call) -> list[Operation]:
        """Return the operations of a function on the result of one of its calls.

        Leaves out what is returned beside the first result, such as metrics, and what is computed
        from a small part of the result. Noise that is drawn in the function may be subtracted from
        the result, and is kept beside it.
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
        later = found[places[-1] + 1 :] if places else ()
        after = [
            *(o for o in found if o.kind == "draw" and places),
            *(o for o in later if o.kind != "draw" and _reads(o.node, call, derived)),
        ]
        return [operation for operation in after if operation.node not in beside]

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
                yield from self.of_call(module, node, depth)

    def of_call(self, module: Module, call: ast.Call, depth: int = 0) -> Iterator[Operation]:
        """Return the operations that a call runs; each has the call as its node."""
        made = self.project.values(module, call)
        if made and all(isinstance(value, _MADE) for value in made):
            return
        values = self.callees(module, call)
        found = (
            self._of_name(call)
            if not values
            else chain.from_iterable(
                self.of_value(value, (module, call), depth) for value in sorted(values, key=order)
            )
        )
        yield from (replace(operation, node=call) for operation in found)

    def of_value(
        self, value: Value | None, place: tuple[Module, ast.Call] | None = None, depth: int = 0
    ) -> Iterator[Operation]:
        """Return the operations that calling a value runs, where the call is known at a place."""
        functions = [target.function for target in targets_of(self.evaluator, value)]
        found: Iterable[Operation]
        if functions:
            found = chain.from_iterable(self.of(function, depth + 1) for function in functions)
        else:
            found = self._of_library(underlying(value), place, depth)
        around = list(layers(value))
        if any(isinstance(one, Wrapped) and one.how.endswith(".scan") for one in around):
            found = _repeated(found)
        own = next((one for one in around if isinstance(one, Applied)), None)
        if own is None:
            yield from found
        elif inside := list(found):
            yield from (replace(operation, checkpoint=own) for operation in inside)
        else:
            yield Operation("elementwise", own.node, 1, own)

    def _of_library(
        self, value: Value | None, place: tuple[Module, ast.Call] | None, depth: int
    ) -> Iterator[Operation]:
        """Return the operations of a function or layer of a library."""
        node: ast.AST = place[1] if place is not None else ast.Pass()
        unknown = Operation("unknown", node, _UNKNOWN)
        match value:
            # Of a layer that is wrapped by its class, the class.
            case Instance(cls=External(name)) | External(name) if _LAYERS.match(name):
                yield Operation("product", node, _ITERATIONS if _STACKS.search(name) else 1)
            case Instance(cls=External(name)):
                yield Operation("elementwise", node) if _LIGHT_LAYERS.match(name) else unknown
            case External(name):
                last = name.rpartition(".")[2]
                if last in _RUNS and place is not None:
                    given = self._given(place, TRACED_BODIES.get(name, (0,)))
                    found = chain.from_iterable(self.of_value(v, None, depth) for v in given)
                    yield from _repeated(found) if last in _COMPILED_LOOPS else found
                elif name.startswith("builtins."):
                    return
                elif ".linalg." in name or ".fft." in name:
                    yield Operation("product", node)
                elif name.startswith("jax.random.") and last not in _LINEAR:
                    yield Operation("draw", node)
                elif name.startswith(_LIBRARIES):
                    yield from _of_function(last, node, Operation("elementwise", node))
                else:
                    yield from _of_function(last, node, unknown)
            case _:
                yield unknown

    def _given(
        self, place: tuple[Module, ast.Call], positions: Iterable[int]
    ) -> Iterator[Value | None]:
        """Yield the functions that a call passes at some positions; None for what is not known."""
        module, call = place
        for position in positions:
            values: Values = frozenset()
            if position < len(call.args):
                values = self.run_by(self.project.values(module, call.args[position]))
            yield from sorted(values, key=order) or (None,)

    def _of_name(self, call: ast.Call) -> Iterator[Operation]:
        """Return the operations of a call of which nothing but the name is known."""
        unknown = Operation("unknown", call, _UNKNOWN)
        match call.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                if name in _CONTAINER_METHODS and isinstance(call.func, ast.Attribute):
                    return
                other = Operation("elementwise", call) if name in _SMALL else unknown
                yield from _of_function(name, call, other)
            case _:
                yield unknown


def _of_function(name: str, node: ast.AST, other: Operation) -> Iterator[Operation]:
    """Return the operations of a function by its name; `other` if that does not tell."""
    if name in _BROADCAST:
        yield Operation("broadcast", node, 0)
    elif _LOSS.search(name):
        yield Operation("loss", node)
    elif _SOFTMAX.search(name):
        yield Operation("softmax", node, 2 if _TWO.search(name) else 1)
    elif name in _PRODUCTS:
        yield Operation("product", node)
    elif name not in _LINEAR:
        yield replace(other, weight=2) if _TWO.search(name) and other.weight == 1 else other


def outer_checkpoint(value: Value) -> Applied | None:
    """Return the checkpoint that calling a value runs, and nothing else."""
    value = doing_the_work(value)
    return value if isinstance(value, Applied) else None


def doing_the_work(value: Value) -> Value:
    """Return a value without partials and transformations around it that do no other work."""
    while isinstance(value, Partial | Bound) or (
        isinstance(value, Wrapped) and value.how in SAME_WORK
    ):
        value = value.func
    return value


def is_head(operations: Sequence[Operation], of: Collection[str] = ("softmax", "loss")) -> bool:
    """Return whether operations end with a softmax of a product, or may do so."""
    products = [i for i, operation in enumerate(operations) if operation.kind == "product"]
    rest = operations[products[-1] + 1 :] if products else operations
    wanted = of if products else ("broadcast",)
    return any(operation.kind in (*wanted, "unknown") for operation in rest)


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


def _reads(node: ast.AST, call: ast.AST, names: set[str]) -> bool:
    """Return whether an expression reads the result of a call, or a name, and not only a small part
    of it: one column or a sum."""
    if node is call or (isinstance(node, ast.Name) and node.id in names):
        return True
    parts = () if _is_reduction(node) else ast.iter_child_nodes(node)
    return any(_reads(part, call, names) for part in parts)


def _is_reduction(node: ast.AST) -> bool:
    """Return whether an expression is small beside an array in it: a sum, `x[:, 0]`."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _REDUCTIONS
        case ast.Subscript(slice=ast.Tuple(elts=indices)):
            return any(
                isinstance(part, ast.Constant) and isinstance(part.value, int)
                for index in indices
                if not isinstance(index, ast.Slice)
                for part in ast.walk(index)
            )
    return False


def _repeated(operations: Iterable[Operation]) -> Iterator[Operation]:
    return (replace(one, weight=one.weight * _ITERATIONS) for one in operations)


def _adds_axis(module: Module, node: ast.Subscript) -> bool:
    """Return whether `x[:, None]` may be broadcast; `labels[:, None]` selects elements."""
    match module.parent(node):
        case ast.Call(func=ast.Name(id="take_along_axis") | ast.Attribute(attr="take_along_axis")):
            return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(part, ast.Constant) and part.value is None for part in parts)
