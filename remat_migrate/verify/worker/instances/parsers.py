"""The settings that a project reads from its command line: what `argparse` makes of no arguments.

The calls of `add_argument` are read, so that nothing of a program is run.
"""

from __future__ import annotations

import argparse
import ast
from typing import Any, Dict, Iterator, List, Optional

from ..inputs import candidates
from .expressions import Evaluator, Unknown
from .sources import Scope, Source, Sources

_STORED = {"store_true": False, "store_false": True, "count": 0}
_TYPES = {"int": int, "float": float, "str": str}


def settings(sources: Sources, evaluator: Evaluator, near: str) -> Iterator[argparse.Namespace]:
    """Yield the settings of each function or module that adds arguments, the nearest first."""
    for source in sources.mentioning(["add_argument"], near):
        owners: Dict[Optional[ast.AST], List[ast.Call]] = {}
        for call in source.calls("add_argument"):
            owners.setdefault(next(iter(source.around(call)), None), []).append(call)
        for calls in owners.values():
            found: Dict[str, Any] = {}
            for call in sorted(calls, key=lambda call: call.lineno):
                found.update(_argument(call, source, evaluator))
            yield argparse.Namespace(**found)


def _argument(call: ast.Call, source: Source, evaluator: Evaluator) -> Dict[str, Any]:
    """Return the attribute that an argument becomes, with its default or a value like it."""
    scope = Scope(source, source.around(call), call.lineno)
    options = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}

    def value(name: str) -> Any:
        try:
            return evaluator.value(options[name], scope) if name in options else None
        except Unknown:
            return None

    constants: List[Any] = [each.value for each in call.args if isinstance(each, ast.Constant)]
    flags = [each for each in constants if isinstance(each, str)]
    long = [each for each in flags if each.startswith("--")] or flags
    name = value("dest") or (long[0].lstrip("-").replace("-", "_") if long else "")
    if not isinstance(name, str) or not name.isidentifier():
        return {}
    default, action, allowed = value("default"), value("action"), value("choices")
    kind = _TYPES.get(getattr(options.get("type"), "id", ""))
    if default is None and action in _STORED:
        default = _STORED[action]
    elif default is None and allowed:
        default = next(iter(allowed))
    elif default is None and ("required" in options or not flags[0].startswith("-")):
        default = _by_type(name, kind)
    elif isinstance(default, str) and kind in (int, float):
        default = kind(default)
    return {name: default}


def _by_type(name: str, kind: Any) -> Any:
    if kind is int:
        return candidates.integers(name)[0].value
    if kind is float:
        return candidates.floats(name)[0].value
    return candidates.strings(name)[0].value
