"""What the rules about static arguments say of `jax_remat3`, against the installed JAX."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("jax")

PROGRAM = """\
import json
import jax


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
    return {
        "by_keyword": kinds(lambda f: jax.checkpoint(f, static_argnums=(1,))(1.0, n=2)),
        "omitted": kinds(lambda f: jax.checkpoint(f, static_argnums=(2,))(1.0, 2)),
        "out_of_range": kinds(lambda f: jax.checkpoint(f, static_argnums=(7,))(1.0, 2, True)),
        "list": kinds(lambda f: jax.checkpoint(f, static_argnums=[1])(1.0, 2)),
        "names": kinds(lambda f: jax.checkpoint(f, static_argnames="n")(1.0, n=2)),
    }


found = {}
if hasattr(jax.config, "jax_remat3"):
    found["off"] = facts()
    jax.config.update("jax_remat3", True)
    found["on"] = facts()
print(json.dumps(found))
"""


def test_static_arguments() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    if not found:
        pytest.skip("this jax has no jax_remat3")
    off, on = found["off"], found["on"]
    assert (off["by_keyword"], on["by_keyword"]) == ("ValueError", ["traced", "bool"])
    assert (off["omitted"], on["omitted"]) == ("ValueError", ["traced", "bool"])
    assert (off["out_of_range"], on["out_of_range"]) == ("ValueError", ["traced", "traced"])
    assert (off["list"], on["list"]) == ("TypeError", ["int", "bool"])
    assert (off["names"], on["names"]) == (["traced", "bool"], ["int", "bool"])
