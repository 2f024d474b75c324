"""Chains of random stages, and all paths through them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from remat_migrate.measure.worker.records import BODY, PLAIN, WRAPPED, Chain, Choice, Link
from remat_migrate.plan.chain import Arc
from remat_migrate.plan.solve import Open, Ties

DOTS = "dots_with_no_batch_dims_saveable"


def random_chain(
    seed: int, count: int, lines: list[int] | None = None, light: float = 0.0
) -> Chain:
    """Stages that keep 5 to 40 and are given 1 to 3 each; equal lines are equal stages."""
    made = random.Random(seed)
    by_line: dict[int, tuple[int, int, int, int, bool]] = {}
    links = []
    for number in range(count):
        line = lines[number] if lines else number + 1
        if line not in by_line:
            by_line[line] = (
                made.randint(1000, 3000),
                made.randint(5000, 40_000),
                made.randint(1000, 10_000),
                made.randint(500, 8000),
                made.random() >= light,
            )
        given, kept, flops, working, heavy = by_line[line]
        given = given if number else 0
        by_dots, again = kept // 3, flops // 4
        peak = given + kept + working
        choices = (
            Choice(PLAIN, None, given, kept, peak, 0),
            Choice(WRAPPED, None, given, 0, peak, flops),
            Choice(WRAPPED, DOTS, given, by_dots, peak + by_dots // 2, again),
        )
        if number % 7 == 3 and lines is None:
            choices += (Choice(BODY, None, given, kept // 4, given + kept // 2, flops + 1),)
        inputs = ((number - 1, given),) if number else ()
        links.append(
            Link(
                10 * number,
                10 * number + 10,
                "model.py",
                "forward",
                line,
                heavy,
                inputs,
                given,
                flops,
                choices,
            )
        )
    return tuple(links)


def paths(chain: Chain, arcs: list[list[Arc]]) -> Iterator[list[Arc]]:
    """Every path in which each line has one decision."""
    ties = Ties(chain, arcs)

    def onward(place: int, made: Open) -> Iterator[list[Arc]]:
        if place == len(arcs):
            yield []
            return
        for arc, after in ties.onward(made, place):
            for rest in onward(arc.stop, after):
                yield [arc, *rest]

    yield from onward(0, ())
