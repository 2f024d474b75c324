"""The kinds of files: Python, and the text formats in which JAX flags are set."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import SourceError
from ..text.source_file import may_be_notebook, read_bytes

_PYTHON_SUFFIXES = (".py", ".pyi", ".pyw")
_TEXT_SUFFIXES = (".sh", ".bash", ".yaml", ".yml", ".toml", ".mk", ".env")
_TEXT_NAMES = frozenset({"Makefile", "makefile", "GNUmakefile", ".envrc"})
_TEXT_PREFIXES = ("Dockerfile", "Containerfile", ".env.")
_TEXT_EXTENSIONS = (".dockerfile", ".containerfile")


def is_python(path: Path, data: bytes | None = None) -> bool:
    """Return whether a file is Python: by suffix, as a script with a shebang, or as a notebook.

    Args:
        path: the file.
        data: its content, if that should not be read from disk.
    """
    if path.suffix in _PYTHON_SUFFIXES:
        return True
    if may_be_notebook(path):
        return _is_notebook(path, data)
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


def _is_notebook(path: Path, data: bytes | None) -> bool:
    if path.suffix.lower() == ".ipynb":
        return True
    from ..text.markdown_cells import is_notebook

    try:
        return is_notebook(read_bytes(path) if data is None else data)
    except (SourceError, UnicodeEncodeError):  # The latter if the system cannot represent the name.
        return False


def has_python_suffix(file: str) -> bool:
    """Return whether a file name has a Python suffix; `.py` alone is not a suffix."""
    return file.endswith(_PYTHON_SUFFIXES) and file[file.rfind(os.sep) + 1 :].rfind(".") > 0


def is_text_name(name: str) -> bool:
    """Return whether a file name is that of a text format in which JAX flags are set."""
    return (
        name.endswith(_TEXT_SUFFIXES)
        or name.startswith(_TEXT_PREFIXES)
        or name in _TEXT_NAMES
        or name.lower().endswith(_TEXT_EXTENSIONS)
    )


def is_checked_name(name: str) -> bool:
    """Return whether a run over a folder checks files of this name."""
    return name.endswith(".py") or is_text_name(name) or may_be_notebook(Path(name))


def can_matter(path: Path) -> bool:
    """Return whether a run checks a file, by its kind."""
    return is_python(path) or is_checked_name(path.name)
