"""The tables of what differentiates and what loops, against the libraries that are installed."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from remat_migrate.libraries.transforms import GRADIENTS, LOOPS, SPELLINGS, Loop, TransformTable
from remat_migrate.prefilter.words import may_differentiate_scan

ENTRIES = {**GRADIENTS, **LOOPS}
# These take `self` first.
METHODS = {"flax.training.dynamic_scale.DynamicScale.value_and_grad"}


def installed(name: str) -> Any:
    """What a dotted name denotes here; skips the test where its library is not installed."""
    top, *parts = name.split(".")
    found: Any = pytest.importorskip(top)
    for index, part in enumerate(parts):
        if not hasattr(found, part):
            importlib.import_module(".".join([top, *parts[: index + 1]]))
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", ENTRIES)
def test_the_function_stands_where_the_table_says(name: str) -> None:
    entry = ENTRIES[name]
    function = installed(name)
    names = list(inspect.signature(function).parameters)
    if name in METHODS:
        assert names[1] == entry.parameter
    elif not (isinstance(entry, Loop) and entry.factory):
        assert entry.position is not None
        assert names[entry.position] == entry.parameter


@pytest.mark.parametrize("name", LOOPS)
def test_the_options_stand_where_the_table_says(name: str) -> None:
    loop = LOOPS[name]
    names = list(inspect.signature(installed(name)).parameters)
    if loop.length is not None:
        option, position = loop.length
        assert option in names
        assert position is None or names[position] == option
    if loop.unroll is not None:
        assert loop.unroll in names
        assert loop.unroll_position is None or names[loop.unroll_position] == loop.unroll
    if loop.bounds is not None:
        assert [names[position] for position in loop.bounds] == ["lower", "upper"]


def test_spellings_lead_to_entries() -> None:
    table = TransformTable()
    assert {name for name in SPELLINGS.values() if table.find(name) is None} == set()
    assert table.find("haiku.experimental.layer_stack") is LOOPS["haiku.layer_stack"]
    assert table.find("jax.jit") is None


def test_a_scan_of_the_settings_is_like_another() -> None:
    found = TransformTable({"pkg.scan_layers": "jax.lax.scan"}).find("pkg.scan_layers")
    assert isinstance(found, Loop)
    assert (found.name, found.unroll_position) == ("pkg.scan_layers", 5)


def test_reverse_mode_is_found_in_bytes() -> None:
    """A file without the name of one is passed by, so no gradient's name may be missing there."""
    for gradient in GRADIENTS.values():
        if gradient.mode != "forward":
            package, _, last = gradient.name.rpartition(".")
            code = f"import jax\nfrom {package} import {last}\n\n{last}(jax.lax.scan(f, x))\n"
            assert may_differentiate_scan(code.encode()), gradient.name
    assert not may_differentiate_scan(b"import jax  # grad\n\njax.lax.scan(f, x)\n")
