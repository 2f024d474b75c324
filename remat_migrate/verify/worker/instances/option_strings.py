"""Find the strings that the code of a unit compares an option with: `cfg.pool == "token"`.

An option is an attribute, a string key, or a parameter. What is passed on as an argument, or kept
as an attribute, has the options of what it becomes. Nothing is run.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from ..environment import missing
from ..lookup import attribute, unwrapped
from .sources import key_of

# Of a dictionary in which an option is looked up.
_MOST_KEYS = 8
_LONGEST = 40

# Of a module of activations or reductions: `getattr(jax.nn, name)`; of the policies of checkpoints.
_FUNCTIONS = ["relu", "gelu", "tanh", "sin", "mean", "sum", "max"]
_FUNCTIONS += ["nothing_saveable", "dots_saveable"]

# A string that no code knows, for the branch of all others.
OTHER = "other"

# An attribute or key is ("", its name), a parameter or local variable (its function, its name).
_Option = Tuple[Any, str]


def options_read(functions: List[Any]) -> Dict[str, List[str]]:
    """Return the strings that some functions compare an attribute, key, or parameter with.

    For the branch of all others, `OTHER` is one of them. Those of parameters that have the name
    of an attribute are among those of the attribute.
    """
    found = _Options()
    for function in functions:
        found.read(function)
    return found.by_name()


def passed_on(unit: Any, name: str, options: Dict[str, List[str]]) -> Dict[str, List[Any]]:
    """Return other values of the flags and options that a function passes on as `**name`."""
    function = unwrapped(unit)
    tree = _tree(function)
    found: Dict[str, List[Any]] = {}
    if tree is None or not inspect.isfunction(function):
        return found
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        keywords = [(keyword.arg, getattr(keyword.value, "id", "")) for keyword in node.keywords]
        callee = _Scope(function).value(node.func)
        if (None, name) not in keywords or callee is None:
            continue
        given = {keyword for keyword, _ in keywords}
        for parameter in list(_parameters(callee).values())[len(node.args) :]:
            default = parameter.default
            if parameter.name in given:
                continue
            if type(default) is bool:
                found[parameter.name] = [not default]
            elif type(default) is str:
                texts = [text for text in options.get(parameter.name, ()) if text != OTHER]
                found[parameter.name] = [text for text in texts if text != default]
    return {option: values for option, values in found.items() if values}


def _parameters(callee: Any) -> Dict[str, inspect.Parameter]:
    if isinstance(callee, missing.Missing):
        return {}
    try:
        return dict(inspect.signature(callee).parameters)
    except (TypeError, ValueError):
        return {}


class _Options:
    def __init__(self) -> None:
        self._strings: Dict[_Option, List[str]] = {}
        self._becomes: Dict[_Option, Set[_Option]] = {}

    def read(self, function: Any) -> None:
        """Note what one function compares and passes on."""
        tree = _tree(function)
        if tree is None:
            return
        scope = _Scope(function)
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                self._compared(node, scope)
            elif isinstance(node, ast.Subscript):
                keys = scope.value(node.value)
                if isinstance(keys, dict) and len(keys) <= _MOST_KEYS:
                    self._note(scope.option(node.slice), [k for k in keys if type(k) is str])
            elif isinstance(node, ast.Call):
                self._passed(node, scope)
            elif isinstance(node, ast.Assign):
                self._assigned(node.targets, node.value, scope)
            elif type(node).__name__ == "Match":
                self._matched(node, scope)

    def by_name(self) -> Dict[str, List[str]]:
        """Return the strings by the names of the options."""
        found: Dict[str, List[str]] = {}
        for option in [*self._strings, *self._becomes]:
            if option[0] not in ("", None):  # what an unknown function takes
                self._link((None, option[1]), option)
        for option in {*self._strings, *self._becomes}:
            texts = found.setdefault(option[1], [])
            texts += [text for text in self._all(option) if text not in texts]
        return {
            name: sorted(texts, key=lambda text: (text == OTHER, text))
            for name, texts in found.items()
            if texts
        }

    def _all(self, option: _Option) -> Set[str]:
        texts: Set[str] = set()
        waiting, seen = [option], {option}
        while waiting:
            one = waiting.pop()
            texts.update(self._strings.get(one, ()))
            fresh = self._becomes.get(one, set()) - seen
            seen |= fresh
            waiting += fresh
        return texts

    def _note(self, option: Optional[_Option], texts: List[str], others: bool = False) -> None:
        texts = [text for text in texts if 0 < len(text) <= _LONGEST]
        if option is not None and texts:
            self._strings.setdefault(option, []).extend(texts + [OTHER] * others)

    def _link(self, source: Optional[_Option], target: Optional[_Option]) -> None:
        if source is not None and target is not None and source != target:
            self._becomes.setdefault(source, set()).add(target)

    def _compared(self, node: ast.Compare, scope: "_Scope") -> None:
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:]):
            if isinstance(operator, (ast.Eq, ast.NotEq)):
                self._note(scope.option(left), _texts(right), True)
                self._note(scope.option(right), _texts(left), True)
            elif isinstance(operator, (ast.In, ast.NotIn)):
                self._note(scope.option(left), _texts(right), True)

    def _matched(self, node: Any, scope: "_Scope") -> None:
        patterns = [pattern for case in node.cases for pattern in ast.walk(case.pattern)]
        values = [getattr(pattern, "value", None) for pattern in patterns]
        self._note(scope.option(node.subject), [t for v in values if v for t in _texts(v)], True)

    def _assigned(self, targets: List[ast.expr], value: ast.expr, scope: "_Scope") -> None:
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                for one, other in zip(target.elts, value.elts):
                    self._link(scope.option(other), scope.option(one))
            else:
                for one in _either(value):
                    self._link(scope.option(one), scope.option(target))

    def _passed(self, node: ast.Call, scope: "_Scope") -> None:
        if getattr(node.func, "id", None) == "getattr" and len(node.args) > 1:
            module = scope.value(node.args[0])
            functions = [text for text in _FUNCTIONS if callable(getattr(module, text, None))]
            self._note(scope.option(node.args[1]), functions)
        callee = scope.value(node.func)
        function: Any = callee.__init__ if inspect.isclass(callee) else callee
        parameters = list(_parameters(callee))
        pairs = list(zip(parameters, node.args))
        pairs += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
        code = attribute(unwrapped(function), "__code__")
        if code is None:  # of a layer, as a rule: its parameters may have the same names
            pairs += [(getattr(argument, "id", ""), argument) for argument in node.args]
        for name, argument in [(name, one) for name, each in pairs for one in _either(each)]:
            self._link(scope.option(argument), (code, name))
            if inspect.isclass(callee):  # of a dataclass or a Flax module
                self._link(scope.option(argument), ("", name))


class _Scope:
    """The names of a function."""

    def __init__(self, function: Any) -> None:
        self._code = function.__code__
        self._globals = function.__globals__

    def option(self, node: ast.AST) -> Optional[_Option]:
        """Return the option that an expression is."""
        if isinstance(node, ast.Attribute):
            return "", node.attr
        if isinstance(node, ast.Name):
            return self._code, node.id
        if isinstance(node, ast.Subscript):
            key = key_of(node)
            return ("", key) if isinstance(key, str) else None
        return None

    def value(self, node: ast.AST) -> Any:
        """Return the global that an expression names, or None."""
        if isinstance(node, ast.Name):
            return self._globals.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            return getattr(owner, node.attr, None) if inspect.ismodule(owner) else None
        return None


def _either(node: ast.expr) -> List[ast.expr]:
    """Return the expressions of which a value is one: `a if c else b`, `a or b`."""
    if isinstance(node, ast.IfExp):
        return [*_either(node.body), *_either(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [part for each in node.values for part in _either(each)]
    return [node]


def _tree(function: Callable[..., Any]) -> Optional[ast.AST]:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


def _texts(node: Any) -> List[str]:
    return list(_strings(node))


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for part in node.elts:
            yield from _strings(part)
    elif isinstance(getattr(node, "value", None), str) and not hasattr(node, "attr"):
        yield node.value
