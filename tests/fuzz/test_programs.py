"""A few generated programs; `python -m tests.fuzz` tries ten thousand of each source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from fuzz.arbitrary import arbitrary, pieces
from fuzz.batch import check_batch
from fuzz.campaign import PROGRAMS, PythonCounts, try_checkpoints, try_python
from fuzz.checkpoint_programs import program
from fuzz.drawing import Draw
from fuzz.execution import Workers
from fuzz.properties import check_fixing
from fuzz.subject import Subject
from fuzz.trainers import trainer
from fuzz.trial import Counts

SEED = 8
CHECKED, EXECUTED, ARBITRARY = 12, 2, 20


@pytest.fixture(scope="module")
def texts() -> tuple[str, ...]:
    return pieces(SEED, 2)


@pytest.fixture(params=[1, pytest.param(8, marks=pytest.mark.slow)])
def scale(request: pytest.FixtureRequest) -> int:
    """The number of programs, as a multiple of the default."""
    return int(request.param)


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject(tmp_path)


def test_arbitrary_python(subject: Subject, texts: tuple[str, ...], scale: int) -> None:
    counts = PythonCounts()
    size = ARBITRARY * scale
    failures = list(try_python(SEED, range(size), subject, texts, counts))
    assert not failures, "\n\n".join(map(str, failures))
    assert counts.generated == size
    assert counts.parsed > size / 3
    assert counts.fixed > size / 8


def test_checkpoint_programs(subject: Subject, scale: int) -> None:
    """Checks fixes without running the programs."""
    fixed = 0
    for number in range(CHECKED * scale):
        files = {name: text.encode() for name, text in program(Draw(f"{SEED}/{number}")).items()}
        fixed += check_fixing(subject, files, unsafe=number % 2 == 1).files != files
    assert fixed > CHECKED * scale / 2


@pytest.mark.parametrize("source", PROGRAMS)
def test_values_and_gradients_are_unchanged(
    source: str, subject: Subject, workers: Workers, scale: int
) -> None:
    counts = Counts()
    numbers = range(EXECUTED * scale)
    failures = list(try_checkpoints(SEED, numbers, subject, workers, counts, source))
    assert not failures, "\n\n".join(map(str, failures))
    assert counts.with_site == counts.generated == len(numbers)
    assert counts.equal == counts.executed
    assert min(counts.executed, counts.fixed) >= len(numbers) / 2, counts


def test_training_programs_parse_and_are_reproducible() -> None:
    for number in range(CHECKED):
        texts = trainer(Draw(f"{SEED}/{number}"))
        assert texts == trainer(Draw(f"{SEED}/{number}"))
        for text in texts.values():
            ast.parse(text)


def test_result_is_independent_of_order_and_hash_seed(
    tmp_path: Path, texts: tuple[str, ...]
) -> None:
    files = {f"m{n}.py": arbitrary(Draw(f"{SEED}/{n}"), texts) for n in range(6)}
    for number in range(3):
        for name, text in program(Draw(f"{SEED}/{number}")).items():
            files[f"p{number}/{name}"] = text.encode()
    check_batch(files, tmp_path, ways=2)
