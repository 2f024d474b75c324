"""The files in `examples/` and the action: what they say is valid, and what they run works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import write_files

from remat_migrate import __version__

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
ACTION = ROOT / "action.yml"
SCRIPTS = Path(sys.executable).parent

WRONG = "import jax\n\nf = jax.checkpoint(lambda x: 2 * x, concrete=True)\n"
MARK = "<!-- remat-migrate -->"

# What stands for the expressions that the files use. They may stand nowhere but in these places: in
# a command they would be open to whoever names a branch or opens a pull request.
EXPRESSIONS = {
    "github.token": "secret",
    "github.repository": "someone/project",
    "github.event.pull_request.number": "7",
    "github.action_path": str(ROOT),
    "steps.python.outputs.python-path": sys.executable,
}

SCHEMAS = {
    "github-action.yml": "vendor.github-workflows",
    "github-workflow.yml": "vendor.github-workflows",
    "github-changed-files.yml": "custom.github-workflows-require-timeout",
    "gitlab-ci.yml": "vendor.gitlab-ci",
}

# Posts no comment: notes what it is asked, and answers with the comments that there are.
GH = """\
#!/bin/sh
printf '%s\\n' "$@" >> "$LOG"
case "$*" in *--paginate*) printf '%s' "$EARLIER" ;; *) cat comment.md >> "$LOG" ;; esac
"""
PIP = '#!/bin/sh\necho "pip $*" >> "$LOG"\n'


def load(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text())
    assert isinstance(loaded, dict)
    return loaded


def steps(path: Path) -> Iterator[dict[str, Any]]:
    content = load(path)
    if "runs" in content:
        yield from content["runs"]["steps"]
    for job in content.get("jobs", {}).values():
        yield from job["steps"]


class Runner:
    """A project on a machine that is like one of GitHub's: its last commit is a merge."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.log = folder / "log"
        self.log.write_text("")
        self.output, self.summary = folder / "output", folder / "summary"
        stubs = folder / "stubs"
        write_files(stubs, {"gh": GH, "pip": PIP})
        for stub in stubs.iterdir():
            stub.chmod(0o755)
        installed = folder / "temp" / "remat-migrate" / "bin"
        installed.mkdir(parents=True)
        (installed / "remat-migrate").symlink_to(SCRIPTS / "remat-migrate")
        self.environment = {
            "PATH": os.pathsep.join([str(stubs), str(SCRIPTS), os.environ["PATH"]]),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "LOG": str(self.log),
            "EARLIER": "",
            "RUNNER_TEMP": str(folder / "temp"),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }
        self.folder.mkdir()
        self.git("init", "--quiet")
        write_files(self.folder, {"pyproject.toml": "", "old.py": WRONG, "gone.py": WRONG})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "base")
        self.git("checkout", "--quiet", "-b", "branch")
        write_files(self.folder, {"new file.py": WRONG, "-new.py": WRONG, "logo.png": b"\x89\0"})
        (self.folder / "gone.py").unlink()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "branch")
        self.git("checkout", "--quiet", "-")
        self.git("merge", "--quiet", "--no-ff", "--message", "merge", "branch")

    def git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=self.folder, env=self.environment, check=True
        )

    def run(self, step: Mapping[str, Any], **more: str) -> tuple[int, str]:
        """What the commands of a step exit with and print."""
        assert "${{" not in step["run"]
        given = {name: evaluated(value) for name, value in step.get("env", {}).items()}
        # As GitHub starts it: with pipefail only where the shell is named.
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
        ran = subprocess.run(
            [*(shell if step.get("shell") == "bash" else ["bash", "-e"]), "-c", step["run"]],
            cwd=self.folder,
            env={**self.environment, **given, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout + ran.stderr


def evaluated(text: str) -> str:
    return re.sub(r"\$\{\{ ([^}]*) \}\}", lambda match: EXPRESSIONS[match[1]], text)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.mark.ecosystem
@pytest.mark.parametrize(
    ("path", "schema"),
    [
        *((EXAMPLES / name, schema) for name, schema in SCHEMAS.items()),
        (ACTION, "vendor.github-actions"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_published_schemas(path: Path, schema: str) -> None:
    command = [SCRIPTS / "check-jsonschema", "--builtin-schema", schema, path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == {*SCHEMAS, "pre-commit-config.yaml"}


@pytest.mark.ecosystem
def test_pre_commit_configuration() -> None:
    from pre_commit.clientlib import load_config, load_manifest

    known = {hook["id"] for hook in load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))}
    path = EXAMPLES / "pre-commit-config.yaml"
    [repository] = load_config(str(path))["repos"]
    assert {hook["id"] for hook in repository["hooks"]} <= known
    assert repository["rev"] == f"v{__version__}"


def test_workflow(runner: Runner) -> None:
    install, check, comment = (
        step for step in steps(EXAMPLES / "github-workflow.yml") if "run" in step
    )
    runner.run(install)
    assert runner.log.read_text() == "pip install remat-migrate\n"
    code, printed = runner.run(check)
    assert code == 1, printed
    annotated = set(re.findall(r"^::error .*?file=([^,]*),line=3,", printed, re.MULTILINE))
    assert annotated == {"old.py", "new file.py", "-new.py"}
    [upload] = (
        step for step in steps(EXAMPLES / "github-workflow.yml") if "upload" in step.get("uses", "")
    )
    sarif = json.loads((runner.folder / upload["with"]["sarif_file"]).read_text())
    assert len(sarif["runs"][0]["results"]) == 3
    runner.log.write_text("")
    assert runner.run(comment)[0] == 0
    asked = runner.log.read_text()
    assert "POST\nrepos/someone/project/issues/7/comments\n" in asked
    assert f"{MARK}\n" in asked
    assert "old.py" in asked
    runner.log.write_text("")
    assert runner.run(comment, EARLIER="12\n13\n")[0] == 0
    assert "PATCH\nrepos/someone/project/issues/comments/13\n" in runner.log.read_text()
    assert "POST" not in runner.log.read_text()


def test_the_comment_is_looked_for_by_its_mark(runner: Runner) -> None:
    """The filter is a program in jq's language: run here where jq is."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    *_, comment = (step for step in steps(EXAMPLES / "github-workflow.yml") if "run" in step)
    (runner.folder / "remat-migrate.md").write_text("-\n")
    runner.run(comment)
    asked = runner.log.read_text().splitlines()
    program = asked[asked.index("--jq") + 1]
    comments = [{"id": 3, "body": f"{MARK}\nx"}, {"id": 4, "body": f"no {MARK}"}]
    for given, expected in ((comments, "3\n"), (comments[1:], "")):
        ran = subprocess.run(
            ["jq", program], input=json.dumps(given), capture_output=True, text=True, check=True
        )
        assert ran.stdout == expected


def test_changed_files_alone(runner: Runner) -> None:
    *_, check = (step for step in steps(EXAMPLES / "github-changed-files.yml") if "run" in step)
    code, printed = runner.run(check)
    assert code == 1
    assert "file=new file.py,line=3," in printed
    assert "file=-new.py,line=3," in printed
    assert "old.py" not in printed
    assert "logo.png" not in printed
    runner.git("checkout", "--quiet", "-b", "other")
    runner.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
    assert runner.run(check) == (0, "")


def test_gitlab(runner: Runner) -> None:
    job = load(EXAMPLES / "gitlab-ci.yml")["remat-migrate"]
    install, check = job["script"]
    assert runner.run({"run": install})[0] == 0
    code, printed = runner.run({"run": check})
    assert code == 1
    assert "Found 3 findings in 3 files" in printed
    reports = job["artifacts"]["reports"]
    quality = json.loads((runner.folder / reports["codequality"]).read_text())
    assert {entry["location"]["path"] for entry in quality} >= {"old.py"}
    suites = ElementTree.parse(runner.folder / reports["junit"]).getroot()
    assert len(list(suites.iter("failure"))) == 3


def action_inputs(**given: str) -> dict[str, str]:
    """The environment of the action's last step, for inputs as a user gives them."""
    inputs = load(ACTION)["inputs"]
    *_, check = steps(ACTION)
    environment = {}
    for name, expression in check["env"].items():
        key = expression.removeprefix("${{ inputs.").removesuffix(" }}")
        environment[name] = given.pop(key, inputs[key]["default"])
    assert not given
    return environment


def test_action(runner: Runner) -> None:
    *_, check = steps(ACTION)
    script = {"run": check["run"], "shell": check["shell"]}
    code, printed = runner.run(script, **action_inputs())
    assert (code, printed.count("::error ")) == (1, 3)
    assert runner.output.read_text() == "exit-code=1\n"
    given = action_inputs(
        paths="new file.py\n-new.py\n",
        options="--select\nRMT1\n--exit-zero",
        sarif="a b.sarif",
        markdown="c.md",
    )
    code, printed = runner.run(script, **given)
    assert (code, printed.count("::error ")) == (0, 2)
    assert json.loads((runner.folder / "a b.sarif").read_text())["version"] == "2.1.0"
    assert "new file.py" in (runner.folder / "c.md").read_text()
    code, printed = runner.run(script, **action_inputs(paths="nowhere"))
    assert code == 2
    assert "nowhere: no such file or folder" in printed
    assert runner.output.read_text().endswith("exit-code=2\n")


@pytest.mark.slow
def test_action_installs_itself(runner: Runner, tmp_path: Path) -> None:
    """From its own checkout, into an environment that is not the user's."""
    _, install, check = steps(ACTION)
    source = tmp_path / "source"
    for name in ("remat_migrate", "rules"):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", ".*_cache")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.rmtree(tmp_path / "temp" / "remat-migrate")
    runner.environment |= {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
    script = {"run": install["run"], "shell": install["shell"]}
    code, printed = runner.run(script, PYTHON=sys.executable, SOURCE=str(source))
    assert code == 0, printed
    script = {"run": check["run"], "shell": check["shell"]}
    code, printed = runner.run(script, **action_inputs())
    assert (code, printed.count("::error ")) == (1, 3), printed
