"""Which file is which module, and which files are read at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from remat_migrate.analysis.files import Files
from remat_migrate.errors import SourceError
from remat_migrate.text import SourceFile


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


NAMED = [
    (tree("m.py"), "m.py", "m"),
    (tree("pkg/__init__.py", "pkg/m.py"), "pkg/m.py", "pkg.m"),
    (tree("pkg/__init__.py"), "pkg/__init__.py", "pkg"),
    (tree("pkg/__init__.py", "pkg/a/__init__.py", "pkg/a/m.py"), "pkg/a/m.py", "pkg.a.m"),
    # A `src` folder is none of the name.
    (tree("src/pkg/__init__.py", "src/pkg/m.py"), "src/pkg/m.py", "pkg.m"),
    (tree("src/pkg/m.py"), "src/pkg/m.py", "pkg.m"),
    # Namespace packages: no `__init__.py`.
    (tree("ns/pkg/__init__.py", "ns/pkg/m.py"), "ns/pkg/m.py", "ns.pkg.m"),
    (tree("scripts/train.py"), "scripts/train.py", "scripts.train"),
    (tree("not-a-name/train.py"), "not-a-name/train.py", "train"),
]


@pytest.mark.parametrize(("contents", "path", "name"), NAMED)
def test_module_name(tmp_path: Path, contents: Mapping[str, str], path: str, name: str) -> None:
    assert files_of(tmp_path, contents).module_name(tmp_path / path) == name


def test_the_root_itself_may_be_a_package(tmp_path: Path) -> None:
    files = files_of(tmp_path / "pkg", tree("__init__.py", "m.py", "a/m.py"))
    assert files.module_name(tmp_path / "pkg/m.py") == "pkg.m"
    assert files.module_name(tmp_path / "pkg/__init__.py") == "pkg"


FOUND = [
    # Beside the importing file.
    (tree("m.py", "lib.py"), "m.py", "lib", "lib.py"),
    (tree("scripts/m.py", "scripts/lib.py"), "scripts/m.py", "lib", "scripts/lib.py"),
    # Not beside it, if that is inside a package: there it takes `from . import lib`.
    (tree("pkg/__init__.py", "pkg/m.py", "pkg/sub/__init__.py", "pkg/sub/lib.py"),
     "pkg/m.py", "lib", None),
    # From the root of the project, or its `src`.
    (tree("pkg/__init__.py", "pkg/m.py", "pkg/lib.py"), "pkg/m.py", "pkg.lib", "pkg/lib.py"),
    (tree("src/pkg/__init__.py", "src/pkg/lib.py", "tests/m.py"), "tests/m.py", "pkg.lib",
     "src/pkg/lib.py"),
    (tree("src/pkg/lib.py", "src/pkg/m.py"), "src/pkg/m.py", "pkg.lib", "src/pkg/lib.py"),
    (tree("ns/pkg/lib.py", "run/m.py"), "run/m.py", "ns.pkg.lib", "ns/pkg/lib.py"),
    # A package is its `__init__.py`.
    (tree("pkg/__init__.py", "m.py"), "m.py", "pkg", "pkg/__init__.py"),
    # The nearest of several.
    (tree("a/pkg/__init__.py", "a/pkg/lib.py", "a/m.py", "b/pkg/__init__.py", "b/pkg/lib.py"),
     "a/m.py", "pkg.lib", "a/pkg/lib.py"),
    (tree("lib.py", "sub/lib.py", "sub/m.py"), "sub/m.py", "lib", "sub/lib.py"),
    (tree("lib.py", "sub/other.py", "sub/m.py"), "sub/m.py", "lib", "lib.py"),
    # Two that are as near: neither.
    (tree("a/pkg/lib.py", "b/pkg/lib.py", "c/m.py"), "c/m.py", "pkg.lib", None),
    # Only a whole name counts.
    (tree("mylib.py", "m.py"), "m.py", "lib", None),
    (tree("pkg/__init__.py", "pkg/lib.py", "m.py"), "m.py", "other.lib", None),
    (tree("deep/inside/lib.py", "m.py"), "m.py", "lib", None),
]  # fmt: skip


@pytest.mark.parametrize(("contents", "importer", "dotted", "expected"), FOUND)
def test_find(
    tmp_path: Path, contents: Mapping[str, str], importer: str, dotted: str, expected: str | None
) -> None:
    found = files_of(tmp_path, contents).find(dotted, tmp_path / importer)
    assert found == (tmp_path / expected if expected is not None else None)


def test_finding_does_not_depend_on_the_order_of_files(tmp_path: Path) -> None:
    contents = tree("a/pkg/lib.py", "a/m.py", "b/pkg/lib.py", "lib.py", "pkg/lib.py", "b/m.py")
    forwards = files_of(tmp_path, contents)
    backwards = Files(tmp_path, forwards.all[::-1])
    for importer in forwards.all:
        for dotted in ("pkg.lib", "lib", "m"):
            assert forwards.find(dotted, importer) == backwards.find(dotted, importer)


def test_context_counts_and_each_file_once(tmp_path: Path) -> None:
    files = files_of(tmp_path, tree("m.py", "lib.py"))
    target, other = tmp_path / "m.py", tmp_path / "lib.py"
    files = Files(tmp_path, [target, target], [other, target])
    assert files.targets == (target,)
    assert files.all == (other, target)
    assert files.find("lib", target) == other


def test_find_installed(tmp_path: Path) -> None:
    files_of(tmp_path / "site", tree("one/__init__.py", "one/part.py", "two.py"))
    files = Files(tmp_path, [], search_path=[tmp_path / "missing", tmp_path / "site"])
    assert files.find_installed("one") == tmp_path / "site/one/__init__.py"
    assert files.find_installed("one.part") == tmp_path / "site/one/part.py"
    assert files.find_installed("two") == tmp_path / "site/two.py"
    assert files.find_installed("three") is None


def test_the_overlay_takes_the_place_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    shown = SourceFile(path, "é = 2\n", "latin-1")
    files = files_of(tmp_path, {"m.py": "x = 1\n"}, overlay={path: shown})
    assert files.data(path) == b"\xe9 = 2\n"
    assert files.read(path) is shown


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
