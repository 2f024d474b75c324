"""Evaluate expressions of a project's source outside of the function they stand in.

A name is what the function assigned to it last, a parameter is an instance of its annotation's
class, its default, or what a caller passes. Calls are limited to constructors of configurations and
functions that return some.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import operator
import os
import re
import sys
import types
from typing import Any, Callable, Dict, Iterator, Optional, Set

from ..frameworks import flax_modules
from ..lookup import attribute
from .bindings import assigned, first_of, looped, statements
from .sources import Scope, Source, Sources, parameters

_DEEPEST = 24
_MOST_STEPS = 20000
_MOST_CALLERS = 4
_PURE = "int float str bool len range tuple list dict set max min abs round sum sorted zip"
_PURE_BUILTINS = {getattr(builtins, name) for name in _PURE.split()}
_MAKES_SETTINGS = re.compile(
    r"config|cfg|preset|hparam|hyperparam|settings|options|variant|dtype", re.IGNORECASE
)
_METHODS = re.compile(
    r"clone|copy|copy_and_resolve_references|default_config|format|get|items|keys|lower|model_copy"
    r"|replace|set|split|strip|to_dict|update|upper|values"
)
_REMOTE = re.compile(r"from_pretrained|load_|download|restore|open|read", re.IGNORECASE)
_OPERATORS: Dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda part, whole: part in whole,
    ast.NotIn: lambda part, whole: part not in whole,
    ast.BitOr: operator.or_,
}


class Unknown(Exception):
    """The value of an expression depends on something that only a run can tell."""


class Self:
    """The instance in a method, of which only the fields are known."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope


class Evaluator:
    """Evaluates expressions.

    Args:
        sources: the project.
        instance_of: returns an instance of a class of configurations, or raises `Unknown`.
    """

    def __init__(self, sources: Sources, instance_of: Callable[[Any], Any]) -> None:
        self.sources = sources
        self._instance_of = instance_of
        # Returns settings for a parameter of a function in the source by what is read of it.
        self.settings_for: Optional[Callable[[Any, Source, str], Any]] = None
        self._active: Set[Any] = set()
        self._failed: Set[str] = set()  # modules that cannot be imported
        self._steps = 0

    def value(self, node: Any, scope: Scope) -> Any:
        """Return the value of an expression.

        Raises:
            Unknown: it has none that can be told.
        """
        key = (scope.source.path, id(node))
        self._steps += 1
        if not self._active:
            self._steps = 0
        if key in self._active or len(self._active) > _DEEPEST or self._steps > _MOST_STEPS:
            raise Unknown
        handle = getattr(self, "_" + type(node).__name__, None)
        if handle is None:
            raise Unknown
        self._active.add(key)
        try:
            return handle(node, scope._replace(line=getattr(node, "lineno", scope.line)))
        except (Unknown, RecursionError):
            raise Unknown from None
        except Exception as error:  # the project's code, on values that it may never have
            raise Unknown from error
        finally:
            self._active.discard(key)

    # Kinds of expressions

    def _Constant(self, node: Any, scope: Scope) -> Any:
        return node.value

    def _Tuple(self, node: Any, scope: Scope) -> Any:
        return tuple(self._List(node, scope))

    def _List(self, node: Any, scope: Scope) -> Any:
        return [self.value(part, scope) for part in node.elts]

    def _Dict(self, node: Any, scope: Scope) -> Any:
        found: Dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                found.update(self.value(value, scope))
            else:
                found[self.value(key, scope)] = self.value(value, scope)
        return found

    def _UnaryOp(self, node: Any, scope: Scope) -> Any:
        return self._operator(node.op)(self.value(node.operand, scope))

    def _BinOp(self, node: Any, scope: Scope) -> Any:
        return self._operator(node.op)(self.value(node.left, scope), self.value(node.right, scope))

    def _BoolOp(self, node: Any, scope: Scope) -> Any:
        wanted = isinstance(node.op, ast.Or)
        found = None
        for part in node.values:
            found = self.value(part, scope)
            if bool(found) is wanted:
                break
        return found

    def _Compare(self, node: Any, scope: Scope) -> Any:
        left = self.value(node.left, scope)
        for operation, part in zip(node.ops, node.comparators):
            right = self.value(part, scope)
            if not self._operator(operation)(left, right):
                return False
            left = right
        return True

    def _IfExp(self, node: Any, scope: Scope) -> Any:
        try:
            chosen = node.body if self.value(node.test, scope) else node.orelse
        except Unknown:
            chosen = node.body
        return self.value(chosen, scope)

    def _Subscript(self, node: Any, scope: Scope) -> Any:
        index = node.slice
        index = index.value if type(index).__name__ == "Index" else index
        return self.value(node.value, scope)[self.value(index, scope)]

    def _Attribute(self, node: Any, scope: Scope) -> Any:
        owner = self.value(node.value, scope)
        if isinstance(owner, Self):
            return self.field(owner.scope, node.attr)
        return getattr(owner, node.attr)

    def _Name(self, node: Any, scope: Scope) -> Any:
        for depth, owner in enumerate(scope.around):
            inner = scope._replace(around=scope.around[depth:])
            if isinstance(owner, ast.ClassDef):
                continue
            found = assigned(owner, node.id, scope.line if depth == 0 else float("inf"))
            for value in found:
                return self.value(value, inner)
            bound = looped(owner, node.id, scope.line if depth == 0 else float("inf"))
            if bound is not None:
                return first_of(self.value(bound[0], inner), bound[1])
            parameter = parameters(owner).get(node.id)
            if parameter is not None:
                return self.parameter(owner, parameter, inner)
        return self._global(scope.source, node.id)

    def _Call(self, node: Any, scope: Scope) -> Any:
        function = self.value(node.func, scope)
        if not self._may_call(function):
            raise Unknown
        args = [self.value(part, scope) for part in node.args]
        kwargs: Dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            kwargs.update(value if keyword.arg is None else {keyword.arg: value})
        return function(*args, **kwargs)

    @staticmethod
    def _operator(node: Any) -> Callable[..., Any]:
        if type(node) not in _OPERATORS:
            raise Unknown
        return _OPERATORS[type(node)]

    def _may_call(self, function: Any) -> bool:
        if function is functools.partial or function in _PURE_BUILTINS:
            return True
        name = attribute(function, "__name__", "")
        if _REMOTE.match(name):
            return False
        if isinstance(function, type):
            return is_settings(function) or flax_modules.is_module_class(function)
        owner = attribute(function, "__self__")
        if owner is not None and not isinstance(owner, types.ModuleType):
            cls = owner if isinstance(owner, type) else type(owner)
            return (
                bool(_METHODS.fullmatch(name))
                or is_settings(cls)
                or bool(_MAKES_SETTINGS.search(name))
            )
        return isinstance(function, types.FunctionType) and bool(_MAKES_SETTINGS.search(name))

    # Names

    def parameter(self, function: Any, parameter: ast.arg, scope: Scope) -> Any:
        """Return a value for a parameter of a function in the source."""
        cls = scope.around[1] if len(scope.around) > 1 else None
        every = list(parameters(function))
        if isinstance(cls, ast.ClassDef) and every and every[0] == parameter.arg:
            decorators = [getattr(d, "id", "") for d in getattr(function, "decorator_list", ())]
            if "staticmethod" not in decorators:
                inside = scope._replace(around=scope.around[1:])
                return self._class_itself(inside) if "classmethod" in decorators else Self(inside)
        outside = scope._replace(around=scope.around[1:])
        if parameter.annotation is not None:
            try:
                return self._instance_of(self.annotation(parameter.annotation, outside))
            except Unknown:
                pass  # an annotation of another kind
        default = _default(function, parameter.arg)
        if default is not None and getattr(default, "value", 0) is not None:
            return self.value(default, outside)
        method = getattr(function, "name", "") in ("__init__", "setup")
        name = cls.name if isinstance(cls, ast.ClassDef) and method else function.name
        skip = 1 if isinstance(cls, ast.ClassDef) else 0
        at = every.index(parameter.arg) - skip
        try:
            return self.passed(name, parameter.arg, at, scope.source.path, default, outside)
        except Unknown:
            if self.settings_for is None or isinstance(function, ast.Lambda):
                raise
            return self.settings_for(function, scope.source, parameter.arg)

    def passed(
        self, callee: str, name: str, at: int, near: str, default: Any = None, scope: Any = None
    ) -> Any:
        """Return what a caller of a function or class passes for a parameter."""
        callers = 0
        for source in self.sources.mentioning([callee], near):
            for call in source.calls(callee):
                given = {keyword.arg: keyword.value for keyword in call.keywords}
                argument = given.get(name)
                if argument is None and 0 <= at < len(call.args):
                    argument = call.args[at]
                if argument is None or isinstance(argument, ast.Starred):
                    continue
                callers += 1
                if callers > _MOST_CALLERS:
                    raise Unknown
                try:
                    return self.value(argument, Scope(source, source.around(call), call.lineno))
                except Unknown:
                    continue
        if default is not None:
            return self.value(default, scope)
        raise Unknown

    def field(self, scope: Scope, name: str) -> Any:
        """Return the value of a field of the instance in the methods of a class."""
        cls = scope.around[0]
        assert isinstance(cls, ast.ClassDef)
        position = -1
        for statement in cls.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                position += 1
                if statement.target.id == name:
                    return self._annotated_field(cls, statement, position, scope)
            if isinstance(statement, ast.Assign) and name in [
                getattr(target, "id", None) for target in statement.targets
            ]:
                return self.value(statement.value, scope)
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "setup"):
                for value in assigned(method, name, float("inf"), True):
                    return self.value(value, scope._replace(around=(method, *scope.around)))
        base = self._class_itself(scope)
        if hasattr(base, name) and not callable(getattr(base, name)):
            return getattr(base, name)
        raise Unknown

    def _annotated_field(self, cls: Any, statement: Any, at: int, scope: Scope) -> Any:
        try:
            return self._instance_of(self.annotation(statement.annotation, scope))
        except Unknown:
            if statement.value is not None:
                return self.value(statement.value, scope)
        return self.passed(cls.name, statement.target.id, at, scope.source.path)

    def _class_itself(self, scope: Scope) -> Any:
        found = self.sources.module(scope.source)
        for owner in reversed(scope.around):
            found = getattr(found, getattr(owner, "name", ""), None)
        if not isinstance(found, type):
            raise Unknown
        return found

    def annotation(self, node: Any, scope: Scope) -> Any:
        """Return what an annotation in the source evaluates to, a class or a string of a name."""
        if isinstance(getattr(node, "value", None), str):
            node = ast.parse(node.value, mode="eval").body
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "Optional":
            index = node.slice
            return self.annotation(getattr(index, "value", index), scope)
        if isinstance(node, ast.BinOp):
            return self.annotation(node.left, scope)
        found = self.value(node, scope._replace(around=()))
        if not isinstance(found, type):
            raise Unknown
        return found

    def _global(self, source: Source, name: str) -> Any:
        module = self.sources.module(source)
        if module is not None and hasattr(module, name):
            return getattr(module, name)
        for statement in statements(source.tree.body):
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                for alias in statement.names:
                    if name == (alias.asname or alias.name.partition(".")[0]):
                        return self._import(source, statement, alias)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                targets = getattr(statement, "targets", None) or [statement.target]  # type: ignore
                if name in [getattr(target, "id", None) for target in targets]:
                    return self.value(statement.value, Scope(source, (), statement.lineno))
            elif getattr(statement, "name", None) == name:
                return getattr(self.sources.module(source, load=True), name)
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise Unknown

    def _import(self, source: Source, statement: Any, alias: ast.alias) -> Any:
        if isinstance(statement, ast.Import):
            full = alias.name if alias.asname else alias.name.partition(".")[0]
            return self._module(full)
        package = statement.module or ""
        if statement.level:
            for module in self._packages(source, statement.level):
                package = ".".join(part for part in (module, statement.module) if part)
        try:
            return getattr(self._module(package), alias.name)
        except AttributeError:
            return self._module(package + "." + alias.name)

    def _packages(self, source: Source, level: int) -> Iterator[str]:
        """Yield the package that a relative import starts from."""
        for folder in sys.path:
            folder = os.path.realpath(folder or ".")
            if source.path.startswith(folder + os.sep):
                parts = os.path.relpath(source.path, folder).split(os.sep)[:-level]
                yield ".".join(parts)
                return

    def _module(self, name: str) -> Any:
        if name in sys.modules:
            return sys.modules[name]
        top = name.partition(".")[0]
        path = os.sep + top
        files = self.sources.texts()
        if not any(path + os.sep in file or file.endswith(path + ".py") for file in files):
            raise Unknown  # neither imported by the unit nor part of the project
        if name in self._failed:
            raise Unknown
        self._failed.add(name)
        found = importlib.import_module(name)
        self._failed.discard(name)
        return found


def is_settings(cls: Any) -> bool:
    """Return whether a class appears to hold settings rather than arrays or layers."""
    if not isinstance(cls, type) or (cls.__module__ or "") in ("builtins", "typing", "enum"):
        return False
    if flax_modules.is_module_class(cls) or any(b.__name__ == "Module" for b in cls.__mro__):
        return False
    texts = [str(a) for b in cls.__mro__ for a in getattr(b, "__annotations__", {}).values()]
    if any(re.search(r"Array|ndarray|Tensor|PyTree|Tracer", text) for text in texts):
        return False
    known = ("__dataclass_fields__", "__attrs_attrs__", "model_fields", "_fields")
    if any(hasattr(cls, attribute) for attribute in known):
        return True
    named = r"(Config(uration|Dict)?|Args|Arguments|H(yper)?[pP]aram(eter)?s|Options|Settings|Cfg)$"
    return any(re.search(named, base.__name__) for base in cls.__mro__)


def _default(function: Any, name: str) -> Optional[ast.expr]:
    arguments = function.args
    positional = [*getattr(arguments, "posonlyargs", ()), *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = list(zip(positional, defaults)) + list(zip(arguments.kwonlyargs, arguments.kw_defaults))
    return next((default for argument, default in pairs if argument.arg == name), None)
