"""Writes what the commands report that run code: `verify`, `measure` and `plan`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from .machine_readable.json import render_measurements, render_plan, render_proof
from .output import screen_for, screen_of, write_lines
from .terminal.display import Screen
from .terminal.jaxprs import side_by_side
from .terminal.plans import plan_lines
from .terminal.verdicts import closing_lines, lines_of, proof_lines, tally
from .terminal.weights import measurement_lines

if TYPE_CHECKING:
    from ..measure.measurement import Measurement
    from ..plan.plan import Plan
    from ..verify.evidence import Proof, Verdict


def write_proof(
    proof: Proof, output_format: str, to: TextIO | Path, *, is_streamed: bool = False
) -> None:
    """Write the verdicts in the format `full` or `json`.

    Args:
        proof: the verdicts.
        output_format: the name of the format.
        to: a stream or a file.
        is_streamed: whether `write_verdict` has written the verdicts.
    """
    screen = screen_for(to)
    if output_format == "json":
        write_lines(render_proof(proof, screen), to)
    else:
        lines = closing_lines if is_streamed else proof_lines
        write_lines([*lines(proof, screen), tally(proof)], to)


def write_verdict(verdict: Verdict, stream: TextIO) -> None:
    """Write one verdict as soon as it is known; those on other files than code come at the end."""
    if not verdict.unit.is_text:
        write_lines(lines_of(verdict, screen_of(stream)), stream)


def write_measurements(
    found: Sequence[Measurement],
    output_format: str,
    to: TextIO | Path,
    failed: Mapping[str, str],
) -> None:
    """Write measurements in the format `full` or `json`.

    JSON is an object for one target and an array for several, which includes the failed targets.
    """
    screen = screen_for(to)
    if output_format == "json":
        write_lines(render_measurements(found, screen, failed), to)
    else:
        write_lines(_measurement_lines(found, screen), to)


def _measurement_lines(found: Sequence[Measurement], screen: Screen) -> Iterator[str]:
    for number, one in enumerate(found):
        if number:
            yield ""
        yield from measurement_lines(one, screen)
        if one.jaxprs is not None:
            yield ""
            yield from side_by_side(*one.jaxprs, screen)


def write_plan(plan: Plan, output_format: str, to: TextIO | Path) -> None:
    """Write a plan in the format `full` or `json`."""
    screen = screen_for(to)
    if output_format == "json":
        write_lines(render_plan(plan, screen), to)
    else:
        write_lines(plan_lines(plan, screen), to)
