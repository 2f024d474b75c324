"""Recognizes JAX's configuration, environments, and the name of the flag."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from ...formats import NAME, OPTION, VARIABLE
from ..names.mentions import last_name
from ..names.module import Module
from ..project import Project
from ..values.values import Constant, Function, Parameter, Result

NAMES = (OPTION, VARIABLE)
# Why `--jax_new_checkpoint` stays if the project has an option of that name.
OWN_OPTION = "the project defines its own option with this name"

# `jax.config` is an object; before 0.4.25 it was also a module with the object `config`.
_CONFIG = re.compile(
    r"jax(\.\w+)*\.config(\.config)?(\.(flags\.)?FLAGS)?|absl\.flags\.FLAGS|jax\._src\.config\.FLAGS"
)
_ENVIRONMENT_NAME = re.compile(
    r"(?i)_*((\w*_)?(env|environ|environment)s?(_?vars?|_variables)?|passenv)"
)
_COPIES = frozenset({"dict", "copy", "deepcopy", "OrderedDict", "ChainMap"})
_DEFINES = re.compile(
    r"add_argument|add_option|option|Option|DEFINE_\w+|define_bool_state|bool_state"
)

Owner = Literal["config", "other", "unknown"]


class Names:
    """Recognizes names in one module."""

    def __init__(self, module: Module, project: Project) -> None:
        self.module = module
        self.project = project
        self._constants = _constant_names(module, project)

    def key(self, node: ast.expr | None) -> str:
        """Return the name of the flag or the variable if an expression is that string; else ""."""
        if isinstance(node, ast.Constant):
            return node.value if node.value in NAMES else ""
        if node is None or last_name(node) not in self._constants:
            return ""
        match list(self.project.values(self.module, node)):
            case [Constant(value)] if value in NAMES:
                return str(value)
        return ""

    def config(self, node: ast.expr) -> Owner:
        """Return whether an expression is JAX's configuration, something else, or unknown."""
        names = self.project.qualified(self.module, node)
        if names:
            if all(_CONFIG.fullmatch(name) for name in names):
                return "config"
            if any(_CONFIG.fullmatch(name) for name in names):
                return "unknown"
            known = any(self.project.find_module(n, self.module) is not None for n in names)
            return "other" if known else "unknown"
        values = self.project.values(self.module, node)
        if values and not any(isinstance(v, Parameter | Result) for v in values):
            return "other"
        return "unknown"

    def function(self, node: ast.expr) -> frozenset[str]:
        """Return the qualified names of a callee; configuration methods as `jax.config.NAME`."""
        found = self.project.qualified(self.module, node)
        return frozenset(
            f"jax.config.{method}" if _CONFIG.fullmatch(owner) else name
            for name in found
            for owner, _, method in (name.rpartition("."),)
        )

    def environment(self, node: ast.expr, depth: int = 0) -> bool:
        """Return whether an expression is `os.environ`, a copy of it, or is named like an
        environment.
        """
        if depth > 8:
            return False
        names = self.project.qualified(self.module, node)
        if names:
            return names == {"os.environ"}
        match node:
            case ast.Call(func=ast.Attribute(value=base, attr="copy"), args=[]):
                return self.environment(base, depth + 1)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _COPIES:
                parts = [*node.args, *(k.value for k in node.keywords if k.arg is None)]
                return any(self.environment(part, depth + 1) for part in parts)
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                return any(k is None and self.environment(v, depth + 1) for k, v in pairs)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self.environment(left, depth + 1) or self.environment(right, depth + 1)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return is_environment_name(name)
        return False

    def takes_anything(self, callee: ast.expr, name: str) -> bool:
        """Return whether a function may take a keyword other than as one of its parameters."""
        return not any(
            isinstance(value, Function)
            and any(a.arg == name for a in (*value.node.args.args, *value.node.args.kwonlyargs))
            for value in self.project.values(self.module, callee)
        )


def is_environment_name(name: str) -> bool:
    """Return whether a name is typical of an environment."""
    return _ENVIRONMENT_NAME.fullmatch(name) is not None


def defines_own_option(project: Project) -> bool:
    """Return whether the project defines its own option with the flag's name."""
    return any(
        _defines(node)
        for module in project.mentioning((*NAMES, "jax-new-checkpoint"))
        for node in module.nodes
        if isinstance(node, ast.Call)
    )


def _defines(call: ast.Call) -> bool:
    if not _DEFINES.fullmatch(last_name(call.func)):
        return False
    words = [a.value for a in call.args if isinstance(a, ast.Constant)]
    return any(isinstance(w, str) and w.strip("-").replace("-", "_") == OPTION for w in words)


def may_use_flag(module: Module, project: Project) -> bool:
    """Return whether a module mentions the flag or another module's constant with its name."""
    text = module.source.text
    return NAME.search(text) is not None or any(
        re.search(rf"\b{re.escape(name)}\b", text) for name in project.once(_exported)
    )


def _exported(project: Project) -> frozenset[str]:
    """Return the module-level names of parsed modules whose value is the name of the flag."""
    return frozenset(
        name
        for module in project.parsed
        if NAME.search(module.source.text)
        for name in _assigned(module.tree.body)
    )


def _constant_names(module: Module, project: Project) -> frozenset[str]:
    """Return the names and attributes in a module that may be the name of the flag."""
    found = {*_assigned(module.nodes), *project.once(_exported)}
    for node in module.nodes:
        if isinstance(node, ast.alias) and node.name in found and node.asname:
            found.add(node.asname)
    return frozenset(found)


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=ast.Constant(value=value)):
                names = targets
            case ast.AnnAssign(target=target, value=ast.Constant(value=value)):
                names = [target]
            case _:
                continue
        if value in NAMES:
            yield from filter(None, map(last_name, names))
