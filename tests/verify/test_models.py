"""Models in Flax, Haiku and Equinox, verified through the command that trains or tests them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import Ran, cli

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[2] / "fixtures" / "verified"


@dataclass(frozen=True, slots=True)
class Model:
    """A project, its command, its units, and a fault: in which file what becomes what."""

    folder: str
    command: str
    units: frozenset[str]
    fault: tuple[str, str, str]
    faulty: str


MODELS = (
    Model(
        "flax_lm",
        "pytest -q tests",
        frozenset({"lm.model.Block.setup", "lm.model.LanguageModel.__call__"}),
        ("lm/model.py", "rate=self.rate, name=", "rate=0.0, name="),
        "lm.model.LanguageModel.__call__",
    ),
    Model(
        "haiku_net",
        "python train.py",
        frozenset({"net.mixture", "net.Classifier.__call__"}),
        ("net.py", "scores / temperature", "scores * temperature"),
        "net.mixture",
    ),
    Model(
        "equinox_net",
        "python train.py",
        frozenset({"model.Mixer.__call__", "model.Regressor.pooled"}),
        ("model.py", "* self.scale", "* jax.lax.stop_gradient(self.scale)"),
        "model.Mixer.__call__",
    ),
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.folder)
def test_model(model: Model, tmp_path: Path) -> None:
    base, working = tmp_path / "base", tmp_path / "working"
    for folder in (base, working):
        shutil.copytree(FIXTURES / model.folder, folder)

    fixed = cli(working, "--fix", "--verify", *options(model), ".")
    assert fixed.code == 0, fixed.out + fixed.err
    found = verdicts(fixed)
    assert found.keys() == model.units
    for unit, verdict in found.items():
        assert (verdict["verdict"], verdict["inputs"]) == ("equal", "recorded"), (unit, verdict)
        assert verdict["calls"] >= 2, (unit, verdict)

    file, right, wrong = model.fault
    text = (working / file).read_text()
    assert text.count(right) == 1
    (working / file).write_text(text.replace(right, wrong))
    faulty = verdicts(cli(working, "verify", "--base", base, *options(model)))
    assert faulty[model.faulty]["verdict"] == "differs", faulty


def options(model: Model) -> tuple[str, ...]:
    return ("--command", model.command, "--output-format", "json")


def verdicts(ran: Ran) -> dict[str, Any]:
    assert ran.out, ran.err
    return {verdict["unit"]: verdict for verdict in json.loads(ran.out)["verdicts"]}
