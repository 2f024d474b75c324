"""What `measure` says about removing checkpoints."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from measuring import printed
from support import cli, write_files

pytest.importorskip("jax")

from remat_migrate.measure.worker import sites
from remat_migrate.measure.worker.records import Cost, SiteMeasurement, SiteVerdict

NESTED = """\
import jax
import jax.numpy as jnp


@jax.checkpoint
def layer(x, w):
    return jnp.tanh(jnp.tanh(x @ w) @ w.T), None


def loss(w, x):
    x, _ = jax.lax.scan(jax.checkpoint(layer, prevent_cse=False), x, w)
    return jnp.mean(x**2)


def args():
    return jax.ShapeDtypeStruct((8, 32, 128), "float32"), jnp.ones((64, 32))
"""


def test_one_of_two_nested_checkpoints_stays(tmp_path):
    """Each does nothing beside the other, but without both, the peak is several times higher."""
    write_files(tmp_path, {"pyproject.toml": "", "model.py": NESTED})
    words = ("measure", "model:loss", "--args", "model:args")
    found = {site["line"]: site for site in printed(tmp_path, *words)["sites"]}
    assert [found[line]["verdict"] for line in (5, 11)] == ["does-nothing"] * 2
    others = {line: [one["line"] for one in site["redundant_with"]] for line, site in found.items()}
    assert others == {5: [11], 11: [5]}
    ran = cli(tmp_path, *words, "--compile")
    for other in (5, 11):
        line = f"Of this checkpoint and model.py:{other}, remove only one, then measure again."
        assert line in ran.out
    assert "You can remove it." not in ran.out


@pytest.mark.parametrize(("without", "is_removable"), [(103, True), (107, False)])
def test_memory_of_the_compiled_program_counts(without, is_removable, monkeypatch):
    compiled = iter([100, without])
    monkeypatch.setattr(sites, "_compiled", lambda *_: next(compiled))
    cost = Cost(100, 100, 0)
    site = SiteMeasurement("f", 1, "jax.checkpoint", "f", (), 1, cost, cost, SiteVerdict.NOTHING)
    assert sites.confirm(SimpleNamespace(), "site", site).is_removable == is_removable
