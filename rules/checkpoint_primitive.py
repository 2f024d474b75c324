"""RMT603: code that knows a checkpoint by the name of its primitive, `remat2`.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.jax_remat3 import (
    NEXT_CLASS,
    NEXT_PRIMITIVE,
    PRIMITIVE,
    PRIMITIVE_OBJECTS,
)
from remat_migrate.rule import Example, Finding

from .readiness import Readiness, because, severity

# `"remat2"`, and as it starts in the text of a jaxpr: `"remat2["`.
_NAME = re.compile(rf"\s*{PRIMITIVE}\s*\[?\s*")
_SPEAKING = frozenset({"print", "debug", "info", "warning", "warn", "error", "log"})

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


class CheckpointPrimitive(Readiness):
    """## What it does

    Finds code that looks for checkpoints in a jaxpr by the name of their primitive, `"remat2"`, or
    by the object, `remat_p`: comparisons, searches in its text, tables of rules.

    ## Why is this bad?

    In the next implementation, behind the flag `jax_remat3`, there is no such equation: it is one
    of the primitive `call_hi_primitive`, with a `RematTraced` that holds the jaxpr as
    `equation.params["_prim"]`; and where a policy saves everything none. What looks for the old
    one finds nothing, or does not know what to do with the new one.

    ## Fix

    None: look for both.
    """

    code: ClassVar[str] = "RMT603"
    name: ClassVar[str] = "checkpoint-primitive"
    words: ClassVar[tuple[str, ...]] = ("remat2", "remat_p", "name_p")

    wrong: ClassVar[list[Example]] = [
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
        Example(
            "import jax\n\n\ndef is_checkpointed(f, x):\n"
            '    return "remat2[" in str(jax.make_jaxpr(f)(x))\n',
            use=(
                "import jax.numpy as jnp\n\n\n"
                "def checkpoints(f, x):\n    return int(is_checkpointed(f, x))\n\n\n" + _USE
            ),
            shows="assert found in ([1], [1, 0]), found\n",
        ),
    ]
    right: ClassVar[list[Example | str]] = [
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
        'import jax\n\n\ndef is_remat(mode):\n    return mode in ("remat", "checkpoint")\n',
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each place that tells a checkpoint by its primitive."""
        text = module.source.text
        if NEXT_PRIMITIVE in text or NEXT_CLASS in text or "jax" not in text:
            return
        for node in module.nodes:
            match node:
                case ast.Constant(value=str(value)) if _NAME.fullmatch(value):
                    if self._is_read(module, node):
                        yield self._found(module, project, node, f"`{value.strip()}`")
                case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                    name = _object(module, project, node)
                    if name and self._tells(module, node, name):
                        yield self._found(module, project, node, f"`{name}`")

    def _found(self, module: Module, project: Project, node: ast.expr, what: str) -> Finding:
        return self.finding(
            module.source,
            module.span(node),
            f"from `jax_remat3` on no equation of a jaxpr is {what}",
            severity=severity(project),
            reason=because(
                f"look for the primitive `{NEXT_PRIMITIVE}`, too: its parameter `_prim` is"
                f" a `{NEXT_CLASS}` that holds the jaxpr"
            ),
        )

    @staticmethod
    def _is_read(module: Module, node: ast.Constant) -> bool:
        """Whether a string is compared, looked for or looked up, and not only said."""
        holder = module.parent(node)
        match holder:
            case ast.Expr() | ast.JoinedStr() | ast.FormattedValue() | ast.arguments() | None:
                return False
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name not in _SPEAKING and not name.endswith(("Error", "Primitive"))
        return True

    @staticmethod
    def _tells(module: Module, node: ast.expr, name: str) -> bool:
        """Whether the primitive's object is compared, or a rule stands in a table under it."""
        holder = module.parent(node)
        match holder:
            case ast.Compare():
                return name == "remat_p" or _is_of_equation(holder)
            case ast.Subscript(ctx=ast.Store(), slice=key):
                return key is node and name == "remat_p"
            case ast.Dict(keys=keys):
                return node in keys and name == "remat_p"
            case ast.Tuple() | ast.List() | ast.Set():
                around = module.parent(holder)
                return isinstance(around, ast.Compare) and (
                    name == "remat_p" or _is_of_equation(around)
                )
            case ast.Call(args=[first, *_]):
                within = module.parent(holder)
                decorates = isinstance(within, ast.FunctionDef) and holder in within.decorator_list
                return first is node and name == "remat_p" and decorates
        return False


def _object(module: Module, project: Project, node: ast.Name | ast.Attribute) -> str:
    """The last part of the name of a primitive's object; "" for anything else."""
    last = node.id if isinstance(node, ast.Name) else node.attr
    if not last.endswith("_p"):
        return ""
    names = project.qualified(module, node)
    found = {name.rpartition(".")[2] for name in names if name in PRIMITIVE_OBJECTS}
    return found.pop() if len(found) == len(names) == 1 else ""


def _is_of_equation(compared: ast.Compare) -> bool:
    """Whether the primitive of an equation is compared, and not what a policy is asked about."""
    sides = (compared.left, *compared.comparators)
    return any(isinstance(side, ast.Attribute) and side.attr == "primitive" for side in sides)
