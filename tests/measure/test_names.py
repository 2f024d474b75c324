"""What `measure` says of names and policies: what each matches, how much it keeps, and why not."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from support import cli, some_slow, write_files

jax = pytest.importorskip("jax")

MODEL = """\
import functools

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

policies = jax.checkpoint_policies


@jax.custom_vjp
def f(x):
    return checkpoint_name(jnp.sin(x), "inner") * 2


def forward(x):
    return f(x), checkpoint_name(jnp.cos(x), "of the rule")


f.defvjp(forward, lambda cos, g: (g * cos * 2,))


def block(w, x):
    z = checkpoint_name(jnp.exp(f(x @ w)), "outer")
    total = checkpoint_name(z + x, "sum")
    h = checkpoint_name(jnp.sin(z) @ w, "unlisted")
    return checkpoint_name(total + jnp.sin(h), "result")


def run(block, ws, x):
    def body(x, w):
        return block(w, x), None

    x, _ = jax.lax.scan(body, x, ws)
    return jnp.mean(checkpoint_name(x, "outside") ** 2)


def saving(ws, x):
    names = "inner", "outer", "sum", "result", "of the rule", "typo"
    policy = policies.save_only_these_names(*names)
    return run(jax.checkpoint(block, policy=policy), ws, x)


def offloading(ws, x):
    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["outer"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    return run(jax.checkpoint(block, policy=policy), ws, x)


def without_policy(ws, x):
    return run(jax.checkpoint(block), ws, x)


def named_input(ws, x, offloaded=("input",), saved=()):
    def named(w, x):
        return block(w, checkpoint_name(x, "input"))

    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=saved,
        names_which_can_be_offloaded=offloaded,
        offload_src="device",
        offload_dst="pinned_host",
    )
    return run(jax.checkpoint(named, policy=policy), ws, x)


def saving_input(ws, x):
    return named_input(ws, x, (), ("input",))


def of_operations(ws, x):
    def policy(primitive, *_, **__):
        return str(primitive) == "dot_general"

    return run(jax.checkpoint(block, policy=policy), ws, x)


def step(ws, x):
    loss, gradients = jax.value_and_grad(saving)(ws, x)
    return loss, ws - 0.1 * gradients


def dots(ws, x):
    return run(jax.checkpoint(block, policy=policies.dots_saveable), ws, x)


def without_checkpoint(ws, x):
    return run(block, ws, x)


def args():
    shape = jax.ShapeDtypeStruct
    return shape((4, 64, 64), jnp.float32), shape((32, 64), jnp.float32)
"""
ARRAY = 4 * 32 * 64 * 4
SETTINGS = ""


def measured(project: Path, target: str, *more: str) -> dict[str, Any]:
    command = "measure", f"model:{target}", "--args", "model:args", "--output-format", "json"
    found: dict[str, Any] = json.loads(cli(project, *command, *more).out)
    return found


def names_of(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["name"]: (one["state"], one["reason"]) for one in found["names"]}


def kept(policy: Any) -> int:
    """The bytes of the residuals of `block` in a scan, as JAX itself lists them."""
    space: dict[str, Any] = {}
    exec(MODEL, space)
    wrapped = jax.checkpoint(space["block"], policy=policy)
    loss = functools.partial(space["run"], wrapped)
    held = jax.eval_shape(lambda *args: jax.vjp(loss, *args)[1], *space["args"]())
    return sum(one.size * one.dtype.itemsize for one in jax.tree_util.tree_leaves(held))


def test_each_name_has_a_reason(project):
    found = measured(project, "saving")
    names = names_of(found)
    assert names["outer"] == ("saved", "")
    assert names["of the rule"] == ("saved", "")
    reasons = {
        "inner": "inside a function with its own differentiation rule",
        "sum": "no residual",
        "unlisted": "the policy does not save it",
        "result": "the checkpointed function returns it",
        "outside": "outside all checkpoints",
        "typo": "no value has this name",
    }
    for name, reason in reasons.items():
        assert names[name][0] == "not-saved"
        assert reason in names[name][1]
    assert len(names) == len(reasons) + 2
    assert {one["bytes"] for one in found["names"] if one["name"] in ("outer", "sum")} == {ARRAY}


def test_the_bytes_of_a_policy_are_those_that_jax_keeps(project):
    names = "outer", "of the rule"
    only = jax.checkpoint_policies.save_only_these_names
    [policy] = measured(project, "saving")["policies"]
    assert policy["saved_bytes"] == kept(only(*names)) - kept(only()) == 2 * ARRAY
    assert policy["absent"] == ["inner", "typo"]
    # What the name of no residual or of a returned value adds: nothing.
    assert kept(only("sum", "result", "inner")) == kept(only())


def test_residuals_and_passes(project):
    """All that the gradient keeps is listed, and the passes are those of the loss."""
    found = measured(project, "saving", "--residuals", "--fwd-bwd")
    listed = found["residuals"]
    arguments = [one for one in listed if one["what"].startswith("from the argument")]
    assert {(one["what"], one["bytes"]) for one in arguments} == {
        ("from the argument ws", 4 * 64 * 64 * 4)
    }
    assert sum(o["bytes"] for o in listed if o not in arguments) == found["residual_bytes"]
    assert "cos" in found["forward"]
    assert "dot_general" in found["backward"]


def test_residuals_of_a_training_step(project):
    command = "measure", "model:step", "--args", "model:args", "--residuals"
    ran = cli(project, *command)
    assert "note: not shown: model:step: it takes gradients itself: name the loss" in ran.out


def test_offloaded(project):
    found = measured(project, "offloading")
    assert names_of(found)["outer"] == ("offloaded", "")
    assert found["policies"][0]["matched"] == ['"outer"']


def test_inputs_are_offloaded_but_kept_without_a_name(project):
    """Openxla issue 17541: what a block returns is offloaded where the next one names its input."""
    found = measured(project, "named_input")
    assert names_of(found)["input"] == ("offloaded", "")
    assert found["policies"][0]["added_peak_bytes"] < 0
    state, reason = names_of(measured(project, "saving_input"))["input"]
    assert (state, "keeps inputs without a name" in reason) == ("not-saved", True)


def test_a_checkpoint_without_a_policy_saves_no_name(project):
    found = measured(project, "without_policy")
    assert names_of(found)["outer"] == ("not-saved", "its checkpoint has no policy")
    assert found["policies"] == []


def test_without_checkpoints(project):
    states = names_of(measured(project, "without_checkpoint"))
    assert all("outside all checkpoints" in reason for _, reason in states.values())


def test_a_training_step(project):
    found = measured(project, "step", "--grad", "none")
    assert names_of(found)["outer"] == ("saved", "")
    assert "no residual" in names_of(found)["sum"][1]


def test_a_policy_that_saves_the_named_operation(project):
    found = measured(project, "of_operations")
    assert names_of(found)["unlisted"] == ("saved", "")
    assert names_of(found)["outer"] == ("not-saved", "the policy does not save it")


def test_a_policy_without_names(project):
    [policy] = measured(project, "dots")["policies"]
    assert (policy["policy"], policy["matched"]) == ("dots_saveable", ["dot_general"])
    assert policy["avoided_flops"] > 0


def test_text(project):
    ran = cli(project, "measure", "model:saving", "--args", "model:args")
    assert f'model.py:{_line("outer")}  "outer"  {ARRAY / 1000:.1f} kB  saved' in ran.out
    assert f"it keeps {2 * ARRAY / 1000:.1f} kB, avoids" in ran.out
    assert "it never sees these names: inner, typo" in ran.out


def _line(name: str) -> int:
    return next(n for n, line in enumerate(MODEL.splitlines(), 1) if f', "{name}")' in line)


@pytest.mark.parametrize("target", some_slow(["saving", "without_checkpoint"], "saving"))
def test_every_policy_of_the_installed_jax(target, project):
    found = measured(project, target, "--policies")
    rows = {one["policy"]: one for one in found["alternatives"] if one["policy"]}
    assert found["failed"] == []
    made = {policy.partition("(")[0] for policy in rows}
    every = {name for name in dir(jax.checkpoint_policies) if name[0] != "_"}
    assert every - made <= {"checkpoint_dots", "checkpoint_dots_with_no_batch_dims"}
    nothing, everything = rows["nothing_saveable"], rows["everything_saveable"]
    assert everything["recomputed_flops"] == 0 < nothing["recomputed_flops"]
    assert nothing["residual_bytes"] < everything["residual_bytes"]
    assert all(one["compiled_bytes"] > 0 for one in rows.values())
    if target == "saving":
        # On the CPU, what is offloaded is in the same memory, and does not count.
        [offloading] = (one for name, one in rows.items() if name.startswith("save_and_offload"))
        assert offloading["compiled_bytes"] < rows["dots_saveable"]["compiled_bytes"]
        only = jax.checkpoint_policies.save_only_these_names("outer")
        added = rows['save_only_these_names("outer")']["residual_bytes"] - nothing["residual_bytes"]
        assert added == kept(only) - kept(None)


BATCHED = """\
import jax
import jax.numpy as jnp


def layer(w, x):
    return jnp.tanh(jnp.tanh(x @ w) @ w)


def loss(w, x):
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    return jnp.sum(jax.vmap(jax.checkpoint(layer, policy=policy))(w, x) ** 2)


def args():
    shape = jax.ShapeDtypeStruct((4, 16, 16), "float32")
    return shape, shape
"""


def test_batch_dimensions_are_why_a_policy_saves_nothing(tmp_path):
    write_files(tmp_path, {"pyproject.toml": "", "model.py": BATCHED})
    ran = cli(tmp_path, "measure", "model:loss", "--args", "model:args")
    assert "model.py:11  dots_with_no_batch_dims_saveable matches nothing: " in ran.out
    assert "    all products have batch dimensions, as under jax.vmap\n" in ran.out
