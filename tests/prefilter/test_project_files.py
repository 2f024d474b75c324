"""What is told of a file before it is parsed: nothing with a checkpoint is passed by."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from .conftest import OpenProject

TORCH = "import torch\nfrom torch.utils import checkpoint\n\n"
USES = "f = remat(lambda x: x)\n"

# Each with the files that are looked at.
FOLLOWED: list[tuple[Mapping[str, str], set[str]]] = [
    ({"m.py": "import jax\nf = jax.checkpoint(g)\n"}, {"m.py"}),
    ({"m.py": "import jax\nf = (\n    jax\n    .checkpoint  # here\n)(g)\n"}, {"m.py"}),
    ({"m.py": "import jax\nf = jax. \\\n    checkpoint(g)\n"}, {"m.py"}),
    ({"m.py": "import jax as j\nf = j.remat(g)\n"}, {"m.py"}),
    ({"m.py": "from jax import (\n    jit,  # of course\n    checkpoint as ckpt,\n)\n"}, {"m.py"}),
    ({"m.py": "from jax import jit, \\\n    checkpoint as ckpt\n"}, {"m.py"}),
    ({"m.py": "if x: from jax import remat; f = remat(g)\n"}, {"m.py"}),
    ({"m.py": "import jax\r" + "f = jax.remat(g)\r"}, {"m.py"}),
    ({"m.py": "from jax import *\nf = checkpoint(g)\n"}, {"m.py"}),
    ({"m.py": "import jax\nf = getattr(jax, 'checkpoint')(g)\n"}, {"m.py"}),
    ({"m.py": "import jax\nx = f'{h(jax.checkpoint(g), \"a b\")}'\n"}, {"m.py"}),
    ({"m.py": "import flax.linen as nn\n@nn.remat\nclass A: pass\n"}, {"m.py"}),
    ({"m.py": "from flax import linen\nA = linen.transforms.remat(B)\n"}, {"m.py"}),
    ({"m.py": "def f(lib):\n    return lib.checkpoint(g)\nf(jax)\n"}, {"m.py"}),
    ({"m.py": "import equinox as eqx\nf = eqx.filter_checkpoint(g)\n"}, {"m.py"}),
    ({"m.py": "import haiku as hk\nf = hk.remat_scan(g)\nf = hk.remat(g)\n"}, {"m.py"}),
    ({"m.py": "import jax\nP = jax.checkpoint_policies.dots_saveable\n"}, {"m.py"}),
    # Through other files of the project, which may say nothing of the library.
    ({"a.py": "from jax import remat\n", "b.py": f"from a import remat\n{USES}"}, {"a.py", "b.py"}),
    (
        {"a.py": "import jax\nremat = jax.remat\n", "b.py": f"from a import *\n{USES}"},
        {"a.py", "b.py"},
    ),
    (
        {
            "p/__init__.py": "from .inner import remat\n",
            "p/inner.py": "try:\n    from jax import checkpoint as remat\nexcept E: pass\n",
            "b.py": "import p\nf = p.remat(lambda x: x)\n",
        },
        {"p/__init__.py", "p/inner.py", "b.py"},
    ),
    (
        {
            "p/__init__.py": "from .a import remat\nfrom .b import remat\n",
            "p/a.py": "from p import remat\n",
            "p/b.py": "from jax import remat\n",
            "c.py": f"from p.a import remat\n{USES}",
        },
        {"p/__init__.py", "p/a.py", "p/b.py", "c.py"},
    ),
    (
        {"a.py": "import jax\nckpt = jax.checkpoint\n", "b.py": "import a\nf = a.ckpt(g)\n"},
        {"a.py", "b.py"},
    ),
    (
        {
            "a.py": "import jax\nckpt = jax.checkpoint\n",
            "b.py": "from a import ckpt as c\n",
            "c.py": "from b import c\nf = c(g)\n",
        },
        {"a.py", "b.py", "c.py"},
    ),
    (
        {
            "a.py": "import jax\nclass Of:\n    remat = staticmethod(jax.remat)\n",
            "b.py": "from a import Of\nf = Of.remat(g)\n",
        },
        {"a.py", "b.py"},
    ),
]

PASSED_BY = [
    "# jax.checkpoint\nx = 1\n",
    '"""As jax.checkpoint does, and\njax.remat."""\nx = 1\n',
    "import jax\nimport orbax.checkpoint as ocp\nx = ocp.Saver()\n",
    "import jax\nfrom flax.training import checkpoints\ncheckpoints.restore(checkpoint=x)\n",
    "import jax\n" + TORCH + "f = torch.utils.checkpoint.checkpoint(g)\n",
    "import jax\nfrom torch.utils.checkpoint import checkpoint\nf = checkpoint(g)\n",
    "import jax\ncheckpoint = load('a checkpoint')\nsave(checkpoint)\n",
    "import jax\nfrom .tools import checkpoint\ncheckpoint.save()\n",
    "def f(self):\n    self.checkpoint(self.x)\n",
    "import jax\nfrom here import there\nx = 'jax remat2'\n",
]


@pytest.mark.parametrize(("files", "looked_at"), FOLLOWED)
def test_what_may_hold_one_is_looked_at(
    files: Mapping[str, str], looked_at: set[str], open_project: OpenProject
) -> None:
    project = open_project(files)
    root = project.settings.root
    assert {path.relative_to(root).as_posix() for path in project.modules} == looked_at


@pytest.mark.parametrize("text", PASSED_BY)
def test_other_mentions_are_passed_by(text: str, open_project: OpenProject) -> None:
    assert open_project({"m.py": text, "tools/checkpoint.py": "def save(): pass\n"}).modules == {}


def test_a_rule_may_ask_for_more(open_project: OpenProject) -> None:
    text = "import jax\nx = 'jax remat2'\n"
    assert open_project(text).modules == {}
    assert len(open_project(text, words=("remat2",)).modules) == 1
