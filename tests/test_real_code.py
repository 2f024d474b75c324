"""The command that compares what is found in real repositories with what was recorded."""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from real_code import main
from regression.syntax import broken_syntax
from regression.table import (
    Difference,
    Place,
    Record,
    Table,
    TableError,
    differences,
    places_file,
    read_table,
    write_table,
)
from regression.trees import read_repository
from regression.trial import try_repository
from support import git, read_files, write_files

REMOVED = "from jax.ad_checkpoint import checkpoint\n\nf = checkpoint(abs)\n"
PLAIN = {"code.py": "import jax\n\nf = jax.checkpoint(abs)\n", "odd.py": "jax.checkpoint(\n"}


def clone(folder: Path, files: dict[str, str], origin: str = "") -> str:
    """A git repository with one commit, which is returned."""
    write_files(folder, files)
    git(folder, "init", "-q")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "all")
    if origin:
        git(folder, "remote", "add", "origin", origin)
    return git(folder, "rev-parse", "HEAD").strip()


def change(table: Path, old: str, new: str) -> None:
    """Change what was recorded, in the table and in the places beside it."""
    for file in (table, places_file(table)):
        file.write_text(file.read_text().replace(old, new))


@pytest.fixture
def repositories(tmp_path):
    """A clone with a finding that has a fix, and a plain folder with one that has none."""
    folder = tmp_path / "repositories"
    files = {"code.py": REMOVED, "docs/notes.txt": "text\n"}
    clone(folder / "theirs", files, "https://example.org/someone/theirs.git")
    write_files(folder / "plain", PLAIN)
    return folder


def test_compares_with_the_record(repositories, tmp_path, capsys, monkeypatch):
    # Each is tried once: what is compared is not what takes time.
    monkeypatch.setattr("real_code.try_repository", functools.cache(try_repository))
    before = read_files(repositories)
    table = tmp_path / "table.tsv"
    arguments = [str(repositories), "--table", str(table), "--jobs", "2"]

    assert main([*arguments, "--record"]) == 0
    printed = capsys.readouterr().out
    assert "1 findings, 1 fixed, 1 with --unsafe-fixes: not in the table\n" in printed
    assert "Tried 2 repositories, recorded 2: 0 with differences, 0 violations" in printed
    commit = git(repositories / "theirs", "rev-parse", "HEAD").strip()
    version = read_repository(repositories / "plain").version
    assert re.fullmatch(r"tree-[0-9a-f]{12}", version)
    assert table.read_text() == (
        "repository\tversion\tfiles\tunread\tsites\tfindings\tfixed\tunsafe\n"
        f"plain\t{version}\t2\t1\t1\tRMT000=1\t-\t-\n"
        f"someone/theirs\t{commit}\t1\t0\t1\tRMT103=1\tRMT103=1\tRMT103=1\n"
    )
    assert places_file(table).read_text() == (
        "repository\tversion\tcode\tpath\tline\n"
        f"plain\t{version}\tRMT000\todd.py\t1\n"
        f"someone/theirs\t{commit}\tRMT103\tcode.py\t1\n"
    )
    assert read_files(repositories) == before

    change(table, version, "0" * 40)
    assert main([*arguments, "--only", "plain"]) == 0
    printed = capsys.readouterr().out
    assert (
        "1 findings, 0 fixed, 0 with --unsafe-fixes: not compared, recorded at 000000000000\n"
        in printed
    )
    assert "compared with the table 0: 0 with differences, 0 violations." in printed

    change(table, "0" * 40, version)
    change(table, "2\t1\t1\tRMT000=1", "2\t1\t4\tRMT000=1")
    change(table, "odd.py\t1", "gone.py\t7")
    assert main([*arguments, "--only", "plain"]) == 1
    printed = capsys.readouterr().out
    assert (
        f"plain {version}: 2 files, 1 sites, 1 findings, 0 fixed, 0 with --unsafe-fixes: DIFFERENT"
        in printed
    )
    assert (
        f"\nplain {version}\n"
        "  what             expected  found\n"
        "  sites                   4      1\n"
        "  findings RMT000         1      1\n"
        "    + odd.py:1: RMT000 " in printed
    )
    assert "\n    - gone.py:7: RMT000\n" in printed


@pytest.mark.parametrize("what", ["missing", "empty", "file"])
def test_no_repository_is_wrong_usage(what, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert main([str(tmp_path / what), "--table", str(tmp_path / "table.tsv")]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_invalid_table_is_wrong_usage(tmp_path, capsys):
    write_files(tmp_path / "all/one", "x = 1\n")
    table = tmp_path / "table.tsv"
    table.write_text("name\tcommit\n")
    places_file(table).write_text("name\tcommit\n")
    assert main([str(tmp_path / "all"), "--table", str(table)]) == 2
    assert "the columns are not repository, version" in capsys.readouterr().err


# A tool that keeps none of its promises.
LIAR = """
import json, pathlib, sys

file, arguments = pathlib.Path("code.py"), sys.argv[1:]
finding = {
    "code": "RMT103", "path": "code.py", "line": 1, "message": "",
    "fix": {"safety": "safe", "edits": [{}]},
}
elsewhere = "--force-exclude" in arguments
found = [] if elsewhere else [finding]
if "--fix" in arguments:
    file.write_text(file.read_text() + "f(\\n")
    pathlib.Path("left.py").write_text("")
    [log] = [a.partition("=")[2] for a in arguments if a.startswith("sarif=")]
    run = {"properties": {"fixed": {"RMT103": 1}}}
    pathlib.Path(log).write_text(json.dumps({"runs": [run]}))
if "--diff" in arguments:
    print("error: a fault of a rule", file=sys.stderr)
elif arguments[0] != "undo":
    print(json.dumps({"summary": {"files": 1}, "findings": found, "sites": []}))
"""


def test_detects_violated_properties(tmp_path):
    write_files(tmp_path / "one", {"code.py": REMOVED})
    write_files(tmp_path, {"liar.py": LIAR})
    tool = (sys.executable, str(tmp_path / "liar.py"))
    found = try_repository(read_repository(tmp_path / "one"), 60, tool)
    broken = {(one.promise, one.detail.partition(":")[0]) for one in found.broken}
    assert broken == {
        ("order and folder", "lost there"),
        ("fault", "check --no-cache --diff ."),
        ("fix", "left.py"),
        ("parse", "code.py"),
        ("second fix", "fixes {'RMT103'"),
        ("second fix", "code.py differs"),
        ("undo", "code.py differs"),
        ("undo", "left.py differs"),
        ("diff", "git apply"),
    }
    assert read_files(tmp_path / "one") == {"code.py": REMOVED.encode()}


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ("raise ValueError", "exit code 1: Traceback"),
        ("raise SystemExit(2)", "exit code 2: "),
        ("import os; os.abort()", "exit code -6: "),
        ("print('no document')", "stdout is not JSON"),
        ("import time; time.sleep(60)", "timed out after 0.5 s"),
    ],
)
def test_detects_failed_runs(script, detail, tmp_path):
    write_files(tmp_path / "one", {"code.py": REMOVED})
    tool = (sys.executable, "-c", script)
    timeout = 0.5 if "sleep" in script else 60
    found = try_repository(read_repository(tmp_path / "one"), timeout, tool)
    assert found.record is None
    (broken,) = found.broken
    assert broken.promise == "crash"
    assert detail in broken.detail


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("https://example.org/someone/theirs.git", "someone/theirs"),
        ("https://example.org/group/someone/theirs", "someone/theirs"),
        ("git@example.org:someone/theirs.git", "someone/theirs"),
        ("../elsewhere/theirs", "mine"),
        ("", "mine"),
    ],
)
def test_clone_is_named_after_its_origin(origin, name, tmp_path):
    commit = clone(tmp_path / "mine", {"code.py": "x = 1\n"}, origin)
    found = read_repository(tmp_path / "mine")
    assert (found.name, found.version, found.files) == (name, commit, ("code.py",))


def test_modified_clone_has_another_version(tmp_path):
    commit = clone(tmp_path, {"code.py": "x = 1\n", "picture.png": "p"})
    write_files(tmp_path, {"picture.png": "q", "new.py": ""})
    assert read_repository(tmp_path).version == commit
    write_files(tmp_path, {"code.py": "x = 2\n"})
    assert read_repository(tmp_path).version == f"{commit}+changes"


def test_version_of_a_folder_depends_on_its_content(tmp_path):
    write_files(tmp_path, {"code.py": "x = 1\n", "a/b.py": ""})
    first = read_repository(tmp_path)
    assert first.files == ("a/b.py", "code.py")
    write_files(tmp_path, {"code.py": "x = 2\n"})
    second = read_repository(tmp_path)
    (tmp_path / "code.py").rename(tmp_path / "other.py")
    assert len({first.version, second.version, read_repository(tmp_path).version}) == 3


NOTEBOOK = '{"cells": [{"cell_type": "code", "source": ["!ls\\n", "%s"]}]}'


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("code.py", "x = 1\n", "x = (\n"),
        ("stub.pyi", "x: int\n", "x:\n"),
        ("script", "#!/usr/bin/env python\nx = 1\n", "#!/usr/bin/env python\nx = (\n"),
        ("book.ipynb", NOTEBOOK % "x = 1", NOTEBOOK % "x = ("),
        ("book.ipynb", NOTEBOOK % "x = 1", "{"),
        ("run.sh", "if true; then echo; fi\n", "if true; then echo\n"),
        ("jobs.yaml", "a: [1]\n", "a: [1\n"),
        ("tool.toml", "a = 1\n", "a = \n"),
    ],
)
def test_reports_new_syntax_errors(name, good, bad):
    assert broken_syntax(name, good.encode(), good.encode()) is None
    assert broken_syntax(name, good.encode(), bad.encode())
    # Nobody could read it before.
    assert broken_syntax(name, bad.encode(), bad.encode()) is None


RECORD = Record(
    10, 1, 5, {"RMT000": 1, "RMT301": 1}, {}, {"RMT301": 1},
    (Place("a.py", 3, "RMT000"), Place("b.py", 4, "RMT301")),
)  # fmt: skip


def test_table_round_trip(tmp_path):
    file = tmp_path / "table.tsv"
    table = Table({("one", "2"): RECORD, ("one", "1"): replace(RECORD, findings={}, places=())})
    write_table(table, file)
    assert read_table(file) == table
    assert table.versions("one") == ["1", "2"]
    written = file.read_text()
    write_table(read_table(file), file)
    assert file.read_text() == written
    assert read_table(tmp_path / "other.tsv") == Table()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\t10\t", "\tten\t", "table.tsv:2: 'ten' is not a number"),
        ("\t10\t", "\t", "table.tsv:2: 7 columns instead of 8"),
        ("RMT301=1\t-", "RMT301=2\t-", "table.tsv:2: does not match the findings"),
    ],
)
def test_table_errors_have_a_location(old, new, message, tmp_path):
    file = tmp_path / "table.tsv"
    write_table(Table({("one", "2"): RECORD}), file)
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(TableError, match=re.escape(message)):
        read_table(file)


def test_differences_are_named():
    moved = (Place("a.py", 3, "RMT000"), Place("b.py", 9, "RMT301"))
    changed = replace(RECORD, sites=6, unread=0, fixed={"RMT101": 2}, places=moved)
    assert list(differences(RECORD, changed)) == [
        Difference("unread", 1, 0),
        Difference("sites", 5, 6),
        Difference("findings RMT301", 1, 1, moved[1:], RECORD.places[1:]),
        Difference("fixed RMT101", 0, 2),
    ]
    assert list(differences(RECORD, RECORD)) == []
