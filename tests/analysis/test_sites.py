"""Sites: every way in which real code applies a checkpoint, and what is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst
import libcst.matchers as m
import pytest

from remat_migrate.analysis import Project, Site
from remat_migrate.analysis.sites.find_sites import sites_in, sites_of
from remat_migrate.codemod.writer import write
from remat_migrate.text import apply_edits

HEAD = """\
import functools
from functools import partial
import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
from flax import nnx
from flax.linen import partitioning as nn_partitioning
"""


def sites(project: Project, name: str = "m.py") -> list[Site]:
    return sites_in(project, project.modules[project.settings.root / name])


def outlined(site: Site) -> tuple[str, str, str | None]:
    return site.api, site.form, site.target


FORMS = [
    # The forms of real code, most frequent first.
    ("f = jax.checkpoint(f)", ("jax.checkpoint", "assigned", "f")),
    ("if c:\n  block = nn.remat(Block)", ("flax.linen.remat", "assigned", "Block")),
    ("@partial(jax.checkpoint, policy=p)\ndef g(x): ...",
     ("jax.checkpoint", "decorator-partial", "g")),
    ("@functools.partial(jax.remat, static_argnums=(1,))\ndef g(x): ...",
     ("jax.remat", "decorator-partial", "g")),
    ("y = jax.remat(f)(x)", ("jax.remat", "applied", "f")),
    ("y = hk.remat(self.block)(x)", ("haiku.remat", "applied", "self.block")),
    ("run(jax.checkpoint(f))", ("jax.checkpoint", "argument", "f")),
    ("run(body=jax.checkpoint(f))", ("jax.checkpoint", "argument", "f")),
    ("z = jax.checkpoint(f) if c else f", ("jax.checkpoint", "conditional", "f")),
    ("z = c and jax.checkpoint(f)", ("jax.checkpoint", "conditional", "f")),
    ("z = [nn.remat(B)() for B in blocks]", ("flax.linen.remat", "applied", "B")),
    ("z = [nn.remat(B) for B in blocks]", ("flax.linen.remat", "container", "B")),
    ("z = (jax.checkpoint(f), 1)", ("jax.checkpoint", "container", "f")),
    ("z = {'a': jax.checkpoint(f)}", ("jax.checkpoint", "container", "f")),
    ("run(jax.checkpoint)", ("jax.checkpoint", "reference", None)),
    ("run(wrap=jax.remat)", ("jax.remat", "reference", None)),
    ("@jax.checkpoint\ndef g(x): ...", ("jax.checkpoint", "decorator", "g")),
    ("class A:\n  @nn.remat\n  def g(self, x): ...", ("flax.linen.remat", "decorator", "g")),
    ("remat = nn_partitioning.remat", ("flax.linen.partitioning.remat", "alias", None)),
    ("def g(f):\n  return jax.checkpoint(f)", ("jax.checkpoint", "returned", "f")),
    ("ck = partial(jax.checkpoint, policy=p)", ("jax.checkpoint", "partial", None)),
    ("z = {'a': jax.checkpoint}", ("jax.checkpoint", "reference", None)),
    ("z = lambda g: jax.checkpoint(g)", ("jax.checkpoint", "lambda", "g")),
    ("@nnx.remat(prevent_cse=False)\ndef g(x): ...", ("flax.nnx.remat", "decorator-factory", "g")),
    ("jax.checkpoint(f)", ("jax.checkpoint", "expression", "f")),
    ("z = eqx.filter_checkpoint(layer)", ("equinox.filter_checkpoint", "assigned", "layer")),
    ("z = getattr(jax, 'checkpoint')(f)", ("jax.checkpoint", "assigned", "f")),
    ("z = jax.checkpoint(lambda x: x, policy=p)", ("jax.checkpoint", "assigned", "lambda x: x")),
    ("z = partial(jax.checkpoint, policy=p)(f)", ("jax.checkpoint", "applied", "f")),
    ("z = nn.remat_scan(Block, lengths=(2, 2))", ("flax.linen.remat_scan", "assigned", "Block")),
    ("z = jax.checkpoint(fun=f)", ("jax.checkpoint", "assigned", "f")),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), FORMS)
def test_each_form(open_project, code: str, expected: tuple[str, str, str | None]) -> None:
    assert outlined(sites(open_project(HEAD + code))[0]) == expected


THROUGH_NAMES = [
    ("ck = jax.checkpoint\nck(f)", ("jax.checkpoint", "expression", "f")),
    ("from jax import checkpoint as ck\n@ck\ndef g(): ...", ("jax.checkpoint", "decorator", "g")),
    ("if c:\n  ck = jax.checkpoint\nelse:\n  ck = lambda f: f\nck(f)",
     ("jax.checkpoint", "expression", "f")),
    ("class A:\n  def __init__(self):\n    self.r = jax.remat\n  def g(self):\n    self.r(f)",
     ("jax.remat", "expression", "f")),
    ("class A:\n  ck = jax.checkpoint\nA.ck(f)", ("jax.checkpoint", "expression", "f")),
    ("for name, r in [('a', jax.remat)]:\n  r(f)", ("jax.remat", "expression", "f")),
    ("z = [r(f) for r in (jax.remat,)]", ("jax.remat", "container", "f")),
    ("D = {'a': jax.remat}\nD['a'](f)", ("jax.remat", "expression", "f")),
    ("def g(r=jax.remat):\n  r(f)", ("jax.remat", "expression", "f")),
    ("(r := jax.remat)\nr(f)", ("jax.remat", "expression", "f")),
    ("a, r = 1, jax.remat\nr(f)", ("jax.remat", "expression", "f")),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), THROUGH_NAMES)
def test_through_names(open_project, code: str, expected: tuple[str, str, str | None]) -> None:
    assert expected in map(outlined, sites(open_project(HEAD + code)))


NO_SITES = [
    "from torch.utils.checkpoint import checkpoint\ny = checkpoint(f, x)",
    "import torch.utils.checkpoint as cp\ny = cp.checkpoint(f, x)",
    "import tensorflow as tf\ny = tf.recompute_grad(f)\nz = tf.train.Checkpoint(model=m)",
    "from megatron.core import tensor_parallel\ny = tensor_parallel.checkpoint(f, False, x)",
    "import orbax.checkpoint\ny = orbax.checkpoint.PyTreeCheckpointer()",
    "def checkpoint(f): return f\n@checkpoint\ndef g(): ...",
    "def remat(f, policy): return f\ny = remat(f, 1)",
    "class Saver:\n  def checkpoint(self, f): ...\nSaver().checkpoint(f)",
    "class Saver:\n  def checkpoint(self, f): ...\n  def run(self):\n    self.checkpoint(f)",
    "import jax\ndef run(checkpoint):\n  checkpoint(f)",
    "import jax\njax.checkpoint_policies.nothing_saveable",
    "import jax\njax.ad_checkpoint.checkpoint_name(x, 'a')",
    "from jax.ad_checkpoint import checkpoint_name\ncheckpoint_name(x, 'a')",
    "import jax\ntext = 'jax.checkpoint(f)'  # jax.checkpoint(f)",
    "import jax\njax = object()\njax.checkpoint(f)",
    "from numpyro.contrib import remat\nremat(f)",
]


@pytest.mark.parametrize("code", NO_SITES)
def test_homonyms(open_project, code: str) -> None:
    assert [outlined(site) for site in sites_of(open_project(code))] == []


OPTIONS = [
    ("jax.checkpoint(f, policy=p, prevent_cse=False)", {"policy": "p", "prevent_cse": "False"}),
    ("@partial(jax.checkpoint, static_argnums=(1,))\ndef g(x): ...", {"static_argnums": "(1,)"}),
    ("jax.checkpoint(f, **dict(policy=p))", {"policy": "p"}),
    ("OPTS = {'policy': p, 'prevent_cse': False}\njax.checkpoint(f, **OPTS)",
     {"policy": "p", "prevent_cse": "False"}),
    ("OPTS = {'policy': p, **{'prevent_cse': False}}\njax.checkpoint(f, **OPTS)", {}),
    ("jax.remat(f, True, False)", {"concrete": "True", "prevent_cse": "False"}),
    ("partial(jax.remat, f)(True)", {"concrete": "True"}),
    ("import jax.ad_checkpoint\njax.ad_checkpoint.checkpoint(f, False)", {"prevent_cse": "False"}),
    ("nn.remat(B, True, False, True)",
     {"variables": "True", "rngs": "False", "concrete": "True"}),
    ("ck = partial(jax.remat, policy=p, prevent_cse=True)\nck(f, policy=q)",
     {"policy": "q", "prevent_cse": "True"}),
    ("ck = partial(partial(jax.remat, policy=p), prevent_cse=True)\nck(f)",
     {"policy": "p", "prevent_cse": "True"}),
    ("@nnx.remat(policy=p)\ndef g(x): ...", {"policy": "p"}),
    ("jax.checkpoint(f, *rest)", {}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "options"), OPTIONS)
def test_options(open_project, code: str, options: Mapping[str, str]) -> None:
    assert dict(sites(open_project(HEAD + code))[-1].options) == options


def test_where_an_option_is_written(open_project) -> None:
    project = open_project(HEAD + "ck = partial(jax.remat, concrete=True)\nck(f, None, False)\n")
    site = sites(project)[-1]
    concrete, prevent_cse = site.arguments["concrete"], site.arguments["prevent_cse"]
    # The later one counts.
    assert (concrete.position, concrete.keyword) == (1, None)
    assert concrete.module.segment(concrete.value) == "None"
    assert (prevent_cse.position, prevent_cse.keyword) == (2, None)


@pytest.mark.parametrize(
    ("code", "spread"),
    [
        ("jax.checkpoint(f, **options())", True),
        ("jax.checkpoint(f, **{'policy': p})", False),
        ("def g(**kwargs):\n  jax.checkpoint(f, **kwargs)", True),
        ("jax.checkpoint(f)", False),
    ],
)
def test_spread_that_cannot_be_followed(open_project, code: str, spread: bool) -> None:
    assert sites(open_project(HEAD + code))[-1].spread is spread


@pytest.mark.parametrize(
    ("code", "line", "column"),
    [
        # On a call, where the callee's name starts.
        ("y = run(\n  1,\n  jax.checkpoint(\n    f))", 3, 3),
        # On a decorator, the decorator.
        ("@jax.jit\n@partial(\n  jax.checkpoint,\n  policy=p)\ndef g(x): ...", 2, 2),
        ("@jax.jit\n@jax.checkpoint\ndef g(x): ...", 2, 2),
        ("ck = partial(\n  jax.checkpoint)", 1, 6),
    ],
)
def test_place(open_project, code: str, line: int, column: int) -> None:
    [site] = sites(open_project("import jax\nfrom functools import partial\n" + code))
    assert site.module.source.position(site.span.start) == (line + 2, column)


def test_context_is_the_function_around(open_project) -> None:
    code = "class A:\n  @nn.remat\n  def g(self):\n    def h():\n      jax.remat(f)\njax.remat(f)"
    contexts = [site.context for site in sites(open_project(HEAD + code))]
    assert contexts == ["A", "A.g.h", ""]


def test_alias_exported_by_another_file(open_project) -> None:
    """A file without a telling word is read when a name that it imports turns out to be one."""
    project = open_project(
        {
            "lib.py": "import jax\nfrom functools import partial\nsave = partial(jax.remat)\n",
            "m.py": "from lib import save\n\n\n@save\ndef g(x): ...\n",
            "other.py": "def save(x): ...\n\n\nsave(1)\n",
        }
    )
    assert [outlined(site) for site in sites(project)] == [("jax.remat", "decorator", "g")]


@pytest.mark.parametrize(
    ("common", "code", "api"),
    [
        ("import flax.linen as nn\n", "from common import nn\nnn.remat(B)\n", "flax.linen.remat"),
        ("import flax.linen as nn\n", "import common\ncommon.nn.checkpoint(B)\n",
         "flax.linen.checkpoint"),
        ("import haiku as hk\n", "from common import *\nhk.remat(f)\n", "haiku.remat"),
        ("from jax import ad_checkpoint as adc\n", "from common import adc\nadc.checkpoint(f)\n",
         "jax.ad_checkpoint.checkpoint"),
    ],
)  # fmt: skip
def test_a_library_that_another_file_imports(open_project, common: str, code: str, api: str):
    """The file itself names neither JAX nor Flax."""
    project = open_project({"common.py": common, "m.py": code})
    assert [site.api for site in sites(project)] == [api]


def test_a_wrapper_of_the_settings(open_project) -> None:
    from remat_migrate.settings import Wrapper

    project = open_project(
        {
            "layers.py": "import jax\n\n\ndef maybe_remat(f, **kw):\n  return jax.remat(f, **kw)\n",
            "m.py": "from layers import maybe_remat\n\nB = maybe_remat(f, concrete=True)\n",
        },
        wrappers=(Wrapper("layers.maybe_remat", like="flax.linen.remat"),),
    )
    [site] = sites(project)
    assert outlined(site) == ("layers.maybe_remat", "assigned", "f")
    assert site.definition.counting == "method"
    assert dict(site.options) == {"concrete": "True"}


def test_sites_are_in_order_and_the_same_in_every_run(open_project) -> None:
    code = HEAD + "ck = jax.remat if c else jax.checkpoint\nck(f)\njax.checkpoint(f)\nck(f)\n"
    first = [(site.span, site.api) for site in sites(open_project(code))]
    assert first == sorted(first)
    for _ in range(5):
        assert [(site.span, site.api) for site in sites(open_project(code))] == first


def test_a_site_is_seen_as_libcst(open_project: Callable[..., Project]) -> None:
    text = (
        "import jax\n\n\ndef f(x):\n"
        "    return jax.checkpoint(  # why\n        abs,\n        concrete=True,\n    )(x)\n"
    )
    (site,) = sites_of(open_project(text))
    is_on = m.Arg(m.Name("True"), m.Name("concrete"))
    (arg,) = m.findall(site.node, is_on)
    assert isinstance(arg, libcst.Arg)
    new = site.node.deep_replace(arg, arg.with_changes(value=libcst.Name("False")))
    edits = write([site.changed(new)])
    assert apply_edits(text, edits) == text.replace("True", "False")
