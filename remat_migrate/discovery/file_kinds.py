"""The kinds of files: Python, and the text formats in which JAX flags are set."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..text.source_file import may_be_notebook

_PYTHON_SUFFIXES = (".py", ".pyi", ".pyw")
# The text formats in which JAX flags are set, by the ends, the starts, and all of a file name.
_SUFFIXES = {
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh", ".slurm", ".sbatch", ".envrc"), "shell"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".ini", ".cfg"), "ini"),
    **dict.fromkeys((".dockerfile", ".containerfile"), "docker"),
    ".toml": "toml",
    ".json": "json",
    ".mk": "make",
    ".env": "env",
}
_PREFIXES = {"Dockerfile": "docker", "Containerfile": "docker", ".env.": "env"}
_NAMES = dict.fromkeys(("Makefile", "makefile", "GNUmakefile"), "make")
_ENDS = tuple(_SUFFIXES)
_STARTS = (*_PREFIXES, *_NAMES)
_SHELL = re.compile(r"#!.*\b(?:ba|da|z|k)?sh\b")


def is_python(path: Path, data: bytes | None = None) -> bool:
    """Return whether a file is Python: by suffix, as a script with a shebang, or as a notebook.

    Args:
        path: the file.
        data: its content, if that should not be read from disk.
    """
    if path.suffix in _PYTHON_SUFFIXES or may_be_notebook(path):
        return True
    if path.suffix or is_text_name(path.name):
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


def has_python_suffix(file: str) -> bool:
    """Return whether a file name has a Python suffix; `.py` alone is not a suffix."""
    return file.endswith(_PYTHON_SUFFIXES) and file[file.rfind(os.sep) + 1 :].rfind(".") > 0


def is_text_name(name: str) -> bool:
    """Return whether a file name is that of a text format in which JAX flags are set."""
    return (name.lower().endswith(_ENDS) or name.startswith(_STARTS)) and text_kind(name) != ""


def text_kind(name: str, head: str = "") -> str:
    """Return the format of a text file by its name, or of a script by its first line; else ""."""
    if name in _NAMES:
        return _NAMES[name]
    for start, kind in _PREFIXES.items():
        if name.startswith(start):
            return kind
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    return _SUFFIXES.get(suffix) or ("shell" if _SHELL.match(head) else "")


def is_checked_name(name: str) -> bool:
    """Return whether a run over a folder checks files of this name."""
    return name.endswith(".py") or is_text_name(name) or may_be_notebook(Path(name))


def can_matter(path: Path) -> bool:
    """Return whether a run checks a file, by its kind."""
    return is_python(path) or is_checked_name(path.name)
