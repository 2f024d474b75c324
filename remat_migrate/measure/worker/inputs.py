"""Load the function to measure and its arguments by the names that the user gave."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import pkgutil
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from ...verify.worker.inputs import declared
from ...verify.worker.load import NotFound, load_module
from .entry import Unfit

Arguments = Tuple[Tuple[Any, ...], Dict[str, Any]]


def load_function(module: Optional[str], path: str, qualname: str) -> Callable[..., Any]:
    """Load a function, method, or other callable by name.

    Raises:
        NotFound: there is none; the message suggests the closest name.
        Exception: any error that the module raises on import.
    """
    found = _imported(module) if module else load_module(None, path)
    for part in qualname.split("."):
        if not hasattr(found, part):
            near = declared.nearest(part, [name for name in dir(found) if name[:1] != "_"])
            raise NotFound("%s has no %s%s" % (getattr(found, "__name__", path), part, near))
        found = getattr(found, part)
    if isinstance(found, type):
        raise NotFound("%s is a class: name a function, or a method as Class.method" % qualname)
    if not callable(found):
        raise NotFound("%s is not callable, it has type %s" % (qualname, type(found).__name__))
    function: Callable[..., Any] = found
    return function


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not (name + ".").startswith(missing + "."):
            raise  # a module that the target imports
        package, _, last = missing.rpartition(".")
        folders = getattr(sys.modules[package], "__path__", ()) if package else _user_folders()
        known = [found.name for found in pkgutil.iter_modules(folders)]
        hint = declared.nearest(last, known)
        raise NotFound("there is no module %s%s" % (missing, hint)) from None


def _user_folders() -> List[str]:
    """Return the folders of `sys.path` outside the standard library and installed packages."""
    libraries = os.path.dirname(os.__file__)
    return [
        folder
        for folder in sys.path
        if "site-packages" not in folder and not folder.startswith(libraries)
    ]


def batch_parameter(function: Optional[Callable[..., Any]]) -> Optional[str]:
    """Return the parameter of a function that is the batch size, if it has one."""
    if function is None:
        return None
    names = inspect.signature(function).parameters
    return next((name for name in ("batch", "batch_size") if name in names), None)


def first_batch(function: Optional[Callable[..., Any]]) -> Optional[int]:
    """Return the batch size to start from; None if the arguments of the function have one."""
    parameter = batch_parameter(function)
    if function is None or parameter is None:
        return None
    default = inspect.signature(function).parameters[parameter].default
    return default if isinstance(default, int) else 1


def from_function(
    function: Callable[..., Any], name: str, batch: Optional[int] = None
) -> Arguments:
    """Call a function that returns arguments: a tuple, a dictionary, or both.

    Args:
        function: the function.
        name: its name in messages.
        batch: the batch size, if the function has a parameter for it.
    """
    if batch is not None and (parameter := batch_parameter(function)):
        function = functools.partial(function, **{parameter: batch})
    if required := _required(function):
        raise Unfit(
            "a function that returns arguments must not take any (%s)" % ", ".join(required)
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
    raise NotFound("%s declares no case for %s" % (file, function))


def without_arguments(function: Callable[..., Any]) -> Arguments:
    """Return no arguments.

    Raises:
        Unfit: the function needs some; the message says how to provide them.
    """
    if required := _required(function):
        raise Unfit(
            "it needs arguments (%s): write a function that returns them, as arrays or as"
            " jax.ShapeDtypeStruct(shape, dtype), and pass --args module:function"
            % ", ".join(required)
        )
    return (), {}


def _required(function: Callable[..., Any]) -> List[str]:
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
