"""Applications of each checkpoint, as the comments in the fixtures state them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "fixtures" / "measured" / "versions"
TARGETS = {
    target: (args, options)
    for args, targets in tomllib.loads((MODELS / "targets.toml").read_text()).items()
    for target, options in targets.items()
}
NEXT = "jax_remat3" in jax.config.values
# Flags, and of how many targets one is measured.
FLAGS = [
    pytest.param([], 1, id="as-it-is"),
    *(
        pytest.param(
            *(["jax_remat3"], step),
            id=f"remat3-{step}",
            marks=[pytest.mark.skipif(not NEXT, reason="no such flag"), *marks],
        )
        for step, marks in ((4, []), (1, [pytest.mark.slow]))
    ),
]

# Measures all targets in one process, which is fast.
SCRIPT = """\
import importlib, json, sys
import jax

models, targets, flags = json.loads(sys.stdin.read())
for flag in flags:
    jax.config.update(flag, True)
from remat_migrate.measure.worker import interception

interception.install()
sys.path.insert(0, models)
from remat_migrate.measure.worker.entry import Differentiation, Entry
from remat_migrate.measure.worker.sites import measure

def loaded(text):
    module, _, name = text.partition(".py:")
    return getattr(importlib.import_module(module), name)

found = {}
for target, (args, options) in targets.items():
    how = Differentiation(options.get("grad", "value_and_grad"), has_aux="has_aux" in options)
    measured = measure(Entry(loaded(target), loaded(args)(), {}, how))
    found[target] = [[str(m.path), m.line, m.applications] for m in measured.measurements]
print(json.dumps(found))
"""


def expected(target: str) -> dict[tuple[str, int], int]:
    """Return the numbers in comments such as `# 4 times in loop`."""
    name = target.partition(":")[2]
    found = {}
    for path in MODELS.glob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for times, function in re.findall(r"(\d+) times? in (\w+)", line.partition("#")[2]):
                if function == name:
                    found[path.name, number] = int(times)
    return found


@pytest.mark.parametrize(("flags", "step"), FLAGS)
def test_fixtures(tmp_path: Path, flags: list[str], step: int) -> None:
    targets = dict(list(TARGETS.items())[::step])
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    request = json.dumps([str(MODELS), targets, flags])
    done = subprocess.run(
        [sys.executable, script],
        input=request,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert {
        target: {(Path(path).name, line): times for path, line, times in sites}
        for target, sites in found.items()
    } == {target: expected(target) for target in targets}
    assert sum(map(bool, map(expected, TARGETS))) == len(TARGETS) - 1, "one has no checkpoint"
