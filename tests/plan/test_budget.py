"""Budgets as users write them."""

from __future__ import annotations

import pytest

from remat_migrate.errors import UsageError
from remat_migrate.measure.devices import parse_budget

PEAK = 10_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("40%", 4000),
        ("12.5%", 1250),
        ("100%", PEAK),
        (".5 %", 50),
        ("8GiB", 8 * 2**30),
        ("1.5gib", 3 * 2**29),
        ("8 GB", 8 * 10**9),
        ("500MB", 500 * 10**6),
        ("3MiB", 3 * 2**20),
        ("2TB", 2 * 10**12),
        ("64kb", 64_000),
        ("64KiB", 65_536),
        ("900B", 900),
    ],
)
def test_valid(text, expected):
    assert parse_budget(text).bytes_of(PEAK) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a share of the peak"),
        ("much", "expected a share of the peak"),
        ("40", "expected a share of the peak"),
        ("40%%", "expected a share of the peak"),
        ("-3GiB", "expected a share of the peak"),
        ("8GiBs", "expected a share of the peak"),
        ("9" * 400 + "GiB", "too large"),
        ("1e9B", "expected a share of the peak"),
        ("nan%", "expected a share of the peak"),
        ("0%", "must be greater than 0"),
        ("0GiB", "must be greater than 0"),
        ("0.2B", "must be greater than 0"),
        ("100.5%", "more than the peak without checkpoints"),
    ],
)
def test_invalid(text, message):
    with pytest.raises(UsageError, match=message):
        parse_budget(text)
