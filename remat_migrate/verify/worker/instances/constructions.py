"""Find arguments for the constructor of a class as the project itself constructs it."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import itertools
import os
import re
import sys
import typing
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ..frameworks import flax_modules
from ..inputs import candidates, type_hints
from ..inputs.node import VALUE
from ..lookup import has
from . import sizes
from .expressions import Evaluator, Unknown, is_settings
from .sources import Scope, Sources

_MOST_SITES = 12
_MOST_KEPT = 3
# Larger sizes among the defaults of a class of settings are shrunk, and deeper stacks of layers.
_LARGE_DEFAULT = 128
_DEEP_DEFAULT = 8
_NOT_ARGUMENTS = ("parent", "name", "self")
# Functions that make settings.
_MAKES_SETTINGS = "config|cfg|hparams|settings|options|hyper"
_MISSING = inspect.Parameter.empty
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

Arguments = Dict[str, Any]


@functools.lru_cache(maxsize=None)
def of_project(root: str) -> "Constructions":
    """Return the constructions of the project in a folder."""
    return Constructions(root)


class Constructions:
    """The ways to construct classes of a project.

    Args:
        root: the project's folder; empty if there is none to look into.
    """

    def __init__(self, root: str = "") -> None:
        self.sources = Sources(root)
        self.evaluator = Evaluator(self.sources)
        self._instances: Dict[type, List[Any]] = {}
        self._found: Dict[type, List[Arguments]] = {}

    def of(self, cls: type) -> List[Arguments]:
        """Return keyword arguments for a class, the likeliest first.

        What is missing from the arguments is to be made by its name. Sizes are shrunk; the
        originals come last.
        """
        if cls not in self._found:
            self._found[cls] = [{}]  # for a class that holds itself
            self._found[cls] = self._all(cls)
        return self._found[cls]

    def instances(self, cls: type) -> List[Any]:
        """Return instances of a class of settings: with defaults, or as the project makes them."""
        if not is_settings(cls):
            return []
        if cls not in self._instances:
            self._instances[cls] = []
            found = [made for made in [_made(cls, {})] if made is not None]
            known = parameters(cls)
            required = [name for name, p in known.items() if p.default is _MISSING]
            if required or not found:
                for given in self._calls(cls, known):
                    if len(found) < _MOST_KEPT and set(required) <= set(given):
                        found += [made for made in [_made(cls, given)] if made is not None]
            if not found:
                found += [made for made in [_made(cls, self._by_names(cls))] if made is not None]
            self._instances[cls] = found
        return self._instances[cls]

    # Arguments of a class

    def _all(self, cls: type) -> List[Arguments]:
        known = parameters(cls)
        hints = type_hints.of_callable(cls)
        required = [name for name, p in known.items() if p.default is _MISSING]
        told = {name: self._by_annotation(hints.get(name)) for name in required}
        demanding = [name for name in required if self._demands(name, hints.get(name), told[name])]
        annotated = {name: value for name, value in told.items() if value is not None}
        if "parent" in required:  # the outermost one has none
            annotated["parent"] = None
            demanding = [name for name in demanding if name != "parent"]
        found: List[Arguments] = []
        for given in self._calls(cls, known):
            # Another class may have the same name: settings are not taken for numbers.
            fitting = {
                name: value
                for name, value in given.items()
                if name not in annotated or not isinstance(value, (int, float, str))
            }
            whole = {**annotated, **fitting}
            if set(demanding) <= set(whole) and len(found) < _MOST_KEPT:
                found += [whole] if all(repr(whole) != repr(other) for other in found) else []
        # The arguments that the project passes matter less than consistent ones by name.
        found.sort(key=lambda given: -len(set(given) & set(required)))
        if set(demanding) <= set(annotated):
            found.append(annotated)
        if is_settings(cls) or flax_modules.is_module_class(cls):
            defaults = {name: p.default for name, p in known.items() if type(p.default) is int}
            if any(_is_large(name, number) for name, number in defaults.items()):
                found = [{**defaults, **given} for given in found or [annotated]]
                demanding = demanding or list(defaults)
        plain: List[Arguments] = [] if demanding else [{}]
        return _different(plain + _versions(found) + ([{}] if demanding else []))

    def _demands(self, name: str, annotation: Any, told: Any) -> bool:
        """Return whether an argument needs more than its name to be made."""
        if told is not None or candidates.is_settings(name):
            return True
        plan = type_hints.plan_for(name, annotation or _MISSING, _MISSING)
        if plan is None:
            return not candidates.is_number(name) and not candidates.is_callable(name)
        return plan.choices[0].kind in ("instance", "dict", "list")

    def _calls(self, cls: type, known: Dict[str, inspect.Parameter]) -> Iterator[Arguments]:
        """Yield what can be told of the arguments of the calls in the project."""
        near = _file_of(cls)
        count = 0
        for source in self.sources.mentioning([cls.__name__], near):
            for call in source.calls(cls.__name__):
                count += 1
                if count > _MOST_SITES:
                    return
                scope = Scope(source, source.around(call), call.lineno)
                given = self._arguments(call, scope, known)
                if given:
                    yield given

    def _arguments(
        self, call: ast.Call, scope: Scope, known: Dict[str, inspect.Parameter]
    ) -> Arguments:
        positional = [name for name, p in known.items() if p.kind is not p.KEYWORD_ONLY]
        found: Arguments = {}
        expressions: List[Tuple[str, ast.expr]] = []
        for name, argument in zip(positional, call.args):
            if isinstance(argument, ast.Starred):
                break
            expressions.append((name, argument))
        for keyword in call.keywords:
            if keyword.arg is not None:
                expressions.append((keyword.arg, keyword.value))
                continue
            try:
                found.update(self.evaluator.value(keyword.value, scope))
            except (Unknown, TypeError, ValueError):
                continue
        for name, expression in expressions:
            try:
                found[name] = self.evaluator.value(expression, scope)
            except Unknown:
                continue
        return {
            n: v for n, v in found.items() if n in known and n not in _NOT_ARGUMENTS and _plain(v)
        }

    def _by_annotation(self, annotation: Any) -> Any:
        """Return an instance of the class of settings that an annotation names; or None."""
        for part, several in _classes_in(annotation):
            for made in self.instances(concrete(part)):
                return several([made, made]) if several else made
        return None

    def _by_names(self, cls: type) -> Arguments:
        hints = type_hints.of_callable(cls)
        found: Arguments = {}
        for name, parameter in parameters(cls).items():
            if parameter.default is not _MISSING:
                continue
            annotation = hints.get(name, parameter.annotation)
            nested = self._by_annotation(annotation)
            plan = type_hints.plan_for(name, annotation, _MISSING)
            if nested is not None:
                found[name] = nested
            elif plan is not None and plan.choices[0].kind == VALUE:
                found[name] = plan.choices[0].value
            elif plan is None and candidates.is_number(name):
                found[name] = candidates.numbers(name)[0].value
        return found

    def held(self, cls: type) -> List[Any]:
        """Return the instances of a class that the modules of the project hold."""
        found: List[Any] = []
        for module in self._modules():
            for value in list(vars(module).values()):
                if type(value) is cls and all(value is not other for other in found):
                    found.append(value)
        return found

    def offering(self, read: Set[str]) -> List[Any]:
        """Return settings that modules of the project hold or make and that have these fields."""
        held = (value for module in self._modules() for value in self._settings_of(module))
        fitting = (value for value in held if read <= offered(value))
        return list(itertools.islice(fitting, _MOST_KEPT)) if read else []

    def _settings_of(self, module: Any) -> Iterator[Any]:
        for name, value in list(vars(module).items()):
            if isinstance(value, type):
                if value.__module__ == module.__name__:
                    yield from self.instances(value)
            elif inspect.isfunction(value):
                required = [p for p in parameters(value).values() if p.default is _MISSING]
                if re.search(_MAKES_SETTINGS, name) and not required:
                    with contextlib.suppress(Exception):  # it may need more than this
                        yield value()
            elif type(value) is dict or is_settings(type(value)):
                yield value
                yield from value.values() if type(value) is dict else ()

    def classes(self) -> Iterator[type]:
        """Yield the classes that the imported modules of the project define."""
        for module in self._modules():
            for value in list(vars(module).values()):
                if isinstance(value, type) and value.__module__ == module.__name__:
                    yield value

    def _modules(self) -> Iterator[Any]:
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None) or ""
            if self.sources.root and file.startswith(self.sources.root + os.sep):
                yield module


def signature(function: Any) -> Optional[inspect.Signature]:
    """Return the signature of a callable, or None if Python cannot tell.

    That of a class is its constructor's, also if its metaclass passes any arguments on to it.
    """
    try:
        made = inspect.signature(function)
        passed_on = isinstance(function, type) and all(
            parameter.kind in _VARIADIC for parameter in made.parameters.values()
        )
        if passed_on and made.parameters and type(function).__call__ is not type.__call__:
            own = inspect.signature(function.__init__)
            return own.replace(parameters=list(own.parameters.values())[1:])
    except (TypeError, ValueError):
        return None
    return made


def parameters(cls: Any) -> Dict[str, inspect.Parameter]:
    """Return the parameters of a constructor that can be passed by name."""
    made = signature(cls)
    return {
        name: parameter
        for name, parameter in (made.parameters.items() if made else ())
        if parameter.kind not in _VARIADIC
        and (name not in _NOT_ARGUMENTS or parameter.default is _MISSING)
    }


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


def _is_large(name: str, number: int) -> bool:
    return number > (_DEEP_DEFAULT if sizes.kind(name) == "depth" else _LARGE_DEFAULT)


def _made(cls: type, given: Arguments) -> Optional[Any]:
    try:
        return cls(**given)
    except Exception:  # the constructor of the project, on what it may refuse
        return None


def _file_of(cls: Any) -> str:
    module = sys.modules.get(getattr(cls, "__module__", "") or "")
    return getattr(module, "__file__", None) or ""


def _plain(value: Any) -> bool:
    """Return whether a value is a setting rather than an array, which is made instead."""
    return not has(value, "shape") or not has(value, "dtype")


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


def _versions(found: List[Arguments]) -> List[Arguments]:
    """Return the smallest version of each, then the larger ones."""
    versions = [sizes.levels(given) for given in found]
    longest = max([len(one) for one in versions] or [0])
    return [one[rank] for rank in range(longest) for one in versions if rank < len(one)]


def _different(found: List[Arguments]) -> List[Arguments]:
    kept: List[Arguments] = []
    for given in found:
        if all(repr(given) != repr(other) for other in kept):
            kept.append(given)
    return kept


def offered(settings: Any) -> Set[str]:
    """Return the fields that can be read of settings."""
    if isinstance(settings, dict):
        return {key for key in settings if isinstance(key, str)}
    try:
        return set(dir(settings)) | set(sizes.attributes(settings))
    except Exception:  # the project's own `__dir__`
        return set()
