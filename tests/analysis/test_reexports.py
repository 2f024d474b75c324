"""Re-exports: a checkpoint is found under whatever name other files of the project give it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support import write_files

from remat_migrate.engine.check import check_run
from remat_migrate.engine.run import prepare
from remat_migrate.settings import Options

BLOCK = "def block(x, flag):\n    return x * 2 if flag else x\n"
ALIAS = "import jax\n\nck = jax.checkpoint\n"
PARTIAL = "from functools import partial\n\n"


def use(imports: str, name: str, options: str = ", concrete=True") -> str:
    """A file that applies what it imports under a name, and needs the value of an argument."""
    return (
        f"{imports}\n\n\n{BLOCK}\n\nstep = {name}(block{options})\n\n\n"
        "def main(x):\n    return step(x, True)\n"
    )


# The file in which the finding is comes last.
CHAINS: dict[str, dict[str, str]] = {
    "one name": {
        "a.py": ALIAS,
        "b.py": "from a import ck\n",
        "c.py": use("from b import ck", "ck"),
    },
    "a new name at each hop": {
        "a.py": ALIAS,
        "b1.py": "from a import ck as k1\n",
        "b2.py": "from b1 import k1 as k2\n",
        "b3.py": "from b2 import k2\n\nk3 = k2\n",
        "b4.py": "import b3\n\nk4 = b3.k3\n",
        "c.py": use("from b4 import k4 as save_mem", "save_mem"),
    },
    "a name that two files give": {
        "a1.py": ALIAS,
        "a2.py": ALIAS.replace("checkpoint", "remat"),
        "b.py": "from a2 import ck\n",
        "c.py": use("from b import ck", "ck"),
    },
    "an attribute of a module": {"a.py": ALIAS, "c.py": use("import a as m", "m.ck")},
    "a module of a module": {
        "a.py": ALIAS,
        "b.py": "import a as m\n",
        "c.py": use("import b", "b.m.ck"),
    },
    "a package": {
        "pkg/__init__.py": "from .core import *\n",
        "pkg/core/__init__.py": "from .ops import ck as save_mem\n",
        "pkg/core/ops.py": ALIAS,
        "c.py": use("import pkg", "pkg.save_mem"),
    },
    "a module of a package": {
        "pkg/__init__.py": "",
        "pkg/ops.py": ALIAS,
        "pkg/mid.py": "from . import ops\n",
        "c.py": use("from pkg import mid", "mid.ops.ck"),
    },
    "relative imports": {
        "pkg/__init__.py": "",
        "pkg/ops.py": ALIAS,
        "pkg/mid.py": "from .ops import ck as kk\n",
        "pkg/sub/__init__.py": "",
        "pkg/sub/c.py": use("from ..mid import kk", "kk"),
    },
    "stars": {"a.py": ALIAS, "b.py": "from a import *\n", "c.py": use("from b import *", "ck")},
    "a star with __all__": {
        "a.py": "import jax\n\n__all__ = ['_ck']\n_ck = jax.checkpoint\n",
        "b.py": "from a import *\n",
        "c.py": use("from b import _ck", "_ck"),
    },
    "a class": {
        "a.py": "import jax\n\n\nclass ops:\n    ck = staticmethod(jax.checkpoint)\n",
        "b.py": "from a import ops as tools\n",
        "c.py": use("import b", "b.tools.ck"),
    },
    "an inherited method": {
        "a.py": ALIAS,
        "b.py": "from a import ck\n\n\nclass Base:\n    wrap = staticmethod(ck)\n",
        "c.py": f"from b import Base\n\n\n{BLOCK}\n\nclass Net(Base):\n    def run(self, x):\n"
        "        return self.wrap(block, concrete=True)(x, True)\n",
    },
    "an object": {
        "a.py": "import jax\n\n\nclass Ops:\n    def __init__(self):\n"
        "        self.save = jax.checkpoint\n\n\nops = Ops()\n",
        "b.py": "from a import ops\n",
        "c.py": use("from b import ops", "ops.save"),
    },
    "a namespace": {
        "a.py": "import types\n\nimport jax\n\nops = types.SimpleNamespace(ck=jax.checkpoint)\n",
        "b.py": "from a import ops\n",
        "c.py": use("from b import ops", "ops.ck"),
    },
    "a dictionary": {
        "a.py": "import jax\n\nOPS = {'ck': jax.checkpoint}\n",
        "b.py": "from a import OPS\n\nsave = OPS['ck']\n",
        "c.py": use("from b import save", "save"),
    },
    "an entry of a dictionary": {
        "a.py": ALIAS,
        "b.py": "from a import ck\n\nOPS = dict(ck=ck)\n",
        "c.py": use("from b import OPS", "OPS.get('ck')"),
    },
    "one of several names": {
        "a.py": "import jax\n\nck, tree_map = jax.checkpoint, jax.tree.map\n",
        "b.py": "from a import ck, tree_map\n",
        "c.py": use("from b import ck", "ck"),
    },
    "two names at once": {
        "a.py": "import jax\n\nck = save = jax.checkpoint\n",
        "b.py": "from a import save\n",
        "c.py": use("from b import save", "save"),
    },
    "a partial": {
        "a.py": f"{PARTIAL}import jax\n\nck = partial(jax.checkpoint, prevent_cse=False)\n",
        "b.py": f"{PARTIAL}from a import ck\n\nsave = partial(ck, policy=None)\n",
        "c.py": use("from b import save", "save"),
    },
    "a partial with the option": {
        "c.py": use("from b import save", "save", ""),
        "b.py": "from a import save\n",
        "a.py": f"{PARTIAL}import jax\n\nsave = partial(jax.checkpoint, concrete=True)\n",
    },
    "options of another file": {
        "a.py": ALIAS,
        "b.py": "from a import ck\n",
        "c.py": use("from b import ck\nfrom opts import OPTS", "ck", ", **OPTS"),
        "opts.py": "OPTS = dict(concrete=True)\n",
    },
    "a wrapper": {
        "a.py": ALIAS,
        "b.py": "from a import ck\n\n\ndef save(f, concrete=False):\n"
        "    return ck(f, concrete=concrete)\n",
        "c.py": use("from b import save", "save"),
    },
    "a module of jax": {
        "a.py": "import jax as library\n",
        "b.py": "from a import library\n",
        "c.py": use("from b import library", "library.checkpoint"),
    },
    "an assigned module of jax": {
        "a.py": "import jax\n",
        "b.py": "import a\n\nlibrary = a.jax\n",
        "c.py": use("from b import *", "library.checkpoint"),
    },
    "a module by a star": {
        "a.py": "import jax as library\n",
        "b.py": "from a import *\n",
        "c.py": use("from b import *", "library.checkpoint"),
    },
    "ad_checkpoint": {
        "a.py": "from jax import ad_checkpoint\n",
        "b.py": "from a import ad_checkpoint as adc\n",
        "c.py": use("from b import adc", "adc.checkpoint"),
    },
    "flax": {
        "a.py": "import flax.linen as nn\n\nlift = nn.remat\n",
        "b.py": "from a import lift\n",
        "block.py": "import flax.linen as nn\n\n\nclass Block(nn.Module):\n    @nn.compact\n"
        "    def __call__(self, x, train):\n        return nn.Dense(4)(x) if train else x\n",
        "c.py": "from b import lift\nfrom block import Block\n\nB = lift(Block, concrete=True)\n",
    },
    "its own name again": {
        "a.py": ALIAS,
        "b.py": "import a\n\ncheckpoint = a.ck\n",
        "c.py": use("from b import checkpoint", "checkpoint"),
    },
    "alternatives": {
        "a.py": "try:\n    from jax import remat as ck\nexcept ImportError:\n"
        "    from jax import checkpoint as ck\n",
        "b.py": "import os\n\nif os.name:\n    from a import ck\nelse:\n    ck = None\n",
        "c.py": use("from b import ck", "ck"),
    },
    "files that import one another": {
        "a.py": "from b import *\nimport jax\n\nck = jax.checkpoint\n",
        "b.py": "from a import *\nimport c\n",
        "c.py": use("from b import ck", "ck"),
    },
    "a namespace package": {
        "ns/ops.py": ALIAS,
        "ns/mid.py": "from ns.ops import ck\n",
        "c.py": use("from ns.mid import ck", "ck"),
    },
    "src and tests": {
        "src/pkg/__init__.py": "from .mid import ck\n",
        "src/pkg/ops.py": ALIAS,
        "src/pkg/mid.py": "from pkg.ops import ck\n",
        "tests/test_c.py": use("from pkg import ck", "ck"),
    },
    "an import within a function": {
        "a.py": ALIAS,
        "b.py": "from a import ck\n",
        "c.py": f"{BLOCK}\n\ndef main(x):\n    from b import ck\n\n"
        "    return ck(block, concrete=True)(x, True)\n",
    },
    "a decorator": {
        "a.py": ALIAS,
        "b.py": "from a import ck\n",
        "c.py": f"{PARTIAL}from b import ck\n\n\n@partial(ck, concrete=True)\n{BLOCK}\n\n"
        "def main(x):\n    return block(x, True)\n",
    },
}


def found_in(paths: list[Path]) -> set[tuple[str, str]]:
    """The name of the file and the code of each finding of RMT1."""
    analysis = check_run(prepare(paths, Options(select=("RMT1",))))
    assert not analysis.faults
    return {(finding.path.name, finding.code) for finding in analysis.findings}


@pytest.mark.parametrize("files", CHAINS.values(), ids=CHAINS.keys())
def test_it_is_found(files: Mapping[str, str], tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": "", **files})
    *_, last = files
    expected = (Path(last).name, "RMT101")
    assert expected in found_in([tmp_path])
    # The other files are only read.
    assert expected in found_in([tmp_path / last])


def test_what_only_has_the_same_name_is_not_parsed(tmp_path: Path) -> None:
    """A file is parsed for an alias only where its imports lead to the file that has it."""
    files = {
        "a.py": ALIAS,
        "b.py": "import a\n",
        "c.py": "import b\n\nprint(b.a.ck)\n",
        "other/ck.py": "import os\n\nck = os.getcwd\n",
        "other/d.py": "import ck\n\nprint(ck.ck())\n",
        "other/e.py": "from b import missing\n\n# ck\n",
    }
    write_files(tmp_path, {"pyproject.toml": "", **files})
    project = check_run(prepare([tmp_path], Options())).project
    assert {path.name for path in project.modules} == {"a.py", "c.py"}
