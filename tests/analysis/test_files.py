"""Which file is which module, and which files are read at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from remat_migrate.analysis.files import Files
from remat_migrate.errors import SourceError


def files_of(root: Path, contents: Mapping[str, str | bytes], **options: object) -> Files:
    paths = []
    for name, content in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths.append(path)
    return Files(root, paths, **options)  # type: ignore[arg-type]


def tree(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "")


FOUND = [
    # Not beside it, if that is inside a package: there it takes `from . import lib`.
    (tree("pkg/__init__.py", "pkg/m.py", "pkg/sub/__init__.py", "pkg/sub/lib.py"),
     "pkg/m.py", "lib", None),
    (tree("src/pkg/__init__.py", "src/pkg/lib.py", "tests/m.py"), "tests/m.py", "pkg.lib",
     "src/pkg/lib.py"),
    # Two that are as near: neither.
    (tree("a/pkg/lib.py", "b/pkg/lib.py", "c/m.py"), "c/m.py", "pkg.lib", None),
    (tree("deep/inside/lib.py", "m.py"), "m.py", "lib", None),
]  # fmt: skip


@pytest.mark.parametrize(("contents", "importer", "dotted", "expected"), FOUND)
def test_find(
    tmp_path: Path, contents: Mapping[str, str], importer: str, dotted: str, expected: str | None
) -> None:
    found = files_of(tmp_path, contents).find(dotted, tmp_path / importer)
    assert found == (tmp_path / expected if expected is not None else None)


def test_find_installed(tmp_path: Path) -> None:
    files_of(tmp_path / "site", tree("one/__init__.py", "one/part.py", "two.py"))
    files = Files(tmp_path, [], search_path=[tmp_path / "missing", tmp_path / "site"])
    assert files.find_installed("one") == tmp_path / "site/one/__init__.py"
    assert files.find_installed("one.part") == tmp_path / "site/one/part.py"
    assert files.find_installed("two") == tmp_path / "site/two.py"
    assert files.find_installed("three") is None


def test_reading_fails_the_same_every_time(tmp_path: Path) -> None:
    files = files_of(tmp_path, {"m.py": b"x = '\xff'\n"})
    for path in (tmp_path / "m.py", tmp_path / "missing.py"):
        for _ in range(2):
            with pytest.raises(SourceError) as caught:
                files.read(path)
            assert caught.value.path == path


def test_mentioning(tmp_path: Path) -> None:
    contents = {"a.py": "import block\n", "b.py": "block = 1\n", "c.py": "x = 1\n"}
    files = files_of(tmp_path, contents)
    files = Files(tmp_path, [*files.all, tmp_path / "missing.py"])
    assert files.mentioning(["block"]) == [tmp_path / "a.py", tmp_path / "b.py"]
    assert files.mentioning(["x", "import"]) == [tmp_path / "a.py", tmp_path / "c.py"]
    assert files.mentioning(["nothing"]) == []
