"""Evaluate expressions of a project's source that need no run.

A name is what the function around it assigned to it last, or what its module holds. Nothing is
called but constructors of configurations and of Flax modules.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import Any, Dict, Set

from ..frameworks import flax_modules
from .bindings import binding, first_of
from .sources import Scope, Sources, parameters

_DEEPEST = 24


class Unknown(Exception):
    """The value of an expression depends on something that only a run can tell."""


class Evaluator:
    """Evaluates expressions.

    Args:
        sources: the project.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._active: Set[Any] = set()

    def value(self, node: Any, scope: Scope) -> Any:
        """Return the value of an expression.

        Raises:
            Unknown: it has none that can be told.
        """
        key = (scope.source.path, id(node))
        if key in self._active or len(self._active) > _DEEPEST:
            raise Unknown
        self._active.add(key)
        try:
            return self._value(node, scope._replace(line=getattr(node, "lineno", scope.line)))
        except Unknown:
            raise
        except Exception as error:  # the project's code, on values that it may never have
            raise Unknown from error
        finally:
            self._active.discard(key)

    def _value(self, node: Any, scope: Scope) -> Any:
        if isinstance(node, ast.Name):
            return self._name(node.id, scope)
        if isinstance(node, ast.Attribute):
            return getattr(self.value(node.value, scope), node.attr)
        if isinstance(node, ast.Call):
            return self._call(node, scope)
        if isinstance(node, (ast.Tuple, ast.List)):
            parts = [self.value(part, scope) for part in node.elts]
            return tuple(parts) if isinstance(node, ast.Tuple) else parts
        if isinstance(node, ast.Dict):
            keys = [self.value(key, scope) for key in node.keys]
            return dict(zip(keys, [self.value(part, scope) for part in node.values]))
        return ast.literal_eval(node)

    def _name(self, name: str, scope: Scope) -> Any:
        for level, owner in enumerate(scope.around):
            if isinstance(owner, ast.ClassDef):
                continue
            bound = binding(owner, name, scope.line if level == 0 else float("inf"))
            if bound is not None:
                inner = scope._replace(around=scope.around[level:])
                return first_of(self.value(bound[0], inner), bound[1])
            if name in parameters(owner):
                raise Unknown
        held = vars(self.sources.module(scope.source))
        if name not in held:
            raise Unknown
        return held[name]

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        function = self.value(node.func, scope)
        made = is_settings(function) or flax_modules.is_module_class(function)
        if not made and function is not functools.partial:
            raise Unknown
        args = [self.value(part, scope) for part in node.args]
        kwargs: Dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            kwargs.update(value if keyword.arg is None else {keyword.arg: value})
        return function(*args, **kwargs)


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
