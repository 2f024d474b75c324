"""Fixes pay or not, by what is measured without and with them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from remat_migrate.measure.fix_effects import Effect

PAYS = ""
RAISES = "it raises the peak"
DEAR = "it adds a larger share of operations than it saves of memory"
NOTHING = "it makes no measurable difference"


@pytest.mark.parametrize(
    ("peak", "operations", "compiled", "objection"),
    [
        ((1000, 500), (100, 120), (1000, 500), PAYS),
        ((1000, 500), (100, 120), None, PAYS),
        # Removes a checkpoint that saves nothing.
        ((1000, 1000), (133, 100), (1000, 1000), PAYS),
        ((1000, 995), (133, 100), (1000, 1010), PAYS),
        # Only the compiled program shows it.
        ((1000, 1000), (100, 100), (3490, 629), PAYS),
        ((1000, 900), (100, 120), (1000, 900), DEAR),
        ((1000, 1000), (100, 120), (1000, 1000), DEAR),
        ((1000, 1000), (100, 100), (1000, 1000), NOTHING),
        ((1000, 1000), (100, 100), None, NOTHING),
        ((500, 1000), (133, 100), (500, 1000), RAISES),
        # Removes the checkpoint of a softmax, which only pays in the compiled program.
        ((1000, 1000), (118, 100), (1000, 1200), RAISES),
        ((1000, 500), (100, 120), (500, 600), RAISES),
    ],
)
def test_objection(peak, operations, compiled, objection):
    assert Effect("train:loss", peak, operations, compiled).objection == objection


PLACEMENTS = Path(__file__).parents[2] / "fixtures" / "placement" / "before"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "fixed", "said"),
    [
        ("layers", {"layers"}, "RMT301 pays off: layers:loss, peak "),
        # This target does not run the code of the other fix.
        ("chain", {"chain"}, "RMT301 pays off: chain:loss, peak "),
    ],
)
def test_applies_only_beneficial_fixes(tmp_path, target, fixed, said):
    for name in ("layers", "chain"):
        shutil.copy(PLACEMENTS / f"{name}.py", tmp_path)
    named = f'target = "{target}:loss"\nargs = "{target}:arguments"\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.remat-migrate.measure]\n{named}")
    before = {path.stem: path.read_text() for path in tmp_path.glob("*.py")}
    ran = subprocess.run(
        [sys.executable, "-m", "remat_migrate", "--fix", "--unsafe-fixes", "--measure", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    after = {path.stem: path.read_text() for path in tmp_path.glob("*.py")}
    assert {name for name in before if before[name] != after[name]} == fixed, ran
    assert said in ran.stderr
    assert f"the fix is not reached by the target {target}:loss" in " ".join(ran.stdout.split())
    assert ran.returncode == 0  # advice


@pytest.mark.slow
def test_unmeasurable_target(tmp_path):
    shutil.copy(PLACEMENTS / "layers.py", tmp_path)
    settings = '[tool.remat-migrate.measure]\ntarget = "layers:loss"\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    ran = subprocess.run(
        [sys.executable, "-m", "remat_migrate", "--fix", "--unsafe-fixes", "--measure", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    assert "it needs arguments" in ran.stderr
    assert (tmp_path / "layers.py").read_text() == (PLACEMENTS / "layers.py").read_text()
