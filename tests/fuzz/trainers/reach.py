"""How a project refers to `jax.checkpoint`: directly, by aliases, or through wrappers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..drawing import Draw
from .project import COMPAT, OPS, Project


@dataclass(frozen=True)
class Reach:
    """A way to apply a checkpoint: the text before and after the wrapped function, and as a
    decorator.
    """

    before: str
    after: str
    decorator: str

    def of(self, target: str) -> str:
        return f"{self.before}{target}{self.after}"


def some_reach(draw: Draw, project: Project, name: str = "jax.checkpoint") -> Reach:
    """Return a way to apply `name`, which takes the wrapped function and options."""
    return draw.pick(_FORMS)(draw, project, name)


def _options(draw: Draw) -> str:
    return draw.pick(
        (
            *["concrete=True"] * 6,
            "concrete=True, prevent_cse=False",
            "concrete=True, policy=jax.checkpoint_policies.dots_saveable",
            "",
        )
    )


def _called(name: str, options: str) -> Reach:
    after = f", {options})" if options else ")"
    return Reach(f"{name}(", after, f"partial({name}{after}" if options else name)


def _plain(draw: Draw, project: Project, name: str) -> Reach:
    return _called(name, _options(draw))


def _own_name(draw: Draw, project: Project, name: str) -> Reach:
    """Return an alias with an uninformative name, perhaps of another alias."""
    for level in (COMPAT, *draw.pick(((), (OPS,)))):
        own = project.name(draw.pick(("ck", "recompute", "lean")))
        name = project.define(level, own, [f"{own} = {name}"])
    return _called(name, _options(draw))


def _partial(draw: Draw, project: Project, name: str) -> Reach:
    own = project.name("ck")
    project.define(COMPAT, own, [f"{own} = partial({name}, concrete=True)"])
    return _called(own, draw.pick(("", "prevent_cse=False")))


def _wrapper(draw: Draw, project: Project, name: str) -> Reach:
    """Return a wrapper function that takes `concrete` and passes it on."""
    own = project.name("wrapped")
    star = draw.pick(("", "*, "))
    header = f"def {own}(fn, {star}concrete=False, prevent_cse=True, static_argnums=()):"
    options = "concrete=concrete, prevent_cse=prevent_cse, static_argnums=static_argnums"
    project.define(COMPAT, own, [header, f"    return {name}(fn, {options})"])
    if star:
        return _called(own, draw.pick(("concrete=True", "concrete=True, prevent_cse=False")))
    if draw.flip(40) and name == "jax.checkpoint":  # somebody calls it as they did before
        call = f"{own}(lambda x, n: x * n, False, True, (1,))(x, 2)"
        project.use([f"return jax.grad(lambda x: total({call}))(X)"], outside=True)
    options = draw.pick(("True", "concrete=True", "True, False", "True, prevent_cse=False"))
    return replace(_called(own, options), decorator=f"partial({own}, concrete=True)")


def _factory(draw: Draw, project: Project, name: str) -> Reach:
    """Return a function that returns the decorator or an identity."""
    own = project.name("maybe")
    options = "concrete=True"
    result = _called(name, options).of("f")
    inner = draw.pick(
        (
            f"def wrap(f):\n        return {result} if enabled else f\n\n    return wrap",
            f"if not enabled:\n        return lambda f: f\n    return partial({name}, {options})",
            f"def wrap(f):\n        if enabled:\n            f = {result}\n        return f\n\n"
            "    return wrap",
        )
    )
    project.define(COMPAT, own, [f"def {own}(enabled=True):", *f"    {inner}".split("\n")])
    given = draw.pick(("True", "", "DEEP", "enabled=True"))
    return Reach(f"{own}({given})(", ")", f"{own}({given})")


_Form = Callable[[Draw, Project, str], Reach]
_FORMS: tuple[_Form, ...] = (
    *[_plain] * 6,
    _own_name,
    _own_name,
    _partial,
    _wrapper,
    _wrapper,
    _factory,
)
