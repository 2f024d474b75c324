"""Load the function to measure and its arguments by the names that the user gave."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from ...verify.worker.inputs import declared
from ...verify.worker.load import NotFound, load_module
from .entry import Unfit

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def load_function(module: str | None, path: str, qualname: str) -> Callable[..., Any]:
    """Load a function, method, or other callable by name.

    Raises:
        NotFound: there is none; the message suggests the closest name.
        Exception: any error that the module raises on import.
    """
    found = _imported(module) if module else load_module(None, path)
    for part in qualname.split("."):
        if not hasattr(found, part):
            near = declared.nearest(part, [name for name in dir(found) if name[:1] != "_"])
            kind = "module " if inspect.ismodule(found) else ""
            raise NotFound(f"{kind}{getattr(found, '__name__', path)} defines no `{part}`{near}")
        found = getattr(found, part)
    if isinstance(found, type):
        raise NotFound(f"{qualname} is a class: name a function, or a method as Class.method")
    if not callable(found):
        raise NotFound(f"{qualname} is not callable, it has type {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # a module that the target imports
        raise NotFound(f"there is no module {error.name}") from None


def from_function(function: Callable[..., Any], name: str) -> Arguments:
    """Call a function that returns arguments: a tuple, a dictionary, or both.

    Args:
        function: the function.
        name: its name in messages.
    """
    if required := _required(function):
        raise Unfit(
            "a function that returns arguments must not take any ({})".format(", ".join(required))
        )
    result = function()
    if inspect.isgenerator(result):
        try:
            result = next(result)
        except StopIteration:
            raise Unfit("it yields no arguments") from None
    return declared.arguments(result, name)


def from_cases(file: str, function: str) -> Arguments:
    """Return the first case that a cases file declares for a function, by qualified name.

    Raises:
        NotFound: there is none.
    """
    for name, made in declared.functions(file):
        if function == name or function.endswith("." + name):
            return from_function(made, name)
    raise NotFound(f"{file} declares no case for {function}")


def without_arguments(function: Callable[..., Any]) -> Arguments:
    """Return no arguments.

    Raises:
        Unfit: the function needs some; the message says how to provide them.
    """
    if required := _required(function):
        raise Unfit(
            "it needs arguments ({}): write a function that returns them, as arrays or as"
            " jax.ShapeDtypeStruct(shape, dtype), and pass --args module:function".format(
                ", ".join(required)
            )
        )
    return (), {}


def _required(function: Callable[..., Any]) -> list[str]:
    """Return the parameters without a default; none if the signature is unknown."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
