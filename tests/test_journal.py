"""Writing and undoing changes on real files: modes, links, failures, and killed runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from remat_migrate.engine.fix_rounds import FileChange
from remat_migrate.engine.journal import KEPT_ENTRIES, JournalEntry, open_journal
from remat_migrate.engine.undo import undo
from remat_migrate.engine.writing import write_changes
from remat_migrate.errors import ApplyError
from remat_migrate.text import read_source
from remat_migrate.text.folders import Folder
from remat_migrate.text.regular_files import write_obstacle

not_root = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may do anything"
)


def change(path: Path, old: str, new: str) -> FileChange:
    """Return a change that replaces `old` by `new` in an existing file."""
    before = read_source(path)
    return FileChange(before, before.replaced(before.text.replace(old, new)))


def files(root: Path, count: int) -> list[Path]:
    paths = [root / f"f{number}.py" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(f"x = {number}  # old\n")
    return paths


def write(paths: Sequence[Path], root: Path, old: str = "old", new: str = "new") -> JournalEntry:
    return write_changes([change(path, old, new) for path in paths], root)


def strays(root: Path) -> list[Path]:
    return list(root.rglob("*.tmp"))


def entries(root: Path) -> list[Path]:
    with open_journal(root) as journal:
        names = journal.names() if journal else []
    return [Path(os.environ["XDG_STATE_HOME"], "remat-migrate", name) for name in names]


def test_files_are_written_and_undone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    paths = [*files(tmp_path, 2), *files(tmp_path / "a", 1)]
    old = [path.read_bytes() for path in paths]
    entry = write(paths, tmp_path)
    assert [path.read_text() for path in paths] == [
        "x = 0  # new\n",
        "x = 1  # new\n",
        "x = 0  # new\n",
    ]
    assert [saved.old for saved in entry.files] == old
    assert strays(tmp_path) == []

    result = undo(tmp_path)
    assert [path.read_bytes() for path in paths] == old
    assert result.restored == paths
    assert (result.unchanged, result.skipped) == ([], {})
    assert entries(tmp_path) == []
    with pytest.raises(ApplyError, match="nothing to undo"):
        undo(tmp_path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (target,) = files(tmp_path / "real", 1)
    link = tmp_path / "link.py"
    link.symlink_to("real/f0.py")
    behind = tmp_path / "folder"
    behind.symlink_to("real")
    for path in (link, behind / "f0.py"):
        with pytest.raises(ApplyError, match="symbolic link"):
            write([path], tmp_path)
    assert target.read_text() == "x = 0  # old\n"
    assert link.is_symlink()


# -- refusals


def test_a_read_only_file_stops_all(tmp_path: Path) -> None:
    paths = files(tmp_path, 3)
    paths[1].chmod(0o444)
    with pytest.raises(ApplyError, match=r"f1\.py is read-only.*; no file was changed"):
        write(paths, tmp_path)
    assert [path.read_text()[-4:-1] for path in paths] == ["old", "old", "old"]
    assert entries(tmp_path) == []


def test_a_file_changed_since_it_was_read_is_not_overwritten(tmp_path: Path) -> None:
    paths = files(tmp_path, 2)
    changes = [change(path, "old", "new") for path in paths]
    paths[0].write_text("mine\n")
    with pytest.raises(ApplyError, match="changed on disk since it was read"):
        write_changes(changes, tmp_path)
    assert [path.read_text() for path in paths] == ["mine\n", "x = 1  # old\n"]


def test_a_file_that_changes_while_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = files(tmp_path, 2)
    changes = [change(a, "old", "new"), change(b, "old", "new")]
    real = Folder.rename

    def move_and_meddle(folder: Folder, new: str, name: str) -> None:
        real(folder, new, name)
        if name == a.name and "new" in a.read_text():
            b.write_text("mine\n")

    monkeypatch.setattr(Folder, "rename", move_and_meddle)
    with pytest.raises(ApplyError, match=r"changed on disk.*; no file was changed"):
        write_changes(changes, tmp_path)
    assert (a.read_text(), b.read_text()) == ("x = 0  # old\n", "mine\n")
    assert entries(tmp_path) == []
    assert strays(tmp_path) == []


def test_a_failed_write_is_reverted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = files(tmp_path, 3)
    changes = [change(path, "old", "new") for path in (a, b, c)]
    real = Folder.rename

    def fail_for_b(folder: Folder, new: str, name: str) -> None:
        if name == b.name:
            raise OSError(28, "No space left on device")
        real(folder, new, name)

    monkeypatch.setattr(Folder, "rename", fail_for_b)
    with pytest.raises(ApplyError, match="No space left on device"):
        write_changes(changes, tmp_path)
    assert [path.read_text()[-4:-1] for path in (a, b, c)] == ["old", "old", "old"]
    assert strays(tmp_path) == []
    assert entries(tmp_path) == []


def test_a_failed_write_that_cannot_be_reverted_is_left_to_undo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = files(tmp_path, 2)
    changes = [change(a, "old", "new"), change(b, "old", "new")]
    real, moves = Folder.rename, 0

    def fail_from_second_file_on(folder: Folder, new: str, name: str) -> None:
        nonlocal moves
        moves += folder.path == tmp_path
        if moves > 1 and folder.path == tmp_path:
            raise OSError(5, "Input/output error")
        real(folder, new, name)

    monkeypatch.setattr(Folder, "rename", fail_from_second_file_on)
    with pytest.raises(ApplyError, match="run remat-migrate undo"):
        write_changes(changes, tmp_path)
    monkeypatch.undo()
    assert a.read_text() == "x = 0  # new\n"
    assert undo(tmp_path).restored == [a]
    assert (a.read_text(), b.read_text()) == ("x = 0  # old\n", "x = 1  # old\n")


def test_a_character_that_cannot_be_encoded(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes("# coding: latin-1\nx = 'é old'\n".encode("latin-1"))
    with pytest.raises(ApplyError, match="cannot hold 'π' in its encoding, iso8859-1"):
        write([path], tmp_path, "old", "π")
    assert "old" in path.read_text("latin-1")


def test_bytes_that_do_not_survive_a_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    data = b"# coding: cp932\nx = '\x87\x90 old'\n"  # one of two spellings of this sign
    path.write_bytes(data)
    with pytest.raises(ApplyError, match="has bytes that cp932 would not write back"):
        write([path], tmp_path)
    assert path.read_bytes() == data


def test_no_file_is_written_if_the_journal_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = files(tmp_path, 1)

    def fail(folder: Folder, new: str, name: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Folder, "rename", fail)
    with pytest.raises(ApplyError, match="json: cannot be written"):
        write(paths, tmp_path)
    assert paths[0].read_text() == "x = 0  # old\n"


def test_write_obstacles(tmp_path: Path) -> None:
    (path,) = files(tmp_path, 1)
    assert write_obstacle(path) is None
    path.chmod(0o555)
    assert "read-only" in (write_obstacle(path) or "")
    assert "not a regular file" in (write_obstacle(tmp_path) or "")
    assert "No such file" in (write_obstacle(tmp_path / "gone.py") or "")
    loop = tmp_path / "loop.py"
    loop.symlink_to("loop.py")
    assert "cannot be accessed" in (write_obstacle(loop) or "")
    link = tmp_path / "link.py"
    link.symlink_to("f0.py")
    assert "read-only" in (write_obstacle(link) or "")


@not_root
def test_a_read_only_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (path,) = files(tmp_path / "a", 1)
    (tmp_path / "a").chmod(0o555)
    try:
        assert "folder" in (write_obstacle(path) or "")
    finally:
        (tmp_path / "a").chmod(0o755)


# -- undo


def test_an_edited_file_is_only_restored_with_force(tmp_path: Path) -> None:
    paths = files(tmp_path, 3)
    write(paths, tmp_path)
    paths[1].write_text("mine\n")
    result = undo(tmp_path)
    assert result.restored == [paths[0], paths[2]]
    assert list(result.skipped) == [paths[1]]
    assert "was edited since" in result.skipped[paths[1]]
    assert paths[1].read_text() == "mine\n"

    again = undo(tmp_path)
    assert (again.restored, list(again.skipped)) == ([], [paths[1]])
    forced = undo(tmp_path, force=True)
    assert (forced.restored, forced.skipped) == ([paths[1]], {})
    assert paths[1].read_text() == "x = 1  # old\n"
    assert entries(tmp_path) == []


def test_a_deleted_file_is_only_restored_with_force(tmp_path: Path) -> None:
    (path,) = files(tmp_path, 1)
    path.chmod(0o755)
    write([path], tmp_path)
    path.unlink()
    assert "was deleted" in undo(tmp_path).skipped[path]
    assert undo(tmp_path, force=True).restored == [path]
    assert path.read_text() == "x = 0  # old\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_runs_are_undone_one_after_the_other(tmp_path: Path) -> None:
    paths = files(tmp_path, 2)
    write(paths, tmp_path)
    write(paths[:1], tmp_path, "new", "newer")
    assert undo(tmp_path).restored == [paths[0]]
    assert [path.read_text()[-4:-1] for path in paths] == ["new", "new"]
    assert undo(tmp_path).restored == paths
    assert [path.read_text()[-4:-1] for path in paths] == ["old", "old"]


def test_the_last_runs_are_kept(tmp_path: Path) -> None:
    (path,) = files(tmp_path, 1)
    for number in range(KEPT_ENTRIES + 3):
        path.write_text(f"{number}\n")
        write([path], tmp_path, str(number), str(number + 1))
    assert len(entries(tmp_path)) == KEPT_ENTRIES
    for _ in range(KEPT_ENTRIES):
        undo(tmp_path)
    assert path.read_text() == "3\n"
    with pytest.raises(ApplyError, match="nothing to undo"):
        undo(tmp_path)


def test_a_file_outside_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (path,) = files(tmp_path, 1)
    with pytest.raises(ApplyError, match="is outside"):
        write([path], root)
    assert path.read_text() == "x = 0  # old\n"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1, "files": [{"path": "a"}]}'])
def test_a_damaged_journal_is_reported(tmp_path: Path, content: str) -> None:
    write(files(tmp_path, 1), tmp_path)
    (entry,) = entries(tmp_path)
    entry.write_text(content)
    with pytest.raises(ApplyError, match="damaged") as caught:
        undo(tmp_path)
    assert str(entry) in str(caught.value)
    assert (tmp_path / "f0.py").read_text() == "x = 0  # new\n"


# -- runs that were killed, and runs at once. What is killed at every call: kills.py


def test_half_a_fix_of_a_killed_run_is_undone(tmp_path: Path) -> None:
    paths = files(tmp_path, 3)
    write_changes([change(path, "old", "new") for path in paths], tmp_path)
    for path in paths[1:]:
        path.write_text(path.read_text().replace("new", "old"))
    result = undo(tmp_path)
    assert (result.restored, result.unchanged) == ([paths[0]], paths[1:])
    assert [path.read_text()[-4:-1] for path in paths] == ["old"] * 3
    assert entries(tmp_path) == []


def test_one_run_waits_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = files(tmp_path, 1)
    with open_journal(tmp_path):
        monkeypatch.setattr("remat_migrate.engine.journal.TIMEOUT_SECONDS", 0.05)
        for act in (lambda: write(paths, tmp_path), lambda: undo(tmp_path)):
            with pytest.raises(ApplyError, match="another run of remat-migrate is writing"):
                act()
    assert paths[0].read_text() == "x = 0  # old\n"
    write(paths, tmp_path)
    assert paths[0].read_text() == "x = 0  # new\n"


def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    (path,) = files(tmp_path, 1)
    try:
        os.setxattr(path, "user.note", b"mine")
    except (AttributeError, OSError):
        pytest.skip("no such attributes here")
    write([path], tmp_path)
    assert path.read_text() == "x = 0  # new\n"
    assert os.getxattr(path, "user.note") == b"mine"
    undo(tmp_path)
    assert os.getxattr(path, "user.note") == b"mine"


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_a_file_that_was_replaced_by_something_else(tmp_path: Path, kind: str) -> None:
    a, b = files(tmp_path, 2)
    write([a, b], tmp_path)
    a.unlink()
    if kind == "link":
        a.symlink_to("f1.py")
    elif kind == "folder":
        a.mkdir()
    else:
        os.mkfifo(a)
    result = undo(tmp_path, force=True)
    assert (result.restored, list(result.skipped)) == ([b], [a])
    assert not a.is_file() or a.is_symlink()
    assert b.read_text() == "x = 1  # old\n"
