"""Generate reproducible trees of Python files of any size.

Of each hundred consecutive files, 84 have nothing to do with checkpoints, 13 use JAX without
`jax.checkpoint`, two use `jax.checkpoint` correctly, and one uses the old API. This resembles
packages that train models, and the packages of the tree T.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Literal

Kind = Literal["plain", "jax", "checkpoint", "finding"]

_OF_A_HUNDRED: dict[Kind, int] = {
    "plain": 84,
    "jax": 13,
    "checkpoint": 2,
    "finding": 1,
}
_IN_A_FOLDER = 25
_PROJECT = '[project]\nname = "generated"\nversion = "1"\n'

_HEADS: dict[Kind, str] = {
    "plain": "import dataclasses\nimport os\nfrom collections import defaultdict\n",
    "jax": "import dataclasses\n\nimport jax\nimport jax.numpy as jnp\n",
    "checkpoint": "import functools\n\nimport jax\nimport jax.numpy as jnp\n",
    "finding": "import functools\n\nimport jax\nimport jax.numpy as jnp\n",
}

_RECORD = '''
@dataclasses.dataclass
class ${Noun}$n:
    """The settings of one $noun.

    They are read once, when the program starts, and do not change from there on.
    """

    name: str = "$noun"
    size: int = $a
    rate: float = 0.$b
    folders: tuple[str, ...] = ("$verb", "$noun")

    def scaled(self, factor: float) -> "${Noun}$n":
        """The same for a $noun that is larger."""
        if factor <= 0:
            raise ValueError(f"a $noun cannot have the size {factor}")
        return dataclasses.replace(self, size=int(self.size * factor))
'''
_COUNTING = '''
def ${verb}_$noun$n(rows, limit=$a):
    """Counts of each $noun in `rows`; rare ones are left out."""
    counts = defaultdict(int)
    for number, row in enumerate(rows):
        for key in sorted(row):
            if key.startswith("_") or number > limit:
                continue
            counts[key] += row[key] if isinstance(row[key], int) else 1
    total = sum(counts.values()) or 1
    return {key: value / total for key, value in counts.items() if value > $c}
'''
_LAYER = '''
def ${noun}_layer$n(params, x, scale=0.$b):
    """One layer of the $noun: a product, a bias and a nonlinearity.

    Args:
        params: a dictionary with `kernel` and `bias`.
        x: an array of shape (batch, width).
        scale: of the result.
    """
    h = jnp.dot(x, params["kernel"]) + params["bias"]
    h = jax.nn.gelu(h) * scale
    mean = jnp.mean(h, axis=-1, keepdims=True)
    return (h - mean) / jnp.sqrt(jnp.var(h, axis=-1, keepdims=True) + 1e-$c)
'''
_STEP = '''
@jax.jit
def ${verb}_step$n(params, batch):
    """One step of gradient descent for the $noun."""
    def loss(p):
        prediction = jnp.tanh(batch["x"] @ p["kernel"] + p["bias"])
        return jnp.mean((prediction - batch["y"]) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return value, jax.tree_util.tree_map(lambda p, g: p - 0.$b * g, params, grads)
'''
_CHECKPOINT = '''
@functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
def block$n(params, x):
    """A block whose intermediate values are computed again in the backward pass."""
    h = jnp.tanh(x @ params["w1"]) * 0.$b
    return x + jnp.tanh(h @ params["w2"])


def forward$n(params, x):
    """Several of those blocks, one after the other."""
    for layer in params["layers"]:
        x = block$n(layer, x)
    return x
'''
_DECORATED = '''
@functools.partial(jax.checkpoint, concrete=True)
def stage$n(params, x, train):
    """A stage that Python branches in."""
    h = jnp.tanh(x @ params["w"])
    if train:
        h = h * 0.$b
    return h


def loss$n(params, x):
    """The loss of stage $n."""
    return jnp.sum(stage$n(params, x, True) ** 2)
'''
_BLOCKS: dict[Kind, tuple[str, ...]] = {
    "plain": (_RECORD, _COUNTING),
    "jax": (_RECORD, _LAYER, _STEP),
    "checkpoint": (_LAYER, _STEP, _LAYER, _CHECKPOINT),
    "finding": (_LAYER, _STEP, _LAYER, _DECORATED),
}
# The first block of each kind of file.
_FIRST: dict[Kind, str] = {
    "checkpoint": _CHECKPOINT,
    "finding": _DECORATED,
}
_NOUNS = ("batch", "token", "sample", "record", "schedule", "window", "vocabulary", "episode")
_VERBS = ("count", "merge", "collect", "select", "filter", "sort", "split", "measure")
_MOST_BLOCKS = 30


@dataclass(frozen=True, slots=True)
class Written:
    """A generated file.

    Attributes:
        path: path relative to the tree.
        kind: kind of file.
        text: content.
    """

    path: Path
    kind: Kind
    text: str


def tree(size: int) -> Iterator[Written]:
    """Yield Python files; a smaller tree is a prefix of a larger one."""
    kinds = _kinds()
    for index in range(size):
        kind = kinds[index % len(kinds)]
        yield Written(_path(index), kind, _file(index, kind))


def write(files: Iterator[Written], folder: Path) -> Sequence[Written]:
    """Write files and a pyproject.toml into a folder, and return the files."""
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(_PROJECT)
    written = list(files)
    for file in written:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    return written


def _kinds() -> list[Kind]:
    """Return the kinds of a hundred consecutive files."""
    kinds = [kind for kind, count in _OF_A_HUNDRED.items() for _ in range(count)]
    random.Random("kinds").shuffle(kinds)
    return kinds


def _path(index: int) -> Path:
    return (
        Path("generated")
        / f"area_{index // _IN_A_FOLDER:03}"
        / f"part_{index % _IN_A_FOLDER:02}.py"
    )


def _file(index: int, kind: Kind) -> str:
    drawn = random.Random(f"file {index}")
    parts = [_HEADS[kind]]
    if kind in _FIRST:
        parts.append(_filled(_FIRST[kind], drawn, 0))
    for number in range(1, drawn.randint(4, _MOST_BLOCKS)):
        # Checkpoints are rare within their file, too.
        block = drawn.choice(_BLOCKS[kind][:3] if number > 4 else _BLOCKS[kind])
        if block != _DECORATED:
            parts.append(_filled(block, drawn, number))
    return "\n".join(parts)


def _filled(block: str, drawn: random.Random, number: int) -> str:
    noun = drawn.choice(_NOUNS)
    return Template(block).substitute(
        n=number,
        noun=noun,
        Noun=noun.capitalize(),
        verb=drawn.choice(_VERBS),
        a=drawn.randint(10, 900),
        b=drawn.randint(1, 9),
        c=drawn.randint(2, 9),
    )
