"""The function to measure and its arguments, from the names that the user gives."""

from __future__ import annotations

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
    """A function, a method of a class, or whatever else can be called, by its name.

    Raises:
        NotFound: there is none, with the nearest name that there is.
        Exception: whatever importing the module raises.
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
        raise NotFound("%s cannot be called, it is of type %s" % (qualname, type(found).__name__))
    function: Callable[..., Any] = found
    return function


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not (name + ".").startswith(missing + "."):
            raise  # one that the module needs
        package, _, last = missing.rpartition(".")
        folders = getattr(sys.modules[package], "__path__", ()) if package else _own_folders()
        known = [found.name for found in pkgutil.iter_modules(folders)]
        hint = declared.nearest(last, known)
        raise NotFound("there is no module %s%s" % (missing, hint)) from None


def _own_folders() -> List[str]:
    """Where modules are imported from, but for Python's own and installed ones."""
    libraries = os.path.dirname(os.__file__)
    return [
        folder
        for folder in sys.path
        if "site-packages" not in folder and not folder.startswith(libraries)
    ]


def from_function(function: Callable[..., Any], name: str) -> Arguments:
    """What a function of the user's returns as arguments: a tuple, a dictionary, or both."""
    if required := _required(function):
        raise Unfit("it gives the arguments, and must take none itself (%s)" % ", ".join(required))
    result = function()
    if inspect.isgenerator(result):
        try:
            result = next(result)
        except StopIteration:
            raise Unfit("it yields no arguments") from None
    return declared.arguments(result, name)


def from_cases(file: str, function: str) -> Arguments:
    """The first case that a file of cases declares for a function, by its qualified name.

    Raises:
        NotFound: there is none.
    """
    for name, made in declared.functions(file):
        if function == name or function.endswith("." + name):
            return from_function(made, name)
    raise NotFound("%s declares no case for %s" % (file, function))


def without(function: Callable[..., Any]) -> Arguments:
    """No arguments, for a function that needs none.

    Raises:
        Unfit: it needs some; the message says how to give them.
    """
    if needed := _required(function):
        raise Unfit(
            "it needs arguments (%s): write a function that returns them, of arrays or of"
            " jax.ShapeDtypeStruct(shape, dtype), and name it with --args module:function"
            % ", ".join(needed)
        )
    return (), {}


def _required(function: Callable[..., Any]) -> List[str]:
    """The parameters that have no default; none where it is not known."""
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
