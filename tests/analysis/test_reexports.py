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


def use(imports: str, name: str, options: str = ", concrete=True") -> str:
    """A file that applies what it imports under a name, and needs the value of an argument."""
    return (
        f"{imports}\n\n\n{BLOCK}\n\nstep = {name}(block{options})\n\n\n"
        "def main(x):\n    return step(x, True)\n"
    )


# The file in which the finding is comes last.
CHAINS: dict[str, dict[str, str]] = {
    "a package": {
        "pkg/__init__.py": "from .core import *\n",
        "pkg/core/__init__.py": "from .ops import ck as save_mem\n",
        "pkg/core/ops.py": ALIAS,
        "c.py": use("import pkg", "pkg.save_mem"),
    },
    "an entry of a dictionary": {
        "a.py": ALIAS,
        "b.py": "from a import ck\n\nOPS = dict(ck=ck)\n",
        "c.py": use("from b import OPS", "OPS.get('ck')"),
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
    "ad_checkpoint": {
        "a.py": "from jax import ad_checkpoint\n",
        "b.py": "from a import ad_checkpoint as adc\n",
        "c.py": use("from b import adc", "adc.checkpoint"),
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
    "src and tests": {
        "src/pkg/__init__.py": "from .mid import ck\n",
        "src/pkg/ops.py": ALIAS,
        "src/pkg/mid.py": "from pkg.ops import ck\n",
        "tests/test_c.py": use("from pkg import ck", "ck"),
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
