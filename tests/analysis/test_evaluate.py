"""What expressions denote: through modules, assignments, classes, containers, calls."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from remat_migrate.analysis import Project
from remat_migrate.analysis.values.values import (
    Applied,
    Bound,
    Class,
    Constant,
    Container,
    External,
    Function,
    Instance,
    ModuleValue,
    Parameter,
    Partial,
    Result,
    Value,
    Wrapped,
)

HEAD = "import functools\nfrom functools import partial\nimport jax\ndef f(): pass\n"
CK = "from jax import checkpoint as ck"


def shown(value: Value | None) -> str:
    match value:
        case None:
            return "?"
        case External(name):
            return name
        case ModuleValue(module):
            return f"module {module.name}"
        case Function(module, node):
            return f"def {module.qualified_name(node)}"
        case Class(module, node):
            return f"class {module.qualified_name(node)}"
        case Instance(cls):
            return f"instance({shown(cls)})"
        case Bound(func, _):
            return f"bound({shown(func)})"
        case Partial(func=func):
            return f"partial({shown(func)})"
        case Applied(target=target):
            return f"applied({shown(target)})"
        case Wrapped(how=how, func=func):
            return f"{how}({shown(func)})"
        case Container(node=node):
            return f"container {ast.unparse(node)}"
        case Constant(constant):
            return repr(constant)
        case Parameter(name=name):
            return f"parameter {name}"
        case Result(name):
            return f"result {name}"


def denoted(project: Project) -> set[str]:
    """What the value assigned to `probe` may denote."""
    for path in project.files.all:
        module = project.module(path)
        assert module is not None
        for node in module.nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id="probe")], value=value):
                    return {shown(value) for value in project.values(module, value)}
    raise AssertionError("no probe")


NAMES = [
    ("from jax import remat as r\nprobe = r", "jax.remat"),
    ("from jax import *\nprobe = checkpoint", "jax.checkpoint"),
    ("from torch.utils.checkpoint import checkpoint\nprobe = checkpoint",
     "torch.utils.checkpoint.checkpoint"),
    ("import jax.numpy as jnp\nprobe = jnp.sin(1)", "result jax.numpy.sin"),
]  # fmt: skip

ASSIGNMENTS = [
    ("a, (b, c) = 1, (jax.remat, 2)\nprobe = b", "jax.remat"),
    ("if c:\n  f = jax.checkpoint(f)\nprobe = f", "applied(def m.f)", "def m.f"),
    ("ck = None\ndef setup():\n  global ck\n  ck = jax.checkpoint\ndef use():\n  probe = ck",
     "None", "jax.checkpoint"),
    ("def g(*, r=jax.remat):\n  probe = r", "parameter r", "jax.remat"),
]  # fmt: skip

CALLS = [
    ("probe = jax.checkpoint(fun=f)", "applied(def m.f)"),
    ("probe = partial(jax.checkpoint, policy=1)", "partial(jax.checkpoint)"),
    ("probe = partial(jax.checkpoint, f)()", "applied(def m.f)"),
    ("probe = jax.jit(f)", "jax.jit(def m.f)"),
]  # fmt: skip

FACTORIES = [
    ("def mk(policy):\n  def deco(g):\n    return jax.checkpoint(g, policy=policy)\n"
     "  return deco\nprobe = mk(1)(f)", "applied(def m.f)"),
    ("def maybe(g, flag):\n  if flag:\n    return jax.checkpoint(g)\n  return g\n"
     "probe = maybe(f, True)", "applied(def m.f)", "def m.f"),
]  # fmt: skip

DECORATORS = [
    ("@jax.jit\n@jax.checkpoint\ndef h(): pass\nprobe = h", "jax.jit(applied(def m.h))"),
    ("@jax.jit(static_argnums=0)\ndef h(): pass\nprobe = h", "jax.jit(def m.h)"),
    ("@unknown\ndef h(): pass\nprobe = h", "?(def m.h)"),
]

CLASSES = [
    ("class A:\n  def g(self): pass\nclass B(A): pass\nprobe = B().g", "bound(def m.A.g)"),
    ("class A:\n  @staticmethod\n  def g(x): pass\nprobe = A().g", "def m.A.g"),
    ("class A:\n  @property\n  def g(self): return jax.remat\nprobe = A().g", "jax.remat"),
    ("class A:\n  @property\n  async def g(self): return jax.remat\nprobe = A().g", None),
    ("class A: pass\ndef g(x: A):\n  probe = x", "parameter x", "instance(class m.A)"),
    ("class A: pass\ndef g(x: A | None):\n  probe = x", "parameter x", "instance(class m.A)"),
    ("import flax.linen as nn\nclass B(nn.Module): pass\nprobe = nn.remat(B)",
     "applied(class m.B)"),
]  # fmt: skip

BOTH = ("jax.checkpoint", "jax.remat")
CONTAINERS = [
    ("L = [jax.checkpoint, jax.remat]\nprobe = L[i]", *BOTH),
    ("D = {'a': jax.checkpoint, 'b': jax.remat}\nprobe = D[k]", *BOTH),
    ("D = {'a': jax.checkpoint}\nE = {**D, 'b': jax.remat}\nprobe = E['a']", "jax.checkpoint"),
    ("D = dict(a=jax.checkpoint, b=jax.remat)\nprobe = D['b']", "jax.remat"),
    ("D = dict(a=jax.checkpoint, b=jax.remat)\nprobe = D[k]", *BOTH),
    ("L = [jax.checkpoint]\nL.extend([jax.remat])\nprobe = L[i]", *BOTH),
    ("L = [jax.checkpoint]\nL += [jax.remat]\nprobe = L[i]", *BOTH),
    ("L = []\nL.extend(L)\nprobe = L[0]", None),
]  # fmt: skip

LOOPS = [
    ("for i, r in enumerate([jax.checkpoint, jax.remat]):\n  probe = r", *BOTH),
    ("D = {'a': jax.checkpoint, 'b': jax.remat}\nfor r in D.values():\n  probe = r", *BOTH),
    ("L = []\nfor i in range(3):\n  L.append(jax.checkpoint(f))\nfor r in L:\n  probe = r",
     "applied(def m.f)"),
    ("[(probe := r) for r in [jax.remat]]\nprobe = probe", "jax.remat"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "values"),
    [
        *((code, values) for code, *values in NAMES),
        *(
            (HEAD + code, values)
            for code, *values in (
                *ASSIGNMENTS,
                *CALLS,
                *FACTORIES,
                *DECORATORS,
                *CLASSES,
                *CONTAINERS,
                *LOOPS,
            )
        ),
    ],
)
def test_values_in_one_module(open_project, code: str, values: list[str | None]) -> None:
    assert denoted(open_project(code)) == {value for value in values if value is not None}


MODULES = [
    ({"m.py": "import pkg\nprobe = pkg.ck", "pkg/__init__.py": "from pkg.lib import *",
      "pkg/lib.py": CK}, "jax.checkpoint"),
    # A project's module of that name is not the library, but the library keeps its names.
    ({"m.py": "import checkpoint\nprobe = checkpoint.remat",
      "checkpoint.py": "def remat(f): return f"}, "def checkpoint.remat"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "value"), MODULES)
def test_values_across_modules(open_project, files: Mapping[str, str], value: str | None) -> None:
    assert denoted(open_project(files)) == ({value} if value is not None else set())


def test_a_wrapper_named_in_the_settings_is_an_api(open_project) -> None:
    from remat_migrate.settings.settings import Wrapper

    project = open_project(
        {
            "m.py": "from lib import maybe\ndef f(): pass\nprobe = maybe(f)",
            "lib.py": "def maybe(f):\n  return f",
        },
        wrappers=(Wrapper("lib.maybe"),),
    )
    assert denoted(project) == {"applied(def m.f)"}


def test_evaluation_comes_to_an_end(open_project) -> None:
    """Code that goes in circles, and more alternatives than can matter."""
    circles = "f = g\ng = f\nh = (lambda: h())()\nclass A(A): pass\nprobe = [f, g, h, A().x][i]"
    assert denoted(open_project(circles)) <= {"class m.A"}
    many = HEAD + "".join(f"if c{n}:\n  f = jax.checkpoint(f)\n" for n in range(12)) + "probe = f"
    assert denoted(open_project(many)) == set()
