"""The module names of files, and the folders they are imported from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import write_files

from remat_migrate.verify.copies.import_names import (
    ImportName,
    ImportNames,
)


def written(folder: Path, files: Mapping[str, str]) -> Path:
    write_files(folder, files)
    return folder


PLACED: list[tuple[Mapping[str, str], str, str | None, str]] = [
    # Packages.
    ({"m.py": ""}, "m.py", "m", "."),
    ({"pkg/__init__.py": "", "pkg/m.py": ""}, "pkg/m.py", "pkg.m", "."),
    ({"pkg/__init__.py": "", "pkg/m.py": ""}, "pkg/__init__.py", "pkg", "."),
    ({"pkg/__init__.py": "", "pkg/__main__.py": ""}, "pkg/__main__.py", "pkg.__main__", "."),
    ({"a/__init__.py": "", "a/b/__init__.py": "", "a/b/m.py": ""}, "a/b/m.py", "a.b.m", "."),
    ({"src/pkg/__init__.py": "", "src/pkg/m.py": ""}, "src/pkg/m.py", "pkg.m", "src"),
    # Others import it from further up: the folder around the package is a namespace package.
    (
        {"ns/pkg/__init__.py": "", "ns/pkg/m.py": "", "t.py": "from ns.pkg import m"},
        "ns/pkg/m.py",
        "ns.pkg.m",
        ".",
    ),
    (
        {"ns/pkg/__init__.py": "", "ns/pkg/m.py": "", "ns/pkg/n.py": "import pkg.m"},
        "ns/pkg/m.py",
        "pkg.m",
        "ns",
    ),
    # A sibling in the package is enough.
    (
        {"ns/pkg/__init__.py": "", "ns/pkg/m.py": "", "ns/pkg/n.py": "", "t.py": "import ns.pkg.n"},
        "ns/pkg/m.py",
        "ns.pkg.m",
        ".",
    ),
    # Folders without `__init__.py`: scripts, unless someone imports them by a dotted name.
    ({"scripts/train.py": ""}, "scripts/train.py", "train", "scripts"),
    (
        {"scripts/train.py": "import tools", "scripts/tools.py": ""},
        "scripts/tools.py",
        "tools",
        "scripts",
    ),
    (
        {"scripts/train.py": "", "t.py": "import scripts.train as s"},
        "scripts/train.py",
        "scripts.train",
        ".",
    ),
    (
        {"a/b/m.py": "", "t/t.py": "from a.b.m import (\n  f,  # the one\n  g,\n)"},
        "a/b/m.py",
        "a.b.m",
        ".",
    ),
    ({"src/a/m.py": "", "src/n.py": "from a import m"}, "src/a/m.py", "a.m", "src"),
    # More often one way than the other.
    (
        {"s/m.py": "", "s/n.py": "import m", "t.py": "import s.m", "u.py": "import s.m"},
        "s/m.py",
        "s.m",
        ".",
    ),
    # Another file of that name does not count.
    (
        {"s/m.py": "", "o/m.py": "", "o/n.py": "import m", "t.py": "import s.m"},
        "s/m.py",
        "s.m",
        ".",
    ),
    # Relative imports need packages around the file.
    ({"a/m.py": "from . import n", "a/n.py": ""}, "a/m.py", "a.m", "."),
    ({"a/b/m.py": "from ..c import n", "a/c.py": ""}, "a/b/m.py", "a.b.m", "."),
    ({"src/a/m.py": "from .n import f", "src/a/n.py": ""}, "src/a/m.py", "a.m", "src"),
    ({"m.py": "from . import n"}, "m.py", "m", "."),
    # What cannot be imported by a name.
    ({"my-script.py": ""}, "my-script.py", None, "."),
    ({"pkg/__init__.py": "", "pkg/my-script.py": ""}, "pkg/my-script.py", None, "pkg"),
    ({"bin/train": "#!/usr/bin/env python"}, "bin/train", None, "bin"),
    ({"my-pkg/__init__.py": "", "my-pkg/m.py": ""}, "my-pkg/m.py", "m", "my-pkg"),
    ({"my-pkg/__init__.py": ""}, "my-pkg/__init__.py", None, "my-pkg"),
    ({"my-dir/train.py": ""}, "my-dir/train.py", "train", "my-dir"),
    ({"__main__.py": ""}, "__main__.py", None, "."),
    ({"m.py": "def ("}, "m.py", "m", "."),
]


@pytest.mark.parametrize(("files", "path", "module", "folder"), PLACED)
def test_import_name(
    tmp_path: Path, files: Mapping[str, str], path: str, module: str | None, folder: str
) -> None:
    root = written(tmp_path / "root", files)
    found = ImportNames(root).of(root / path)
    assert found == ImportName(module, root / folder)
    if module is not None:
        # Python agrees.
        program = f"import importlib.util; print(importlib.util.find_spec({module!r}).origin)"
        command = [sys.executable, "-c", program]
        ran = subprocess.run(command, cwd=root / folder, capture_output=True, text=True)
        assert ran.stdout.strip() == str(root / path), ran.stderr


def test_root_is_a_package(tmp_path: Path) -> None:
    root = written(
        tmp_path / "pkg", {"__init__.py": "", "m.py": "", "a/__init__.py": "", "a/n.py": ""}
    )
    assert ImportNames(root).of(root / "m.py") == ImportName("pkg.m", tmp_path)
    assert ImportNames(root).of(root / "a/n.py") == ImportName("pkg.a.n", tmp_path)
    assert ImportNames(root).of(root / "__init__.py") == ImportName("pkg", tmp_path)


def test_run_with(tmp_path: Path) -> None:
    root = written(
        tmp_path / "root",
        {
            "train.py": "from pkg.model import f\n",
            "pkg/__init__.py": "from . import config\n",
            "pkg/model.py": "from .layers import g\n",
            "pkg/layers.py": "",
            "pkg/config.py": "import top\n",
            "pkg/other.py": "",
            "top.py": "",
        },
    )
    places = ImportNames(root)

    def names(path: str) -> set[str]:
        return {found.relative_to(root).as_posix() for found in places.run_with(root / path)}

    package = {"pkg/__init__.py", "pkg/config.py", "top.py"}
    assert names("pkg/layers.py") == {"pkg/layers.py", *package}
    assert names("train.py") == {"train.py", "pkg/model.py", "pkg/layers.py", *package}
    assert names("top.py") == {"top.py"}


class TestSearchFolders:
    """The folders that a file and its imports need on `sys.path`."""

    def folders(self, root: Path, path: str) -> list[str]:
        found = ImportNames(root).search_folders(root / path)
        return [folder.relative_to(root).as_posix() for folder in found]

    def test_script_imports_packages(self, tmp_path: Path) -> None:
        root = written(
            tmp_path,
            {
                "scripts/train.py": "import jax, os\nfrom pkg.model import net",
                "pkg/__init__.py": "",
                "pkg/model.py": "from . import layers",
                "pkg/layers.py": "def f():\n    import other.thing as o",
                "lib/other/__init__.py": "",
                "lib/other/thing.py": "from .deep.er import x",
                "lib/other/deep/__init__.py": "",
                "lib/other/deep/er.py": "import pkg",
                "unrelated/m.py": "",
            },
        )
        assert self.folders(root, "scripts/train.py") == ["scripts", ".", "lib"]
        assert self.folders(root, "pkg/model.py") == [".", "lib"]
        assert self.folders(root, "unrelated/m.py") == ["unrelated"]

    def test_absolute_import_in_a_package_ignores_siblings(self, tmp_path: Path) -> None:
        files = {"a/__init__.py": "", "a/m.py": "import metrics", "a/metrics.py": ""}
        assert self.folders(written(tmp_path, files), "a/m.py") == ["."]
