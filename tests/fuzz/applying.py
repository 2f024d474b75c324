"""Ways to checkpoint a function in the old API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import indent

from .drawing import Draw
from .functions import HASHABLE, VALUES, Function

# How a module may refer to the function: its import, and the name.
SPELLINGS = (
    ("", "jax.checkpoint"),
    ("", "jax.remat"),
    ("from jax import checkpoint", "checkpoint"),
    ("from jax import remat as ckpt", "ckpt"),
    ("import jax as J", "J.checkpoint"),
    ("import jax.ad_checkpoint", "jax.ad_checkpoint.checkpoint"),
    ("from jax.ad_checkpoint import checkpoint as adc_checkpoint", "adc_checkpoint"),
    ("from jax import ad_checkpoint as adc", "adc.remat"),
    ("maybe_remat = jax.remat", "maybe_remat"),
    ("shared_remat = partial(jax.remat, concrete=True)", "shared_remat"),
)
OTHER_OPTIONS = (
    "prevent_cse=False",
    "policy=jax.checkpoint_policies.everything_saveable",
    "policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable",
    "policy=None",
)


@dataclass(frozen=True)
class Callee:
    """A checkpointed function as other code calls it.

    Attributes:
        expression: the expression before the parentheses of a call.
        function: the function that it calls.
        exported: the name that another module would import.
        inline: whether each use creates a new checkpoint.
    """

    expression: str
    function: Function
    exported: str
    inline: bool = False


@dataclass(frozen=True)
class Applied:
    """Lines that define and checkpoint a function, and how to call it."""

    lines: list[str]
    callee: Callee


def options(draw: Draw, function: Function) -> str:
    """Return the options of a checkpoint."""
    written = [
        draw.pick(
            (
                *["concrete=True"] * 16,
                "concrete=False",
                "concrete=DEEP",
                "concrete=not DEEP",
                "",
                f"static_argnums={_numbers(draw, function)}",
                f"concrete=True, static_argnums={_numbers(draw, function)}",
            )
        )
    ]
    if draw.flip(15):
        written.insert(draw.count(0, 1), draw.pick(OTHER_OPTIONS))
    return ", ".join(part for part in written if part)


def _numbers(draw: Draw, function: Function) -> str:
    """Return the positions of parameters that can be static; sometimes only some of them."""
    places = [
        number
        for number, one in enumerate(function.parameters)
        if one.kind in HASHABLE and one.style != "keyword" and not draw.flip(10)
    ]
    if len(places) == 1 and draw.flip(50):
        return str(places[0])
    return f"({', '.join(map(str, places))}{',' if len(places) == 1 else ''})"


def applied(draw: Draw, function: Function, spelling: str) -> Applied:
    """Return one way to checkpoint a function, with its definition."""
    form = draw.pick(FORMS)
    return form(draw, function, spelling)


def _bound(spelling: str, given: str) -> str:
    return f"partial({spelling}, {given})" if given else spelling


def _call(spelling: str, function: str, given: str) -> str:
    return f"{spelling}({function}, {given})" if given else f"{spelling}({function})"


def _decorated(draw: Draw, function: Function, spelling: str) -> Applied:
    decorators = [f"@{_bound(spelling, options(draw, function))}"]
    if draw.flip(10):
        names = [p.name for p in function.parameters if p.kind in HASHABLE]
        if all(p.is_array or p.kind in HASHABLE | {"maybe"} for p in function.parameters):
            decorators.insert(0, f"@partial(jax.jit, static_argnames={tuple(names)!r})")
    return Applied([*decorators, *function.lines], Callee(function.name, function, function.name))


def _rebound(draw: Draw, function: Function, spelling: str) -> Applied:
    made = _call(spelling, function.name, options(draw, function))
    lines = [*function.lines, "", "", f"{function.name} = {made}"]
    return Applied(lines, Callee(function.name, function, function.name))


def _renamed(draw: Draw, function: Function, spelling: str) -> Applied:
    name = f"{function.name}_ckpt"
    made = _call(spelling, function.name, options(draw, function))
    return Applied([*function.lines, "", "", f"{name} = {made}"], Callee(name, function, name))


def _inline(draw: Draw, function: Function, spelling: str) -> Applied:
    made = _call(spelling, function.name, options(draw, function))
    return Applied(function.lines, Callee(made, function, function.name, inline=True))


def _by_own_name(draw: Draw, function: Function, spelling: str) -> Applied:
    maker = f"{function.name}_remat = {_bound(spelling, options(draw, function))}"
    if draw.flip():
        lines = [maker, "", "", f"@{function.name}_remat", *function.lines]
    else:
        made = f"{function.name} = {function.name}_remat({function.name})"
        lines = [maker, "", "", *function.lines, "", "", made]
    return Applied(lines, Callee(function.name, function, function.name))


def _spread(draw: Draw, function: Function, spelling: str) -> Applied:
    name = f"{function.name}_options".upper()
    given = options(draw, function)
    made = [f"{name} = dict({given})"]
    if draw.flip():
        later = [f"{name}.update({given})", f"{name} |= dict({given})"]
        if given == "concrete=True":
            later.append(f"{name}['concrete'] = True")
        made = [f"{name} = {{}}", draw.pick(later)]
    lines = [*made, "", "", *function.lines, "", ""]
    lines.append(f"{function.name} = {spelling}({function.name}, **{name})")
    return Applied(lines, Callee(function.name, function, function.name))


def _factory(draw: Draw, function: Function, spelling: str) -> Applied:
    made = _call(spelling, function.name, options(draw, function))
    maker = f"make_{function.name}"
    inner = [*function.lines, "", f"return {made}"]
    if draw.flip(40):
        decorator = f"@{_bound(spelling, options(draw, function))}"
        inner = [decorator, *function.lines, "", f"return {function.name}"]
    lines = [f"def {maker}():", *indent("\n".join(inner), "    ").split("\n")]
    if draw.flip():
        return Applied(lines, Callee(f"{maker}()", function, maker))
    lines += ["", "", f"{function.name} = {maker}()"]
    return Applied(lines, Callee(function.name, function, function.name))


def _own_wrapper(draw: Draw, function: Function, spelling: str) -> Applied:
    wrapper = f"remat_{function.name}"
    given = _call(spelling, "fun", options(draw, function))
    switch = draw.flip()
    lines = [f"def {wrapper}(fun{', on=True' if switch else ''}):"]
    lines += ["    if not on:", "        return fun"] if switch else []
    lines += [f"    return {given}", "", ""]
    if draw.flip():
        lines += [f"@{wrapper}", *function.lines]
        return Applied(lines, Callee(function.name, function, function.name))
    made = f"{wrapper}({function.name}{', on=DEEP' if switch and draw.flip() else ''})"
    lines += [*function.lines, "", "", f"{function.name} = {made}"]
    return Applied(lines, Callee(function.name, function, function.name))


def _through_lambda(draw: Draw, function: Function, spelling: str) -> Applied:
    names = [p.name for p in function.parameters]
    passed = [p.name if p.style != "keyword" else f"{p.name}={p.name}" for p in function.parameters]
    name = f"{function.name}_ckpt"
    made = f"lambda {', '.join(names)}: {function.name}({', '.join(passed)})"
    if draw.flip(25):
        made = f"lambda {', '.join(names)}, inner={function.name}: inner({', '.join(passed)})"
    plain = replace(
        function,
        parameters=[replace(p, style="plain", default="") for p in function.parameters],
        rest="",
        more="",
    )
    line = f"{name} = {_call(spelling, made, options(draw, plain))}"
    return Applied([*function.lines, "", "", line], Callee(name, plain, name))


def _of_partial(draw: Draw, function: Function, spelling: str) -> Applied:
    """Return the checkpoint of a partial that binds one Python value by keyword."""
    places = [n for n, p in enumerate(function.parameters) if not p.is_array and p.style != "first"]
    if not places or function.rest:
        return _renamed(draw, function, spelling)
    place = draw.pick(places)
    one = function.parameters[place]
    left = [
        replace(p, style="keyword") if n > place else p
        for n, p in enumerate(function.parameters)
        if n != place
    ]
    bound = f"partial({function.name}, {one.name}={draw.pick(VALUES[one.kind])})"
    name = f"{function.name}_ckpt"
    less = replace(function, parameters=left)
    line = f"{name} = {_call(spelling, bound, options(draw, less))}"
    return Applied([*function.lines, "", "", line], Callee(name, less, name))


def _in_container(draw: Draw, function: Function, spelling: str) -> Applied:
    made = _call(spelling, function.name, options(draw, function))
    name = f"{function.name}_forms".upper()
    if draw.flip(30):
        line = f"{name} = {{'a': {made}}}"
        every = f"[*{name}.values()][0]"
        return Applied([*function.lines, "", "", line], Callee(every, function, name))
    if draw.flip():
        line = f"{name} = {{'a': {made}, 'b': {function.name}}}"
        return Applied([*function.lines, "", "", line], Callee(f"{name}['a']", function, name))
    line = f"{name} = [{function.name}, {made}]"
    return Applied([*function.lines, "", "", line], Callee(f"{name}[1]", function, name))


def _entries(draw: Draw, function: Function, spelling: str) -> Applied:
    """Checkpoint two functions of one scope, each bound to an attribute or an item."""
    header, *inside, last = function.lines
    other = f"{function.name}_twin"
    twin = header.replace(f"def {function.name}(", f"def {other}(", 1)
    lines = [*function.lines, "", "", twin, *inside, "    y = y * -2.0", last, "", ""]
    name = f"{function.name}_entries".upper()
    places = [f"{name}['a']", f"{name}['b']"]
    holder = [f"{name} = {{}}"]
    if draw.flip():
        places = [f"{name}.a", f"{name}.b"]
        holder = [f"class {name}:", "    pass", "", ""]
    lines += holder
    for place, one in zip(
        places, draw.pick(((function.name, other), (other, function.name))), strict=True
    ):
        lines.append(f"{place} = {_call(spelling, one, options(draw, function))}")
    return Applied(lines, Callee(draw.pick(places), function, name))


def _own_factory(draw: Draw, function: Function, spelling: str) -> Applied:
    """Decorate through a factory, or a class, that passes its options on."""
    wrapper = f"remat_{function.name}"
    lines = [
        f"def {wrapper}(**options):",
        "    def wrap(fun):",
        f"        return {spelling}(fun, **options)",
        "",
        "    return wrap",
    ]
    if draw.flip(40):
        lines = [
            f"class {wrapper}:",
            "    def __init__(self, **options):",
            "        self.options = options",
            "",
            "    def __call__(self, fun):",
            f"        return {spelling}(fun, **self.options)",
        ]
    lines += ["", "", f"@{wrapper}({options(draw, function)})", *function.lines]
    return Applied(lines, Callee(function.name, function, function.name))


def _maybe_wrapper(draw: Draw, function: Function, spelling: str) -> Applied:
    """Apply a checkpoint or a function that ignores its options, by a condition."""
    wrapper = f"remat_{function.name}"
    test = draw.pick(("len(PARAMS) > 1", "len(PARAMS) > 5", "DEEP"))
    made = _call(wrapper, function.name, options(draw, function))
    lines = [f"{wrapper} = {spelling} if {test} else no_remat", "", "", *function.lines]
    lines += ["", "", f"{function.name} = {made}"]
    return Applied(lines, Callee(function.name, function, function.name))


def _conditional(draw: Draw, function: Function, spelling: str) -> Applied:
    made = _call(spelling, function.name, options(draw, function))
    if draw.flip():
        line = f"{function.name} = {made} if DEEP else {function.name}"
        return Applied(
            [*function.lines, "", "", line], Callee(function.name, function, function.name)
        )
    lines = [*function.lines, "", "", "if DEEP:", f"    {function.name} = {made}"]
    return Applied(lines, Callee(function.name, function, function.name))


def _by_position(draw: Draw, function: Function, spelling: str) -> Applied:
    if spelling.startswith(("adc", "jax.ad")):  # whose order was another one
        return _renamed(draw, function, spelling)
    given = draw.pick(("True", "True, False", "True, prevent_cse=False", "False, True"))
    name = f"{function.name}_ckpt"
    line = f"{name} = {spelling}({function.name}, {given})"
    return Applied([*function.lines, "", "", line], Callee(name, function, name))


Form = Callable[[Draw, Function, str], Applied]
FORMS: Sequence[Form] = (
    _decorated,
    _decorated,
    _decorated,
    _rebound,
    _renamed,
    _renamed,
    _inline,
    _inline,
    _by_own_name,
    _spread,
    _factory,
    _own_wrapper,
    _through_lambda,
    _of_partial,
    _in_container,
    _entries,
    _own_factory,
    _maybe_wrapper,
    _conditional,
    _by_position,
)


def as_class(draw: Draw, function: Function, spelling: str) -> Applied:
    """Return a class with the function, defined with `self`, as a method."""
    name = function.name.capitalize()
    base, fields = draw.pick(CLASSES)
    method = [*function.lines]
    given = options(draw, function)
    called = function.name
    tail: list[str] = []
    if draw.flip(60):
        method.insert(0, f"@{_bound(spelling, given)}")
    elif draw.flip(30):
        tail = ["", f"{function.name} = {_call(spelling, function.name, given)}"]
    elif "__init__" in fields and draw.flip():
        made = _call(spelling, f"self.{function.name}", given)
        called = "block"
        fields = fields.replace("self.gain = gain", f"self.gain = gain\n    self.block = {made}")
    else:
        called = "run"
        names = [p.name for p in function.parameters]
        passed = [
            p.name if p.style != "keyword" else f"{p.name}={p.name}" for p in function.parameters
        ]
        function = replace(
            function,
            parameters=[replace(p, style="plain", default="") for p in function.parameters],
            rest="",
            more="",
        )
        made = _call(spelling, "self." + function.name, given)
        tail = [
            "",
            f"def run(self, {', '.join(names)}):",
            f"    return {made}({', '.join(passed)})",
        ]
    inside = [*fields.split("\n"), "", *method, *tail]
    header = base.format(name=name).split("\n")
    lines = [*header, *indent("\n".join(inside), "    ").split("\n")]
    if draw.flip():
        lines += ["", "", f"{name.upper()} = {name}(1.5)"]
        return Applied(lines, Callee(f"{name.upper()}.{called}", function, name.upper()))
    return Applied(lines, Callee(f"{name}(2.0).{called}", function, name))


_PLAIN = "def __init__(self, gain):\n    self.gain = gain"
_PYTREE = (
    f"{_PLAIN}\n\ndef tree_flatten(self):\n    return (self.gain,), None\n\n"
    "@classmethod\ndef tree_unflatten(cls, aux, children):\n    return cls(*children)"
)
CLASSES = (
    ("class {name}:", _PLAIN),
    ("@dataclasses.dataclass(frozen=True)\nclass {name}:", "gain: float"),
    ("@dataclasses.dataclass\nclass {name}:", "gain: float = 1.0"),
    ("@jax.tree_util.register_pytree_node_class\nclass {name}:", _PYTREE),
)
