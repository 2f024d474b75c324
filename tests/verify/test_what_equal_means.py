"""Kinds of wrong changes that a proof once took for equal."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from support import cli, write_files

pytestmark = pytest.mark.slow

HEAD = """\
import dataclasses
import functools

import jax
import jax.numpy as jnp
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A module, a wrong change of it, and the verdict on one of its units."""

    unit: str
    verdict: str
    old: str
    new: str
    text: str


CHANGES = {
    "attribute": Change(
        "Net.step",
        "differs",
        "- 0.1 * g",
        "+ 0.1 * g",
        """
class Net:
    def __init__(self, w):
        self.w = w
    def step(self, x: "jax.Array"):
        f = jax.checkpoint(lambda w: jnp.sum(jnp.sin(x * w)))
        loss, g = jax.value_and_grad(f)(self.w)
        self.w = self.w - 0.1 * g
        return loss
def use(x: jax.Array):
    n = Net(jnp.ones(3))
    return n.step(x)
""",
    ),
    "dictionary": Change(
        "step",
        "differs",
        "loss * 2.0",
        "loss * 3.0",
        """
def step(params: dict, x: jax.Array, metrics: dict):
    f = jax.checkpoint(lambda w: jnp.sum(jnp.sin(x * w)))
    loss, g = jax.value_and_grad(f)(params["w"])
    metrics["loss"] = loss * 2.0
    return g
""",
    ),
    "options": Change(
        "block",
        "differs",
        "scale=2.0",
        "scale=3.0",
        """
OPTIONS = {}
OPTIONS.update(scale=2.0)
@jax.checkpoint
def block(x):
    return jnp.sin(x) * OPTIONS["scale"]
""",
    ),
    "read_by_nobody": Change(
        "",
        "not-exercised",
        "scale=2.0",
        "scale=3.0",
        """
import shared
shared.OPTIONS.update(scale=2.0)
@jax.checkpoint
def block(x):
    return jnp.sin(x)
""",
    ),
    "default": Change(
        "block",
        "differs",
        "axes=(0,)",
        "axes=(1,)",
        """
@jax.checkpoint
def block(x, axes=(0,)):
    return jnp.cumsum(x, axes[0]) if x.ndim > 1 else x
def use(x: jax.Array):
    return jnp.sin(block(x[:, :4] @ jnp.ones((4, 3))))
""",
    ),
    "traced_size": Change(
        "use",
        "fails-after",
        "def block(x)",
        "@jax.checkpoint\ndef block(x)",
        """
def block(x):
    return jnp.sin(x), x.shape[0]
def use(x: jax.Array):
    y, n = block(x)
    for i in range(n):
        y = y + i
    return y
""",
    ),
    "cache": Change(
        "use",
        "fails-after",
        "def block(x)",
        "@jax.checkpoint\ndef block(x)",
        """
@functools.lru_cache(None)
def table(n):
    return jnp.arange(4.0) * n
def block(x):
    return x + table(2).sum()
def use(x: jax.Array):
    return block(x) + block(x[:1]).sum()
""",
    ),
    "donated": Change(
        "use",
        "fails-after",
        "@jax.jit",
        "@functools.partial(jax.jit, donate_argnums=0)",
        """
@jax.jit
def block(x):
    return jnp.sin(x) * 2.0
def use(x: jax.Array):
    y = block(x)
    return y + x
""",
    ),
    "callback": Change(
        "block",
        "close",
        "every=1.0",
        "every=2.0",
        """
def report(loss, *, every=1.0):
    print("loss", loss * every)
@functools.partial(jax.checkpoint, static_argnums=1)
def block(x, training=True):
    y = jnp.sin(x)
    if training:
        jax.debug.callback(report, y.sum())
    return y
""",
    ),
    "rate": Change(
        "use",
        "differs",
        "return block(cfg, x, key, deterministic)",
        "return block(cfg, x, key, True)",
        """
@dataclasses.dataclass
class Config:
    dropout: float = 0.0
    width: int = 8
@jax.checkpoint
def _inner(x):
    return jnp.sin(x)
def block(cfg: Config, x, key, deterministic):
    y = _inner(x)
    if cfg.dropout > 0.0 and not deterministic:
        keep = jax.random.bernoulli(key, 1 - cfg.dropout, x.shape)
        y = jnp.where(keep, y, 0.0)
    return y
def use(x: jax.Array, key, deterministic: bool = False, cfg: Config = Config()):
    return block(cfg, x, key, deterministic)
""",
    ),
    "zero_norm": Change(
        "normalize",
        "close",
        "jnp.maximum(n, 1e-6)",
        "n",
        """
@jax.checkpoint
def normalize(x):
    n = jnp.sqrt(jnp.sum(x * x, -1, keepdims=True))
    return x / jnp.maximum(n, 1e-6)
""",
    ),
    "empty_row": Change(
        "attend",
        "differs",
        "return jnp.where(mask.any(-1, keepdims=True), p, 0.0)",
        "return p",
        """
@jax.checkpoint
def attend(scores, mask):
    s = jnp.where(mask, scores, -1e9)
    p = jax.nn.softmax(s, -1)
    return jnp.where(mask.any(-1, keepdims=True), p, 0.0)
""",
    ),
    "vocabulary": Change(
        "weights",
        "close",
        "tokens != 50256",
        "tokens != 50257",
        """
@jax.checkpoint
def weights(tokens):
    return (tokens != 50256).astype(jnp.float32)
""",
    ),
    "long": Change(
        "place",
        "close",
        "positions % table.shape[0]",
        "positions",
        """
@jax.checkpoint
def place(table, positions):
    return table[positions % table.shape[0]]
""",
    ),
    "layers": Change(
        "stack",
        "differs",
        "i == len(params) - 1",
        "i == 1",
        """
def stack(params: list, x):
    for i, p in enumerate(params):
        x = jax.checkpoint(lambda p, x: jnp.sin(x * p))(p, x)
        if i == len(params) - 1:
            x = x * 2.0
    return x
""",
    ),
    "odd": Change(
        "halves",
        "differs",
        "jnp.concatenate([x, x[-1:]])",
        "jnp.concatenate([x, x[:1]])",
        """
def pad(x):
    if x.shape[0] % 2:
        return jnp.concatenate([x, x[-1:]])
    return x
@jax.checkpoint
def halves(x):
    y = pad(x)
    return y[::2] + y[1::2]
def use(x: jax.Array):
    return halves(x)
""",
    ),
    "merged_options": Change(
        "forward",
        "differs",
        "dict(DEFAULTS, **options)",
        "dict(options, **DEFAULTS)",
        """
DEFAULTS = {"gain": 1.0, "residual": True}
def block(w, x, opts):
    h = jnp.tanh(x @ w) * opts["gain"]
    return h + x if opts["residual"] else h
def forward(ws, x, **options):
    opts = dict(DEFAULTS, **options)
    for w in ws:
        x = jax.checkpoint(lambda w, x: block(w, x, opts))(w, x)
    return x
""",
    ),
    "functions_in_a_list": Change(
        "ensemble",
        "differs",
        "lambda x, f=f: f(x, scale)",
        "lambda x: f(x, scale)",
        """
def ensemble(members: tuple, x, scale: float):
    calls = []
    for f in members:
        calls.append(jax.checkpoint(lambda x, f=f: f(x, scale)))
    return [call(x) for call in calls]
""",
    ),
    "computed_in_python": Change(
        "buckets",
        "close",
        "distance // 2",
        "(distance + 200) // 2 - 100",
        """
import numpy as np
def buckets(count, far=128):
    distance = np.arange(count)
    return np.where(distance < far, distance // 2, far)
@jax.checkpoint
def block(x):
    return x * jnp.asarray(buckets(x.shape[0]))[:, None]
""",
    ),
    "positions": Change(
        "encode",
        "close",
        "dtype=jnp.float32",
        "dtype=jnp.bfloat16",
        """
def encode(x):
    place = jnp.arange(x.shape[0], dtype=jnp.float32)
    return jax.checkpoint(jnp.sin)(x * place[:, None].astype(jnp.float32))
def use(x: jax.Array):
    return encode(x)
""",
    ),
    "partial_key": Change(
        "block",
        "differs",
        "key = (x.ndim, reverse)",
        "key = x.ndim",
        """
_LAYERS = {}
def block(x: jax.Array, reverse: bool = False):
    key = (x.ndim, reverse)
    if key not in _LAYERS:
        _LAYERS[key] = jax.checkpoint(lambda x: jax.lax.cumsum(x, reverse=reverse))
    return _LAYERS[key](x)
""",
    ),
    "shared_result": Change(
        "start",
        "close",
        "jnp.array",
        "jnp.asarray",
        """
@functools.partial(jax.jit, donate_argnums=0)
def update(state):
    return jax.tree_util.tree_map(jax.checkpoint(jnp.sin), state)
def start(x: jax.Array):
    w = jnp.sin(x)
    return {"w": w, "average": jnp.array(w)}
""",
    ),
    "rule_of_integers": Change(
        "use",
        "close",
        "(t[0] - t[1])",
        "t[0]",
        """
@jax.custom_jvp
def shrink(x, n):
    return jnp.maximum(x - n, 0.0)
shrink.defjvp(lambda p, t: (shrink(*p), (p[0] > p[1]).astype(p[0].dtype) * (t[0] - t[1])))
def use(x: jax.Array, n: jax.Array):
    return jax.checkpoint(shrink)(x, n.astype(jnp.int32))
""",
    ),
    "bound": Change(
        "scaled",
        "differs",
        "index < 40",
        "index <= 40",
        """
def scaled(x: jax.Array, index: int = 3):
    y = jax.checkpoint(jnp.sin)(x)
    return y if index < 40 else y * 0.5
""",
    ),
    "clamp": Change(
        "soft",
        "differs",
        "max(sharpness, 0.05)",
        "max(sharpness, 0.02)",
        """
def soft(x: jax.Array, sharpness: float = 0.7):
    return jax.checkpoint(lambda x: jnp.tanh(x * max(sharpness, 0.05)))(x)
""",
    ),
    "derived_number": Change(
        "stack",
        "differs",
        "for i in range(2 * count)",
        "for i in range(count + 2)",
        """
def stack(x: jax.Array, count: int = 2):
    for i in range(2 * count):
        x = jax.checkpoint(jnp.sin)(x) * (i + 1)
    return x
""",
    ),
    "three_flags": Change(
        "mix",
        "differs",
        "first and second and not third",
        "first and second",
        """
def mix(x: jax.Array, first: bool = False, second: bool = False, third: bool = True):
    y = jax.checkpoint(jnp.sin)(x)
    return jnp.cumsum(y, 0) if first and second and not third else y
""",
    ),
    "constant_flag": Change(
        "Drop.__call__",
        "not-exercised",
        "key is not None and not self.frozen",
        "key is not None",
        """
class Drop:
    def __init__(self, rate: float = 0.5):
        self.rate = rate
        self.frozen = False
    def __call__(self, x: jax.Array, key=None):
        x = jax.checkpoint(jnp.sin)(x)
        if key is not None and not self.frozen:
            x = x * jax.random.bernoulli(key, self.rate, x.shape)
        return x
""",
    ),
    "unreached_bound": Change(
        "wide",
        "not-exercised",
        "jax.local_device_count() > 1000",
        "jax.local_device_count() > 2000",
        """
def wide(x: jax.Array):
    y = jax.checkpoint(jnp.sin)(x)
    return y * 2.0 if jax.local_device_count() > 1000 else y
""",
    ),
    "moved_condition": Change(
        "pick",
        "equal",
        """    if jax.local_device_count() > 0:
        x = x + 1.0
    return jax.checkpoint(jnp.sin)(x)
""",
        """    def inner(x):
        if jax.local_device_count() > 0:
            x = x + 1.0
        return jnp.sin(x)
    return jax.checkpoint(inner)(x)
""",
        """
def pick(x: jax.Array):
    if jax.local_device_count() > 0:
        x = x + 1.0
    return jax.checkpoint(jnp.sin)(x)
""",
    ),
    "alias": Change(
        "record",
        "differs",
        "[*losses]",
        "losses",
        """
def record(x: jax.Array, losses: list[float]):
    return jax.checkpoint(jnp.sin)(x), [*losses]
""",
    ),
    "as_long_as_wide": Change(
        "average",
        "differs",
        "len(x)",
        "len(state['w'])",
        """
def average(state, x):
    for _ in range(2):
        x = x + jax.checkpoint(lambda x: jnp.tanh(x @ state["w"]) @ state["scale"])(x)
    return x.sum() / len(x)
""",
    ),
    "refusal": Change(
        "grouped",
        "not-exercised",
        "assert groups < 100",
        "pass",
        """
def grouped(x: jax.Array, groups: int = 2):
    assert groups < 100
    return jax.checkpoint(jnp.sin)(x) / groups
""",
    ),
    "variable": Change(
        "tuned",
        "differs",
        "TUNED_GAIN",
        "GAIN",
        """
import os
def tuned(x: jax.Array):
    return jax.checkpoint(jnp.sin)(x) * float(os.environ.get("TUNED_GAIN", "2"))
""",
    ),
    "counter": Change(
        "counted",
        "equal",
        ", concrete=True",
        "",
        """
import numpy as np
SEEN = np.zeros(4, np.int64)
def counted(x: jax.Array):
    SEEN[len(x) % 4] += 1
    return jax.checkpoint(jnp.sin, concrete=True)(x)
""",
    ),
    "wrong_counter": Change(
        "counted",
        "differs",
        "SEEN[len(x) % 4]",
        "SEEN[len(x) // 4]",
        """
import numpy as np
SEEN = np.zeros(4, np.int64)
def counted(x: jax.Array):
    SEEN[len(x) % 4] += 1
    return jax.checkpoint(jnp.sin)(x)
""",
    ),
    "large_integer": Change(
        "digest",
        "close",
        "+ 0 * width",
        "+ width * 0",
        """
def digest(width: int = 3):
    return 2**40 + 0 * width
""",
    ),
    "same_state": Change(
        "evaluate",
        "equal",
        "jax.checkpoint(",
        "jax.remat(",
        """
import numpy as np
DRAWS = np.random.default_rng(0)
class Meter:
    total = 0.0
def evaluate(x: jax.Array, power: int = 2):
    Meter.total += DRAWS.random() * power
    return jax.checkpoint(jnp.sin)(x) + Meter.total
""",
    ),
    "other_module": Change(
        "encode",
        "differs",
        "    shared.OPTIONS[name] = shared.OPTIONS.get(name, 0) + 1\n",
        "    shared.OPTIONS[name] = 1\n",
        """
import shared
def encode(x: jax.Array, name: str = "a"):
    shared.OPTIONS[name] = shared.OPTIONS.get(name, 0) + 1
    return jax.checkpoint(jnp.sin)(x)
""",
    ),
    "object_state": Change(
        "Scaler.step",
        "differs",
        "        self.good = self.good + 1 if ok else 0\n",
        "        self.good = self.good + 1 if ok else self.good\n",
        """
class Scaler:
    def __init__(self, scale: float = 8.0):
        self.scale, self.good = scale, 0
    def step(self, x: jax.Array, ok: bool):
        self.good = self.good + 1 if ok else 0
        return jax.checkpoint(jnp.sin)(x) / self.scale
""",
    ),
    "closure_state": Change(
        "accumulator",
        "differs",
        "state['sum'] + x",
        "x",
        """
def accumulator(scale: float):
    state = {"sum": 0.0}
    def step(x: jax.Array):
        state["sum"] = jax.checkpoint(lambda x: state['sum'] + x)(x)
        return x * scale
    return step
""",
    ),
    "two_lengths": Change(
        "attend",
        "differs",
        "k.shape[1]",
        "q.shape[1]",
        """
def attend(q: jax.Array, k: jax.Array):
    return jax.checkpoint(lambda q, k: jnp.einsum("btd,bsd->bts", q, k))(q, k) / k.shape[1]
""",
    ),
    "falsy": Change(
        "masked",
        "differs",
        "if window is not None:",
        "if window:",
        """
def masked(x: jax.Array, window: int | None = None):
    if window is not None:
        x = jnp.where(jnp.arange(x.shape[-1]) <= window, x, 0.0)
    return jax.checkpoint(jnp.sin)(x)
""",
    ),
    "gone_import": Change(
        "block",
        "differs",
        "* 2.0",
        "* 3.0",
        """
from jax.experimental import host_callback
@jax.checkpoint
def block(x):
    return jnp.sin(x) * 2.0
""",
    ),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    root = tmp_path_factory.mktemp("claims")
    shared = {"pyproject.toml": "", "shared.py": "OPTIONS = {}\n"}
    old = {f"{name}.py": HEAD + change.text for name, change in CHANGES.items()}
    new = {}
    for name, change in CHANGES.items():
        assert change.text.count(change.old) == 1, name
        new[f"{name}.py"] = HEAD + change.text.replace(change.old, change.new)
    write_files(root / "old", {**shared, **old})
    write_files(root / "new", {**shared, **new})
    ran = cli(root / "new", "verify", "--base", "../old", "--output-format", "json")
    return {found["unit"]: found for found in json.loads(ran.out)["verdicts"]}


@pytest.mark.parametrize("name", CHANGES)
def test_verdict(verdicts: dict[str, dict[str, str]], name: str) -> None:
    change = CHANGES[name]
    unit = f"{name}.{change.unit}" if change.unit else name
    assert verdicts[unit]["verdict"] == change.verdict, verdicts[unit]["detail"]
