"""Fixes of what is a checkpoint on some paths only, and of options that are not all known."""

from __future__ import annotations

import pytest
from support import findings, fixed, places

HEAD = """\
import sys

import jax


def f(x, n):
    return -x if n else x


def other(fun, **options):
    return fun


api = jax.checkpoint if "--remat" in sys.argv else other
"""
ON_SOME_PATHS = [
    ("g = api(f, concrete=True)\ny = g(1.0, 1)\n", "RMT101"),
    ("g = api(f, concrete=False)\n", "RMT101"),
    ("g = api(f, static_argnames='n')\ny = g(1.0, 1)\n", "RMT206"),
    ("g = api(f, static_argnums=[1])\ny = g(1.0, 1)\n", "RMT207"),
    ("g = api(f)\ny = g(1.0, 1)\n", "RMT201"),
    ("g = api(f, static_argnums=1)\ny = g(1.0, n=1)\n", "RMT202"),
    ("g = api(lambda x, n=1: x, static_argnums=1)\ny = g(1.0)\n", "RMT203"),
    ("g = api(f, policy=jax.checkpoint_policies.nothing_saveable())\n", "RMT404"),
    ("g = jax.checkpoint(f, **(O := {'concrete': True}))\nother(f, **O)\n", "RMT101"),
    # What a function returns, or a table holds, is not followed.
    ("def pick(c):\n    return jax.remat if c else jax.checkpoint\n\n\n"
     "api = pick(1)\ng = api(f, concrete=False)\n", "RMT101"),
    ("T = {0: jax.remat, 1: jax.checkpoint}\ng = T[c](f, concrete=False)\n", "RMT101"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "rule"), ON_SOME_PATHS)
def test_not_fixed_on_some_paths_only(code: str, rule: str) -> None:
    [finding] = findings(HEAD + code, select=rule)
    assert finding.fix is not None
    assert (finding.fix.safety, bool(finding.reason)) == ("manual", True)


ON_EVERY_PATH = [
    "api = jax.checkpoint if c else jax.remat\ng = api(f, concrete=False)\n",
    "def make(api=jax.checkpoint):\n    return api(f, concrete=False)\n\n\nmake()\n",
]


@pytest.mark.parametrize("code", ON_EVERY_PATH)
def test_fixed_if_every_path_is_a_checkpoint(code: str) -> None:
    after = fixed(HEAD + code, select="RMT101")["example.py"]
    assert after == HEAD + code.replace(", concrete=False", "")


UNKNOWN_OPTIONS = [
    "O = dict()\nO.update(concrete=True)\n",
    "O = dict()\nO['concrete'] = True\n",
    "O = {}\nO.setdefault('concrete', True)\n",
    "O = {}\nfill(O)\n",
    "O = load()\n",
]


@pytest.mark.parametrize("code", UNKNOWN_OPTIONS)
def test_no_half_migration_where_options_are_unknown(code: str) -> None:
    """`static_argnums` beside a `concrete=True` that is not seen would still fail."""
    found = findings(
        f"{HEAD}{code}g = jax.checkpoint(f, **O)\ny = g(1.0, 1)\n", select=["RMT1", "RMT2"]
    )
    assert ("RMT101" in [one.code for one in found]) == ("concrete" in code)
    assert [one.code for one in found if one.fix and one.fix.is_automatic] == []


def test_an_option_in_a_file_without_a_checkpoint() -> None:
    files = {
        "tools.py": "import jax\n\n\ndef deco(**o):\n    return lambda f: jax.remat(f, **o)\n",
        "model.py": "from tools import deco\n\n\n@deco(concrete=True)\ndef f(x):\n    return x\n",
        "walls.py": "def wall(beton):\n    return beton.pour(concrete=True)\n",
    }
    assert places(files, select="RMT101") == ["model.py:4:7 RMT101"]
