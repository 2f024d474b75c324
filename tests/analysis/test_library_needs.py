"""The table of what library functions accept, compared with the installed JAX and in use."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import needs_of as needs_of_checkpointed

from remat_migrate.libraries.library_arguments import STATIC_ATTRIBUTES
from remat_migrate.libraries.library_needs import (
    LibraryFunction,
    always_concrete,
    functions,
    has_static_result,
    needs_of,
)

ROOT = Path(__file__).parents[2]
# By default, the test probes one in so many functions, and those that models use most.
STEP = 120
FREQUENT = (
    "jax.numpy.einsum",
    "jax.numpy.reshape",
    "jax.numpy.shape",
    "jax.lax.scan",
    "jax.nn.one_hot",
    "jax.random.fold_in",
    "jax.ops.segment_sum",
    "jax.vmap",
)


def probing(module: str) -> Any:
    """Import a module of the probe, which needs JAX."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"benchmarks.library_needs.{module}")


def differences(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """Yield the differences between the table and the installed version of a function."""
    table = needs_of(name)
    probed = probing("probe").probe(name, function)
    if probed is None:
        return
    assert table is not None, f"{name} is not in the table"
    if table.static_result and not probed.static:
        yield f"{name}: the result is not static"
    for parameter, status in probed.status.items():
        known = _parameter(table, parameter)
        if known is None:
            yield f"{name}: {parameter} is not in the table"
        elif "unknown" not in (status, known.takes) and known.takes not in (status, "depends"):
            yield f"{name}: {parameter} is {status}, not {known.takes}"
        elif known.unless and known.unless != probed.unless.get(parameter):
            yield f"{name}: {parameter} is concrete whether or not {known.unless} is given"


def _parameter(table: LibraryFunction, name: str) -> Any:
    for parameter in (table.variadic, table.others, table.receiver):
        if parameter is not None and parameter.name == name:
            return parameter
    return table.keywords.get(name)


def public() -> dict[str, Callable[..., Any]]:
    return dict(probing("modules").public_functions())


def test_a_sample_agrees_with_the_installed_version():
    pytest.importorskip("jax")
    found = public()
    names = [name for name in sorted(found) if name.startswith("jax.")][::STEP]
    assert not [d for name in (*names, *FREQUENT) for d in differences(name, found[name])]


@pytest.mark.slow
def test_the_table_agrees_with_the_installed_version():
    pytest.importorskip("jax")
    found = public()
    assert len(found) > 1000
    assert not [d for name in found for d in differences(name, found[name])]


def test_static_attributes_are_those_of_the_installed_version():
    jax = pytest.importorskip("jax")
    traced = []
    jax.eval_shape(lambda x: traced.append(x), jax.numpy.ones((2, 3)))
    for name in STATIC_ATTRIBUTES:
        if hasattr(traced[0], name):
            assert not isinstance(getattr(traced[0], name), jax.core.Tracer), name


def test_every_line_of_the_table_can_be_read():
    names = list(functions())
    assert names == sorted(set(names))
    assert len(names) > 1400
    assert all(needs_of(name) is not None for name in names)


@pytest.mark.parametrize(
    ("call", "concrete"),
    [
        ("jax.numpy.sum(x, 0)", ["0"]),
        ("jax.numpy.sum(x, keepdims=k, initial=v)", ["k"]),
        ("jax.numpy.where(c, x, y)", []),
        ("jax.numpy.einsum(spec, x, y)", ["spec"]),
        ("jax.numpy.nonzero(x)", ["x"]),
        ("jax.numpy.nonzero(x, size=n)", ["n"]),
        ("jax.numpy.nonzero(x, **options)", []),
        ("jax.numpy.sum(*operands)", []),
        ("jax.numpy.maximum(*operands)", []),
        ("jax.lax.scan(body, carry, xs, n, unroll=u)", ["n", "u"]),
        ("jax.lax.cond(flag, f, g, x)", []),
        ("jax.random.fold_in(key, i)", []),
        ("jax.random.PRNGKey(seed)", []),
        ("jax.random.split(key, n)", ["n"]),
        ("jax.tree.map(f, tree)", []),
        ("jax.tree_map(f, tree)", []),
        ("jax.named_scope(name)", ["name"]),
        ("jax.vmap(f, axes)", ["axes"]),
        ("einops.rearrange(x, pattern, h=n)", ["pattern", "n"]),
        ("jax.numpy.sum(x, new_axis_name=a, axis_name=b)", ["b"]),
    ],
)
def test_concrete_arguments_of_a_call(call, concrete):
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    function = needs_of(ast.unparse(node.func))
    assert function is not None
    found = [ast.unparse(a) for a, p in function.passed(node) if p.takes == "concrete"]
    assert found == concrete


def test_names_that_are_not_in_the_table():
    assert needs_of("jax.numpy") is None
    assert needs_of("jax.numpy.no_such_function") is None
    assert not has_static_result("jax.numpy.sum")
    assert has_static_result("jax.numpy.shape")
    assert always_concrete("axis")
    assert not always_concrete("x")
    assert not always_concrete(None)


def needs(body: str) -> list[tuple[str, bool]]:
    """Return whether a function's body needs `v`, and whether that is certain."""
    text = (
        "import jax\nimport jax.numpy as jnp\nfrom jax import lax\nimport einops\n\n\n"
        f"@jax.checkpoint\ndef f(x, v):\n    {body}\n"
    )
    found = needs_of_checkpointed(text)
    return sorted({(need.parameter, need.certain) for need in found if need.parameter == "v"})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return lax.cumsum(x, reverse=v)", [("v", True)]),
        ("return jnp.diag(x, k=v)", [("v", True)]),
        ("return jnp.rot90(x, v)", [("v", True)]),
        ("return lax.map(jnp.sin, x, batch_size=v)", [("v", True)]),
        ("return jax.ops.segment_sum(x, jnp.arange(3), num_segments=v)", [("v", True)]),
        ("return jax.vmap(jnp.sin, in_axes=v)(x)", [("v", True)]),
        ("with jax.named_scope(v):\n        return x", [("v", True)]),
        ("return lax.reduce_precision(x, v, 10)", [("v", True)]),
        ("return lax.conv_general_dilated(x, x, (v, v), 'SAME')", [("v", True)]),
        ("return einops.repeat(x, 'i -> i a', a=v)", [("v", True)]),
        ("return x.reshape(v, -1)", [("v", True)]),
        ("return x.at[0].add(v)", []),
        ("return x.at[0].set(1.0, mode=v)", [("v", True)]),
        ("return jax.random.normal(jax.random.fold_in(x, v))", []),
        ("return jnp.repeat(x, v)", [("v", True)]),
        ("return jnp.repeat(x, v, total_repeat_length=9)", []),
        ("return x if jnp.ndim(v) else -x", []),
        ("return x if jnp.broadcast_shapes((v,), (1,))[0] > 1 else -x", [("v", True)]),
        ("return jax.random.permutation(x, v)", [("v", False)]),
    ],
)
def test_needs_of_calls(body, expected):
    assert needs(body) == expected
