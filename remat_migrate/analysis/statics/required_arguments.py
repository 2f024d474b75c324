"""Which arguments must be static where a checkpoint is applied, and whether they can be."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...libraries.apis import Api
from ...libraries.library_arguments import INSTANCES, LAYER_MODULES
from ...libraries.library_needs import needs_of
from ..names.module import FunctionNode, Module, Place, parameters
from ..needs.needs import BRANCH, IDENTITY, Key, Need, needed_results
from ..project import Project
from ..sites.calls import Call, Uses, candidates, is_field, overrides_of, uses_of
from ..sites.find_sites import wrapped_by
from ..sites.framework_modules import framework_of
from ..sites.site import Site
from ..values.bind import Arguments, bind_call, call_order, default_of, positional_parameters
from ..values.declarations import Kind, default_kind
from ..values.evaluator import Callees, Target, is_frozen, targets_of
from ..values.values import Applied, Bound, External, Instance, Parameter, Value, Wrapped, layers
from .arguments import (
    Argument,
    Located,
    is_computed_with,
    is_data,
    is_known_object,
    is_untraceable,
    may_be_ignored_option,
    may_be_option,
    needs_with_overrides,
    suggests_option,
    untraceable_result,
)
from .mutated_state import changing_state, leaking


@dataclass(frozen=True, eq=False, slots=True)
class Required:
    """A parameter that must be concrete.

    Attributes:
        name: the parameter.
        index: the position in `*args`, or the key in `**kwargs`.
        position: the index among the wrapped function's positional parameters, `self` included;
            None if it is keyword-only.
        needs: the places that need it; empty if JAX rejects what is passed.
        by_value: whether it may be a static argument. JAX traces once for equal static arguments,
            and an object that can change is equal to itself, so JAX would miss the change.
        certain: whether it is known to be a Python value. If it may be an array, the fix closes
            over it, which is right for both.
    """

    name: str
    index: int | str | None
    position: int | None
    needs: tuple[Need, ...] = ()
    by_value: bool = True
    certain: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Obstacle:
    """Why the arguments cannot be made static: a reason and the place that shows it.

    Attributes:
        reason: the reason.
        module: the module with the place.
        node: the place.
        label: what the place shows.
        parameter: the argument; empty if it is about all of them.
        unseen: whether it is unknown which arguments must be concrete, so that the fix may close
            over all of them.
    """

    reason: str
    module: Module
    node: ast.expr | ast.stmt | ast.arg
    label: str
    parameter: str = ""
    unseen: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Statics:
    """What must be static where a checkpoint is applied.

    Attributes:
        target: the wrapped function; None if it cannot be seen.
        required: the parameters that must be concrete, in order.
        indices: their `static_argnums`, counted as the Api counts; None if some of them cannot be
            passed by position.
        uses: the calls of the wrapped function, and where it escapes the analysis.
        bound: each call's arguments by parameter.
        obstacle: why they cannot be made static.
        results: the results of JAX that must be concrete and that nothing traced goes into.
        changing: a name of outside state that the function, or one that it calls, uses and that may
            change between calls.
        open_ended: whether the functions that may be wrapped have different signatures, or are not
            all known, so that a fix must not depend on a signature.
    """

    target: Target | None
    required: tuple[Required, ...] = ()
    indices: tuple[int, ...] | None = ()
    uses: Uses = field(default_factory=Uses)
    bound: tuple[tuple[Call, Arguments], ...] = ()
    obstacle: Obstacle | None = None
    results: tuple[Need, ...] = ()
    changing: Place | None = None
    open_ended: bool = False

    @property
    def computed(self) -> list[Need]:
        """The needs of results that must be computed at compile time."""
        return [*(need for r in self.required for need in r.needs), *self.results]


def bind_use(site: Site, target: Target, call: Call) -> Arguments:
    """Bind a call's arguments to the parameters of what the site wraps."""
    args, keywords = call.arguments
    skip = max(target.skip, call.skip if target.owner is not None else 0)
    return bind_call(target.function.node, args, keywords, skip)


def position_of(target: Target, name: str, index: Key | None = None) -> int | None:
    """Return the position of a parameter, `self` included; None if it is keyword-only."""
    node = target.function.node
    names = [p.arg for p in positional_parameters(node)]
    if name in names and target.given & set(names[: names.index(name)]):
        return None  # a partial gives an earlier one by keyword
    if node.args.vararg is not None and name == node.args.vararg.arg:
        return len(names) + index if isinstance(index, int) else None
    return names.index(name) if name in names else None


def static_indices(
    api: Api, target: Target, required: Iterable[Required]
) -> tuple[int, ...] | None:
    """Return the `static_argnums` of parameters; None if one cannot be passed by position."""
    found: set[int] = set()
    for item in required:
        if item.position is None:
            return None
        found.add(item.position - _first_position(api, target))
    return tuple(sorted(found))


def counted_position(api: Api, target: Target, index: int) -> int | None:
    """Return the position of the parameter that an index names; None if it names none."""
    if index >= 0:
        return index + _first_position(api, target)
    if api.negative_shift is None or index + api.negative_shift >= 0:
        return None
    if target.function.node.args.vararg is not None:
        return None  # it depends on how many arguments the call passes
    count = len(positional_parameters(target.function.node))
    return max(count + index + api.negative_shift, -1)


def _first_position(api: Api, target: Target) -> int:
    """Return the position of the parameter that index 0 names."""
    match api.counting:
        case "function":
            return target.skip
        case "method":
            return 0
    return 1


def lost_indices(api: Api, values: Iterable[int]) -> list[int]:
    """Return the negative indices that name no argument: `-1` of `flax.linen.remat`."""
    shift = api.negative_shift
    return [i for i in values if i < 0 and shift and i + shift >= 0]


def statics_of_target(
    project: Project, site: Site, target: Target, uses: Uses, *, may_be_overridden: bool
) -> Statics:
    """Return what must be static of one function that a site wraps."""
    return _Decision(project, site, target, uses, may_be_overridden).statics()


class _Decision:
    """Decides what must be static of one function."""

    def __init__(
        self, project: Project, site: Site, target: Target, uses: Uses, may_be_overridden: bool
    ) -> None:
        self.project = project
        self.site = site
        self.target = target
        self.uses = uses
        self.may_be_overridden = may_be_overridden
        self.calls = tuple((call, bind_use(site, target, call)) for call in uses.calls)
        given = ((call, bind_use(site, target, call)) for call in uses.given)
        # What partials give is known, but not the calls that take it.
        self.bound = (*self.calls, *given)
        self.all_needs = needs_with_overrides(project).of(target.function, target.owner)
        self.needs: dict[str, dict[Key | None, list[Need]]] = {}
        for need in self.all_needs:
            index = need.argument(target.function.node)
            self.needs.setdefault(need.parameter, {}).setdefault(index, []).append(need)
        self.arguments = [
            Argument(project, target, parameter, self.bound)
            for parameter in parameters(target.function.node)
        ]
        self.own_self = self._static_self()
        self.closed = closed_parameters(site, target) | target.given
        if self.own_self is not None:
            self.closed.add(self.own_self.name)
        self.required: list[Required] = []
        self.obstacle: Obstacle | None = None

    def statics(self) -> Statics:
        """Return the decision."""
        for argument in self.arguments:
            self._judge_needs(argument)
            if argument.name not in self.closed | {r.name for r in self.required}:
                self._judge_without_needs(argument)
        if self.obstacle is None:
            self._judge_opaque_needs()
        results = tuple(self._results())
        static = {item.name for item in self.required}
        returned = untraceable_result(self.project, self.target.function, static)
        module = self.target.function.module
        if returned is not None:
            reason = (
                f"it returns `{module.segment(returned)}`, and a checkpoint can only return arrays:"
                " apply the checkpoint to what computes arrays, such as the function that is"
                " returned"
            )
            self.obstacle = Obstacle(reason, module, returned, "returned here")
        for argument in self.arguments if self.obstacle is None else ():
            if (change := argument.changed_array) is not None:
                reason = (
                    f"`{module.segment(change)}` changes the array of NumPy that a call passes, and"
                    " in a checkpoint only a copy: return it, or change it before the call"
                )
                self.obstacle = Obstacle(reason, module, change, "changed here", argument.name)
            if (given := argument.iterator) is not None and argument.name not in self.closed:
                reason = (
                    f"an iterator is passed for `{argument.name}`, and JAX takes none: pass a list"
                )
                self.obstacle = Obstacle(reason, *given, "passed here", argument.name)
        if self.obstacle is None and (kept := leaking(self.project, self.target)) is not None:
            module, node = kept
            reason = (
                f"`{module.segment(node)}` is kept for later calls: a checkpoint does so only when"
                " JAX traces it, and keeps a tracer of what JAX computes: return it instead; if no"
                " argument goes in, compute it in `with jax.ensure_compile_time_eval():`"
            )
            self.obstacle = Obstacle(reason, module, node, "is kept for later calls")
        if self.own_self is not None and self.obstacle is None:
            self.required.insert(0, self.own_self)
        return Statics(
            self.target,
            tuple(self.required),
            static_indices(self.site.definition, self.target, self.required),
            self.uses,
            self.calls,
            self.obstacle,
            results,
            changing_state(self.project, self.target, self.site),
        )

    def _static_self(self) -> Required | None:
        """Return `self` of a method that is checkpointed as a function; JAX may not trace it."""
        target, evaluator = self.target, self.project.evaluator
        if self.site.definition.counting != "function" or target.owner is None or target.skip:
            return None
        argument = next((argument for argument in self.arguments if argument.is_self), None)
        if argument is None or framework_of(evaluator, target.owner) == "nnx":
            return None
        own = self.needs.get(argument.name, {}).get(None, [])
        needs = tuple(need for need in own if not argument.is_known(need))
        return Required(argument.name, None, 0, needs, is_frozen(evaluator, target.owner))

    def _results(self) -> Iterator[Need]:
        """Yield the results that must be concrete; what may be traced is an obstacle."""
        for result in needed_results(self.all_needs):
            if result.may_be_traced(self.closed):
                self.obstacle = self.obstacle or result_obstacle(result.need)
            elif not result.parameters - self.closed:
                yield result.need

    def _is_object(self, argument: Argument) -> bool:
        """Return whether the function calls an argument, or a method of it.

        JAX may reject it. Where it is a pytree of arrays, it is right to close over it, too.
        """
        return (
            not argument.is_self
            and self.site.definition.modules != "nnx"  # whose modules need not be pytrees
            and any(n.called and n.parameter == argument.name for n in self.all_needs)
            and not argument.is_left_out(self.uses)
        )

    def _judge_needs(self, argument: Argument) -> None:
        """Decide on an argument by the places that need its value."""
        if argument.name in self.closed or argument.is_self:
            return
        own = self.needs.get(argument.name, {})
        for index, found in sorted(own.items(), key=lambda item: str(item[0])):
            part = replace(argument, index=index)
            needs = [need for need in found if not part.is_known(need)]
            changes = [need for need in needs if need.changed]
            if self.site.definition.modules == "nnx":
                changes = []
            elif argument.is_variadic:  # a container that is made for each call
                changes = [n for n in changes if n.node not in argument.uses]
            if changes and any(need.stored for need in changes):
                self.obstacle = self.obstacle or _stored_obstacle(argument, changes)
            elif changes:
                self._require(part, changes)
            else:
                self._judge_part(part, [n for n in needs if not n.changed])

    def _judge_part(self, part: Argument, needs: list[Need]) -> None:
        """Decide on an argument, or an item of it, by the places that need its value."""
        if any(need.type_test and not _passes_type_test(part, need) for need in needs):
            self.obstacle = self.obstacle or _type_test_obstacle(part, needs)
            return
        certain = [need for need in needs if need.certain]
        typed = any(need.type_test for need in needs)
        sure = bool(certain) or (
            part.is_option and (typed or any(self._stands_alone(need) for need in needs))
        )
        if not sure and (
            not any(suggests_option(need) for need in needs) or not may_be_option(part, self.uses)
        ):
            return
        kind = part.kind
        if kind == "unknown" and self._is_object(part):
            kind = "python"
        problem = _obstacle(part, kind, part.first_array, certain, self.uses)
        if problem is None:
            # Nothing is computed at compile time for the sake of what may be traced.
            self._require(part, certain or (needs if sure else ()), sure)
        elif (certain or typed) and self.obstacle is None:
            self.obstacle = replace(problem, parameter=part.name)

    def _judge_without_needs(self, argument: Argument) -> None:
        """Decide on an argument whose value nothing needs: JAX may reject it all the same."""
        if is_untraceable(argument) or self._is_object(argument):
            self._require(argument)
            return
        is_needed = any(need.parameter == argument.name for need in self.all_needs)
        if argument.is_variadic or argument.is_self or (is_needed and not self.may_be_overridden):
            return
        if self.may_be_overridden and argument.kind != "array" and argument.is_option:
            self._require(argument)
        elif may_be_ignored_option(argument, self.uses):
            self._require(argument, certain=False)

    def _judge_opaque_needs(self) -> None:
        """Decide on the arguments that are passed to code that cannot be resolved.

        The user asked for concrete values, so that code may need them. Arrays are left out.
        """
        known = self.closed | {r.name for r in self.required}
        hidden: dict[Argument, Need] = {}
        for argument in self.arguments:
            if argument.name in known or argument.annotated_kind == "array":
                continue
            for index, own in self.needs.get(argument.name, {}).items():
                opaque = next((need for need in own if need.opaque), None)
                if opaque and argument not in hidden and not is_computed_with(argument):
                    if replace(argument, index=index).kind != "array":
                        hidden[argument] = opaque
        options = [argument for argument in hidden if not is_data(argument)]
        if options and self.site.definition.counting == "function":
            for argument in options:
                position = position_of(self.target, argument.name)
                self.required.append(Required(argument.name, None, position, by_value=False))
        elif hidden and not self.required:
            self.obstacle = _opaque_use_obstacle(next(iter(hidden.values())))

    def _require(
        self, argument: Argument, needs: Sequence[Need] = (), certain: bool = True
    ) -> None:
        position = position_of(self.target, argument.name, argument.index)
        is_known = not self._is_object(argument) or is_known_object(argument)
        is_changed = any(need.changed for need in needs)
        by_value = is_known and not is_changed and argument.is_immutable
        self.required.append(
            Required(argument.name, argument.index, position, tuple(needs), by_value, certain)
        )

    def _stands_alone(self, need: Need) -> bool:
        """Return whether the other operands of a need are Python values, too."""
        options = {a.name for a in self.arguments if a.name in need.operands and a.is_option}
        return need.operands == options


def closed_parameters(site: Site, target: Target) -> set[str]:
    """Return the leading parameters that the calls do not pass: `self`, arguments of partials."""
    positional = positional_parameters(target.function.node)
    skip = target.skip
    if site.definition.counting != "function" and skip == 0:
        skip = 1  # the module or scope of a lifted function
    return {p.arg for p in positional[:skip]}


def _passes_type_test(argument: Argument, need: Need) -> bool:
    """Return whether a test gives the same answer for a tracer as for what is passed.

    A tracer is an array of JAX, but none of NumPy, and it is another object.
    """
    is_array = need.reason != IDENTITY and argument.annotated_kind == "array"
    return is_array or argument.is_option


def _obstacle(
    argument: Argument, kind: Kind, shown: Located | None, needs: Sequence[Need], uses: Uses
) -> Obstacle | None:
    """Return why a needed argument cannot be static: it is an array, or it is differentiated."""
    name, target = argument.name, argument.target
    instead = (
        "write the branch with `jax.lax.cond` or `jnp.where`"
        if needs and needs[0].reason == BRANCH
        else "use operations that work on traced values (`jax.lax.cond`, `jnp.where`)"
    )
    position = position_of(target, name, argument.index)
    for differentiated, (module, node) in uses.differentiated.items():
        if position == differentiated + target.skip:
            return Obstacle(
                f"`{name}` must be concrete, but the function is differentiated with respect to it:"
                f" {instead}",
                module,
                node,
                f"differentiated with respect to `{name}` here",
            )
    if shown is not None:
        return Obstacle(
            f"`{name}` must be concrete, but an array is passed for it, which may be traced:"
            f" {instead}",
            *shown,
            "the default is an array"
            if shown[1] is argument.default
            else f"an array is passed for `{name}`",
        )
    if kind == "python":
        return None
    declared = argument.annotated_kind
    if declared == "unknown":
        declared = default_kind(argument.default)
    if declared == "array":
        return Obstacle(
            f"`{name}` must be concrete, but it is declared as what may be traced: {instead}",
            argument.module,
            argument.parameter,
            "declared as what may be traced",
        )
    if declared == "unknown" and kind == "unknown" and argument.is_primary:
        return Obstacle(
            f"`{name}` must be concrete, but the result is also computed from it: if it is never"
            f" differentiated, name it in `static_argnums`; if it is, {instead}",
            argument.module,
            argument.parameter,
            "the result is also computed from it",
        )
    return None


def result_obstacle(need: Need) -> Obstacle:
    """Return why a result cannot be computed at compile time: what goes in may be traced."""
    text = need.module.segment(need.node)
    return Obstacle(
        f"`{text}` must be concrete, but a checkpoint traces it, and what goes into it may be"
        " traced itself: compute it before the call, or use operations that work on traced values"
        " (`jax.lax.cond`, `jnp.where`)",
        need.module,
        need.node,
        f"its value is needed: {need.reason}",
    )


def _stored_obstacle(argument: Argument, needs: Sequence[Need]) -> Obstacle:
    need = next(need for need in needs if need.stored)
    return Obstacle(
        f"the function puts what it computes into `{argument.name}`, of which a checkpointed"
        " function gets a copy: return it instead",
        need.module,
        need.node,
        "changed here",
        argument.name,
    )


def _type_test_obstacle(argument: Argument, needs: Sequence[Need]) -> Obstacle:
    need = next(need for need in needs if need.type_test)
    tested = "identity" if need.reason == IDENTITY else "type"
    return Obstacle(
        f"the function tests the {tested} of `{argument.name}`, which differs for a tracer: test it"
        " before the call, or name it in `static_argnums` if it is never traced",
        need.module,
        need.node,
        f"tests its {tested}",
        argument.name,
        unseen=True,
    )


def _opaque_use_obstacle(need: Need) -> Obstacle:
    """Return why nothing is made static where a value is passed to code that cannot be resolved."""
    return Obstacle(
        f"`{need.parameter}` is passed to code that cannot be resolved, which may need its value:"
        " if it does, name it in `static_argnums`; then remove the option",
        need.module,
        need.node,
        "cannot be resolved",
        unseen=True,
    )


def find_statics(project: Project, site: Site) -> Statics:
    """Decide what must be static where `site` is applied."""
    values = list(wrapped_by(project, site))
    uses = uses_of(project, site)
    changing = changing_decorator(values)
    if changing is not None:
        label = "may change the arguments"
        reason = f"a decorator between the checkpoint and the function {label}"
        obstacle = unknown_obstacle(reason, changing.module, changing.node, label)
        return Statics(None, uses=uses, obstacle=obstacle)
    # Callers choose what a field or a parameter holds.
    held = wraps_field(project, site) or any(isinstance(v, Parameter) for v in values)
    callees = Callees(frozenset(values))
    if site.subject is not None and isinstance(site.subject[1], ast.expr):
        if held:
            values, unseen = candidates(project, site.subject[0], site.subject[1])
            if unseen is not None:
                reason = f"callers choose `{site.target}`, and not all of them are known"
                obstacle = unknown_obstacle(reason, *unseen, "cannot be resolved")
                return Statics(None, uses=uses, obstacle=obstacle)
            callees = Callees(frozenset(values))
        else:
            callees = overrides_of(project).callees(site.subject[0], site.subject[1])
    by_function = {
        (t.function.node, t.owner): t
        for v in callees.values
        for t in targets_of(project.evaluator, v)
    }
    if not by_function:
        # Code of libraries that the calls pass nothing but arrays.
        if values and all(_is_layer(v) or _is_array_function(v, uses) for v in values):
            return Statics(None, uses=uses)
        obstacle = unseen_target_obstacle(site)
        if values and all(isinstance(v, External) and needs_of(v.name) for v in values):
            reason = (
                f"`{site.target}` may need the values of some arguments: name those in"
                " `static_argnums`, and pass them by position"
            )
            obstacle = replace(obstacle, reason=reason, label="wraps a function of a library")
        return Statics(None, uses=uses, obstacle=obstacle)
    targets = sorted(by_function.values(), key=place_of)
    functions = frozenset(node for node, _ in by_function)
    own = {t.function.node for v in values for t in targets_of(project.evaluator, v)}
    are_alike = len({_signature(target) for target in targets}) == 1
    # An override is called with the same arguments as the method that it overrides; otherwise any
    # call may run any of the functions.
    if functions <= own and (held or len(targets) > 1):
        calls = [
            replace(call, own=are_alike and (call.own or _calls_only(project, call, functions)))
            for call in uses.calls
        ]
        uses = replace(uses, calls=calls)
    found = [
        statics_of_target(project, site, target, uses, may_be_overridden=callees.others)
        for target in targets
    ]
    return _combined(site, found, are_alike=are_alike, held=held and functions <= own)


def _calls_only(project: Project, call: Call, functions: frozenset[FunctionNode]) -> bool:
    """Return whether a call certainly runs one of some functions, checkpointed or not."""
    called = [
        {t.function.node for t in targets_of(project.evaluator, value)}
        for value in project.values(call.module, call.node.func)
    ]
    return bool(called) and all(nodes and nodes <= functions for nodes in called)


def place_of(target: Target) -> tuple[str, int, int, str]:
    """Return a sort key for targets that is the same in every run."""
    node = target.function.node
    owner = target.owner.module.qualified_name(target.owner.node) if target.owner else ""
    return str(target.function.module.source.path), node.lineno, node.col_offset, owner


def _combined(site: Site, found: list[Statics], *, are_alike: bool, held: bool) -> Statics:
    """Return the decision for all functions that a site wraps, any of which each call may run.

    An argument is static if any of the functions needs it. The functions are alike if they have the
    same signature, and `held` if callers choose one.
    """
    first = next((statics for statics in found if statics.obstacle is not None), found[0])
    if first.obstacle is not None:
        return first
    required: dict[tuple[str, Key | None], Required] = {}
    for item in (r for statics in found for r in statics.required):
        known = required.get((item.name, item.index), item)
        required[item.name, item.index] = replace(
            known,
            needs=tuple(dict.fromkeys((*known.needs, *item.needs))),
            by_value=item.by_value and known.by_value,
            certain=item.certain or known.certain,
        )
    if required and not are_alike:
        reason = (
            "it wraps functions with different signatures, which may need different static"
            " arguments: give each its own checkpoint with its own `static_argnums`"
        )
        place, label = site.application or site.reference, "wraps one of several functions"
        return replace(first, obstacle=Obstacle(reason, site.module, place, label, unseen=True))
    assert first.target is not None
    return replace(
        first,
        required=tuple(required.values()),
        indices=static_indices(site.definition, first.target, required.values()),
        results=tuple(dict.fromkeys(need for statics in found for need in statics.results)),
        changing=next((s.changing for s in found if s.changing is not None), None),
        open_ended=held or not are_alike,
    )


def _signature(target: Target) -> object:
    """Return what the arguments of a call depend on: parameters with their kinds and defaults."""
    node = target.function.node
    stars = tuple(p.arg if p is not None else "" for p in (node.args.vararg, node.args.kwarg))
    defaults = ((p.arg, default_of(node, p)) for p in node.args.kwonlyargs)
    keywords = tuple((n, ast.dump(d) if d is not None else "") for n, d in defaults)
    return call_order(node)[target.skip :], keywords, stars, target.given


# -- targets that are not known


def unknown_obstacle(
    reason: str, module: Module, node: ast.expr | FunctionNode, label: str, hint: str = ""
) -> Obstacle:
    """Return why nothing is made static where it is not known what a checkpoint calls."""
    return Obstacle(
        f"{reason}, so the arguments that must be concrete are not known: name them in"
        f" `static_argnums`{hint}",
        module,
        node,
        label,
        unseen=True,
    )


def unseen_target_obstacle(site: Site) -> Obstacle:
    """Return why nothing is made static where the target cannot be resolved, or is abstract."""
    what = f"`{site.target}`" if site.target else "its target"
    hint = ", or, if it is imported, set `search-path` to where its package is installed"
    place, label = site.application or site.reference, "wraps code that cannot be resolved"
    return unknown_obstacle(f"{what} cannot be resolved", site.module, place, label, hint)


def wraps_field(project: Project, site: Site) -> bool:
    """Return whether the target is a field of an object, set by callers: `nn.remat(self.cls)`."""
    module, node = site.subject or (site.module, None)
    return isinstance(node, ast.expr) and is_field(project, module, node)


def changing_decorator(values: list[Value]) -> Wrapped | None:
    """Return a decorator under the checkpoint that may change the function's arguments."""
    for value in values:
        for layer in layers(value):
            if isinstance(layer, Applied):
                break  # another checkpoint stands between
            if isinstance(layer, Wrapped) and layer.how == "?":
                return layer
    return None


def _is_layer(value: Value) -> bool:
    """Return whether a value is a library's layer that takes arrays alone: `nn.Dense`."""
    match value:
        case External(name) | Instance(cls=External(name)):
            if name in INSTANCES:
                return not INSTANCES[name]
            return name.startswith(LAYER_MODULES) and name.rpartition(".")[2][:1].isupper()
    return False


def _is_array_function(value: Value, uses: Uses) -> bool:
    """Return whether a value is a function such as `jnp.sin` that the calls pass arrays alone."""
    match value:
        case External(name) | Bound(func=External(name)):
            function = needs_of(name)
            if function is None or any(p.takes != "traced" for p in function.positional[:1]):
                return False
            calls = [ast.Call(call.node, *call.arguments) for call in uses.calls]
            passed = [p for call in calls for _, p in function.passed(call)]
            if uses.escapes or not calls:  # A call may pass anything.
                passed += function.keywords.values()
            return all(p.takes == "traced" for p in passed)
    return False
