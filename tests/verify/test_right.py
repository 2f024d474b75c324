"""`remat-migrate verify` on right migrations that are easily refused.

Each folder of `fixtures/right` is one: `before.py` in the old API, `after.py` migrated rightly, and
some with faults in `wrong`. They compute in low precision, are random, pass policies
that are called by mistake, need Haiku's context, or get inputs that the code cannot use.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from support import cli

pytestmark = pytest.mark.slow

RIGHT = Path(__file__).parents[2] / "fixtures" / "right"
# Results that vary by themselves prove nothing, unless the programs are the same. A policy is not
# made up.
UNPROVED = {"numpy_noise", "fresh_generator", "clock_key", "policy_parameter"}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What the units of each migration came to."""
    root = tmp_path_factory.mktemp("right")
    for side in ("base", "working"):
        (root / side).mkdir()
        (root / side / "pyproject.toml").write_text("")
    for after in sorted(RIGHT.glob("*/after.py")) + sorted(RIGHT.glob("*/wrong/*.py")):
        folder = RIGHT / after.relative_to(RIGHT).parts[0]
        name = f"{folder.name}__{after.stem}.py"
        (root / "base" / name).write_text((folder / "before.py").read_text())
        (root / "working" / name).write_text(after.read_text())
    ran = cli(root / "working", "verify", "--base", root / "base", ".", "--output-format", "json")
    assert ran.code == 3, ran.err
    found = defaultdict(set)
    for verdict in json.loads(ran.out)["verdicts"]:
        found[verdict["unit"].partition(".")[0]].add(verdict["verdict"])
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in RIGHT.iterdir()))
def test_a_right_migration_is_accepted(outcomes: dict[str, set[str]], name: str) -> None:
    found = outcomes[f"{name}__after"]
    assert not found & {"differs", "fails-after"}
    assert found & {"equal", "close"} or name in UNPROVED


def test_wrong_ones_are_refused(outcomes: dict[str, set[str]]) -> None:
    wrong = [f"{path.parts[-3]}__{path.stem}" for path in RIGHT.glob("*/wrong/*.py")]
    assert len(wrong) >= 3
    missed = [name for name in wrong if not outcomes[name] & {"differs", "fails-after"}]
    assert not missed
