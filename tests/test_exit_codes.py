"""Exit codes: which findings fail a run, and how advice is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from more_examples import wrong_examples
from support import cli, findings, read_files, write_files

from remat_migrate.engine.rules import load_rules
from remat_migrate.rule import Rule

# RMT301, without a fix: the stages of a parameter are unknown.
ADVICE = "import jax\n\n\ndef slope(loss):\n    return jax.grad(jax.checkpoint(loss))\n"
# RMT403 is a warning, RMT102 an error with a safe fix.
WARNING = (
    "import jax\n\n\ndef wrap(f):\n"
    "    return jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)\n"
)
ERROR = 'import jax\n\njax.config.update("jax_new_checkpoint", True)\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path, {"pyproject.toml": "", "advice.py": ADVICE})
    return tmp_path


def configure(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.remat-migrate]\n{text}\n")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (ADVICE, {"note": 1, "warning": 0, "error": 0}),
        (WARNING, {"note": 1, "warning": 1, "error": 0}),
        (ERROR, {"note": 1, "warning": 1, "error": 1}),
        (ERROR + "f = jax.checkpoint(g\n", {"note": 1, "warning": 1, "error": 1}),
    ],
)
def test_findings_of_the_chosen_severity_fail_the_run(
    project: Path, text: str, codes: dict[str, int]
) -> None:
    write_files(project, {"advice.py": "", "code.py": text})
    for severity, code in codes.items():
        assert cli(project, "--fail-on", severity).code == code
        assert cli(project, "report", "--fail-on", severity).code == code
        assert cli(project, "--fail-on", severity, "--exit-zero").code == 0
        configure(project, f'fail-on = "{severity}"')
        assert cli(project).code == code
        # The command line decides over the settings.
        configure(project, f'fail-on = "{"error" if severity == "note" else "note"}"')
        assert cli(project, "--fail-on", severity).code == code
        (project / "pyproject.toml").write_text("")
    assert cli(project).code == codes["warning"]


def test_invalid_severities_are_rejected(project: Path) -> None:
    assert cli(project, "--fail-on", "info").code == 2
    configure(project, 'fail-on = "info"')
    ran = cli(project)
    assert ran.code == 2
    assert 'fail-on: expected "note" or "warning" or "error", got a string \'info\'' in ran.err


def test_a_diff_fails_if_it_changes_something(project: Path) -> None:
    ran = cli(project, "--diff")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "Nothing to fix.\nAdvice: 1 finding in 1 file: 1 manual.\n"
    write_files(project, {"code.py": ERROR + "print(jax)\n"})
    before = read_files(project)
    for arguments, code in (((), 1), (("--fail-on", "error"), 1), (("--exit-zero",), 0)):
        assert cli(project, "--diff", *arguments).code == code
    assert read_files(project) == before


def test_every_format_marks_advice(project: Path) -> None:
    formats = {}
    for name in ("json", "sarif", "github", "gitlab", "junit", "rdjson", "full"):
        ran = cli(project, "--output-format", name)
        assert ran.code == 0
        formats[name] = ran.out
    assert json.loads(formats["json"])["summary"]["advice"] == 1
    assert json.loads(formats["json"])["findings"][0]["severity"] == "note"
    run = json.loads(formats["sarif"])["runs"][0]
    assert run["results"][0]["level"] == "note"
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert rules["RMT301"]["defaultConfiguration"]["level"] == "note"
    assert formats["github"].startswith("::notice ")
    assert json.loads(formats["gitlab"])[0]["severity"] == "info"
    assert 'failures="0" errors="0"' in formats["junit"]
    assert "<system-out>" in formats["junit"]
    failing = cli(project, "--output-format", "junit", "--fail-on", "note").out
    assert 'failures="1" errors="0"' in failing
    assert json.loads(formats["rdjson"])["diagnostics"][0]["severity"] == "INFO"
    assert formats["full"].endswith("\nAdvice: 1 finding in 1 file: 1 manual.\n")


@pytest.mark.parametrize(
    "rule", [r for r in load_rules() if r.code.startswith("RMT3")], ids=lambda rule: rule.code
)
def test_placement_is_advice(rule: Rule) -> None:
    for example in wrong_examples(rule):
        found = findings(example.before, select=(rule.code,))
        assert {finding.severity for finding in found} == {"note"}
