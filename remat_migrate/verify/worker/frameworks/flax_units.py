"""Run Flax linen units: their variables are initialised, then applied."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import traceback
from typing import Any, Callable, Dict, Optional, Tuple

import jax

from .abstraction import PureCall, abstractly, evaluated, mapped, parts_of
from .flax_modules import is_bound, is_module, linen

# Names of random keys that are always provided; errors name any others.
USUAL_RNGS = ("params", "dropout")

CONTEXT = {"library": "flax"}


def capture(args: Any, kwargs: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the context of a call if it has bound modules, or if one is being run."""
    if linen() is None:
        return None
    bound = map(is_bound, parts_of((args, kwargs), is_module))
    return CONTEXT if any(bound) or _inside_a_module() else None


def _inside_a_module() -> bool:
    library: Any = sys.modules.get("flax.linen.module")
    stack: Any = getattr(getattr(library, "_context", None), "module_stack", None)
    return bool(stack) and is_bound(stack[-1])


def init_variables(module: Any, method: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """Return the variables that a module makes for a call of one of its methods."""
    keys = {name: _fixed_key(i) for i, name in enumerate(USUAL_RNGS)}
    init = PureCall("init", module.init, ({"rngs": keys},), {})
    return _with_keys(
        lambda run, given, _: run(dict(given[0]["rngs"]), *args, method=method, **kwargs), init
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


def _fixed_key(number: int) -> Any:
    return jax.random.PRNGKey(number)


class PureUnit:
    """A unit as functions of its variables, random keys, and arguments; see `pure_functions`."""

    def __init__(self, unit: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]):
        self.unit = unit
        self.is_method = bool(args) and is_module(args[0])
        self.wants_context = self.is_method
        keys = {name: _fixed_key(i) for i, name in enumerate(USUAL_RNGS)}
        self.init_call = PureCall("init", self.init, ({"rngs": keys}, *args), kwargs)

    def apply_call(self, traced: bool) -> PureCall:
        """Return what runs with initialised variables; see `pure_functions.prepare`."""
        init = self.init_call
        variables = _with_keys(
            functools.partial(evaluated, shapes_do=traced),
            init._replace(function=lambda *args, **kwargs: init.function(*args, **kwargs)[1]),
        )
        keys = {name: key for name, key in init.args[0]["rngs"].items() if name != "params"}
        state = {"variables": variables, "rngs": keys}
        apply = PureCall("apply", self.apply, (state, *init.args[1:]), init.kwargs)
        with contextlib.suppress(Exception):  # evaluation raises it again
            _with_keys(abstractly, apply)
        return apply

    def initialised(self) -> Any:
        """See `pure_functions.initialised`."""
        return _with_keys(lambda run, given, named: run(*given, **named), self.init_call)[0]

    def init(self, state: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Return the unit's result and the initialised variables."""
        body = self.body(args, kwargs)
        return self.module(args).init_with_output(dict(state["rngs"]), method=body)

    def apply(self, state: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Return the unit's result, and the collections that it may change, if any."""
        return self.module(args).apply(
            state["variables"],
            rngs=dict(state["rngs"]),
            mutable=sys.modules["flax.core.scope"].DenyList("params"),
            method=self.body(args, kwargs),
        )

    def module(self, args: Tuple[Any, ...]) -> Any:
        """Return the module that gets the variables: the first argument, or a wrapping module."""
        return args[0] if self.is_method else _wrapper_class()(parent=None)

    def body(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Callable[[Any], Any]:
        """Return the function to run once the module is bound."""

        def call(module: Any) -> Any:
            # A method that is not compact may be called by one that is.
            module._state.in_compact_method = True

            def bind(other: Any) -> Any:
                if self.is_method and other is args[0]:
                    return module
                return other if other is module or is_bound(other) else other.clone(parent=module)

            positional, named = mapped((args, kwargs), is_module, bind)
            if self.is_method:
                return self.unit(*positional, **named)
            return module(lambda: self.unit(*positional, **named))

        return call


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
    return CONTEXT if asks or _asserted_a_scope(error) else None


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
