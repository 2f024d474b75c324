"""Find which arguments of a function must be concrete, by tracing one at a time."""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import signal
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp

from . import samples
from .modules import parameters_of

# "traced": accepts tracers. "concrete": does not. "function": takes a function. "depends": accepts
# some tracers, such as arrays but not numbers. "unknown": no sample works.
Status = Literal["traced", "concrete", "function", "depends", "unknown"]
_SECONDS = 20
_CONCRETIZATION = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
_COMBINATIONS = 120


@dataclass
class Probed:
    """The result for one function.

    Attributes:
        positional: positional parameters in order; `*name` collects further arguments.
        keywords: keyword-only parameters; `**name` collects further keywords.
        status: status of each parameter.
        unless: for a concrete parameter, the option that allows it to be traced.
        static: whether the result is concrete even if the arguments are traced.
        errors: why an argument must be concrete, for review.
    """

    positional: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    status: dict[str, Status] = field(default_factory=dict)
    unless: dict[str, str] = field(default_factory=dict)
    static: bool = False
    errors: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return asdict(self)


def probe(name: str, function: Callable[..., Any]) -> Probed | None:
    """Probe one function; None if it has no signature."""
    parameters = parameters_of(function)
    if parameters is None:
        return None
    return _Probe(name, function, parameters).run()


class _Timeout(Exception):
    """A call took too long."""


class _Probe:
    def __init__(
        self, name: str, function: Callable[..., Any], parameters: dict[str, inspect.Parameter]
    ) -> None:
        self.name = name
        self.function = function
        self.parameters = parameters
        self.eager = False
        self.concretized = False
        self.named_axis = "axis_name" in parameters and name.startswith(("jax.lax.", "jax.nn."))
        self.error: Exception | None = None
        self.result: Any = None

    def run(self) -> Probed:
        found = Probed()
        for name, parameter in self.parameters.items():
            match parameter.kind:
                case parameter.KEYWORD_ONLY:
                    found.keywords.append(name)
                case parameter.VAR_KEYWORD:
                    found.keywords.append(f"**{name}")
                case parameter.VAR_POSITIONAL:
                    found.positional.append(f"*{name}")
                case _:
                    found.positional.append(name)
        base = self._base()
        # Optimizers are not part of a model.
        if base is None or (
            hasattr(type(self.result), "_fields") and hasattr(self.result, "update")
        ):
            found.status = dict.fromkeys(self.parameters, "unknown")
            return found
        working: dict[str, Any] = {}
        for name in self.parameters:
            valid, beside = self._valid(base, name), base
            if not valid and "initial" in self.parameters:  # required by `where=`
                beside = {**base, "initial": 0.0}
                valid = self._valid(beside, name)
            if valid:
                working[name] = valid[0]
            found.status[name] = self._status(beside, name, valid, found)
        for name in base:
            if found.status[name] == "concrete" and _is_numeric(base[name]):
                option = self._unless(base, name, working)
                if option is not None:
                    found.unless[name] = option
        traced = [n for n in base if found.status[n] in ("traced", "depends")]
        if not self.eager and self._attempt(base, traced):
            found.static = _is_static(self.result) and not self.name.endswith("_with_path")
        return found

    # -- working arguments

    def _candidates(self, name: str) -> list[Any]:
        parameter = self.parameters[name]
        default = None if parameter.default is parameter.empty else parameter.default
        annotation = "" if parameter.annotation is parameter.empty else str(parameter.annotation)
        found = samples.candidates(self.name, name, annotation, default)
        match parameter.kind:
            case parameter.VAR_POSITIONAL:
                return [v if isinstance(v, list) else [v] for v in found]
            case parameter.VAR_KEYWORD:
                return [v for v in found if isinstance(v, dict) and v is not samples.TREE]
        return found

    def _base(self) -> dict[str, Any] | None:
        """Return a minimal set of arguments with which the function runs."""
        given = samples.BY_FUNCTION.get(self.name, {})
        given = {n: v for n, v in given.items() if n in self.parameters}
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        needed = [
            n
            for n, p in self.parameters.items()
            if n in given or (p.default is p.empty and p.kind not in several)
        ]
        variadic = [n for n, p in self.parameters.items() if p.kind is p.VAR_POSITIONAL]
        everything = [[given[n]] if n in given else self._candidates(n) for n in needed]
        # Numbers take other code paths than arrays: try them last.
        arrays = [[v for v in c if _sort(v) != "number"] or c for c in everything]
        for choices, self.eager in itertools.product((arrays, everything), (False, True)):
            if self.eager and not self.concretized:
                continue  # no failure was due to tracing
            for values in _combinations(choices):
                base = dict(zip(needed, values, strict=True))
                if self._attempt(base):
                    return base
            for n in variadic:
                for values in _combinations([*choices, self._candidates(n)]):
                    base = dict(zip([*needed, n], values, strict=True))
                    if self._attempt(base):
                        return base
        return None

    def _valid(self, base: dict[str, Any], name: str) -> list[Any]:
        """Return valid values for a parameter, one of each sort."""
        found: dict[str, Any] = {}
        if name in base:
            found[_sort(base[name])] = base[name]
        for value in self._candidates(name):
            if value is None or _sort(value) in found:
                continue
            if self._attempt({**base, name: value}):
                found[_sort(value)] = value
        return list(found.values())

    # -- with tracers

    def _status(self, base: dict[str, Any], name: str, valid: list[Any], found: Probed) -> Status:
        if not valid:
            return "unknown"
        if any(_sort(v) == "function" for v in valid):  # or a list of functions
            return "function"
        outcomes: set[bool] = set()
        for value in valid:
            if not _is_numeric(value):
                continue
            outcome = self._attempt({**base, name: value}, [name])
            error = self.error
            if not outcome:
                found.errors[name] = f"{type(error).__name__}: {error}"[:160]
            outcomes.add(outcome)
        if not outcomes:
            return "concrete"
        if len(outcomes) > 1:
            return "depends"
        return "traced" if outcomes == {True} else "concrete"

    def _unless(self, base: dict[str, Any], name: str, working: dict[str, Any]) -> str | None:
        for option, value in working.items():
            if option not in base and self._attempt({**base, option: value}, [name]):
                return option
        return None

    # -- calls

    def _attempt(self, values: dict[str, Any], traced: list[str] | tuple[str, ...] = ()) -> bool:
        """Return whether the function runs at trace time, with some of the arguments traced."""
        leaves, tree = jax.tree_util.tree_flatten({n: values[n] for n in traced})
        numeric = [_is_number(leaf) for leaf in leaves]

        def run(tracers: list[Any]) -> tuple[()]:
            rest = iter(tracers)
            mixed = [
                next(rest) if number else leaf for leaf, number in zip(leaves, numeric, strict=True)
            ]
            arguments = {**values, **jax.tree_util.tree_unflatten(tree, mixed)}
            context = jax.ensure_compile_time_eval() if self.eager else contextlib.nullcontext()
            with context:
                self.result = self._call(arguments)
            return ()

        outer: Any = run
        if self.named_axis:
            outer = jax.vmap(run, in_axes=None, axis_size=2, axis_name="i")
        if self.name.startswith("haiku."):
            import haiku

            outer = lambda leaves: haiku.transform_with_state(run).init(samples.KEY, leaves)  # noqa: E731
        try:
            with _limited():
                tracers = [v for v, n in zip(leaves, numeric, strict=True) if n]
                jaxpr = jax.make_jaxpr(outer)(tracers)
                if _holds_tracer(jaxpr.jaxpr):
                    raise TypeError("a tracer is a parameter of an equation")
        except Exception as error:  # any error that a library raises for invalid arguments
            self.error = error
            if not traced:
                self.concretized = self.concretized or isinstance(error, _CONCRETIZATION)
            return False
        return True

    def _call(self, values: dict[str, Any]) -> Any:
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        variadic = any(
            p.kind is p.VAR_POSITIONAL and n in values for n, p in self.parameters.items()
        )
        by_position = True
        for name, parameter in self.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += values.get(name, [])
            elif parameter.kind is parameter.VAR_KEYWORD:
                keywords.update(values.get(name, {}))
            elif name not in values:
                if parameter.kind is parameter.POSITIONAL_ONLY and by_position:
                    later = [n for n, p in self.parameters.items() if p.kind is p.POSITIONAL_ONLY]
                    if any(n in values for n in later[later.index(name) :]):
                        positional.append(parameter.default)
                        continue
                by_position = False
            elif parameter.kind is parameter.POSITIONAL_ONLY or (
                variadic and by_position and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            ):
                positional.append(values[name])
            else:
                keywords[name] = values[name]
        result = self.function(*positional, **keywords)
        self._use(result)
        return result

    def _use(self, result: Any) -> None:
        """Call the result if it is callable, since it may only then use its arguments."""
        if isinstance(result, jax.Array | jax.core.Tracer | type):
            return
        if hasattr(result, "__enter__"):
            with result:
                return
        if callable(result):
            package = self.name.rpartition(".")[0]
            arguments = samples.CALLED_WITH.get(
                self.name, samples.CALLED_WITH.get(package, (samples.VECTOR,))
            )
            result(*arguments)


def _combinations(choices: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield combinations of values, starting with the same choice for all."""
    longest = max((len(c) for c in choices), default=0)
    for i in range(longest):
        yield tuple(c[min(i, len(c) - 1)] for c in choices)
    yield from itertools.islice(itertools.product(*choices), _COMBINATIONS)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | bool | int | float | complex)


def _is_numeric(value: Any) -> bool:
    return any(_is_number(leaf) for leaf in jax.tree_util.tree_leaves(value))


def _sort(value: Any) -> str:
    if isinstance(value, jax.Array):
        return "array"
    if isinstance(value, bool | int | float):
        return "number"
    leaves = jax.tree_util.tree_leaves(value)
    if leaves and all(callable(leaf) and not isinstance(leaf, type) for leaf in leaves):
        return "function"
    return "container" if _is_numeric(value) else "other"


def _holds_tracer(jaxpr: Any) -> bool:
    """Return whether a parameter of an equation holds a tracer, which fails when compiled."""
    for equation in jaxpr.eqns:
        for leaf in jax.tree_util.tree_leaves(tuple(equation.params.values())):
            inner = getattr(leaf, "jaxpr", leaf)
            if isinstance(leaf, jax.core.Tracer) or (
                hasattr(inner, "eqns") and _holds_tracer(inner)
            ):
                return True
    return False


def _is_static(result: Any) -> bool:
    """Return whether a result is not an array, but a shape, a dtype or a pytree structure."""
    leaves = jax.tree_util.tree_leaves(result)
    if not leaves or any(callable(leaf) and not isinstance(leaf, type) for leaf in leaves):
        return False
    return not any(
        isinstance(leaf, jax.Array | jax.core.Tracer) or hasattr(leaf, "__enter__")
        for leaf in leaves
    )


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise _Timeout

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


# Methods that act on the memory of an array.
_NOT_PROBED = frozenset(
    {"at", "delete", "copy_to_host_async", "addressable_data", "block_until_ready"}
)


_UPDATES = (
    "set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "apply", "get",
)  # fmt: skip


def probe_methods() -> dict[str, Probed]:
    """Probe the public methods of arrays, with the array as the first argument."""
    found: dict[str, Probed | None] = {}
    array, update = type(samples.VECTOR), type(samples.VECTOR.at[0])
    for name in dir(jax.Array):
        method = getattr(array, name, None)
        if name[0] != "_" and name not in _NOT_PROBED and callable(method):
            found[f"jax.Array.{name}"] = probe(f"jax.Array.{name}", _as_function(name, method))
    for name in _UPDATES:
        method = getattr(update, name, None)
        if method is not None:
            found[f"jax.Array.at.{name}"] = probe(f"jax.Array.at.{name}", _as_update(name, method))
    return {name: probed for name, probed in found.items() if probed is not None}


def _as_function(attribute: str, method: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(jnp.asarray(self), attribute)(*args, **kwargs)

    return _with_signature(call, method)


def _as_update(attribute: str, method: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(jnp.asarray(self).at[samples.INTS], attribute)(*args, **kwargs)

    return _with_signature(call, method)


def _with_signature(call: Any, method: Any) -> Any:
    try:
        parameters = list(inspect.signature(method).parameters.values())[1:]
    except (TypeError, ValueError):
        parameters = []
    parameters = [p for p in parameters if p.name != "self"]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY, annotation="Array")
    call.__signature__ = inspect.Signature([own, *parameters])
    return call
