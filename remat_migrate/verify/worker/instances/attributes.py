"""Which attributes a class reads from an argument of its constructor."""

from __future__ import annotations

import ast
from typing import Any, Set

from .sources import Sources, key_of


def attributes_read(sources: Sources, owner: str, name: str, near: str, depth: int = 3) -> Set[str]:
    """Return the attributes that a class reads from an argument, and from what it passes on."""
    found: Set[str] = set()
    for source in sources.mentioning(["class " + owner], near):
        for cls in source.classes(owner):
            names = _aliases(cls, name)
            for node in ast.walk(cls):
                if isinstance(node, ast.Attribute) and _is_one(node.value, names):
                    found.add(node.attr)
                elif isinstance(node, ast.Subscript) and _is_one(node.value, names):
                    key = key_of(node)
                    found |= {key} if isinstance(key, str) else set()
                elif isinstance(node, ast.Call) and depth:
                    found |= _passed_on(sources, node, names, near, depth)
            return found - {"get", "to_dict", "replace", "items", "copy"}
    return found


def _passed_on(
    sources: Sources, call: ast.Call, names: Set[str], near: str, depth: int
) -> Set[str]:
    callee = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
    if not callee or not callee[:1].isupper():
        return set()
    found: Set[str] = set()
    for keyword in call.keywords:
        if keyword.arg and _is_one(keyword.value, names):
            found |= attributes_read(sources, callee, keyword.arg, near, depth - 1)
    for argument in call.args[:1]:
        if _is_one(argument, names):
            for usual in ("config", "cfg"):
                found |= attributes_read(sources, callee, usual, near, depth - 1)
    return found


def _is_one(node: Any, names: Set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names
    return (
        isinstance(node, ast.Attribute)
        and getattr(node.value, "id", "") == "self"
        and "self." + node.attr in names
    )


def _aliases(cls: ast.ClassDef, name: str) -> Set[str]:
    """Return the names under which a class uses an argument."""
    names = {"self." + name, name}
    for node in ast.walk(cls):
        if isinstance(node, ast.Assign) and _is_one(node.value, names):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    names.add(target.id)
                elif isinstance(target, ast.Attribute):
                    names.add("self." + target.attr)
    return names
