"""Run the user's command in both copies, and record the calls of the units in the old copy."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import SourceError, VerificationError
from ..text import SourceFile, read_source
from .command import CommandRun, RecordedCalls, recorded_calls, run_command
from .copies.sides import Sides
from .copies.workspace import Workspace
from .evidence import CommandRuns, Unit

_TAIL_LINES = 12


def record(sides: Sides, command: str) -> tuple[CommandRuns, Mapping[str, RecordedCalls]]:
    """Run the command in both copies at once.

    Returns:
        How the runs ended, and the calls of each unit in the old code, by its identity.

    Raises:
        VerificationError: the command fails before it reaches a unit.
    """
    folder = sides.scratch / "before-record"
    with recorders(sides, sides.task.units):
        runs = [
            sides.pool.submit(
                run_command,
                command,
                worker.side,
                folder if worker is sides.before else sides.scratch / "after-record",
                timeout=sides.task.options.command_timeout,
                memory=sides.task.options.memory,
                record=worker is sides.before,
                stop=sides.stop,
            )
            for worker in (sides.before, sides.after)
        ]
        try:
            before, after = (run.result() for run in runs)
        except BaseException:
            # An interrupt reaches this process alone.
            sides.stop.set()
            raise
    calls = recorded_calls(folder)
    if before.status != 0 and not any(unit.called for unit in calls.values()):
        raise VerificationError(
            f"the command `{command}` failed before it reached any code to compare"
            f" ({_ending(before)}); nothing was changed. The command runs in a copy of the project,"
            f" with the bin folder of {sides.task.python} first on PATH. Its last output:\n"
            + _last_lines(sides.old, before)
            + _missing_in_base(sides, before)
        )
    wrong = ""
    if before.status != after.status:
        wrong = f"{_ending(before)} before, {_ending(after)} after; its last output:\n"
        wrong += _last_lines(sides.new, after)
    seconds = (before.seconds, after.seconds)
    cases = sum(len(unit.cases) for unit in calls.values())
    return CommandRuns(command, before.status, after.status, wrong, seconds, cases), calls


@contextmanager
def recorders(sides: Sides, units: Sequence[Unit]) -> Iterator[None]:
    """Put recorders on units in the old copy, and take them out again."""
    by_path: dict[Path, list[str]] = {}
    for unit in units:
        if unit.qualname:
            by_path.setdefault(unit.path, []).append(unit.qualname)
    originals = {}
    for path, names in by_path.items():
        place = sides.old.at(path)
        if not Path(os.path.realpath(place)).is_relative_to(sides.old.folder):
            continue  # linked instead of copied, so writing would change the project
        try:
            data = place.read_bytes()
            new = instrument(read_source(place, data), names, sides.relative(path))
        except (OSError, SourceError, RecursionError):
            continue  # the verdicts of its units report the error
        originals[place] = data
        place.write_bytes(new.encode())
    try:
        yield
    finally:
        for place, data in originals.items():
            place.write_bytes(data)


def _missing_in_base(sides: Sides, run: CommandRun) -> str:
    """Name the files that the base lacks and that the command's output mentions."""
    names = sorted(sides.relative(path) for path in sides.task.before.removed)
    mentioned = [name for name in names if name in run.output_tail]
    return f"\nThe base has no {', '.join(mentioned)}." if mentioned else ""


def _ending(run: CommandRun) -> str:
    if run.cause == "time":
        return f"still running after {run.seconds:.0f} s"
    if run.cause == "memory":
        return "over its memory limit"
    return f"exit status {run.status}"


def _last_lines(copy: Workspace, run: CommandRun) -> str:
    lines = copy.translate(run.output_tail).rstrip().splitlines()[-_TAIL_LINES:]
    return "\n".join("  " + line for line in lines)


RECORDER = "__remat_migrate_unit__"
_RECORDED = (
    f'__import__("builtins").__dict__.get("{RECORDER}", lambda *unit: lambda function: function)'
    "({unit!r}, {bound})"
)

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def instrument(source: SourceFile, units: Collection[str], path: str) -> str:
    """Return a module's text with a recorder on every definition of the units.

    Args:
        source: the module.
        units: qualified names: `attention_block`, `Block.__call__`.
        path: the file's path in the project. The recorder is called with `path::unit`, and with how
            many arguments the function gets besides those that a caller of the unit gives.

    Raises:
        SourceError: this interpreter cannot parse the text.
        RecursionError: an expression is nested too deeply.
    """
    tree = source.parse()
    found = [(n, d) for n, d in _definitions(tree, "") if n in units and not _is_accessor(d)]
    for name, definition in found:
        decorators = definition.decorator_list
        bound = sum(isinstance(d, ast.Name) and d.id == "classmethod" for d in decorators)
        code = _RECORDED.format(unit=f"{path}::{name}", bound=bound)
        decorators.append(ast.parse(code, mode="eval").body)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n" if found else source.text


def _definitions(node: ast.AST, owner: str) -> Iterator[tuple[str, _Definition]]:
    """Yield the functions in a module or a class; `owner` is the class, as a prefix of names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            yield owner + child.name, child
        else:
            inside = f"{owner}{child.name}." if isinstance(child, ast.ClassDef) else owner
            yield from _definitions(child, inside)


def _is_accessor(definition: _Definition) -> bool:
    """Return whether this sets or deletes a property, of which the unit is what reads it."""
    return any(
        isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter")
        for decorator in definition.decorator_list
    )
