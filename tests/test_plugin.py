"""A third party's rules: found through the entry point group, run and applied like our own."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support import cli, write_files

RULE = '''
"""ACME001: our models must not keep the compiler from merging in checkpoints."""

from remat_migrate.api import Example, Fix, Rule, Safety, sites_in
from remat_migrate.api.changes import Code, Replace


class PreventCse(Rule):
    """## What it does

    Finds `prevent_cse=True`.

    ## Why is this bad?

    House rule.

    ## Fix

    Writes `False`.
    """

    code, name = "ACME001", "acme-prevent-cse"
    wrong = [
        Example(
            "import jax\\nf = jax.checkpoint(g, prevent_cse=True)\\n",
            "import jax\\nf = jax.checkpoint(g, prevent_cse=False)\\n",
        )
    ]
    right = ["import jax\\nf = jax.checkpoint(g, prevent_cse=False)\\n"]

    def check(self, module, project):
        """Findings, with a fix that rewrites the value."""
        for site in sites_in(project, module):
            if site.options.get("prevent_cse") == "True":
                value = site.arguments["prevent_cse"].value
                change = Replace(module, value, Code("False"))
                fix = Fix("prevent_cse=False", Safety.SAFE, (change,))
                yield self.finding(module.source, module.span(value), "True is not ours", fix=fix)


RULES = [PreventCse]
'''


def make_wheel(folder: Path, module: str, entry_point: str) -> Path:
    """A wheel of the package `acme` with one module of rules."""
    name = "acme"
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = {
        "acme_rules.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[remat_migrate.rules]\n{name} = {entry_point}\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in (files | {f"{info}/RECORD": record}).items():
            archive.writestr(path, text)
    return wheel


def install(folder: Path, module: str, entry_point: str = "acme_rules") -> Path:
    """Have pip install the package into a folder of its own."""
    target = folder / "site"
    wheel = make_wheel(folder, module, entry_point)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*command, "--target", str(target), str(wheel)], check=True)
    return target


def run(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`remat-migrate` in a process that sees what is installed in `site`, too."""
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-m", "remat_migrate", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write_files(
        folder,
        {
            "pyproject.toml": "",
            "a.py": "import jax\n\nf = jax.checkpoint(print, prevent_cse=True)  # kept\n",
        },
    )
    return folder


def test_a_third_party_s_rule_is_found_runs_and_fixes(tmp_path: Path, project: Path) -> None:
    site = install(tmp_path, RULE)

    listed = [line.split()[:2] for line in run(site, project, "rules").stdout.splitlines()]
    assert listed[0] == ["ACME001", "acme-prevent-cse"]
    assert ["RMT000", "unreadable-file"] in listed
    assert "House rule." in run(site, project, "explain", "ACME001").stdout

    found = run(site, project, "--output-format", "concise")
    assert found.returncode == 1
    assert found.stdout == (
        "a.py:3:39: ACME001 True is not ours [safe fix]\nFound 1 finding in 1 file: 1 fixable.\n"
    )
    assert run(site, project, "--ignore", "ACME").returncode == 0

    fixed = run(site, project, "--fix")
    assert fixed.returncode == 0, fixed.stderr
    assert fixed.stdout.startswith("Fixed 1: 1 ACME001")
    assert (project / "a.py").read_text() == (
        "import jax\n\nf = jax.checkpoint(print, prevent_cse=False)  # kept\n"
    )


def test_an_entry_point_may_name_one_rule(tmp_path: Path, project: Path) -> None:
    site = install(tmp_path, RULE, "acme_rules:PreventCse")
    assert "ACME001" in run(site, project, "--output-format", "concise").stdout


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("import no_such_module\n", ["cannot import", "no_such_module"]),
        ("1 / 0\n", ["cannot import", "ZeroDivisionError"]),
        ("x = 1\n", ["neither a rule nor a module with RULES"]),
        ("RULES = [int]\n", ["<class 'int'>", "not a subclass of remat_migrate.rule.Rule"]),
        (
            RULE.replace('"ACME001", "acme-prevent-cse"', '"acme-1", "acme-prevent-cse"'),
            ["acme_rules.PreventCse", "with a name and a code", "'acme-1'"],
        ),
        (
            RULE.replace('code, name = "ACME001", "acme-prevent-cse"', ""),
            ["acme_rules.PreventCse", "with a name and a code", "None"],
        ),
        (
            RULE.replace('"ACME001"', '"RMT001"'),
            ["two rules share the code RMT001", "package remat-migrate"],
        ),
    ],
)
def test_a_package_with_broken_rules_is_named(
    tmp_path: Path, project: Path, module: str, words: list[str]
) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(make_wheel(tmp_path, module, "acme_rules")).extractall(site)
    ran = run(site, project)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    for word in ["error: ", "package acme", *words]:
        assert word in ran.stderr


def test_the_examples_of_a_rule_are_run(tmp_path: Path) -> None:
    write_files(
        tmp_path, {"right.py": RULE, "wrong.py": RULE.replace('Code("False")', 'Code("0")')}
    )
    ran = cli(tmp_path, "rules", "--test", "right.py")
    assert (ran.code, ran.err) == (0, "ACME001: 0 of 2 examples failed\n")
    ran = cli(tmp_path, "rules", "--test", "wrong.py")
    assert (ran.code, ran.err) == (1, "ACME001: 1 of 2 examples failed\n")
    assert "it was fixed to\nimport jax\nf = jax.checkpoint(g, prevent_cse=0)" in ran.out
    assert cli(tmp_path, "rules", "--test", "none.py").code == 2
