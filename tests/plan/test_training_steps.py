"""`measure` and `plan` on training steps: gradients that the target takes itself, and meshes.

The process has 8 virtual CPU devices.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from measuring import printed, worker_for
from support import cli, write_files

from remat_migrate.verify.session import Worker

pytest.importorskip("jax")

STEPS = Path(__file__).parents[2] / "fixtures" / "measured" / "planned" / "training_step.py"
OTHERS = """\
import jax
import jax.numpy as jnp


def block(w, x):
    return x + jnp.tanh(jnp.sin(x @ w) * jnp.cos(x)) @ w


def loss(w, x):
    for each in w:
        x = block(each, x)
    return jnp.mean(x**2)


def other(w, x):
    return jnp.mean((x @ w[0]) ** 2)


def several(w, x):
    first = jax.grad(loss)(w, x)
    second, pull = jax.vjp(other, w, x)
    return jax.tree_util.tree_map(jnp.add, first, pull(jnp.ones_like(second))[0])


def repeated(w, x):
    total = jax.grad(loss)(w, x[0])
    for part in x[1:]:
        total = jax.tree_util.tree_map(jnp.add, total, jax.grad(loss)(w, part))
    return total


def many(w, x):
    return jax.vmap(jax.grad(loss), in_axes=(None, 0))(w, x)


def with_auxiliary(w, x):
    def both(w):
        return loss(w, x), {"text": "kept", "x": x.mean()}

    (value, more), gradients = jax.value_and_grad(both, has_aux=True)(w)
    assert more["text"] == "kept"
    return gradients, value, more["x"]


def penalty(w, x):
    slope = jax.grad(lambda x: loss(w, x))(x)
    return jnp.mean(slope**2)


def nothing(w, x):
    return [x @ each for each in w]


def args():
    w = [jax.ShapeDtypeStruct((64, 64), jnp.float32)] * 6
    return w, jax.ShapeDtypeStruct((1024, 64), jnp.float32)


def parts():
    w, x = args()
    return w, jax.ShapeDtypeStruct((4, 1024, 64), jnp.float32)
"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("project")
    write_files(folder, {"pyproject.toml": "", "others.py": OTHERS})
    shutil.copy(STEPS, folder / "steps.py")
    with worker_for(folder, tmp_path_factory.mktemp("worker"), devices=8) as worker:
        yield worker


def run(project: Path, command: str, target: str, args: str, *more: str) -> dict[str, Any]:
    module = target.partition(":")[0]
    words = (command, target, "--args", f"{module}:{args}")
    return printed(project, *words, *more)


@pytest.mark.slow
def test_meshes_are_compiled(project):
    """Adam, bfloat16, 4 micro-batches, donated state, 8 devices: compiled is what each needs."""
    whole = run(project, "measure", "steps:accumulated_step", "on_mesh")
    sharded = run(project, "measure", "steps:accumulated_step", "fully_sharded")
    assert (whole["grad"], whole["devices"]) == ("none", 8)
    assert sharded["argument_bytes"] < 0.3 * whole["argument_bytes"]
    assert sharded["compiled_bytes"] < whole["compiled_bytes"] < 0.5 * whole["peak_bytes"]
    words = ("--budget", "80%", "--no-compile")
    plan = run(project, "plan", "steps:accumulated_step", "on_mesh", *words)
    assert plan["met"]
    assert plan["devices"] == 8
    assert plan["compiled_peak_bytes"] <= plan["budget_bytes"]


def test_plan_of_a_step_is_what_the_source_needs(project):
    words = ("--budget", "1kB", "--no-compile")
    plan = run(project, "plan", "steps:accumulated_step", "arguments", *words)
    written = run(project, "measure", "steps:accumulated_step_by_blocks", "arguments")
    assert not plan["met"]
    assert plan["measured"]["peak_bytes"] <= written["peak_bytes"]
    bare = written["without_checkpoints"]
    assert plan["without_checkpoints"]["peak_bytes"] == bare["peak_bytes"]
    assert plan["without_checkpoints"]["flops"] == bare["flops"]
    [stages] = [s for s in written["sites"] if s["applications"] == 2 * 4]
    assert stages["verdict"] == "saves"


@pytest.mark.parametrize(("target", "args"), [("several", "args"), ("repeated", "parts")])
def test_steps_of_other_forms(project, target, args):
    plan = run(project, "plan", f"others:{target}", args, "--budget", "70%", "--no-compile")
    assert plan["met"]
    assert plan["promised"]["flops"] == pytest.approx(plan["measured"]["flops"], rel=0.01)
    [stage] = (stage for stage in plan["stages"] if stage["function"] == "loss")
    assert stage["wrapped"] > 0


def test_values_of_a_staged_step():
    """The step with checkpoints computes what the step computes."""
    import jax
    import numpy as np

    from remat_migrate.measure.worker import differentiation
    from remat_migrate.measure.worker.entry import NONE, Differentiation, Entry
    from remat_migrate.measure.worker.gradients import checkpointed, flat_loss
    from remat_migrate.measure.worker.kinds import Kind
    from remat_migrate.measure.worker.records import WRAPPED

    with pytest.MonkeyPatch().context() as patched:
        for name in ("grad", "value_and_grad", "vjp"):
            patched.setattr(jax, name, getattr(jax, name))
        differentiation.install()
        namespace: dict[str, Any] = {}
        exec(OTHERS, namespace)
        draw = np.random.default_rng(0).standard_normal
        w = [draw((8, 8), np.float32) for _ in range(3)]
        x = draw((4, 16, 8), np.float32)
        for name, given in (
            ("several", x[0]),
            ("repeated", x),
            ("many", x),
            ("with_auxiliary", x[0]),
        ):
            function = namespace[name]
            entry = Entry(function, (w, given), {}, Differentiation(NONE))
            flat = flat_loss(entry)
            [run] = {(0, len(flat.jaxpr.eqns))}
            staged = checkpointed(entry, flat, {run: Kind(WRAPPED)})
            assert "remat" in str(jax.make_jaxpr(staged)(*w, given))
            for old, new in zip(
                jax.tree_util.tree_leaves(jax.jit(function)(w, given)),
                jax.tree_util.tree_leaves(jax.jit(staged)(*w, given)),
                strict=True,
            ):
                # XLA fuses the two in different ways, and the gradients are sums of many terms.
                np.testing.assert_allclose(old, new, rtol=1e-4, atol=1e-4)


def test_a_loss_that_takes_a_gradient_is_a_loss(project):
    assert run(project, "measure", "others:penalty", "args")["grad"] == "value_and_grad"


def test_device(project):
    words = ("measure", "others:several", "--args", "others:args")
    text = cli(project, *words, "--device", "h100").out
    assert "as a training step" in text
    assert "It fits on H100 (traced): " in text
    assert " of 60.0 GB\n  JAX uses 75% of its 80.0 GB by default" in text
    found = run(project, "measure", "others:several", "args", "--device", "A100-80GB")
    assert found["device"]["memory_bytes"] == 0.75 * found["device"]["nominal_bytes"]
    needed = found["device"]["needed_bytes"]
    assert needed == found["peak_bytes"]
    ran = cli(project, *words, "--device", f"{0.6 * needed:.0f}B", "--no-compile")
    assert "It does not fit on " in ran.out
    assert "fits: remat-migrate plan others:several --device " in ran.err


def test_arguments_count_on_a_device(project):
    plan = run(project, "plan", "others:loss", "args", "--device", "3MB", "--no-compile")
    assert plan["budget_bytes"] == 3_000_000 - plan["argument_bytes"]
    assert plan["device"]["needed_bytes"] == (
        plan["measured"]["peak_bytes"] + plan["argument_bytes"]
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("plan others:loss --args others:args", "missing --budget SHARE|BYTES, or --device"),
        ("plan others:loss --args others:args --device H10x", "--device H10x: expected memory"),
        ("plan others:loss --args others:args --device A100", "such as A100-40GB, A100-80GB"),
        ("measure others:nothing --args others:args --device 0GB", "--device 0GB: expected"),
        ("plan others:nothing --args others:args --budget 1GB --grad none", "takes no gradient"),
        ("measure others:loss others:penalty others:many --args others:args --args others:args",
         "2 functions return arguments (--args), but there are 3 targets"),
    ],
)  # fmt: skip
def test_bad_input(words, message, project):
    ran = cli(project, *words.split())
    assert message in ran.err
    assert ran.code == 2


def test_arguments_of_several_targets(project):
    words = ("measure", "others:other", "others:many", "--output-format", "json")
    given = ("--args", "others:args", "--args", "others:parts")
    on_command_line = json.loads(cli(project, *words, *given).out)
    assert [one["grad"] for one in on_command_line] == ["value_and_grad", "none"]
    settings = 'target = ["others:other", "others:many"]\nargs = ["others:args", "others:parts"]\n'
    write_files(project, {"pyproject.toml": f"[tool.remat-migrate.measure]\n{settings}"})
    try:
        ran = cli(project, "measure", "--output-format", "json")
    finally:
        write_files(project, {"pyproject.toml": ""})
    assert json.loads(ran.out) == on_command_line
