"""Some hundreds of generated programs; `python -m tests.fuzz` tries ten thousand of each source."""

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
CHECKED, EXECUTED, ARBITRARY = 100, 12, 150


@pytest.fixture(scope="module")
def texts() -> tuple[str, ...]:
    return pieces(SEED, 2)


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject(tmp_path)


def test_arbitrary_python(subject: Subject, texts: tuple[str, ...]) -> None:
    counts = PythonCounts()
    failures = list(try_python(SEED, range(ARBITRARY), subject, texts, counts))
    assert not failures, "\n\n".join(map(str, failures))
    assert counts.generated == ARBITRARY
    assert counts.parsed > ARBITRARY / 3
    assert counts.fixed > ARBITRARY / 8


def test_programs_around_checkpoints(subject: Subject) -> None:
    """Without running them."""
    fixed = 0
    for number in range(CHECKED):
        files = {name: text.encode() for name, text in program(Draw(f"{SEED}/{number}")).items()}
        fixed += check_fixing(subject, files, unsafe=number % 2 == 1).files != files
    assert fixed > CHECKED / 2


@pytest.mark.parametrize("source", PROGRAMS)
def test_programs_give_the_same_before_and_after(
    source: str, subject: Subject, workers: Workers
) -> None:
    counts = Counts()
    numbers = range(EXECUTED)
    failures = list(try_checkpoints(SEED, numbers, subject, workers, counts, source))
    assert not failures, "\n\n".join(map(str, failures))
    assert counts.with_site == counts.generated == EXECUTED
    assert counts.equal == counts.executed
    assert min(counts.executed, counts.fixed) > EXECUTED / 2, counts


def test_training_code_can_be_read_and_comes_again() -> None:
    for number in range(CHECKED):
        texts = trainer(Draw(f"{SEED}/{number}"))
        assert texts == trainer(Draw(f"{SEED}/{number}"))
        for text in texts.values():
            ast.parse(text)


def test_order_jobs_and_hashes_do_not_matter(tmp_path: Path, texts: tuple[str, ...]) -> None:
    files = {f"m{n}.py": arbitrary(Draw(f"{SEED}/{n}"), texts) for n in range(12)}
    for number in range(8):
        for name, text in program(Draw(f"{SEED}/{number}")).items():
            files[f"p{number}/{name}"] = text.encode()
    check_batch(files, tmp_path, ways=2)
