"""Every sentence about memory or time that a rule prints, against compiled programs.

A claim names a program in which the rule prints the sentence, and what is asserted of the compiled
program beside variants of it: temporary bytes and FLOPs, on CPU.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from support import findings

RULES = Path(__file__).parents[2] / "rules"
_CLAIM = re.compile(
    r"memory|residuals|recomputation|recomputes|recomputing|comput.* (twice|once more)|redundant"
)

HEAD = """\
import jax
import jax.numpy as jnp


def block(x, w):
    h = jnp.tanh(jnp.sin(x @ w) @ w)
    return x + jnp.exp(-jnp.square(jnp.sin(h @ w))) @ w


"""
CHAIN = (
    HEAD
    + """\
def loss(ws, x):
    for w in ws[:6]:
        x = {}(x, w)
    return ({last}(x, ws[6]) ** 2).mean()


step = jax.value_and_grad({loss})
"""
)
SCAN = (
    HEAD
    + """\
def layer(x, w):
    return block(x, w), None


def stack(ws, x):
    return jax.lax.scan({body}, x, ws)[0]


def loss(ws, x):
    return (block(stack(ws[:{n}], jnp.sin(x)), ws[7]) ** 2).mean()


step = jax.value_and_grad(loss)
"""
)
LOGITS = (
    HEAD
    + """\
def entropy(logits):
    return -jax.nn.log_softmax(logits)[:, 0].mean()


def loss(ws, x):
    for w in ws[:6]:
        x = block(x, w)
    return {}(jnp.tanh(x @ jnp.tile(ws[6], 32)))


step = jax.value_and_grad(loss)
"""
)
LOGSUMEXP = (
    "-jax.nn.log_softmax(logits)[:, 0].mean()",
    "(jax.nn.logsumexp(logits, axis=1) - logits[:, 0]).mean()",
)
STACK = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(128)(jnp.tanh(nn.Dense(128)(jnp.sin(x))))


class Stack(nn.Module):
    @nn.compact
    def __call__(self, x):
        for i in range(8):
            x = Layer(name=f"layer{{i}}")(x)
        return x


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(128)(x)
        x = {}(name="stack")(x)
        return nn.Dense(1)(x)


def loss(params, x):
    return (Model().apply(params, x) ** 2).mean()


step = jax.value_and_grad(loss)
"""


def chain(each: str = "block", last: str = "block", loss: str = "loss") -> str:
    return CHAIN.format(each, last=last, loss=loss)


def scan(body: str = "layer", n: int = 6) -> str:
    return SCAN.format(body=body, n=n)


CKPT = "jax.checkpoint(block)"
POLICY = "jax.checkpoint(block, policy=jax.checkpoint_policies.everything_saveable)"
TERMS = (
    HEAD
    + """\
def one(ws, x):
    for w in ws[:6]:
        x = block(x, w)
    return (x ** 2).mean()


def other(ws, x):
    return -one(ws, jnp.flip(x))


def loss(ws, x):
    return {one}(ws, x) + {other}(ws, x)


step = jax.value_and_grad(loss)
"""
)
TRUNK = (
    HEAD
    + """\
def trunk(ws, x):
    body = jax.checkpoint(lambda x, w: (block(x, w), None), prevent_cse=False)
    return jax.lax.scan(body, x, ws)[0]


def loss(ws, x):
    return (({trunk}(ws, jnp.sin(x)) @ ws[0]) ** 2).mean()


step = jax.value_and_grad(loss)
"""
)
STEPS = (
    HEAD
    + """\
def loss(ws, x):
    body = jax.checkpoint(lambda x, _: (block(x, ws[0]), None), prevent_cse=False)

    def segment(x, _):
        return jax.lax.scan(body, x, None, length=32)

    return ({} ** 2).mean()


step = jax.value_and_grad(loss)
"""
)
PROGRAMS = {
    "steps": STEPS.format("jax.lax.scan(body, x, None, length=1024)[0]"),
    "segments": STEPS.format("jax.lax.scan(jax.checkpoint(segment), x, None, length=32)[0]"),
    "terms": TERMS.format(one="jax.checkpoint(one)", other="jax.checkpoint(other)"),
    "plain terms": TERMS.format(one="one", other="other"),
    "trunk": TRUNK.format(trunk="trunk"),
    "checkpointed trunk": TRUNK.format(trunk="jax.checkpoint(trunk)"),
    "plain": chain(),
    "whole": chain(loss="jax.checkpoint(loss)"),
    "last": chain(last=CKPT),
    "each": chain(CKPT, CKPT),
    "doubled": chain("jax.checkpoint(jax.checkpoint(block), prevent_cse=False)", CKPT),
    "whole of each": chain(CKPT, CKPT, "jax.checkpoint(loss)"),
    "no barriers": chain("jax.checkpoint(block, prevent_cse=False)"),
    "saves everything": chain(POLICY),
    "scan": scan(),
    "short scan": scan(n=3),
    "body": scan("jax.checkpoint(layer)"),
    "body without barriers": scan("jax.checkpoint(layer, prevent_cse=False)"),
    "entropy": LOGITS.format("entropy"),
    "last entropy": LOGITS.format("jax.checkpoint(entropy)"),
    "logsumexp": LOGITS.replace(*LOGSUMEXP).format("entropy"),
    "last logsumexp": LOGITS.replace(*LOGSUMEXP).format("jax.checkpoint(entropy)"),
    "stack": STACK.format("Stack"),
    "whole stack": STACK.format("nn.remat(Stack)"),
}

Measured = tuple[float, float]  # temporary bytes, FLOPs


def same(one: float, other: float) -> bool:
    return one == pytest.approx(other, rel=0.03)


def saves_nothing_and_costs(which: str, other: str) -> Callable[[Mapping[str, Measured]], bool]:
    """The memory is that of another program, and there are more FLOPs."""
    return lambda m: same(m[which][0], m[other][0]) and m[which][1] > 1.02 * m[other][1]


def is_free(which: str, other: str) -> Callable[[Mapping[str, Measured]], bool]:
    """Memory and FLOPs are those of another program."""
    return lambda m: same(m[which][0], m[other][0]) and same(m[which][1], m[other][1])


# The sentence, the program in which it is printed, and what is true of the compiled program.
CLAIMS: dict[str, tuple[str, Callable[[Mapping[str, Measured]], bool]]] = {
    "{}; it saves no memory, and computes everything once more": (
        "whole",
        lambda m: same(m["whole"][0], m["plain"][0]) and m["whole"][1] > 1.3 * m["plain"][1],
    ),
    "{}; it saves no memory, and may compute everything once more": (
        "whole of a gradient",
        saves_nothing_and_costs("whole", "plain"),
    ),
    "; recomputing the stack keeps the residuals of all layers at once": (
        "whole stack",
        saves_nothing_and_costs("whole stack", "stack"),
    ),
    "`{}` wraps the last stage of what `{}` differentiates; it saves no memory, and may compute"
    " the stage twice": ("last", saves_nothing_and_costs("last", "plain")),
    "remove it, unless `remat-migrate measure` shows that the compiled program then needs more"
    " memory": ("", saves_nothing_and_costs("last", "plain")),
    "the body of `{}` is differentiated without a checkpoint; every iteration keeps"
    " its residuals": (
        "scan",
        lambda m: m["scan"][0] > 1.5 * m["short scan"][0],
    ),
    "if memory is short, use `{}, prevent_cse=False)`": (
        "",
        lambda m: m["body without barriers"][0] < 0.5 * m["scan"][0],
    ),
    "`{}` in `{}` does not need `prevent_cse=True`; its barriers save no memory": (
        "body",
        is_free("body", "body without barriers"),
    ),
    "wraps nothing but a checkpoint, and is redundant": ("doubled", is_free("doubled", "each")),
    "wraps stages that are already checkpointed; it saves no memory, and may compute each stage"
    " once more": ("whole of each", saves_nothing_and_costs("whole of each", "each")),
    "`prevent_cse=False` outside a loop; the program that `jax.jit` compiles needs as much"
    " memory as without the checkpoint": (
        "no barriers",
        lambda m: m["each"][0] < 0.7 * m["plain"][0] and same(m["no barriers"][0], m["plain"][0]),
    ),
    "the gradient of `{}` keeps the carries of all {} steps in memory; in checkpointed segments of"
    " {} steps, it keeps about {}": (
        "steps",
        lambda m: m["segments"][0] < 0.1 * m["steps"][0] and m["segments"][1] < 1.6 * m["steps"][1],
    ),
    "{} saves everything, so the checkpoint recomputes nothing and saves no memory": (
        "saves everything",
        lambda m: (
            same(m["saves everything"][1], m["plain"][1])
            and m["saves everything"][0] > 0.97 * m["plain"][0]
        ),
    ),
}  # fmt: skip
PRINTED = {
    **PROGRAMS,
    "whole of a gradient": chain(loss="jax.checkpoint(loss)").replace("value_and_grad", "grad"),
}

COMPILE = """\
import json, sys
import jax

found = {}
for name, text in json.load(sys.stdin).items():
    scope = {}
    exec(compile(text, name, "exec"), scope)
    x = jax.ShapeDtypeStruct((512, 128), "float32")
    weights = jax.ShapeDtypeStruct((8, 128, 128), "float32")
    if "Model" in scope:
        weights = jax.eval_shape(scope["Model"]().init, jax.random.PRNGKey(0), x)
    compiled = jax.jit(scope["step"]).lower(weights, x).compile()
    cost = compiled.cost_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    found[name] = compiled.memory_analysis().temp_size_in_bytes, cost["flops"]
print(json.dumps(found))
"""


def measured() -> dict[str, Measured]:
    # Before 0.11, XLA for the CPU drops the barriers before it merges what is equal. The code that
    # LLVM makes at the end needs no optimizing: nobody runs it.
    flags = "--xla_disable_hlo_passes=cse_barrier_expander --xla_backend_optimization_level=0"
    ran = subprocess.run(
        [sys.executable, "-c", COMPILE],
        input=json.dumps(PROGRAMS),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
    )
    return {name: tuple(numbers) for name, numbers in json.loads(ran.stdout).items()}


# A checkpoint, the program without it, and the rule that finds that it saves no memory.
SAVES_NONE = [
    ("terms", "plain terms", "RMT301"),
    ("last logsumexp", "logsumexp", "RMT302"),
    ("checkpointed trunk", "trunk", "RMT305"),
]


def test_compiled() -> None:
    """One test, so that one process of a parallel run compiles all programs."""
    pytest.importorskip("jax")
    found = measured()
    assert [sentence for sentence, (_, holds) in CLAIMS.items() if not holds(found)] == [], found
    for which, without, _ in SAVES_NONE:
        assert found[which][0] > 0.97 * found[without][0], which
        assert found[which][1] >= found[without][1], which
    # The rule leaves this one alone.
    assert found["last entropy"][0] < 0.8 * found["entropy"][0]


@pytest.mark.parametrize("sentence", [s for s, (program, _) in CLAIMS.items() if program])
def test_printed(sentence: str) -> None:
    shown = re.escape(sentence).replace(re.escape("{}"), ".*")
    messages = [finding.message for finding in findings(PRINTED[CLAIMS[sentence][0]], select="RMT")]
    assert any(re.search(shown, message) for message in messages), messages


def test_a_checkpoint_that_saves_memory_is_left_alone() -> None:
    assert findings(PROGRAMS["last entropy"], select="RMT302") == []


@pytest.mark.parametrize(("which", "_without", "code"), SAVES_NONE)
def test_a_checkpoint_that_saves_none_is_found(which: str, _without: str, code: str) -> None:
    assert {finding.code for finding in findings(PROGRAMS[which], select="RMT3")} == {code}


def test_each_sentence_has_a_claim() -> None:
    texts = {text for path in RULES.rglob("*.py") for text in _texts(ast.parse(path.read_text()))}
    assert {text for text in texts if _CLAIM.search(text)} == CLAIMS.keys()


def _texts(tree: ast.AST, inside: bool = False) -> Iterator[str]:
    """Yield the strings in functions, with `{}` for what is filled in; no docstrings."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef(body=[ast.Expr(value=ast.Constant()) as documentation, *_]):
                yield from (t for n in node.body if n is not documentation for t in _texts(n, True))
            case ast.FunctionDef():
                yield from _texts(node, True)
            case ast.JoinedStr(values=parts) if inside:
                yield "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in parts)
            case ast.Constant(value=str(text)) if inside:
                yield text
            case _:
                yield from _texts(node, inside)
