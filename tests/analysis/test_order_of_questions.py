"""What an expression denotes does not depend on what was asked before."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from remat_migrate.analysis import Project
from remat_migrate.analysis.loading import load_project
from remat_migrate.settings import Settings

ROOT = Path(__file__).parents[2]

# Each holds a cycle: a name that is bound to what is made from it, functions that call each other,
# an attribute that is assigned from itself, classes whose bases need their own attributes.
CYCLES = """
    import jax


    def body(x):
        return x


    plain = body
    for _ in range(3):
        plain = jax.checkpoint(jax.jit(plain))


    def swap():
        global plain
        old = plain
        plain = jax.checkpoint(old)
        try:
            return plain(1.0)
        finally:
            plain = old


    def even(f, n):
        return f if n == 0 else odd(jax.checkpoint(f), n - 1)


    def odd(f, n):
        return jax.jit(f) if n == 0 else even(f, n - 1)


    class Holder:
        def __init__(self, f):
            self.f = f or body

        def wrap(self):
            self.f = jax.checkpoint(self.f)
            return self

        def both(self, other):
            return self.wrap() if other is None else other.both(self.wrap())


    held = Holder(even(body, 3)).both(None).f
    outer = [held]
    outer = [*outer, *[f for f in outer]]
    first = outer[0]
"""


def _differing(project: Project) -> list[str]:
    """Return the expressions whose values differ when they are asked for in random orders."""
    asked = [(m, n) for m in project.parsed for n in m.nodes if isinstance(n, ast.expr)]
    in_order = [project.values(*question) for question in asked]
    found = []
    for seed in range(3):
        project.evaluator.forget()
        mixed = random.Random(seed).sample(asked, len(asked))
        answers = {node: project.values(module, node) for module, node in mixed}
        for (_, node), values in zip(asked, in_order, strict=True):
            if answers[node] != values:
                found.append(f"{ast.unparse(node)} in line {node.lineno}, seed {seed}")
    return found


def test_cycles(open_project):
    project = open_project(CYCLES)
    assert not _differing(project)
    (module,) = project.parsed
    (held,) = (n for n in module.nodes if isinstance(n, ast.Subscript))
    assert project.values(module, held)


@pytest.mark.parametrize("folder", ["training", pytest.param("behaviour", marks=pytest.mark.slow)])
def test_fixtures(folder):
    root = ROOT / "fixtures" / folder
    files = sorted(root.rglob("*.py"))
    assert not _differing(load_project(Settings(root=root), files, (), files))
