"""Try many programs, each generated from its seed; minimise and show those that fail."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .arbitrary import arbitrary, parses
from .checkpoint_programs import program
from .drawing import Draw, smallest
from .execution import Workers
from .properties import check_fixing
from .subject import Files, Subject, Wrong
from .trainers import trainer
from .trial import Counts, Trial

# How many smaller forms of a failing program to try.
ATTEMPTS = 150
# Programs to run, by source.
PROGRAMS = {"checkpoints": program, "trainers": trainer}


@dataclass(frozen=True)
class Failure:
    """A minimised program that fails."""

    source: str
    number: int
    problem: str
    files: Files

    def __str__(self) -> str:
        shown = [f"---- {name}: {data!r}" for name, data in self.files.items()]
        if self.source in PROGRAMS:
            shown = [f"---- {name}\n{data.decode()}" for name, data in self.files.items()]
        return "\n".join([f"{self.source} program {self.number}: {self.problem}", *shown])


@dataclass
class PythonCounts:
    """Counters for arbitrary files."""

    generated: int = 0
    parsed: int = 0
    fixed: int = 0

    def __str__(self) -> str:
        return f"{self.generated} generated, {self.parsed} parse, {self.fixed} fixed"


def try_checkpoints(
    seed: int,
    numbers: Sequence[int],
    subject: Subject,
    workers: Workers,
    counts: Counts,
    source: str = "checkpoints",
    attempts: int = ATTEMPTS,
    *,
    needless: bool = False,
) -> Iterator[Failure]:
    """Try checkpoint programs: check them, run them before and after, and compare."""
    program = PROGRAMS[source]
    trial = Trial(subject, workers, counts, needless=needless)
    again = Trial(subject, workers, Counts(), needless=needless)

    def attempt(draw: Draw, number: int, trial: Trial) -> tuple[Files, str]:
        texts = program(draw)
        problem = _problem(lambda: trial(texts, unsafe=number % 2 == 1))
        return {name: text.encode() for name, text in texts.items()}, problem

    for number in numbers:
        draw = Draw(f"{seed}/{number}")
        files, problem = attempt(draw, number, trial)
        if problem:
            yield _smallest(
                Failure(source, number, problem, files),
                draw.made,
                lambda given, number=number: attempt(given, number, again),  # type: ignore[misc]
                attempts,
            )


def try_python(
    seed: int,
    numbers: Sequence[int],
    subject: Subject,
    texts: tuple[str, ...],
    counts: PythonCounts,
    attempts: int = ATTEMPTS,
) -> Iterator[Failure]:
    """Try arbitrary files: fix them, alternately with and without unsafe fixes."""

    def attempt(draw: Draw, number: int) -> tuple[Files, str]:
        files = {"example.py": arbitrary(draw, texts)}
        unsafe = number % 2 == 1

        def check() -> None:
            counts.fixed += bool(check_fixing(subject, files, unsafe=unsafe).outcome.applied)

        return files, _problem(check)

    for number in numbers:
        draw = Draw(f"{seed}/{number}")
        files, problem = attempt(draw, number)
        counts.generated += 1
        counts.parsed += parses(files["example.py"])
        if problem:
            yield _smallest(
                Failure("python", number, problem, files),
                draw.made,
                lambda given, number=number: attempt(given, number),  # type: ignore[misc]
                attempts,
            )


def _problem(check: Callable[[], object]) -> str:
    """Describe a problem; "" if there is none."""
    try:
        check()
    except Wrong as error:
        return str(error)
    except Exception as error:  # any other error is a crash of the tool: that is looked for
        return f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    return ""


def _smallest(
    failure: Failure,
    made: Sequence[int],
    attempt: Callable[[Draw], tuple[Files, str]],
    attempts: int,
) -> Failure:
    best = failure

    def still(given: Sequence[int]) -> list[int] | None:
        nonlocal best
        draw = Draw("", given)
        files, problem = attempt(draw)
        if _kind(problem) != _kind(failure.problem):
            return None
        best = Failure(failure.source, failure.number, problem, files)
        return draw.made

    smallest(made, still, attempts)
    return best


def _kind(problem: str) -> str:
    """Return what a failure has in common with others of the same cause."""
    first = re.sub(r"use_\d+|\d+|'[^']*'|`[^`]*`", "", problem.split("\n")[0])
    return first[:60]
