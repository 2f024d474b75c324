"""Project trees that contain every kind of file, most of them with something to fix."""

from __future__ import annotations

import json
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

GROUPED = """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.checkpoint, concrete=True)
def block_{n}(x, flag, scale=2.0):
  if flag:  # Python needs it
    return jnp.sin(x) * scale
  return x
"""
CALLER = """\
import jax

from .block_{n} import block_{n}


def loss_{n}_{m}(x):
  return block_{n}(x, flag={flag}).sum()


slope_{n}_{m} = jax.grad(loss_{n}_{m})
"""
SINGLE = """\
import jax
from jax import numpy as jnp

# {word}
layer_{n} = jax.checkpoint(jnp.sin, concrete=False)  # {word}
other_{n} = jax.remat(jnp.cos, concrete=False)
"""
IDLE = "import jax\n\nlayer_{n} = jax.checkpoint(abs)  # as it should be\n"
SHELL = "#!/bin/sh\nexport JAX_NEW_CHECKPOINT=0\npython -m train_{n}\n"
WORKFLOW = """\
jobs:
  train_{n}:
    runs-on: ubuntu-latest
    env:
      JAX_PLATFORMS: cpu
      JAX_NEW_CHECKPOINT: "0"
    steps:
      - run: python -m train --jax_new_checkpoint=false
"""
DOCKERFILE = "FROM python:3.12\nENV JAX_NEW_CHECKPOINT=0 N={n}\nCMD python -m train\n"


class State(NamedTuple):
    """One file: its mode, and its content or link target."""

    mode: int
    content: bytes


Tree = dict[str, State]


@dataclass(frozen=True, slots=True)
class Damage:
    """Differences from the expected tree."""

    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lines)


def tree_of(root: Path) -> Tree:
    """Read a folder, without the data of git and the journal."""
    found: Tree = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in (".git", ".remat_migrate")]
        for name in (*names, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                content = b"-> " + os.fsencode(os.readlink(path))
            else:
                content = path.read_bytes() if stat.S_ISREG(mode) else b""
            found[path.relative_to(root).as_posix()] = State(mode, content)
    return found


def differences(found: Tree, *wanted: Tree) -> Damage:
    """Return the files whose state is in none of the given trees, ignoring temporary files."""
    here = {name for name in found if not is_temporary(name)}
    lines = []
    for name in sorted(here.union(*wanted)):
        if all(found.get(name) != tree.get(name) for tree in wanted):
            state = found.get(name)
            lines.append(f"{name}: {'gone' if state is None else state}"[:300])
    return Damage(tuple(lines))


def is_temporary(name: str) -> bool:
    """Return whether a file is a temporary one that a run would have renamed."""
    base = name.rpartition("/")[2]
    return base.startswith(".remat-") and base.endswith(".tmp")


def strays(root: Path) -> list[str]:
    """Return all leftover temporary files, including those in the journal folder."""
    found = (path.relative_to(root).as_posix() for path in root.rglob("*.tmp"))
    return sorted(name for name in found if name.startswith(".remat_migrate") or is_temporary(name))


def copy_tree(source: Path, target: Path) -> Path:
    """Copy a folder with its links, replacing the destination."""
    if target.exists():
        shutil.rmtree(target)
    return shutil.copytree(source, target, symlinks=True)


def make_tree(root: Path, size: int = 1) -> Path:
    """Write a project.

    Args:
        root: the folder; it must not exist.
        size: how many files of each kind to write.
    """
    package = root / "pkg"
    package.mkdir(parents=True)
    (root / "pyproject.toml").write_text("[tool.remat-migrate]\n")
    (root / "elsewhere").mkdir()
    (package / "__init__.py").write_text("")
    for n in range(size):
        _write_forms(root, package, n)
    return root


def _write_forms(root: Path, package: Path, n: int) -> None:
    def put(name: str, content: str | bytes, mode: int = 0o644) -> None:
        path = root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)

    def single(word: str) -> str:
        return SINGLE.format(n=n, word=word)

    put(f"pkg/block_{n}.py", GROUPED.format(n=n))
    for m in range(3):
        put(f"pkg/sub{n % 5}/idle_{n}_{m}.py", IDLE.format(n=n))
        put(f"pkg/use_{n}_{m}.py", CALLER.format(n=n, m=m, flag=m > 0), 0o640 if m else 0o755)
    put(f"pkg/windows_{n}.py", single("plain").replace("\n", "\r\n"), 0o600)
    put(f"pkg/mixed_{n}.py", single("plain").replace("\n", "\r\n", 3).rstrip("\n"))
    put(f"pkg/marked_{n}.py", b"\xef\xbb\xbf" + single("\u00e9").encode(), 0o664)
    put(f"pkg/latin_{n}.py", b"# coding: latin-1\n" + single("\u00e9").encode("latin-1"), 0o755)
    put(f"pkg/cp932_{n}.py", b"# coding: cp932\n" + single("\u65e5\u672c").encode("cp932"))
    put(f"pkg/na\u00efve {n}'s \u2603.py", single("name"))
    put(f"pkg/locked_{n}.py", single("read-only"), 0o444)
    put(f"pkg/broken_{n}.py", "import jax\njax.checkpoint(f, concrete=True\n")
    put(f"scripts/train_{n}.sh", SHELL.format(n=n), 0o755)
    put(f".github/workflows/train_{n}.yml", WORKFLOW.format(n=n))
    put(f"images/{n}/Dockerfile", DOCKERFILE.format(n=n), 0o600)
    put(f"notebooks/{n}.ipynb", _notebook(n))
    put(f"elsewhere/large_{n}.py", single("much") + "# filler\n" * 20_000)
    (package / f"link_{n}.py").symlink_to(f"block_{n}.py")
    (root / f"elsewhere/dangling_{n}.py").symlink_to("nowhere.py")


def _notebook(n: int) -> str:
    lines = SINGLE.format(n=n, word="cell").splitlines(keepends=True)
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook = {
        "cells": [{**cell, "source": lines}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def plant(root: Path, every: int = 3) -> int:
    """Add removed options to a copy of a real repository, and return the number of files changed.

    Every n-th Python file gets a checkpoint at its end, and the next two files call it, so that
    fixes span several files.
    """
    files = [path for path in sorted(root.rglob("*.py")) if path.is_file() and _is_sound(path)]
    planted = 0
    for number, path in enumerate(files[::every]):
        lines = b"\r\n" if b"\r\n" in path.read_bytes() else b"\n"
        text = PLANTED.format(n=number).encode().replace(b"\n", lines)
        with path.open("ab") as file:
            file.write(lines + text)
        planted += 1
    return planted


PLANTED = """\

import jax as planted_jax


def planted_{n}(x, flag):
  return x * 2 if flag else x


planted_{n} = planted_jax.checkpoint(planted_{n}, concrete=True)
planted_slope_{n} = planted_jax.grad(lambda x: planted_{n}(x, flag=True))
"""


def _is_sound(path: Path) -> bool:
    import ast

    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return False
    return not path.is_symlink()
