"""How a function's code uses its parameters, and what it reads from them, by their names.

An entry `params["w"]` or an attribute `cfg.pool` is known by its last name.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from ..lookup import attribute, unwrapped

_ARGUMENT_ITERATED = {"zip", "enumerate", "reversed", "len", "list", "sorted", "sum"}
_ARGUMENT_CALLED = {"checkpoint", "remat", "filter_checkpoint", "jit", "grad", "value_and_grad"}
_ARGUMENT_CALLED |= {"vmap", "pmap", "vjp", "jvp", "linearize", "scan", "partial", "custom_vjp"}
_LOOKED_UP = {"get", "pop"}
_NOT_FIELDS = {"get", "to_dict", "replace", "items", "keys", "values", "copy", "update"}
_NOT_FIELDS |= {"_replace", "_asdict"}

Constant = (str, int, float)


@dataclass
class Use:
    """How a name is used.

    Attributes:
        keys: strings that it is subscripted with.
        asked: strings that it may lack: `name.get("k")`, `"k" in name`.
        attributes: what is read of it.
        called: how many positional arguments and which names it is called with, if it is.
        compared: constants that it is compared with, or looked up among.
        is_tested: its truth matters.
        is_iterated: its elements are read.
    """

    keys: List[str] = field(default_factory=list)
    asked: List[str] = field(default_factory=list)
    attributes: Set[str] = field(default_factory=set)
    called: Optional[Tuple[int, Tuple[str, ...]]] = None
    compared: List[Any] = field(default_factory=list)
    is_tested: bool = False
    is_iterated: bool = False

    @property
    def fields(self) -> Set[str]:
        """What is read of it: attributes, and keys."""
        return (self.attributes | set(self.keys)) - _NOT_FIELDS

    @property
    def says_much(self) -> bool:
        """Whether it tells more than that the name is passed on."""
        structured = self.keys or self.asked or self.attributes or self.called or self.is_iterated
        return bool(structured or self.compared or self.is_tested)

    def add(self, other: "Use") -> None:
        """Include another use of the same name."""
        self.keys += other.keys
        self.asked += other.asked
        self.attributes |= other.attributes
        self.called = self.called or other.called
        self.compared += other.compared
        self.is_tested |= other.is_tested
        self.is_iterated |= other.is_iterated


def of_all(functions: Iterable[Callable[..., Any]]) -> Dict[str, Use]:
    """Return how several functions use the names in them."""
    found: Dict[str, Use] = {}
    for function in functions:
        for name, use in of_function(function).items():
            found.setdefault(name, Use()).add(use)
    return found


def of_parameter(function: Callable[..., Any], name: str) -> Use:
    """Return how a function uses one of its parameters."""
    return of_function(function).get(name, Use())


def of_function(function: Callable[..., Any]) -> Dict[str, Use]:
    """Return how a function uses the names in it; nothing if its source is not available."""
    inner = unwrapped(function)
    return _read(inner) if inspect.isroutine(inner) else {}


@functools.lru_cache(maxsize=None)
def _read(function: Callable[..., Any]) -> Dict[str, Use]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return {}
    code = attribute(function, "__code__")
    reader = _Reader(attribute(function, "__globals__", {}), _local(code) if code else set())
    reader.visit(tree)
    return reader.uses


def _local(code: CodeType) -> Set[str]:
    """Return the local names of a function and of those inside it."""
    found = {*code.co_varnames, *code.co_freevars, *code.co_cellvars}
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found.union(*map(_local, inner))


class _Reader(ast.NodeVisitor):
    def __init__(self, scope: Dict[str, Any], local: Set[str]) -> None:
        self._scope = scope
        self._local = local
        self.uses: Dict[str, Use] = {}

    def _use(self, expression: Any) -> Use:
        """Return the use of the last name in an expression that reads a local variable."""
        if isinstance(expression, ast.BoolOp):  # `name or {}`
            return self._use(expression.values[0])
        root: Any = expression
        while isinstance(root, (ast.Attribute, ast.Subscript)) or _key_asked(root):
            root = getattr(root, "func", root).value
        name = _name(expression) if self._is_local(root) else ""
        return self.uses.setdefault(name, Use()) if name else Use()

    def _is_local(self, expression: Any) -> bool:
        return isinstance(expression, ast.Name) and expression.id in self._local

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._use(node.value).attributes.add(node.attr)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        key = _constant(node.slice)
        if type(key) is str:
            self._use(node.value).keys.append(key)
        elif type(key) is int:
            self._use(node.value).is_iterated = True
        self._use(node.slice).compared += self._entries(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        named = tuple(keyword.arg for keyword in node.keywords if keyword.arg)
        self._use(node.func).called = len(node.args), named
        callee = "" if self._is_local(node.func) else _name(node.func)
        for argument in node.args[:1]:
            if callee in _ARGUMENT_CALLED and not isinstance(argument, ast.Call):
                use = self._use(argument)
                use.called = use.called or (0, ())
            elif callee in _LOOKED_UP and isinstance(node.func, ast.Attribute):
                if key := _key_asked(node):
                    use = self._use(node.func.value)
                    must_have = node.func.attr == "pop" and len(node.args) == 1
                    (use.keys if must_have else use.asked).append(key)
                self._use(argument).compared += self._entries(node.func.value)
        if callee == "dict":
            for argument in node.args:
                self._use(argument).attributes.add("items")
            self._merged([*node.args, *(k.value for k in node.keywords if not k.arg)])
        if callee in _ARGUMENT_ITERATED:
            for argument in node.args:
                self._use(argument).is_iterated = True
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        self._merged([value for key, value in zip(node.keys, node.values) if key is None])
        self.generic_visit(node)

    def _merged(self, parts: List[ast.expr]) -> None:
        """Note that a dictionary may have the keys of those that it is merged with."""
        for part in parts:
            others = [self._entries(other) for other in parts if other is not part]
            self._use(part).asked += [key for entries in others for key in entries]

    def visit_Compare(self, node: ast.Compare) -> None:
        parts = [node.left, *node.comparators]
        for left, operator, right in zip(parts, node.ops, parts[1:]):
            if isinstance(operator, (ast.In, ast.NotIn)):
                if type(key := _constant(left)) is str:
                    self._use(right).asked.append(key)
                self._use(left).compared += self._entries(right)
            else:
                for one, other in ((left, right), (right, left)):
                    if isinstance(constant := _constant(other), Constant):
                        self._use(one).compared.append(constant)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
        values = [_constant(part.value) for part in patterns if isinstance(part, ast.MatchValue)]
        self._use(node.subject).compared += [v for v in values if isinstance(v, Constant)]
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.targets[0], (ast.Tuple, ast.List)):
            self._use(node.value).is_iterated = True
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._use(node.iter).is_iterated = True
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._use(node.iter).is_iterated = True
        for test in node.ifs:
            self._use(test).is_tested = True
        self.generic_visit(node)

    def _tested(self, node: Any) -> None:
        waiting = [node.test]
        for test in waiting:
            waiting += test.values if isinstance(test, ast.BoolOp) else []
            self._use(test).is_tested = True
        self.generic_visit(node)

    visit_If = visit_IfExp = visit_While = visit_Assert = _tested

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._use(node.operand).is_tested = True
        self.generic_visit(node)

    def _entries(self, node: Any) -> List[Any]:
        """Return the constants in a list, or the keys of a dictionary, that an expression is."""
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            found = [_constant(part) for part in node.elts]
        elif isinstance(node, ast.Dict):
            found = [_constant(key) for key in node.keys]
        else:
            held = self._value(node)
            found = list(held) if isinstance(held, (dict, tuple, list, set, frozenset)) else []
        return [one for one in found if type(one) is str]

    def _value(self, node: Any) -> Any:
        """Return the value of a global variable, or of a part of it; None for others."""
        if isinstance(node, ast.Name):
            return None if node.id in self._local else self._scope.get(node.id)
        if isinstance(node, ast.Attribute):
            return attribute(self._value(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            held, key = self._value(node.value), _constant(node.slice)
            return held.get(key) if type(held) is dict and key is not None else None
        return None


def _name(expression: Any) -> str:
    """Return the last name in an expression that reads something; empty for others."""
    if isinstance(expression, ast.Name):
        return expression.id
    if isinstance(expression, ast.Attribute):
        return expression.attr
    if isinstance(expression, ast.Subscript):
        key = _constant(expression.slice)
        return key if type(key) is str else ""
    return _key_asked(expression)


def _key_asked(expression: Any) -> str:
    """Return the key in `name.get("key")`; empty for other expressions."""
    if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Attribute):
        return ""
    key = _constant(expression.args[0]) if expression.args else None
    return key if expression.func.attr in _LOOKED_UP and type(key) is str else ""


def _constant(expression: Any) -> Any:
    return expression.value if isinstance(expression, ast.Constant) else None
