"""The documents match the tool: commands, output, tables, and the example rule."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from remat_migrate import __version__
from remat_migrate.engine.rules import load_rules
from remat_migrate.report.machine_readable.json import render_proof
from remat_migrate.report.terminal.display import Screen
from remat_migrate.report.terminal.verdicts import verdict_rows
from remat_migrate.verify.evidence import Outcome, Proof, Unit, Verdict

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def section(text: str, title: str) -> str:
    """Return the text of a second-level section."""
    return re.split(r"^## ", text.split(f"\n## {title}\n", 1)[1], flags=re.MULTILINE)[0]


def blocks(text: str, language: str = "") -> list[str]:
    """Return the fenced blocks of a language in a document, without common indentation."""
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [
        re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        for indent, written_in, body in found
        if written_in == language
    ]


def remat_migrate(*arguments: str, cwd: Path = ROOT, path: Path | None = None) -> str:
    """Return the output of the command line, with the packages in a folder added."""
    environment = {**os.environ, "COLUMNS": "100"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    run = subprocess.run(
        [sys.executable, "-m", "remat_migrate", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode in (0, 1), run.stderr
    return run.stdout


def test_paths_of_the_architecture_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paths = set(re.findall(r"`([\w/]+\.(?:py|txt))`", text))
    assert len(paths) > 20
    files = [path.as_posix() for path in ROOT.glob("*/**/*") if ".venv" not in path.parts]
    assert [path for path in paths if not any(file.endswith(f"/{path}") for file in files)] == []


def test_start_has_two_commands():
    commands = [line for block in blocks(section(README, "Start")) for line in block.splitlines()]
    commands = [line for line in commands if line.startswith("python3 ")]
    assert len(commands) == 2
    assert all("-m venv .venv && .venv/bin/pip install" in command for command in commands)
    assert commands[1].endswith(".venv/bin/pytest -n auto")


def test_ci_calls_the_second_command():
    extract = 'root=$1; source <(sed -n "/^readme_command()/,/^}/p" "$1/.ci/run"); readme_command'
    called = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", extract, "bash", str(ROOT)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert called == blocks(section(README, "Start"))[-1].strip()


@pytest.mark.slow
def test_output_of_the_first_command(tmp_path):
    first, shown, *_ = blocks(section(README, "Start"))
    *_, copy, migrate = first.strip().split(" && ")
    subprocess.run(copy.replace("/tmp", str(tmp_path)).split(), cwd=ROOT, check=True)
    arguments = migrate.replace("/tmp", str(tmp_path)).split()
    assert arguments.pop(0) == ".venv/bin/remat-migrate"
    printed = remat_migrate(*arguments).replace(str(tmp_path), "/tmp")
    lines = without_rounding(printed).splitlines()
    assert [line for line in lines if line in without_rounding(shown)][-2:] == lines[-2:]
    assert set(without_rounding(shown).splitlines()) <= set(lines)


def without_rounding(text: str) -> str:
    """Return a report without numbers that depend on the version of JAX."""
    return re.sub(r"largest difference [\d.e+-]+", "largest difference *", text)


def test_shown_part_of_the_difference(tmp_path):
    (shown,) = blocks(section(README, "Start"), "diff")
    assert "`.venv/bin/remat-migrate --diff fixtures/old_trainer`" in README
    shutil.copytree(ROOT / "fixtures" / "old_trainer", tmp_path / "fixtures" / "old_trainer")
    assert shown in remat_migrate("--diff", "fixtures/old_trainer", cwd=tmp_path)


def test_shown_measurements():
    """The shown measurements match except for the numbers, which depend on the JAX version."""
    measuring = section(README, "Measuring")
    command, whole, part, *_ = blocks(measuring)
    arguments = command.split()[1:]
    assert without_numbers(whole) == without_numbers(remat_migrate(*arguments))
    other = [argument.replace(":loss_by_blocks", ":loss") for argument in arguments]
    assert without_numbers(part) in without_numbers(remat_migrate(*other))


def without_numbers(text: str) -> str:
    return re.sub(r"[\d.]+( [kMGT]?(B|FLOP))?", "*", text).strip()


def test_options_of_measure():
    documented = set(re.findall(r"`(--[a-z0-9-]+)", section(README, "Measuring")))
    offered = set(re.findall(r"(--[a-z0-9-]+)", remat_migrate("measure", "--help")))
    assert documented <= offered
    # Either an option or its opposite is documented.
    others = {option.replace("--", "--no-", 1) for option in documented}
    others |= {option.replace("--no-", "--", 1) for option in documented}
    assert offered - documented - others == {"--help"}


def test_table_of_rules():
    rows = re.findall(r"^\| (RMT\d{3}) ([a-z-]+) \|", section(README, "Rules"), re.MULTILINE)
    assert rows == [(rule.code, rule.name) for rule in load_rules() if rule.code[:3] == "RMT"]


def test_options_of_verify():
    documented = set(re.findall(r"`(--[a-z-]+)", section(README, "Options")))
    documented |= set(re.findall(r"(--[a-z-]+)", section(README, "Proof")))
    offered = set(re.findall(r"(--[a-z-]+)", remat_migrate("verify", "--help")))
    assert offered - documented == {"--help"}


def test_options_and_commands():
    documented = set(re.findall(r"`(--[a-z-]+)", section(README, "Options")))
    offered = set(re.findall(r"(--[a-z-]+)", remat_migrate("check", "--help")))
    assert documented == offered - {"--help"}
    listed = section(README, "Commands")
    for command in re.findall(r"^  ([a-z]+)  ", remat_migrate("--help"), re.MULTILINE):
        assert f"`remat-migrate {command}" in listed


def test_keys_of_verdicts():
    verdict = Verdict(Unit(ROOT / "model.py", "f", "model"), Outcome.EQUAL)
    (row,) = verdict_rows([verdict], ROOT)
    proof = section(README, "Proof")
    documented = set(re.findall(r"^\| `(\w+)` \|", proof, re.MULTILINE))
    place = {"unit", "path", "line", "verdict"}
    assert documented == row.keys() - place - {"max_abs", "max_rel", "detail"}
    assert '"complete"' in render_proof(Proof(), Screen(80, False, ROOT))
    assert "`complete`" in proof


def test_changelog_has_this_version():
    assert re.search(
        rf"^## \[{re.escape(__version__)}\]", (ROOT / "CHANGELOG.md").read_text(), re.M
    )


@pytest.fixture
def acme(tmp_path):
    """The rule of CONTRIBUTING.md, installed from a wheel into a separate folder."""
    (rule,) = [block for block in blocks(CONTRIBUTING, "python") if "class PolicySpelling" in block]
    (entry,) = blocks(CONTRIBUTING, "toml")
    group = re.fullmatch(r'\[project\.entry-points\."(.+)"\]\n(\w+) = "(.+)"\n', entry)
    information = "acme_rules-1.0.dist-info"
    members = {
        "acme_rules/__init__.py": "",
        "acme_rules/policy_spelling.py": rule,
        f"{information}/METADATA": "Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/entry_points.txt": f"[{group[1]}]\n{group[2]} = {group[3]}\n",
    }
    wheel = tmp_path / "acme_rules-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        record = "".join(f"{name},,\n" for name in (*members, f"{information}/RECORD"))
        archive.writestr(f"{information}/RECORD", record)
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--target", site, wheel],
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        check=True,
    )
    return site


def test_rule_of_contributing_is_found_runs_and_fixes(acme, tmp_path):
    assert "ACM001  policy-spelling" in remat_migrate("rules", path=acme)
    assert "Two names for one policy" in remat_migrate("explain", "ACM001", path=acme)
    work = tmp_path / "work"
    work.mkdir()
    old = "import jax\n\nf = jax.remat(abs, policy=jax.checkpoint_policies.dots_saveable)\n"
    example = (
        "import jax\n\nf = jax.checkpoint(  # here\n"
        "    abs, policy=jax.checkpoint_policies.checkpoint_dots\n)\n"
    )
    (work / "other.py").write_text(old)
    (work / "example.py").write_text(example)
    output = remat_migrate("--select", "ACM", "--output-format", "json", ".", cwd=work, path=acme)
    found = [(f["path"], f["code"], f["line"]) for f in json.loads(output)["findings"]]
    assert found == [("example.py", "ACM001", 3)]
    remat_migrate("--select", "ACM", "--fix", ".", cwd=work, path=acme)
    assert (work / "example.py").read_text() == example.replace("checkpoint_dots", "dots_saveable")
    assert (work / "other.py").read_text() == old
    shutil.rmtree(acme)
    assert "ACM001" not in remat_migrate("rules", path=acme)
