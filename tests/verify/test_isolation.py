"""Code that hangs, exits, forks, prints or exhausts memory affects no other verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import Ran, cli, read_files, write_files

pytestmark = pytest.mark.slow

SETTINGS = """\
[tool.remat-migrate.verify]
timeout = 10
memory = "1 GiB"
"""

# What each unit does before what the migration changes.
COMES_BACK = {
    "a_first": "pass",
    "i_prints": "print('x' * 10_000_000, flush=True); os.write(1, b'{\"z\": 1}\\n' * 1000)",
    "l_starts": "threading.Thread(target=time.sleep, args=(99,)).start()",
    "n_moves": "os.chdir('/'); os.environ.clear(); jax.config.update('jax_enable_x64', True)",
    "r_draws": "FED.append(random.random() + np.random.rand()); x = x * FED.pop()",
    "s_changes": "FED.append(0); x = x + len(FED)",
    "z_last": "assert x.dtype == np.float32; os.environ['PATH']; open('units.py').close()",
}
# What must be said of those that do not come back, or to nothing.
NEVER_DOES = {
    "b_hangs": ("while True: pass", "making inputs took longer than 10 s"),
    "d_exits": ("sys.exit(3)", "SystemExit: 3"),
    "e_exits_at_once": ("os._exit(7)", "ended the process with status 7"),
    "f_kills_itself": ("signal.raise_signal(signal.SIGKILL)", "was killed by SIGKILL"),
    "g_starts": ("Popen(['sleep', '99'])", "it starts a program (sleep), which is allowed only in"),
    "h_forks": ("if os.fork() == 0: time.sleep(0.05)", "it forks a process, which is allowed only"),
    "k_eats_memory": ("FED.append(np.ones((6, 2**27)))", "used more than 1 GiB"),
    "o_patches": ("json.dumps = json.load = json.dump = os.makedirs = None", "TypeError"),
    "q_closes": ("os.closerange(3, 64)", "Bad file descriptor"),
    "j_writes": (
        "[os.write(n, b'{\\n') for n in range(3, 64) if IS_SOCKET(n)]",
        "wrote to the channel of the replies",
    ),
}
BODIES = {**COMES_BACK, **{name: body for name, (body, _) in NEVER_DOES.items()}}


def module(factor: str) -> str:
    """All units in order of their names; `factor` is what the migration changes."""
    modules = ["json", "os", "random", "signal", "stat", "sys", "threading", "time"]
    lines = [f"import {name}" for name in modules]
    lines += ["from subprocess import Popen", "import jax", "import numpy as np", "FED = []"]
    lines += ["def IS_SOCKET(n):", "    try:", "        mode = os.fstat(n).st_mode"]
    lines += ["    except OSError:", "        return False", "    return stat.S_ISSOCK(mode)"]
    for name, body in sorted(BODIES.items()):
        lines += ["", "", f"def {name}(x):", f"    {body}", f"    return {factor}"]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("isolation")
    working = root / "working"
    write_files(root / "base", {"pyproject.toml": "", "units.py": module("x * 2.0")})
    write_files(working, {"pyproject.toml": SETTINGS, "units.py": module("2.0 * x")})
    return working


@pytest.fixture(scope="module")
def ran(project: Path) -> Ran:
    return cli(project, "verify", "--base", "../base", "--output-format", "json")


@pytest.fixture(scope="module")
def verdicts(ran: Ran) -> dict[str, dict[str, Any]]:
    assert ran.out, ran.err
    found = json.loads(ran.out)["verdicts"]
    return {verdict["unit"].removeprefix("units."): verdict for verdict in found}


def test_every_unit_has_a_verdict(verdicts: dict[str, dict[str, Any]]) -> None:
    assert sorted(verdicts) == sorted([*BODIES, "pyproject.toml"])


@pytest.mark.parametrize("unit", sorted(COMES_BACK))
def test_code_that_finishes_is_compared(verdicts: dict[str, dict[str, Any]], unit: str) -> None:
    assert (verdicts[unit]["verdict"], verdicts[unit]["max_abs"]) == ("equal", 0.0), verdicts[unit]


@pytest.mark.parametrize("unit", sorted(NEVER_DOES))
def test_code_that_does_not_finish_is_reported(
    verdicts: dict[str, dict[str, Any]], unit: str
) -> None:
    verdict = verdicts[unit]
    assert verdict["verdict"] in ("fails-before", "not-exercised")
    assert verdict["detail"]
    assert NEVER_DOES[unit][1] in verdict["detail"]


def test_side_effects_do_not_reach_the_user(ran: Ran, project: Path) -> None:
    """Output, files and exit status stay in the copy."""
    assert all(line.startswith("Verifying ") for line in ran.err.splitlines())
    assert ran.code == 0
    assert sorted(read_files(project)) == ["pyproject.toml", "units.py"]
