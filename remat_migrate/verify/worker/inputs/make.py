"""Make inputs for a unit from its signature.

    make_cases(unit, classes=[Config])

Annotations, defaults, names, and how the code uses them say what an argument is; errors of
abstract runs correct it (see `search_loop`). Each value of a flag, each string that an argument is
compared with, and each side of a number that an argument is compared with gives a case.
"""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import jax
import numpy as np

from .. import module_state
from ..frameworks import flax_modules, pure_functions
from ..lookup import signature, unwrapped
from ..project import constructors, settings
from . import candidates, code_usage, construct, search_loop, type_hints, uses, variants
from .combinations import Combinations, Pins, are_made_up, described
from .node import ABSENT, DICT, FIELDS, GUESS, INSTANCE, LIST, VALUE, Choice, Plan
from .search import Budget, Search, Snapshot

MOST_CASES = 10
# Operations to trace, of which a second holds some thousands.
WORK = 60_000
TRIES = 600
# For cases after the first, which start from what the first has found.
TRIES_FOR_ANOTHER = 120
# For other lengths of some arrays, to which those of others may have to be adapted.
TRIES_FOR_UNTIED = 24
# For a string that is none of those that the code knows: it may well be refused.
TRIES_FOR_MADE_UP = 4

Case = Dict[str, Any]


class Made(NamedTuple):
    """Cases, each with a description ("train=True"), and why there are not more."""

    cases: List[Tuple[str, Case]]
    detail: str


def make_cases(
    unit: Callable[..., Any],
    owner: Optional[type] = None,
    classes: Sequence[type] = (),
    end: float = math.inf,
    work: int = WORK,
) -> Made:
    """Return inputs under which `unit` can be traced.

    `owner` is the class whose instance a method takes, `classes` are dataclasses of the project
    that may be arguments. At `end`, a time of `time.process_time`, no more are looked for.
    """
    maker = _Maker(unit, owner, classes)
    # JAX's own frames show the operands.
    config: Any = jax.config
    filtering = config.jax_traceback_filtering
    config.update("jax_traceback_filtering", "off")
    try:
        maker.run(Budget(TRIES, work, end))
    finally:
        config.update("jax_traceback_filtering", filtering)
        candidates.sizes.clear()
    return Made(maker.cases, "; ".join(dict.fromkeys(maker.reasons)))


class _Maker:
    """One unit, its cases so far, and why there are not more."""

    def __init__(
        self, unit: Callable[..., Any], owner: Optional[type], classes: Sequence[type]
    ) -> None:
        self.unit = unit
        self.cls = constructors.concrete(owner)
        self.search = Search(classes, unit, code_usage.reached(unit, self.cls))
        self.context: Optional[Dict[str, Any]] = None
        if self.cls is not None and flax_modules.is_module_class(self.cls):
            self.context = {"library": "flax"}
        self.cases: List[Tuple[str, Case]] = []
        self.reasons: List[str] = []

    def run(self, budget: Budget) -> None:
        made = signature(self.unit)
        if made is None:
            self.reasons.append("its signature cannot be read")
            return
        self._roots(made)
        trouble = self._solve(budget)
        if trouble is not None:
            self.reasons.append("no inputs found: " + trouble)
            return
        base = self.search.save()
        self._keep(())
        self._others(base, budget)
        self._variants(base, budget)

    def _instances(self) -> List[type]:
        """Return the classes of the arguments that are instances."""
        choices = [node.choice for _, node in self.search.roots]
        return [choice.value for choice in choices if choice.kind == INSTANCE]

    def _is_abstract(self) -> bool:
        """Return whether the unit is a method of a module that is too large to compute with."""
        return self.context is not None and any(
            settings.is_large(constructors.sizes_of(cls)) for cls in self._instances()
        )

    def _roots(self, made: inspect.Signature) -> None:
        """Add a node for each parameter; arrays have the sizes of the instances."""
        known = type_hints.of_callable(self.unit)
        siblings = tuple(made.parameters)
        unit = unwrapped(self.unit)
        bound = unit.keywords if isinstance(unit, functools.partial) else {}
        # Bound arguments are not passed again.
        parameters = [(name, p) for name, p in made.parameters.items() if name not in bound]
        annotations = {name: known.get(name, p.annotation) for name, p in parameters}
        self._learn_sizes([self.cls, *annotations.values()])
        self._add_roots(parameters, annotations, siblings)
        # Classes may also be known by the fields that are read: guess arrays again.
        if self._learn_sizes(self._instances()):
            self.search.roots = []
            self._add_roots(parameters, annotations, siblings)

    def _learn_sizes(self, classes: List[Any]) -> bool:
        """Note the sizes of these classes; return whether they are new."""
        before = dict(candidates.sizes)
        for cls in classes:
            if isinstance(cls, type):
                sizes = constructors.sizes_of(cls)
                candidates.sizes.update(settings.main_sizes(sizes, self.search.names_read))
        return candidates.sizes != before

    def _add_roots(
        self,
        parameters: List[Tuple[str, inspect.Parameter]],
        annotations: Dict[str, Any],
        siblings: Tuple[str, ...],
    ) -> None:
        for at, (name, parameter) in enumerate(parameters):
            annotation = annotations[name]
            keys: List[str] = []
            if at == 0 and self.cls is not None:
                plan: Optional[Plan] = Plan([Choice(INSTANCE, self.cls)])
            elif parameter.kind is parameter.VAR_POSITIONAL:
                counts = [Choice(LIST, count) for count in (0, 2, 1, 3)]
                plan, annotation = Plan(counts, counts[:2]), None
            elif parameter.kind is parameter.VAR_KEYWORD:
                use = uses.of_parameter(self.unit, name)
                keys = list(dict.fromkeys(use.keys + use.asked))
                plan, annotation = Plan([Choice(DICT, tuple(keys))]), None
            else:
                plan = type_hints.plan_for(name, annotation, parameter.default, siblings)
                plan = self.search.producers.plan(self.unit, name, plan, parameter.default)
            node = self.search.new((name,), None, annotation, plan)
            for key in keys:
                self.search.want(node, key)
            self.search.roots.append((parameter, node))

    def _solve(self, budget: Budget) -> Optional[str]:
        """Search without a context, and in the context that an error asks for."""

        def asks(error: BaseException) -> bool:
            return self.context is None and bool(pure_functions.context_from_error(error))

        trouble = search_loop.solve(self.search, self._call, budget, asks)
        error = self.search.last_error
        if trouble is not None and error is not None and asks(error):
            self.context = pure_functions.context_from_error(error)
            trouble = search_loop.solve(self.search, self._call, budget)
        return trouble

    def _call(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """Call the unit in its context; may be traced."""
        with module_state.restored(self.unit):
            return pure_functions.initialised(self.unit, args, kwargs, self.context)

    # Cases

    def _others(self, base: Snapshot, budget: Budget) -> None:
        """Add a case for each alternative value, then for pairs of them."""
        asked = variants.near(self.search)
        combinations = Combinations(base, asked)
        most = MOST_CASES + len(asked)
        done: Set[Any] = {self._assignment()}
        while len(self.cases) < most:
            nodes = self.search.in_use()
            combinations.keep(nodes)
            combinations.note(nodes + [c for parent in nodes for c in parent.children.values()])
            pins = combinations.next(most - len(self.cases))
            if pins is None:
                break
            if not budget.spend():
                self.reasons.append("no tries left for other cases")
                break
            self.search.restore(base)
            self._pin(pins)
            is_asked = any(pins is one for one in asked)
            is_near = is_asked and any(type(c.value) in (int, float) for _, c in pins)
            tries = TRIES_FOR_MADE_UP if is_near or are_made_up(pins) else TRIES_FOR_ANOTHER
            trouble = self._solve(budget.part(tries))
            if trouble is not None:
                self.reasons.append("{}: {}".format(self._about(pins), trouble))
                combinations.reject(pins)
                continue
            used = {node.number for node in self.search.in_use()}
            if self._assignment() in done or not used.intersection(number for number, _ in pins):
                combinations.reject(pins)
                continue
            done.add(self._assignment())
            self._keep(pins)

    def _variants(self, base: Snapshot, budget: Budget) -> None:
        """Add cases with other numbers, numbers of other magnitudes, and other sizes."""

        def runs() -> bool:
            left = budget.part(TRIES_FOR_ANOTHER)
            return budget.spend() and search_loop.runs(self.search, self._call, left)

        def solves(tries: int = TRIES_FOR_ANOTHER) -> bool:
            return budget.spend() and self._solve(budget.part(tries)) is None

        soon = functools.partial(solves, TRIES_FOR_UNTIED)
        for about in variants.renumber(self.search, base, runs):
            case = self._case(0)
            self.cases.append((about, _abstract(case) if self._is_abstract() else case))
        if self._is_abstract():
            return
        for case in variants.in_lower_precision(self._case(0)):
            self.cases.append((variants.LOWER_PRECISION, case))
        for variant, about in construct.MAGNITUDES.items():
            self.cases.append((about, self._case(variant)))
        for about in variants.resize(self.search, base, runs, self.search.integers):
            self.cases.append((about, self._case(0)))
        for about in variants.recount(self.search, base, solves):
            self.cases.append((about, self._case(0)))
        for about in variants.untie(self.search, base, soon):
            self.cases.append((about, self._case(0)))

    def _pin(self, pins: Pins) -> None:
        for number, choice in pins:
            node = self.search.nodes[number]
            node.forget()
            if choice.kind in (FIELDS, INSTANCE):
                node.children = {}
            node.choose([choice])
            node.pinned = choice.kind != GUESS

    def _assignment(self) -> Any:
        """Return the values of everything that varies: equal for identical cases."""
        return tuple(
            (node.number, node.choice.key())
            for node in self.search.in_use()
            if node.choice.kind in (VALUE, ABSENT, LIST, INSTANCE, FIELDS)
        )

    def _keep(self, pins: Pins) -> None:
        """Keep what has been found; of what is too large to compute with, abstract arrays."""
        case = self._case(0)
        self.cases.append((self._about(pins), _abstract(case) if self._is_abstract() else case))

    def _case(self, variant: int) -> Case:
        args, kwargs = construct.arguments(
            self.search.roots, lambda node: construct.concrete(node, variant)
        )
        return {"args": args, "kwargs": kwargs, "context": self.context}

    def _about(self, pins: Pins) -> str:
        """Return what a case is about: the values that vary between cases."""
        shown = {number: self.search.nodes[number].choice for number, _ in pins}
        for node in self.search.in_use():
            if node.alternatives and node.choice.kind == VALUE:
                shown.setdefault(node.number, node.choice)
        texts = [
            described(self.search.nodes[number], choice) for number, choice in sorted(shown.items())
        ]
        return ", ".join(text for text in texts if text)


def _abstract(case: Case) -> Case:
    """Return a case with abstract arrays."""

    def change(leaf: Any) -> Any:
        held = isinstance(leaf, (jax.Array, np.ndarray)) and leaf.ndim
        typed = held and jax.numpy.issubdtype(leaf.dtype, jax.numpy.number)
        make: Any = jax.ShapeDtypeStruct
        # Random keys stay what they are.
        return make(leaf.shape, leaf.dtype) if typed and leaf.dtype != np.uint32 else leaf

    args, kwargs = jax.tree_util.tree_map(change, (case["args"], case["kwargs"]))
    return dict(case, args=args, kwargs=kwargs)
