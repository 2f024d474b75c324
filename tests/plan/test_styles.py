"""`plan --apply` in every code style: the written source computes the same and needs as promised.

The models are those in `fixtures/measured/styles`. Peaks are those of the compiled programs.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from measuring import share

jax = pytest.importorskip("jax")

from remat_migrate.analysis.loading import load_project  # noqa: E402
from remat_migrate.cli.plan_writing import Writing  # noqa: E402
from remat_migrate.measure.options import MeasureOptions  # noqa: E402
from remat_migrate.measure.session import Session, decoded, measuring  # noqa: E402
from remat_migrate.measure.target import parse_target  # noqa: E402
from remat_migrate.measure.worker.records import PLAIN, WRAPPED, Chain  # noqa: E402
from remat_migrate.plan.applying import Source  # noqa: E402
from remat_migrate.plan.chain import GROUP, Run, arcs, runs_of  # noqa: E402
from remat_migrate.plan.obvious import obvious_paths  # noqa: E402
from remat_migrate.plan.plan import StageDecision, decisions  # noqa: E402
from remat_migrate.settings import load_settings  # noqa: E402
from remat_migrate.verify.session import Worker  # noqa: E402

STYLES = Path(__file__).parents[2] / "fixtures/measured/styles"
LIBRARIES = {
    "linen_setup": "flax",
    "linen_compact": "flax",
    "linen_scan": "flax",
    "nnx_loop": "flax",
    "haiku_loop": "haiku",
    "equinox_loop": "equinox",
}
EVERY, POLICY = "every block", "dots saved"
PAIRS = "in groups of two"
DOTS = "dots_with_no_batch_dims_saveable"
# The share by which the compiled program may differ from the promise.
CLOSE = 0.1


@dataclass(frozen=True)
class Style:
    """A model in one style, and the source that plans are written into."""

    name: str
    session: Session
    source: Source

    def placement(self, kind: str) -> tuple[tuple[StageDecision, ...], tuple[Run, ...]]:
        """Return the placement of a kind on the line that runs the blocks."""
        if kind == PAIRS:
            stages, (one, two, three) = self.placement(EVERY)
            [block] = [stage for stage in stages if stage.decision != PLAIN]
            pairs = replace(block, decision=GROUP, group=(block.line, block.line))
            # The last group is shorter.
            runs = (one[0], two[1], WRAPPED, None), three
            return tuple(pairs if stage is block else stage for stage in stages), runs
        wanted = {EVERY: "", POLICY: f" with {DOTS}"}[kind]
        for data in self.session.ask("chains")["chains"]:
            chain = decoded(Chain, data)
            for name, path in obvious_paths(chain, arcs(chain, self.source.allows)):
                stages = decisions(chain, path)
                chosen = [stage for stage in stages if stage.decision != PLAIN]
                if name.endswith(("stage" + wanted, "stages" + wanted)) and len(chosen) == 1:
                    return stages, runs_of(chain, path)
        raise AssertionError(f"{kind} cannot be written")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("styles")
    shutil.copytree(STYLES, folder, dirs_exist_ok=True)
    (folder / "pyproject.toml").touch()
    return folder


@pytest.fixture
def style(
    request: pytest.FixtureRequest, folder: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Style]:
    name = request.param
    pytest.importorskip(LIBRARIES.get(name, "jax"))
    share(worker, monkeypatch)
    target = parse_target(f"{name}:loss", folder)
    options = MeasureOptions(args=(f"{name}:arguments",))
    with measuring(target, options, folder) as session:
        yield Style(name, session, Writing(target, options, folder).open_source((), (), {}))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # Flax looks it up
    spec.loader.exec_module(module)
    return module


def compiled(path: Path, folder: Path) -> int:
    """Return the compiled bytes of a source besides its inputs, in the measuring process."""
    options = MeasureOptions(args=(f"{path.stem}:arguments",))
    with measuring(parse_target(f"{path}:loss", folder), options, folder) as session:
        return int(session.ask("compile_target")["peak"])


def results(module: ModuleType, shapes: Any) -> list[Any]:
    """Return the value and the gradients."""
    made = np.random.default_rng(0)
    leaves, tree = jax.tree.flatten(shapes)
    places = [n for n, leaf in enumerate(leaves) if hasattr(leaf, "shape")]

    def loss(weights: Any, x: Any) -> Any:
        whole = list(leaves)
        for place, leaf in zip(places, [*weights, x], strict=True):
            whole[place] = leaf
        return module.loss(*jax.tree.unflatten(tree, whole))

    *weights, x = [
        jax.numpy.asarray(made.normal(size=leaves[n].shape) / 8, leaves[n].dtype) for n in places
    ]
    return jax.tree.leaves(jax.jit(jax.value_and_grad(loss))(weights, x))


ALL = [path.stem for path in sorted(STYLES.glob("*.py"))]
SCANS = ("scan", "linen_scan")
# The others take minutes.
DEFAULT = {"plain_loop": PAIRS, "linen_setup": POLICY}


@pytest.mark.parametrize(
    ("style", "kind"),
    [
        pytest.param(
            name,
            kind,
            marks=() if DEFAULT.get(name) == kind else pytest.mark.slow,
            id=f"{name}, {kind}",
        )
        for name in ALL
        for kind in (EVERY, POLICY, PAIRS)
        if not (name in SCANS and kind == PAIRS)
    ],
    indirect=["style"],
)
def test_written_as_promised(style, kind, folder):
    stages, runs = style.placement(kind)
    promised = style.session.ask("compile_runs", runs=runs)["bytes"]
    [change] = style.source.apply(stages).changes
    path = folder / f"{style.name}_{kind.replace(' ', '_')}.py"
    path.write_text(change.after.text)
    old, new = load(folder / f"{style.name}.py"), load(path)
    shapes = old.arguments()
    assert names(new.arguments()) == names(shapes)
    before, after = results(old, shapes), results(new, new.arguments())
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-6)
    needed = compiled(path, folder)
    assert needed == pytest.approx(promised, rel=CLOSE)


def names(shapes: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Return the paths and shapes of all arrays."""
    return [
        (jax.tree_util.keystr(path), leaf.shape)
        for path, leaf in jax.tree_util.tree_leaves_with_path(shapes)
        if hasattr(leaf, "shape")
    ]


@pytest.mark.parametrize("style", ["scan"], indirect=True)
def test_values_are_named(style, folder):
    """A policy that saves names: the assigned values get them."""
    path = folder / "scan.py"
    lines = path.read_text().splitlines()
    [line] = [n for n, text in enumerate(lines, 1) if text.startswith("    weights = ")]
    source = Source(
        lambda texts: load_project(load_settings(folder, folder), [path], overlay=texts),
        (),
        {"attention": (str(path), "block", line)},
    )
    stages, _ = style.placement(EVERY)
    [wrapped] = [stage for stage in stages if stage.decision != PLAIN]
    saving = replace(wrapped, policy='save_only_these_names("attention")')
    needed, found = [], []
    for number, stage in enumerate((wrapped, saving)):
        [change] = source.apply([stage]).changes
        written = folder / f"scan_named_{number}.py"
        written.write_text(change.after.text)
        module = load(written)
        found.append(results(module, module.arguments()))
        needed.append(compiled(written, folder))
    assert "checkpoint_name(" in change.after.text
    assert needed[1] > needed[0]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-6)
