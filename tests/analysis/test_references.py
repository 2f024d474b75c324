"""How a qualified name is written at a place."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.sites.references import is_used_elsewhere, reference_to
from remat_migrate.codemod.writer import write
from remat_migrate.text import apply_edits


def module_of(project: Project, name: str = "m.py") -> Module:
    module = project.module(project.settings.root / name)
    assert module is not None
    return module


def here(module: Module) -> ast.Name:
    """The name `HERE` in a module."""
    return next(n for n in module.nodes if isinstance(n, ast.Name) and n.id == "HERE")


def written(project: Project, qualified: str) -> str:
    """The module with `HERE` replaced by a reference."""
    module = module_of(project)
    node = here(module)
    reference = reference_to(module, project, qualified, node)
    text = apply_edits(module.source.text, write(reference.changes))
    ast.parse(text.replace("HERE", reference.text))
    return text.replace("HERE", reference.text)


IMPORT_THERE = [
    ("try:\n  import jax\nexcept ImportError:\n  jax = None\nHERE\n", "jax.remat"),
    ("import jax\ndef f():\n  global jax\n  return HERE\n", "jax.remat"),
]


@pytest.mark.parametrize(("code", "expected"), IMPORT_THERE)
def test_an_import_that_is_seen_is_used(open_project, code: str, expected: str) -> None:
    assert written(open_project(code), "jax.remat") == code.replace("HERE", expected)


IMPORT_ANEW = [
    ("import jax\ndef f(jax):\n  HERE\n",
     "import jax\nfrom jax import remat\ndef f(jax):\n  remat\n"),
    ("import jax\n[HERE for jax in x]\n",
     "import jax\nfrom jax import remat\n[remat for jax in x]\n"),
    ("import jax\njax = 1\nHERE\n", "import jax\nfrom jax import remat\njax = 1\nremat\n"),
    ("import jax\ndel jax\nHERE\n", "import jax\nfrom jax import remat\ndel jax\nremat\n"),
    ("class A:\n  import jax\n  f = HERE\n",
     "from jax import remat\n\n\nclass A:\n  import jax\n  f = remat\n"),
    # Of imports in another statement, those in a `try` alone count.
    ("with x:\n  import jax\nHERE\n", "from jax import remat\n\nwith x:\n  import jax\nremat\n"),
    ("if x:\n  import jax\nelse:\n  HERE\n",
     "from jax import remat\n\nif x:\n  import jax\nelse:\n  remat\n"),
    ("def f():\n  import jax\n  return jax\nHERE\n",
     "import jax\n\n\ndef f():\n  import jax\n  return jax\njax.remat\n"),
    ("from lib import *\nprint(jax, remat)\nHERE\n",
     "from jax import remat as jax_remat\nfrom lib import *\nprint(jax, remat)\njax_remat\n"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), IMPORT_ANEW)
def test_else_a_new_one_is_made(open_project, code: str, expected: str) -> None:
    assert written(open_project(code), "jax.remat") == expected


PARTIAL = [
    ("HERE\nfrom functools import wraps\n",
     "from functools import partial\n\npartial\nfrom functools import wraps\n"),
    ("def partial(f): ...\nHERE\n",
     "from functools import partial as functools_partial\n\n\ndef partial(f): ...\n"
     "functools_partial\n"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), PARTIAL)
def test_functools_partial(open_project, code: str, expected: str) -> None:
    assert written(open_project(code), "functools.partial") == expected


TAKEN = [
    ({"b.py": "import m\n\nm.adc\n"}, True),
    ({"b.py": "import m as q\n\nq.adc\n"}, True),
    ({"b.py": "from n import adc\n", "n.py": "adc = 1\n"}, False),
]


@pytest.mark.parametrize(("others", "taken"), TAKEN)
def test_is_used_elsewhere(open_project, others: Mapping[str, str], taken: bool) -> None:
    project = open_project({"m.py": "from jax import ad_checkpoint as adc\n", **others})
    assert is_used_elsewhere(project, module_of(project), "adc") is taken
