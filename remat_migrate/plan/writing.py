"""Write the checkpoint of one stage: find its statement, and what of it is the stage."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..analysis import Module, Project
from ..analysis.sites.references import reference_to
from ..analysis.statics.arguments import argument_kind
from ..analysis.values.bind import argument
from ..analysis.values.values import External, Function, Instance, Wrapped
from ..codemod import changes as codemod
from ..libraries.transforms import Loop
from ..measure.worker.records import BODY
from ..measure.worker.schedules import sizes_of
from ..rewrite.placement import (
    in_segments,
    wrap_body,
    wrap_call,
    wrap_expression,
    wrap_group,
)
from ..rewrite.refusal import Refused
from .chain import GROUP
from .plan import StageDecision

# `x = x + f(x)`: a sum has no residuals, so that all residuals of the line are those of the call.
_SUMS = ast.Add | ast.Sub
_NO_RESIDUALS = ast.Name | ast.Attribute | ast.Constant
_SCAN = "flax.linen.scan"
# What to write instead of `scan_in_segments`, where a library runs the loop.
_ADVICE = {
    "flax": "nest `nn.scan(nn.remat(nn.scan(...)))`, or use `nn.remat_scan` for layers",
    "haiku": "nest `hk.scan` around `hk.remat` of `hk.scan`",
    "equinox": 'use `equinox.internal.scan(..., kind="checkpointed")`',
    "diffrax": "use `RecursiveCheckpointAdjoint`",
}


def statement_on(module: Module, line: int, function: str) -> ast.stmt:
    """Return the simple statement on a line of a function.

    Raises:
        Refused: there is none, or another function runs the line.
    """
    found = [
        node
        for node in module.nodes
        if isinstance(node, ast.stmt)
        and not hasattr(node, "body")
        and not isinstance(node, ast.Match)
        and node.lineno <= line <= (node.end_lineno or line)
    ]
    if len(found) != 1:
        raise Refused("the line is not one statement that runs the stage")
    around = module.enclosing_function(found[0])
    if getattr(around, "name", None) != function.rpartition(".")[2]:
        # A lambda or a comprehension runs the stage.
        raise Refused("the line runs the stage in an expression: write it as a statement")
    return found[0]


def checkpointed(
    project: Project,
    stage: StageDecision,
    module: Module,
    statements: tuple[ast.stmt, ...],
) -> list[codemod.Change]:
    """Return the changes that write the checkpoint of a stage, or of a group of stages.

    Args:
        project: the project without its current checkpoints.
        stage: the decision.
        module: the module of the stage.
        statements: the statement of each stage of the group, or of the only stage.

    Raises:
        Refused: it cannot be written.
    """
    options: list[str] = []
    imports: tuple[codemod.Change, ...] = ()
    if stage.policy is not None:
        policies = reference_to(module, project, "jax.checkpoint_policies", statements[0])
        options.append(f"policy={policies.text}.{stage.policy}")
        imports = policies.changes
    if stage.decision == GROUP:
        return [*imports, *wrap_group(project, module, statements, options)]
    [statement] = statements
    value = _value(statement)
    if sizes := sizes_of(stage.decision):
        return in_segments(project, module, *_loop(project, module, value), sizes)
    if stage.decision == BODY:
        return [*imports, *_on_body(project, module, value, options)]
    return [*imports, *_on_value(project, module, value, options)]


def names_in(policy: str | None) -> tuple[str, ...]:
    """Return the names in a policy such as `save_only_these_names("queries")`."""
    tree = ast.parse(policy or "None", mode="eval")
    parts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return tuple(dict.fromkeys(part for part in parts if isinstance(part, str)))


def named(project: Project, module: Module, statement: ast.stmt, name: str) -> list[codemod.Change]:
    """Return the changes that name what a statement assigns, for policies that save names.

    Raises:
        Refused: it assigns to no single variable.
    """
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value):
            function = reference_to(module, project, "jax.ad_checkpoint.checkpoint_name", value)
            code = codemod.Code.of(f'{function.text}({{value}}, "{name}")', value=value)
            return [codemod.Replace(module, value, code), *function.changes]
    raise Refused("a value to save by name is not assigned to a variable", module, statement)


def _on_body(
    project: Project, module: Module, value: ast.expr, options: list[str]
) -> list[codemod.Change]:
    for call, body in _loops(project, module, value):
        if body is not None:
            return wrap_body(project, module, call, body, options)
    for call in (node for node in _run_by(value) if isinstance(node, ast.Call)):
        for found in project.values(module, call.func):
            cls = found.cls if isinstance(found, Instance) else None
            if isinstance(cls, Wrapped) and cls.how == _SCAN and isinstance(cls.node, ast.Call):
                if cls.node.args:
                    own = cls.module
                    return wrap_body(project, own, cls.node, cls.node.args[0], options)
    # A loop of another library, such as `hk.experimental.layer_stack(6)(body)(x)`.
    passed = [
        (call, given)
        for call in _run_by(value)
        if isinstance(call, ast.Call)
        for given in call.args
        if any(isinstance(each, Function) for each in project.values(module, given))
    ]
    if len(passed) != 1:
        raise Refused("the line does not run a loop with one visible body")
    return wrap_body(project, module, *passed[0], options)


def _loops(
    project: Project, module: Module, value: ast.expr
) -> Iterator[tuple[ast.Call, ast.expr | None]]:
    """Yield the calls of loops on a line, with the body unless they unpack their arguments."""
    for call in _run_by(value):
        if isinstance(call, ast.Call):
            for found in project.values(module, call.func):
                name = found.name if isinstance(found, External) else ""
                loop = project.evaluator.transforms.find(name)
                if isinstance(loop, Loop) and not loop.factory:
                    where = loop.parameter, loop.position
                    unpacks = any(isinstance(each, ast.Starred) for each in call.args)
                    yield call, None if unpacks else argument(call.args, call.keywords, *where)


def _loop(project: Project, module: Module, value: ast.expr) -> tuple[ast.Call, ast.expr | None]:
    """Return the only loop that a line runs, and its body."""
    found = list(_loops(project, module, value))
    if len(found) == 1:
        return found[0]
    reason = "the loop is not a call of `jax.lax.scan` or `fori_loop` on this line"
    advice = (text for name, text in _ADVICE.items() if name in module.source.text)
    raise Refused("; ".join((reason, *advice)))


def _on_value(
    project: Project, module: Module, value: ast.expr, options: list[str]
) -> list[codemod.Change]:
    """Wrap the callee, or else the whole expression."""
    if isinstance(value, ast.Call):
        if not _computes_arguments(project, module, value):
            try:
                return wrap_call(project, module, value, options)
            except Refused:
                pass  # what it calls is unknown
    return wrap_expression(project, module, value, options)


def _value(statement: ast.stmt) -> ast.expr:
    """Return what a statement computes, without the sum of it and a name."""
    match statement:
        case (
            ast.Assign(value=value)
            | ast.AnnAssign(value=ast.expr() as value)
            | ast.Return(value=ast.expr() as value)
            | ast.Expr(value=value)
        ):
            pass
        case ast.AugAssign(op=op, value=value) if isinstance(op, _SUMS):
            pass
        case _:
            raise Refused("the line has no call to checkpoint")
    while True:
        match value:
            case ast.BinOp(left=left, right=right, op=op) if isinstance(op, _SUMS):
                computed = [p for p in (left, right) if not isinstance(p, _NO_RESIDUALS)]
            case ast.Tuple(elts=parts):
                computed = [part for part in parts if any(map(_is_work, ast.walk(part)))]
            case ast.ListComp(elt=part, generators=[_]):
                computed = [part]
            case _:
                return value
        if len(computed) != 1:
            return value
        [value] = computed


def _is_work(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    )


def _computes_arguments(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether the line computes more than a call: arguments, or its callee."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(
        isinstance(node, ast.Call | ast.BinOp) and argument_kind(project, module, node) != "python"
        for part in given
        for node in _run_by(part)
    )


def _run_by(node: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes that evaluating an expression runs, without the bodies of lambdas."""
    if not isinstance(node, ast.Lambda):
        yield node
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _run_by(child)
