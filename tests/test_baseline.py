"""Baselines hide known findings, report new ones, and list stale entries."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import Ran, cli, write_files

from remat_migrate.engine.baseline import Coverage, read_baseline, render
from remat_migrate.settings import load_settings

ONE = (
    "import jax\n\n\ndef g(x):\n    return x\n\n\n"
    "def f(x):\n    return jax.checkpoint(g, concrete=True)(x)\n"
)
TWO = ONE + "\n\ndef h(x):\n    return jax.checkpoint(g, concrete=True)(x)\n"
BROKEN = "import jax\njax.checkpoint(\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a project with three known findings in two files."""
    folder = tmp_path.resolve() / "project"
    write_files(folder, {"setup.cfg": "", "src/a.py": ONE, "src/b.py": TWO})
    ran = cli(folder, "--write-baseline", "known.json")
    assert (ran.code, ran.err) == (0, "Wrote 3 findings in 2 files to known.json.\n")
    return folder


def compared(folder: Path, *arguments: str | Path) -> Ran:
    return cli(folder, "--baseline", "known.json", "--output-format", "concise", *arguments)


def last(ran: Ran) -> str:
    return ran.out.splitlines()[-1]


def entries(folder: Path, name: str = "known.json") -> list[dict[str, object]]:
    found = json.loads((folder / name).read_text())["findings"]
    assert isinstance(found, list)
    return found


def test_format(folder: Path) -> None:
    document = json.loads((folder / "known.json").read_text())
    assert document["version"] == 1
    assert [(e["path"], e["code"], e["count"], e["within"]) for e in document["findings"]] == [
        ("src/a.py", "RMT101", 1, "f"),
        ("src/b.py", "RMT101", 1, "f"),
        ("src/b.py", "RMT101", 1, "h"),
    ]
    assert {e["statement"] for e in document["findings"]} == {
        "return jax.checkpoint(g, concrete=True)(x)"
    }


def test_known_findings_are_hidden(folder: Path) -> None:
    ran = compared(folder)
    assert (ran.code, ran.out, ran.err) == (0, "No findings in 4 files.  (3 known)\n", "")
    ran = cli(folder, "report", "--baseline", "known.json", "--output-format", "json")
    assert ran.code == 0
    assert json.loads(ran.out)["summary"]["known"] == 3


def test_new_findings_are_reported(folder: Path) -> None:
    write_files(folder, {"src/c.py": ONE, "src/a.py": TWO.replace("import jax", "import jax # 1")})
    ran = compared(folder)
    assert ran.code == 1
    assert [line.partition(" ")[0] for line in ran.out.splitlines()[:-1]] == [
        "src/a.py:13:30:",
        "src/c.py:9:30:",
    ]
    assert last(ran) == "Found 2 findings in 2 files: 2 fixable.  (3 known)"


def test_moved_and_reformatted_code_matches(folder: Path) -> None:
    moved = "import jax\nimport os\n\n\ndef h(x):\n  return jax.checkpoint(\n"
    moved += "    g,\n    concrete=True,\n  )(x)"
    moved += "\n\n# more\n\ndef f(x): return jax.checkpoint(g,concrete = True)( x )  # a\n"
    write_files(folder, {"src/b.py": moved})
    assert compared(folder).code == 0


def test_identical_findings_are_counted(folder: Path) -> None:
    body = "    return jax.checkpoint(g, concrete=True)(x)\n"
    write_files(folder, {"src/a.py": ONE.replace(body, body * 3)})
    ran = compared(folder)
    assert [line.partition(" ")[0] for line in ran.out.splitlines()[:-1]] == [
        "src/a.py:10:30:",
        "src/a.py:11:30:",
    ]
    cli(folder, "--write-baseline", "known.json")
    assert [e["count"] for e in entries(folder)] == [3, 1, 1]
    write_files(folder, {"src/a.py": ONE.replace(body, body * 2)})
    ran = compared(folder)
    assert (ran.code, last(ran)) == (0, "No findings in 4 files.  (4 known, 1 stale)")


def test_stale_entries_are_listed_and_dropped_when_rewriting(folder: Path) -> None:
    write_files(folder, {"src/b.py": ONE})
    ran = compared(folder)
    assert (ran.code, last(ran)) == (0, "No findings in 4 files.  (2 known, 1 stale)")
    assert ran.err == (
        "note: 1 finding of known.json is gone; --write-baseline known.json removes it\n"
        "  src/b.py: RMT101 in h: return jax.checkpoint(g, concrete=True)(x)\n"
    )
    summary = json.loads(cli(folder, "--baseline", "known.json", "--output-format", "json").out)[
        "summary"
    ]
    assert (summary["known"], summary["stale"]) == (2, 1)
    [stale] = summary["baseline"]["stale"]
    assert (stale["path"], stale["code"], stale["within"]) == ("src/b.py", "RMT101", "h")
    ran = cli(folder, "--write-baseline", "known.json")
    assert ran.err == "Wrote 2 findings in 2 files to known.json: 1 dropped that are gone.\n"
    assert compared(folder).err == ""


def test_a_run_over_one_file_keeps_other_entries(folder: Path) -> None:
    write_files(folder, {"src/a.py": "import jax\n", "src/b.py": "import jax\n"})
    ran = compared(folder, "src/a.py")
    assert "src/a.py: RMT101 in f" in ran.err
    assert "src/b.py" not in ran.err
    ran = cli(folder, "src/a.py", "--write-baseline", "known.json")
    assert ran.err == (
        "Wrote 2 findings in 1 file to known.json:"
        " 2 kept that this run did not look for, 1 dropped that are gone.\n"
    )
    assert [e["path"] for e in entries(folder)] == ["src/b.py", "src/b.py"]


def test_a_run_with_some_rules_keeps_other_entries(folder: Path) -> None:
    write_files(folder, {"src/a.py": "import jax\n"})
    assert compared(folder, "--select", "RMT103").err == ""
    cli(folder, "--select", "RMT103", "--write-baseline", "known.json")
    assert len(entries(folder)) == 3
    assert "src/a.py" in compared(folder, "--select", "RMT101").err


def test_entries_of_deleted_files_are_stale(folder: Path) -> None:
    (folder / "src/b.py").unlink()
    write_files(folder, {"other/c.py": "import jax\n"})
    assert "2 findings of known.json are gone" in compared(folder).err
    assert "2 findings of known.json are gone" in compared(folder, "src").err
    assert compared(folder, "src/a.py").err == ""
    assert "src/b.py" not in compared(folder, "other").err


def test_unread_files_keep_their_entries(folder: Path) -> None:
    write_files(folder, {"src/b.py": BROKEN})
    ran = compared(folder)
    assert ran.code == 1
    assert "RMT000" in ran.out
    assert ran.err == ""
    ran = cli(folder, "--write-baseline", "known.json", "--output-format", "concise")
    assert ran.code == 1, "a file that was not looked at is never known"
    assert "RMT000" in ran.out
    assert [e["path"] for e in entries(folder)] == ["src/a.py", "src/b.py", "src/b.py"]
    pyproject = '[tool.remat-migrate]\nexclude = ["src/b.py"]\n'
    write_files(folder, {"src/b.py": TWO, "pyproject.toml": pyproject})
    assert compared(folder).err == ""


def test_unreadable_files_are_never_known(folder: Path) -> None:
    from support import findings

    from remat_migrate.engine.fingerprint import identities

    write_files(folder, {"src/b.py": BROKEN})
    [broken] = findings(BROKEN)
    [one] = identities([broken], broken.path.parent).values()
    assert one.code == "RMT000"
    document = json.loads((folder / "known.json").read_text())
    for name in ("src/b.py", "example.py"):
        (folder / "example.py").write_text(BROKEN)
        document["findings"].append(
            {
                "path": name,
                "code": "RMT000",
                "count": 1,
                "within": "",
                "statement": one.statement,
                "fingerprint": one.alike,
            }
        )
    (folder / "known.json").write_text(json.dumps(document))
    assert compared(folder).out.count("RMT000") == 2


def test_known_findings_are_not_fixed(folder: Path) -> None:
    write_files(folder, {"src/c.py": ONE})
    before = (folder / "src/b.py").read_text()
    ran = compared(folder, "--fix")
    assert ran.code == 0
    assert "concrete" not in (folder / "src/c.py").read_text()
    assert (folder / "src/b.py").read_text() == before
    assert last(ran) == "No findings left.  (3 known)"
    assert ran.out.splitlines()[-2] == "Fixed 1: 1 RMT101."


def test_a_known_finding_in_a_changed_statement_is_not_fixed(tmp_path: Path) -> None:
    """A fix changes the fingerprint of a known finding, which is reported but not fixed."""
    text = (
        "import jax\nfrom jax.ad_checkpoint import checkpoint\n\n\n"
        "def f(x):\n    return checkpoint(g, concrete=True)(x)\n"
    )
    write_files(tmp_path, {"pyproject.toml": "", "a.py": text})
    cli(tmp_path, "--select", "RMT101", "--write-baseline", "known.json")
    assert len(entries(tmp_path)) == 1
    ran = compared(tmp_path, "--fix")
    after = (tmp_path / "a.py").read_text()
    assert "ad_checkpoint" not in after
    assert "concrete=True" in after
    assert ran.out.splitlines()[-2].startswith("Fixed ")
    # And what is said is what the next run says.
    assert last(compared(tmp_path)).split("  ")[-1] == last(ran).split("  ")[-1]


def test_diff_shows_only_new_findings(folder: Path) -> None:
    write_files(folder, {"src/c.py": ONE})
    ran = compared(folder, "--diff")
    assert ran.code == 1
    assert "src/c.py" in ran.out
    assert "src/a.py" not in ran.out
    ran = cli(folder, "--diff", "--write-baseline", "new.json")
    assert (ran.code, (folder / "new.json").exists()) == (2, False)


def test_fixes_are_applied_before_writing(folder: Path) -> None:
    write_files(folder, {"src/c.py": ONE})
    ran = cli(folder, "--fix", "--write-baseline", "rest.json")
    assert ran.code == 0
    assert entries(folder, "rest.json") == []
    assert "concrete" not in (folder / "src/a.py").read_text()


def test_the_baseline_setting(folder: Path) -> None:
    write_files(folder, {"pyproject.toml": '[tool.remat-migrate]\nbaseline = "known.json"\n'})
    assert load_settings(folder, folder).baseline == folder / "known.json"
    for start, number in ((folder, 5), (folder / "src", 2)):
        ran = cli(start, "--output-format", "concise")
        assert (ran.code, last(ran)) == (0, f"No findings in {number} files.  (3 known)")
    ran = cli(folder, "--no-baseline", "--output-format", "concise")
    assert (ran.code, last(ran)) == (1, "Found 3 findings in 2 files: 3 fixable.")
    (folder / "known.json").unlink()
    ran = cli(folder)
    assert ran.code == 2
    assert "does not exist; create it with" in ran.err
    assert cli(folder, "--write-baseline", "known.json").code == 0


def test_the_setting_must_be_a_file_name(folder: Path) -> None:
    write_files(folder, {"pyproject.toml": "[tool.remat-migrate]\nbaseline = true\n"})
    ran = cli(folder)
    assert ran.code == 2
    assert "tool.remat-migrate.baseline: expected a file name, got a boolean" in ran.err


def test_the_prefilter_does_not_miss_stale_entries(folder: Path) -> None:
    write_files(folder, {"src/a.py": "x = 1\n", "src/c.py": "x = 1\n"})
    assert "src/a.py: RMT101" in compared(folder, "src/a.py").err
    assert compared(folder, "src/c.py").err == ""
    assert cli(folder, "src/c.py", "--baseline", "gone.json").code == 2
    assert cli(folder, "src/a.py", "--write-baseline", "known.json").code == 0
    assert len(entries(folder)) == 2


def test_paths_are_relative_to_the_baseline(folder: Path) -> None:
    (folder / "ci").mkdir()
    cli(folder / "src", ".", "--write-baseline", "../ci/known.json")
    assert {e["path"] for e in entries(folder, "ci/known.json")} == {"../src/a.py", "../src/b.py"}
    assert cli(folder / "ci", "..", "--baseline", "known.json").code == 0
    # A marker of a project further down changes the root, but not the paths.
    write_files(folder, {"src/setup.py": ""})
    assert cli(folder / "src", "--baseline", folder / "ci/known.json").code == 0


def test_the_same_run_writes_the_same_bytes(folder: Path) -> None:
    data = (folder / "known.json").read_bytes()
    inode = (folder / "known.json").stat().st_ino
    assert cli(folder, "--write-baseline", "known.json").code == 0
    assert (folder / "known.json").read_bytes() == data
    assert (folder / "known.json").stat().st_ino == inode, "nothing was written"
    cli(folder, "src/b.py", "src/a.py", "--write-baseline", "other.json")
    assert (folder / "other.json").read_bytes() == data
    assert data.decode() == render(read_baseline(folder / "known.json"))
    assert sorted(path.name for path in folder.iterdir()) == [
        "known.json",
        "other.json",
        "setup.cfg",
        "src",
    ]


def test_an_empty_file_is_overwritten(folder: Path) -> None:
    (folder / "empty.json").touch()
    assert cli(folder, "--write-baseline", "empty.json").code == 0
    assert len(entries(folder, "empty.json")) == 3


ENTRY = {
    "path": "a.py",
    "code": "RMT101",
    "count": 1,
    "within": "",
    "statement": "x",
    "fingerprint": "0" * 32,
}


def changed(**values: object) -> str:
    return json.dumps({"version": 1, "findings": [{**ENTRY, **values}]})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("<<<<<<< ours\n", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", 'not an object with "version" and "findings"'),
        ('{"version": 1}', 'not an object with "version" and "findings"'),
        ('{"version": 2, "findings": []}', "baseline version 2 is newer"),
        ('{"version": true, "findings": []}', '"version" is not 1'),
        ('{"version": "1", "findings": []}', '"version" is not 1'),
        ('{"version": 0, "findings": []}', '"version" is not 1'),
        ('{"version": 1, "findings": [1]}', "entry 1 is not an object"),
        (changed(path=1), '"path" of entry 1 is not a string'),
        (changed(path="a\0b"), '"path" of entry 1 is not a path'),
        (changed(path=""), '"path" of entry 1 is not a path'),
        (changed(statement=None), '"statement" of entry 1 is not a string'),
        (changed(count=0), '"count" of entry 1 is not a positive integer'),
        (changed(count=True), '"count" of entry 1 is not a positive integer'),
        (changed(fingerprint="0" * 31), '"fingerprint" of entry 1 is not 32 hexadecimal digits'),
    ],
)
def test_an_invalid_baseline_is_rejected(folder: Path, text: str, said: str) -> None:
    (folder / "bad.json").write_text(text)
    ran = cli(folder, "--baseline", "bad.json")
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    if text:
        ran = cli(folder, "--write-baseline", "bad.json")
        assert (ran.code, (folder / "bad.json").read_text()) == (2, text)


def test_entries_duplicated_by_a_merge_count_once(folder: Path) -> None:
    document = json.loads((folder / "known.json").read_text())
    document["findings"] += document["findings"]
    (folder / "known.json").write_text(json.dumps(document))
    assert last(compared(folder)) == "No findings in 4 files.  (3 known)"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--baseline", "known.json", "--no-baseline"], "cannot be combined with"),
        (["--baseline", "known.json", "--write-baseline", "known.json"], "cannot be combined with"),
        (["--write-baseline", "nowhere/known.json"], "folder nowhere does not exist"),
        (["--write-baseline", "src"], "src is not a regular file"),
        (["--write-baseline", "read-only.json"], "is read-only"),
        (["--baseline", "src"], "src: cannot be read"),
        (["--write-baseline", "new.json", "-"], "cannot be combined with `-`"),
    ],
)
def test_wrong_usage(folder: Path, arguments: list[str], said: str) -> None:
    (folder / "read-only.json").write_text("")
    (folder / "read-only.json").chmod(0o444)
    ran = cli(folder, *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert not (folder / "new.json").exists()


def test_stdin_is_compared(folder: Path) -> None:
    arguments = ("-", "--stdin-filename", "src/a.py", "--baseline", "known.json")
    assert cli(folder, *arguments, stdin=ONE.encode()).code == 0
    assert cli(folder, *arguments, stdin=TWO.encode()).code == 1
    assert "src/a.py: RMT101" in cli(folder, *arguments, stdin=b"import jax\n").err


@pytest.mark.skipif(os.name == "nt", reason="names as bytes")
def test_unusual_names_and_texts(tmp_path: Path) -> None:
    name = b"\xff\x1b[31m\xe2\x80\xae.py"
    text = ONE.replace("(x)\n", "(x), '\\x1b]0;owned\\x07 \u202e \u6a21\u578b'\n")
    (tmp_path / os.fsdecode(name)).write_text(text)
    assert cli(tmp_path, "--write-baseline", "known.json").code == 0
    data = (tmp_path / "known.json").read_bytes()
    assert data.isascii()
    assert all(letter >= 32 or letter == 10 for letter in data)
    assert compared(tmp_path).code == 0
    (tmp_path / os.fsdecode(name)).unlink()
    ran = compared(tmp_path)
    assert "1 finding of known.json is gone" in ran.err
    assert not {"\x1b", "\u202e", "\x07"} & set(ran.err)


def test_many_stale_entries_are_counted(tmp_path: Path) -> None:
    files: Mapping[str, str] = {f"a{number:02}.py": ONE for number in range(25)}
    write_files(tmp_path, files)
    cli(tmp_path, "--write-baseline", "known.json")
    write_files(tmp_path, dict.fromkeys(files, "import jax\n"))
    lines = compared(tmp_path).err.splitlines()
    assert len(lines) == 1 + 20 + 1
    assert lines[-1] == "  and 5 more"


def test_suppressed_findings_are_not_known(folder: Path) -> None:
    """Suppressed findings are not listed; findings about unused suppressions are."""
    noqa = ONE.replace("(x)\n", "(x)  # noqa: RMT101\n")
    write_files(folder, {"src/a.py": noqa, "src/c.py": "import jax  # noqa: RMT101\n"})
    ran = compared(folder)
    assert "RMT001" in ran.out
    assert last(ran) == "Found 1 finding in 1 file: 1 fixable.  (1 suppressed, 2 known, 1 stale)"
    cli(folder, "--write-baseline", "known.json")
    assert last(compared(folder)) == "No findings in 5 files.  (1 suppressed, 3 known)"


def notebook(*cells: str) -> str:
    return json.dumps(
        {
            "cells": [
                {"cell_type": "code", "metadata": {}, "outputs": [], "source": [cell]}
                for cell in cells
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 4,
        }
    )


def test_moved_notebook_cells_match(tmp_path: Path) -> None:
    write_files(tmp_path, {"setup.cfg": "", "a.ipynb": notebook("%matplotlib inline\n", ONE)})
    cli(tmp_path, "--write-baseline", "known.json")
    [entry] = entries(tmp_path)
    assert (entry["path"], entry["within"]) == ("a.ipynb", "f")
    moved = ONE.replace("import jax", "import jax\n# moved")
    write_files(tmp_path, {"a.ipynb": notebook("!ls\n", "x = 1\n", moved)})
    assert compared(tmp_path).code == 0
    write_files(tmp_path, {"a.ipynb": notebook(ONE, TWO)})
    ran = compared(tmp_path)
    assert (ran.code, last(ran)) == (1, "Found 2 findings in 1 file: 2 fixable.  (1 known)")


def test_coverage(tmp_path: Path) -> None:
    there, gone = tmp_path / "there.py", tmp_path / "gone.py"
    there.touch()
    covered = Coverage(frozenset(), (tmp_path,), frozenset({"RMT101"}))
    assert covered.includes(gone, "RMT101")
    assert not covered.includes(gone, "RMT102")
    assert not covered.includes(there, "RMT101"), "it was not looked at"
    assert Coverage(frozenset({there}), (), frozenset({"RMT101"})).includes(there, "RMT101")
