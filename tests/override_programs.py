"""Programs in which a checkpointed method calls one that a subclass overrides.

Each is a package with a module `run`, as in `fixtures/programs`, and combines a framework, the form
of the base method, the place of the override, and the checkpointed function.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BASES = ("concrete", "ellipsis", "raises", "abstractmethod")
PLACES = ("subclass", "mixin", "levels", "file", "diamond")


@dataclass(frozen=True)
class Framework:
    """How a framework defines a model.

    Attributes:
        imports: the imports.
        base: the base class to inherit from.
        fields: the beginning of the class; `{stored}` is where attributes are assigned.
        taken: the parameters of the methods besides `self` and `train`.
        hook: the expression that the hook computes.
        applications: the checkpointed functions by name: lines of the method `forward`, which takes
        `taken` and `train`, the text before `run`, and the text at the beginning.
        main: the rest of the module.
    """

    imports: str
    base: str
    fields: str
    taken: str
    hook: str
    applications: dict[str, tuple[str, str, str]]
    main: str


CALL = {
    "method": ("return jax.checkpoint(self.run, concrete=True)({given}, train)", "", ""),
    "hook": ("return jax.checkpoint(self.mix, concrete=True)({given}, train)", "", ""),
    "name": (
        "run = self.run\n        return jax.checkpoint(run, concrete=True)({given}, train=train)",
        "",
        "",
    ),
    "decorated": ("return self.run({given}, train)", "@partial(jax.checkpoint, concrete=True)", ""),
}
STORED = {
    "stored": (
        "return self.fn({given}, train)",
        "",
        "self.fn = jax.checkpoint(self.run, concrete=True)",
    ),
}
DATA = "    x = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)\n"
BOTH = '    return {"train": grad(True), "eval": grad(False)}\n'
FRAMEWORKS = {
    "plain": Framework(
        "import jax\nimport jax.numpy as jnp\n",
        "",
        "    def __init__(self, scale):\n        self.scale = scale\n        {stored}\n",
        "w, x",
        "self.scale * jnp.tanh(x @ w)",
        {**CALL, **STORED},
        "def main():\n" + DATA + "    model = Drop(0.5)\n"
        "    w = jnp.linspace(0.1, 1.0, 16).reshape(4, 4)\n"
        "    def grad(train):\n"
        "        return jax.value_and_grad(lambda w: model.forward(w, x, train).sum())(w)\n" + BOTH,
    ),
    "haiku": Framework(
        "import haiku as hk\nimport jax\nimport jax.numpy as jnp\n",
        "hk.Module",
        "",
        "x",
        "jnp.tanh(hk.Linear(4)(x))",
        {
            "method": ("return hk.remat(self.run, concrete=True)(x, train)", "", ""),
            "hook": ("return hk.remat(self.mix, concrete=True)(x, train)", "", ""),
        },
        "def main():\n"
        + DATA
        + "    model = hk.transform(lambda x, train: Drop().forward(x, train))\n"
        "    params = model.init(jax.random.key(0), x, False)\n"
        "    def grad(train):\n"
        "        loss = lambda params: model.apply(params, None, x, train).sum()\n"
        "        return jax.value_and_grad(loss)(params)\n" + BOTH,
    ),
    "linen": Framework(
        "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n",
        "nn.Module",
        "",
        "x",
        "jnp.tanh(nn.Dense(4)(x))",
        {
            "class": ("return self.run(x, train)", "", ""),
            "positional": ("return self.run(x, train)", "", ""),
        },
        "class Net(nn.Module):\n"
        "    @nn.compact\n"
        "    def __call__(self, x, train):\n"
        "        block = nn.remat(Drop, concrete=True)\n"
        "        return block()(x, {passed})\n"
        "\n\n"
        "def main():\n" + DATA + "    net = Net()\n"
        "    params = net.init(jax.random.key(0), x, False)\n"
        "    def grad(train):\n"
        "        return jax.value_and_grad(lambda p: net.apply(p, x, train).sum())(params)\n"
        '    return {"params": params, "train": grad(True), "eval": grad(False)}\n',
    ),
    "equinox": Framework(
        "import equinox as eqx\nimport jax\nimport jax.numpy as jnp\n",
        "eqx.Module",
        "    w: jax.Array\n",
        "x",
        "jnp.tanh(x @ self.w)",
        {
            "argument": (
                "return jax.checkpoint(call, concrete=True)(self, x, train)",
                "",
                "",
            ),
        },
        "def main():\n" + DATA + "    model = Drop(jnp.linspace(0.1, 1.0, 16).reshape(4, 4))\n"
        "    def grad(train):\n"
        "        return jax.value_and_grad(lambda m: m.forward(x, train).sum())(model)\n" + BOTH,
    ),
    "nnx": Framework(
        "import jax\nimport jax.numpy as jnp\nfrom flax import nnx\n",
        "nnx.Module",
        "    def __init__(self, rngs):\n        self.linear = nnx.Linear(4, 4, rngs=rngs)\n",
        "x",
        "jnp.tanh(self.linear(x))",
        {"method": CALL["method"]},
        "def main():\n" + DATA + "    graph, state = nnx.split(Drop(nnx.Rngs(0)))\n"
        "    def grad(train):\n"
        "        def loss(state):\n"
        "            return nnx.merge(graph, state).forward(x, train).sum()\n"
        "        value, found = jax.value_and_grad(loss)(state)\n"
        "        return value, nnx.to_pure_dict(found)\n" + BOTH,
    ),
}


def names() -> Iterator[str]:
    """Return the names of the programs: FRAMEWORK_APPLICATION_PLACE_BASE."""
    for framework, about in FRAMEWORKS.items():
        for parts in itertools.product(about.applications, PLACES, BASES):
            yield "_".join((framework, *parts))


def write(folder: Path, name: str) -> None:
    """Write one program as the package `folder`/`name`."""
    framework, application, place, base = name.split("_")
    about = FRAMEWORKS[framework]
    files = _files(about, application, place, base)
    for path, text in files.items():
        target = folder / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def _files(about: Framework, application: str, place: str, base: str) -> dict[str, str]:
    applied, decorator, stored = about.applications[application]
    given = about.taken
    header = f"{about.imports}from functools import partial\nfrom abc import abstractmethod\n\n\n"
    hook = {
        "concrete": f"    def mix(self, {given}, train):\n        return {about.hook}\n",
        "ellipsis": f"    def mix(self, {given}, train): ...\n",
        "raises": f"    def mix(self, {given}, train):\n        raise NotImplementedError\n",
        "abstractmethod": (
            f'    @abstractmethod\n    def mix(self, {given}, train):\n        """Mix."""\n'
        ),
    }[base]
    keyword = "train=train" if application == "class" else "train"
    call = f"        return self.mix({given}, {keyword}) + 1.0\n"
    is_linen = about.base == "nn.Module"
    entry = (
        f"    @nn.compact\n    def __call__(self, {given}, train=False):\n{call}"
        if is_linen
        else f"    {decorator}\n    def run(self, {given}, train=False):\n{call}\n"
        f"    def forward(self, {given}, train):\n        {applied.format(given=given)}\n"
    ).replace("    \n", "")
    parent = f"({about.base})" if about.base else ""
    body = about.fields.format(stored=stored).replace("        \n", "")
    bases = f"class Base{parent}:\n{body}{hook}\n{entry}"
    if application == "argument":
        bases = (
            "def call(module: 'Base', x, train):\n    return module.run(x, train)\n\n\n".replace(
                "'Base'", '"Base"'
            )
            + bases
        )
    override = (
        f"    def mix(self, {given}, train):\n"
        f"        y = {about.hook}\n"
        "        if train:\n            return y * 0.5\n        return y\n"
    )
    if place == "levels" and base == "concrete":
        override = (
            f"    def mix(self, {given}, train):\n"
            f"        y = super().mix({given}, train)\n"
            "        if train:\n            return y * 0.5\n        return y\n"
        )
    plain = f"    def mix(self, {given}, train):\n        return 2.0 * {about.hook}\n"
    gap = "\n\n"
    derived = {
        "subclass": f"class Drop(Base):\n{override}",
        "file": f"class Drop(Base):\n{override}",
        "mixin": f"class Dropping:\n{override}{gap}class Drop(Dropping, Base):\n    pass\n",
        "levels": f"class Middle(Base):\n{plain}{gap}class Drop(Middle):\n{override}",
        "diamond": (
            f"class Left(Base):\n    pass\n{gap}class Right(Base):\n{override}"
            f"{gap}class Drop(Left, Right):\n    pass\n"
        ),
    }[place]
    main = about.main.replace("{passed}", "train=train" if application == "class" else "train")
    if place != "file":
        return {"__init__.py": "", "run.py": f"{header}{bases}{gap}{derived}{gap}{main}"}
    return {
        "__init__.py": "",
        "base.py": header + bases,
        "models/__init__.py": "from ..base import Base as Root\n",
        "models/drop.py": f"{header}from . import Root\n\n\n{derived.replace('(Base)', '(Root)')}",
        "run.py": f"{about.imports}from .models.drop import Drop\n{gap}{main}",
    }
