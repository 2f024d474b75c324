"""Capture the context of Flax linen modules, and run units in such a context.

A captured context is `{"library": "flax", "variables": {collection: tree} or None, "rngs": {name:
key}, "mutable": filter, "compact": bool, "names": {class name: count}, "elsewhere": [...]}`.
`mutable` is a bool, a list of collections, or `{"deny": filter}`. `compact` and `names` say whether
the module may create unnamed submodules and how many it has. `elsewhere` holds `{"at": place,
"variables", "rngs", "mutable"}` of bound modules among the other arguments.
"""

from __future__ import annotations

import functools
import re
import sys
import traceback
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import jax

from .abstraction import abstractly, alike, evaluated, runs
from .flax_modules import (
    Place,
    belongs,
    is_bound,
    is_module,
    leaves,
    linen,
    modules_among,
    replaced_at,
    submodules,
)
from .pure_call import PureCall

# Names of random keys that are always provided; errors name any others.
USUAL_RNGS = ("params", "dropout")

# The collections that a unit may change where that is not known.
MUTABLE = {"deny": ["params"]}


def capture(args: Any, kwargs: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the context of bound modules among the arguments, or of the module being run.

    The latter only says that there is one: a function that makes modules on its own has them
    initialised when it is called again.
    """
    if linen() is None:
        return None
    bound = [(place, module) for place, module in modules_among(args, kwargs) if is_bound(module)]
    context = _unknown()
    if bound and list(bound[0][0]) == ["args", 0]:
        module = bound.pop(0)[1]
        context.update(_read(module))
        state = getattr(module, "_state", None)
        context["compact"] = bool(getattr(state, "in_compact_method", True))
        context["names"] = dict(getattr(state, "autoname_cursor", {}))
        if not context["variables"] and _initialising(module.scope):
            context["variables"] = None
    elif not bound and not _inside_a_module():
        return None
    context["elsewhere"] = [dict(_read(module), at=list(place)) for place, module in bound]
    return context


def _unknown() -> Dict[str, Any]:
    return {"library": "flax", "variables": None, "rngs": None, "mutable": None}


def _inside_a_module() -> bool:
    library: Any = sys.modules.get("flax.linen.module")
    stack: Any = getattr(getattr(library, "_context", None), "module_stack", None)
    return bool(stack) and is_bound(stack[-1])


def _read(module: Any) -> Dict[str, Any]:
    return {
        "variables": _variables(module, set()),
        "rngs": {name: _key(rng) for name, rng in module.scope.rngs.items()},
        "mutable": _filter_as_data(module.scope.mutable),
    }


def _variables(module: Any, above: Set[int]) -> Dict[str, Any]:
    """Return a module's variables and, by field name, those of submodules that others own."""
    variables: Dict[str, Any] = _as_dicts(module.scope.variables())
    for name, value, inside in submodules(module):
        for child in inside:
            if is_bound(child) and not belongs(child, module) and id(child) not in above:
                theirs = _variables(child, {*above, id(module)})
                for collection, tree in theirs.items():
                    key = name + _suffix(value, child)
                    variables.setdefault(collection, {}).setdefault(key, tree)
    return variables


def _suffix(value: Any, child: Any) -> str:
    """Return what Flax appends to a field's name for a module inside its value: `_0`, `_key`."""
    if value is child:
        return ""
    pairs = value.items() if isinstance(value, Mapping) else ()
    if isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", range(len(value)))
        pairs = zip(names, value)  # type: ignore[assignment]
    for key, part in pairs:
        if any(leaf is child for leaf in leaves(part)):
            return "_{}".format(key) + _suffix(part, child)
    return ""


def _as_dicts(tree: Any) -> Any:
    """Return a copy of nested mappings: the module changes its own as it runs."""
    if isinstance(tree, Mapping):
        return {key: _as_dicts(value) for key, value in tree.items()}
    return tree


def _key(rng: Any) -> Any:
    """Return the key of a scope, with what Flax has yet to fold into it."""
    return rng.as_jax_rng() if hasattr(rng, "as_jax_rng") else rng


def _initialising(scope: Any) -> bool:
    flags = getattr(scope, "flags", {})
    return bool(flags.get("initializing", False)) or scope.is_mutable_collection("params")


def _filter_as_data(collections: Any) -> Any:
    if isinstance(collections, bool):
        return collections
    if isinstance(collections, str):
        return [collections]
    if hasattr(collections, "deny"):
        return {"deny": _filter_as_data(collections.deny)}
    return sorted(collections) or False


def _filter_from_data(collections: Any) -> Any:
    if isinstance(collections, dict):
        denied = _filter_from_data(collections["deny"])
        return sys.modules["flax.core.scope"].DenyList(denied)
    return tuple(collections) if isinstance(collections, list) else collections


def prepare(
    unit: Callable[..., Any],
    args: Tuple[Any, ...],
    kwargs: Dict[str, Any],
    context: Dict[str, Any],
    traced: bool,
) -> List[PureCall]:
    """See `pure_functions.prepare`."""
    pure = _PureUnit(unit, args, context)
    if not pure.is_method and runs(unit, args, kwargs):
        return [PureCall("", unit, args, kwargs)]
    if context.get("variables") is not None:
        known = {"variables": context["variables"], "rngs": context.get("rngs") or {}}
        return [PureCall("", pure.apply, (pure.state(known), *args), kwargs)]
    init = pure.init_call(args, kwargs, context.get("rngs") or {})
    run = functools.partial(evaluated, shapes_do=traced)
    variables_of = init._replace(function=lambda *args, **kwargs: init.function(*args, **kwargs)[1])
    try:
        variables = _with_keys(run, variables_of)
    except Exception:  # evaluation raises it again and reports it
        return [init]
    keys = {name: key for name, key in init.args[0]["rngs"].items() if name != "params"}
    made = context.get("made")
    if traced and made and alike(variables, made["variables"]):
        variables = made["variables"]
    known = dict(init.args[0], variables=variables, rngs=keys)
    apply = PureCall("apply", pure.apply, (known, *args), kwargs)
    _learn_keys(apply)
    return [init, apply]


def initialised(unit: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """See `pure_functions.initialised`."""
    init = _PureUnit(unit, args, _unknown()).init_call(args, kwargs, {})
    return _with_keys(lambda run, given, named: run(*given, **named), init)[0]


def init_variables(
    module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], method: Any, names: Sequence[str]
) -> Any:
    """Return the variables that a module makes for a call; `names`: of its random keys."""
    keys = {name: _fixed_key(i) for i, name in enumerate(dict.fromkeys([*USUAL_RNGS, *names]))}
    state = PureCall("init", module.init, ({"rngs": keys},), {})
    return _with_keys(
        lambda run, given, _: run(dict(given[0]["rngs"]), *args, method=method, **kwargs), state
    )


def _with_keys(run: Callable[..., Any], pure_call: PureCall) -> Any:
    """Run it, and for every key that it turns out to want add one and run it again."""
    keys = pure_call.args[0]["rngs"]
    while True:
        try:
            return run(pure_call.function, pure_call.args, pure_call.kwargs)
        except Exception as error:
            wanted = re.search(r'needs PRNG for "([^"]*)"', str(error))
            if wanted is None or wanted.group(1) in keys:
                raise
            keys[wanted.group(1)] = _fixed_key(len(keys) + len(USUAL_RNGS))


def _learn_keys(pure_call: PureCall) -> None:
    try:
        _with_keys(abstractly, pure_call)
    except Exception:  # evaluation raises it again
        return


def _fixed_key(number: int) -> Any:
    return jax.random.PRNGKey(number)


class _PureUnit:
    """A unit as functions of its context and arguments."""

    def __init__(
        self, unit: Callable[..., Any], args: Tuple[Any, ...], context: Dict[str, Any]
    ) -> None:
        self.unit = unit
        self.is_method = bool(args) and is_module(args[0])
        self.elsewhere = context.get("elsewhere") or []
        self.names = context.get("names") or {}
        self.compact = context.get("compact", True)
        self.mutable = context.get("mutable")
        if self.mutable is None or context.get("variables") is None:
            self.mutable = MUTABLE

    def state(self, known: Dict[str, Any]) -> Dict[str, Any]:
        """Return the first argument: variables and keys of all bound modules."""
        others = [{"variables": o["variables"], "rngs": o["rngs"]} for o in self.elsewhere]
        return dict(known, elsewhere=others) if others else known

    def init_call(
        self, args: Tuple[Any, ...], kwargs: Dict[str, Any], keys: Dict[str, Any]
    ) -> PureCall:
        """Return the unit's initialising run, with these random keys and the usual ones."""
        usual = {name: _fixed_key(i) for i, name in enumerate(USUAL_RNGS)}
        state = self.state({"rngs": dict(usual, **keys)})
        return PureCall("init", self.init, (state, *args), kwargs)

    def init(self, state: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Return the unit's result and the initialised variables."""
        body = self.body(state, args, kwargs)
        return self.module(args).init_with_output(dict(state["rngs"]), method=body)

    def apply(self, state: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Return the unit's result, and the collections that it may change, if any."""
        return self.module(args).apply(
            state["variables"],
            rngs=dict(state["rngs"]),
            mutable=_filter_from_data(self.mutable),
            method=self.body(state, args, kwargs),
        )

    def module(self, args: Tuple[Any, ...]) -> Any:
        """Return the module that gets the variables: the first argument, or a wrapping module."""
        return args[0] if self.is_method else _wrapper_class()(parent=None)

    def body(
        self, state: Dict[str, Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]
    ) -> Callable[[Any], Any]:
        """Return the function to run once the module is bound."""

        def call(module: Any) -> Any:
            self.allow_submodules(module)
            given: Dict[str, Any] = {"args": list(args), "kwargs": dict(kwargs)}
            if self.is_method:
                given["args"][0] = module
            self.bind_others(module, given, state.get("elsewhere", []))
            positional, named = given["args"], given["kwargs"]
            if self.is_method:
                return self.unit(*positional, **named)
            return module(lambda: self.unit(*positional, **named))

        return call

    def allow_submodules(self, module: Any) -> None:
        """Let a method that is not compact create submodules, as if a compact method called it."""
        state = getattr(module, "_state", None)
        if state is not None and self.compact:
            state.in_compact_method = True
            state.autoname_cursor = dict(self.names)

    def bind_others(self, module: Any, given: Dict[str, Any], known: Any) -> None:
        """Give modules among the other arguments their own variables, or make them children."""
        places = {tuple(other["at"]): i for i, other in enumerate(self.elsewhere)}

        def bind(place: Place, other: Any) -> Any:
            if other is module or is_bound(other):
                return other
            if place not in places:
                return other.clone(parent=module) if self.compact and not self.is_method else other
            about = known[places[place]]
            mutable = _filter_from_data(self.elsewhere[places[place]]["mutable"])
            return other.bind(about["variables"], rngs=dict(about["rngs"]), mutable=mutable)

        for name in ("args", "kwargs"):
            given[name] = replaced_at(given[name], (name,), bind)


def _wrapper_class() -> Any:
    """Return a class of modules in whose only method a function can create modules."""
    library = linen()

    def __call__(self: Any, function: Callable[[], Any]) -> Any:
        return function()

    body = {"__call__": library.compact(__call__), "__module__": __name__, "__annotations__": {}}
    return type("Surroundings", (library.Module,), body)


def wanted_by(error: BaseException) -> Optional[Dict[str, Any]]:
    """Return the context that is missing when Flax raises this error, or None."""
    if linen() is None:
        return None
    asks = re.search(r"unbound module|only accessible from inside 'init' or 'apply'", str(error))
    return _unknown() if asks or _asserted_a_scope(error) else None


def _asserted_a_scope(error: BaseException) -> bool:
    """Return whether Flax asserts that a parent has a scope: an unbound module has a submodule."""
    if not isinstance(error, AssertionError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and "scope" in (frames[-1].line or "") and _is_flax(error)


def _is_flax(error: BaseException) -> bool:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and last.tb_frame.f_globals.get("__name__", "").startswith("flax.")
