"""RMT310: each iteration of a Python loop checkpoints a new function.

`jax.checkpoint` caches traces by function: https://github.com/jax-ml/jax/issues/9661
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.api import Example, Finding, Module, Project, Rule, Site, sites_in
from remat_migrate.api.code import Bound, Function, Partial, Value, in_test
from remat_migrate.api.placement import placement_of, python_loop

_FEW = 3  # iterations; of so few, tracing takes no time that matters
_LOOP = """\
import jax

traced = []


def layer(w, x):
    traced.append(w)
    return w * jax.numpy.tanh(x)


def model(weights, x):
%s
    return x
"""
_BEFORE = "    for w in weights:\n        x = jax.checkpoint(lambda x: layer(w, x))(x)"
_AFTER = (
    "    checkpointed_layer = jax.checkpoint(layer)\n"
    "    for w in weights:\n"
    "        x = checkpointed_layer(w, x)"
)
_USE = "slope = jax.grad(model, 1)([1.0] * 8, 1.0)\n"


class NewFunctionInLoop(Rule):
    """## What it does
    Checks for `jax.checkpoint` in a Python loop around a function that each iteration makes anew
    and calls: a `lambda`, a `def` in the loop, `functools.partial`, or a bound method.

    ## Why is this bad?
    JAX caches what it traces by function object. For a new function it traces all of the body
    again, in each iteration, and tracing takes several times as long. What is compiled is the same.
    The page "When a checkpoint pays" has a measurement.

    ## Fix
    Changes nothing. Checkpoint the function once, before the loop, and pass what differs between
    the iterations as arguments.
    """

    code, name = "RMT310", "new-function-in-loop"
    severity = "note"
    url = "https://github.com/jax-ml/jax/issues/9661"
    wrong = [
        Example(_LOOP % _BEFORE, use=_USE, shows="assert len(traced) == 8\n"),
        Example(
            _LOOP
            % _BEFORE.replace("lambda x: layer(w, x)", "partial(layer, w)").replace(
                "    for", "    from functools import partial\n\n    for"
            ),
            use=_USE,
            shows="assert len(traced) == 8\n",
        ),
    ]
    right = [
        Example(_LOOP % _AFTER, use=_USE, holds="assert len(traced) == 1\n"),
        # Each layer may be other code, which JAX has to trace.
        "import jax\n\n\n"
        "def model(layers, x):\n"
        "    for layer in layers:\n"
        "        x = jax.checkpoint(lambda x: layer(x))(x)\n"
        "    return x\n",
        # The cache knows `layer`.
        Example(
            _LOOP % _BEFORE.replace("lambda x: layer(w, x))(x)", "layer)(w, x)"),
            use=_USE,
            holds="assert len(traced) == 1\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each checkpoint of a function that its loop makes."""
        for site in sites_in(project, module):
            loop = _loop_of(site) if site.api.startswith("jax.") and site.certain else None
            if loop is None or _is_short(loop) or in_test(module, loop):
                continue
            if _wraps_new_function(site, loop, project) and _is_called_in(loop, site, project):
                yield self.finding(
                    module.source,
                    site.span,
                    f"`{site.api}` wraps a new function in each iteration; JAX traces each of them",
                    confidence="medium",
                    reason="checkpoint one function before the loop, and pass it what differs",
                )


def _loop_of(site: Site) -> ast.AST | None:
    if site.application is None or site.subject is None:
        return None
    _, subject = site.subject
    is_decorator = site.form.startswith("decorator")
    return python_loop(site.module, subject if is_decorator else site.application)


def _is_short(loop: ast.AST) -> bool:
    """Return whether a loop is over a few items that are written out, or a small range."""
    match loop:
        case ast.For(iter=ast.Tuple(elts=items) | ast.List(elts=items)):
            return len(items) <= _FEW
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=count)])):
            return isinstance(count, int) and count <= _FEW
    return False


def _wraps_new_function(site: Site, loop: ast.AST, project: Project) -> bool:
    assert site.subject is not None
    module, subject = site.subject
    if not isinstance(subject, ast.expr):
        return not _calls_items(loop, subject)  # decorated in the loop
    values = project.values(module, subject)
    return bool(values) and all(_is_made_in(loop, module, subject, value) for value in values)


def _is_made_in(loop: ast.AST, module: Module, subject: ast.expr, value: Value) -> bool:
    match value:
        case Function(module=owner, node=node) | Partial(module=owner, call=node):
            in_loop = owner is module and loop in module.ancestors(node)
            return in_loop and not _calls_items(loop, node)
        case Bound():
            return isinstance(subject, ast.Attribute) and not _calls_items(loop, subject)
    return False


def _calls_items(loop: ast.AST, function: ast.AST) -> bool:
    """Return whether a function calls what the loop is over: each item may be other code."""
    parts = [loop, *getattr(loop, "generators", ())]
    targets = (getattr(part, "target", None) for part in parts)
    items = {n.id for t in targets if t for n in ast.walk(t) if isinstance(n, ast.Name)}
    called: list[ast.AST] = [function] if isinstance(function, ast.Attribute) else []
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called += [node.func, *(node.args[:1] if node is function else ())]
    names = (n.id for each in called for n in ast.walk(each) if isinstance(n, ast.Name))
    return not items.isdisjoint(names)


def _is_called_in(loop: ast.AST, site: Site, project: Project) -> bool:
    return any(
        occurrence.how == "called" and loop in occurrence.module.ancestors(occurrence.node)
        for occurrence in placement_of(project).of_site(site)
    )
