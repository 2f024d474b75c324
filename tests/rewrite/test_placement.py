"""Checkpoints put where they belong: texts, values, gradients, memory; and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from rewrite.fixes import FIXES, body, call_of, moved, off, option, rewritten

from remat_migrate.analysis.sites.find_sites import sites_in
from remat_migrate.rewrite import Refused
from remat_migrate.rewrite.placement import set_option

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "fixtures" / "placement"


# -- whole programs


@pytest.mark.parametrize("name", FIXES)
def test_programs_become_the_text(name):
    text = rewritten(PROGRAMS / "before" / f"{name}.py", FIXES[name])
    assert text == (PROGRAMS / "after" / f"{name}.py").read_text()


def test_every_program_has_both_sides():
    sides = [{p.stem for p in (PROGRAMS / side).glob("*.py")} for side in ("before", "after")]
    assert sides == [set(FIXES), set(FIXES)]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The programs run and measured in a process of their own: numbers, and a folder of values."""
    folder = tmp_path_factory.mktemp("values")
    run = subprocess.run(
        [sys.executable, ROOT / "benchmarks/placement_fixes.py", "--values", folder],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout), folder


@pytest.mark.slow
def test_values_and_gradients_stay(measured):
    found, folder = measured
    assert found["rows"].keys() <= FIXES.keys()
    for name in found["rows"]:
        sides = [dict(np.load(folder / f"{name}.{side}.npz")) for side in ("before", "after")]
        before, after = sides
        assert str(before.pop("tree")) == str(after.pop("tree")), name
        for key, array in before.items():
            a, b = array.astype(float), after[key].astype(float)
            assert np.all(np.isfinite(a)), name
            assert np.max(np.abs(a - b)) <= 2e-6 * np.max(np.abs(a)), (name, key)


@pytest.mark.slow
def test_memory_is_not_higher_and_mostly_lower(measured):
    found, _ = measured
    rows = found["rows"]
    # The compiled programs of older releases are scheduled without regard to memory.
    version = tuple(int(part) for part in found["jax"].split(".")[:2])
    for what in ("peak", "temporary") if version >= (0, 11) else ("peak",):
        lower = [name for name, row in rows.items() if row["after"][what] < row["before"][what]]
        higher = {n: r for n, r in rows.items() if r["after"][what] > 1.02 * r["before"][what]}
        assert not higher
        assert len(lower) >= 0.75 * len(rows), (what, set(rows) - set(lower))


# -- pieces


def rewrite(tmp_path, text, fixer):
    path = tmp_path / "m.py"
    path.write_text(textwrap.dedent(text))
    return rewritten(path, fixer)


def refusal(tmp_path, text, fixer):
    with pytest.raises(Refused) as refused:
        rewrite(tmp_path, text, fixer)
    return refused.value.reason


HEAD = """\
import jax
import jax.numpy as jnp
import numpy as np


"""


def with_block(body_text, call="block(p, x)", names="p, x"):
    """A module in which `loss`, of which a gradient is taken, calls `block`."""
    lines = textwrap.indent(textwrap.dedent(body_text), "    ")
    return (
        f"{HEAD}def block({names}):\n{lines}\n\n"
        f"def loss(p, x):\n    x = {call}\n    return jnp.sum(x)\n\n\n"
        "gradient = jax.grad(loss, argnums=(0, 1))\n"
    )


@pytest.mark.parametrize(
    ("body_text", "reason"),
    [
        ("seen.append(x)\nreturn x @ p", "changes `seen` from outside"),
        ("global last\nlast = x\nreturn x @ p", "assigns `last` of an outer scope"),
        ("p.value = x\nreturn x @ p", "changes `p` from outside"),
        ("return x @ p + np.random.normal(size=x.shape)", "`numpy.random.normal` runs only once"),
        ("return x @ p, 'name'", "returns `'name'`"),
        ("return x @ p, lambda y: y", "returns `lambda y: y`"),
        ("yield x @ p", "a generator"),
        (
            "return x @ p if jnp.any(x > 0) else x",
            "a checkpoint traces it",
        ),
        ("return x @ p if x > 0 else p", "`x` must be concrete"),
        ("return helper(x) @ p\n\ndef helper(x):\n    seen.append(x)\n    return x", "`seen`"),
        (
            "return helper(x) @ p\n\ndef helper(x):\n    tap(x)\n    return x\n\n"
            "tap = jax.debug.print",
            "`jax.debug.print` would run once more",
        ),
    ],
)
def test_what_a_checkpoint_would_change_is_refused(tmp_path, body_text, reason):
    if "def helper" in body_text:
        own, _, helper = body_text.partition("\n\n")
        text = f"{with_block(own)}\n\n{helper}\n"
    else:
        text = with_block(body_text)
    assert reason in refusal(tmp_path, text, call_of("block"))


def test_an_own_list_is_no_leak(tmp_path):
    text = with_block("parts = []\nparts.append(x @ p)\nreturn jnp.concatenate(parts)")
    assert "jax.checkpoint(block)(p, x)" in rewrite(tmp_path, text, call_of("block"))


def test_an_unknown_function_is_not_wrapped(tmp_path):
    text = HEAD + "def f(block, p, x, n):\n    return block(p, x, n)\n"
    assert "is an unknown function" in refusal(tmp_path, text, call_of("block"))


def test_a_wrapped_call_is_not_wrapped_again(tmp_path):
    text = with_block("return x @ p", "jax.checkpoint(block)(p, x)")
    reason = refusal(tmp_path, text, call_of("jax.checkpoint(block)"))
    assert reason == "the function is checkpointed already"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "def f(x):\n    return x\n\n\ng = jax.checkpoint(\n    f,  # all\n)(2)\n",
            None,
        ),
    ],
)
def test_a_checkpoint_is_taken_off(tmp_path, before, after):
    text = rewrite(tmp_path, f"import jax\n\nprint(jax)\n\n{before}", off())
    assert "checkpoint(" not in text
    if after is None:
        assert "# all" in text
    else:
        assert text == f"import jax\n\nprint(jax)\n\n{after}"


def test_a_condition_that_chooses_it_is_left(tmp_path):
    text = "import jax\n\n\ndef f(x):\n    return x\n\n\ng = jax.checkpoint(f) if f else f\n"
    assert "an `if` selects the checkpoint" in refusal(tmp_path, text, off())


def test_nothing_is_applied_by_a_name(tmp_path):
    text = "import jax\n\nmaker = jax.checkpoint\n"
    assert "only named" in refusal(tmp_path, text, off())
    assert "only named" in refusal(tmp_path, text, option("prevent_cse", False))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@jax.checkpoint\n", "@partial(jax.checkpoint, prevent_cse=False)\n"),
    ],
)
def test_an_option_of_a_decorator(tmp_path, before, after):
    text = (
        "from functools import partial\n\nimport jax\n\nprint(partial)\n\n\n%sdef f(x):\n    pass\n"
    )
    assert rewrite(tmp_path, text % before, option("prevent_cse", False)) == text % after


def test_an_option_of_a_call(tmp_path):
    text = "import jax\n\nf = jax.checkpoint(\n    abs,  # of all\n    policy=None,\n)\n"
    assert rewrite(tmp_path, text, option("prevent_cse", False)) == text.replace(
        "policy=None,\n", "policy=None,\n    prevent_cse=False,\n"
    )


def test_an_option_that_two_share_is_given_to_one(tmp_path):
    text = (
        "from functools import partial\nimport jax\n\n"
        "ck = partial(jax.checkpoint, prevent_cse=True)\nf = ck(abs)\ng = ck(abs)\n"
    )

    def fixer(project, module):
        site = next(s for s in sites_in(project, module) if s.form == "assigned")
        return set_option(project, site, "prevent_cse", False)

    assert rewrite(tmp_path, text, fixer) == text.replace(
        "f = ck(abs)", "f = ck(abs, prevent_cse=False)"
    )


@pytest.mark.parametrize(
    ("given", "option_text"),
    [
        ("body, x, xs, unroll=4", ""),
        ("body, x, xs, unroll=True", ""),
        ("body, x, None, length=1", ""),
        ("body, x, xs, None, False, 2", ""),
    ],
)
def test_a_body_and_its_loop(tmp_path, given, option_text):
    text = HEAD + (
        "def body(x, w):\n    return x @ w, None\n\n\n"
        f"def loss(x, xs):\n    return jax.lax.scan({given})\n"
    )
    expected = given.replace("body", f"jax.checkpoint(body{option_text})", 1)
    assert rewrite(tmp_path, text, body) == text.replace(f"({given})", f"({expected})")


def test_a_body_that_has_a_checkpoint(tmp_path):
    text = HEAD + (
        "@jax.checkpoint\ndef body(x, w):\n    return x @ w, None\n\n\n"
        "def loss(x, xs):\n    return jax.lax.scan(body, x, xs)\n"
    )
    assert refusal(tmp_path, text, body) == "the body is checkpointed already"


@pytest.mark.parametrize(
    "inside",
    [
        "return jnp.sum(layer(p, x))",
        # A checkpoint of a single product drops nothing.
        "return jnp.sum(jnp.tanh(layer(p, jnp.sin(layer(p, x)))))",
    ],
)
def test_no_stage_can_be_seen(tmp_path, inside):
    text = HEAD + (
        "def layer(p, x):\n    return x @ p\n\n\n"
        f"@jax.checkpoint\ndef loss(p, x):\n    {inside}\n\n\nf = jax.grad(loss)\n"
    )
    assert "make each stage a function of its arrays" in refusal(tmp_path, text, moved)


FLAX = """\
import flax.linen as nn
import jax


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(8)(nn.tanh(x))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
{body}


f = jax.grad(lambda v, x: nn.remat(Net)().apply(v, x).sum())
"""


def flax(body_text):
    return FLAX.format(body=textwrap.indent(textwrap.dedent(body_text), " " * 8))


def test_flax_blocks_keep_their_names(tmp_path):
    text = flax("x = Block()(x)\nx = Block()(x)\nreturn Block()(x)")
    after = rewrite(tmp_path, text, moved)
    assert after.count("x = nn.remat(lambda self: Block()(x))(self)") == 2
    assert "return Block()(x)" in after
    assert "jax.grad(lambda v, x: Net().apply(v, x).sum())" in after
