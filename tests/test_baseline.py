"""Baselines hide known findings, report new ones, and list stale entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Ran, cli, write_files

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
    assert document["version"] == 2
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
    assert ran.err == "Wrote 2 findings in 2 files to known.json.\n"
    assert compared(folder).err == ""


def test_a_run_over_one_file_keeps_other_entries(folder: Path) -> None:
    write_files(folder, {"src/a.py": "import jax\n", "src/b.py": "import jax\n"})
    ran = compared(folder, "src/a.py")
    assert "src/a.py: RMT101 in f" in ran.err
    assert "src/b.py" not in ran.err
    ran = cli(folder, "src/a.py", "--write-baseline", "known.json")
    assert ran.err == "Wrote 2 findings in 1 file to known.json.\n"
    assert [e["path"] for e in entries(folder)] == ["src/b.py", "src/b.py"]


def test_a_run_with_some_rules_keeps_other_entries(folder: Path) -> None:
    write_files(folder, {"src/a.py": "import jax\n"})
    assert compared(folder, "--select", "RMT103").err == ""
    cli(folder, "--select", "RMT103", "--write-baseline", "known.json")
    assert len(entries(folder)) == 3
    assert "src/a.py" in compared(folder, "--select", "RMT101").err


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
    assert one[1] == "RMT000"
    document = json.loads((folder / "known.json").read_text())
    for name in ("src/b.py", "example.py"):
        (folder / "example.py").write_text(BROKEN)
        document["findings"].append(
            {
                "path": name,
                "code": "RMT000",
                "count": 1,
                "within": "",
                "statement": one[-1],
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


def test_diff_shows_only_new_findings(folder: Path) -> None:
    write_files(folder, {"src/c.py": ONE})
    ran = compared(folder, "--diff")
    assert ran.code == 1
    assert "src/c.py" in ran.out
    assert "src/a.py" not in ran.out
    ran = cli(folder, "--diff", "--write-baseline", "new.json")
    assert (ran.code, (folder / "new.json").exists()) == (2, False)


def test_the_baseline_setting(folder: Path) -> None:
    write_files(folder, {"pyproject.toml": '[tool.remat-migrate]\nbaseline = "known.json"\n'})
    assert load_settings(folder, folder).baseline == folder / "known.json"
    for start, number in ((folder, 5), (folder / "src", 2)):
        ran = cli(start, "--output-format", "concise")
        assert (ran.code, last(ran)) == (0, f"No findings in {number} files.  (3 known)")
    (folder / "known.json").unlink()
    ran = cli(folder)
    assert ran.code == 2
    assert "does not exist; create it with" in ran.err
    assert cli(folder, "--write-baseline", "known.json").code == 0


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


ENTRY = {
    "path": "a.py",
    "code": "RMT101",
    "count": 1,
    "within": "",
    "statement": "x",
}


def changed(**values: object) -> str:
    return json.dumps({"version": 2, "findings": [{**ENTRY, **values}]})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"version": 3, "findings": []}', '"version" is not 2'),
        ('{"version": true, "findings": []}', '"version" is not 2'),
        (changed(path=1), "entry 1 has no path"),
        (changed(path="a\0b"), "entry 1 has no path"),
        (changed(path=""), "entry 1 has no path"),
        (changed(statement=None), "entry 1 has no path"),
        (changed(count=0), "entry 1 has no path"),
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--baseline", "known.json", "--write-baseline", "known.json"], "cannot be combined with"),
        (["--write-baseline", "nowhere/known.json"], "folder nowhere does not exist"),
        (["--write-baseline", "src"], "src is not a regular file"),
        (["--write-baseline", "read-only.json"], "is read-only"),
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
