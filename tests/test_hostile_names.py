"""Names and texts that steer terminals, pages and jobs; files that are none, or lie elsewhere."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support import cli

CODE = "import jax  # noqa: RMT999\n\nf = jax.checkpoint({}, concrete=h)\n"
FIXED = "import jax\n"
EVIL = "\x1b[31m</script><script>alert(1)</script>\u202e`|@me ::error::%0A![x](y)<img src=x>"
NAMES = (
    b"a\nb.py",
    b"a\rb.py",
    b"a\x1b[31mred\x1b]0;t\x07.py",
    b"\xff\xfe.py",
    "a\u202eyp.py".encode(),
    "a\u200bb.py".encode(),
    b"--fix.py",
    b"-.py",
    b"::error::x.py",
    b"##[error]x.py",
    b"a%0A::error::b.py",
    b"<script>alert(1)<script>.py",
    b"|`x`|.py",
    b"@everyone.py",
    b"![x](javascript:y).py",
    b"]]>.py",
    b"&lt;.py",
    b"$(touch x).py",
    b"'; touch x;'.py",
    b"*.py",
    b" .py",
)
FORMATS = ("full", "concise", "json", "sarif", "github", "gitlab", "markdown", "html", "junit")
STEERING = frozenset("\x1b\x07\r\x08\u202e\u2066\u2069\x7f\x9b")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    for name in NAMES:
        with open(os.path.join(os.fsencode(folder), name), "w", encoding="utf-8") as file:
            file.write(CODE.format(f"g  # {EVIL}\n"))
    (folder / "text.py").write_text(CODE.format(repr(EVIL).replace("\\x1b", "\x1b")))
    return folder


@pytest.mark.parametrize("command", ["check", "report"])
@pytest.mark.parametrize("output", [*FORMATS, "rdjson"])
def test_reports_escape_control_characters(project: Path, output: str, command: str) -> None:
    ran = cli(project, command, "--output-format", output)
    assert ran.code == 1, ran.err
    assert not STEERING & set(ran.out)
    assert "Traceback" not in ran.err
    if output in ("json", "sarif", "gitlab", "rdjson"):
        json.loads(ran.out)
    elif output == "junit":
        ET.fromstring(ran.out)
    elif output == "html":
        assert "<script>alert" not in ran.out
        assert "<img src=x>" not in ran.out
    elif output == "github":
        commands = ("::error title=RMT", "::warning title=RMT", "::notice title=")
        assert all(line.startswith(commands) for line in ran.out.splitlines())
    elif output in ("full", "concise"):
        assert not any(line.startswith(("::", "##[")) for line in ran.out.splitlines())


def test_diff_patches_only_these_files(project: Path) -> None:
    # A name that holds what would be the patch of another file.
    forged = "x\n--- a/text.py\n+++ b/text.py\n@@ -1 +1 @@\n-import jax\n+evil\n.py"
    (project / forged.replace("/", "\u2215")).write_text(CODE.format("g"))
    ran = subprocess.run(
        [sys.executable, "-m", "remat_migrate", "--diff", "--no-cache"],
        cwd=project,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 1
    heads = [line for line in ran.stdout.split(b"\n") if line.startswith((b"--- ", b"+++ "))]
    assert len(heads) == 2 * (len(NAMES) + 2)
    assert not any(set(line.decode()) & STEERING for line in heads)
    assert not STEERING & set(ran.stderr.decode())
    for command in (["git", "init", "-q"], ["git", "apply", "-"]):
        subprocess.run(command, cwd=project, input=ran.stdout, check=True)
    for path in project.glob("*.py"):
        assert path.read_text(encoding="utf-8").startswith(FIXED)


@pytest.mark.parametrize("name", ["-.py", "--fix.py"])
def test_name_that_looks_like_an_option(project: Path, name: str) -> None:
    ran = cli(project, "--output-format", "json", "--", name)
    assert {f["path"] for f in json.loads(ran.out)["findings"]} == {name}
    assert (project / name).read_text(encoding="utf-8").startswith(CODE[:20])


def test_errors_escape_control_characters(tmp_path: Path) -> None:
    for arguments in (["\x1b[31mx.py"], ["--select", "\x1b[31m"], ["explain", "\x1b]0;x\x07"]):
        ran = cli(tmp_path, *arguments)
        assert ran.code == 2
        assert not STEERING & set(ran.out + ran.err)


def test_skips_special_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "m.py").write_text(CODE.format("g"))
    os.mkfifo(tmp_path / "pipe.py")
    os.mkfifo(tmp_path / "pyvenv.cfg")
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "folder.py" / "__init__.py")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket.py"))
        (tmp_path / "null.py").symlink_to("/dev/zero")
        ran = cli(tmp_path, "--output-format", "json", "m.py")
        assert {f["path"] for f in json.loads(ran.out)["findings"]} == {"m.py"}
        os.mkfifo(tmp_path / "pipe")
        assert cli(tmp_path, "-", "--stdin-filename", "pipe", stdin=b"x = 1\n").code == 0
        for name in ("pipe.py", "socket.py", "null.py"):
            ran = cli(tmp_path, name)
            assert ran.code == 2
            assert "not a file or folder" in ran.err


@pytest.mark.parametrize("name", ["pyproject.toml", ".gitignore", "base.json", "n.py"])
@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_settings_and_ignore_files_must_be_regular_files(
    tmp_path: Path, name: str, kind: str
) -> None:
    """Nothing is waited for, and nothing read without end."""
    (tmp_path / "m.py").write_text(CODE.format("g"))
    settings = "[tool.remat-migrate]\nbaseline = 'base.json'\n" if name == "base.json" else ""
    if name != "pyproject.toml":
        (tmp_path / "pyproject.toml").write_text(settings)
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    for arguments in ([], ["m.py"], ["--fix"]):
        ran = cli(tmp_path, *arguments)
        if name in ("pyproject.toml", "base.json"):
            assert ran.code == 2
            assert f"{name}: cannot be read: it is not a regular file" in ran.err
        else:
            assert (ran.code, ran.err) == (1, "")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_does_not_write_through_links_out_of_the_tree(tmp_path: Path, kind: str) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    for folder in (outside, project):
        folder.mkdir()
        (folder / "pyproject.toml").write_text("")
        (folder / "m.py").write_text(CODE.format("g"))
    link = project / ("far.py" if kind == "file" else "far")
    link.symlink_to(outside / "m.py" if kind == "file" else outside)
    ran = cli(project, "--fix")
    assert "Fixed 1: 1 RMT001" in ran.out
    assert (outside / "m.py").read_text() == CODE.format("g")
    # Named, it is what the user wants mended, in the project that it lies in.
    ran = cli(project, "--fix", str(link))
    assert "Fixed 1: 1 RMT001" in ran.out
    assert link.is_symlink()
    assert (outside / "m.py").read_text().startswith(FIXED)


def test_linked_settings_are_only_read(tmp_path: Path) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    project.mkdir()
    (outside / "m.py").write_text(CODE.format("g"))
    (project / "m.py").write_text("import jax  # noqa: RMT999\nimport m\n")
    (project / "pyproject.toml").write_text(
        f"[tool.remat-migrate]\nsearch-path = [{str(outside)!r}, '../outside', '/dev/null']\n"
        "exclude = ['../outside', '/outside/**']\n"
        "[tool.remat-migrate.per-file-ignores]\n'../outside/*' = ['RMT1']\n"
    )
    assert cli(project, "--fix").code == 0
    assert (outside / "m.py").read_text() == CODE.format("g")
    assert sorted(path.name for path in outside.iterdir()) == ["m.py"]
    # A baseline that is elsewhere is read, and what is none is an error that does not show it.
    (outside / "secret").write_text("password = 'hunter2'\n")
    (project / "pyproject.toml").write_text(
        "[tool.remat-migrate]\nbaseline = '../outside/secret'\n"
    )
    ran = cli(project)
    assert ran.code == 2
    assert "hunter2" not in ran.out + ran.err
