"""Write programs with one library call each, for `tests/programs.py`.

python -m benchmarks.library_needs programs FOLDER --number 150 --seed 0
python tests/programs.py FOLDER
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

CALLS = Path(__file__).parents[2] / "tests" / "fuzz" / "library_calls.txt"
_PROGRAM = '''\
"""`{parameter}` of `{function}`: {takes}."""

from functools import partial

{imports}


def total(tree):
    leaves = jax.tree_util.tree_leaves(tree)
    return sum(jnp.sum(jnp.real(leaf).astype(jnp.float32)) for leaf in leaves)


@partial(jax.checkpoint, concrete=True)
def block(x, v):
    return total({expression}) * jnp.sum(x)


def main():
    x = jnp.array([0.25, 0.125, 0.625])
    return jax.value_and_grad(block)(x, {value})
'''


@dataclass(frozen=True)
class LibraryCall:
    """A call of a library function whose argument for one parameter is `v`.

    Attributes:
        takes: what the parameter accepts at trace time: "concrete" or "traced".
        function: qualified name of the function.
        parameter: name of the parameter.
        value: source of a value for `v`.
        expression: source of the call; may use `x`, an array of three numbers.
    """

    takes: str
    function: str
    parameter: str
    value: str
    expression: str


def library_calls() -> list[LibraryCall]:
    """Return the calls that the probe found, which are the same in every version of JAX."""
    lines = CALLS.read_text(encoding="utf-8").splitlines()
    return [LibraryCall(*line.split("\t")) for line in lines if not line.startswith("#")]


def program(call: LibraryCall, short: bool = False) -> str:
    """Return a program that differentiates a checkpointed function with this call."""
    imports = ["import jax", "import jax.numpy as jnp"]
    expression = call.expression
    package = call.function.partition(".")[0]
    if package != "jax":
        imports.append(f"import {package}")
    if short:
        expression = expression.replace("jax.numpy.", "jnp.")
        if "jax.lax." in expression:
            imports.append("from jax import lax")
            expression = expression.replace("jax.lax.", "lax.")
    for module in ("jax.scipy", "jax.numpy.linalg", "jax.image", "jax.ops", "jax.nn"):
        if f"{module}." in expression:
            imports.append(f"import {_module(call.function)}")
            break
    return _PROGRAM.format(
        parameter=call.parameter,
        function=call.function,
        takes=call.takes,
        imports="\n".join(dict.fromkeys(imports)),
        expression=expression,
        value=call.value,
    )


def _module(function: str) -> str:
    return function.rpartition(".")[0]


def write_programs(folder: Path, number: int, seed: int) -> None:
    """Write programs with random calls, two thirds of them with a concrete parameter."""
    draw = random.Random(seed)
    calls = library_calls()
    concrete = [c for c in calls if c.takes == "concrete"]
    traced = [c for c in calls if c.takes == "traced"]
    most = min(2 * number // 3, len(concrete))
    drawn = draw.sample(concrete, most) + draw.sample(traced, number - most)
    for index, call in enumerate(drawn):
        words = (*call.function.split(".")[-2:], call.parameter)
        name = f"p{index:03}_{'_'.join(words)}".lower()
        path = folder / name / "run.py"
        path.parent.mkdir(parents=True)
        path.write_text(program(call, short=index % 2 == 1), encoding="utf-8")
