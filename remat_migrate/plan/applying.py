"""A plan as changes of the source: the checkpoints that there are come off, the planned ones go on.

Each planned line must run one call, which is the stage. What cannot be written so is named with its
reason, and then nothing is changed: a part of a plan is not a plan.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..analysis import Module, Project
from ..analysis.names.scopes import parameters
from ..analysis.placement.workload import does_work
from ..analysis.sites.site import sites_in
from ..codemod import changes as codemod
from ..codemod.writer import write
from ..engine.apply import Change
from ..engine.integrity import check_integrity
from ..errors import ApplyError, CodemodError
from ..rewrite.arguments.traced_arguments import Arrays
from ..rewrite.imports import written
from ..rewrite.placement import remove_site, wrap_body, wrap_call
from ..rewrite.placement.loop_bodies import body_positions
from ..rewrite.refusal import Refused
from ..text import Edit, OffsetMap, SourceFile, apply_edits
from .chain import BODY, GROUP, PLAIN
from .plan import Plan, StageDecision

# The project with the given texts in place of those on disk.
Open = Callable[[Mapping[Path, SourceFile]], Project]

# `x = x + f(x)`: a sum keeps nothing, so that the call is all that the line keeps.
_SUMS = ast.Add | ast.Sub
_KEEP_NOTHING = ast.Name | ast.Attribute | ast.Constant


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a plan cannot be written.

    Attributes:
        path: the file.
        line: the line of a stage, or of a checkpoint that should come off.
        reason: what stands in the way.
    """

    path: Path
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What a plan makes of the source.

    Attributes:
        changes: the files that differ; none where there are obstacles.
        obstacles: what cannot be written.
    """

    changes: tuple[Change, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()


@dataclass(frozen=True, slots=True)
class Differentiated:
    """The parameters of a function that a gradient is taken of: they are arrays.

    Attributes:
        path: the file of the function, None where that is not known.
        qualname: its name in the module.
        argnums: which of its parameters.
    """

    path: Path | None
    qualname: str
    argnums: tuple[int, ...]


def rewriting(plan: Plan, opened: Open, differentiated: Differentiated) -> Rewriting:
    """The changes that a plan is, or why it cannot be written.

    Args:
        plan: the plan.
        opened: opens the project.
        differentiated: what is known of the target.
    """
    project = opened({})
    obstacles = list(_unwritable(plan.best.stages))
    removals: list[codemod.Change] = []
    wraps = [stage for stage in plan.best.stages if stage.decision != PLAIN]
    for path, line in plan.sites:
        try:
            # What the planned checkpoints are written with stays imported.
            removals += _removed(project, path, line, ("jax",) if wraps else ())
        except Refused as refused:
            obstacles.append(Obstacle(path, line, refused.reason))
    places: list[tuple[StageDecision, int]] = []
    for stage in wraps:
        try:
            module = _module(project, stage.path)
            start = module.span(_statement(module, stage)).start
            if any((other.path, at) == (stage.path, start) for other, at in places):
                raise Refused("one statement runs several stages: give each its own")
            places.append((stage, start))
        except Refused as refused:
            obstacles.append(Obstacle(stage.path, stage.line, refused.reason))
    if obstacles:
        return Rewriting(obstacles=tuple(dict.fromkeys(obstacles)))
    before: dict[Path, SourceFile] = {}
    bare, removed = _made(removals, before)
    moved = {path: OffsetMap(edits) for path, edits in removed.items()}
    if bare:
        project = opened(bare)
    arrays = Arrays(project, _known(project, differentiated))
    additions: list[codemod.Change] = []
    for stage, start in places:
        place = moved[stage.path].moved(start) if stage.path in moved else start
        try:
            additions += _wrapped(project, stage, place, arrays)
        except Refused as refused:
            obstacles.append(Obstacle(stage.path, stage.line, refused.reason))
    if obstacles:
        return Rewriting(obstacles=tuple(obstacles))
    after = bare | _made(additions, before)[0]
    together = frozenset(p for p in after if after[p].text != before[p].text)
    return Rewriting(
        tuple(Change(before[path], after[path], together) for path in sorted(together))
    )


def _unwritable(stages: Sequence[StageDecision]) -> Iterator[Obstacle]:
    for stage in stages:
        if stage.decision == GROUP:
            reason = (
                "stages in a group: make a function of them, and put the checkpoint on its call"
            )
        elif stage.all_but_last:
            reason = (
                f"{stage.wrapped} of {stage.times} times under a checkpoint: one line is written"
                " for all times; take the last ones out of the loop"
            )
        else:
            continue
        yield Obstacle(stage.path, stage.line, reason)


def _made(
    changes: Sequence[codemod.Change], before: dict[Path, SourceFile]
) -> tuple[dict[Path, SourceFile], dict[Path, list[Edit]]]:
    """The new texts and the edits that make them; `before` gets the old texts that it lacks.

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
        raise Refused("it stands in a file that is not to be changed")
    return module


def _removed(project: Project, path: Path, line: int, kept: Sequence[str]) -> list[codemod.Change]:
    """What takes the checkpoints that a line applies off."""
    module = _module(project, path)
    found = [
        site
        for site in sites_in(project, module)
        if site.application is not None
        and site.application.lineno <= line <= (site.application.end_lineno or line)
    ]
    first = [site for site in found if site.application and site.application.lineno == line]
    if not found:
        raise Refused("the checkpoint that is applied here cannot be seen in the source")
    return [c for site in first or found for c in remove_site(project, site, kept=kept)]


def _known(project: Project, target: Differentiated) -> frozenset[ast.arg]:
    """The parameters of the target that are differentiated."""
    module = project.module(target.path) if target.path is not None else None
    if module is None:
        return frozenset()
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == target.qualname:
            named = list(parameters(node))
            return frozenset(named[n] for n in target.argnums if n < len(named))
    return frozenset()


# -- the call of a stage


def _statement(module: Module, stage: StageDecision) -> ast.stmt:
    """The one statement of a stage's line that holds no others, in the stage's function."""
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
        # The statement makes the function that runs the stage: a lambda, a comprehension.
        raise Refused("the line runs the stage in an expression: write it as a statement")
    return found[0]


def _call(project: Project, module: Module, statement: ast.stmt) -> ast.Call:
    """The call that is all that a statement computes."""
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
            raise Refused("the line runs no call that a checkpoint could go on")
    while isinstance(value, ast.BinOp) and isinstance(value.op, _SUMS):
        sides = [s for s in (value.left, value.right) if not isinstance(s, _KEEP_NOTHING)]
        if len(sides) != 1:
            break
        [value] = sides
    if not isinstance(value, ast.Call):
        raise Refused("the line computes more than one call: make a function of what it does")
    for given in (*value.args, *(keyword.value for keyword in value.keywords)):
        for node in _run_by(given):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                break
            if isinstance(node, ast.Call) and does_work(project.evaluator, module, node):
                break
        else:
            continue
        raise Refused("what the call is given is computed on the same line: give it its own line")
    return value


def _run_by(node: ast.expr) -> Iterator[ast.AST]:
    """What evaluating an expression runs: not the bodies of functions."""
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
        raise Refused("nothing is left of the line without the checkpoints that there are")
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
        raise Refused("the line runs no loop of JAX with one body that can be seen")
    return [*imports, *wrap_body(project, module, call, bodies[0], options)]
