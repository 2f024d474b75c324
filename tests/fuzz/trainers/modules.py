"""Models of Flax (linen and nnx), Haiku and Equinox around checkpointed blocks."""

from __future__ import annotations

from collections.abc import Sequence

from ..drawing import Draw
from .callees import Family, passed, signature
from .project import BLOCKS, Lines, Project, indented
from .reach import some_reach
from .values import Argument, some_arguments


def linen(draw: Draw, project: Project) -> None:
    """Return a `flax.linen` model with a class or method under `nn.remat`."""
    arguments = some_arguments(draw)
    reach = some_reach(draw, project, draw.pick(("nn.remat", "nn.remat", "nn.checkpoint")))
    family = Family(draw, project, arguments, of="nn.Module", init="")
    header = f"def __call__(self, x{signature(arguments)}):"
    hook = f"y = self.mix(y{passed(draw, arguments)})"
    compact = draw.flip(70)
    place = draw.pick(("inline", "named", "attribute", "registry", "chosen", "method"))
    if compact:
        methods = ["@nn.compact", header, *indented(["y = nn.Dense(3)(x)", hook, "return y"])]
    else:
        methods = ["def setup(self):", "    self.dense = nn.Dense(3)", "", header]
        methods += indented(["y = self.dense(x)", hook, "return y"])
    if place == "method":
        methods.insert(0 if compact else methods.index(header), f"@{reach.decorator}")
    block = family.define(methods)
    fields: Lines = []
    wrapped = reach.of(block)
    if place == "method":
        wrapped = block
    elif place == "named":
        name = project.name("Wrapped")
        wrapped = project.define(BLOCKS, name, [f"{name} = {wrapped}"])
    elif place == "attribute":
        fields = [f"block_cls: Any = {block}"]
        wrapped = reach.of("self.block_cls")
    elif place == "registry":
        name = project.name("MODULES")
        project.define(BLOCKS, name, [f"{name} = {{'mlp': {block}, 'other': {family.base}}}"])
        fields = ["kind: str = 'mlp'"]
        wrapped = reach.of(f"{name}[self.kind]")
    net = project.name("Net")
    lines = [f"class {net}(nn.Module):", *indented([*fields, ""] if fields else [])]
    rest = passed(draw, arguments)
    if place == "chosen":
        lines += ["    lean: bool = True", ""]
    body = [f"cls = {wrapped}"]
    if place == "chosen":
        body = draw.pick(
            (
                [f"cls = {wrapped} if self.lean else {block}"],
                [f"cls = {block}", "if self.lean:", f"    cls = {reach.of('cls')}"],
            )
        )
    named = draw.pick(("", "name=f'block_{i}'"))
    if draw.flip(70):
        each = ["for i in range(2):", f"    x = cls({named})(x{rest})", "return x"]
        lines += indented(["@nn.compact", header, *indented([*body, *each])])
    else:
        setup = [*body, "self.blocks = [cls() for _ in range(2)]"]
        each = ["for block in self.blocks:", f"    x = block(x{rest})", "return x"]
        lines += indented(["def setup(self):", *indented(setup), "", header, *indented(each)])
    project.define(BLOCKS, net, lines)
    values = _values(draw, arguments)
    form = draw.pick(("gradient", "loop", "input"))
    run = {
        "gradient": [
            f"return variables, jax.grad(lambda v: total(net.apply(v, X{values})))(variables)"
        ],
        "input": [
            f"return jax.value_and_grad(lambda x: total(net.apply(variables, x{values})))(X)"
        ],
        "loop": [
            "params, found = variables['params'], []",
            "for step in range(2):",
            f"    loss = lambda p: total(net.apply({{'params': p}}, X{values}))",
            "    grads = jax.grad(loss)(params)",
            "    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)",
            "    found.append(grads)",
            "return found, params",
        ],
    }[form]
    project.use([f"net = {net}()", f"variables = net.init(KEY, X{values})", *run])


def _values(draw: Draw, arguments: Sequence[Argument]) -> str:
    """Return the arguments of a call, by keyword from some position on."""
    given, by_keyword = "", False
    for one in arguments:
        by_keyword = by_keyword or draw.flip(30)
        value = draw.pick(one.values)
        given += f", {one.name}={value}" if by_keyword else f", {value}"
    return given


def equinox(draw: Draw, project: Project) -> None:
    """Return Equinox modules, which are pytrees; checkpoints are those of jax."""
    arguments = some_arguments(draw)
    reach = some_reach(draw, project)
    family = Family(draw, project, arguments, of="eqx.Module", init="weight: jax.Array")
    header = f"def __call__(self, x{signature(arguments)}):"
    hook = f"y = self.mix(y{passed(draw, arguments)})"
    block = family.define([header, *indented(["y = x * self.weight", hook, "return y"])])
    net = project.name("Net")
    rest = passed(draw, arguments)
    call = f"{reach.of('block')}(x{rest})"
    lines = [
        f"class {net}(eqx.Module):",
        "    blocks: list",
        "",
        *indented([header, "    for block in self.blocks:", f"        x = {call}", "    return x"]),
    ]
    project.define(BLOCKS, net, lines)
    values = _values(draw, arguments)
    gradient = draw.pick(
        (
            f"return eqx.filter_value_and_grad(lambda net: total(net(X{values})))(net)",
            f"return jax.value_and_grad(lambda x: total(net(x{values})))(X)",
        )
    )
    project.use([f"net = {net}([{block}(X), {block}(X - 0.5)])", gradient])


def haiku(draw: Draw, project: Project) -> None:
    """Return Haiku modules under `hk.remat`, applied to an instance or to a method."""
    arguments = some_arguments(draw)
    reach = some_reach(draw, project, "hk.remat")
    family = Family(draw, project, arguments, of="hk.Module", init="")
    header = f"def __call__(self, x{signature(arguments)}):"
    hook = f"y = self.mix(y{passed(draw, arguments)})"
    block = family.define([header, *indented(["y = hk.Linear(3)(x)", hook, "return y"])])
    name = project.name("forward")
    made = [f"block = {block}()", f"x = {reach.of('block')}(x{passed(draw, arguments)})"]
    if draw.flip(30):
        made = [f"x = {reach.of(f'{block}()')}(x{passed(draw, arguments)})"]
    each = ["for _ in range(2):", *indented(made)] if draw.flip(30) else made
    lines = [f"def {name}(x{signature(arguments)}):", *indented([*each, "return x"])]
    project.define(BLOCKS, name, lines)
    values = _values(draw, arguments)
    run = f"jax.grad(lambda p: total(net.apply(p, X{values})))(params)"
    project.use(
        [
            f"net = hk.without_apply_rng(hk.transform({name}))",
            f"params = net.init(KEY, X{values})",
            f"return params, {run}",
        ]
    )


def nnx(draw: Draw, project: Project) -> None:
    """Return a `flax.nnx` model, split into its graph and its state."""
    arguments = some_arguments(draw)
    reach = some_reach(draw, project)
    init = "def __init__(self):\n    self.w = nnx.Param(jnp.ones(3) * 0.5)"
    family = Family(draw, project, arguments, of="nnx.Module", init=init)
    header = f"def __call__(self, x{signature(arguments)}):"
    hook = f"y = self.mix(y{passed(draw, arguments)})"
    block = family.define([header, *indented(["y = x * self.w[...]", hook, "return y"])])
    values = _values(draw, arguments)
    gradient = draw.pick(
        (
            f"return jax.grad(lambda s: total(apply(s, X{values})))(state)",
            f"return jax.value_and_grad(lambda x: total(apply(state, x{values})))(X)",
        )
    )
    project.use(
        [
            f"graphdef, state = nnx.split({block}())",
            "",
            f"def forward(state, x{signature(arguments)}):",
            f"    return nnx.merge(graphdef, state)(x{passed(draw, arguments)})",
            "",
            f"apply = {reach.of('forward')}",
            gradient,
        ]
    )
