"""The benchmark of speed: its trees are the same each time, and its arithmetic is right."""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def part(name: str) -> ModuleType:
    """A module of the benchmark."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"benchmarks.speed.{name}")


figures, generated, processes = map(part, ("figures", "generated", "processes"))


def spent(*cpu: float) -> tuple[object, ...]:
    return tuple(processes.Spent(seconds, seconds * 2, 50_000_000) for seconds in cpu)


def test_trees_are_the_same_each_time():
    program = (
        "import hashlib; from benchmarks.speed import generated\n"
        "files = [*generated.tree(120), *generated.fixable(12, 4)]\n"
        "print(hashlib.sha256(repr(files).encode()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    files = [*generated.tree(120), *generated.fixable(12, 4)]
    assert digests == {hashlib.sha256(repr(files).encode()).hexdigest().encode() + b"\n"}


def test_small_tree_is_the_beginning_of_a_large_one():
    small, large = list(generated.tree(100)), list(generated.tree(200))
    assert large[:100] == small
    mix = Counter(file.kind for file in small)
    assert mix == Counter(file.kind for file in large[100:])
    assert set(mix) == {"plain", "saving", "jax", "calling", "checkpoint", "finding"}
    assert len({file.path for file in large}) == 200


def test_generated_files_parse_and_mention_what_their_kind_says():
    for file in generated.tree(100):
        ast.parse(file.text)
        assert ("checkpoint" in file.text) == (file.kind in ("saving", "checkpoint", "finding"))
        assert ("concrete=True" in file.text) == (file.kind == "finding")


def test_only_what_is_generated_wrong_is_found(tmp_path):
    files = generated.write(generated.tree(100), tmp_path / "tree")
    found = check(tmp_path / "tree")
    assert {path for path, _ in found} == {str(f.path) for f in files if f.kind == "finding"}


def test_fixable_trees_have_a_safe_fix_for_each_site(tmp_path):
    generated.write(generated.fixable(12, 2), tmp_path / "tree")
    assert [safety for _, safety in check(tmp_path / "tree")] == ["safe"] * 12
    with pytest.raises(ValueError, match="evenly"):
        list(generated.fixable(10, 3))


def check(folder: Path) -> list[tuple[str, str]]:
    """The file and the safety of the fix of each finding."""
    command = [sys.executable, "-m", "remat_migrate", "check", "--output-format", "json", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    findings = json.loads(done.stdout)["findings"]
    return [(it["path"], it["fix"]["safety"] if it["fix"] else "") for it in findings]


def test_ratios_are_taken_pair_by_pair():
    # The ratio of the medians would be 1: the machine was slow in the second round.
    row = figures.Row("cold", "T", spent(1, 8, 3), "ruff", spent(2, 4, 3))
    assert row.ratios == (0.5, 2.0, 1.0)
    assert row.cells()[:5] == [
        "T",
        "3.00 s · 6.00 s · 50 MB",
        "ruff",
        "3.00 s · 6.00 s · 50 MB",
        "1.000 (0.500–2.000)",
    ]


@pytest.mark.parametrize(
    ("of", "most", "judged", "reached"),
    [
        ("ratio", 1.0, 1.5, False),
        ("ratio", 1.5, 1.5, True),
        ("s", 2.9, 3.0, False),
        ("s", 3.0, 3.0, True),
    ],
)
def test_targets_are_about_medians(of, most, judged, reached):
    target = figures.Target(of, most)
    row = figures.Row("cold", "T", spent(3, 1, 9), "ruff", spent(2, 1, 3), target)
    assert (row.judged, row.reached) == (judged, reached)
    assert row.cells()[-1] == ("yes" if reached else "**missed**")
    assert row.content()["reached"] is reached


def test_no_target_is_neither_reached_nor_missed():
    row = figures.Row("cold", "T", spent(3, 1))
    assert (row.judged, row.reached, row.ratios) == (None, None, ())
    assert row.cells()[2:] == ["", "", "", "", ""]


def test_pairs_take_turns(tmp_path):
    order = tmp_path / "order"

    def command(name: str) -> object:
        program = f"open({str(order)!r}, 'a').write({name!r}); x = bytearray(40_000_000)"
        return processes.Command(name, (sys.executable, "-I", "-S", "-c", program), tmp_path)

    first, second = processes.in_turn([command("a"), command("b")], 2)
    assert order.read_text() == "abab"
    assert len(first) == len(second) == 2
    for run in (*first, *second):
        # The memory of this process, which is larger, is not counted.
        assert 40e6 < run.peak < 90e6
        assert 0 < run.cpu < 10


def test_children_count_and_failures_are_told(tmp_path):
    busy = "import time\nwhile time.process_time() < 0.15: pass"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    (run,) = processes.in_turn(
        [processes.Command("parent", (sys.executable, "-c", program), tmp_path)], 1
    )
    assert statistics.median(one.cpu for one in run) > 0.15
    failing = processes.Command(
        "failing", (sys.executable, "-c", "exit('no')"), tmp_path, exits=(0,)
    )
    with pytest.raises(processes.BenchmarkError, match="ended with 1:\nno"):
        processes.spend(failing)
