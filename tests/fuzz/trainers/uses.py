"""Uses of a checkpointed function in training code: loops, transformations, state."""

from __future__ import annotations

from collections.abc import Callable

from ..drawing import Draw
from .callees import Callee, signature
from .project import BLOCKS, Lines, Project, indented
from .values import Argument


def use(draw: Draw, project: Project, callee: Callee) -> None:
    """Add a function to run."""
    lines = draw.pick(_USES)(draw, project, callee)
    if lines is None:
        lines = _gradient(draw, project, callee)
    assert lines is not None
    project.use([*callee.setup, f"params = {callee.parameters.value}", *lines])


def _gradient(draw: Draw, project: Project, callee: Callee) -> Lines | None:
    """Take the gradient with respect to one or both."""
    call = callee.call(draw)
    names = draw.pick(("params", "x", "params, x"))
    numbers = ", argnums=(0, 1)" if names == "params, x" else ""
    values = names.replace("x", "X")
    return [
        f"def loss({names}):",
        f"    return total({call})",
        "",
        *([] if "x" in names else ["x = X"]),
        f"return jax.value_and_grad(loss{numbers})({values})",
    ]


def _frozen(draw: Draw, project: Project, callee: Callee) -> Lines | None:
    """Change parameters that are not differentiated in place, in an eager loop."""
    given = {one.name: value for one in callee.arguments if (value := _of_step(draw, one))}
    gradient = f"jax.value_and_grad(lambda x: total({callee.call(draw, given=given)}))(x)"
    moved = ["x = x - 0.1 * grads"] if draw.flip() else []
    return [
        "x, found = X, []",
        "for step in range(2):",
        f"    value, grads = {gradient}",
        "    found.append((value, grads))",
        *indented([*moved, *callee.parameters.update(draw, "params")]),
        "return found, params",
    ]


def _of_step(draw: Draw, argument: Argument) -> str:
    if argument.kind == "flag" and draw.flip(30):
        return draw.pick(("step > 0", "step == 0", "not step", "bool(step)"))
    if argument.kind == "count" and draw.flip(30):
        return "step + 1"
    return ""


def _training(draw: Draw, project: Project, callee: Callee) -> Lines | None:
    """Train the parameters in a loop."""
    given = {one.name: value for one in callee.arguments if (value := _of_step(draw, one))}
    call = callee.call(draw, given=given)
    update = callee.parameters.update(draw, "params", "grads")
    return [
        "x, found = X, []",
        "for step in range(2):",
        "    def loss(params):",
        f"        return total({call})",
        "",
        "    value, grads = jax.value_and_grad(loss)(params)",
        *indented(update),
        "    found.append(value)",
        "return found, params",
    ]


def _state(draw: Draw, project: Project, callee: Callee) -> Lines | None:
    """Change an attribute of the model between gradients."""
    if not callee.state:
        return None
    change = draw.pick((" = 0.5", " *= 2.0", f" = {callee.state} + X[0]"))
    return [
        "found = []",
        "for step in range(2):",
        f"    found.append(jax.value_and_grad(lambda x: total({callee.call(draw)}))(X))",
        f"    {callee.state}{change}",
        "return found",
    ]


def _positional(draw: Draw, callee: Callee) -> list[str]:
    """Pass values by position, up to some default."""
    values = []
    for one in callee.arguments:
        if one.default and draw.flip():
            break
        values.append(draw.pick(one.values))
    return values


def _compiled(draw: Draw, project: Project, callee: Callee) -> Lines | None:
    """Compile an alias with static arguments, as a name of the module or where it is used."""
    values = _positional(draw, callee)
    if any(value.startswith("[") for value in values):
        return None
    numbers = tuple(range(2, 2 + len(values)))
    names = tuple(one.name for one in callee.arguments[: len(values)])
    spec = draw.pick((f"static_argnums={numbers}", f"static_argnames={names}"))
    inner = callee.expression
    x = "x"
    axes = ", None" * len(values)
    if draw.flip(25):
        inner, x = f"jax.vmap({inner}, in_axes=(None, 0{axes}))", "jnp.stack([x, 2.0 * x])"
        if values:  # `vmap` would have the values traced: they are bound before
            return None
    alias = _alias(draw, project, callee, f"jax.jit({inner}, {spec})" if values else inner)
    if not values:
        alias = _alias(draw, project, callee, f"jax.jit({inner})")
    given = ", ".join(["params", x, *values])
    if values and "static_argnames" in spec and draw.flip():
        keywords = [f"{n}={v}" for n, v in zip(names, values, strict=True)]
        given = ", ".join(["params", x, *keywords])
    return [*alias, f"return jax.value_and_grad(lambda x: total(fast({given})))(X)"]


def _alias(draw: Draw, project: Project, callee: Callee, made: str) -> Lines:
    """Call through a local alias `fast`, or through a name of a module."""
    if callee.is_function and draw.flip():
        name = project.name("fast")
        project.define(BLOCKS, name, [f"{name} = {made}"])
        return [f"fast = {name}"]
    return [f"fast = {made}"]


def _counted(draw: Draw, project: Project, callee: Callee) -> Lines | None:
    """Call in a compiled loop with a traced counter."""
    indices = [one.name for one in callee.arguments if one.kind == "index"]
    if not indices:
        return None
    call = callee.call(draw, given=dict.fromkeys(indices, "i"))
    run = draw.pick(
        (
            f"lax.scan(lambda x, i: ({call}, None), x, jnp.arange(2))[0]",
            f"lax.fori_loop(0, 2, lambda i, x: {call}, x)",
        )
    )
    return [f"return jax.value_and_grad(lambda x: total({run}))(X)"]


def _forwarded(draw: Draw, project: Project, callee: Callee) -> Lines | None:
    """Call through a function of the project, with its own parameters or with `*args`."""
    if not callee.is_function:
        return None
    name = project.name("apply")
    inner = callee.call(draw, given={one.name: one.name for one in callee.arguments})
    header = f"def {name}(params, x{signature(callee.arguments)}):"
    form = draw.pick(("named", "stars", "keywords"))
    if form == "stars":
        header, inner = f"def {name}(*args, **kwargs):", f"{callee.expression}(*args, **kwargs)"
    elif form == "keywords":
        header = f"def {name}(params, x, **kwargs):"
        inner = f"{callee.expression}(params, x, **kwargs)"
    project.define(BLOCKS, name, [header, f"    return {inner}"])
    values = [f"{one.name}={draw.pick(one.values)}" for one in callee.arguments]
    call = f"{name}(params, x{''.join(f', {v}' for v in values)})"
    return ["x = X", f"return jax.value_and_grad(lambda params: total({call}))(params)"]


_Use = Callable[[Draw, Project, Callee], Lines | None]
_USES: tuple[_Use, ...] = (
    _gradient,
    _gradient,
    _frozen,
    _frozen,
    _training,
    _state,
    _compiled,
    _counted,
    _forwarded,
)
