"""The function to measure and its arguments, from the names that the user gives."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from typing import Any, Callable, Dict, Optional, Tuple

from ...verify.worker import declared
from ...verify.worker.load import NotFound, load_module
from .entry import Unfit

Arguments = Tuple[Tuple[Any, ...], Dict[str, Any]]


def load_function(module: Optional[str], path: str, qualname: str) -> Callable[..., Any]:
    """A function, a method of a class, or whatever else can be called, by its name.

    Raises:
        NotFound: there is none, with the nearest name that there is.
        Exception: whatever importing the module raises.
    """
    found = load_module(module, path)
    for part in qualname.split("."):
        if not hasattr(found, part):
            near = declared.nearest(part, [name for name in dir(found) if name[:1] != "_"])
            raise NotFound("%s has no %s%s" % (getattr(found, "__name__", path), part, near))
        found = getattr(found, part)
    if not callable(found):
        raise NotFound("%s is a %s, which cannot be called" % (qualname, type(found).__name__))
    function: Callable[..., Any] = found
    return function


def from_function(function: Callable[..., Any], name: str) -> Arguments:
    """What a function of the user's returns as arguments: a tuple, a dictionary, or both."""
    if inspect.signature(function).parameters:
        required = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        if required:
            raise Unfit("%s gives the arguments, and must take none itself" % name)
    result = function()
    if inspect.isgenerator(result):
        result = next(result)
    return declared.arguments(result, name)


def from_cases(file: str, function: str) -> Arguments:
    """The first case that a file of cases declares for a function, by its qualified name.

    Raises:
        NotFound: there is none.
    """
    spec = importlib.util.spec_from_file_location("remat_migrate_cases", file)
    if spec is None or spec.loader is None:
        raise NotFound("%s is not a Python file" % file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    for name, made in declared.functions(module):
        if function == name or function.endswith("." + name):
            return from_function(made, name)
    raise NotFound("%s declares no case for %s" % (file, function))


def without(function: Callable[..., Any]) -> Arguments:
    """No arguments, for a function that needs none.

    Raises:
        Unfit: it needs some; the message says how to give them.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    needed = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise Unfit(
            "it needs arguments (%s): write a function that returns them, of arrays or of"
            " jax.ShapeDtypeStruct(shape, dtype), and name it with --args module:function"
            % ", ".join(needed)
        )
    return (), {}
