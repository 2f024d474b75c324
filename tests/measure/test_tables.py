"""The instruments reproduce the tables behind the verdicts, within 2 %.

The expected numbers were measured independently, with other programs and instruments under jax
0.12.0.1. Other versions of JAX have other residuals (8 % more up to 0.10): the operations must be
equal, the memory within 15 %, and the rows of a table in the same order by memory.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "placement_tables.py"
JAX_OF_THE_TABLES = "0.12.0.1"
TOLERANCE, TOLERANCE_ELSEWHERE = 0.02, 0.15

# By table and row: the peak of live bytes in MB, and the recomputed share of a forward pass, to
# 0.01; None if unknown.
PEAK_AND_ADDED: dict[str, dict[str, tuple[float | None, float | None]]] = {
    "loop": {
        "none": (3253, 0.0),
        "whole": (3253, 1.00),
        "last block": (3262, 0.09),
        "per-block": (533, 0.72),
        "per-block but last": (533, 0.63),
        "per-block prevent_cse=False": (533, 0.72),
        "attention only": (1973, 0.36),
        "mlp only": (2079, 0.29),
        "attention and mlp": (799, 0.64),
        "whole dots": (4159, 0.01),
        "whole dots_no_batch": (3622, 0.15),
        "per-block dots": (1640, 0.01),
        "per-block dots_no_batch": (1045, 0.15),
        "per-block everything": (3443, 0.0),
        "per-block names(attn_out)": (575, 0.65),
        "per-block names(typo)": (533, 0.72),
        "per-block anything_except(attn_out)": (3443, 0.0),
        "whole(per-block)": (533, 1.72),
        "groups of 2": (910, None),
        "groups of 4": (1690, None),
    },
    "scan": {
        "none": (3660, 0.0),
        "whole": (3660, 1.00),
        "body": (617, 0.72),
        "body prevent_cse=False": (617, 0.72),
        "body dots_no_batch": (1154, 0.15),
        "body dots": (1749, None),
        "body names(attn_out)": (684, 0.65),
        "dots_no_batch over the scan": (3954, None),
        "whole(body)": (None, 1.72),
        "two levels 2x4": (659, 1.72),
    },
    "chain": {"per-layer": (None, 1.00), "segments 3,3,2 but last": (None, 0.75)},
    "flax": {
        "none": (3254, 0.0),
        "nn.remat(network)": (3254, 0.96),
        "nn.remat(block)": (533, None),
        "nn.remat(block) but last": (533, None),
        "nn.remat(block, prevent_cse=False)": (533, None),
        "nn.scan": (3661, None),
        "nn.scan(nn.remat(block))": (617, None),
    },
}
# By situation: GFLOP and the peak in MB, without and with a checkpoint on the whole loss.
SITUATIONS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "jit(grad)": ((363, 1641), (363, 1641)),
    "value_and_grad": ((363, 1641), (484, 1641)),
    "grad, has_aux with the loss": ((363, 1641), (484, 1641)),
    "a nonlinear function of it": ((363, 1641), (484, 1641)),
    "value_and_grad in a scan": ((1451, 1742), (1935, 1742)),
    "value_and_grad of a scan": ((1451, 8034), (1935, 1742)),
    "value_and_grad of a sum in Python": ((1451, 6452), (1935, 1742)),
    "value_and_grad of two calls": ((725, 3245), (968, 1692)),
    "value_and_grad of vmap": ((1451, 6552), (1935, 6552)),
    "vmap of value_and_grad": ((1451, 6552), (1935, 6552)),
    "by the last layer alone": ((181, 432), (303, 432)),
    "by the input alone": ((260, 1394), (381, 1394)),
    "jvp": ((363, 302), (363, 302)),
    "linearize, applied once": ((363, 1780), (484, 302)),
    "vjp, called twice": ((604, 1860), (725, 1692)),
    "jvp of grad": ((978, 3270), (978, 3270)),
}
SAVES, NOTHING, WASTEFUL = "saves", "does-nothing", "wasteful"
# For each checkpoint: number of applications and verdict. `everything_saveable` adds no operations,
# but outside loops its barriers raise the peak by 6 %.
VERDICTS: dict[str, list[tuple[int, str]]] = {
    "loop:whole": [(1, WASTEFUL)],
    "loop:last block": [(1, WASTEFUL)],
    "loop:per-block": [(8, SAVES)],
    "loop:per-block but last": [(7, SAVES)],
    "loop:attention only": [(8, SAVES)],
    "loop:per-block dots_no_batch": [(8, SAVES)],
    "loop:per-block everything": [(8, WASTEFUL)],
    "loop:whole(per-block)": [(1, WASTEFUL), (8, SAVES)],
    "scan:whole": [(1, WASTEFUL)],
    "scan:body": [(8, SAVES)],
    "scan:body everything": [(8, NOTHING)],
    "scan:whole(body)": [(1, WASTEFUL), (8, SAVES)],
}
QUICK = ("loop:none", "loop:whole", "loop:last block", "loop:per-block", "scan:body")

Rows = dict[tuple[str, str], dict[str, Any]]


@functools.cache
def rows(*asked: str) -> tuple[str, Rows]:
    """Return the version of JAX, and the measured rows by table and name."""
    run = subprocess.run(
        [sys.executable, str(PROGRAM), "--json", *asked], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    printed = json.loads(run.stdout)
    return printed["jax"], {(row["table"], row["row"]): row for row in printed["rows"]}


def check_row(jax: str, row: dict[str, Any], peak: float | None, added: float | None) -> None:
    tolerance = TOLERANCE if jax == JAX_OF_THE_TABLES else TOLERANCE_ELSEWHERE
    if peak is not None:
        assert row["peak"] / 1e6 == pytest.approx(peak, rel=tolerance)
    if added is not None:
        rounding = 0.005
        assert row["added"] / row["forward"] == pytest.approx(added, rel=TOLERANCE, abs=rounding)


def check_order(found: list[tuple[float, float]]) -> None:
    """Rows that differ by more than the tolerance have the expected order."""
    for (expected, measured), (other_expected, other_measured) in combinations(found, 2):
        if abs(expected - other_expected) > TOLERANCE_ELSEWHERE * max(expected, other_expected):
            assert (expected < other_expected) == (measured < other_measured)


def peaks(table: str, measured: Rows) -> list[tuple[float, float]]:
    return [
        (peak, measured[table, name]["peak"] / 1e6)
        for name, (peak, _) in PEAK_AND_ADDED[table].items()
        if peak is not None and (table, name) in measured
    ]


def test_five_rows():
    jax, measured = rows(*QUICK)
    for name in QUICK:
        table, _, row = name.partition(":")
        check_row(jax, measured[table, row], *PEAK_AND_ADDED[table][row])


@pytest.mark.slow
@pytest.mark.parametrize("table", PEAK_AND_ADDED)
def test_table(table):
    if table == "flax" and importlib.util.find_spec("flax") is None:
        pytest.skip("needs flax")
    jax, measured = rows(table)
    for row, numbers in PEAK_AND_ADDED[table].items():
        check_row(jax, measured[table, row], *numbers)
    check_order(peaks(table, measured))


@pytest.mark.slow
def test_residuals_of_the_chain():
    """A checkpoint on each layer halves the residuals."""
    jax, measured = rows("chain")
    if jax == JAX_OF_THE_TABLES:
        assert measured["chain", "none"]["kept"] / 1e6 == pytest.approx(268, rel=TOLERANCE)
    assert measured["chain", "per-layer"]["kept"] / 1e6 == pytest.approx(134, rel=TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("situation", SITUATIONS)
def test_whole_function_in_sixteen_situations(situation):
    jax, measured = rows("situations")
    tolerance = TOLERANCE if jax == JAX_OF_THE_TABLES else TOLERANCE_ELSEWHERE
    for kind, (gigaflops, peak) in zip(("none", "whole"), SITUATIONS[situation], strict=True):
        row = measured["situations", f"{situation}, {kind}"]
        assert row["flops"] / 1e9 == pytest.approx(gigaflops, rel=TOLERANCE)
        assert row["peak"] / 1e6 == pytest.approx(peak, rel=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_on_seeded_placements(name):
    _, measured = rows(*VERDICTS, "--verdicts")
    sites = measured[tuple(name.split(":"))]["sites"]
    assert sorted((times, verdict) for _, times, verdict in sites) == VERDICTS[name]
