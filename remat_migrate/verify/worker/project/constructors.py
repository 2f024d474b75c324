"""Construct the classes of a project: settings with their defaults, or by their names."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import typing
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from ..environment import projects
from ..inputs import candidates, type_hints
from ..inputs.node import VALUE
from ..lookup import VARIADIC, signature
from .settings import is_settings_class, shallow

MISSING = inspect.Parameter.empty

# Parameters of Flax modules that the parent fills in.
_NOT_ARGUMENTS = ("parent", "name", "self")


def modules() -> Iterator[Any]:
    """Yield the imported modules of the project."""
    for module in list(sys.modules.values()):
        if projects.is_project_file(getattr(module, "__file__", None)):
            yield module


def classes() -> Iterator[type]:
    """Yield the classes that the imported modules of the project define."""
    for module in modules():
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                yield value


def records() -> List[type]:
    """Return the dataclasses and other classes of settings of the project."""
    return [cls for cls in classes() if dataclasses.is_dataclass(cls) or is_settings_class(cls)]


def offers(cls: type, attributes: Iterable[str]) -> bool:
    """Return whether instances of a class appear to have all these attributes."""
    known = set(dir(cls)) | set(getattr(cls, "__dataclass_fields__", ()))
    for owner in cls.__mro__:
        known |= set(getattr(owner, "__annotations__", ()))
    if not hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "_fields"):
        made = signature(cls)
        known |= set(made.parameters) if made else set()
    return all(attribute in known for attribute in attributes)


@functools.lru_cache(maxsize=None)
def arguments_of(cls: type) -> Dict[str, Any]:
    """Return what is known of the arguments of a constructor: settings, and how many layers."""
    hints = type_hints.of_callable(cls)
    found: Dict[str, Any] = {}
    layers: Dict[str, Any] = {}
    for name, parameter in _parameters(cls).items():
        if parameter.default is MISSING:
            made = _by_annotation(hints.get(name))
            if made is not None or name == "parent":  # the outermost module has none
                found[name] = made
        elif type(parameter.default) is int:
            layers[name] = parameter.default
    few = shallow(layers)
    return {**shallow(found), **{n: few[n] for n in layers if few[n] != layers[n]}}


def sizes_of(cls: type) -> Dict[str, Any]:
    """Return the settings and integers that a constructor gets."""
    defaults = {name: parameter.default for name, parameter in _parameters(cls).items()}
    return {**{n: v for n, v in defaults.items() if type(v) is int}, **arguments_of(cls)}


@functools.lru_cache(maxsize=None)
def instance_of(cls: Any) -> Optional[Any]:
    """Return an instance of a class of settings, with its defaults; None if there is none."""
    cls = concrete(cls)
    if not is_settings_class(cls):
        return None
    for arguments in ({}, _by_names(cls)):
        try:
            return cls(**arguments)
        except Exception:  # the constructor of the project, on what it may refuse
            continue
    return None


def concrete(cls: Any) -> Any:
    """Return a class that can be instantiated: itself, or a subclass without abstract methods."""
    if not isinstance(cls, type) or not inspect.isabstract(cls):
        return cls
    waiting: List[Any] = list(type.__subclasses__(cls))
    while waiting:
        found = waiting.pop(0)
        if not inspect.isabstract(found):
            return found
        waiting += type.__subclasses__(found)
    return cls


def _parameters(cls: Any) -> Dict[str, inspect.Parameter]:
    """Return the parameters of a constructor that can be passed by name."""
    made = signature(cls)
    return {
        name: parameter
        for name, parameter in (made.parameters.items() if made else ())
        if parameter.kind not in VARIADIC
        and (name not in _NOT_ARGUMENTS or parameter.default is MISSING)
    }


def _by_annotation(annotation: Any) -> Any:
    """Return an instance of the class of settings that an annotation names; or None."""
    for part, several in _classes_in(annotation):
        made = instance_of(part)
        if made is not None:
            return several([made, made]) if several else made
    return None


def _by_names(cls: type) -> Dict[str, Any]:
    hints = type_hints.of_callable(cls)
    found: Dict[str, Any] = {}
    for name, parameter in _parameters(cls).items():
        if parameter.default is not MISSING:
            continue
        annotation = hints.get(name, parameter.annotation)
        nested = _by_annotation(annotation)
        plan = type_hints.plan_for(name, annotation, MISSING)
        if nested is not None:
            found[name] = nested
        elif plan is not None and plan.choices[0].kind == VALUE:
            found[name] = plan.choices[0].value
        elif plan is None and candidates.is_number(name):
            found[name] = candidates.numbers(name)[0].value
    return found


def _classes_in(annotation: Any) -> Iterator[Tuple[Any, Any]]:
    """Yield the classes in an annotation, and for the elements of a sequence its type."""
    if isinstance(annotation, type) and not getattr(annotation, "__args__", None):
        yield annotation, None
        return
    origin = getattr(annotation, "__origin__", None)
    arguments = getattr(annotation, "__args__", None) or ()
    union = origin is typing.Union or type(annotation).__name__ == "UnionType"
    sequence = getattr(origin, "__name__", "") in ("list", "tuple", "Sequence", "Iterable")
    for argument in arguments:
        if union:
            yield from _classes_in(argument)
        elif sequence and isinstance(argument, type):
            yield argument, list if origin is list else tuple
