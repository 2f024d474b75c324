"""Which bindings reach a use of a name: order, branches, loops, closures, every binding form."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from remat_migrate.analysis.names.module import FunctionNode, Module
from remat_migrate.text import SourceFile


def parsed(code: str) -> Module:
    source = SourceFile(Path("/m.py"), code)
    return Module(source, source.parse(), "m")


def line_of(node: ast.AST) -> int:
    if isinstance(node, ast.comprehension):
        node = node.target
    assert isinstance(
        node, ast.stmt | ast.expr | ast.arg | ast.alias | ast.pattern | ast.excepthandler
    )
    return node.lineno


def lines_that_reach(code: str) -> set[int]:
    """The lines of the bindings that the reads of `f` in the line with `# here` may see."""
    module = parsed(code)
    line = next(n for n, text in enumerate(code.splitlines(), 1) if "# here" in text)
    reads = [
        node
        for node in module.nodes
        if isinstance(node, ast.Name) and (node.id, node.lineno) == ("f", line)
        if isinstance(node.ctx, ast.Load)
    ]
    assert reads
    return {line_of(binding.node) for read in reads for binding in module.reaching(read)}


STRAIGHT = [
    ("f = 1\nf.x = f  # here", {1}),
    ("f: int = 1\nf  # here", {1}),
    ("a, (f, *b) = x\nf  # here", {1}),
    ("import f.g\nimport f.h\nf  # here", {1, 2}),
    ("def f(): pass\n@f  # here\ndef f(): pass", {1}),
]

BRANCHES = [
    ("if c:\n  f = 1\n  f  # here\nelse:\n  f = 2", {2}),
    ("if c:\n  from a import f\nelse:\n  from b import f\nf  # here", {2, 4}),
    ("f = 0\nmatch x:\n  case 1:\n    f = 1\n  case _:\n    f = 2\nf  # here", {4, 6}),
    ("match x:\n  case {**f}:\n    f  # here", {2}),
]

LOOPS = [
    ("f = 0\nfor f in x:\n  pass\nf  # here", {1, 2}),
    ("f = 0\nwhile True:\n  f = 1\n  if c:\n    break\nf  # here", {3}),
    ("async def o():\n  async with x as f:\n    f  # here", {2}),
]

TRIES = [
    ("f = 0\ntry:\n  f = g()\nfinally:\n  f  # here", {1, 3}),
    ("try:\n  f = 1\nexcept E as f:\n  f  # here", {3}),
    ("try:\n  f = 1\nexcept E:\n  raise\nelse:\n  f  # here", {2}),
    ("f = 0\nwhile c:\n  try:\n    f = 1\n    break\n  finally:\n    g()\nf  # here", {1, 4}),
]

EXPRESSIONS = [
    ("f = 1\n[g for g in f]  # here", {1}),
    ("f = 1\nc and (f := 2)\nf  # here", {1, 2}),
    ("def o():\n  return [f(y) for f in x for y in f]  # here", {2}),
]

CLOSURES = [
    ("f = 1\ndef g():\n  f = 2\n  return f  # here", {3}),
    ("def o():\n  while c:\n    def g():\n      return f  # here\n    f = 1", {5}),
    ("def o(f):\n  return f  # here", {1}),
    ("def o():\n  f = 1\n  def g():\n    nonlocal f\n    f = 2\n  g()\n  return f  # here", {2, 5}),
]

CLASSES = [
    # The names of a class body are not seen in its methods.
    ("f = 0\nclass A:\n  f = 1\n  def m(self):\n    return f  # here", {1}),
    ("def o():\n  f = 1\n  class A:\n    x = f  # here\n  f = 2", {2}),
]


@pytest.mark.parametrize(
    ("code", "lines"),
    [*STRAIGHT, *BRANCHES, *LOOPS, *TRIES, *EXPRESSIONS, *CLOSURES, *CLASSES],
)
def test_reaching_bindings(code: str, lines: set[int]) -> None:
    assert lines_that_reach(code) == lines


def test_qualified_names_and_statements() -> None:
    module = parsed("class A:\n  def g(self):\n    def h():\n      return (lambda: 1)\n")
    names = {module.qualified_name(n) for n in module.nodes if isinstance(n, FunctionNode)}
    assert names == {"m.A.g", "m.A.g.h", "m.A.g.h.<lambda>"}
    constant = next(n for n in module.nodes if isinstance(n, ast.Constant))
    assert isinstance(module.statement(constant), ast.Return)
    function = module.enclosing_function(constant)
    assert isinstance(function, ast.Lambda)
