"""Which parameters must be concrete at trace time."""

from __future__ import annotations

import itertools

import pytest
from support import analysed, needs_of

from remat_migrate.analysis.needs.needs import Needs
from remat_migrate.analysis.sites.find_sites import sites_of
from remat_migrate.analysis.statics.project_needs import project_needs
from remat_migrate.analysis.statics.static_options import known_target

HEADING = "import jax\nimport jax.numpy as jnp\n\n\n"


@pytest.mark.parametrize("number", [1, 8])
def test_paths_to_a_need_are_merged(number):
    """Each line doubles the number of paths from `x` through JAX operations."""
    lines = "".join(f"    x = x + jnp.sin(x + {n})\n" for n in range(number))
    text = (
        f"{HEADING}@jax.checkpoint\ndef f(x):\n{lines}"
        "    if x > 0:\n        return x\n    return -x\n"
    )
    needs = [need for need in needs_of(text) if need.reason == "a branch on it"]
    assert [bool(need.traced) for need in needs] == [True]
    assert len(needs[0].traced) == 3 * number
    places = [module.span(node) for module, node in needs[0].operations]
    assert places == sorted(places)


@pytest.mark.parametrize("number", [1, 6])
def test_calls_on_the_way_to_a_need_are_merged(number):
    """Each function passes `x` on both as it is and through an operation."""
    inner = "def f0(x):\n    if x > 0:\n        return x\n    return -x\n\n\n"
    between = "".join(
        f"def f{n}(x):\n    return f{n - 1}(x) + f{n - 1}(jnp.sin(x))\n\n\n"
        for n in range(1, number + 1)
    )
    text = f"{HEADING}{inner}{between}@jax.checkpoint\ndef last(x):\n    return f{number}(x)\n"
    needs = [need for need in needs_of(text) if need.reason == "a branch on it"]
    assert [bool(need.traced) for need in needs] == [False, True]
    assert len(needs[1].traced) == number


@pytest.mark.parametrize("order", list(itertools.permutations("fgh")))
def test_mutually_recursive_functions_have_the_same_needs(order):
    """The order of the analysis does not matter, nor do the names of the arguments."""
    text = (
        "import jax\n\n"
        "def f(x, a, b, n):\n    if a:\n        return g(x, a, b, n)\n    return x\n\n"
        "def g(x, a, b, n):\n    return h(x, a, b, n)\n\n"
        "def h(x, a, b, n):\n    if n == 0:\n        return x\n    return f(x, b, a, n - 1)\n\n"
        "jax.checkpoint(f)\njax.checkpoint(g)\njax.checkpoint(h)\n"
    )
    project = analysed(text).project
    targets = [known_target(project, site) for site in sites_of(project)]
    functions = {t.function.node.name: t.function for t in targets if t is not None}
    needs = Needs(project_needs(project).overrides)
    for name in order:
        branches = {n.parameter for n in needs.of(functions[name]) if n.certain}
        assert branches == {"a", "b", "n"}


@pytest.mark.parametrize(("number", "items"), [(3, ["w0", "w1", "w2"]), (120, [None])])
def test_a_value_of_many_items_needs_the_parameter(number, items):
    """A long chain has all of its operations."""
    lines = "".join(f"    x = jnp.sin(x @ p['w{n}'])\n" for n in range(number))
    text = f"{HEADING}@jax.checkpoint\ndef f(p, x):\n{lines}    return x if x[0] > 0 else -x\n"
    needs = [need for need in needs_of(text) if need.reason == "a branch on it"]
    by_parameter = {(need.parameter, need.index): len(need.traced) for need in needs}
    assert by_parameter.pop(("x", None)) == 2 * number + 1
    if items == [None]:
        assert by_parameter[("p", None)] == 2 * number + 1
        assert len(by_parameter) <= 32
    else:
        assert [index for _, index in by_parameter] == items
