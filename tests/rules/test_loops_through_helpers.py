"""RMT304 and RMT303 where helper functions of the project run the loop."""

from __future__ import annotations

import re

import pytest
from support import findings

from remat_migrate.text import apply_edits

HEAD = """\
import functools
import haiku as hk
import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax


def layer(x, w):
    return jnp.tanh(x @ w)


def block(x):
    return jnp.tanh(x)
"""

# A stack of layers as a Haiku module, like `hk.experimental.layer_stack`.
STACK = """
class _Stack(hk.Module):
    def __init__(self, count, unroll=1, name=None):
        super().__init__(name=name)
        self._count = count
        self._unroll = unroll

    def __call__(self, x, *args):
        def body(carry, _):
            return self._call(carry, *args), None
        out, _ = hk.scan(body, x, None, length=self._count, unroll=self._unroll)
        return out

    def _call(self, x, *args):
        raise NotImplementedError


class _NoState(_Stack):
    def __init__(self, f, count, unroll=1, name=None):
        super().__init__(count=count, unroll=unroll, name=name)
        self._f = f

    def _call(self, x, *args):
        return self._f(x, *args)


def layer_stack(count, unroll=1, name=None):
    def iterate(f):
        @functools.wraps(f)
        def wrapped(x, *args):
            return _NoState(f, count, unroll=unroll, name=name)(x, *args)
        return wrapped
    return iterate
"""

IN_LOOPS = {
    "own_layer_stack": STACK
    + """
def run(x):
    f = hk.remat(block)
    return layer_stack(8)(f)(x)
""",
    "repeated_direct": """
def repeated(f, x, n):
    return lax.fori_loop(0, n, lambda i, c: f(c), x)

def model(x):
    return repeated(jax.checkpoint(block), x, 5)
""",
}


@pytest.mark.parametrize("name", IN_LOOPS)
def test_checkpoints_that_helpers_run_in_loops(name: str) -> None:
    [finding] = findings(HEAD + IN_LOOPS[name], select="RMT304")
    assert finding.severity == "note"
    assert finding.fix is not None


NOT_IN_LOOPS = {
    "stack_unrolled": STACK
    + """
def run(x):
    return layer_stack(8, unroll=4)(hk.remat(block))(x)
""",
    "body_ckpt_outside": """
def repeated(f, x, n):
    body = jax.checkpoint(lambda c, _: (f(c), None), prevent_cse=False)
    return lax.scan(body, x, None, length=n)[0]

def model(x):
    return repeated(jax.checkpoint(block), x, 4)
""",
}


@pytest.mark.parametrize("name", NOT_IN_LOOPS)
def test_helpers_that_run_no_loop_or_more_than_one(name: str) -> None:
    assert findings(HEAD + NOT_IN_LOOPS[name], select="RMT304") == []


GRADIENT = "\nstep = jax.grad(loss)\n"
CHECKPOINTED_BY_CALLERS = {
    "wrap_param": """
def run(f, x, ws, wrap=jax.checkpoint):
    g = wrap(f)
    return lax.scan(lambda c, w: (g(c, w), None), x, ws)[0]

def loss(ws, x):
    return run(layer, x, ws).sum()
""",
    "partial_caller": """
def run(fn, x, ws):
    return lax.scan(lambda c, w: (fn(c, w), None), x, ws)[0]

apply = functools.partial(run, jax.checkpoint(layer))

def loss(ws, x):
    return apply(x, ws).sum()
""",
}


@pytest.mark.parametrize("name", CHECKPOINTED_BY_CALLERS)
def test_a_caller_checkpoints_the_body(name: str) -> None:
    assert findings(HEAD + CHECKPOINTED_BY_CALLERS[name] + GRADIENT, select="RMT303") == []


BARE = {
    "plain_caller": """
def run(fn, x, ws):
    return lax.scan(lambda c, w: (fn(c, w), None), x, ws)[0]

def loss(ws, x):
    return run(layer, x, ws).sum()
""",
    "attribute_plain": """
class Stack:
    def __init__(self, fn):
        self.fn = fn

    def __call__(self, x, ws):
        return lax.scan(lambda c, w: (self.fn(c, w), None), x, ws)[0]

def loss(ws, x):
    return Stack(layer)(x, ws).sum()
""",
    "same_name_other_function": """
def run(fn, x, ws):
    return lax.scan(lambda c, w: (fn(c, w), None), x, ws)[0]

class Other:
    def run(self, fn, x, ws):
        return fn(x, ws[0])

def loss(ws, x):
    x = Other().run(jax.checkpoint(layer), x, ws)
    return run(layer, x, ws).sum()
""",
}


@pytest.mark.parametrize("name", BARE)
def test_no_caller_checkpoints_the_body(name: str) -> None:
    [finding] = findings(HEAD + BARE[name] + GRADIENT, select="RMT303")
    assert finding.severity == "note"


def test_calls_that_only_create_parameters() -> None:
    """Haiku creates the parameters of a stack outside the loop."""
    stack = STACK.replace(
        "        def body(carry, _):\n",
        "        if hk.running_init():\n            return self._call(x, *args)\n\n"
        "        def body(carry, _):\n",
    )
    assert stack != STACK
    code = HEAD + IN_LOOPS["own_layer_stack"].replace(STACK, stack)
    [finding] = findings(code, select="RMT304")
    assert finding.confidence == "high"


FLAX = """\
import flax.linen as nn
import jax

class Block(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x, _):
        return nn.tanh(nn.Dense(self.width)(x)), None

class Drop(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Dense(4)(x)
        return x * 2 if train else x, None

class Model(nn.Module):
    {method}

def loss(params, x):
    return Model().apply(params, x).sum()

step = jax.grad(loss)
"""
OPTIONS = 'variable_axes={"params": 0}, split_rngs={"params": True}, length=3'
COMPACT = "@nn.compact\n    def __call__(self, x):\n        "
SCANNED = [
    (
        COMPACT + "return nn.scan(Block, OPTIONS)()(x, None)[0]",
        'nn.scan(nn.remat(Block, prevent_cse=False), OPTIONS)(name="ScanBlock_0")(x, None)',
    ),
    (
        COMPACT + "return nn.scan(Block, OPTIONS)(name='stack')(x, None)[0]",
        "nn.scan(nn.remat(Block, prevent_cse=False), OPTIONS)(name='stack')(x, None)",
    ),
    (
        "def setup(self):\n        self.stack = nn.scan(Block, OPTIONS)()\n\n"
        "    def __call__(self, x):\n        return self.stack(x, None)[0]",
        "self.stack = nn.scan(nn.remat(Block, prevent_cse=False), OPTIONS)()",
    ),
    (
        COMPACT
        + "stack = nn.scan(Drop, in_axes=nn.broadcast, OPTIONS)\n"
        + "        return stack()(x, True)[0]",
        "nn.scan(nn.remat(Drop, static_argnums=(2,), prevent_cse=False), in_axes=nn.broadcast,",
    ),
]


@pytest.mark.parametrize(("method", "wanted"), SCANNED)
def test_flax_scans_get_a_remat_around_the_class(method: str, wanted: str) -> None:
    code = FLAX.format(method=method.replace("OPTIONS", OPTIONS))
    [finding] = findings(code, select="RMT303")
    assert finding.fix is not None
    after = apply_edits(code, finding.fix.edits)
    assert without_layout(wanted.replace("OPTIONS", OPTIONS)) in without_layout(after)


def without_layout(code: str) -> str:
    """Return code without white space and trailing commas."""
    return re.sub(r",(?=[)\]])", "", re.sub(r"\s+", "", code))


def test_flax_scans_that_cannot_be_rewritten_have_advice() -> None:
    made = COMPACT + "return make(nn.scan(Block, OPTIONS))(x, None)[0]"
    [finding] = findings(FLAX.format(method=made.replace("OPTIONS", OPTIONS)), select="RMT303")
    assert finding.fix is not None
    assert finding.fix.safety == "manual"
    assert "`nn.remat(Module, prevent_cse=False)`" in finding.reason
    assert "no instance of it is found" in finding.reason
