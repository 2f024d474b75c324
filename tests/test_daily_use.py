"""Options for daily use, as the program behaves with them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import cli, read_files, write_files

CODE = """\
import jax
from jax.ad_checkpoint import checkpoint  # type: ignore

f = jax.checkpoint(  # noqa: E501
    abs, concrete=False
)
g = jax.checkpoint(abs, concrete=False)
h = 1; s = (jax.checkpoint(abs, concrete=False),
    jax.checkpoint(abs, concrete=False), '''
a''' + str(jax.checkpoint(abs, concrete=False)), 2)
"""
SUPPRESSED = """\
import jax
from jax.ad_checkpoint import checkpoint  # type: ignore  # noqa: RMT103

f = jax.checkpoint(  # noqa: E501, RMT101
    abs, concrete=False
)
g = jax.checkpoint(abs, concrete=False)  # noqa: RMT101
h = 1; s = (jax.checkpoint(abs, concrete=False),
    jax.checkpoint(abs, concrete=False), '''
a''' + str(jax.checkpoint(abs, concrete=False)), 2)  # noqa: RMT101
"""
ADVICE = "import jax\n\ng = jax.grad(jax.checkpoint(lambda x: x.sum()))\n"


def notebook(*cells: str) -> str:
    shared = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    sources = [{**shared, "id": f"c{n}", "source": [cell]} for n, cell in enumerate(cells)]
    return json.dumps({"cells": sources, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_add_noqa_suppresses_everything_once(tmp_path: Path) -> None:
    cells = ("import jax\n%matplotlib inline\nf = jax.checkpoint(abs, concrete=False)", "f  # keep")
    files = {"pyproject.toml": "", "m.py": CODE, "n.ipynb": notebook(*cells)}
    write_files(tmp_path, files)
    ran = cli(tmp_path, "--add-noqa")
    assert (ran.code, ran.out, ran.err) == (0, "", "Suppressed 7 findings.\n")
    assert (tmp_path / "m.py").read_text() == SUPPRESSED
    written = json.loads((tmp_path / "n.ipynb").read_text())
    assert "".join(written["cells"][0]["source"]) == cells[0] + "  # noqa: RMT101"
    assert written["cells"][1]["source"] == [cells[1]]
    before = read_files(tmp_path)
    assert cli(tmp_path, "--add-noqa").err == "Suppressed 0 findings.\n"
    assert read_files(tmp_path) == before
    assert cli(tmp_path).code == 0
    assert cli(tmp_path, "undo").code == 0
    assert (tmp_path / "m.py").read_text() == CODE


@pytest.mark.parametrize(
    ("name", "text", "is_told"),
    [
        ("pyproject.toml", "[tool.ruff.lint]\nselect = ['RUF']\n", True),
        ("ruff.toml", "line-length = 100\n", True),
        ("pyproject.toml", "[tool.ruff.lint]\nexternal = [\n  'V', 'RMT',\n]\n", False),
        ("pyproject.toml", "[project]\nname = 'p'\n", False),
    ],
)
def test_add_noqa_names_the_setting_of_ruff(
    tmp_path: Path, name: str, text: str, is_told: bool
) -> None:
    write_files(tmp_path, {"m.py": CODE, name: text})
    assert ('lint.external = ["RMT"]' in cli(tmp_path, "--add-noqa").err) == is_told


def test_add_noqa_says_what_it_cannot_suppress(tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": "", "run.sh": "export JAX_NEW_CHECKPOINT=0\n"})
    ran = cli(tmp_path, "--add-noqa")
    assert "warning: run.sh:1:8: RMT102 cannot be suppressed by a comment; use per-file" in ran.err
    assert "cannot be combined" in cli(tmp_path, "--add-noqa", "--fix").err


def test_unsafe_fixes_alone_changes_nothing_and_says_so(tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": "", "m.py": ADVICE})
    note = "note: --unsafe-fixes changes no files without --fix or --diff\n"
    assert cli(tmp_path, "--unsafe-fixes").err == note
    assert cli(tmp_path, "--unsafe-fixes", "--diff").err != note


def test_quiet_prints_findings_only(tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": "", "m.py": CODE, "docs/a.sh": "true\n"})
    loud = cli(tmp_path, "--output-format", "concise", "m.py", "docs")
    ran = cli(tmp_path, "check", "-q", "--output-format", "concise", "m.py", "docs")
    assert ran.code == loud.code == 1
    assert ran.out.splitlines() == loud.out.splitlines()[:-1]
    assert loud.err == "warning: no Python files under docs; checked 1 other file\n"
    assert ran.err == ""
    assert cli(tmp_path, "-q", "docs").out == ""
    # Errors are never hidden.
    assert cli(tmp_path, "-q", "gone.py").err


def test_verbose_says_what_is_checked_with_what(tmp_path: Path) -> None:
    table = '[tool.remat-migrate]\nselect = ["RMT103"]\n'
    write_files(tmp_path, {"pyproject.toml": table, "m.py": CODE, "a/pyproject.toml": table})
    (tmp_path / "a/m.py").write_text(CODE)
    err = cli(tmp_path, "-v", ".").err
    for folder in (tmp_path, tmp_path / "a"):
        assert f"debug: settings for {folder}: {folder}/pyproject.toml\n" in err
    assert "debug: rules: RMT000, RMT103\n" in err
    assert "cannot be combined" in cli(tmp_path, "-q", "-v").err


def test_the_environment_says_whether_to_use_colors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"pyproject.toml": "", "m.py": CODE})
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in cli(tmp_path, "m.py").out
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31;1mRMT101" in cli(tmp_path, "m.py").out


def test_safe_and_unsafe_fixes_differ_in_color(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    loop = (
        "import jax\n\n\ndef loss(x):\n"
        "    body = jax.checkpoint(lambda c, _: (c * 2, None))\n"
        "    return jax.lax.scan(body, x, None, length=5)[0]\n\n\ng = jax.grad(loss)\n"
    )
    write_files(tmp_path, {"pyproject.toml": "", "m.py": CODE + loop})
    out = cli(tmp_path).out
    assert "\x1b[32msafe fix\x1b[0m" in out
    assert "\x1b[33;1munsafe fix\x1b[0m" in out.replace("advice, ", "")


def test_rules_as_json(tmp_path: Path) -> None:
    rules = json.loads(cli(tmp_path, "rules", "--output-format", "json").out)
    by_code = {rule["code"]: rule for rule in rules}
    assert [*by_code] == sorted(by_code)
    one = json.loads(cli(tmp_path, "explain", "RMT304", "--output-format", "json").out)
    assert one == by_code["RMT304"]
    assert (one["name"], one["fix_safety"], one["severity"]) == (
        "prevent-cse-in-scan",
        "unsafe",
        "note",
    )
    assert by_code["RMT000"]["fix_safety"] is None
    assert all(rule["summary"] and "\n" not in rule["summary"] for rule in rules)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ex"], {"explain"}),
        (["--unsafe"], {"--unsafe-fixes"}),
        (["check", "--fail-on", "w"], {"warning"}),
    ],
)
def test_shells_complete_commands_and_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: set[str]
) -> None:
    monkeypatch.setenv("_REMAT_MIGRATE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["remat-migrate", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    found = dict(line.split(",", 1)[::-1] for line in cli(tmp_path).out.splitlines())
    assert {value for value, kind in found.items() if kind == "plain"} == expected


@pytest.fixture
def two_rules(tmp_path: Path) -> Path:
    old = "import jax\nfrom jax.ad_checkpoint import checkpoint\n\n"
    code = old + "f = jax.checkpoint(abs, concrete=False)  # noqa: RMT101\ng = checkpoint(abs)\n"
    write_files(tmp_path, {"pyproject.toml": "", "m.py": code})
    return tmp_path


def test_suppressed_findings_can_be_shown(two_rules: Path) -> None:
    assert "RMT101" not in cli(two_rules, "--output-format", "concise").out
    assert "RMT101" in cli(two_rules, "--output-format", "concise", "--ignore-noqa").out


def test_which_findings_are_fixed(two_rules: Path) -> None:
    for choice in (["--fixable", "RMT101"], ["--unfixable", "rmt103"]):
        diff = cli(two_rules, "--diff", "--ignore-noqa", *choice).out
        assert "-f = jax.checkpoint(abs, concrete=False)" in diff
        assert "-from jax.ad_checkpoint" not in diff
    wrong = cli(two_rules, "--fix", "--fixable", "RMT999")
    assert (wrong.code, "--fixable: no rule code starts with RMT999" in wrong.err) == (2, True)


def test_exit_code_of_a_run_that_fixes(two_rules: Path) -> None:
    assert cli(two_rules, "--fix", "--exit-non-zero-on-fix").code == 1
    assert cli(two_rules, "--fix", "--exit-non-zero-on-fix").code == 0


def test_options_are_grouped(tmp_path: Path) -> None:
    text = cli(tmp_path, "check", "--help").out
    assert len(re.findall(r"^  -", text, re.MULTILINE)) <= 30 + len(["--help"])
    assert text.index("Rules:") < text.index("Fixes:") < text.index("Exit code:")
