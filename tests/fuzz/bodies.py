"""Templates for the bodies of checkpointed functions: lines that change the vector `y`.

In a template `{n}` is a value of the kind under which it is listed, `{v}` a new name, `{other}` the
condition of another flag, `{step}` a step without conditions, `{ret}` the returned expression.
Every template keeps `y` a float32 vector of three entries of moderate size, so that steps can be
combined in any order and differentiated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .drawing import Draw

STEPS = (
    "y = y * 2.0",
    "y = jnp.sin(y)",
    "y = jnp.tanh(y) + y",
    "y = y - W",
    "y = jnp.cos(y) * W",
    "y = jax.nn.relu(y) + 0.1 * y",
    "y = y + jnp.mean(y)",
    "y = jnp.stack([y, W]).sum(0)",
    "y += 0.5",
)

# By kind: uses of a value. Uses that need a concrete value come first.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "flag": (
        "if {n}:\n    {step}",
        "if {n}:\n    {step}\nelse:\n    {step}",
        "y = jnp.sin(y) if {n} else y",
        "if not {n}:\n    {step}\nelif {other}:\n    {step}",
        "if {n} and {other}:\n    {step}",
        "if {other} or {n}:\n    {step}",
        "y = (jnp.sin if {n} else jnp.cos)(y)",
        "y = {{True: jnp.sin, False: jnp.cos}}[{n}](y)",
        "y = bend(y, {n})",
        "y = bend(y, on={n})",
        "while {n}:\n    {step}\n    break",
        "if {n} is True:\n    {step}",
        "if {n} == False:\n    {step}",
        "y = y * [2.0, 3.0][{n}]",
        "y = jnp.sum(jnp.stack([y, y]), axis=0, keepdims=bool({n}))[..., :3].reshape(3)",
        "match {n}:\n    case True:\n        {step}\n    case _:\n        {step}",
        "if ({v} := {n}):\n    {step}",
        "def {v}(z):\n    return z * 2.0 if {n} else z\ny = {v}(y)",
        "y = (lambda z: z + 1.0 if {n} else z)(y)",
        "for {v} in (True, False):\n    if {v} is {n}:\n        {step}",
        "y = sum([jnp.sin(y) for _ in range(2) if {n}], y)",
        "assert {n} in (True, False)\n{step}",
        "{v} = jax.lax.cond({other}, jnp.sin, jnp.cos, y)\nif {n}:\n    y = {v}",
        "y, {v} = (y, 1) if {n} else (y * 2.0, 2)",
        "try:\n    y = y * {{True: 2.0}}[{n}]\nexcept KeyError:\n    {step}",
        "y = y * float({n})",
        "{v} = dict(on={n})\ny = bend(y, **{v})",
        "match {n}:\n    case bool():\n        {step}\n    case _:\n        {step}",
        "{v} = [{n}, {other}]\nif all({v}):\n    {step}",
        "y = scan_with(y, {n})",
        # May be traced.
        "y = jnp.where({n}, y, -y)",
        "y = y * {n}",
        "y = jax.lax.cond({n}, jnp.sin, jnp.cos, y)",
        "y = y + jnp.asarray({n}, y.dtype)",
        "if {n} is None:\n    {step}",
        "if isinstance({n}, str):\n    {step}",
    ),
    "count": (
        "for _ in range({n}):\n    {step}",
        "if {n} > 1:\n    {step}",
        "y = y * jnp.sum(y[:{n}])",
        "{v} = {n}\nwhile {v} > 0:\n    {step}\n    {v} -= 1",
        "y = (jnp.sin, jnp.cos, jnp.tanh)[{n} % 3](y)",
        "y = y + jnp.ones({n}).sum()",
        "y = y + sum(jnp.sin(y) for _ in range({n}))",
        "if 0 < {n} <= 2:\n    {step}",
        "y = repeat(y, {n})",
        "y = repeat(y, times={n})",
        "y = functools.reduce(lambda a, _: jnp.sin(a), range({n}), y)",
        "y = y * TABLE[f'k{{{n}}}']",
        "y = jax.lax.fori_loop(0, {n}, lambda _, z: jnp.sin(z), y)",
        "y = jax.lax.scan(lambda z, _: (jnp.sin(z), None), y, None, length={n})[0]",
        "y = y + jnp.zeros(({n}, 3)).sum(0)",
        "y = jnp.tile(y, {n})[:3]",
        "match {n}:\n    case 1 | 2:\n        {step}\n    case {v}:\n        y = y * {v}",
        "y = y + len([0] * {n})",
        "if ({v} := {n} % 2):\n    {step}",
        "y = y + int({n})",
        "y = jnp.stack([y * i for i in range(1, {n} + 1)]).sum(0)",
        "y = y * np.arange(3.0)[-{n}:].sum()",
        "y = jnp.concatenate([y, y])[:: {n}][:1] * y",
        "match {n}:\n    case int():\n        {step}\n    case _:\n        {step}",
        "if jnp.greater({n}, 1):\n    {step}",
        "for _ in range(int(jnp.ceil({n} / 2))):\n    {step}",
        # May be traced.
        "y = y ** {n}",
        "y = y * {n}",
        "y = y / ({n} + 1)",
        "y = y + jnp.arange(3) * {n}",
        "y = jax.lax.dynamic_slice(jnp.concatenate([y, y]), ({n},), (3,))",
    ),
    "mode": (
        "if {n} == 'sin':\n    {step}",
        "y = OPS[{n}](y)",
        "y = getattr(jnp, {n})(y)",
        "if {n} in ('cos', 'tanh'):\n    {step}\nelse:\n    {step}",
        "match {n}:\n    case 'sin':\n        {step}\n    case 'cos':\n        {step}",
        "if {n}.startswith('s') or {other}:\n    {step}",
        "y = apply(OPS[{n}], y)",
        "y = y * {{'sin': 2.0}}.get({n}, 3.0)",
        "{v} = OPS.get({n})\nif {v} is not None:\n    y = {v}(y)",
        "y = select(y, mode={n})",
    ),
    "rate": (
        "if {n} > 0.3:\n    {step}",
        "y = y * math.sin({n})",
        "if {n} and {other}:\n    {step}",
        "y = y + round({n})",
        "y = y * float({n})",
        "y = bend(y, {n} > 0)",
        "match {n}:\n    case float():\n        {step}\n    case _:\n        {step}",
        "if isinstance({n}, float):\n    {step}",
        # May be traced.
        "y = y * {n}",
        "y = y + jnp.sqrt({n})",
        "y = y - (1.0 - {n})",
    ),
    "axis": (
        "y = y + jnp.sum(y, axis={n})",
        "y = jnp.flip(y, axis={n})",
        "if {n} == 0:\n    {step}",
        "y = jnp.roll(y, 1, {n})",
    ),
    "shape": (
        "y = y.reshape({n}).reshape(3)",
        "y = y + jnp.zeros({n}).sum()",
        "if len({n}) == 1:\n    {step}",
        "y = y * math.prod({n})",
        "for {v} in {n}:\n    y = y + {v}",
    ),
    "options": (
        "if {n}.deep:\n    {step}",
        "for _ in range({n}.times):\n    {step}",
        "y = bend(y, {n}.deep)",
        "y = OPS[{n}.mode](y)",
        "y = configured(y, {n})",
        "y = y * {n}.rate",
    ),
    "settings": (
        "if {n}['deep']:\n    {step}",
        "for _ in range({n}.get('times', 1)):\n    {step}",
        "y = bend(y, **{{'on': {n}['deep']}})",
        "y = y * {n}['rate']",
    ),
    "activation": (
        "y = {n}(y)",
        "y = apply({n}, y)",
        "if {n} is jnp.sin:\n    {step}",
        "y = {n}(y) if {n} is not None and {other} else y",
    ),
    "vector": ("y = y + {n}", "y = y * jnp.cos({n})", "y = jnp.dot({n}, y) * y"),
    "matrix": ("y = y @ {n}", "y = jnp.tanh({n} @ y)", "y = y + jnp.sum({n}, axis=0)"),
    "params": (
        "y = y * {n}['w'] + {n}['b']",
        "for {v} in sorted({n}):\n    y = y + {n}[{v}]",
        "y = y + sum(jax.tree_util.tree_leaves({n}))",
    ),
    "pair": ("{v}, *_ = {n}\ny = y * {v}", "y = y + {n}[0] * {n}[1]"),
    "maybe": (
        "if {n} is not None:\n    y = y + {n}",
        "y = y if {n} is None else y * {n}",
        "y = y + ({n} if {n} is not None else 0.0)",
    ),
}

# Computed from constants and shapes alone; under a checkpoint the results of `jnp` are traced, too.
COMPILE_TIME = (
    "y = y * float(jnp.sqrt(y.shape[-1]))",
    "y = y / int(jnp.prod(jnp.array(y.shape)))",
    "if jnp.any(jnp.arange(LAYERS) > 0):\n    y = jnp.sin(y)",
    "for _ in range(int(jnp.log2(4))):\n    y = jnp.cos(y)",
)

# By kind: values derived from one of this kind, with their kinds.
DERIVED: dict[str, tuple[tuple[str, str], ...]] = {
    "flag": (
        ("{v} = not {n}", "flag"),
        ("{v} = {n} and {other}", "flag"),
        ("{v} = bool({n})", "flag"),
        ("{v} = int({n}) + 1", "count"),
        ("{v} = 'sin' if {n} else 'cos'", "mode"),
        ("{v} = 0.5 if {n} else 0.25", "rate"),
        ("{n} = {n} and {other}", "flag"),
        ("{v}: bool = {n}", "flag"),
    ),
    "count": (
        ("{v} = {n} > 1", "flag"),
        ("{v} = min({n}, 2)", "count"),
        ("{v} = 1.0 / {n}", "rate"),
        ("{v} = ('sin', 'cos')[{n} % 2]", "mode"),
        ("{v} = -(({n} > 1) + 0)", "axis"),
        ("{n} = max(1, {n} - 1)", "count"),
    ),
    "mode": (("{v} = {n} == 'sin'", "flag"), ("{v} = len({n})", "count")),
    "rate": (("{v} = {n} > 0.3", "flag"), ("{v} = round({n}) + 1", "count")),
    "shape": (("{v} = len({n})", "count"), ("*_, {v} = {n}", "count")),
    "options": (("{v} = {n}.deep", "flag"), ("{v}, _ = {n}.times, None", "count")),
    "settings": (("{v} = {n}['deep']", "flag"), ("{v} = {n}.get('times')", "count")),
}

# Functions and values that templates read, with their own dependencies.
SHARED = {
    "np": "import numpy as np",
    "math": "import math",
    "functools": "import functools",
    "W": "W = jnp.array([0.5, -0.25, 1.0])",
    "OPS": 'OPS = {"sin": jnp.sin, "cos": jnp.cos, "tanh": jnp.tanh}',
    "TABLE": 'TABLE = {"k1": 0.5, "k2": 0.7, "k3": 0.9, "k4": 1.1}',
    "bend": "def bend(y, on):\n    if on:\n        y = jnp.sin(y)\n    return y",
    "repeat": "def repeat(y, times):\n    return y if not times else repeat(jnp.cos(y), times - 1)",
    "apply": "def apply(function, *args, **kwargs):\n    return function(*args, **kwargs)",
    "select": "def select(y, *, mode):\n    return jnp.sin(y) if mode == 'sin' else jnp.cos(y)",
    "configured": "def configured(y, c):\n    return bend(y, c.deep) * c.rate",
    # Names like those that a fix might choose.
    **{
        f"{prefix}_{name}": f"def {prefix}_{name}(y):\n    return y * 3.0"
        for prefix in ("plain", "checkpointed")
        for name in ("block", "layer", "mix")
    },
    "no_remat": "def no_remat(fun, **options):\n    return fun",
    "STEPS": "STEPS = 2",
    "scan_with": (
        "def scan_with(y, on):\n    def body(carry, _):\n"
        "        return (jnp.sin(carry) if on else carry), None\n\n"
        "    return jax.lax.scan(body, y, None, length=2)[0]"
    ),
}
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def shared_by(text: str) -> list[str]:
    """Return the shared definitions that a text reads, imports and dependencies first."""
    wanted: list[str] = []
    met: set[str] = set()

    def want(read: str) -> None:
        for word in _WORD.findall(read):
            if word in SHARED and word not in met:
                met.add(word)
                if not SHARED[word].startswith("import"):
                    want(SHARED[word])
                wanted.append(word)

    want(text)
    wanted.sort(key=lambda word: not SHARED[word].startswith("import"))
    return [SHARED[word] for word in wanted]


@dataclass
class Scope:
    """The values that lines may read, by name, with their kinds; `y` is always there."""

    values: dict[str, str]
    taken: set[str] = field(default_factory=set)

    def of(self, kinds: Iterable[str]) -> list[str]:
        wanted = set(kinds)
        return [name for name, kind in self.values.items() if kind in wanted]

    def fresh(self) -> str:
        """Return an unused name."""
        names = ("k", "value", "on", "inner", "t", "again", "that", "local", "q", "z1", "z2")
        taken = {*self.values, *self.taken}
        extra = (f"v{number}" for number in range(1000))
        name = next(n for n in (*names, *extra) if n not in taken)
        self.taken.add(name)
        return name


def body(draw: Draw, scope: Scope, most: int, ret: str) -> list[str]:
    """Return the lines of a function's body before its `return`."""
    lines: list[str] = []
    known = [name for name, kind in scope.values.items() if kind in TEMPLATES]
    # A value that is not a JAX type must be needed by something. An object of which only numbers
    # are read
    # could as well hold arrays.
    for name in scope.of(["mode", "options", "activation"]):
        first = draw.pick(TEMPLATES[scope.values[name]][:4])
        lines += filled(draw, first, name, scope, ret, scope.fresh())
    for _ in range(draw.count(1, most)):
        if not known or draw.flip(25):
            lines.append(draw.pick(STEPS))
            continue
        name = draw.pick(known)
        kind = scope.values[name]
        if kind in DERIVED and draw.flip(20):
            template, derived = draw.pick(DERIVED[kind])
            new = scope.fresh()
            lines += filled(draw, template, name, scope, ret, new)
            if "{v}" in template:
                scope.values[new] = derived
                known.append(new)
            continue
        if kind in ("flag", "count") and draw.flip(4):
            test = name if kind == "flag" else f"{name} > 1"
            lines += [f"if {test}:", f"    {draw.pick(STEPS)}", f"    return {ret}"]
            continue
        lines += filled(draw, draw.pick(TEMPLATES[kind]), name, scope, ret, scope.fresh())
    return lines


def filled(draw: Draw, template: str, name: str, scope: Scope, ret: str, new: str) -> list[str]:
    """Return the lines of a template."""
    flags: Sequence[str] = [n for n in scope.of(["flag"]) if n != name] or ["DEEP"]
    text = template
    while "{step}" in text:
        text = text.replace("{step}", draw.pick(STEPS), 1)
    other = draw.pick(flags) if "{other}" in text else ""
    return text.format(n=name, v=new, other=other, ret=ret).split("\n")
