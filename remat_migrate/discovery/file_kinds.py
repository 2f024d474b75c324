"""The kinds of files: Python, and the text formats in which JAX flags are set."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..text import SourceFile

_PYTHON = frozenset({".py", ".pyi", ".pyw", ".ipynb", ".IPYNB"})
# The text formats in which JAX flags are set, by the end or the whole of a file name.
_KINDS = {
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh", ".slurm", ".sbatch", ".envrc"), "shell"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".ini", ".cfg"), "ini"),
    **dict.fromkeys((".dockerfile", ".containerfile"), "docker"),
    **dict.fromkeys((".mk", "makefile", "gnumakefile"), "make"),
    ".toml": "toml",
    ".json": "json",
    ".env": "env",
}
_SHELL = re.compile(r"#!.*\b(?:ba|da|z|k)?sh\b")


def is_python(path: str | Path, data: bytes | None = None) -> bool:
    """Return whether a file is Python: by suffix, as a script with a shebang, or as a notebook.

    Args:
        path: the file.
        data: its content, if that should not be read from disk.
    """
    # Without pathlib, because it is asked for each file of a run.
    file = os.fspath(path)
    name = file[file.rfind(os.sep) + 1 :]
    dot = name.rfind(".")
    if dot > 0:
        return name[dot:] in _PYTHON
    if text_kind(name):
        return False
    if data is None:
        try:
            # A pipe must not block.
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            try:
                data = os.read(handle, 200)
            finally:
                os.close(handle)
        except OSError:
            return False
    return data.startswith(b"#!") and b"python" in data.partition(b"\n")[0]


def is_python_source(source: SourceFile) -> bool:
    """Return whether a file that was read is Python."""
    return is_python(source.path, source.text[:200].encode("utf-8", "replace"))


def text_kind(name: str, head: str = "") -> str:
    """Return the format of a text file by its name, or of a script by its first line; else ""."""
    if name.startswith(("Dockerfile", "Containerfile")):
        return "docker"
    if name.startswith(".env."):
        return "env"
    kind = _KINDS.get(name[max(name.rfind("."), 0) :].lower(), "")
    return kind or ("shell" if _SHELL.match(head) else "")


def is_checked_name(name: str) -> bool:
    """Return whether a run over a folder checks files of this name."""
    return name.endswith((".py", ".ipynb")) or text_kind(name) != ""
