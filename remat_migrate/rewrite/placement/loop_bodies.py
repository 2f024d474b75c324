"""Checkpoints the body of a JAX loop.

jax.lax.scan(body, x, xs)  ->  jax.lax.scan(jax.checkpoint(body, prevent_cse=False), x, xs)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...analysis import Module, Project
from ...analysis.sites.references import reference_to
from ...analysis.statics.arguments import project_needs
from ...analysis.values.bind import positional_parameters
from ...analysis.values.evaluator import targets_of
from ...analysis.values.values import External, Function, underlying
from ...codemod.changes import Change, Code, Replace
from ..checkpoint_code import CheckpointCode
from ..flax_names import kept_names
from ..refusal import Refused, check_own
from .callees import JAX, LINEN, NNX, library_apis, may_lack_hash, sole_api
from .hazards import check_hazards

_FLAX_SCAN = External("flax.linen.scan")


def wrap_body(
    project: Project,
    module: Module,
    call: ast.Call,
    body: ast.expr,
    options: Sequence[str] = (),
    *,
    checkpoint: str = JAX,
) -> list[Change]:
    """Return the changes that checkpoint the body of `jax.lax.scan` and similar loops.

    The checkpoint has `prevent_cse=False` if the loop remains one in the compiled program.

    Args:
        project: the project.
        module: the module of the loop.
        call: the call of the loop.
        body: the argument that is its body.
        options: further options of the checkpoint, as `name=value`.
        checkpoint: the Api of JAX to use, by qualified name.

    Raises:
        Refused: the body is unknown, or checkpointed already.
    """
    check_own(module, call, "the loop")
    values = project.values(module, body)
    apis = library_apis(project, module, body, values, "the body")
    targets = [t for value in values for t in targets_of(project.evaluator, value)]
    for target in targets:
        check_hazards(project, target.function, own_arguments=True)
    is_lifted = any(underlying(v) == _FLAX_SCAN for v in project.values(module, call.func))
    if not (targets if is_lifted else values or isinstance(body, ast.Lambda)):
        raise Refused("the body is unknown", module, body)
    written, named = list(options), list[Change]()
    if is_lifted:  # `nn.scan(nn.remat(Block, prevent_cse=False))`, with the same names
        api = LINEN
        if static := sorted({i for t in targets for i in _flags(project, t.function)}):
            written.append(f"static_argnums={tuple(static)!r}")
        named += kept_names(project, module, call)
    else:
        api = sole_api(apis, module, body)
        if api in (LINEN, NNX):
            reason = "the body is a method of a Flax module: wrap it in `nn.remat` in `nn.scan`"
            raise Refused(reason, module, body)
        if may_lack_hash(project, values):
            raise Refused("the body is an object that may lack a hash", module, body)
    if is_real_loop(call):
        written.append("prevent_cse=False")
    reference = reference_to(module, project, checkpoint if api == JAX else api, body)
    code = CheckpointCode(reference.text, tuple(written)).around("{body}")
    return [Replace(module, body, Code.of(code, body=body)), *reference.changes, *named]


def _flags(project: Project, function: Function) -> set[int]:
    """Return the indices of the parameters that must be concrete; `self`, or the module, is 0."""
    names = [parameter.arg for parameter in positional_parameters(function.node)]
    found: set[int] = set()
    for need in project_needs(project).of(function):
        if names[:1] == [need.parameter]:
            continue
        if need.parameter not in names[2:]:
            reason = f"`{need.parameter}` must be concrete, and `nn.remat` would trace it"
            raise Refused(reason, function.module, function.node)
        found.add(names.index(need.parameter))
    return found


def is_real_loop(call: ast.Call) -> bool:
    """Return whether a scan is a loop of the compiled program: not unrolled, nor of one step."""
    named = {k.arg: k.value for k in call.keywords}
    by_position = dict(enumerate(call.args))
    if None in named:
        return False
    unroll = named.get("unroll", by_position.get(5))
    length = named.get("length", by_position.get(3))
    # `unroll=True` makes it one step, and is equal to 1.
    if unroll is not None and ast.unparse(unroll) not in ("1", "False"):
        return False
    return not (isinstance(length, ast.Constant) and length.value == 1)
