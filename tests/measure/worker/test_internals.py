"""The private APIs of the installed JAX, and the message if one is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import cli, write_files

from remat_migrate.errors import VerificationError
from remat_migrate.measure.session import PROGRAM
from remat_migrate.verify.session import Side, Worker

pytest.importorskip("jax")

ROOT = Path(__file__).parents[3]

MODEL = """\
import jax
import jax.numpy as jnp


@jax.checkpoint
def block(w, x):
    return jnp.sin(x @ w)


def loss(w, x):
    return block(w, x).sum()


def args():
    return jax.ShapeDtypeStruct((8, 8), jnp.float32), jax.ShapeDtypeStruct((4, 8), jnp.float32)
"""


def run_script(folder: Path, text: str) -> Any:
    """Run a script in its own process, and return the JSON that it prints."""
    script = folder / "script.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("version", ["0.4.29", "0.4.13", "0.3.25"])
def test_too_old(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from remat_migrate.measure.worker import internals

    internals.internals.cache_clear()
    monkeypatch.setattr("jax.__version__", version)
    with pytest.raises(internals.Unsupported, match=rf"jax 0\.4\.30 or newer, this is {version}"):
        internals.internals()


def test_each_missing_function_is_named(tmp_path: Path) -> None:
    found = run_script(
        tmp_path,
        """\
import importlib, json
from remat_migrate.measure.worker.internals import Unsupported, internals

family = type(internals())
found = {"all": family.missing()}
for name, module in family.private.items():
    home = importlib.import_module(module)
    kept = getattr(home, name)
    delattr(home, name)
    internals.cache_clear()
    try:
        internals()
    except Unsupported as error:
        found[module + "." + name] = [family.missing(), str(error)]
    setattr(home, name, kept)
print(json.dumps(found))
""",
    )
    assert found.pop("all") == []
    assert len(found) >= 7
    for name, (missing, said) in found.items():
        assert missing == [name]
        assert f"has no {name}, which measuring needs" in said


def test_only_declared_private_names_are_used() -> None:
    worker = ROOT / "remat_migrate" / "measure" / "worker"
    for path in worker.rglob("*.py"):
        text = path.read_text()
        if path.name == "internals.py":
            assert "import jax._src" not in text
            assert "from jax._src" not in text
        else:
            assert "jax._src" not in text, path


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("jax._src.source_info_util", "user_frames"),
        ("jax._src.interpreters.partial_eval", "dce_jaxpr"),
    ],
)
def test_measure_names_the_missing_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    write_files(
        tmp_path,
        {
            "early/sitecustomize.py": f"import jax\nimport {module}\ndel {module}.{name}\n",
            "model.py": MODEL,
        },
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "early"))
    done = cli(tmp_path, "measure", "model.py:loss", "--args", "model.py:args")
    assert done.code == 2
    assert f"has no {module}.{name}, which measuring needs" in done.err
    assert "Traceback" not in done.err


def test_unknown_flag(tmp_path: Path) -> None:
    side = Side(Path(sys.executable), tmp_path, tmp_path, (), flags={"jax_unknown_flag": True})
    worker = Worker(side, tmp_path / "log", 60.0, 0, PROGRAM)
    with pytest.raises(VerificationError, match=r"jax [\d.]+ has no flag jax_unknown_flag"):
        worker.ask(do="measure")
    worker.close()


def test_equations(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    found = run_script(
        tmp_path,
        """\
from remat_migrate.measure.worker import interception
interception.install()
import json
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from remat_migrate.measure.worker.internals import internals

x = jax.ShapeDtypeStruct((4, 4), jnp.float32)
def equations(f):
    return internals().opened(jax.make_jaxpr(f)(x)).eqns
def inner(f, name):
    equation, = [e for e in equations(f) if e.primitive.name in name]
    how, bodies, times = internals().inner(equation)
    return how, len(bodies), times
sine, = equations(lambda x: jax.lax.sin(x))
named, = equations(lambda x: checkpoint_name(x, "kept"))
dead = jax.make_jaxpr(lambda x: (jnp.sin(x), jnp.cos(jnp.exp(x))))(x)
opened = internals().opened(dead)
alone = internals().segment(opened, opened.invars, opened.eqns[0].outvars, opened.eqns[:1])
ones = jnp.ones((4, 4))
found = {
    "scan": inner(lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, 5), ["scan"]),
    "while": inner(lambda x: jax.lax.while_loop(lambda c: c.sum() < 0, jnp.sin, x), ["while"]),
    "cond": inner(lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), ["cond"]),
    "jit": inner(jax.jit(jnp.sin), ["jit", "pjit"]),
    "checkpoint": inner(
        jax.checkpoint(jnp.sin), ["remat2", "checkpoint", "remat", "call_hi_primitive"]
    ),
    "reduction": inner(
        lambda x: jax.lax.reduce(x, 0.0, lambda a, b: jnp.sin(a) + b, (0,)), ["reduce"]
    ),
    "sine": inner(jnp.sin, ["sin"]),
    "place": list(internals().places(sine)),
    "label": [internals().name(named), internals().label(named), internals().name(sine)],
    "alive": [e.primitive.name for e in internals().dead_code_removed(dead, 1).eqns],
    "evaluated": float(internals().evaluate(alone, (), [ones])[0][0, 0]),
    "literal": [internals().is_literal(a) for a in equations(lambda x: x * 2.0)[0].invars],
}
print(json.dumps(found))
""",
    )
    line = next(
        number
        for number, text in enumerate(script.read_text().splitlines(), 1)
        if text.startswith("sine, =")
    )
    assert found.pop("place")[0] == [str(script), "<lambda>", line]
    assert found == {
        "scan": ["loop", 1, 5],
        "while": ["loop", 2, 1],
        "cond": ["branches", 2, 1],
        "jit": ["call", 1, 1],
        "checkpoint": ["call", 1, 1],
        "reduction": ["", 0, 1],
        "sine": ["", 0, 1],
        "label": ["name", "kept", "sin"],
        "alive": ["sin"],
        "evaluated": pytest.approx(0.8414709848),
        "literal": [False, True],
    }
