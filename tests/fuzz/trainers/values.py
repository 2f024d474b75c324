"""Non-array arguments of a checkpointed function, and how its body reads them.

A value is read directly, or first passed to a helper: alone, in a container, bound, or unpacked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..bodies import STEPS, TEMPLATES, Scope, filled
from ..drawing import Draw
from .project import OPS, Lines, Project, indented

NAMES = {
    "flag": ("train", "is_training", "causal", "deterministic"),
    "count": ("depth", "steps"),
    "mode": ("mode", "kind"),
    "index": ("layer", "index"),
}
VALUES = {
    "flag": ("True", "False", "DEEP"),
    "count": ("1", "2", "3"),
    "mode": ("'sin'", "'cos'"),
    "index": ("0", "1", "2"),
}
# Uses of a counter, which may be traced.
_INDEX = (
    "y = y * jax.random.bernoulli(jax.random.fold_in(KEY, {n}), 0.9, (3,))",
    "y = y + 0.1 * jax.random.normal(jax.random.fold_in(KEY, {n}), (3,))",
    "y = y * jax.nn.one_hot({n}, 3)",
    "y = y + W[{n}]",
    "y = y.at[{n}].add(1.0)",
    "y = jnp.where({n} > 0, y, jnp.sin(y))",
    "y = lax.switch({n}, (jnp.sin, jnp.cos, jnp.tanh), y)",
    "y = y / ({n} + 1)",
)


_KINDS = ("flag", "flag", "flag", "count", "mode", "index")


@dataclass(frozen=True)
class Argument:
    """A parameter that is not an array.

    Attributes:
        name: the parameter's name.
        kind: the kind of its values.
        values: possible arguments.
        template: how a body reads it, if that is fixed.
        default: its default, if any.
    """

    name: str
    kind: str
    values: tuple[str, ...]
    template: str = ""
    default: str = ""

    @property
    def written(self) -> str:
        return f"{self.name}={self.default}" if self.default else self.name


def some_arguments(draw: Draw, least: int = 1) -> list[Argument]:
    """Return one or two parameters."""
    made: list[Argument] = []
    for _ in range(draw.pick((1, 1, 2)) if least else draw.pick((0, 1))):
        kind = draw.pick(_KINDS)
        taken = {one.name for one in made}
        name = draw.pick([name for name in NAMES[kind] if name not in taken])
        template, values = "", VALUES[kind]
        if kind == "index":
            template = draw.pick(_INDEX)
        default = draw.pick(values) if draw.flip(40) or (made and made[-1].default) else ""
        made.append(Argument(name, kind, values, template, default))
    return made


def direct(draw: Draw, argument: Argument, read: str = "") -> Lines:
    """Return lines that change `y` by `read`: the parameter itself, or an expression."""
    read = read or argument.name
    if argument.template:
        return [argument.template.replace("{n}", read)]
    scope = Scope({}, {argument.name, "params", "x"})
    # A quoted expression within an f-string would end it.
    templates = [t for t in TEMPLATES[argument.kind] if read.isidentifier() or "{{{n}}}" not in t]
    return filled(draw, draw.pick(templates), read, scope, "y", scope.fresh())


def consumed(draw: Draw, project: Project, argument: Argument) -> Lines:
    """Return lines that change `y` by the argument, directly or through helpers."""
    return draw.pick(_WAYS)(draw, project, argument)


def _at_once(draw: Draw, project: Project, argument: Argument) -> Lines:
    return direct(draw, argument)


def _helper(
    draw: Draw, project: Project, argument: Argument, rest: str = "", default: str = ""
) -> str:
    """Return a function of `y` and the value, with other parameters `rest`."""
    name = project.name("helper")
    own = f"{argument.name}={default}" if default else argument.name
    header = f"def {name}(y, {own}{rest}):"
    return project.define(OPS, name, [header, *indented([*direct(draw, argument), "return y"])])


def _to_helper(draw: Draw, project: Project, argument: Argument) -> Lines:
    helper = _helper(draw, project, argument)
    if draw.flip(20):
        middle = project.name("helper")
        passed = draw.pick((argument.name, f"{argument.name}={argument.name}"))
        lines = [f"def {middle}(y, {argument.name}):", f"    return {helper}(y, {passed})"]
        helper = project.define(OPS, middle, lines)
    passed = draw.pick((argument.name, f"{argument.name}={argument.name}"))
    return [f"y = {helper}(y, {passed})"]


def _spread(draw: Draw, project: Project, argument: Argument) -> Lines:
    """Unpack the value from a dictionary in a call, sometimes through other functions."""
    name = argument.name
    given = draw.pick(
        (
            f"opts = {{'{name}': {name}}}",
            f"opts = dict({name}={name})",
            f"opts = {{}}\nopts['{name}'] = {name}",
            f"opts = {{'scale': 0.5, '{name}': {name}}}",
            f"opts = dict(scale=0.5)\nopts.update({name}={name})",
            f"opts = dict(scale=0.5, **{{'{name}': {name}}})",
            f"opts = {{'scale': 0.5, **{{'{name}': {name}}}}}",
            f"opts = {{'scale': 0.5}} | {{'{name}': {name}}}",
            f"base = dict({name}={name})\nopts = {{**base, 'scale': 0.5}}",
        )
    )
    default = draw.pick(argument.values) if draw.flip(30) else ""
    rest = ", scale=1.0" if draw.flip() else ", **rest"
    if "scale" in given or draw.flip(30):
        helper = _helper(draw, project, argument, rest, default)
    else:
        helper = _helper(draw, project, argument, default=default)
    for number in range(draw.pick((0, 0, 1, 1, 2))):
        middle = project.name("helper")
        # Only the first accepts the value by position in every case.
        forms = [
            f"def {middle}(y, **opts):\n    return {helper}(y, **opts)",
            f"def {middle}(y, **opts):\n    opts = dict(opts)\n    return {helper}(y, **opts)",
            f"def {middle}(*args, **opts):\n    return {helper}(*args, **opts)",
            f"def {middle}(y, **opts):\n    y = jnp.sin(y)\n    return {helper}(y, **opts)",
            f"def {middle}(y, {name}, **opts):\n    return {helper}(y, {name}={name}, **opts)",
            f"def {middle}(y, {name}, **opts):\n    return {helper}(y, {name}, **opts)",
            f"def {middle}(y, **opts):\n    {name} = opts.pop('{name}')\n"
            f"    return {helper}(y, {name}, **opts)",
        ]
        form = draw.pick(forms if number == 0 else forms[:-2])
        helper = project.define(OPS, middle, form.split("\n"))
    return [*given.split("\n"), f"y = {helper}(y, **opts)"]


def _in_record(draw: Draw, project: Project, argument: Argument) -> Lines:
    """Pass the value as an attribute of an object."""
    name = argument.name
    kind = draw.pick(("frozen", "tuple", "mutable", "namespace"))
    record = "types.SimpleNamespace"
    if kind != "namespace":
        record = project.name("Config")
        header = {
            "frozen": f"@dataclasses.dataclass(frozen=True)\nclass {record}:",
            "tuple": f"class {record}(NamedTuple):",
            "mutable": f"@dataclasses.dataclass\nclass {record}:",
        }[kind]
        fields = [f"    {name}: object", "    scale: float = 0.5"]
        project.define(OPS, record, [*header.split("\n"), *fields])
    helper = project.name("helper")
    if draw.flip():
        lines = [f"{name} = cfg.{name}", *direct(draw, argument)]
    else:
        lines = direct(draw, argument, f"cfg.{name}")
    project.define(OPS, helper, [f"def {helper}(y, cfg):", *indented([*lines, "return y"])])
    made = [f"cfg = {record}({name}={name})"]
    if kind in ("frozen", "mutable") and draw.flip(20):
        made.append(f"cfg = dataclasses.replace(cfg, scale=0.25, {name}={name})")
    if kind == "tuple" and draw.flip(30):
        made.append(f"cfg = cfg._replace({name}={name})")
    return [*made, f"y = {helper}(y, cfg)"]


_Way = Callable[[Draw, Project, Argument], Lines]
_WAYS: tuple[_Way, ...] = (
    _at_once,
    _at_once,
    _at_once,
    _to_helper,
    _spread,
    _spread,
    _in_record,
)


def step(draw: Draw) -> str:
    """Return a line that needs no value."""
    return draw.pick(STEPS)
