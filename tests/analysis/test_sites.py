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
