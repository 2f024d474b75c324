"""Functions to checkpoint: signatures with values of several kinds, and bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent

from .bodies import COMPILE_TIME, Scope, body
from .drawing import Draw

# By kind: names of parameters, arguments, and defaults.
NAMES = {
    "vector": ("x", "h", "inputs"),
    "matrix": ("m", "weight"),
    "params": ("params", "p"),
    "pair": ("pair", "state"),
    "maybe": ("mask", "bias"),
    "flag": ("train", "is_training", "causal", "deterministic", "flag"),
    "count": ("n", "depth", "steps"),
    "mode": ("mode", "kind"),
    "rate": ("rate", "scale"),
    "axis": ("axis", "dim"),
    "shape": ("shape", "size"),
    "options": ("cfg", "opts"),
    "settings": ("settings", "hparams"),
    "activation": ("act", "fn"),
}
VALUES = {
    "vector": ("X", "X + 1.0", "jnp.ones(3)", "W * 0.5"),
    "matrix": ("M", "M.T", "jnp.eye(3)"),
    "params": ("PARAMS", "{'w': X, 'b': W}"),
    "pair": ("(X, W)", "(W, X)"),
    "maybe": ("None", "X", "W"),
    "flag": ("True", "False", "DEEP", "not DEEP", "len(PARAMS) > 1"),
    "count": ("1", "2", "3", "LAYERS", "X.ndim", "LAYERS - 1"),
    "mode": ("'sin'", "'cos'", "MODE", "'t' 'anh'"),
    "rate": ("0.5", "0.25", "1.0", "1 / 4"),
    "axis": ("0", "-1"),
    "shape": ("(3,)", "(1, 3)", "(3, 1)", "X.shape"),
    "options": ("CFG", "FROZEN"),
    "settings": ("SETTINGS", "{'deep': False, 'times': 1, 'rate': 0.5}", "dict(SETTINGS)"),
    "activation": ("jnp.sin", "jnp.tanh", "jax.nn.relu", "abs_plus"),
}
ARRAYS = frozenset({"vector", "matrix", "params", "pair"})
# What `jax.jit` accepts as a static argument.
HASHABLE = frozenset({"flag", "count", "mode", "rate", "axis", "shape", "activation"})
ANNOTATIONS = {"vector": "jax.Array", "flag": "bool", "count": "int", "mode": "str"}

# Module-level values used as arguments, in every program.
PREAMBLE = """\
X = jnp.arange(3.0) / 3.0 + 0.1
M = jnp.arange(9.0).reshape(3, 3) / 9.0
PARAMS = {"w": X, "b": X - 1.0}
DEEP = True
LAYERS = 2
MODE = "cos"
"""
RARE_PREAMBLE = {
    "CFG": (
        "CFG = types.SimpleNamespace(deep=True, times=2, rate=0.5, mode='cos')",
        "import types",
    ),
    "FROZEN": (
        "@dataclasses.dataclass(frozen=True)\nclass Config:\n    deep: bool = True\n"
        "    times: int = 2\n    rate: float = 0.5\n    mode: str = 'sin'\n\n\n"
        "FROZEN = Config(deep=False)",
        "import dataclasses",
    ),
    "SETTINGS": ("SETTINGS = {'deep': True, 'times': 2, 'rate': 0.5}", ""),
    "abs_plus": ("def abs_plus(y):\n    return jnp.abs(y) + 0.5", ""),
    "tick": (
        "COUNTED = itertools.count(1)\n\n\ndef tick():\n    return next(COUNTED) % 3 + 1",
        "import itertools",
    ),
    "total": (
        "def total(tree):\n    return sum(jnp.sum(x) for x in jax.tree_util.tree_leaves(tree))",
        "",
    ),
}

# Lines that call another function with values in scope.
Inner = Callable[[Draw, Scope], list[str]]


@dataclass(frozen=True)
class Parameter:
    """One parameter: the kind of its value, how it is passed, and its default."""

    name: str
    kind: str
    style: str = "plain"  # or "first", before a slash, or "keyword", behind a star
    default: str = ""

    @property
    def is_array(self) -> bool:
        return self.kind in ARRAYS

    def written(self, draw: Draw) -> str:
        note = ANNOTATIONS.get(self.kind) if draw.flip(20) else None
        if not self.default:
            return f"{self.name}: {note}" if note else self.name
        return f"{self.name}: {note} = {self.default}" if note else f"{self.name}={self.default}"


@dataclass
class Function:
    """A function's source, and what its callers need to know.

    Attributes:
        name: the name.
        parameters: in order, without `self`.
        lines: from `def` on, without decorators.
        returns: "vector", "scalar" or "tree".
        rest: the variadic parameter for vectors by position, if any.
        more: the variadic parameter for keyword arguments, if any: it accepts `scale=`.
    """

    name: str
    parameters: list[Parameter]
    lines: list[str]
    returns: str
    rest: str = ""
    more: str = ""


def function(
    draw: Draw, name: str, *, method: bool = False, inner: Inner | None = None
) -> Function:
    """Return a function with a body; it may call `inner`."""
    parameters = _parameters(draw)
    rest = "rest" if draw.flip(6) and not any(p.style == "keyword" for p in parameters) else ""
    more = "extra" if draw.flip(5) else ""
    returns = draw.pick(("vector", "vector", "scalar", "tree"))
    ret = draw.pick(
        {
            "vector": ("y",),
            "scalar": ("jnp.sum(y)", "jnp.mean(y * y)"),
            "tree": ("(y, jnp.sum(y))", "{'y': y, 'n': y.sum()}", "[y]"),
        }[returns]
    )
    first = parameters[0].name
    scope = Scope({p.name: p.kind for p in parameters if p.name != first}, {first, name})
    lines = [f"y = {first}"] if draw.flip(70) else [f"y = {first} * 1.0"]
    lines += body(draw, scope, 4, ret)
    if inner is not None:
        lines += inner(draw, scope)
    if rest:
        lines += ["for r in rest:", "    y = y + r"]
    if more:
        lines.append("y = y * extra.get('scale', 1.0)")
    if method:
        lines.append(draw.pick(("y = y * self.gain", "y = y + self.gain")))
    if draw.flip(5):
        lines += draw.pick(COMPILE_TIME).split("\n")
    if draw.flip(5):
        lines.append(f"y = {draw.pick(('plain', 'checkpointed'))}_{name}(y)")
    if draw.flip(5):
        lines.append(f"del {draw.pick(parameters).name}")
    lines.append(f"return {ret}")
    doc = ['"""What it does."""'] if draw.flip(10) else []
    signature = _signature(draw, parameters, rest, more, method)
    header = f"def {name}({signature}):"
    if draw.flip(10):
        header += "  # why"
    return Function(
        name,
        parameters,
        [header, *indent("\n".join([*doc, *lines]), "    ").split("\n")],
        returns,
        rest,
        more,
    )


def _parameters(draw: Draw) -> list[Parameter]:
    """Return parameters: the first is a vector; usually at least one is a Python value."""
    kinds = ["vector"]
    for _ in range(draw.count(0, 2)):
        kinds.append(draw.pick(("vector", "matrix", "params", "pair", "maybe")))
    wanted = (
        "flag",
        "count",
        "mode",
        "flag",
        "rate",
        "axis",
        "shape",
        "options",
        "settings",
        "activation",
    )
    for _ in range(draw.count(1, 3)):
        kinds.insert(draw.count(1, len(kinds)), draw.pick(wanted))
    names: list[str] = []
    for kind in kinds:
        free = [name for name in NAMES[kind] if name not in names]
        names.append(draw.pick(free) if free else f"{kind}{len(names)}")
    slash = draw.count(1, 2) if draw.flip(7) else 0
    star = draw.count(1, len(kinds)) if draw.flip(25) else len(kinds)
    found = []
    defaults = False
    for number, (kind, name) in enumerate(zip(kinds, names, strict=True)):
        style = "first" if number < slash else "keyword" if number >= star else "plain"
        if number and not ARRAYS & {kind}:
            defaults = draw.flip(60) if defaults and style != "keyword" else draw.flip(25)
        default = draw.pick(VALUES[kind][:3]) if defaults and number else ""
        if default and kind == "count" and draw.flip(15):
            default = "STEPS"  # bound again below the function
        found.append(Parameter(name, kind, style, default))
    return _with_later_defaults(draw, found)


def _with_later_defaults(draw: Draw, parameters: list[Parameter]) -> list[Parameter]:
    """Give a default to every positional parameter that follows one with a default."""
    found, needed = [], False
    for one in parameters:
        if one.style != "keyword":
            if needed and not one.default:
                one = Parameter(one.name, one.kind, one.style, draw.pick(VALUES[one.kind][:3]))
            needed = bool(one.default)
        found.append(one)
    return found


def _signature(draw: Draw, parameters: list[Parameter], rest: str, more: str, method: bool) -> str:
    parts = ["self"] if method else []
    styles = [p.style for p in parameters]
    for number, one in enumerate(parameters):
        if one.style == "keyword" and styles[number - 1] != "keyword":
            parts.append("*")
        parts.append(one.written(draw))
        if one.style == "first" and (number + 1 == len(styles) or styles[number + 1] != "first"):
            parts.append("/")
    if rest:
        parts.append(f"*{rest}")
    if more:
        parts.append(f"**{more}")
    if draw.flip(8):
        return "\n    " + ",\n    ".join(parts) + ("" if more or parts[-1] == "/" else ",") + "\n"
    return ", ".join(parts)


def arguments(
    draw: Draw,
    callee: Function,
    given: dict[str, str] | None = None,
    *,
    positional: bool = False,
    constant: bool = False,
) -> list[str] | None:
    """Return the arguments of a call; None if they cannot be `positional`.

    Args:
        draw: the choices.
        callee: the function to call.
        given: expressions for parameters by name.
        positional: whether to pass all by position.
        constant: whether to exclude values with side effects.
    """
    given = given or {}
    by_position, by_keyword, keywords = [], [], False
    for one in callee.parameters:
        value = given.get(one.name)
        may_be_left = one.default and one.style != "first" and not positional
        if value is None and may_be_left and draw.flip(40):
            keywords = keywords or one.style != "keyword"
            continue
        if value is None:
            value = draw.pick(VALUES[one.kind])
            if one.kind == "count" and not constant and draw.flip(4):
                value = "tick()"
        if one.style == "keyword":
            if positional:
                return None
            by_keyword.append(f"{one.name}={value}")
        elif one.style == "first":
            by_position.append(value)
        elif keywords or (not positional and draw.flip(35)):
            keywords = True
            by_keyword.append(f"{one.name}={value}")
        else:
            by_position.append(value)
    if callee.rest and not keywords and draw.flip(70):
        by_position += draw.some(["W", "X"], 2)
    if callee.more and draw.flip(60) and not positional:
        by_keyword.append("scale=2.0")
    if len(by_keyword) > 1 and draw.flip(20):
        by_keyword.reverse()
    return [*by_position, *by_keyword]
