"""Checks that rewritten files still parse."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import PurePath

import yaml

# What a notebook cell may contain besides Python: magics, shell commands, help requests.
_NOT_PYTHON = re.compile(r"^(\s*)(?:[%!].*|.*\?)$", re.MULTILINE)


def broken_syntax(name: str, old: bytes, new: bytes) -> str | None:
    """Return the syntax error in a file's new text if the old text had none.

    Files of unknown kinds are not checked.
    """
    problems = _problems_of(name, new)
    if problems is None:
        return None
    found = list(problems(new))
    return "; ".join(found) if len(found) > len(list(problems(old))) else None


def _problems_of(name: str, data: bytes) -> Callable[[bytes], Iterator[str]] | None:
    suffix = PurePath(name).suffix
    first = data.partition(b"\n")[0]
    if suffix in (".py", ".pyi", ".pyw") or (first.startswith(b"#!") and b"python" in first):
        return _python
    if suffix in (".sh", ".bash"):
        return _shell if shutil.which("bash") else None
    return {".ipynb": _notebook, ".toml": _toml, ".yaml": _yaml, ".yml": _yaml}.get(suffix)


def _python(data: bytes | str) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(data)
        except (SyntaxError, ValueError, RecursionError) as error:
            yield f"{type(error).__name__}: {error}"


def _notebook(data: bytes) -> Iterator[str]:
    """Yield the syntax errors of a notebook or its cells."""
    try:
        cells = json.loads(data)["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        yield f"{type(error).__name__}: {error}"
        return
    for number, text in enumerate(texts, start=1):
        if not text.startswith("%%"):
            for problem in _python(_NOT_PYTHON.sub(r"\1pass", text)):
                yield f"code cell {number}: {problem}"


def _toml(data: bytes) -> Iterator[str]:
    try:
        tomllib.loads(data.decode())
    except ValueError as error:
        yield str(error)


def _yaml(data: bytes) -> Iterator[str]:
    try:
        for _ in yaml.parse(data):
            pass
    except (yaml.YAMLError, ValueError) as error:
        yield str(error)


def _shell(data: bytes) -> Iterator[str]:
    ended = subprocess.run(["bash", "-n"], input=data, capture_output=True, check=False)
    if ended.returncode:
        yield ended.stderr.decode(errors="replace")
