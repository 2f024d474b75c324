"""How a qualified name is written at a place."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.sites.references import import_of, is_used_elsewhere, reference_to
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
    ("import jax\nHERE\n", "jax.remat"),
    ("import jax as j\nHERE\n", "j.remat"),
    ("import jax.numpy as jnp\nimport jax.nn\nHERE\n", "jax.remat"),
    ("from jax import remat\nHERE\n", "remat"),
    ("from jax import remat as r\nHERE\n", "r"),
    ("from jax import remat\nimport jax\nHERE\n", "jax.remat"),
    ("import jax\ndef f(x=HERE): ...\n", "jax.remat"),
    ("import jax\ndef f(jax=HERE): ...\n", "jax.remat"),
    ("import jax\n@HERE\ndef f(jax): ...\n", "jax.remat"),
    ("def f():\n  return HERE\nimport jax\n", "jax.remat"),
    ("def f():\n  import jax\n  return lambda: HERE\n", "jax.remat"),
    ("import jax\nclass A:\n  jax = 1\n  def f(self):\n    return HERE\n", "jax.remat"),
    ("class A:\n  import jax\n  f = HERE\n", "jax.remat"),
    ("try:\n  import jax\nexcept ImportError:\n  jax = None\nHERE\n", "jax.remat"),
    ("import jax\ndef f():\n  global jax\n  return HERE\n", "jax.remat"),
]


@pytest.mark.parametrize(("code", "expected"), IMPORT_THERE)
def test_an_import_that_is_seen_is_used(open_project, code: str, expected: str) -> None:
    assert written(open_project(code), "jax.remat") == code.replace("HERE", expected)


IMPORT_ANEW = [
    # There is none, or it is another thing at this place, or it has not run by then.
    ("HERE\n", "import jax\n\njax.remat\n"),
    ("import jax.numpy as jnp\nHERE\n", "import jax\nimport jax.numpy as jnp\njax.remat\n"),
    ("HERE\nimport jax\n", "from jax import remat\n\nremat\nimport jax\n"),
    ("import jax\ndef f(jax):\n  HERE\n",
     "import jax\nfrom jax import remat\ndef f(jax):\n  remat\n"),
    ("import jax\n[HERE for jax in x]\n",
     "import jax\nfrom jax import remat\n[remat for jax in x]\n"),
    ("import jax\njax = 1\nHERE\n", "import jax\nfrom jax import remat\njax = 1\nremat\n"),
    ("import jax\ndel jax\nHERE\n", "import jax\nfrom jax import remat\ndel jax\nremat\n"),
    ("import jax\ndef f():\n  global jax\n  jax = 1\nHERE\n",
     "import jax\nfrom jax import remat\ndef f():\n  global jax\n  jax = 1\nremat\n"),
    # Of imports in another statement, those in a `try` alone count.
    ("with x:\n  import jax\nHERE\n", "from jax import remat\n\nwith x:\n  import jax\nremat\n"),
    ("if x:\n  import jax\n  HERE\n", "from jax import remat\n\nif x:\n  import jax\n  remat\n"),
    ("if x:\n  import jax\nHERE\n", "from jax import remat\n\nif x:\n  import jax\nremat\n"),
    ("if x:\n  import jax\nelse:\n  HERE\n",
     "from jax import remat\n\nif x:\n  import jax\nelse:\n  remat\n"),
    ("def f():\n  import jax\n  return jax\nHERE\n",
     "import jax\n\n\ndef f():\n  import jax\n  return jax\njax.remat\n"),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import jax\nHERE\n",
     "from typing import TYPE_CHECKING\n\nfrom jax import remat\nif TYPE_CHECKING:\n  import jax\n"
     "remat\n"),
    # Both names are taken.
    ("jax = 1\nremat = 2\nHERE\n",
     "from jax import remat as jax_remat\n\njax = 1\nremat = 2\njax_remat\n"),
    ("from lib import *\nprint(jax, remat)\nHERE\n",
     "from jax import remat as jax_remat\nfrom lib import *\nprint(jax, remat)\njax_remat\n"),
    # Another function's name is no obstacle.
    ("def f(jax): ...\nHERE\n", "import jax\n\n\ndef f(jax): ...\njax.remat\n"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), IMPORT_ANEW)
def test_else_a_new_one_is_made(open_project, code: str, expected: str) -> None:
    assert written(open_project(code), "jax.remat") == expected


PARTIAL = [
    ("from functools import partial\nHERE\n", "from functools import partial\npartial\n"),
    ("import functools\nHERE\n", "import functools\nfunctools.partial\n"),
    ("import functools as ft\nHERE\n", "import functools as ft\nft.partial\n"),
    ("import os\nHERE\n", "import os\nfrom functools import partial\npartial\n"),
    ("from functools import wraps\nHERE\n", "from functools import partial, wraps\npartial\n"),
    ("HERE\nfrom functools import wraps\n",
     "from functools import partial\n\npartial\nfrom functools import wraps\n"),
    ("def partial(f): ...\nHERE\n",
     "from functools import partial as functools_partial\n\n\ndef partial(f): ...\n"
     "functools_partial\n"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), PARTIAL)
def test_functools_partial(open_project, code: str, expected: str) -> None:
    assert written(open_project(code), "functools.partial") == expected


def test_a_package_inside_a_package(open_project) -> None:
    code = "import jax\nHERE\n"
    assert written(open_project(code), "jax.numpy.where") == "import jax\njax.numpy.where\n"
    code = "import jax.numpy as jnp\nHERE\n"
    assert written(open_project(code), "jax.numpy.where").endswith("\njnp.where\n")
    code = "import jax\nimport jax.numpy as jnp\nHERE\n"
    assert written(open_project(code), "jax.numpy.where").endswith("\njnp.where\n")


def test_beside_another_statement(open_project) -> None:
    project = open_project("def f():\n    from jax import lax\n    HERE\n")
    module = module_of(project)
    node = here(module)
    beside = next(n for n in module.nodes if isinstance(n, ast.ImportFrom))
    reference = reference_to(module, project, "jax.remat", node, beside=beside)
    after = apply_edits(module.source.text, write(reference.changes)).replace(
        "HERE", reference.text
    )
    assert after == "def f():\n    import jax\n    from jax import lax\n    jax.remat\n"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("import jax\njax.a.HERE", 1),
        ("if c:\n  import jax\nelse:\n  from lib import jax\njax.HERE", None),
        ("try:\n  import jax\nexcept ImportError:\n  jax = None\njax.HERE", 2),
        ("jax = 1\njax.HERE", None),
        ("f().HERE", None),
    ],
)
def test_import_of(open_project, code: str, line: int | None) -> None:
    module = module_of(open_project(code))
    node = next(n for n in module.nodes if isinstance(n, ast.Attribute) and n.attr == "HERE")
    found = import_of(module, node)
    assert (found.lineno if found is not None else None) == line


TAKEN = [
    ({"b.py": "from m import adc\n"}, True),
    ({"b.py": "from m import other\nadc = 1\n"}, False),
    ({"b.py": "import m\n\nm.adc\n"}, True),
    ({"b.py": "import m as q\n\nq.adc\n"}, True),
    ({"b.py": "from m import *\n\nadc\n"}, True),
    ({"b.py": "from n import adc\n", "n.py": "adc = 1\n"}, False),
    ({"b.py": "# m.adc\n"}, False),
    ({"b.py": "def f():\n  from m import adc\n"}, True),
]


@pytest.mark.parametrize(("others", "taken"), TAKEN)
def test_is_used_elsewhere(open_project, others: Mapping[str, str], taken: bool) -> None:
    project = open_project({"m.py": "from jax import ad_checkpoint as adc\n", **others})
    assert is_used_elsewhere(project, module_of(project), "adc") is taken


def test_is_used_elsewhere_within_a_package(open_project, tmp_path: Path) -> None:
    project = open_project(
        {
            "pkg/__init__.py": "from jax import ad_checkpoint as adc\n",
            "pkg/a.py": "from . import adc\n",
        }
    )
    assert is_used_elsewhere(project, module_of(project, "pkg/__init__.py"), "adc")
