"""A glance must never miss what a full run would report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import cli, write_files

from remat_migrate.libraries.apis import APIS
from remat_migrate.prefilter.single_files import cannot_matter
from remat_migrate.prefilter.words import FAMILY, WORDS


def test_every_api_s_name_has_one_of_the_words() -> None:
    for name in APIS:
        assert any(word in name.rpartition(".")[2].encode() for word in WORDS), name
    assert {name.rpartition(".")[2].encode() for name in APIS} == set(FAMILY)


@pytest.mark.parametrize(
    "data",
    [
        "name = 'é'\n".encode(),
        b"\xef\xbb\xbfx = 1\n",
    ],
)
def test_what_cannot_matter(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.py").write_bytes(data)
    assert cannot_matter([tmp_path / "a.py"])
    assert cli(tmp_path, "a.py", "--select", "RMT").out == cli(tmp_path, "a.py").out
    for arguments in (["--output-format", "json"], ["--fix"], ["--diff"], ["--statistics"]):
        glanced = cli(tmp_path, "a.py", *arguments)
        assert glanced == cli(tmp_path, "a.py", *arguments, "--select", "RMT")
        assert glanced.code == 0


@pytest.mark.parametrize(
    "data",
    [
        b"import jax\ngetattr(jax, 'checkpoint')\n",
        b"caf\xe9\n",
        "# coding: latin-1\nx = 'é'\n".encode("latin-1"),
        "\ufeff# coding: latin-1\nx = 'é'\n".encode(),
    ],
)
def test_what_takes_a_closer_look(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.py").write_bytes(data)
    (tmp_path / "b.py").write_bytes(b"x = 1\n")
    assert not cannot_matter([tmp_path / "b.py", tmp_path / "a.py"])


@pytest.mark.parametrize(
    "settings",
    [
        "wrappers = {'pkg.f' = 'jax.nothing'}",
        "unknown = 1",
    ],
)
def test_settings_are_checked_all_the_same(tmp_path: Path, settings: str) -> None:
    write_files(
        tmp_path, {"a.py": "x = 1\n", "pyproject.toml": f"[tool.remat-migrate]\n{settings}\n"}
    )
    assert cli(tmp_path, "a.py").code == 2


def test_neither_rules_nor_model_are_imported(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "x = 1\n"})
    script = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(sorted(m for m in sys.modules if 'remat_migrate_rules' in m"
        " or m in ('remat_migrate.analysis', 'importlib.metadata')), file=sys.stderr))\n"
        "from remat_migrate.cli import main\n"
        "main(['--fix', 'a.py'])\n"
    )
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stderr == "[]\n"


USER = "import jax\n\n\n@{name}\ndef loss(x):\n    return x @ x\n\n\ngradient = jax.grad(loss)\n"


@pytest.mark.parametrize(
    ("files", "imports", "name"),
    [
        ({"compat.py": "from jax import checkpoint as ckpt\n"}, "from compat import ckpt", "ckpt"),
        ({"compat.py": "import jax\nckpt = jax.checkpoint\n"}, "from compat import ckpt as c", "c"),
        (
            {
                "pkg/__init__.py": "",
                "pkg/old/__init__.py": "from .compat import (\n  ckpt,\n)\n",
                "pkg/old/compat.py": (
                    "import functools, jax\ntry:\n    ckpt = functools.partial(\n"
                    "        jax.remat, prevent_cse=True\n    )\nexcept ImportError:\n    pass\n"
                ),
            },
            "from pkg.old import (\n    ckpt as c,\n)",
            "c",
        ),
    ],
)
def test_an_alias_of_a_checkpoint_in_an_unchanged_file(
    tmp_path: Path, files: dict[str, str], imports: str, name: str
) -> None:
    user = f"{imports}\n{USER.format(name=name)}"
    write_files(tmp_path, {"pyproject.toml": "", "sub/a.py": user, "a.py": user, **files})
    whole, alone = (cli(tmp_path, path, "--output-format", "concise") for path in (".", "a.py"))
    assert "\na.py:" not in alone.out
    line = next(line for line in whole.out.splitlines() if line.startswith("a.py:"))
    assert "RMT301" in line
    assert alone.out.splitlines()[0] == line


def test_what_files_import_otherwise_takes_no_closer_look(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "pyproject.toml": "",
            "pkg/__init__.py": "from . import model\n",
            "pkg/model.py": "import jax\nf = jax.checkpoint(abs)\n\n\ndef g(checkpoint):\n  pass\n",
            "pkg/a.py": "from .model import f, g\nfrom . import model\nimport pkg.model, json\n",
        },
    )
    assert cannot_matter([tmp_path / "pkg/a.py"])
