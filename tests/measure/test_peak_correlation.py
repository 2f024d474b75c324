"""The rank correlation of the benchmark, and that its models are what they are said to be."""

from __future__ import annotations

import importlib.util
import statistics
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "peak_correlation", FOLDER / "peak_correlation.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ranks_of_equal_values_are_shared(benchmark: ModuleType) -> None:
    assert benchmark.ranks([30, 10, 20]) == [3, 1, 2]
    assert benchmark.ranks([5, 1, 5, 5, 0]) == [4, 2, 4, 4, 1]
    assert benchmark.ranks([]) == []


def test_rank_correlation(benchmark: ModuleType) -> None:
    assert benchmark.rank_correlation([1, 2, 3], [10, 20, 1000]) == pytest.approx(1)
    assert benchmark.rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # 1 - 6 (0 + 1 + 1 + 0) / (4 (16 - 1)).
    assert benchmark.rank_correlation([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    # Ranks 1, 2.5, 2.5 beside 1, 2, 3: covariance 1.5, variances 1.5 and 2.
    assert benchmark.rank_correlation([1, 2, 2], [1, 2, 3]) == pytest.approx(1.5 / 3**0.5)
    with pytest.raises(statistics.StatisticsError):
        benchmark.rank_correlation([1, 1], [1, 2])


@pytest.mark.parametrize("seed", range(5))
def test_rank_correlation_is_that_of_scipy(benchmark: ModuleType, seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    numpy = pytest.importorskip("numpy")
    drawn = numpy.random.default_rng(seed)
    # Of few values, so that many are equal.
    first, second = (drawn.integers(0, 12, 40).tolist() for _ in range(2))
    expected = stats.spearmanr(first, second).statistic
    assert benchmark.rank_correlation(first, second) == pytest.approx(expected)


@pytest.mark.slow
def test_what_is_left_out_is_a_checkpoint_without_barriers_outside_a_loop(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flax")
    monkeypatch.syspath_prepend(str(FOLDER))
    counted = 0
    for module, make in benchmark.KINDS.values():
        variants = getattr(importlib.import_module(f"models.{module}"), make)()
        for name, variant in variants.items():
            assert not variant.left_out or "prevent_cse=False" in name
            counted += not variant.left_out
    assert counted >= 60
    for name in [name for name in sys.modules if name.partition(".")[0] == "models"]:
        del sys.modules[name]
