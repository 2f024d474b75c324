"""Follow an argument into the functions that a function passes it on to."""

from __future__ import annotations

import ast
from typing import Any, Iterator, Optional, Set, Tuple

from ..instances.expressions import Evaluator, Unknown
from ..instances.sources import Scope, Source, Sources, parameters

Place = Tuple[Any, Source, str]


def passed_on(
    node: Any, source: Source, name: str, sources: Sources, evaluator: Evaluator
) -> Iterator[Place]:
    """Yield the functions that an argument is passed on to: definition, file, and parameter."""
    names = {name, *aliases(node, name)}
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        keywords = [k.arg for k in call.keywords if k.arg and is_one_of(k.value, names)]
        places = [at for at, given in enumerate(call.args) if is_one_of(given, names)]
        found = _called(call, source, sources, evaluator) if keywords or places else None
        if found is not None:
            taken = list(parameters(found[0]))
            for parameter in [*(taken[at] for at in places if at < len(taken)), *keywords]:
                yield (*found, parameter)


def is_one_of(node: Any, names: Set[str]) -> bool:
    """Return whether an expression is one of these variables."""
    return isinstance(node, ast.Name) and node.id in names


def aliases(node: Any, name: str) -> Iterator[str]:
    """Yield the other names of an argument: `c = config`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Assign) and is_one_of(part.value, {name}):
            yield from (target.id for target in part.targets if isinstance(target, ast.Name))


def _called(
    call: ast.Call, source: Source, sources: Sources, evaluator: Evaluator
) -> Optional[Tuple[Any, Source]]:
    scope = Scope(source, source.around(call), call.lineno)
    function: Any = call.func
    for _ in range(3):
        # `jax.value_and_grad(loss)(params, cfg)`, and `step = jax.jit(f)` before.
        if isinstance(function, ast.Name):
            function = _local(scope, function.id) or function
        if not isinstance(function, ast.Call) or not function.args:
            break
        function = function.args[0]
    try:
        return sources.definition(evaluator.value(function, scope))
    except Unknown:
        # A function inside another, or in a file that is not imported here.
        beside = source.functions(getattr(function, "id", ""))
        return next(((node, source) for node in beside), None)


def _local(scope: Scope, name: str) -> Any:
    for owner in scope.around:
        for node in ast.walk(owner):
            if isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == [
                name
            ]:
                return node.value
    return None
