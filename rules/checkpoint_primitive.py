"""RMT603: code recognizes a checkpoint by the name of its primitive, `remat2`.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.jax_remat3 import (
    NEXT_CLASS,
    NEXT_PRIMITIVE,
    PRIMITIVE,
    PRIMITIVE_OBJECTS,
)
from remat_migrate.rule import Example, Finding

from .shared.next_implementation import NextImplementationRule

# `"remat2"`, or `"remat2["` as in the text of a jaxpr.
_NAME = re.compile(rf"\s*{PRIMITIVE}\s*\[?\s*")
_PRINTING = frozenset({"print", "debug", "info", "warning", "warn", "error", "log"})

_COUNT = """\
import jax
import jax.numpy as jnp


def checkpoints(f, x):
    equations = jax.make_jaxpr(f)(x).eqns
    return sum(%s for equation in equations)
"""
_USE = """\
def number():
    return checkpoints(lambda x: jax.checkpoint(jnp.sin)(x), 1.0)

found = [number()]
if hasattr(jax.config, "jax_remat3"):
    jax.config.update("jax_remat3", True)
    found.append(number())
"""


class CheckpointPrimitive(NextImplementationRule):
    """## What it does
    Checks for code that looks for checkpoints in a jaxpr by the name of their primitive,
    `"remat2"`, or by the object `remat_p`: comparisons, searches in the text of a jaxpr, and rule
    tables.

    ## Why is this bad?
    The next implementation, behind the flag `jax_remat3`, has no such equation. It uses the
    primitive `call_hi_primitive`, with a `RematTraced` in `equation.params["_prim"]` that holds the
    jaxpr, or no equation at all if a policy saves everything. Code that looks for the old primitive
    finds nothing, or does not handle the new one.

    ## Fix
    Not fixed automatically. Look for both primitives.
    """

    code, name = "RMT603", "checkpoint-primitive"
    words = ("remat2", "remat_p", "name_p")

    wrong = [
        Example(
            _COUNT % 'equation.primitive.name == "remat2"',
            use=_USE,
            shows="assert found in ([1], [1, 0]), found\n",
        ),
        Example(
            "from jax._src.ad_checkpoint import remat_p\n"
            + _COUNT % "equation.primitive is remat_p",
            use=_USE,
            shows="assert found in ([1], [1, 0]), found\n",
        ),
    ]
    right = [
        Example(
            _COUNT.replace(
                "    equations",
                '    names = {"remat2", "call_hi_primitive"}\n    equations',
            )
            % "equation.primitive.name in names",
            use=_USE,
            holds="assert set(found) == {1}, found\n",
        ),
        'import jax\n\nprint("remat2")  # remat2\nx = jax.numpy.ones(3)\n',
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each expression that recognizes a checkpoint by its primitive."""
        text = module.source.text
        if NEXT_PRIMITIVE in text or NEXT_CLASS in text or "jax" not in text:
            return
        for node in module.nodes:
            match node:
                case ast.Constant(value=str(value)) if _NAME.fullmatch(value):
                    if _is_compared(module, node):
                        yield self._found(module, project, node, value.strip())
                case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                    name = _primitive_object(module, project, node)
                    if name and _recognizes(module, node, name):
                        yield self._found(module, project, node, name)

    def _found(self, module: Module, project: Project, node: ast.expr, name: str) -> Finding:
        return self.next_finding(
            project,
            module.location(node),
            f"under `jax_remat3` no equation of a jaxpr has the primitive `{name}`",
            f"also look for the primitive `{NEXT_PRIMITIVE}`, whose parameter `_prim` is a"
            f" `{NEXT_CLASS}` that holds the jaxpr",
        )


def _is_compared(module: Module, node: ast.Constant) -> bool:
    """Return whether a string is compared or looked up, and not only printed."""
    match module.parent(node):
        case ast.Expr() | ast.JoinedStr() | ast.FormattedValue() | ast.arguments() | None:
            return False
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name not in _PRINTING and not name.endswith(("Error", "Primitive"))
    return True


def _recognizes(module: Module, node: ast.expr, name: str) -> bool:
    """Return whether a primitive object is compared, or is a key of a rule table."""
    is_remat = name == "remat_p"
    holder = module.parent(node)
    match holder:
        case ast.Compare():
            return is_remat or _is_of_equation(holder)
        case ast.Subscript(ctx=ast.Store(), slice=key):
            return is_remat and key is node
        case ast.Dict(keys=keys):
            return is_remat and node in keys
        case ast.Tuple() | ast.List() | ast.Set():
            around = module.parent(holder)
            return isinstance(around, ast.Compare) and (is_remat or _is_of_equation(around))
        case ast.Call(args=[first, *_]):
            within = module.parent(holder)
            decorates = isinstance(within, ast.FunctionDef) and holder in within.decorator_list
            return is_remat and first is node and decorates
    return False


def _primitive_object(module: Module, project: Project, node: ast.Name | ast.Attribute) -> str:
    """Return the name of the primitive object that an expression refers to, or an empty string."""
    last = node.id if isinstance(node, ast.Name) else node.attr
    if not last.endswith("_p"):
        return ""
    names = project.qualified(module, node)
    found = {name.rpartition(".")[2] for name in names if name in PRIMITIVE_OBJECTS}
    return found.pop() if len(found) == len(names) == 1 else ""


def _is_of_equation(compared: ast.Compare) -> bool:
    """Return whether the primitive of an equation is compared, not the argument of a policy."""
    sides = (compared.left, *compared.comparators)
    return any(isinstance(side, ast.Attribute) and side.attr == "primitive" for side in sides)
