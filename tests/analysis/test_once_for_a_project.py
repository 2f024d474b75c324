"""Questions about the sites of all modules are answered once, not once per module."""

from __future__ import annotations

from importlib import import_module

import pytest
from support import analysed

FILES = 12
BLOCK = """\
import functools
import jax
import jax.numpy as jnp

jax.checkpoint_policies.own = None


@functools.partial(jax.checkpoint, static_argnums=(1,), policy=jax.checkpoint_policies.missing)
def block(x, train):
    return x if jnp.greater(train, 0) else -x


block(1.0, train=True)
"""


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("remat_migrate.analysis.statics.static_options", "_misplaced_calls"),
        ("remat_migrate.analysis.policies.values", "_added_names"),
    ],
)
def test_sites_of_all_modules_are_visited_once(monkeypatch, module, name):
    place, calls = import_module(module), 0
    counted = getattr(place, name)

    def count(*arguments):
        nonlocal calls
        calls += 1
        return counted(*arguments)

    monkeypatch.setattr(place, name, count)
    found = analysed({f"part_{number:02}.py": BLOCK for number in range(FILES)}).findings
    assert len({finding.path for finding in found}) == FILES
    assert calls == 1
