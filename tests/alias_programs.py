"""Generated programs that call a checkpointed function through transformed aliases.

Each program is a module with a function `main()` that returns values and gradients. The programs
vary the function (which parameters must be concrete, which have defaults), the transformation and
how it selects arguments, where the alias is stored, and how it is called.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

_HEAD = """\
from functools import partial

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P

MESH = Mesh(np.array(jax.devices()[:1]), ("data",))


"""

# Function name -> its definition, without the checkpoint.
FUNCTIONS = {
    # A branch on a flag, and a string that usually has its default value.
    "mode": """\
def cell(w, x, train, act="relu"):
    h = jnp.sum(w * x, axis=-1)
    if train:
        h = h * 0.5
    return jnp.tanh(h) if act == "tanh" else jax.nn.relu(h) + h
""",
    # A number that need not be concrete precedes the flag.
    "gap": """\
def cell(w, x, scale=2.0, train=False):
    h = jnp.tanh(jnp.sum(w * x, axis=-1) * scale)
    return h * 0.5 if train else h
""",
    # Only a flag, always passed.
    "flag": """\
def cell(w, x, train):
    h = jnp.sum(w * x, axis=-1)
    return jnp.sin(h) if train else h
""",
}

# Function name -> arguments after `w, x`, in the forms of a call.
CALLS = {
    "mode": {
        "omitted": "True",
        "positional": 'True, "tanh"',
        "keyword": 'True, act="tanh"',
        "keywords": 'act="tanh", train=False',
    },
    "gap": {
        "omitted": "",
        "positional": "3.0, True",
        "keyword": "train=True",
        "keywords": "train=True, scale=3.0",
    },
    "flag": {
        "positional": "True",
        "keyword": "train=True",
    },
}


@dataclass(frozen=True)
class Transform:
    """A transformation of `cell`, as `TEXT % what`, with arrays `w` and `x` of the right shape.

    `differentiate`: whether to take a gradient of its result.
    """

    text: str
    arrays: str = "W, X"
    differentiate: bool = True


def _transforms(function: str) -> Iterator[tuple[str, Transform]]:
    names = {"mode": ("train", "act"), "gap": ("scale", "train"), "flag": ("train",)}[function]
    needed = {"mode": ("train", "act"), "gap": ("train",), "flag": ("train",)}[function]
    total = 2 + len(names)
    every = tuple(2 + names.index(name) for name in needed)
    first = every[:1]
    for label, given in (
        ("none", ""),
        ("first", f", static_argnums={first!r}"),
        ("all", f", static_argnums={every!r}"),
        ("list", f", static_argnums={list(every)!r}"),
        ("number", f", static_argnums={first[0]}"),
        ("names", f", static_argnames={needed!r}".replace("'", '"')),
        ("name", f', static_argnames="{needed[0]}"'),
        ("both", f", static_argnums={first!r}, static_argnames={needed!r}".replace("'", '"')),
        ("donated", f", static_argnums={every!r}, donate_argnums=()"),
        ("negative", ", static_argnums=-1"),
        ("constant", ", static_argnums=STATIC"),
    ):
        yield f"jit_{label}", Transform(f"jax.jit(%s{given})")
    for label, axes in (
        ("none", ""),
        ("whole", ", in_axes=0"),
        ("arrays", ", in_axes=(None, 0)"),
        ("one", ", in_axes=(None, 0, None)"),
        ("all", f", in_axes=(None, 0{', None' * (total - 2)})"),
        ("positional", ", (None, 0, None)"),
        ("list", f", in_axes=[None, 0{', None' * (total - 2)}]"),
        ("constant", ", in_axes=AXES"),
    ):
        arrays = "WS, X" if axes in ("", ", in_axes=0") else "W, X"
        yield f"vmap_{label}", Transform(f"jax.vmap(%s{axes})", arrays)
    yield "hk_vmap", Transform("hk.vmap(%s, in_axes=(None, 0, None), split_rng=False)")
    yield "pmap", Transform("jax.pmap(%s)", "W[None], X[None]")
    yield (
        "pmap_static",
        Transform(f"jax.pmap(%s, static_broadcasted_argnums={first!r})", "W[None], X[None]"),
    )
    yield (
        "pmap_axes",
        Transform(
            f"jax.pmap(%s, in_axes=(None, 0, None), static_broadcasted_argnums={first!r})",
            "W, X[None]",
        ),
    )
    specs = ", ".join(["P()", 'P("data")', *["P()"] * (total - 3)])
    yield "shard_map", Transform(f"jax.shard_map(%s, mesh=MESH, in_specs=({specs}), out_specs=P())")
    yield (
        "shard_map_arrays",
        Transform("jax.shard_map(%s, mesh=MESH, in_specs=(P(), P()), out_specs=P())"),
    )
    for label, argnums in (
        ("", ""),
        ("_one", ", argnums=1"),
        ("_both", ", argnums=(0, 1)"),
        ("_negative", ", argnums=-2"),
        ("_last", ", argnums=-3"),
    ):
        arrays = "W[0], X[0]"
        yield f"grad{label}", Transform(f"jax.grad(%s{argnums})", arrays, False)
    yield "value_and_grad", Transform("jax.value_and_grad(%s)", "W[0], X[0]", False)
    yield "jacfwd", Transform("jax.jacfwd(%s)", "W[0], X[0]", False)
    yield "hessian", Transform("jax.hessian(%s)", "W[0], X[0]", False)
    yield "filter_jit", Transform("eqx.filter_jit(%s)")
    yield "filter_grad", Transform("eqx.filter_grad(%s)", "W[0], X[0]", False)
    yield "filter_vmap", Transform("eqx.filter_vmap(%s)", "WS, X")
    yield "filter_vmap_axes", Transform("eqx.filter_vmap(%s, in_axes=(None, 0, None))")
    yield "named_call", Transform('jax.named_call(%s, name="cell")')
    yield "custom_gradient", Transform("with_rule(%s)", "W[0], X[0]")
    yield (
        "jit_vmap",
        Transform(
            f"jax.jit(jax.vmap(%s, in_axes=(None, 0, None)), static_argnums={first!r})",
        ),
    )
    yield (
        "vmap_jit",
        Transform(f"jax.vmap(jax.jit(%s, static_argnums={first!r}), in_axes=(None, 0, None))"),
    )
    yield (
        "vmap_vmap",
        Transform(
            "jax.vmap(jax.vmap(%s, in_axes=(None, 0, None)), in_axes=(0, None, None))", "WS, X"
        ),
    )
    yield (
        "jit_grad",
        Transform(f"jax.jit(jax.grad(%s), static_argnums={first!r})", "W[0], X[0]", False),
    )
    yield (
        "grad_jit",
        Transform(
            f"jax.value_and_grad(jax.jit(%s, static_argnames={needed!r}))", "W[0], X[0]", False
        ),
    )
    yield (
        "jit_jit",
        Transform(f"jax.jit(jax.jit(%s, static_argnums={every!r}), static_argnums={first!r})"),
    )
    yield "shared", Transform(f"FAST{len(first)}(%s)")
    yield "make_jaxpr", Transform(f"jaxpr_value(%s, static_argnums={first!r})")


_CONSTANTS = """\
STATIC = (2,)
AXES = (None, 0, None)
W, X = jnp.linspace(-1.0, 1.0, 3), jnp.linspace(0.1, 2.0, 12).reshape(4, 3)
WS = jnp.stack([W, 2 * W, 3 * W, -W])
FAST1 = partial(jax.jit, static_argnums=(2,))


"""

_HELPERS = {
    "with_rule": """\
def with_rule(f):
    @jax.custom_gradient
    def ruled(*args):
        out, back = jax.vjp(lambda w, x: f(w, x, *args[2:]), *args[:2])
        return out, lambda g: (*back(g), *[None] * (len(args) - 2))

    return ruled


""",
    "jaxpr_value": """\
def jaxpr_value(f, static_argnums):
    made = jax.make_jaxpr(f, static_argnums=static_argnums)

    def run(*args, **kwargs):
        jaxpr = made(*args, **kwargs)
        return jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args[:2])[0]

    return run


""",
}

# How the alias is stored: text with CELL, the transformed cell, and CALL, a call of it.
ALIASES = {
    "module": """\
{cell}

fast = {made}


def run(W, X):
    return {call}
""",
    "local": """\
{cell}

def run(W, X):
    fast = {made}
    return {call}
""",
    "direct": """\
{cell}

def run(W, X):
    return {direct}
""",
    "attribute": """\
{cell}

class Trainer:
    def __init__(self):
        self.fast = {made}

    def step(self, W, X):
        return {self_call}


def run(W, X):
    return Trainer().step(W, X)
""",
    "method": """\
class Trainer:
    def __init__(self):
        self.cell = jax.checkpoint(self._cell, concrete=True)
        self.fast = {self_made}

{method}
    def step(self, W, X):
        return {self_call}


def run(W, X):
    return Trainer().step(W, X)
""",
    "dict": """\
{cell}

STEPS = {{"fast": {made}}}


def run(W, X):
    return {dict_call}
""",
    "factory": """\
{cell}

def make():
    return {made}


def run(W, X):
    fast = make()
    return {call}
""",
    "decorator": """\
@{decorator}
{cell}

def run(W, X):
    return {cell_call}
""",
    "assigned": """\
{plain}

cell = jax.checkpoint(_cell, concrete=True)
fast = {made}


def run(W, X):
    return {call}
""",
}

_MAIN = """

def main():
    if {differentiate}:
        total = lambda w: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(run(w, X)))
        return jax.value_and_grad(total)(W)
    return run(W, X)
"""


def _indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(True))


def _program(function: str, transform: Transform, alias: str, calls: list[str]) -> str:
    plain = FUNCTIONS[function]
    decorated = f"@partial(jax.checkpoint, concrete=True)\n{plain}"
    text = transform.text

    def called(head: str) -> str:
        made = []
        for call in calls:
            arguments = transform.arrays + (f", {call}" if call else "")
            made.append(f"{'1.0 * ' * transform.differentiate}{head}({arguments})")
        return ", ".join(made) if len(made) == 1 else f"({', '.join(made)})"

    decorator = ""
    if text.count("(%s") == 1:
        inner = text.partition("(%s")
        rest = inner[2].removeprefix(", ")
        decorator = f"partial({inner[0]}, {rest}" if rest != ")" else inner[0]
    body = ALIASES[alias].format(
        cell=decorated,
        plain=plain.replace("def cell", "def _cell"),
        method=_indented(plain.replace("def cell(", "def _cell(self, ")),
        made=text % "cell",
        self_made=text % "self.cell",
        decorator=decorator,
        call=called("fast"),
        self_call=called("self.fast"),
        direct=called(text % "cell"),
        dict_call=called('STEPS["fast"]'),
        cell_call=called("cell"),
    )
    helpers = "".join(helper for name, helper in _HELPERS.items() if name in text)
    main = _MAIN.format(differentiate=transform.differentiate)
    return _HEAD + _CONSTANTS + helpers + body + main


def programs() -> dict[str, str]:
    """Return the programs by name. Some do not run: not every call fits every transformation."""
    found: dict[str, str] = {}
    for function, forms in CALLS.items():
        for label, transform in _transforms(function):
            for alias, form in itertools.product(ALIASES, [*forms, "two"]):
                calls = [*forms.values()][:2] if form == "two" else [forms[form]]
                if alias != "decorator" or _is_decorator(transform):
                    name = f"{function}_{label}_{alias}_{form}"
                    found[name] = _program(function, transform, alias, calls)
    return found


def _is_decorator(transform: Transform) -> bool:
    text = transform.text
    return text.count("(%s") == 1 and "(jax" not in text and ", (" not in text
