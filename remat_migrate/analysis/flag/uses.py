"""The ways Python code sets and reads the flag, and how each is removed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...codemod.tree.reductions import Reduction, is_pure
from ...formats.setting import read_bool
from ..names.mentions import last_name
from .folding import TRUE_TEXT, Known
from .names import SETTING, Names

# The effect of a use on current JAX: `update` and `read` raise AttributeError, `option` ends the
# program; `attribute`, `environment`, and `environment-read` have no effect.
Form = Literal["update", "read", "exists", "attribute", "environment", "environment-read", "option"]


@dataclass(frozen=True, slots=True)
class FlagUse:
    """One use of the flag.

    Attributes:
        node: the expression, keyword, or statement to report.
        form: what it does.
        asked: the value it sets the flag to, if that is a literal.
        change: its removal; empty for a read to be folded, and if `reason` says why it stays.
        reason: why it stays; "" if it is removed.
        sure: whether it certainly is this flag.
        known: for a read, the expression and what it reads as.
    """

    node: ast.expr | ast.keyword | ast.stmt
    form: Form
    asked: bool | None = None
    change: Reduction = field(default_factory=Reduction)
    reason: str = ""
    sure: bool = True
    known: tuple[ast.expr, Known] | None = None


SIDE_EFFECTS = "evaluating the value may have side effects: keep them by hand"
_UNSEEN = "this may not be jax.config"
_READS = frozenset({"read", "_read", "bool_env"})
_ENVIRONMENT_READS = frozenset({"get", "pop", "setdefault", "__getitem__", "getenv"})
_ENVIRONMENT_WRITES = frozenset(
    {"pop", "setdefault", "__setitem__", "__delitem__", "putenv", "unsetenv"}
)


class Forms:
    """Recognises calls, attributes, subscripts, and comparisons in one module."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.module = names.module

    # -- calls

    def call(self, node: ast.Call) -> FlagUse | None:
        """Recognise a call with the name of the flag or the variable among its first arguments."""
        position, key = self._key_argument(node)
        if key == SETTING.option:
            return self._option_call(node, position)
        if key == SETTING.variable:
            return self._variable_call(node, position)
        return self._patched_path(node)

    def _key_argument(self, node: ast.Call) -> tuple[int, str]:
        for index, argument in enumerate(node.args[:2]):
            if key := self.names.key(argument):
                return index, key
        for keyword in node.keywords:
            if keyword.arg in ("name", "key") and (key := self.names.key(keyword.value)):
                return 0, key
        return -1, ""

    def _option_call(self, node: ast.Call, position: int) -> FlagUse | None:
        function = self.names.function(node.func)
        method = last_name(node.func)
        if position == 0 and isinstance(node.func, ast.Attribute):
            if method == "update" or method in _READS:
                return self._config_method(node, method, self.names.config(node.func.value))
        if position == 0 and "jax.config.update" in function:
            return self._config_method(node, "update", "config")
        if position == 0 and any(f.rpartition(".")[2] in _READS for f in function):
            return self._config_method(node, "read", "config")
        if position == 1 and method in ("getattr", "hasattr", "setattr", "delattr", "object"):
            return self._attribute_call(node, method, self.names.config(node.args[0]))
        return None

    def _config_method(self, node: ast.Call, method: str, owner: str) -> FlagUse | None:
        if owner == "other":
            return None
        form: Form = "update" if method == "update" else "read"
        if owner == "unknown":
            return FlagUse(node, form, reason=_UNSEEN, sure=False)
        if form == "read":
            return FlagUse(node, "read", known=(node, True))
        value = _argument(node, 1, "val")
        return self.dropped(node, "update", [value] if value is not None else [])

    def _attribute_call(self, node: ast.Call, method: str, owner: str) -> FlagUse | None:
        """Recognise `getattr(config, name)`, `monkeypatch.setattr(config, name)`, and the like."""
        if owner == "other":
            return None
        if owner == "unknown":
            if not self.names.looks_like_config(node.args[0]):
                return None
            return FlagUse(node, "read", reason=_UNSEEN, sure=False)
        if method == "getattr":
            return FlagUse(node, "read", known=(node, True))
        if method == "hasattr":
            return FlagUse(node, "exists", known=(node, False))
        value = _argument(node, 2, "value") or _argument(node, 2, "new")
        if method == "object" and value is None:
            return FlagUse(node, "attribute", reason="the decorated function receives the mock")
        return self.dropped(node, "attribute", [value] if value is not None else [])

    def _patched_path(self, node: ast.Call) -> FlagUse | None:
        """Recognise `mock.patch("jax.config.jax_new_checkpoint", False)`."""
        if not node.args or last_name(node.func) not in ("patch", "setattr", "delattr"):
            return None
        path = node.args[0]
        if not isinstance(path, ast.Constant) or not isinstance(path.value, str):
            return None
        head, _, last = path.value.rpartition(".")
        if last != SETTING.option or not head.startswith("jax.") or not head.endswith("config"):
            return None
        value = _argument(node, 1, "new")
        if last_name(node.func) == "patch" and value is None:
            return FlagUse(node, "attribute", reason="the decorated function receives the mock")
        return self.dropped(node, "attribute", [value] if value is not None else [])

    def _variable_call(self, node: ast.Call, position: int) -> FlagUse | None:
        method = last_name(node.func)
        function = self.names.function(node.func)
        effects = node.args[position + 1 :]
        if method in ("setenv", "delenv") and position == 0:
            # These methods exist only on pytest's monkeypatch.
            return self.dropped(node, "environment", effects)
        if method in ("setitem", "delitem") and position == 1:
            return self.dropped(node, "environment", effects)
        if position:
            return None
        if function & {"os.putenv", "os.unsetenv"}:
            return self.dropped(node, "environment", effects)
        if function & {"os.getenv", "os.environ.get"} or method in ("getenv", "bool_env"):
            known: Known = True if method == "bool_env" else TRUE_TEXT
            return FlagUse(node, "environment-read", known=(node, known))
        if method in ("__contains__", "has_key") and isinstance(node.func, ast.Attribute):
            if self.names.environment(node.func.value):
                return FlagUse(node, "exists", known=(node, False))
        if isinstance(node.func, ast.Attribute):
            method_of = node.func.value
        elif any(name.startswith("os.environ.") for name in function):
            method_of, method = node.func, next(iter(function)).rpartition(".")[2]
        else:
            return None
        if method not in _ENVIRONMENT_READS | _ENVIRONMENT_WRITES:
            return None
        if method_of is not node.func and not self.names.environment(method_of):
            return self._unseen_mapping(node, method_of)
        if method in _ENVIRONMENT_WRITES and isinstance(self.module.parent(node), ast.Expr):
            return self.dropped(node, "environment", effects)
        return FlagUse(node, "environment-read", known=(node, TRUE_TEXT))

    def _unseen_mapping(self, node: ast.expr, mapping: ast.expr) -> FlagUse | None:
        if self.names.config(mapping) == "other":
            return None
        reason = "this mapping may not be an environment"
        return FlagUse(node, "environment", reason=reason, sure=False)

    # -- attributes, subscripts, comparisons

    def attribute(self, node: ast.Attribute) -> FlagUse | None:
        """Recognise a read, assignment, or deletion of `config.jax_new_checkpoint`."""
        owner = self.names.config(node.value)
        if owner != "config":
            if owner == "other" or not self.names.looks_like_config(node.value):
                return None
            return FlagUse(node, "read", reason=_UNSEEN, sure=False)
        if isinstance(node.ctx, ast.Load):
            return FlagUse(node, "read", known=(node, True))
        return self._target(node, "attribute")

    def subscript(self, node: ast.Subscript) -> FlagUse | None:
        """Recognise `os.environ[name]` and `config.values[name]`."""
        key = self.names.key(node.slice)
        if not key:
            return None
        if key == SETTING.option:
            values = node.value
            if not isinstance(values, ast.Attribute) or values.attr not in ("values", "_values"):
                return None
            if self.names.config(values.value) != "config":
                return None
            if isinstance(node.ctx, ast.Load):
                return FlagUse(node, "read", known=(node, True))
            return self._target(node, "attribute")
        if not self.names.environment(node.value):
            return self._unseen_mapping(node, node.value)
        if isinstance(node.ctx, ast.Load):
            return FlagUse(node, "environment-read", known=(node, TRUE_TEXT))
        return self._target(node, "environment")

    def membership(self, node: ast.Compare) -> FlagUse | None:
        """Recognise `name in os.environ` and `name in config.values`."""
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return None
        key, container = self.names.key(node.left), node.comparators[0]
        absent = isinstance(node.ops[0], ast.NotIn)
        if key == SETTING.option:
            match container:
                case ast.Attribute(value=base, attr="values" | "_values" | "_value_holders"):
                    container = base
                case ast.Call(func=ast.Name(id="dir" | "vars"), args=[base]):
                    container = base
            if self.names.config(container) == "config":
                return FlagUse(node, "exists", known=(node, absent))
        elif key == SETTING.variable:
            match container:
                case ast.Call(func=ast.Attribute(value=base, attr="keys"), args=[]):
                    container = base
            if self.names.environment(container):
                return FlagUse(node, "exists", known=(node, absent))
        return None

    def _target(self, node: ast.Attribute | ast.Subscript, form: Form) -> FlagUse:
        """Return the use for the target of an assignment or deletion."""
        holder = self.module.parent(node)
        match holder:
            case ast.Assign(targets=[_], value=value) | ast.AugAssign(value=value):
                return self._statement(holder, node, form, value)
            case ast.AnnAssign(value=ast.expr() as value):
                return self._statement(holder, node, form, value)
            case ast.AnnAssign() | ast.Delete(targets=[_]):
                return FlagUse(node, form, change=Reduction(remove=(holder,)))
        return FlagUse(node, form, reason="it is one of several targets: remove it by hand")

    def _statement(
        self, statement: ast.stmt, node: ast.expr, form: Form, value: ast.expr
    ) -> FlagUse:
        asked = truth(value)
        if is_pure(value):
            return FlagUse(node, form, asked, Reduction(remove=(statement,)))
        return FlagUse(node, form, asked, reason=SIDE_EFFECTS)

    # -- calls that go

    def dropped(self, node: ast.Call, form: Form, values: Sequence[ast.expr]) -> FlagUse:
        """Return the use for a call to remove; its `values` would no longer be evaluated."""
        asked = truth(values[0]) if values else None
        effects = [value for value in values if not is_pure(value)]
        if not effects:
            change = self.without(node)
            if change is not None:
                return FlagUse(node, form, asked, change)
            return FlagUse(node, form, asked, Reduction(replace=((node, "None"),)))
        if len(effects) == 1 and isinstance(self.module.parent(node), ast.Expr):
            text = self.module.segment(_effect(effects[0]))
            return FlagUse(node, form, asked, Reduction(replace=((node, text),)))
        return FlagUse(node, form, asked, reason=SIDE_EFFECTS)

    def without(self, node: ast.Call) -> Reduction | None:
        """Return what to remove with a call: its statement, its `with` item, or its decorator."""
        holder = self.module.parent(node)
        match holder:
            case ast.Expr():
                return Reduction(remove=(holder,))
            case ast.withitem(optional_vars=None):
                return Reduction(remove=(holder,))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if node in holder.decorator_list:
                    return Reduction(remove=(node,))
            case ast.Call(func=ast.Attribute(attr="enter_context" | "enterContext")):
                return self.without(holder)
            case ast.BoolOp() | ast.IfExp():
                statement = self.module.parent(holder)
                others = (n for n in ast.iter_child_nodes(holder) if n is not node)
                if isinstance(statement, ast.Expr):
                    if all(is_pure(n) for n in others if isinstance(n, ast.expr)):
                        return Reduction(remove=(statement,))  # `old and config.update(...)`
            case ast.Attribute(attr="start"):
                call = self.module.parent(holder)
                return self.without(call) if isinstance(call, ast.Call) else None
        return None

    def emptied(self, node: ast.expr) -> Reduction | None:
        """Return what to remove with a value of which nothing is left; None: keep it, empty."""
        holder = self.module.parent(node)
        match holder:
            case ast.AugAssign(op=ast.Add() | ast.BitOr()):
                return Reduction(remove=(holder,))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                other = right if node is left else left
                match self.module.parent(holder), other:
                    case ast.Assign(targets=[ast.Name(id=name)]) as statement, ast.Name(id=same):
                        if name == same:
                            return Reduction(remove=(statement,))  # `cmd = cmd + [...]`
                return Reduction(keep=((holder, other),))
            case ast.keyword(arg=None) | ast.Starred():
                return Reduction(remove=(holder,))
            case ast.Dict(keys=keys, values=values):
                if any(k is None and v is node for k, v in zip(keys, values, strict=True)):
                    return Reduction(remove=(node,))
        return None


def truth(node: ast.expr) -> bool | None:
    """Return the Boolean that a literal sets the flag to; None if it is not one."""
    if not isinstance(node, ast.Constant):
        return None
    if isinstance(node.value, str):
        return read_bool(node.value)
    return bool(node.value)


def _effect(node: ast.expr) -> ast.expr:
    """Return the part of an expression that has side effects: `load()` in `not load().flag`."""
    match node:
        case ast.Attribute(value=inner) | ast.UnaryOp(operand=inner):
            return _effect(inner)
        case ast.Subscript(value=inner, slice=key) if is_pure(key):
            return _effect(inner)
        case ast.Call(func=ast.Name(id="bool" | "int" | "str"), args=[inner], keywords=[]):
            return _effect(inner)
    return node


def _argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    if len(node.args) > position:
        return node.args[position]
    return next((k.value for k in node.keywords if k.arg == name), None)
