"""Programs that hold a checkpointed function and call it elsewhere, by keyword: values after
`--fix`.

The fix may not name static arguments by position unless it sees every call, which it then edits.
"""

from __future__ import annotations

import numpy as np
import pytest

HEAD = """\
import functools
import itertools
from collections import deque

import jax


def block(x, flag):
    return x * 2 if flag else x


"""
SITE = "jax.checkpoint(block, concrete=True)"
# Most ways to the call are not followed.
FORMS = [
    "T = deque()\nT.append({site})\ny = T[0](1.0, flag=True)\n",
    "T = []\n\n\ndef add(to):\n    to.append({site})\n\n\nadd(T)\ny = T[0](1.0, flag=True)\n",
    "T = [[abs]]\nT[0].append({site})\ny = T[0][1](1.0, flag=True)\n",
    "T = [abs]\nT += [{site}]\ny = T[1](1.0, flag=True)\n",
    "T = [abs, abs]\nT[1:] = [{site}]\ny = T[1](1.0, flag=True)\n",
    "T = [abs, {site}]\na, *rest = T\ny = rest[0](1.0, flag=True)\n",
    "T = {{}}\nT.update({{'g': {site}}})\ny = T['g'](1.0, flag=True)\n",
    "y = next(iter([{site}]))(1.0, flag=True)\n",
    "y = next(itertools.cycle([{site}]))(1.0, flag=True)\n",
    "class M:\n    def __init__(self):\n        self.a, self.g = 1, {site}\n\n"
    "    def f(self, x):\n        return self.g(x, flag=True)\n\n\ny = M().f(1.0)\n",
    "class M:\n    def __init__(self, gs):\n        self.gs = gs\n\n"
    "    def f(self, x):\n        return self.gs[0](x, flag=True)\n\n\ny = M([{site}]).f(1.0)\n",
    "class M:\n    def __init_subclass__(cls, g):\n        cls.g = staticmethod(g)\n\n\n"
    "class N(M, g={site}):\n    pass\n\n\ny = N.g(1.0, flag=True)\n",
    "def apply(x, g):\n    return g(x, flag=True)\n\n\ny = apply(*[1.0, {site}])\n",
    "@functools.cache\ndef make():\n    return {site}\n\n\ny = make()(1.0, flag=True)\n",
    "g = {site}\ny = globals()['g'](1.0, flag=True)\n",
    "def use(run, x):\n    return functools.partial(run, {site})(x)\n\n\n"
    "y = use(*[lambda g, x: g(x, flag=True), 1.0])\n",
    "g = {site}\ny = eval('g(1.0, flag=True)')\n",
    "T = [('g', {site})]\nfor name, g in T:\n    y = g(1.0, flag=True)\n",
    "T = []\nT.append({site})\nfor i, g in enumerate(T):\n    y = g(1.0, flag=True)\n",
    "T = {{'g': ({site}, 1)}}\ny = T['g'][0](1.0, flag=True)\n",
    "def apply(x, g):\n    return g(x, flag=True)\n\n\n"
    "f = functools.partial(apply, g={site} if jax else None)\ny = f(1.0)\n",
]
TARGETS = [f"form{number}:main" for number in range(len(FORMS))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, remat_migrate):
    folder = tmp_path_factory.mktemp("forms")
    for number, form in enumerate(FORMS):
        text = f"{HEAD}{form.format(site=SITE)}\n\ndef main():\n    return y\n"
        (folder / f"form{number}.py").write_text(text)
    assert remat_migrate(folder, "--fix", ".").returncode in (0, 1)
    return folder


@pytest.fixture(scope="module")
def values(folder, run_programs):
    return run_programs(folder, *TARGETS)


def test_some_are_fixed(folder):
    texts = [path.read_text() for path in folder.glob("*.py")]
    assert sum(SITE not in text for text in texts) >= 5


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_same_value_where_it_is_fixed(number, folder, values):
    if SITE not in (folder / f"form{number}.py").read_text():
        value = values[f"form{number}:main"]
        assert not isinstance(value, str), value
        np.testing.assert_array_equal(value["."], 2.0)
