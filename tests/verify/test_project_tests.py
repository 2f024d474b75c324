"""Without --command, the project's own tests give inputs where none can be generated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import cli, write_files

pytestmark = pytest.mark.slow

MODEL = """\
import jax
import jax.numpy as jnp


class Table:
    def __init__(self, secret):
        if secret != "open sesame":
            raise ValueError("wrong secret")
        self.scale = 3.0


def block(x, table, is_training):
    if type(table) is not Table:
        raise TypeError("a table, please")
    return jnp.sin(x) * table.scale if is_training else x


block = jax.checkpoint(block, static_argnums=(1, 2))


def net(x, table, is_training):
    return block(x, table, is_training)
"""

PYTEST = """\
import time

import jax.numpy as jnp
import pytest
from package.model import Table, block


@pytest.fixture
def table():
    return Table("open sesame")


@pytest.mark.parametrize("is_training", [True, False])
def test_block(table, is_training):
    assert block(jnp.ones(3), table, is_training).shape == (3,)


def test_table_hangs():
    Table("open sesame")
    time.sleep(1000)


def test_block_fails(table):
    assert block(None, table, True) is None
"""

ABSL = """\
import jax
import jax.numpy as jnp
import package.model as model
from absl import flags
from absl.testing import absltest, parameterized

SIZE = flags.DEFINE_integer("size_of_block", 3, "Size.")


class NetTest(parameterized.TestCase):
    @parameterized.named_parameters(("train", True), ("eval", False))
    def test_net(self, is_training):
        table = model.Table("open sesame")
        jax.jit(model.net, static_argnums=(1, 2))(jnp.ones(SIZE.value), table, is_training)


if __name__ == "__main__":
    absltest.main()
"""


def verify(folder: Path, tests: str, after: str, *arguments: str) -> dict:
    old, new = folder / "old", folder / "new"
    for root, model in ((old, MODEL), (new, after)):
        files = {
            "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--no-such-option'\n",
            "src/package/__init__.py": "",
            "src/package/model.py": model,
            "tests/test_blocks.py": tests,
            "tests/test_other.py": "def test_other():\n    raise SystemExit\n",
        }
        write_files(root, files)
    ran = cli(new, "verify", "--base", str(old), "--output-format", "json", *arguments)
    found = {verdict["unit"]: verdict for verdict in json.loads(ran.out)["verdicts"]}
    return found["package.model.block"]


SAME = MODEL.replace("jnp.sin(x) * table.scale", "table.scale * jnp.sin(x)")
WRONG = MODEL.replace("jnp.sin(x)", "jnp.cos(x)")


@pytest.mark.parametrize("tests", [PYTEST, ABSL], ids=["pytest", "absl"])
def test_recorded_from_the_tests(tmp_path: Path, tests: str) -> None:
    verdict = verify(tmp_path, tests, SAME)
    assert (verdict["verdict"], verdict["inputs"]) == ("equal", "recorded")
    assert verdict["detail"].startswith("from tests/test_blocks.py::")
    assert "both values of is_training" in verdict["detail"]


def test_a_wrong_migration_is_found(tmp_path: Path) -> None:
    verdict = verify(tmp_path, PYTEST, WRONG)
    assert (verdict["verdict"], verdict["inputs"]) == ("differs", "recorded")


def test_turned_off(tmp_path: Path) -> None:
    verdict = verify(tmp_path, PYTEST, WRONG, "--no-project-tests")
    assert (verdict["verdict"], verdict["inputs"]) == ("not-exercised", None)
