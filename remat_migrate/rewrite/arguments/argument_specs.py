"""Updates options of a transformation that count arguments, when calls pass one more.

fast = jax.jit(cell, static_argnums=(2,))    ->    fast = jax.jit(cell, static_argnums=(2, 3))
fast(w, x, train)                                  fast(w, x, train, "relu")
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...analysis import Module, Project
from ...analysis.names.scopes import FunctionNode
from ...analysis.sites.calls import Call
from ...analysis.statics.static_options import read_index_values
from ...analysis.values.values import (
    Applied,
    Bound,
    Class,
    Instance,
    Partial,
    Value,
    Wrapped,
)
from ...codemod.changes import Change, Code, Replace, SetArgument
from ..literals import is_literal, quoted
from ..refusal import Refused, check_editable


@dataclass(frozen=True, slots=True)
class Added:
    """An argument that a call passes by position now, and did not before.

    Attributes:
        position: its index among the positional arguments.
        name: its parameter.
        from_default: whether the call left it out before; else it passed it by keyword.
        needed: whether its value is needed at trace time.
    """

    position: int
    name: str
    from_default: bool
    needed: bool


@dataclass(frozen=True, slots=True)
class _Specs:
    """The options of a transformation that count arguments; "" for a kind that it lacks.

    Attributes:
        position: the position of the first of them; None if they are keyword-only.
        static: the option that lists static arguments by index.
        static_names: the same by name. Without `static`, JAX derives the indices from it.
        axes: the option with an entry for each argument. Keyword arguments have the entry 0.
        differentiated: the option that lists differentiated arguments by index.
        shardings: the options with an entry for each argument that is not static.
    """

    position: int | None = None
    static: str = ""
    static_names: str = ""
    axes: str = ""
    differentiated: str = ""
    shardings: tuple[str, ...] = ()


_JIT = _Specs(
    static="static_argnums",
    static_names="static_argnames",
    shardings=("in_shardings", "in_axis_resources"),
)
_VMAP = _Specs(position=1, axes="in_axes")
_GRADIENTS = ("grad", "value_and_grad")
_GRADIENT = _Specs(position=1, differentiated="argnums")
# These pass arguments through unchanged, or bind them to the signature first.
_NOTHING = _Specs()
_SPECS: Mapping[str, _Specs] = {
    "jax.jit": _JIT,
    "jax.experimental.pjit.pjit": _JIT,
    "jax.make_jaxpr": _Specs(position=1, static="static_argnums"),
    "jax.pmap": _Specs(static="static_broadcasted_argnums", axes="in_axes"),
    **dict.fromkeys(("jax.vmap", "haiku.vmap"), _VMAP),
    **dict.fromkeys((f"{m}.{f}" for m in ("jax", "haiku") for f in _GRADIENTS), _GRADIENT),
    **dict.fromkeys(("jax.jacfwd", "jax.jacrev", "jax.jacobian", "jax.hessian"), _GRADIENT),
    **dict.fromkeys(("jax.custom_jvp", "jax.custom_vjp"), _NOTHING),
    **dict.fromkeys(("jax.named_call", "haiku.named_call"), _NOTHING),
    **dict.fromkeys((f"equinox.filter_{f}" for f in ("jit", *_GRADIENTS)), _NOTHING),
    **dict.fromkeys(("functools.cache", "functools.lru_cache"), _NOTHING),
}


def spec_changes(project: Project, calls: Iterable[tuple[Call, Sequence[Added]]]) -> list[Change]:
    """Return the changes of the transformations that these calls go through.

    Raises:
        Refused: one of them would not pass the arguments on as the checkpoint needs them.
    """
    by_node: dict[ast.expr, _Transformation] = {}
    for call, added in calls:
        if not added:
            continue
        if call.through:
            raise Refused(f"`{call.through}` traces all its arguments", call.module, call.node)
        count = len(call.node.args) - call.first
        for wrapped, shift in _transformations(project, call.callee, 0):
            found = by_node.setdefault(wrapped.node, _Transformation(project, wrapped))
            found.passed.add(count + shift)
            found.added |= {replace(a, position=a.position + shift) for a in added}
    return [change for found in by_node.values() for change in found.changes()]


def _transformations(
    project: Project, value: Value | None, shift: int
) -> Iterator[tuple[Wrapped, int]]:
    """Yield each transformation, and the number of arguments it gets before those of the call."""
    match value:
        case Wrapped(func=inner):
            yield value, shift
            yield from _transformations(project, inner, shift)
        case Applied(target=inner):
            yield from _transformations(project, inner, shift)
        case Bound(func=inner):
            yield from _transformations(project, inner, shift + 1)
        case Partial(func=inner, call=call):
            yield from _transformations(project, inner, shift + len(call.args) - 1)
        case Instance(cls=Class()):
            for found in project.evaluator.attribute(value, "__call__"):
                yield from _transformations(project, found, shift)
        case Instance(cls=inner):
            yield from _transformations(project, inner, shift)


class _Transformation:
    """One application of a transformation, and what all calls through it add.

    Attributes:
        passed: the numbers of arguments that calls passed by position before.
        added: the arguments that calls pass by position now.
    """

    def __init__(self, project: Project, wrapped: Wrapped) -> None:
        self.project = project
        self.wrapped = wrapped
        self.module = wrapped.module
        self.name = wrapped.how
        self.specs = _SPECS.get(wrapped.how)
        self.passed: set[int] = set()
        self.added: set[Added] = set()

    def changes(self) -> list[Change]:
        """Return the changes of its options."""
        specs = self.specs
        if specs is None:
            what = f"`{self.name}`" if self.name != "?" else "this decorator"
            raise self._refused(f"{what} may trace or count the arguments of a call through it")
        if specs is _NOTHING:
            return []
        options = self._options(specs)
        changes: list[Change] = []
        static = {a.position for a in self.added if a.needed} if specs.static else set()
        if static:
            changes += self._static(specs, options)
        for name in specs.shardings:
            if name in options and any(a.position not in static for a in self.added):
                raise self._refused(f"`{name}` has an entry for each argument", options[name])
        if specs.axes:
            changes += self._axes(specs.axes, options.get(specs.axes), static)
        if specs.differentiated in options:
            self._indices(specs.differentiated, options[specs.differentiated])
        return changes

    def _refused(self, reason: str, option: tuple[Module, ast.expr] | None = None) -> Refused:
        module, node = option or (self.module, self.wrapped.node)
        return Refused(reason, module, node, "the call goes through this")

    def _options(self, specs: _Specs) -> dict[str, tuple[Module, ast.expr]]:
        """Return the options by name, including those of partials."""
        node = self.wrapped.node
        given: list[tuple[Module, ast.Call]] = []
        if isinstance(node, ast.Call):
            given.append((self.module, node))
        for value in self.project.values(self.module, getattr(node, "func", node)):
            while isinstance(value, Partial):
                given.append((value.module, value.call))
                value = value.func
        found: dict[str, tuple[Module, ast.expr]] = {}
        for module, call in reversed(given):
            if any(k.arg is None for k in call.keywords):
                raise self._refused(f"the options of `{self.name}` are unpacked")
            found |= {k.arg: (module, k.value) for k in call.keywords if k.arg}
            if len(call.args) > 1:
                is_partial = self.project.evaluator.is_partial(module, call)
                if specs.position is None or is_partial or len(call.args) > specs.position + 1:
                    raise self._refused(f"options of `{self.name}` are passed by position")
                name = specs.static or specs.axes or specs.differentiated
                found[name] = (module, call.args[specs.position])
        return found

    def _indices(self, name: str, option: tuple[Module, ast.expr]) -> tuple[int, ...]:
        indices = read_index_values(self.project, *option)
        if indices is None or any(i < 0 for i in indices):
            how = "computed" if indices is None else "counted from the end"
            raise self._refused(f"`{name}` of `{self.name}` is {how}", option)
        return indices

    def _static(
        self, specs: _Specs, options: Mapping[str, tuple[Module, ast.expr]]
    ) -> list[Change]:
        by_position = {a.position: a for a in self.added if a.needed}
        needed = [by_position[position] for position in sorted(by_position)]
        if specs.static in options:
            option = options[specs.static]
            indices = self._indices(specs.static, option)
            return self._extended(
                specs.static, option, [str(a.position) for a in needed if a.position not in indices]
            )
        if specs.static_names in options:
            option = options[specs.static_names]
            names = [p.value for p in _parts(option[1]) if isinstance(p, ast.Constant)]
            missing = [quoted(a.name, option[0]) for a in needed if a.name not in names]
            return self._extended(specs.static_names, option, missing)
        node = self._own_call(f"`{self.name}` traces `{needed[0].name}`")
        text = ", ".join(str(a.position) for a in needed) + ("," if len(needed) == 1 else "")
        return [SetArgument(self.module, node, specs.static, Code(f"({text})"))]

    def _axes(
        self, name: str, option: tuple[Module, ast.expr] | None, static: Collection[int]
    ) -> list[Change]:
        added = sorted(self.added, key=lambda a: a.position)
        match option:
            case (_, ast.Tuple(elts=parts) | ast.List(elts=parts)):
                if self.passed != {len(parts)}:
                    raise self._refused(f"`{name}` has another number of entries", option)
                entries = {(a.position, _axis(a)) for a in added}
                if len(entries) > len({a.position for a in added}):
                    raise self._refused(f"calls need different entries in `{name}`", option)
                return self._extended(name, option, [axis for _, axis in sorted(entries)])
            case None | (_, ast.Constant(value=0)):
                if all(a.position in static or not (a.from_default or a.needed) for a in added):
                    return []
        raise self._refused(f"`{self.name}` maps every argument, `{added[-1].name}` too", option)

    def _extended(
        self, name: str, option: tuple[Module, ast.expr], more: Sequence[str]
    ) -> list[Change]:
        """Return the change that adds entries to a literal tuple, list, or single value."""
        if not more:
            return []
        module, value = option
        node = self._own_call(f"`{name}` of `{self.name}` lacks an argument that is needed")
        if not any(value is own for own in (*node.args, *(k.value for k in node.keywords))):
            reason = f"other functions may share `{name}` of `{self.name}`"
            raise self._refused(reason, option)
        parts = _parts(value)
        texts = [*(module.segment(part) for part in parts), *more]
        if "\n" in module.segment(value) or not all(map(is_literal, parts)):
            raise self._refused(f"`{name}` of `{self.name}` is computed", option)
        opening, closing = "[]" if isinstance(value, ast.List) else "()"
        return [Replace(module, value, Code(f"{opening}{', '.join(texts)}{closing}"))]

    def _own_call(self, why: str) -> ast.Call:
        """Return the call that applies it; raise Refused if other functions share its options."""
        node, module = self.wrapped.node, self.module
        if not isinstance(node, ast.Call):
            raise self._refused(why)
        check_editable(module, [node])
        if not module.is_own:
            raise self._refused(f"{why}, and is in an installed package")
        holder = module.parent(node)
        if isinstance(holder, FunctionNode | ast.ClassDef):
            return node  # a decorator
        subject = self.project.values(module, node.args[0]) if node.args else ()
        if subject != frozenset((self.wrapped.func,)):
            raise self._refused(f"{why}, and is applied to several functions")
        return node


def _axis(added: Added) -> str:
    return "None" if added.from_default or added.needed else "0"


def _parts(value: ast.expr) -> list[ast.expr]:
    """Return the entries of an option that takes a sequence or a single value."""
    return value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
