"""`remat-migrate verify` on migrations with faults planted in them: every fault must be caught.

Each folder of `fixtures/planted` is one migration: `before.py` in the old API, `after.py` migrated
rightly, and `wrong/FAULT.py`, the right migration with one fault. A fault is named after its kind,
with more words where there are several (`constant`, `constant_warmup`); its docstring says in words
what is wrong. `cases.py` stands where the arguments of a unit cannot be guessed.

Verifying all of them takes many minutes, so the tests take a slice that has a fault of every kind.
All of them:

    REMAT_MIGRATE_PLANTED=all pytest tests/verify/test_planted.py
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PLANTED = Path(__file__).parents[2] / "fixtures" / "planted"
ALL = os.environ.get("REMAT_MIGRATE_PLANTED") == "all"

KINDS = (
    "constant",
    "cut_gradient",
    "default",
    "dropped_branch",
    "dtype",
    "inverted_flag",
    "jit_only",
    "key",
    "keyword",
    "lost_term",
    "nan",
    "shape",
    "small",
    "stale",
    "structure",
    "swapped_argument",
    "swapped_outputs",
    "trace_time",
    "weak_type",
    "wrong_gradient",
    "wrong_index",
)
SLICE = {
    "attention": ("wrong_index", "dropped_branch"),
    "clipping": ("jit_only", "wrong_gradient"),
    "cross_entropy": ("default", "keyword"),
    "dropout": ("key_reused", "trace_time_mask"),
    "flax_method": ("wrong_index_self", "inverted_flag"),
    "kernel_matrix": ("nan_gradient", "constant"),
    "mixed_precision": ("dtype_accumulate", "dtype_branch"),
    "mlp": ("lost_term", "small"),
    "quantise": ("weak_type", "cut_gradient"),
    "rnn_scan": ("swapped_outputs", "cut_gradient_state"),
    "temperature": ("stale_object", "shape"),
    "transformer": ("structure", "swapped_argument"),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """A migration as somebody made it; `fault` is `right` where it has none."""

    migration: str
    fault: str

    @property
    def module(self) -> str:
        return f"{self.migration}__{self.fault}"

    @property
    def text(self) -> str:
        folder = PLANTED / self.migration
        right = self.fault == "right"
        return (folder / "after.py" if right else folder / "wrong" / f"{self.fault}.py").read_text()

    @property
    def before(self) -> str:
        return (PLANTED / self.migration / "before.py").read_text()

    @property
    def kind(self) -> str | None:
        """The longest kind that the fault's name starts with."""
        fitting = [k for k in KINDS if self.fault == k or self.fault.startswith(f"{k}_")]
        return max(fitting, key=len, default=None)


@dataclass(frozen=True, slots=True)
class Verified:
    """What one run said: the verdicts of the units of each module."""

    right: tuple[Variant, ...]
    wrong: tuple[Variant, ...]
    verdicts: Mapping[str, list[dict[str, object]]]

    def outcomes(self, variant: Variant) -> set[object]:
        return {verdict["verdict"] for verdict in self.verdicts[variant.module]}

    def evidence(self, variant: Variant) -> str:
        """What the verdicts of a migration rest on: the weakest, if it is right."""
        verdicts = self.verdicts[variant.module]
        wrong = [v for v in verdicts if v["verdict"] in ("differs", "fails-after")]
        if wrong:
            return "another program" if any(v["difference"] for v in wrong) else "results alone"
        found = {str(v["evidence"]) for v in verdicts if v["verdict"] == "equal"}
        return "numbers" if "numbers" in found else "program"

    def said(self, variant: Variant) -> str:
        """For messages: the module, and its verdicts one to a line."""
        lines = [
            f"    {v['unit']}: {v['verdict']} ({v['inputs']}) {v['detail']}"
            for v in self.verdicts[variant.module]
        ]
        return "\n".join([f"{variant.module}:", *(lines or ["    no verdict"])])


def everything() -> Iterator[Variant]:
    for folder in sorted(path for path in PLANTED.iterdir() if path.is_dir()):
        yield Variant(folder.name, "right")
        for fault in sorted((folder / "wrong").glob("*.py")):
            yield Variant(folder.name, fault.stem)


def slice_of_them() -> Iterator[Variant]:
    for migration, faults in SLICE.items():
        yield Variant(migration, "right")
        for fault in faults:
            yield Variant(migration, fault)


def write_cases(file: Path, variants: list[Variant]) -> None:
    """One file of cases that takes those of each migration for all modules made of it."""
    modules = defaultdict(list)
    for variant in variants:
        if (PLANTED / variant.migration / "cases.py").exists():
            modules[variant.migration].append(variant.module)
    file.write_text(
        f"""import runpy

CASES = {{}}
for migration, modules in {dict(modules)!r}.items():
    found = runpy.run_path(f"{PLANTED.as_posix()}/{{migration}}/cases.py")
    for name, function in found.items():
        if callable(function) and not name.startswith("_"):
            for module in modules:
                CASES[f"{{module}}.{{name.replace('__', '.')}}"] = function
"""
    )


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """One run of `remat-migrate verify` over a module for each variant."""
    variants = list(everything() if ALL else slice_of_them())
    root = tmp_path_factory.mktemp("planted")
    base, working, cases = root / "base", root / "working", root / "cases.py"
    for folder in (base, working):
        folder.mkdir()
        (folder / "pyproject.toml").write_text("")
    for variant in variants:
        (base / f"{variant.module}.py").write_text(variant.before)
        (working / f"{variant.module}.py").write_text(variant.text)
    write_cases(cases, variants)
    run = subprocess.run(
        [
            *(sys.executable, "-m", "remat_migrate", "verify", "--base", base, working),
            *("--cases", cases, "--output-format", "json"),
        ],
        cwd=working,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 3, run.stderr
    verdicts = defaultdict(list)
    for verdict in json.loads(run.stdout)["verdicts"]:
        verdicts[verdict["unit"].partition(".")[0]].append(verdict)
    return Verified(
        tuple(variant for variant in variants if variant.fault == "right"),
        tuple(variant for variant in variants if variant.fault != "right"),
        verdicts,
    )


def test_every_planted_fault_is_caught(verified, capsys):
    missed = [v for v in verified.wrong if not verified.outcomes(v) & {"differs", "fails-after"}]
    with capsys.disabled():
        caught = len(verified.wrong) - len(missed)
        print(f"\nplanted faults caught: {caught} of {len(verified.wrong)}")
        evidence = Counter(map(verified.evidence, verified.wrong))
        print(f"by: {evidence}")
    assert not missed, "\n".join(map(verified.said, missed))


def test_every_right_migration_is_accepted(verified, capsys):
    refused = [v for v in verified.right if verified.outcomes(v) & {"differs", "fails-after"}]
    unproved = [v for v in verified.right if "equal" not in verified.outcomes(v)]
    with capsys.disabled():
        print(f"\nright migrations refused: {len(refused)} of {len(verified.right)}")
        print(f"evidence: {Counter(map(verified.evidence, verified.right))}")
    assert not refused, "\n".join(map(verified.said, refused))
    assert not unproved, "\n".join(map(verified.said, unproved))


def test_number_of_planted_faults():
    variants = list(everything())
    right = [variant for variant in variants if variant.fault == "right"]
    wrong = [variant for variant in variants if variant.fault != "right"]
    assert len(right) >= 36
    assert len(wrong) > 100
    assert {variant.kind for variant in wrong} == set(KINDS)


def test_slice_covers_every_kind():
    chosen = list(slice_of_them())
    assert set(chosen) <= set(everything())
    assert {variant.kind for variant in chosen if variant.fault != "right"} == set(KINDS)


def test_each_fault_differs_and_is_described():
    for variant in everything():
        tree = ast.parse(variant.text)
        words = ast.get_docstring(tree) or ""
        if variant.fault == "right":
            assert variant.text != variant.before
            assert words == ast.get_docstring(ast.parse(variant.before))
            continue
        assert words.startswith("Fault: "), variant.module
        right = ast.parse(Variant(variant.migration, "right").text)
        assert ast.dump(without_docstring(tree)) != ast.dump(without_docstring(right))


def without_docstring(module: ast.Module) -> ast.Module:
    return ast.Module(module.body[1:], module.type_ignores)
