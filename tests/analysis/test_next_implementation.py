"""The table about `jax_remat3` against the installed JAX, with the flag on, in a subprocess."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from analysis.test_apis import jax_version

from remat_migrate.analysis.policies.jax_remat3 import (
    BARRIER_FLAG,
    CONSULTED,
    CONSULTED_SINCE,
    FLAG,
    FLAGS_SINCE,
    NEVER_ASKED,
    NEXT_CLASS,
    NEXT_PRIMITIVE,
    PRIMITIVE,
    PRIMITIVE_OBJECTS,
    SOME_CSE_REFUSED_SINCE,
)

pytest.importorskip("jax")

PROGRAM = """\
import importlib, json, sys
import jax
import jax.numpy as jnp
import jax._src.custom_derivatives
from jax._src.ad_checkpoint import saved_residuals
from jax._src.interpreters import partial_eval
from jax.ad_checkpoint import checkpoint_name

FLAGS, OBJECTS = json.loads(sys.argv[1])
found = {"flags": [name for name in FLAGS if hasattr(jax.config, name)]}
rules = getattr(partial_eval, "partial_eval_jaxpr_custom_rules", {})
found["rules"] = sorted(primitive.name for primitive in rules)
found["objects"] = {}
for name in OBJECTS:
    module, _, last = name.rpartition(".")
    try:
        found["objects"][name] = getattr(importlib.import_module(module), last).name
    except (ImportError, AttributeError):
        pass


def layer(x):
    z = checkpoint_name(jnp.tanh(x @ x), "z")
    c = jax.lax.conv_general_dilated(z[None, None], x[None, None], (1, 1), "SAME")
    return jnp.sin(jnp.exp(c)).sum()


def asked():
    names = set()

    def policy(prim, *_, **__):
        names.add(prim.name)
        return False

    jax.make_jaxpr(jax.grad(jax.checkpoint(layer, policy=policy)))(jnp.ones((4, 4)))
    return sorted(names)


def some_cse():
    try:
        wrapped = jax.checkpoint(lambda x, n: x * n, prevent_cse=(True,), static_argnums=(1,))
        jax.grad(wrapped)(1.0, 2)
    except Exception as error:
        return type(error).__name__
    return ""


@jax.custom_vjp
def act(x):
    return jnp.sin(x)


def act_fwd(x):
    c = checkpoint_name(jnp.cos(x), "c")
    return jnp.sin(x), c


act.defvjp(act_fwd, lambda c, g: (c * g,))


def kept_in_rule():
    policy = jax.checkpoint_policies.save_only_these_names("c")
    wrapped = jax.checkpoint(lambda x: jnp.sin(act(jnp.exp(x))), policy=policy)
    return sum("argument" not in text for _, text in saved_residuals(wrapped, 1.0))


def kinds(call):
    seen = []

    def function(x, n=0, flag=False):
        seen.append([type(n).__name__, type(flag).__name__])
        return x * 2.0

    try:
        call(function)
    except Exception as error:
        return type(error).__name__
    return ["traced" if "Tracer" in kind else kind for kind in seen[-1]]


def facts():
    equations = jax.make_jaxpr(jax.checkpoint(jnp.sin))(1.0).eqns
    return {
        "asked": asked(),
        "some_cse": some_cse(),
        "kept_in_rule": kept_in_rule(),
        "primitive": equations[0].primitive.name,
        "class": type(equations[0].params.get("_prim")).__name__,
        "by_keyword": kinds(lambda f: jax.checkpoint(f, static_argnums=(1,))(1.0, n=2)),
        "omitted": kinds(lambda f: jax.checkpoint(f, static_argnums=(2,))(1.0, 2)),
        "out_of_range": kinds(lambda f: jax.checkpoint(f, static_argnums=(7,))(1.0, 2, True)),
        "list": kinds(lambda f: jax.checkpoint(f, static_argnums=[1])(1.0, 2)),
        "names": kinds(lambda f: jax.checkpoint(f, static_argnames="n")(1.0, n=2)),
    }


if hasattr(jax.config, FLAGS[0]):
    found["off"] = facts()
    jax.config.update(FLAGS[0], True)
    found["on"] = facts()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    asked = json.dumps([[FLAG, BARRIER_FLAG], list(PRIMITIVE_OBJECTS)])
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, check=True
    )
    return dict(json.loads(ran.stdout))


@pytest.fixture
def on(found: dict[str, Any]) -> dict[str, Any]:
    if "on" not in found:
        pytest.skip("this jax has no jax_remat3")
    return dict(found["on"])


@pytest.fixture
def off(found: dict[str, Any], on: dict[str, Any]) -> dict[str, Any]:
    return dict(found["off"])


def test_the_flags(found: dict[str, Any]) -> None:
    expected = [name for name, since in FLAGS_SINCE.items() if since <= jax_version()]
    assert found["flags"] == expected


def test_primitives_without_policy(found: dict[str, Any]) -> None:
    assert set(found["rules"]) <= NEVER_ASKED


def test_the_objects(found: dict[str, Any]) -> None:
    assert found["objects"].items() <= PRIMITIVE_OBJECTS.items()
    assert "jax._src.ad_checkpoint.remat_p" in found["objects"]


def test_consulted_primitives(on: dict[str, Any], off: dict[str, Any]) -> None:
    assert set(on["asked"]) == (CONSULTED if jax_version() >= CONSULTED_SINCE else set())
    assert {*CONSULTED, "tanh", "exp"} <= set(off["asked"])


def test_prevent_cse_for_single_arguments(on: dict[str, Any], off: dict[str, Any]) -> None:
    refused = jax_version() >= SOME_CSE_REFUSED_SINCE
    assert on["some_cse"] == ("NotImplementedError" if refused else "")
    assert off["some_cse"] == ""


def test_the_primitive(on: dict[str, Any], off: dict[str, Any]) -> None:
    assert off["primitive"] == PRIMITIVE
    assert (on["primitive"], on["class"]) == (NEXT_PRIMITIVE, NEXT_CLASS)


def test_names_in_the_rule_of_a_custom_vjp(on: dict[str, Any], off: dict[str, Any]) -> None:
    assert (off["kept_in_rule"], on["kept_in_rule"]) == (1, 0)


def test_static_arguments(on: dict[str, Any], off: dict[str, Any]) -> None:
    """Check what other rules say of both implementations."""
    assert (off["by_keyword"], on["by_keyword"]) == ("ValueError", ["traced", "bool"])
    assert (off["omitted"], on["omitted"]) == ("ValueError", ["traced", "bool"])
    assert (off["out_of_range"], on["out_of_range"]) == ("ValueError", ["traced", "traced"])
    assert (off["list"], on["list"]) == ("TypeError", ["int", "bool"])
    assert (off["names"], on["names"]) == (["traced", "bool"], ["int", "bool"])
