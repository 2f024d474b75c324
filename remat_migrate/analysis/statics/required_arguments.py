"""Which arguments of one function that a checkpoint wraps must be static, and what prevents it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..names.scopes import parameters
from ..needs.dependence import Key
from ..needs.need import BRANCH, IDENTITY, Need, needed_results
from ..project import Project
from ..sites.calls import Uses
from ..sites.framework_modules import framework_of
from ..sites.site import Site
from ..values.bind import positional_parameters
from ..values.callees import Target, is_frozen
from ..values.declarations import Kind, default_kind
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
from .statics import Obstacle, Required, Statics, bind_use, position_of, static_indices


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
        if self.obstacle is None and (kept := leaking(self.project, self.target)) is not None:
            module, node = kept
            reason = (
                f"`{module.segment(node)}` is kept for later calls, and in a checkpoint it is a"
                " tracer: return it instead; if no argument goes in, compute it in"
                " `with jax.ensure_compile_time_eval():`"
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
