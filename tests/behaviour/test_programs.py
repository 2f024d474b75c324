"""Small programs in the old API, one for each form: values and gradients before and after.

`fixtures/behaviour/migrated`: modules and packages, each with a function `main()` that returns a
pytree of values and gradients. Run with the plain function, they give the results that their fixed
form must have under JAX.

`fixtures/behaviour/untouched`: programs without an automatic fix, or that need none. A line with an
expected finding ends in `# expect CODE: words`, and one of the words, separated by `|`, must be in
the output for the file.

`fixtures/behaviour/by_hand`: programs like those of `migrated` with manual findings. The code that
each of them says to write, written in the place of the checkpoint, must give the results.
"""

from __future__ import annotations

import ast
import collections
import io
import json
import re
import shutil
import subprocess
import textwrap
import tokenize
from pathlib import Path

import pytest

from remat_migrate.engine.check import check_run
from remat_migrate.engine.run import prepare
from remat_migrate.settings import Options
from remat_migrate.text import apply_edits

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "behaviour"
MIGRATED = sorted(
    path.stem
    for path in (PROGRAMS / "migrated").iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
)
# Those whose results are compared by default, all of them with `-m slow`: forms whose fixes once
# gave other results, and an eighth of the others.
ONCE_WRONG = (
    "changed_by_callers",
    "changed_by_script",
    "closed_over_in_place",
    "compile_time_eval",
    "default_constant",
    "default_omitted",
    "evaluation_order",
    "flows_out_of_sight",
    "inheritance",
    "name_clash",
    "needed_results",
    "numpy_math",
    "rebound_under_if",
    "second_names",
    "signature_kinds",
    "state_changed_by_name",
    "type_test_behind_object",
    "type_tests",
    "wrapper_of_kwargs",
)
SOME = sorted({*MIGRATED[::8], *ONCE_WRONG})
BY_HAND = sorted(path.stem for path in (PROGRAMS / "by_hand").glob("*.py"))
UNTOUCHED = sorted(path.stem for path in (PROGRAMS / "untouched").glob("*.py"))
# float32. In code that JAX compiles, a division by a constant becomes a product, and the last bit
# may differ from that of the operations one by one.
RTOL = 1e-6

# Placement is not tested here: small programs often checkpoint everything.
CODES = ("--select", "RMT0,RMT1")
CODE_TO_WRITE = re.compile(r"write `(.*)` in place of this checkpoint, with\n(.*)", re.DOTALL)
EXPECT = re.compile(r"# expect (RMT\d{3}): (.*)")


def files_of(folder: Path, program: str) -> list[Path]:
    return (
        [folder / f"{program}.py"]
        if (folder / f"{program}.py").exists()
        else [*sorted((folder / program).rglob("*.py"))]
    )


def comments(path: Path) -> collections.Counter[str]:
    with tokenize.open(path) as stream:
        tokens = tokenize.generate_tokens(io.StringIO(stream.read()).readline)
        return collections.Counter(t.string for t in tokens if t.type == tokenize.COMMENT)


@pytest.fixture(scope="module")
def fixed(tmp_path_factory, remat_migrate):
    """Return all programs after one `--fix`, and its output."""
    folder = tmp_path_factory.mktemp("programs") / "behaviour"
    shutil.copytree(PROGRAMS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder, remat_migrate(folder, "--fix", "migrated", "by_hand", "untouched")


@pytest.fixture(scope="module", params=[SOME, pytest.param(MIGRATED, marks=pytest.mark.slow)])
def programs(request):
    return request.param


@pytest.fixture(scope="module")
def expected(programs, run_programs):
    return run_programs(PROGRAMS / "migrated", *[f"{name}:main" for name in programs], plain=True)


def findings(folder: Path, output: subprocess.CompletedProcess[str]) -> dict[str, list[dict]]:
    by_path = collections.defaultdict(list)
    for finding in json.loads(output.stdout)["findings"]:
        by_path[finding["path"]].append(finding)
    return by_path


def test_same_values_and_gradients(programs, expected, fixed, run_programs, assert_equal_arrays):
    folder, _ = fixed
    actual = run_programs(folder / "migrated", *[f"{name}:main" for name in programs])
    for target, before in expected.items():
        after = actual[target]
        assert not isinstance(before, str), f"{target}: {before}"
        assert not isinstance(after, str), f"{target}: {after}"
        assert_equal_arrays(before, after, RTOL)


@pytest.mark.parametrize("program", MIGRATED)
def test_comments_and_line_endings_are_kept(program, fixed):
    folder, _ = fixed
    changed = False
    for before in files_of(PROGRAMS / "migrated", program):
        after = folder / before.relative_to(PROGRAMS)
        changed |= before.read_bytes() != after.read_bytes()
        assert not comments(before) - comments(after)
        assert line_endings(before) == line_endings(after)
        assert after.read_bytes().endswith(b"\n")
    assert changed


def line_endings(path: Path) -> set[str]:
    return set(re.findall(r"\r\n|\r|\n", path.read_bytes().decode()))


@pytest.mark.parametrize("program", MIGRATED)
def test_checkpoints_are_kept(program, fixed):
    """Removing every checkpoint would preserve the values, too."""
    folder, _ = fixed
    names = re.compile(r"\b(?:checkpoint|remat)(?:ed)?\b")
    for before in files_of(PROGRAMS / "migrated", program):
        after = folder / before.relative_to(PROGRAMS)
        if names.search(before.read_text()) and program != "new_checkpoint_flag":
            assert names.search(after.read_text()), after


def test_migrated_programs_have_no_findings(fixed, remat_migrate):
    folder, _ = fixed
    checking = remat_migrate(folder, *CODES, "--output-format", "json", "migrated")
    left = findings(folder, checking)
    assert {path: [f["message"] for f in found] for path, found in left.items()} == {}
    assert checking.returncode == 0


def test_fix_is_idempotent(fixed, remat_migrate):
    folder, fixing = fixed
    assert fixing.returncode == 1, fixing.stderr  # what is left in `untouched`
    before = {path: path.read_bytes() for path in folder.rglob("*.py")}
    remat_migrate(folder, "--fix", "--unsafe-fixes", "--select", "RMT1", ".")
    assert {path: path.read_bytes() for path in folder.rglob("*.py")} == before


@pytest.mark.slow
def test_each_program_fails_as_it_is(run_programs):
    """A program that runs without its fix is no test of the fix."""
    today = run_programs(PROGRAMS / "migrated", *[f"{program}:main" for program in MIGRATED])
    assert [target for target, result in today.items() if not isinstance(result, str)] == []


@pytest.mark.slow
def test_each_fix_alone_preserves_values(
    tmp_path, programs, expected, run_programs, assert_equal_arrays
):
    """Code that other fixes would change has its old meaning."""
    for path in (PROGRAMS / "migrated").glob("*.py"):
        if path.stem in programs:
            shutil.copy(path, tmp_path)
    analysis = check_run(prepare([tmp_path.resolve()], Options(select=("RMT0", "RMT1"))))
    copies = {}
    for edits in dict.fromkeys(f.fix.edits for f in analysis.findings if f.fix and f.fix.edits):
        (path,) = {edit.path for edit in edits}
        name = f"{path.stem}_{len(copies)}"
        source = analysis.source(path)
        (tmp_path / f"{name}.py").write_bytes(source.encode(apply_edits(source.text, edits)))
        copies[name] = path.stem
    assert len(copies) > len(set(copies.values()))
    results = run_programs(tmp_path, *[f"{name}:main" for name in copies], lenient=True)
    for name, program in copies.items():
        after = results[f"{name}:main"]
        assert not isinstance(after, str), f"{name}: {after}"
        assert_equal_arrays(expected[f"{program}:main"], after, RTOL)


@pytest.mark.slow
def test_unsafe_fix_is_idempotent(fixed, remat_migrate, tmp_path):
    folder = tmp_path / "programs"
    shutil.copytree(fixed[0], folder)
    safe = {path: path.read_bytes() for path in folder.rglob("*.py")}
    remat_migrate(folder, "--fix", "--unsafe-fixes", ".")
    moved = {path: path.read_bytes() for path in folder.rglob("*.py")}
    assert moved != safe
    remat_migrate(folder, "--fix", "--unsafe-fixes", ".")
    assert {path: path.read_bytes() for path in folder.rglob("*.py")} == moved


def test_code_to_write_preserves_values(tmp_path, remat_migrate, run_programs, assert_equal_arrays):
    targets = [f"{program}:main" for program in BY_HAND]
    expected = run_programs(PROGRAMS / "by_hand", *targets, plain=True)
    folder = tmp_path / "by_hand"
    shutil.copytree(PROGRAMS / "by_hand", folder)
    output = remat_migrate(tmp_path, "--fix", *CODES, "--output-format", "json", "by_hand")
    for path, found in findings(tmp_path, output).items():
        written_by_hand(tmp_path / path, found)
    actual = run_programs(folder, *targets)
    for target in targets:
        assert not isinstance(expected[target], str), expected[target]
        assert not isinstance(actual[target], str), actual[target]
        assert_equal_arrays(expected[target], actual[target], RTOL)


def written_by_hand(path: Path, found: list[dict]) -> None:
    """Write the code that each finding of a file gives in the place of its checkpoint."""
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    defined: list[str] = []
    for number, finding in enumerate(sorted(found, key=lambda f: -f["line"])):
        match = CODE_TO_WRITE.search(finding["fix"]["title"])
        assert match is not None, finding
        own, (use, code) = f"checkpointed_{number}", match.groups()
        defined.append(textwrap.dedent(code).replace("def checkpointed(", f"def {own}(") + "\n")
        wrapped = use.removeprefix("checkpointed(").removesuffix(")")
        [call] = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and wrapped in map(ast.unparse, node.args)
            if node.lineno == node.end_lineno == finding["line"]
        ]
        line = lines[call.lineno - 1]
        new = f"{own}({wrapped})"
        lines[call.lineno - 1] = line[: call.col_offset] + new + line[call.end_col_offset :]
    path.write_text("\n".join(defined) + "".join(lines))


@pytest.fixture(scope="module")
def left(fixed, remat_migrate):
    """Return the findings in the programs of `untouched`, by path."""
    folder, _ = fixed
    checking = remat_migrate(folder, *CODES, "--output-format", "json", "untouched")
    assert checking.returncode == 1
    return findings(folder, checking)


@pytest.mark.parametrize("program", UNTOUCHED)
def test_unfixable_programs_have_a_reason(program, fixed, left):
    folder, _ = fixed
    path = f"untouched/{program}.py"
    assert (folder / path).read_bytes() == (PROGRAMS / path).read_bytes()
    expect = {
        number: found.groups()
        for number, line in enumerate((folder / path).read_text().splitlines(), 1)
        if (found := EXPECT.search(line))
    }
    found = {finding["line"]: finding for finding in left[path]}
    assert {line: f["code"] for line, f in found.items()} == {n: c for n, (c, _) in expect.items()}
    for line, (_, words) in expect.items():
        assert found[line]["fix"] is None or found[line]["fix"]["safety"] == "manual"
        said = json.dumps(found[line])
        assert any(word in said for word in words.split(" | ")), said


def test_untouched_programs_run_under_the_plain_function(run_programs):
    """The reported reason must be about code that used to work."""
    programs = [
        "branch_on_differentiated",
        "needed_results",
        "number_from_differentiated",
        "chosen_by_settings",
        "not_on_every_path",
        "options_passed_on",
    ]
    outcomes = run_programs(PROGRAMS / "untouched", *[f"{p}:main" for p in programs], plain=True)
    assert [name for name, outcome in outcomes.items() if isinstance(outcome, str)] == []
