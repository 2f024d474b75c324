"""Code that is nested or chained beyond all measure: never the end of a run, never a wrong fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import cli, findings, fixed, places, write_files

SITE = "import jax\n\nf = jax.checkpoint(g, concrete=True)\n"
GOOD = "import jax  # noqa: RMT999\n"


def nested(depth: int) -> dict[str, str]:
    """Files with a site, and something that is nested so many times."""
    return {
        "brackets": SITE + "x = " + "(" * depth + ")" * depth + "\n",
        "lists": SITE + "x = " + "[" * depth + "]" * depth + "\n",
        "dicts": SITE + "x = " + "{1:" * depth + "1" + "}" * depth + "\n",
        "ifs": SITE + "".join(" " * i + "if x:\n" for i in range(depth)) + " " * depth + "pass\n",
        "functions": SITE
        + "".join(" " * i + "def f(x):\n" for i in range(depth))
        + " " * depth
        + "return x\n",
        "elifs": SITE + "if x:\n    pass\n" + "elif x:\n    jax.checkpoint(h)\n" * depth,
        "lambdas": SITE + "x = " + "lambda: " * depth + "1\n",
        "attributes": SITE + "x = a" + ".b" * depth + "\n",
        "an attribute that is wrapped": f"import jax\nx = jax.checkpoint(a{'.b' * depth})\n",
        "calls": SITE + "x = f" + "()" * depth + "\n",
        "sums": SITE + "x = " + " + ".join(["a"] * depth) + "\n",
        "a sum that is wrapped": "import jax\n\ndef f(x, n):\n    if n:\n        return "
        + " + ".join(["x"] * depth)
        + "\n    return x\n\ng = jax.checkpoint(f, concrete=True)\n",
        "powers": SITE + "x = " + " ** ".join(["a"] * depth) + "\n",
        "signs": SITE + "x = " + "-" * depth + "1\n",
        "conditions": SITE + "x = " + "a if b else " * depth + "c\n",
        "decorators": "import jax\n"
        + "@d\n" * depth
        + "@jax.checkpoint\ndef f(x):\n    return x\n",
        "withs": SITE + "with " + ", ".join(["a"] * depth) + ":\n    pass\n",
        "annotations": SITE + "def f(x: '" + "a[" * depth + "b" + "]" * depth + "'): ...\n",
        "targets": SITE + "x = " * depth + "1\n",
        "names": "import jax\na0 = jax.checkpoint\n"
        + "".join(f"a{i + 1} = a{i}\n" for i in range(depth))
        + f"f = a{depth}(g, concrete=True)\n",
        "wrappers": "import jax\n"
        + "".join(f"def w{i}(f):\n    return w{i + 1}(f)\n" for i in range(depth // 10))
        + f"def w{depth // 10}(f):\n    return jax.checkpoint(f, concrete=True)\nh = w0(g)\n",
    }


def stands(folder: Path, code: str) -> None:
    """One run over a file and two good ones: it ends, and the good ones are mended."""
    write_files(folder, {"pyproject.toml": "", "a_first.py": GOOD, "m.py": code, "z_last.py": GOOD})
    ran = cli(folder, "--output-format", "json")
    assert (ran.code, ran.err) == (1, "")
    found = json.loads(ran.out)["findings"]
    assert [f["path"] for f in found if f["code"] == "RMT001"] == ["a_first.py", "z_last.py"]
    assert cli(folder, "report").code in (0, 1)
    ran = cli(folder, "--fix")
    assert ran.code in (0, 1), ran.err
    assert "2 RMT001" in ran.out
    assert "failed" not in ran.err


# What takes the square of their depth.
SLOW = ("a sum that is wrapped", "elifs", "conditions", "names", "decorators")


@pytest.mark.parametrize("kind", nested(1))
def test_deeply_nested_file(tmp_path: Path, kind: str) -> None:
    stands(tmp_path, nested(300 if kind in SLOW else 900)[kind])


@pytest.mark.slow
@pytest.mark.parametrize("depth", [95, 2_500])
@pytest.mark.parametrize("kind", nested(1))
def test_nested_file_at_any_depth(tmp_path: Path, kind: str, depth: int) -> None:
    stands(tmp_path, nested(depth)[kind])


def test_long_chain_of_names_is_resolved() -> None:
    code = nested(400)["names"]
    assert [f.code for f in findings(code)] == ["RMT101"]


def test_endless_chain_is_an_unreadable_file() -> None:
    long = "import jax\na0 = jax.checkpoint\n" + "".join(
        f"a{i + 1} = a{i}\n" for i in range(12_000)
    )
    good = "import jax\nf = jax.checkpoint(g, concrete=True)\n"
    found = places({"m.py": long + "f = a12000(g)\n", "n.py": good})
    assert found == ["m.py:1:1 RMT000", "n.py:2:23 RMT101"]


BLOCK = """\
import jax
from functools import partial


@partial(jax.checkpoint, concrete=True)
def block(x, train):
    if train:
        return x
    return -x


y = block(1.0, True)
"""
CALLER = "from m import block\n\nblock(2.0, train=True)\n"


@pytest.mark.parametrize(
    "unreadable",
    [
        CALLER + "match x otherwise\n",
        CALLER + "x = " + "-" * 60_000 + "1\n",
    ],
)
def test_unreadable_file_may_call_changed_functions(unreadable: str) -> None:
    """To it the signature stays as it is: nothing is made positional."""
    texts = fixed({"m.py": BLOCK, "n.py": unreadable})
    assert "static_argnums" not in texts["m.py"]
    assert "def block(x, train):" in texts["m.py"]
    assert texts["n.py"] == unreadable
    assert "static_argnums=(1,)" in fixed({"m.py": BLOCK, "n.py": CALLER})["m.py"]
    # One that does not mention it does not count.
    assert "static_argnums=(1,)" in fixed({"m.py": BLOCK, "n.py": "a blocker otherwise\n"})["m.py"]


def test_circular_star_imports() -> None:
    modules = {
        "a.py": "from b import *\nfrom jax import remat as again\n",
        "b.py": "from c import *\n",
        "c.py": "from a import *\nf = again(g, concrete=True)\n",
    }
    assert places(modules) == ["c.py:2:14 RMT101"]


def test_circular_inheritance() -> None:
    classes = "".join(f"class C{i}(C{(i + 1) % 30}): pass\n" for i in range(30))
    code = f"import flax.linen as nn\n{classes}f = nn.remat(C0, concrete=True)\n"
    assert {f.code for f in findings(code)} == {"RMT101"}
