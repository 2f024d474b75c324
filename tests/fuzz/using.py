"""Uses of a checkpointed function: calls, gradients, loops and transformations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent

from .applying import Callee
from .drawing import Draw
from .functions import HASHABLE, VALUES, Parameter, arguments

Lines = list[str]


def use(draw: Draw, callee: Callee) -> Lines:
    """Return the body of a function without parameters that returns values and gradients."""
    for _ in range(4):
        if lines := draw.pick(USES)(draw, callee):
            return lines
    return _gradient(draw, callee) or [f"return {callee.expression} is None"]


def forwarder(draw: Draw, callee: Callee, name: str) -> tuple[Lines, Sequence[Parameter]]:
    """Return a function that passes its own arguments on to a checkpointed one."""
    parameters = [
        Parameter(f"{p.name}_" if draw.flip(15) else p.name, p.kind)
        for p in callee.function.parameters
    ]
    given = {
        p.name: own.name for p, own in zip(callee.function.parameters, parameters, strict=True)
    }
    call = _call(draw, callee, given)
    again = _call(draw, callee, given) if draw.flip(25) else ""
    returned = f"total({call})" + (f" + total({again})" if again else "")
    return [
        f"def {name}({', '.join(p.name for p in parameters)}):",
        f"    return {returned}",
    ], parameters


def _call(draw: Draw, callee: Callee, given: dict[str, str] | None = None) -> str:
    found = arguments(draw, callee.function, given)
    assert found is not None
    if draw.flip(7) and given is not None:
        keywords = [part for part in found if _is_keyword(part)]
        rest = [part for part in found if not _is_keyword(part)]
        if keywords and draw.flip():
            spread = ", ".join(f"'{k}': {v}" for k, _, v in (p.partition("=") for p in keywords))
            return f"{callee.expression}({', '.join([*rest, f'**{{{spread}}}'])})"
        # The tool does not track which argument a star passes, so it cannot recognise a function
        # there.
        if rest and all(p.kind != "activation" for p in callee.function.parameters):
            tail = "".join(f", {k}" for k in keywords)
            return f"{callee.expression}(*({', '.join(rest)},){tail})"
    return f"{callee.expression}({', '.join(found)})"


def _is_keyword(part: str) -> bool:
    return part.partition("=")[0].isidentifier() and "=" in part


def _of_first(draw: Draw, callee: Callee, **more: str) -> str:
    """Call with a local `x` as the first argument."""
    return _call(draw, callee, {callee.function.parameters[0].name: "x", **more})


def _value(draw: Draw, callee: Callee) -> Lines:
    return [f"return {_call(draw, callee, {})}"]


def _gradient(draw: Draw, callee: Callee) -> Lines:
    transform = draw.pick(
        (*["jax.value_and_grad"] * 6, *["jax.grad"] * 6, "jax.jacfwd", "jax.hessian")
    )
    call = f"total({_of_first(draw, callee)})"
    if draw.flip():
        return [f"return {transform}(lambda x: {call})(X)"]
    step = ["x = jnp.sin(x)"] if draw.flip(30) else []
    tail = " * 2.0" if draw.flip(30) else ""
    inner = indent("\n".join([*step, f"return {call}{tail}"]), "    ").split("\n")
    return ["def loss(x):", *inner, "", f"return {transform}(loss)(X)"]


def _gradient_of_it(draw: Draw, callee: Callee) -> Lines:
    """Pass the function itself to `jax.grad`."""
    if callee.function.returns != "scalar":
        return []
    found = arguments(draw, callee.function, constant=True, given={}) or []
    first = callee.function.parameters[0]
    if first.style == "keyword" or not found or _is_keyword(found[0]):
        return []
    return [f"return jax.value_and_grad({callee.expression})({', '.join(found)})"]


def _many_gradients(draw: Draw, callee: Callee) -> Lines:
    names = [p.name for p in callee.function.parameters if p.is_array]
    values = [draw.pick(VALUES[p.kind]) for p in callee.function.parameters if p.is_array]
    call = _call(draw, callee, {name: name for name in names})
    places = tuple(range(len(names)))
    return [
        f"def loss({', '.join(names)}):",
        f"    return total({call})",
        "",
        f"return jax.grad(loss, argnums={places})({', '.join(values)})",
    ]


def _compiled(draw: Draw, callee: Callee) -> Lines:
    call = _of_first(draw, callee)
    inner = f"lambda x: {call}"
    if draw.flip():
        inner = f"jax.grad(lambda x: total({call}))"
    return [f"return jax.jit({inner})(X)"]


def _compiled_itself(draw: Draw, callee: Callee) -> Lines:
    parameters = callee.function.parameters
    found = arguments(draw, callee.function, constant=True)
    if found is None or not all(p.is_array or p.kind in HASHABLE for p in parameters):
        return []
    statics = tuple(p.name for p in parameters if not p.is_array and p.style != "first")
    numbers = tuple(n for n, p in enumerate(parameters) if not p.is_array and p.style == "first")
    given = f"static_argnames={statics!r}" + (f", static_argnums={numbers!r}" if numbers else "")
    return [f"return jax.jit({callee.expression}, {given})({', '.join(found)})"]


def _mapped(draw: Draw, callee: Callee) -> Lines:
    return [f"return jax.vmap(lambda x: {_of_first(draw, callee)})(jnp.stack([X, X * 2.0]))"]


def _mapped_itself(draw: Draw, callee: Callee) -> Lines:
    first = callee.function.parameters[0].name
    given = {first: "jnp.stack([X, X * 2.0])"}
    found = arguments(draw, callee.function, given, positional=True, constant=True)
    if found is None or callee.function.rest:
        return []
    axes = f"(0{', None' * (len(callee.function.parameters) - 1)},)"
    return [f"return jax.vmap({callee.expression}, in_axes={axes})({', '.join(found)})"]


def _scanned(draw: Draw, callee: Callee) -> Lines:
    if callee.function.returns != "vector":
        return []
    lines = ["def body(x, _):", f"    return {_of_first(draw, callee)}, None", ""]
    run = "jax.lax.scan(body, x, None, length=2)[0]"
    return [*lines, f"return jax.value_and_grad(lambda x: total({run}))(X)"]


def _layers(draw: Draw, callee: Callee) -> Lines:
    """Call in a Python loop over layers, as in models."""
    if callee.function.returns != "vector":
        return []
    loop = draw.pick(("for i in range(LAYERS)", "for i, w in enumerate((W, X))"))
    more = {p.name: "i > 0" for p in callee.function.parameters if p.kind == "flag"}
    call = _of_first(draw, callee, **(more if draw.flip() else {}))
    lines = ["def loss(x):", f"    {loop}:", f"        x = {call}", "    return total(x)", ""]
    return [*lines, "return jax.value_and_grad(loss)(X)"]


def _each(draw: Draw, callee: Callee) -> Lines:
    """Call once for each of several values."""
    # The tool does not know the types of loop variables, so functions and objects are excluded.
    unseen = ("activation", "options")
    python = [p for p in callee.function.parameters if not p.is_array and p.kind not in unseen]
    if not python:
        return []
    one = draw.pick(python)
    values = draw.some(VALUES[one.kind], 3) or [VALUES[one.kind][0]]
    call = _of_first(draw, callee, **{one.name: "it"})
    each = f"for it in ({', '.join(values)},)"
    form = draw.pick(("comprehension", "loop", "map"))
    if form == "comprehension":
        return [f"return [jax.grad(lambda x: total({call}))(X) {each}]"]
    if form == "map":
        inner = f"lambda it: jax.grad(lambda x: total({call}))(X)"
        return [f"return list(map({inner}, ({', '.join(values)},)))"]
    return [
        "found = []",
        f"{each}:",
        "    def loss(x):",
        f"        return total({call})",
        "",
        "    found.append(jax.value_and_grad(loss)(X))",
        "return found",
    ]


def _bound(draw: Draw, callee: Callee) -> Lines:
    """Bind some Python values by `partial`."""
    python = [p for p in callee.function.parameters if not p.is_array and p.style != "first"]
    if not python or callee.function.rest:
        return []
    one = draw.pick(python)
    place = callee.function.parameters.index(one)
    given = {p.name: "x" for p in callee.function.parameters[:1]}
    parts = []
    for number, p in enumerate(callee.function.parameters):
        if p is one or (p.default and draw.flip(40)):
            continue
        value = given.get(p.name) or draw.pick(VALUES[p.kind])
        by_keyword = p.style == "keyword" or number > place
        by_keyword = by_keyword or any(_is_keyword(part) for part in parts)
        parts.append(f"{p.name}={value}" if by_keyword and p.style != "first" else value)
    bound = f"partial({callee.expression}, {one.name}={draw.pick(VALUES[one.kind])})"
    return [
        f"bound = {bound}",
        f"return jax.value_and_grad(lambda x: total(bound({', '.join(parts)})))(X)",
    ]


def _passed_on(draw: Draw, callee: Callee) -> Lines:
    """Pass it to a function that calls it; the tool does not track functions passed there."""
    if any(p.kind == "activation" for p in callee.function.parameters):
        return []
    found = arguments(draw, callee.function, {callee.function.parameters[0].name: "x"})
    assert found is not None
    call = f"apply({', '.join([callee.expression, *found])})"
    return [f"return jax.value_and_grad(lambda x: total({call}))(X)"]


def _local(draw: Draw, callee: Callee) -> Lines:
    """Call through a local name."""
    local = Callee("f", callee.function, "f")
    lines = [f"f = {callee.expression}"]
    return [*lines, *_gradient(draw, local)]


def _directional(draw: Draw, callee: Callee) -> Lines:
    return [f"return jax.jvp(lambda x: {_of_first(draw, callee)}, (X,), (jnp.ones(3),))"]


def _unused_branch(draw: Draw, callee: Callee) -> Lines:
    one, two = _of_first(draw, callee), _of_first(draw, callee)
    test = draw.pick(("DEEP", "LAYERS > 1", "not DEEP"))
    return [
        "def loss(x):",
        f"    out = {one} if {test} else {two}",
        "    return total(out)",
        "",
        "return jax.grad(loss)(X)",
    ]


Use = Callable[[Draw, Callee], Lines]
USES: Sequence[Use] = (
    _gradient,
    _gradient,
    _gradient,
    _value,
    _gradient_of_it,
    _gradient_of_it,
    _many_gradients,
    _compiled,
    _compiled_itself,
    _mapped,
    _mapped_itself,
    _scanned,
    _layers,
    _each,
    _each,
    _bound,
    _passed_on,
    _local,
    _directional,
    _unused_branch,
)
