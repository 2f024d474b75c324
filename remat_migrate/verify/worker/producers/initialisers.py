"""Find the functions of a project that make what another function takes as its parameters.

    init_params(key, cfg)["blocks"][0]   for `p` in   block(p, x), called in a loop over the blocks

Call sites are followed backwards: through assignments, loops, subscripts, and the parameters of the
callers. Where that ends at a parameter that no caller passes, names tell which function makes it.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import re
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..environment import projects
from ..inputs import type_hints
from ..instances.bindings import ELEMENT, binding, first_of
from ..instances.expressions import Unknown
from ..instances.sources import Function, Scope, Source, key_of, parameters

_DEEPEST = 5
_MOST_CALLS = 6

_INITIALISER = re.compile(
    r"init(iali[sz]e)?\d*|(init|initiali[sz]e|initial)_\w+|\w+_init(iali[sz]er)?"
)
_MAKER = re.compile(
    r"(create|make|build|new|default|random|get|sample)_(\w+_)?"
    r"(params?|parameters|weights|variables|states?|model|network|net|layers?|cache|theta|carry)"
)
_PARAMETERS = re.compile(
    r"(\w+_)?(params?|parameters|weights|variables|theta|layers|blocks|vars)|model|net|p"
)
_SAME = re.compile(
    r"stop_gradient|device_put|unfreeze|freeze|deepcopy|copy|block_until_ready|list|tuple"
)


class Initialiser(NamedTuple):
    """A function that makes something, and where in its result that is.

    Attributes:
        function: the function.
        path: keys, indices, and names of attributes, the outermost first.
        field: the part of a state that is meant, if the result is one that has it.
    """

    function: Callable[..., Any]
    path: Tuple[Any, ...] = ()
    field: str = ""

    def part(self, result: Any) -> Any:
        """Return what is at the path.

        Raises:
            LookupError: nothing is.
        """
        found = first_of(result, self.path)
        is_state = hasattr(found, "_fields") or hasattr(found, "__dataclass_fields__")
        return getattr(found, self.field, found) if is_state and self.field else found

    def below(self, *steps: Any) -> "Initialiser":
        """Return what makes a part of the result."""
        return self._replace(path=(*self.path, *steps))


class Initialisers:
    """The initialisers of a project.

    Args:
        constructions: the project.
    """

    def __init__(self, constructions: Any) -> None:
        self.sources = constructions.sources
        self.evaluator = constructions.evaluator
        self._found: Dict[Tuple[str, int, str], List[Initialiser]] = {}
        self._of_modules: Dict[str, List[Any]] = {}

    def of(self, function: Any, name: str) -> List[Initialiser]:
        """Return what may make a parameter of a function, the likeliest first."""
        place = self.sources.definition(function)
        found = self._of(place[0], place[1], name, _DEEPEST) if place else []
        return [made if made.path else made._replace(field=name) for made in found]

    def returning(self, function: Any, cls: Any) -> List[Initialiser]:
        """Return the initialisers near a function that are annotated to return such an object."""
        place = self.sources.definition(function)
        found = []
        for near in self._near(place[1]) if place else ():
            hints = dict(type_hints.of_callable(near))
            if hints.pop("return", None) is cls and cls not in hints.values():
                found.append(Initialiser(near))
        return found

    def _near(self, source: Source) -> List[Any]:
        if source.path not in self._of_modules:
            self._of_modules[source.path] = list(self._nearby(source))
        return self._of_modules[source.path]

    def _of(self, node: Any, source: Source, name: str, depth: int) -> List[Initialiser]:
        key = (source.path, id(node), name)
        if key not in self._found:
            self._found[key] = []  # for functions that call themselves
            self._found[key] = self._all(node, source, name, depth)
        return self._found[key]

    def _all(self, node: Any, source: Source, name: str, depth: int) -> List[Initialiser]:
        names = list(parameters(node))
        if name not in names:
            return []
        found: List[Initialiser] = []
        weights = bool(_PARAMETERS.fullmatch(name.lower().strip("_")))
        nearby = [near for near in self._near(source) if is_named_so(near.__name__)]
        first = [n for n in names if n not in ("self", "cls")][:1]
        if weights or name in first:
            found += [Initialiser(f) for f in nearby if _are_named_alike(f.__name__, node.name)]
        if depth:
            at = names.index(name)
            for call, where in self._calls(node, source):
                argument = _argument(call, name, at)
                if argument is not None:
                    scope = Scope(where, where.around(call), call.lineno)
                    found += self._expression(argument, scope, depth - 1)
        if weights:
            found += [Initialiser(f) for f in nearby]
        else:
            found += [Initialiser(f) for f in nearby if name in f.__name__.split("_")[1:]]
        return list(dict.fromkeys(found))

    def passed(self, function: Any, name: str) -> Any:
        """Return what a caller passes for a parameter.

        Raises:
            Unknown: no caller passes anything that can be told.
        """
        place = self.sources.definition(function)
        names = list(parameters(place[0])) if place else []
        if place is None or name not in names:
            raise Unknown
        in_class = isinstance(next(iter(place[1].around(place[0])), None), ast.ClassDef)
        for call, where in self._calls(*place):
            argument = _argument(call, name, names.index(name) - in_class)
            if argument is not None:
                with contextlib.suppress(Unknown):
                    scope = Scope(where, where.around(call), call.lineno)
                    return self.evaluator.value(argument, scope)
        raise Unknown

    # Functions

    def _nearby(self, source: Source) -> Iterator[Any]:
        """Yield functions of a module, of those it imports, and of those that import it."""
        here = self.sources.module(source)
        if here is None:
            return
        yield from self._functions_of(here)
        imported = [thing for thing in vars(here).values() if isinstance(thing, types.ModuleType)]
        for name in dict.fromkeys(
            getattr(thing, "__module__", "") or "" for thing in list(vars(here).values())
        ):
            if name in sys.modules:
                imported.append(sys.modules[name])
        others = [module for module in list(sys.modules.values()) if self._is_ours(module)]
        users = [
            module
            for module in others
            if any(
                thing is here or getattr(thing, "__module__", None) == here.__name__
                for thing in list(vars(module).values())
            )
        ]
        package = here.__name__.rpartition(".")[0]
        beside = [m for m in others if m.__name__.rpartition(".")[0] == package]
        for module in dict.fromkeys([*filter(self._is_ours, imported), *users, *beside]):
            if module is not here:
                yield from self._functions_of(module)

    def _is_ours(self, module: Any) -> bool:
        file = getattr(module, "__file__", None)
        root = self.sources.root
        return (
            bool(root)
            and isinstance(file, str)
            and projects.real_path(file).startswith(root + os.sep)
        )

    @staticmethod
    def _functions_of(module: Any) -> List[Any]:
        """Return the functions that a module defines: initialisers of everything first."""
        found = [
            thing
            for thing in list(vars(module).values())
            if inspect.isfunction(thing) and thing.__module__ == module.__name__
        ]
        return sorted(found, key=lambda function: _rank(function.__name__))

    def _calls(self, node: Any, source: Source) -> Iterator[Tuple[ast.Call, Source]]:
        count = 0
        inner = any(isinstance(owner, Function) for owner in source.around(node))
        places = [source] if inner else self.sources.mentioning([node.name], source.path)
        for where in places:
            for call in where.calls(node.name):
                count += 1
                if count > _MOST_CALLS:
                    return
                yield call, where

    # Expressions

    def _expression(self, node: Any, scope: Scope, depth: int) -> List[Initialiser]:
        """Return what makes the value of an expression."""
        if isinstance(node, ast.Name):
            return self._name(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            return [made.below(node.attr) for made in self._expression(node.value, scope, depth)]
        if isinstance(node, ast.Subscript):
            key = key_of(node)
            step = ELEMENT if key is None else key
            return [made.below(step) for made in self._expression(node.value, scope, depth)]
        if isinstance(node, ast.Call):
            return self._call(node, scope, depth)
        return []

    def _call(self, node: ast.Call, scope: Scope, depth: int) -> List[Initialiser]:
        name = str(getattr(node.func, "attr", None) or getattr(node.func, "id", ""))
        if name in ("tree_map", "map") and len(node.args) > 1:
            return self._expression(node.args[1], scope, depth)
        if _SAME.fullmatch(name) and node.args:
            return self._expression(node.args[0], scope, depth)
        try:
            function = self.evaluator.value(node.func, scope)
        except Unknown:
            return []
        ours = inspect.isfunction(function) and self._is_ours(sys.modules.get(function.__module__))
        return [Initialiser(function)] if ours and is_named_so(name) else []

    def _name(self, name: str, scope: Scope, depth: int) -> List[Initialiser]:
        owners: Sequence[Any] = scope.around
        for level, owner in enumerate(owners):
            if isinstance(owner, ast.ClassDef):
                continue
            inner = scope._replace(around=scope.around[level:])
            bound = binding(owner, name, scope.line if level == 0 else float("inf"))
            if bound is not None:
                expression, steps = bound
                if getattr(expression, "id", None) != name or steps:
                    found = self._expression(
                        expression, inner._replace(line=expression.lineno), depth
                    )
                    return [made.below(*steps) for made in found]
            if name in parameters(owner):
                if isinstance(owner, ast.Lambda):
                    return self._of_lambda(owner, name, inner, depth)
                return self._of(owner, scope.source, name, depth)
        return []

    def _of_lambda(
        self, node: ast.Lambda, name: str, scope: Scope, depth: int
    ) -> List[Initialiser]:
        """Return what is passed to a lambda where it is called: `run = remat(lambda p, x: ...)`."""
        at = list(parameters(node)).index(name)
        outside = scope._replace(around=scope.around[1:])
        for body in [*outside.around[:1], scope.source.tree]:
            for call in ast.walk(body):
                if not isinstance(call, ast.Call) or at >= len(call.args):
                    continue
                mapped = getattr(getattr(call.func, "func", None), "attr", "") == "vmap"
                if _holds(call.func, node) or _holds(_assigned_to(body, call.func), node):
                    found = self._expression(call.args[at], outside, depth)
                    return [made.below(ELEMENT) for made in found] if mapped else found
        return []


def is_named_so(name: str) -> bool:
    """Return whether a function's name says that it makes parameters or a state."""
    name = name.lower().strip("_")
    return bool(_INITIALISER.fullmatch(name) or _MAKER.fullmatch(name))


def _rank(name: str) -> Tuple[bool, bool]:
    """Order initialisers: of all parameters, of some, others."""
    plain = name.lower().strip("_")
    whole = plain in ("init", "initialize", "initialise") or bool(
        re.fullmatch(r"(\w+_)?(params|parameters|weights|variables|model|network)", plain)
    )
    return not whole, not _INITIALISER.fullmatch(plain)


def _are_named_alike(initialiser: str, name: str) -> bool:
    """Return whether an initialiser is of one layer: `init_lstm` of `lstm_step`."""
    words = set(re.split("_+", initialiser.lower())) - {
        "init",
        "params",
        "create",
        "make",
        "get",
        "",
    }
    others = set(re.split("_+", name.lower())) - {"params", ""}
    return any(
        word == other or (min(len(word), len(other)) >= 4 and other.startswith(word[:4]))
        for word in words
        for other in others
    )


def _argument(call: ast.Call, name: str, at: int) -> Optional[ast.expr]:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    starred = any(isinstance(argument, ast.Starred) for argument in call.args[: at + 1])
    return call.args[at] if 0 <= at < len(call.args) and not starred else None


def _holds(expression: Any, part: ast.AST) -> bool:
    return expression is not None and any(node is part for node in ast.walk(expression))


def _assigned_to(body: Any, function: ast.AST) -> Optional[ast.expr]:
    """Return what was assigned to the name that is called."""
    name = getattr(function, "id", None)
    for node in ast.walk(body) if name else ():
        if isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == [
            name
        ]:
            return node.value
    return None
