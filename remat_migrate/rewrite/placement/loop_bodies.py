"""Putting a checkpoint on the body of a loop of JAX.

jax.lax.scan(body, x, xs)  ->  jax.lax.scan(jax.checkpoint(body, prevent_cse=False), x, xs)
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from ...analysis import Module, Project
from ...analysis.libraries.apis import TRACED_BODIES
from ...analysis.statics.project_needs import project_needs
from ...analysis.values.bind import positional_parameters
from ...analysis.values.callees import layers, targets_of, underlying
from ...analysis.values.values import Applied, External, Function, Value
from ...codemod.changes import Change, Code, Decorate, Replace
from ..flax_names import is_flax_class, names_of_instances
from ..imports import written
from ..refusal import Refused
from .callees import api_of_instance, may_lack_hash, receiver_of, uses_haiku
from .hazards import check_hazards

_JAX = "jax.checkpoint"
_FLAX_SCAN = External("flax.linen.scan")


def wrap_body(
    project: Project,
    module: Module,
    call: ast.Call,
    body: ast.expr,
    options: Sequence[str] = (),
    *,
    checkpoint: str = "jax.checkpoint",
) -> list[Change]:
    """Put a checkpoint on the body of `jax.lax.scan` and the like.

    With `prevent_cse=False` where the loop is one of the compiler: not unrolled, not of one turn.

    Args:
        project: the project.
        module: where the loop stands.
        call: the call of the loop.
        body: the argument that is its body.
        options: options of the checkpoint besides that, as `name=value`.
        checkpoint: the Api of JAX to use, by qualified name.

    Raises:
        Refused: what the body is cannot be told, or it is checkpointed already.
    """
    if not module.editable:
        raise Refused("the loop stands in a file that is not to be changed", module, call)
    values = project.values(module, body)
    if any(
        isinstance(underlying(v), External) and underlying(v) == _FLAX_SCAN
        for v in project.values(module, call.func)
    ):
        return _flax_body(project, module, call, body)
    api = _JAX
    for value in values:
        if any(isinstance(layer, Applied) for layer in layers(value)):
            raise Refused("the body is checkpointed already", module, body)
        receiver = receiver_of(value)
        if receiver is not None:
            if is_flax_class(project, receiver):
                raise Refused(
                    "the body is a method of a Flax module: `nn.remat` goes around it in `nn.scan`",
                    module,
                    body,
                )
            api = api_of_instance(project, receiver, module, call) or api
        for target in targets_of(project.evaluator, value):
            if uses_haiku(project, target.function, set()):
                api = "haiku.remat"
            check_hazards(project, target.function, own_arguments=True)
    if not values and not isinstance(body, ast.Lambda):
        raise Refused("what the body is cannot be seen", module, body)
    own = ["prevent_cse=False"] if is_real_loop(call) else []
    given = "".join(f", {option}" for option in (*options, *own))
    decorated = _only_here(project, module, body)
    place: ast.expr | ast.stmt = decorated or body
    reference = written(project, module, checkpoint if api == _JAX else api, place)
    name, imports = reference.text, reference.changes
    if decorated is not None:
        if not given:
            return [Decorate(module, decorated, Code(name)), *imports]
        partial = written(project, module, "functools.partial", decorated)
        code = Code(f"{partial.text}({name}{given})")
        return [Decorate(module, decorated, code), *imports, *partial.changes]
    code = Code.of(f"{name}({{body}}{given})", body=body)
    if may_lack_hash(project, values):
        names = _body_parameters(project, values)
        if names is None:
            raise Refused("the parameters of the body cannot be seen", module, body)
        code = Code.of(f"{name}(lambda {names}: {{body}}({names}){given})", body=body)
    return [Replace(module, body, code), *imports]


def _flax_body(project: Project, module: Module, call: ast.Call, body: ast.expr) -> list[Change]:
    """`nn.scan(nn.remat(Block, prevent_cse=False))`, with names and flags as they were.

    Raises:
        Refused: what is scanned cannot be seen, or where its instances are made.
    """
    static: set[int] = set()
    values = project.values(module, body)
    for value in values:
        if any(isinstance(layer, Applied) for layer in layers(value)):
            raise Refused("the body is checkpointed already", module, body)
        functions = [target.function for target in targets_of(project.evaluator, value)]
        if not functions:
            raise Refused("what the body is cannot be seen", module, body)
        for function in functions:
            check_hazards(project, function, own_arguments=True)
            static |= _flags(project, function)
    if not values:
        raise Refused("what the body is cannot be seen", module, body)
    given = f", static_argnums={tuple(sorted(static))!r}" if static else ""
    if is_real_loop(call):
        given += ", prevent_cse=False"
    reference = written(project, module, "flax.linen.remat", body)
    code = Code.of(f"{reference.text}({{body}}{given})", body=body)
    return [
        Replace(module, body, code),
        *reference.changes,
        *names_of_instances(project, module, call),
    ]


def _flags(project: Project, function: Function) -> set[int]:
    """The places of the parameters that Python must know; `self`, or the module, is 0.

    Raises:
        Refused: the carry, or a parameter that is only given by keyword, is among them.
    """
    names = [parameter.arg for parameter in positional_parameters(function.node)]
    found: set[int] = set()
    for need in project_needs(project).of(function):
        if names[:1] == [need.parameter]:
            continue
        if need.parameter not in names[2:]:
            raise Refused(
                f"Python needs the value of `{need.parameter}`, which `nn.remat` would trace",
                function.module,
                function.node,
            )
        found.add(names.index(need.parameter))
    return found


def is_real_loop(call: ast.Call) -> bool:
    """Whether a scan is a loop of the compiled program: not unrolled, nor of one turn."""
    named = {k.arg: k.value for k in call.keywords}
    by_position = dict(enumerate(call.args))
    if None in named:
        return False
    unroll = named.get("unroll", by_position.get(5))
    length = named.get("length", by_position.get(3))
    # `unroll=True` is one turn, and equal to 1.
    if unroll is not None and ast.unparse(unroll) not in ("1", "False"):
        return False
    return not (isinstance(length, ast.Constant) and length.value == 1)


def _only_here(project: Project, module: Module, body: ast.expr) -> ast.FunctionDef | None:
    """The decorated function that a body names, if nothing else does."""
    if not isinstance(body, ast.Name):
        return None
    bindings = list(module.reaching(body))
    if len(bindings) != 1 or not isinstance(bindings[0].node, ast.FunctionDef):
        return None
    function = bindings[0].node
    if not function.decorator_list or module.scope_at(function).parent is None:
        return None
    uses = [
        n
        for n in module.nodes
        if isinstance(n, ast.Name)
        and n.id == body.id
        and isinstance(n.ctx, ast.Load)
        and any(b.node is function for b in module.reaching(n))
    ]
    return function if uses == [body] else None


def _body_parameters(project: Project, values: Collection[Value]) -> str | None:
    for value in values:
        for target in targets_of(project.evaluator, value):
            names = [p.arg for p in positional_parameters(target.function.node)[target.skip :]]
            return ", ".join(names)
    return None


def body_positions(project: Project, module: Module, call: ast.Call) -> tuple[int, ...]:
    """Where a call of a loop of JAX takes its bodies; nowhere if it is none."""
    for value in project.values(module, call.func):
        if isinstance(value, External) and value.name in TRACED_BODIES:
            return TRACED_BODIES[value.name]
    return ()
