"""Large heads: last stages that may compute something larger than their inputs."""

from __future__ import annotations

import ast
import re

from ..names.module import Module
from ..project import Project
from ..values.callees import targets_of
from ..values.values import Function
from .call_graph import own_nodes
from .whole_and_last import DifferentiatedPart
from .workload import is_light

# Words in code that may compute logits over a vocabulary, larger than all other residuals.
_HEAD_WORDS = re.compile(
    r"softmax|logsumexp|cross_?entropy|xent|vocab|logit|one_hot|embed|head|decode|token|unembed",
    re.IGNORECASE,
)
# Functions that can return a large array for small ones.
_BROADCASTING = frozenset(
    {
        "broadcast_to", "broadcast_arrays", "broadcast_in_dim", "expand_dims", "meshgrid", "outer",
        "repeat", "tile", "vmap", "kron",
    }
)  # fmt: skip


def may_be_head(project: Project, part: DifferentiatedPart) -> bool:
    """Return whether a stage may compute something larger than its inputs.

    A stage with matrix products may be a head by the words in its source, and a stage without any
    if it broadcasts its arguments against each other.
    """
    functions = [t.function for t in targets_of(project.evaluator, part.found.applied.target)]
    if not functions:
        return True
    if all(is_light(project.evaluator, function) for function in functions):
        return any(_broadcasts(project, function, set()) for function in functions)
    texts = [part.site.target or ""]
    texts += [function.module.segment(function.node) for function in functions]
    for module, call in part.found.calls[-1:]:
        around = module.enclosing_function(call)
        assert around is not None
        texts.append(module.segment(around))
    return any(_HEAD_WORDS.search(text) for text in texts)


def has_head_beside(part: DifferentiatedPart) -> bool:
    """Return whether the code that calls a stack of layers may also compute a large head."""
    for module, call in part.found.calls[-1:]:
        around = module.enclosing_function(call)
        cls = module.enclosing_class(around) if around is not None else None
        if _HEAD_WORDS.search(module.segment(cls or around or call)):
            return True
    return False


def _broadcasts(project: Project, function: Function, seen: set[Function]) -> bool:
    """Return whether a function or its callees may return an array larger than their arguments."""
    seen.add(function)
    module = function.module
    for node in own_nodes(function.node):
        if isinstance(node, ast.Subscript) and not _is_index(module, node):
            if any(isinstance(n, ast.Constant) and n.value is None for n in ast.walk(node.slice)):
                return True
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _BROADCASTING:
                return True
            for value in project.values(module, node.func):
                for target in targets_of(project.evaluator, value):
                    if target.function not in seen and _broadcasts(project, target.function, seen):
                        return True
    return False


def _is_index(module: Module, node: ast.Subscript) -> bool:
    """Return whether `labels[:, None]` only selects elements."""
    match module.parent(node):
        case ast.Call(func=ast.Name(id="take_along_axis") | ast.Attribute(attr="take_along_axis")):
            return True
    return False
