"""RMT604: `jax_remat_barrier_no_cotangents` disables the effect of checkpoints."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.flag.names import Names
from remat_migrate.analysis.policies.jax_remat3 import BARRIER_FLAG
from remat_migrate.codemod.changes import Code, Replace
from remat_migrate.formats.setting import Setting, read_bool
from remat_migrate.rule import Example, Finding, Fix, Safety
from remat_migrate.text import SourceFile, Span

from .shared.next_implementation import NextImplementationRule

SETTING = Setting(BARRIER_FLAG.upper(), BARRIER_FLAG)
_MESSAGE = (
    f"`{BARRIER_FLAG}` lets the compiler merge the recomputation with the forward pass, so"
    " checkpoints outside loops save no memory"
)
_ADVICE = "leave it off, or move the checkpoints into a `lax.scan`"
_GUARDED = f"""\
import jax

if hasattr(jax.config, "{BARRIER_FLAG}"):
    jax.config.update("{BARRIER_FLAG}", %s)
"""
# How many values the barriers of two checkpoints hold back, with the flag and by default.
_USE = f"""\
import jax.numpy as jnp


def loss(x):
    for _ in range(2):
        x = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x)
    return x


def held():
    equations = jax.make_jaxpr(jax.grad(loss))(1.0).eqns
    return sum(len(e.invars) for e in equations if e.primitive.name == "optimization_barrier")


counts = []
if hasattr(jax.config, "{BARRIER_FLAG}"):
    jax.config.update("jax_remat3", True)
    counts.append(held())
    jax.config.update("{BARRIER_FLAG}", False)
    counts.append(held())
"""
_SHOWN = "assert not counts or counts[0] %s counts[1], counts\n"
_FALSE = {bool: "False", str: '"0"', int: "0"}


class BarrierWithoutCotangents(NextImplementationRule):
    """## What it does
    Checks for code that sets `jax_remat_barrier_no_cotangents`: `jax.config.update`, the attribute,
    the environment variable, or a command-line option, in Python, shell scripts, and other text
    files.

    ## Why is this bad?
    The flag belongs to the next implementation of `jax.checkpoint`, behind `jax_remat3`, since jax
    0.11.1. Without cotangents in the barrier of a checkpoint, nothing orders the recomputation
    after the forward pass. Measured on CPU, per-block checkpoints of an unrolled transformer then
    need as much memory as none (3490 MB instead of 629 MB) but still compute everything twice. The
    body of a `lax.scan` is not affected.

    ## Fix
    In Python, writes `False`. Unsafe: memory changes.
    """

    code, name = "RMT604", "barrier-without-cotangents"
    fix_safety = Safety.UNSAFE
    words = (BARRIER_FLAG, BARRIER_FLAG.upper())
    url = "https://github.com/jax-ml/jax/pull/39520"

    wrong = [
        Example(
            _GUARDED % True, _GUARDED % False, use=_USE, shows=_SHOWN % "<", holds=_SHOWN % "=="
        ),
        Example(
            f'import os\n\nos.environ["{SETTING.variable}"] = "1"\nimport jax\n',
            f'import os\n\nos.environ["{SETTING.variable}"] = "0"\nimport jax\n',
            use="from jax._src.config import bool_env\n\n"
            f'value = bool_env("{SETTING.variable}", False)\n'
            f'del os.environ["{SETTING.variable}"]\n',
            shows="assert value is True\n",
            holds="assert value is False\n",
        ),
    ]
    right = [
        f'import jax\n\njax.config.update("{BARRIER_FLAG}", False)\n',
        f'import jax\n\nprint(jax.config.{BARRIER_FLAG})  # "{SETTING.variable}=1"\n',
        Example(f"{SETTING.variable}=0 python train.py\n", filename="train.sh"),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each place in a Python module that sets the flag."""
        if not SETTING.occurs(module.source.text):
            return
        names = Names(module, project)
        for node in module.nodes:
            value = _value(names, node)
            if value is not None and _is_true(value):
                yield self._found(module, project, value)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if SETTING.is_option(node.value) and _enables(node.value):
                    yield self._found(module, project, node)

    def check_text(self, source: SourceFile, project: Project) -> Iterator[Finding]:
        """Report each place in another file that sets the flag."""
        if not SETTING.occurs(source.text):
            return
        from remat_migrate.formats.files import plan_text

        uses, _ = plan_text(source, SETTING)
        for use in uses:
            if use.form != "read" and read_bool(use.value) is True:
                location = source, Span(use.start, use.end)
                yield self.next_finding(project, location, _MESSAGE, _ADVICE)

    def _found(self, module: Module, project: Project, node: ast.expr) -> Finding:
        fix = None
        if isinstance(node, ast.Constant) and not SETTING.occurs(str(node.value)):
            change = Replace(module, node, Code(_FALSE[type(node.value)]))
            fix = Fix("set it to false", Safety.UNSAFE, (change,))
        return self.next_finding(project, module.location(node), _MESSAGE, _ADVICE, fix=fix)


def _value(names: Names, node: ast.AST) -> ast.expr | None:
    """Return the value that a node sets the flag or its environment variable to."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=owner, attr="update"),
            args=[ast.Constant(value=SETTING.option), value],
        ) if names.config(owner) == "config":
            return value
        case ast.Call(
            func=ast.Attribute(value=owner, attr="setdefault"),
            args=[ast.Constant(value=SETTING.variable), value],
        ) if names.environment(owner):
            return value
        case ast.Assign(targets=[ast.Attribute(value=owner, attr=SETTING.option)], value=value) if (
            names.config(owner) == "config"
        ):
            return value
        case ast.Assign(
            targets=[ast.Subscript(value=owner, slice=ast.Constant(value=SETTING.variable))],
            value=value,
        ) if names.environment(owner):
            return value
        case ast.Call(
            func=ast.Attribute(attr="setenv"), args=[ast.Constant(value=SETTING.variable), value]
        ):
            return value
        case ast.Call(func=ast.Attribute() | ast.Name() as function, args=[value]) if (
            names.function(function) & {f"jax.{BARRIER_FLAG}", f"jax._src.config.{_CONTEXT}"}
        ):
            return value
    return None


# The object of the flag, which is called as a context manager.
_CONTEXT = BARRIER_FLAG.removeprefix("jax_")


def _is_true(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=bool() | int() as given):
            return bool(given)
        case ast.Constant(value=str(text)):
            return read_bool(text) is True
    return False


def _enables(word: str) -> bool:
    """Return whether a command-line option enables the flag."""
    if word.lstrip("-").startswith("no"):
        return False
    _, equals, value = word.partition("=")
    return not equals or read_bool(value) is True
