"""The hooks, run by pre-commit on temporary repositories.

Most tests replace only `language: python` in the real manifest, so that the installed remat-migrate
runs without building an environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import cli, git, read_files, write_files

pytestmark = pytest.mark.ecosystem

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
SCRIPTS = Path(sys.executable).parent

WRONG = "import jax\n\nf = jax.checkpoint(lambda x: 2 * x, concrete=True)\n"
RIGHT = "import jax\n\nf = jax.checkpoint(lambda x: 2 * x)\n"
BLOCK = "def block(x, flag):\n    if flag:\n        return x\n    return -x\n"
FAULT = "- exit code: 2"


class Repository:
    """A git repository whose pre-commit configuration uses the hooks of another repository."""

    def __init__(self, folder: Path, hooks: Path, *, language: str = "language: system") -> None:
        self.folder = folder
        self.hooks = hooks
        self.language = language
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet")
        self.use("remat-migrate-fix")

    def use(self, hook: str, *more: str) -> None:
        """Configure one hook, with additional lines."""
        revision = git(self.hooks, "rev-parse", "HEAD").strip()
        lines = [f"id: {hook}", *([self.language] if self.language else []), *more]
        body = "\n".join(f"        {line}" for line in lines).replace("        ", "      - ", 1)
        text = f"repos:\n  - repo: {self.hooks}\n    rev: {revision}\n    hooks:\n{body}\n"
        (self.folder / ".pre-commit-config.yaml").write_text(text)
        git(self.folder, "add", ".pre-commit-config.yaml")

    def write(self, **files: str) -> None:
        """Write Python files, given by name without suffix."""
        write_files(self.folder, {f"{name}.py": text for name, text in files.items()})

    def commit(self) -> None:
        """Commit everything without running hooks."""
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--no-verify", "--message", "-")

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def run(self, *arguments: str, program: str = "pre-commit") -> tuple[int, str]:
        """Run pre-commit and return its exit code and output."""
        environment = {k: v for k, v in os.environ.items() if k[:4] != "GIT_" and k != "SKIP"}
        environment["PATH"] = f"{SCRIPTS}{os.pathsep}{environment['PATH']}"
        for variable, home in (("PRE_COMMIT_HOME", "pre-commit"), ("PREK_HOME", "prek")):
            environment[variable] = str(self.hooks.parent / home)
        ran = subprocess.run(
            [program, *(arguments or ["run"])],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture(scope="session")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that contains only the manifest."""
    if not (SCRIPTS / "pre-commit").exists():
        pytest.fail("pre-commit is not installed: pip install -e '.[ci]'")
    folder = tmp_path_factory.mktemp("precommit") / "hooks"
    folder.mkdir()
    git(folder, "init", "--quiet")
    shutil.copy(MANIFEST, folder)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "hooks")
    return folder


@pytest.fixture
def repository(hooks: Path, tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository", hooks)


def test_hook_ids_are_stable(hooks: Path) -> None:
    from pre_commit.clientlib import load_manifest

    manifest = {hook["id"]: hook for hook in load_manifest(str(MANIFEST))}
    assert list(manifest) == ["remat-migrate", "remat-migrate-fix"]
    check, fix = manifest.values()
    assert fix["entry"].split() == [*check["entry"].split(), "--fix"]
    for hook in manifest.values():
        assert hook["language"] == "python"
        assert hook["require_serial"]


def test_check_reports_only_changed_files(repository: Repository) -> None:
    repository.use("remat-migrate")
    repository.write(unchanged=WRONG, changed=RIGHT)
    repository.commit()
    repository.write(changed=WRONG)
    git(repository.folder, "add", "changed.py")
    code, printed = repository.run()
    assert code == 1
    assert "- exit code: 1" in printed
    assert "changed.py:3:37: RMT101" in printed
    assert "Found 1 finding in 1 file: 1 fixable." in printed
    assert repository.text("changed.py") == WRONG
    code, printed = repository.run("run", "--all-files")
    assert code == 1
    assert "unchanged.py:3:37: RMT101" in printed


def test_fix_fails_once_after_changing_files(repository: Repository) -> None:
    repository.write(unchanged=WRONG, changed=WRONG)
    repository.commit()
    repository.write(changed=WRONG + "\n")
    git(repository.folder, "add", "changed.py")
    code, printed = repository.run()
    assert code == 1
    # `--fix` exits with 0 because nothing is left; pre-commit detects the modified files.
    assert "- files were modified by this hook" in printed
    assert "exit code" not in printed
    assert "Fixed 1: 1 RMT101." in printed
    assert repository.text("changed.py") == RIGHT + "\n"
    assert repository.text("unchanged.py") == WRONG
    assert git(repository.folder, "status", "--short") == "MM changed.py\n"
    git(repository.folder, "add", "changed.py")
    assert repository.run()[0] == 0


def test_a_fix_edits_only_changed_files(repository: Repository) -> None:
    """A fix that also edits a call in an unchanged file is not applied."""
    caller = "from model import f\n\n\ndef main(x):\n    return f(x, flag=True)\n"
    model = f"import jax\n\n\n{BLOCK}\n\nf = jax.checkpoint(block, concrete=True)\n"
    repository.write(caller=caller, model=BLOCK)
    repository.commit()
    repository.write(model=model)
    git(repository.folder, "add", "model.py")
    code, printed = repository.run()
    assert (code, "Fixed nothing." in printed) == (1, True), printed
    assert "caller.py was not named (1 fix not made)" in printed
    assert "to fix it: remat-migrate --fix caller.py model.py" in printed
    assert (repository.text("caller.py"), repository.text("model.py")) == (caller, model)
    # If both files changed, the calls are edited.
    repository.write(model=model, caller=caller + "\n")
    git(repository.folder, "add", "--all")
    repository.run()
    assert "f(x, True)" in repository.text("caller.py")
    assert "static_argnums=(1,)" in repository.text("model.py")


OPTIONS = {
    "options.py": "OPTIONS = dict(concrete=True)\n",
    "model.py": (
        f"import jax\nfrom options import OPTIONS\n\n\n{BLOCK}\n\n"
        "f = jax.checkpoint(block, **OPTIONS)\n"
    ),
    "old/train.py": "import model\n\n\ndef main(x):\n    return model.f(x, flag=True)\n",
    "pyproject.toml": "[tool.remat-migrate]\nexclude = ['old/']\n",
}


@pytest.mark.parametrize(
    ("changed", "found", "advice"),
    [
        # The option is reported where the changed file uses it.
        ("model.py", "model.py:11:5: RMT101", "--fix model.py old/train.py options.py"),
        ("options.py", "options.py:1:16: RMT101", "--fix old/train.py options.py"),
    ],
)
def test_findings_linked_to_unchanged_files_have_advice(
    tmp_path: Path, changed: str, found: str, advice: str
) -> None:
    """Runs the command of the hook without pre-commit."""
    write_files(tmp_path, OPTIONS)
    ran = cli(tmp_path, "--force-exclude", "--fix", changed)
    assert (ran.code, found in ran.out) == (1, True), ran
    assert advice in (ran.out + ran.err).replace("\n                ", "").replace("\n", " ")
    assert read_files(tmp_path) == {name: text.encode() for name, text in OPTIONS.items()}


def test_excluded_files_are_not_edited_for_others(tmp_path: Path) -> None:
    files = {**OPTIONS, "pyproject.toml": "[tool.remat-migrate]\nexclude = ['options.py']\n"}
    write_files(tmp_path, files)
    ran = cli(tmp_path, "--fix", "--force-exclude", *OPTIONS)
    assert ran.code == 1
    assert "options.py is excluded by the settings (1 fix not made)" in ran.err
    assert (tmp_path / "options.py").read_text() == OPTIONS["options.py"]


def test_excluded_files_and_invalid_settings(repository: Repository) -> None:
    settings = '[tool.remat-migrate]\nexclude = ["old/", "*_pb2.py"]\n'
    names = ["old/a.py", "b_pb2.py", "pkg/node_modules/c.py"]
    write_files(
        repository.folder, {"pyproject.toml": settings, "d.py": RIGHT} | dict.fromkeys(names, WRONG)
    )
    git(repository.folder, "add", "--all")
    assert repository.run()[0] == 0
    assert [repository.text(name) for name in names] == [WRONG] * 3
    (repository.folder / "pyproject.toml").write_text(settings.replace("exclude", "exlude"))
    git(repository.folder, "add", "--all")
    code, printed = repository.run()
    assert code == 1
    assert FAULT in printed
    assert "did you mean exclude?" in printed


def test_file_names_and_types(repository: Repository) -> None:
    flagged = "JAX_NEW_CHECKPOINT=0"
    files = {
        "with blank/naïve file.py": WRONG,
        "日本/モデル.py": WRONG,
        "run.sh": f"export {flagged}\npython train.py\n",
        "script": f"#!/bin/sh\nexport {flagged}\npython train.py\n",
        "Dockerfile": f'FROM python\nENV {flagged}\nCMD ["python"]\n',
        ".env": f"{flagged}\nA=1\n",
        ".env.local": f"{flagged}\nA=1\n",
        "deploy/prod.env": f"{flagged}\nA=1\n",
        ".github/ci.yml": "env:\n  JAX_NEW_CHECKPOINT: 0\n  A: 1\n",
        "notes.txt": flagged,
    }
    write_files(repository.folder, files)
    (repository.folder / "script").chmod(0o755)
    (repository.folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    git(repository.folder, "add", "--all")
    code, printed = repository.run()
    assert (code, "Fixed 9: 2 RMT101, 7 RMT102." in printed) == (1, True), printed
    for name in files:
        assert (flagged in repository.text(name)) == (name == "notes.txt"), name
        assert "concrete" not in repository.text(name), name
    git(repository.folder, "add", "--all")
    assert repository.run()[0] == 0


def test_unstaged_changes_are_ignored_and_kept(repository: Repository) -> None:
    repository.write(model=f"{RIGHT}\n\n{BLOCK}")
    repository.commit()
    repository.write(model=f"{WRONG}\n\n{BLOCK}")
    git(repository.folder, "add", "model.py")
    unstaged = f"{WRONG}\n\n{BLOCK}\ng = jax.remat(abs, concrete=False)\n"
    repository.write(model=unstaged)
    repository.use("remat-migrate")
    code, printed = repository.run()
    assert (code, "Found 1 finding in 1 file" in printed) == (1, True), printed
    repository.use("remat-migrate-fix")
    assert repository.run()[0] == 1
    assert repository.text("model.py") == unstaged.replace(WRONG, RIGHT)
    git(repository.folder, "add", "model.py")
    git(repository.folder, "reset", "--quiet")


def test_a_commit_runs_the_installed_hook(repository: Repository) -> None:
    """`git commit` sets GIT_DIR and GIT_INDEX_FILE for its hooks."""
    assert repository.run("install")[0] == 0
    repository.write(a=WRONG)
    git(repository.folder, "add", "--all")
    commit = ("git", "-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qm", "-")
    code, printed = repository.run(*commit[1:], program="git")
    assert (code, repository.text("a.py")) == (1, RIGHT), printed
    code, printed = repository.run(*commit[1:], "a.py", program="git")
    assert code == 0, printed


@pytest.mark.skipif(not (SCRIPTS / "prek").exists(), reason="prek is not installed")
def test_prek_runs_the_same_hooks(repository: Repository) -> None:
    repository.write(a=WRONG)
    git(repository.folder, "add", "--all")
    code, printed = repository.run(program="prek")
    assert (code, repository.text("a.py")) == (1, RIGHT), printed
    assert "files were modified by this hook" in printed
    git(repository.folder, "add", "--all")
    assert repository.run(program="prek")[0] == 0
