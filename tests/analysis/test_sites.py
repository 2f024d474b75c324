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


NO_SITES = [
    "from megatron.core import tensor_parallel\ny = tensor_parallel.checkpoint(f, False, x)",
    "import orbax.checkpoint\ny = orbax.checkpoint.PyTreeCheckpointer()",
    "class Saver:\n  def checkpoint(self, f): ...\nSaver().checkpoint(f)",
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


def test_a_wrapper_of_the_settings(open_project) -> None:
    from remat_migrate.settings.settings import Wrapper

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
