"""The documents match the tool: commands, output, tables, and the example rule."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from shown_commands import commands, runs_jax, with_real_output

from remat_migrate import __version__
from remat_migrate.cli.commands import cli
from remat_migrate.measure.devices import parse_device
from remat_migrate.measure.options import measure_options
from remat_migrate.report.machine_readable.json import render_proof, verdict_row
from remat_migrate.report.terminal.display import Screen
from remat_migrate.settings import load_settings
from remat_migrate.verify.evidence import Outcome, Proof, Unit, Verdict
from remat_migrate.verify.options import verify_options

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
SITE, SOURCE = URLS["Documentation"], URLS["Repository"]
PICTURE = "assets/terminal.svg"
RULE = (DOCS / "how-to" / "write-a-rule.md").read_text()


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
    (shown,) = blocks(section(README, "Before and after"), "diff")
    assert "`remat-migrate --diff fixtures/old_trainer`" in README
    shutil.copytree(ROOT / "fixtures" / "old_trainer", tmp_path / "fixtures" / "old_trainer")
    assert shown in remat_migrate("--diff", "fixtures/old_trainer", cwd=tmp_path)


def test_readme_is_short_and_has_a_picture():
    assert len(README.splitlines()) <= 150
    assert re.search(r"^!\[.+\]\((.+)\)$", README, re.MULTILINE)[1] == f"{SITE}{PICTURE}"


def test_links_lead_somewhere():
    """Links to the site and to the repository, which also work on a package page."""
    for document in (ROOT / "README.md", *PAGES):
        for link in re.findall(r"\]\((https://[^)]+)\)", document.read_text()):
            if link.startswith(SITE):
                path = link.removeprefix(SITE).rstrip("/")
                found = [DOCS / path, DOCS / f"{path}.md", DOCS / path / "index.md"]
                assert path == "reference/rules" or any(map(Path.exists, found)), link
            elif link.startswith(f"{SOURCE}/blob/main/"):
                assert (ROOT / link.removeprefix(f"{SOURCE}/blob/main/")).exists(), link
    assert not re.findall(r"\]\((?!https://)", README)


def test_addresses_agree():
    configuration = (ROOT / "mkdocs.yml").read_text()
    assert f"site_url: {SITE}\n" in configuration
    assert f"repo_url: {SOURCE}\n" in configuration


SHOWN = [page for page in PAGES if commands(page)]
FAST = [page for page in SHOWN if not runs_jax(page)]


@pytest.mark.parametrize("page", FAST, ids=lambda page: page.stem)
def test_shown_commands(page, tmp_path):
    assert with_real_output(page, tmp_path) == page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({*SHOWN} - {*FAST}), ids=lambda page: page.stem)
def test_shown_commands_that_run_jax(page, tmp_path):
    jax = pytest.importorskip("jax")
    if jax.__version_info__ < (0, 12):
        pytest.skip("the pages show what jax 0.12 does")
    assert with_real_output(page, tmp_path) == page.read_text()


def test_commands_that_are_not_run_are_valid():
    """What guides show in `sh` blocks, and the README in its table, can be parsed."""
    lines = [
        line
        for page in PAGES
        for block in blocks(page.read_text(), "sh")
        for line in block.splitlines()
    ]
    lines += re.findall(r"^\| `(remat-migrate.*)` \|", README, re.MULTILINE)
    lines = [line for line in lines if line.startswith("remat-migrate") and "--help" not in line]
    assert len(lines) > 15
    for line in lines:
        words = shlex.split(line)[1:]
        context = cli.make_context("remat-migrate", words[:])
        name, command, rest = cli.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        given = command.make_context(name, rest, parent=context).params
        if device := given.get("device"):
            parse_device(device)


@pytest.mark.slow
def test_picture_shows_real_runs(tmp_path):
    pytest.importorskip("flax")

    def text(svg):
        return re.sub(r"[\d.]+", "*", " ".join(re.findall(r">([^<]+)</text>", svg)))

    drawn = tmp_path / "drawn.svg"
    command = [sys.executable, "benchmarks/terminal_picture.py", drawn]
    subprocess.run(command, cwd=ROOT, check=True)
    assert text((DOCS / PICTURE).read_text()) == text(drawn.read_text())


def test_shown_settings_are_valid(tmp_path):
    shown = [block for page in PAGES for block in blocks(page.read_text(), "toml")]
    shown = [block for block in shown if "[tool.remat-migrate" in block]
    assert len(shown) > 4
    for block in shown:
        (tmp_path / "pyproject.toml").write_text(block)
        settings = load_settings(tmp_path, tmp_path)
        verify_options(settings)
        measure_options(settings)


def test_keys_of_verdicts():
    verdict = Verdict(Unit(ROOT / "model.py", "f", "model"), Outcome.EQUAL)
    row = verdict_row(verdict)
    keys = section((DOCS / "reference" / "verdicts.md").read_text(), "JSON")
    rows = re.findall(r"^\| (`[^|]+`) \|", keys, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == row.keys()
    proof = json.loads(render_proof(Proof(), Screen(80, False, ROOT)))
    assert set(re.findall(r"`(\w+)`", keys.split("|", 1)[0])) >= proof.keys()


def test_changelog_has_this_version():
    assert re.search(
        rf"^## \[{re.escape(__version__)}\]", (ROOT / "CHANGELOG.md").read_text(), re.M
    )


@pytest.fixture
def acme(tmp_path):
    """The rule of the guide, installed from a wheel into a separate folder."""
    (rule,) = [block for block in blocks(RULE, "python") if "class PolicySpelling" in block]
    (entry,) = blocks(RULE, "toml")
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


def test_rule_of_the_guide_is_found_runs_and_fixes(acme, tmp_path):
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
