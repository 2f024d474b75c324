"""RMT604: `jax_remat_barrier_no_cotangents` takes the effect of checkpoints away.

https://github.com/jax-ml/jax/pull/39520
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.flag.names import Names
from remat_migrate.analysis.policies.jax_remat3 import BARRIER_FLAG
from remat_migrate.codemod.changes import Code, Replace
from remat_migrate.formats.setting import Setting
from remat_migrate.rule import Example, Finding, Fix, Safety
from remat_migrate.text import SourceFile, Span

from .readiness import Readiness, because, severity

SETTING = Setting(BARRIER_FLAG.upper(), BARRIER_FLAG)
_MESSAGE = (
    f"`{BARRIER_FLAG}` lets the compiler merge what is computed again with the forward pass: of"
    " checkpoints outside of loops no memory is saved"
)
_REASON = "leave it off, or put the checkpoints into a `lax.scan`"
_GUARDED = f"""\
import jax

if hasattr(jax.config, "{BARRIER_FLAG}"):
    jax.config.update("{BARRIER_FLAG}", %s)
"""
# What is held back by the barriers of two checkpoints, as it is set and as it is by default.
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
_WRITTEN_FALSE = {bool: "False", str: '"0"', int: "0"}


class BarrierWithoutCotangents(Readiness):
    """## What it does

    Finds what sets `jax_remat_barrier_no_cotangents`: `jax.config.update`, the attribute, the
    environment variable, an option on a command line; in shell scripts and other texts as well.

    ## Why is this bad?

    It is a setting of the next implementation of checkpoints, behind `jax_remat3`, since jax
    0.11.1. Without cotangents in the barrier of a checkpoint nothing orders the recomputation after
    the forward pass. Measured on CPU, per-block checkpoints of an unrolled transformer then need
    the memory of none at all (629 MB become 3490 MB), and compute everything twice all the same.
    The body of a `lax.scan` keeps its effect.

    ## Fix

    In Python, writes False (unsafe: it is memory that changes).
    """

    code: ClassVar[str] = "RMT604"
    name: ClassVar[str] = "barrier-without-cotangents"
    words: ClassVar[tuple[str, ...]] = (BARRIER_FLAG, BARRIER_FLAG.upper())
    url: ClassVar[str] = "https://github.com/jax-ml/jax/pull/39520"

    wrong: ClassVar[list[Example]] = [
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
    right: ClassVar[list[Example | str]] = [
        f'import jax\n\njax.config.update("{BARRIER_FLAG}", False)\n',
        f'import jax\n\nprint(jax.config.{BARRIER_FLAG})  # "{SETTING.variable}=1"\n',
        Example(f"{SETTING.variable}=0 python train.py\n", filename="train.sh"),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """The places in a Python module that set it."""
        if not SETTING.occurs(module.source.text):
            return
        names = Names(module, project)
        for node in module.nodes:
            value = _value(names, node)
            if value is not None and _is_true(value):
                yield self._found(module, project, value)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if SETTING.is_option(node.value) and _asks(node.value):
                    yield self._found(module, project, node)

    def check_text(self, source: SourceFile, project: Project) -> Iterator[Finding]:
        """The places in another file that set it."""
        if not SETTING.occurs(source.text):
            return
        from remat_migrate.formats.files import plan_text

        uses, _ = plan_text(source, SETTING)
        for use in uses:
            if use.form != "read" and SETTING.truth(use.value) is True:
                yield self.finding(
                    source,
                    Span(use.start, use.end),
                    _MESSAGE,
                    severity=severity(project),
                    reason=because(_REASON),
                )

    def _found(self, module: Module, project: Project, node: ast.expr) -> Finding:
        fix = None
        if isinstance(node, ast.Constant) and not SETTING.occurs(str(node.value)):
            text = _WRITTEN_FALSE[type(node.value)]
            change = Replace(module, node, Code(text))
            fix = Fix("write that it is off", Safety.UNSAFE, (change,))
        return self.finding(
            module.source,
            module.span(node),
            _MESSAGE,
            severity=severity(project),
            fix=fix,
            reason="" if fix else because(_REASON),
        )


def _value(names: Names, node: ast.AST) -> ast.expr | None:
    """What a piece of code sets the flag, or its variable, to."""
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
            names.function(function) & {f"jax.{BARRIER_FLAG}", f"jax._src.config.{_OBJECT}"}
        ):
            return value
    return None


# The flag's object, which is called to set it for a `with`.
_OBJECT = BARRIER_FLAG.removeprefix("jax_")


def _is_true(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=bool() | int() as given):
            return bool(given)
        case ast.Constant(value=str(text)):
            return SETTING.truth(text) is True
    return False


def _asks(word: str) -> bool:
    """Whether an option turns it on."""
    if word.lstrip("-").startswith("no"):
        return False
    _, equals, value = word.partition("=")
    return not equals or SETTING.truth(value) is True
