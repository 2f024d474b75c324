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
    ("import jax\nprobe = jax.checkpoint", "jax.checkpoint"),
    ("import jax as j\nprobe = j.checkpoint", "jax.checkpoint"),
    ("from jax import remat as r\nprobe = r", "jax.remat"),
    ("import jax.numpy\nprobe = jax.checkpoint", "jax.checkpoint"),
    ("import jax._src.api\nprobe = jax._src.api.remat", "jax.remat"),
    ("from jax import *\nprobe = checkpoint", "jax.checkpoint"),
    ("import importlib\nprobe = importlib.import_module('jax').remat", "jax.remat"),
    ("import jax\nprobe = getattr(jax, 'checkpoint')", "jax.checkpoint"),
    ("from torch.utils.checkpoint import checkpoint\nprobe = checkpoint",
     "torch.utils.checkpoint.checkpoint"),
    ("def checkpoint(f): return f\nprobe = checkpoint", "def m.checkpoint"),
    ("from jax import checkpoint\ndef checkpoint(f): return f\nprobe = checkpoint",
     "def m.checkpoint"),
    ("import jax.numpy as jnp\nprobe = jnp.sin(1)", "result jax.numpy.sin"),
    ("probe = len", "builtins.len"),
    ("probe = missing", None),
]  # fmt: skip

ASSIGNMENTS = [
    ("a = b = jax.checkpoint\nprobe = b", "jax.checkpoint"),
    ("a, b = jax.checkpoint, jax.remat\nprobe = a", "jax.checkpoint"),
    ("a, (b, c) = 1, (jax.remat, 2)\nprobe = b", "jax.remat"),
    ("probe = (r := jax.checkpoint)", "jax.checkpoint"),
    ("f = jax.checkpoint(f)\nprobe = f", "applied(def m.f)"),
    ("if c:\n  f = jax.checkpoint(f)\nprobe = f", "applied(def m.f)", "def m.f"),
    ("probe = jax.checkpoint(f) if c else f", "applied(def m.f)", "def m.f"),
    ("probe = jax.remat or f", "jax.remat", "def m.f"),
    ("ck = None\ndef setup():\n  global ck\n  ck = jax.checkpoint\ndef use():\n  probe = ck",
     "None", "jax.checkpoint"),
    ("try:\n  from jax import checkpoint as c\nexcept ImportError:\n  c = None\nprobe = c",
     "jax.checkpoint", "None"),
    ("def g(r=jax.remat):\n  probe = r", "parameter r", "jax.remat"),
    ("def g(*, r=jax.remat):\n  probe = r", "parameter r", "jax.remat"),
]  # fmt: skip

CALLS = [
    ("probe = jax.checkpoint(f)", "applied(def m.f)"),
    ("probe = jax.checkpoint(fun=f)", "applied(def m.f)"),
    ("probe = jax.checkpoint(unknown)", "applied(?)"),
    ("probe = partial(jax.checkpoint, policy=1)", "partial(jax.checkpoint)"),
    ("ck = partial(jax.checkpoint, policy=1)\nprobe = ck(f)", "applied(def m.f)"),
    ("ck = partial(partial(jax.remat, policy=1), prevent_cse=False)\nprobe = ck(f)",
     "applied(def m.f)"),
    ("probe = partial(jax.checkpoint, f)()", "applied(def m.f)"),
    ("probe = partial(f, 1)", "partial(def m.f)"),
    ("probe = jax.checkpoint(partial(f, 1))", "applied(partial(def m.f))"),
    ("probe = jax.jit(f)", "jax.jit(def m.f)"),
    ("probe = jax.jit(jax.checkpoint(f))", "jax.jit(applied(def m.f))"),
    ("probe = (lambda: jax.remat)()", "jax.remat"),
]  # fmt: skip

FACTORIES = [
    ("def mk(g):\n  return jax.checkpoint(g)\nprobe = mk(f)", "applied(def m.f)"),
    ("mk = lambda g: jax.checkpoint(g)\nprobe = mk(f)", "applied(def m.f)"),
    ("def mk(policy):\n  def deco(g):\n    return jax.checkpoint(g, policy=policy)\n"
     "  return deco\nprobe = mk(1)(f)", "applied(def m.f)"),
    ("def mk(p):\n  return partial(jax.checkpoint, policy=p)\n@mk(1)\ndef h(): pass\nprobe = h",
     "applied(def m.h)"),
    ("def mk(g):\n  return jax.checkpoint(g)\n@mk\ndef h(): pass\nprobe = h", "applied(def m.h)"),
    ("def maybe(g, flag):\n  if flag:\n    return jax.checkpoint(g)\n  return g\n"
     "probe = maybe(f, True)", "applied(def m.f)", "def m.f"),
    ("def mk(g, h):\n  return jax.checkpoint(h)\nprobe = mk(1, h=f)", "applied(def m.f)"),
    ("def rec(n):\n  return rec(n - 1) if n else jax.remat\nprobe = rec(3)", "jax.remat"),
]  # fmt: skip

DECORATORS = [
    ("@jax.checkpoint\ndef h(): pass\nprobe = h", "applied(def m.h)"),
    ("@partial(jax.checkpoint, policy=1)\ndef h(): pass\nprobe = h", "applied(def m.h)"),
    ("@jax.jit\n@jax.checkpoint\ndef h(): pass\nprobe = h", "jax.jit(applied(def m.h))"),
    ("@jax.checkpoint\n@jax.jit\ndef h(): pass\nprobe = h", "applied(jax.jit(def m.h))"),
    ("@partial(jax.jit, static_argnums=0)\ndef h(): pass\nprobe = h", "jax.jit(def m.h)"),
    ("@jax.jit(static_argnums=0)\ndef h(): pass\nprobe = h", "jax.jit(def m.h)"),
    ("@functools.wraps(f)\ndef h(): pass\nprobe = h", "def m.h"),
    ("@unknown\ndef h(): pass\nprobe = h", "?(def m.h)"),
]

CLASSES = [
    ("class A:\n  @jax.checkpoint\n  def g(self): pass\nprobe = A.g", "applied(def m.A.g)"),
    ("class A:\n  @jax.checkpoint\n  def g(self): pass\nprobe = A().g",
     "bound(applied(def m.A.g))"),
    ("class A:\n  def g(self): pass\nclass B(A): pass\nprobe = B().g", "bound(def m.A.g)"),
    ("class A:\n  def g(self): pass\nclass B(A):\n  def g(self): pass\nprobe = B().g",
     "bound(def m.B.g)"),
    ("class A:\n  def g(self): pass\nclass B(A):\n  def g(self):\n    probe = super().g",
     "bound(def m.A.g)"),
    ("class A:\n  @staticmethod\n  def g(x): pass\nprobe = A().g", "def m.A.g"),
    ("class A:\n  @classmethod\n  def g(cls): pass\nprobe = A.g", "bound(def m.A.g)"),
    ("class A:\n  @classmethod\n  def g(cls):\n    probe = cls", "class m.A"),
    ("class A:\n  @property\n  def g(self): return jax.remat\nprobe = A().g", "jax.remat"),
    ("class A:\n  @property\n  async def g(self): return jax.remat\nprobe = A().g", None),
    ("class A:\n  def g(self):\n    self.h = jax.checkpoint(self.g)\n  def k(self):\n"
     "    probe = self.h", "applied(bound(def m.A.g))"),
    ("class A:\n  r = jax.remat\n  def g(self):\n    probe = self.r", "jax.remat"),
    ("class A: pass\ndef g(x: A):\n  probe = x", "parameter x", "instance(class m.A)"),
    ("class A: pass\ndef g(x: A | None):\n  probe = x", "parameter x", "instance(class m.A)"),
    ("from typing import Optional\nclass A: pass\ndef g(x: Optional[A]):\n  probe = x",
     "parameter x", "instance(class m.A)"),
    ("class A:\n  def __call__(self): pass\n  def g(self):\n    probe = self.__call__",
     "bound(def m.A.__call__)"),
    ("import flax.linen as nn\nclass B(nn.Module): pass\nprobe = nn.remat(B)",
     "applied(class m.B)"),
    ("import flax.linen as nn\nclass B(nn.Module): pass\nprobe = nn.remat(B)()",
     "instance(applied(class m.B))"),
]  # fmt: skip

BOTH = ("jax.checkpoint", "jax.remat")
CONTAINERS = [
    ("probe = [jax.checkpoint, 1][0]", "jax.checkpoint"),
    ("L = [jax.checkpoint, jax.remat]\nprobe = L[-1]", "jax.remat"),
    ("L = [jax.checkpoint, jax.remat]\nprobe = L[i]", *BOTH),
    ("L = [jax.checkpoint]\nprobe = [*L, jax.remat][i]", *BOTH),
    ("D = {'a': jax.checkpoint, 'b': jax.remat}\nprobe = D['b']", "jax.remat"),
    ("D = {'a': jax.checkpoint, 'b': jax.remat}\nprobe = D[k]", *BOTH),
    ("D = {'a': jax.checkpoint}\nE = {**D, 'b': jax.remat}\nprobe = E['a']", "jax.checkpoint"),
    ("D = {'a': jax.checkpoint, 'b': jax.remat}\nprobe = D.get('b')", "jax.remat"),
    ("D = {'a': jax.checkpoint}\nprobe = D.get('b', jax.remat)", "jax.remat"),
    ("D = dict(a=jax.checkpoint, b=jax.remat)\nprobe = D['b']", "jax.remat"),
    ("D = dict(a=jax.checkpoint, b=jax.remat)\nprobe = D[k]", *BOTH),
    ("D = {}\nD['a'] = jax.checkpoint\nD['b'] = 1\nprobe = D['a']", "jax.checkpoint"),
    ("L = []\nL.append(jax.checkpoint)\nL.insert(0, jax.remat)\nprobe = L[i]", *BOTH),
    ("L = [jax.checkpoint]\nL.extend([jax.remat])\nprobe = L[i]", *BOTH),
    ("L = [jax.checkpoint]\nL += [jax.remat]\nprobe = L[i]", *BOTH),
    ("L = []\nL.extend(L)\nprobe = L[0]", None),
    ("L = [jax.checkpoint(f) for i in range(3)]\nprobe = L[0]", "applied(def m.f)"),
    ("class A:\n  def g(self):\n    self.L = []\n    self.L.append(jax.remat)\n"
     "  def h(self):\n    probe = self.L[0]", "jax.remat"),
]  # fmt: skip

LOOPS = [
    ("for r in (jax.checkpoint, jax.remat):\n  probe = r", *BOTH),
    ("for n, r in [('a', jax.checkpoint), ('b', jax.remat)]:\n  probe = r", *BOTH),
    ("for i, r in enumerate([jax.checkpoint, jax.remat]):\n  probe = r", *BOTH),
    ("for a, r in zip(x, [jax.checkpoint, jax.remat]):\n  probe = r", *BOTH),
    ("D = {'a': jax.checkpoint, 'b': jax.remat}\nfor k, r in D.items():\n  probe = r", *BOTH),
    ("D = {'a': jax.checkpoint, 'b': jax.remat}\nfor r in D.values():\n  probe = r", *BOTH),
    ("D = {jax.checkpoint: 1}\nfor r in D:\n  probe = r", "jax.checkpoint"),
    ("for r in reversed([jax.checkpoint]):\n  probe = r", "jax.checkpoint"),
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
    from remat_migrate.settings import Wrapper

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
