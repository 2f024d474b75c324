"""Write a plan into the source: remove the current checkpoints and add the planned ones.

Each planned line must run one call, which is the stage. If any part of a plan cannot be written,
nothing is, and the obstacles are returned.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..analysis import Module, Project
from ..analysis.names.scopes import parameters
from ..analysis.placement.workload import does_work
from ..analysis.sites.site import sites_in
from ..codemod import changes as codemod
from ..codemod.writer import write
from ..engine.fix_rounds import FileChange
from ..engine.integrity import check_integrity
from ..errors import ApplyError, CodemodError
from ..measure.target import Target
from ..measure.worker.records import BODY, PLAIN
from ..rewrite.arguments.traced_arguments import Arrays
from ..rewrite.imports import written
from ..rewrite.placement import remove_site, wrap_body, wrap_call
from ..rewrite.placement.loop_bodies import body_positions
from ..rewrite.refusal import Refused
from ..text import Edit, OffsetMap, SourceFile, apply_edits
from .chain import GROUP
from .plan import Plan, StageDecision

# Loads the project, with new texts of some files.
Open = Callable[[Mapping[Path, SourceFile]], Project]

# `x = x + f(x)`: a sum has no residuals, so that all residuals of the line are those of the call.
_SUMS = ast.Add | ast.Sub
_NO_RESIDUALS = ast.Name | ast.Attribute | ast.Constant


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a plan cannot be written.

    Attributes:
        path: the file.
        line: the line of a stage, or of a checkpoint to remove.
        reason: the reason.
    """

    path: Path
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """A plan written into the source.

    Attributes:
        changes: the files that differ; none if there are obstacles.
        obstacles: why the plan cannot be written.
    """

    changes: tuple[FileChange, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()


class _Obstacles(list[Obstacle]):
    """Collects the refusals to write parts of a plan."""

    @contextmanager
    def of(self, path: Path, line: int) -> Iterator[None]:
        try:
            yield
        except Refused as refused:
            self.append(Obstacle(path, line, refused.reason))


def apply_plan(plan: Plan, opened: Open, target: Target, argnums: Sequence[int]) -> AppliedPlan:
    """Write a plan into the source: remove the current checkpoints and add the planned ones.

    Args:
        plan: the plan.
        opened: opens the project.
        target: the planned function.
        argnums: the parameters of the function that are differentiated.
    """
    project = opened({})
    obstacles = _Obstacles(_unwritable(plan.best.stages))
    removals: list[codemod.Change] = []
    wraps = [stage for stage in plan.best.stages if stage.decision != PLAIN]
    for path, line in plan.sites:
        with obstacles.of(path, line):
            # The planned checkpoints need the import of jax.
            removals += _removed(project, path, line, ("jax",) if wraps else ())
    places: list[tuple[StageDecision, int]] = []
    for stage in wraps:
        with obstacles.of(stage.path, stage.line):
            module = _module(project, stage.path)
            start = module.span(_statement(module, stage)).start
            if any((other.path, at) == (stage.path, start) for other, at in places):
                raise Refused("one statement runs several stages: write one statement for each")
            places.append((stage, start))
    if obstacles:
        return AppliedPlan(obstacles=tuple(dict.fromkeys(obstacles)))
    before: dict[Path, SourceFile] = {}
    bare, removed = _made(removals, before)
    moved = {path: OffsetMap(edits) for path, edits in removed.items()}
    if bare:
        project = opened(bare)
    arrays = Arrays(project, _differentiated(project, target, argnums))
    additions: list[codemod.Change] = []
    for stage, start in places:
        place = moved[stage.path].moved(start) if stage.path in moved else start
        with obstacles.of(stage.path, stage.line):
            additions += _wrapped(project, stage, place, arrays)
    if obstacles:
        return AppliedPlan(obstacles=tuple(obstacles))
    after = bare | _made(additions, before)[0]
    together = frozenset(p for p in after if after[p].text != before[p].text)
    return AppliedPlan(
        tuple(FileChange(before[path], after[path], together) for path in sorted(together))
    )


def _unwritable(stages: Sequence[StageDecision]) -> Iterator[Obstacle]:
    for stage in stages:
        if stage.decision == GROUP:
            reason = "a group of stages: move them into a function and checkpoint its call"
        elif stage.all_but_last:
            reason = (
                f"a checkpoint on {stage.wrapped} of {stage.times} iterations: move the others out"
                " of the loop"
            )
        else:
            continue
        yield Obstacle(stage.path, stage.line, reason)


def _made(
    changes: Sequence[codemod.Change], before: dict[Path, SourceFile]
) -> tuple[dict[Path, SourceFile], dict[Path, list[Edit]]]:
    """Return the new texts and their edits; add the old texts to `before`.

    Raises:
        ApplyError: the changes cannot be written, or would break a file.
    """
    sources = {change.file.source.path: change.file.source for change in changes}
    edits: dict[Path, list[Edit]] = defaultdict(list)
    try:
        for edit in write(changes):
            edits[edit.path].append(edit)
    except CodemodError as error:
        raise ApplyError(f"the plan cannot be written: {error}") from error
    found = {}
    for path, here in edits.items():
        source = sources[path]
        text = apply_edits(source.text, here)
        reason = check_integrity(source, text, here)
        if reason is not None:
            raise ApplyError(f"{path}: the plan cannot be written: {reason}")
        before.setdefault(path, source)
        found[path] = source.replaced(text)
    return found, edits


def _module(project: Project, path: Path) -> Module:
    module = project.module(path) if path in project.targets else None
    if module is None:
        raise Refused("its file is not among the files to change")
    return module


def _removed(project: Project, path: Path, line: int, kept: Sequence[str]) -> list[codemod.Change]:
    """Return the changes that remove the checkpoints on a line."""
    module = _module(project, path)
    found = [
        site
        for site in sites_in(project, module)
        if site.application is not None
        and site.application.lineno <= line <= (site.application.end_lineno or line)
    ]
    first = [site for site in found if site.application and site.application.lineno == line]
    if not found:
        raise Refused("the source shows no checkpoint on this line")
    return [c for site in first or found for c in remove_site(project, site, kept=kept)]


def _differentiated(project: Project, target: Target, argnums: Sequence[int]) -> frozenset[ast.arg]:
    """Return the differentiated parameters of the target: they are arrays."""
    module = project.module(target.path) if target.path is not None else None
    for node in module.tree.body if module else ():
        if isinstance(node, ast.FunctionDef) and node.name == target.qualname:
            named = list(parameters(node))
            return frozenset(named[n] for n in argnums if n < len(named))
    return frozenset()


# -- the call of a stage


def _statement(module: Module, stage: StageDecision) -> ast.stmt:
    """Return the simple statement on a stage's line."""
    line = stage.line
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
    function = module.enclosing_function(found[0])
    if getattr(function, "name", None) != stage.function.rpartition(".")[2]:
        # A lambda or a comprehension runs the stage.
        raise Refused("the line runs the stage in an expression: write it as a statement")
    return found[0]


def _call(project: Project, module: Module, statement: ast.stmt) -> ast.Call:
    """Return the only call of a statement that does work."""
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
    while isinstance(value, ast.BinOp) and isinstance(value.op, _SUMS):
        sides = [s for s in (value.left, value.right) if not isinstance(s, _NO_RESIDUALS)]
        if len(sides) != 1:
            break
        [value] = sides
    if not isinstance(value, ast.Call):
        raise Refused("the line computes more than one call: move its computation into a function")
    for given in (*value.args, *(keyword.value for keyword in value.keywords)):
        for node in _run_by(given):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                break
            if isinstance(node, ast.Call) and does_work(project.evaluator, module, node):
                break
        else:
            continue
        raise Refused(
            "an argument of the call is computed on the same line: compute it on its own line"
        )
    return value


def _run_by(node: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes that evaluating an expression runs, without the bodies of lambdas."""
    if not isinstance(node, ast.Lambda):
        yield node
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _run_by(child)


def _wrapped(
    project: Project, stage: StageDecision, start: int, arrays: Arrays
) -> list[codemod.Change]:
    module = _module(project, stage.path)
    statement = next(
        (
            node
            for node in module.nodes
            if isinstance(node, ast.stmt)
            and not hasattr(node, "body")
            and module.span(node).start == start
        ),
        None,
    )
    if statement is None:
        raise Refused("without the current checkpoints, nothing is left of the line")
    call = _call(project, module, statement)
    options: list[str] = []
    imports: tuple[codemod.Change, ...] = ()
    if stage.policy is not None:
        policies = written(project, module, "jax.checkpoint_policies", call)
        options.append(f"policy={policies.text}.{stage.policy}")
        imports = policies.changes
    if stage.decision != BODY:
        return [*imports, *wrap_call(project, module, call, options, arrays=arrays)]
    bodies = [call.args[n] for n in body_positions(project, module, call) if n < len(call.args)]
    if len(bodies) != 1:
        raise Refused("the line does not run a JAX loop with one visible body")
    return [*imports, *wrap_body(project, module, call, bodies[0], options)]
