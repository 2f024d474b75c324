"""Input that no tool likes: each a clear message and the right exit code, the other files done."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from support import cli, read_files, write_files

GOOD = "import jax  # noqa: RMT999\n"
MENDED = "import jax\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path, {"pyproject.toml": "", "a_first.py": GOOD, "z_last.py": GOOD})
    return tmp_path


def errors(folder: Path) -> list[dict[str, Any]]:
    """The findings RMT000 of the whole folder."""
    ran = cli(folder, "--output-format", "json")
    assert ran.code == 1
    assert ran.err == ""
    found = json.loads(ran.out)["findings"]
    # The two good files are looked at, whatever lies between them.
    assert {"a_first.py", "z_last.py"} <= {f["path"] for f in found if f["code"] == "RMT001"}
    return [f for f in found if f["code"] == "RMT000"]


def fix_and_compare(folder: Path, *untouched: str) -> None:
    """Fixing mends the two good files and leaves the others as they are, byte for byte."""
    before = read_files(folder)
    ran = cli(folder, "--fix")
    assert ran.code == 1
    assert "Fixed 2: 2 RMT001." in ran.out
    mended = {name: MENDED.encode() for name in ("a_first.py", "z_last.py")}
    assert set(untouched) <= set(before)
    assert read_files(folder) == before | mended


BROKEN = {
    "binary": (b"\x7fELF\x02\x01\x00\x00checkpoint\x00", (1, 1), "is binary"),
    "binary without a word of ours": (bytes(range(256)), (1, 1), "is binary"),
    "not UTF-8": (
        b"import jax\n# caf\xe9\njax.checkpoint\n",
        (2, 1),
        "is not valid utf-8: byte 0xe9",
    ),
    "not UTF-8 without a word of ours": (b"x = 1\n# caf\xe9\n", (2, 1), "is not valid utf-8"),
    "UTF-16": ("import jax\njax.checkpoint\n".encode("utf-16"), (1, 1), "is UTF-16"),
    "UTF-16 big-endian": (b"\xfe\xff" + "x = 1\n".encode("utf-16-be"), (1, 1), "is UTF-16"),
    "an unknown encoding": (
        b"# coding: klingon\njax.checkpoint\n",
        (1, 1),
        "unknown encoding: klingon",
    ),
    "two encodings": (
        b"\xef\xbb\xbf# coding: latin-1\njax.checkpoint\n",
        (1, 1),
        "byte-order mark but declares another",
    ),
    "newer Python": (
        b"import jax\n\ntry jax.checkpoint(f) otherwise None\n",
        (3, 5),
        "if the file needs a newer Python, run remat-migrate under it",
    ),
    "Python 2": (b"import jax\nprint jax.checkpoint\n", (2, 1), "Python 3."),
    "an unclosed bracket": (b"import jax\njax.checkpoint(\n", (2, 15), "was never closed"),
    "bad indentation": (b"if x:\n    jax.checkpoint\n  y\n", (3, 0), "unindent"),
    "too deep": (b"jax.checkpoint(" + b"-" * 100_000 + b"1)\n", (1, 0), "cannot be parsed|too "),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_cannot_be_read_is_a_finding(project: Path, case: str) -> None:
    data, place, words = BROKEN[case]
    (project / "m_bad.py").write_bytes(data)
    (error,) = errors(project)
    assert error["path"] == "m_bad.py"
    line, column = place
    assert error["line"] == line
    if column:  # else Python versions differ
        assert error["column"] == column
    assert any(word in error["message"] for word in words.split("|"))
    full = cli(project)
    assert full.code == 1
    assert "m_bad.py:" in full.out
    assert all(letter.isprintable() or letter == "\n" for letter in full.out)
    fix_and_compare(project, "m_bad.py")


def test_a_loop_of_links(project: Path) -> None:
    (project / "self.py").symlink_to("self.py")
    (project / "up").symlink_to(project)
    (project / "one").symlink_to("two")
    (project / "two").symlink_to("one")
    assert errors(project) == []
    assert cli(project, "--fix").code == 0
    ran = cli(project, "self.py")
    assert ran.code == 2
    assert ran.err.startswith("error: self.py: ")


def test_a_file_that_may_not_be_written(project: Path) -> None:
    locked = project / "m_locked.py"
    locked.write_text(GOOD)
    locked.chmod(0o444)
    ran = cli(project, "--fix")
    assert ran.code == 1
    assert locked.read_text() == GOOD
    assert stat.S_IMODE(locked.stat().st_mode) == 0o444
    assert (project / "a_first.py").read_text() == (project / "z_last.py").read_text() == MENDED
    assert "m_locked.py" in ran.err
    assert "read-only" in ran.err
    assert "Fixed 2: 2 RMT001." in ran.out
    assert "m_locked.py:1:13: RMT001" in ran.out


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read(project: Path) -> None:
    secret = project / "m_secret.py"
    secret.write_text("import jax\njax.checkpoint\n")
    secret.chmod(0)
    (error,) = errors(project)
    assert error["message"] == "cannot be read: Permission denied"


@pytest.mark.slow
def test_a_file_of_fifty_thousand_lines(project: Path) -> None:
    lines = [f"v{i} = w{i}" for i in range(49_999)]
    for i in range(0, 49_999, 100):
        lines[i] = f"f{i} = jax.checkpoint(g{i})"
    for i in range(0, 49_999, 5_000):
        lines[i] += "  # noqa: RMT999"
    (project / "m_long.py").write_text("\n".join(["import jax", *lines, ""]))
    start = time.process_time()
    ran = cli(project, "--fix")
    assert ran.code == 0, ran.out[-500:]
    assert "Fixed 12: 12 RMT001." in ran.out
    expected = [line.removesuffix("  # noqa: RMT999") for line in lines]
    assert (project / "m_long.py").read_text() == "\n".join(["import jax", *expected, ""])
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[tool.remat-migrate]\nignore = ['RMT9']\n", "no rule code starts with RMT9"),
        (
            "[tool.remat-migrate.wrappers]\n'pkg.f' = 'jax.chekpoint'\n",
            "tool.remat-migrate.wrappers.pkg.f: unknown checkpoint function"
            " jax.chekpoint; did you mean jax.checkpoint?",
        ),
    ],
)
def test_wrong_settings(project: Path, settings: str, message: str) -> None:
    (project / "pyproject.toml").write_text(settings)
    before = read_files(project)
    ran = cli(project, "--fix")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert read_files(project) == before
