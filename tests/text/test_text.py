"""Reading files: encodings, line endings, and positions."""

from __future__ import annotations

import codecs
import subprocess
import sys
from pathlib import Path

import pytest

from remat_migrate.errors import SourceError
from remat_migrate.text import SourceFile, read_source

PATH = Path("/project/a.py")


def read(data: bytes) -> SourceFile:
    return read_source(PATH, data)


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"# coding: klingon\n", 1, "unknown encoding: klingon"),
        (b"#!/bin/sh\n# coding: hex\n", 1, "'hex' is not a text encoding"),
        (b"# coding: undefined\n", 1, "undefined encoding"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1, "byte-order mark but declares another"),
        ("x = 1\n".encode("utf-16"), 1, "UTF-16"),
    ],
)
def test_unreadable_files(data: bytes, line: int, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        read(data)
    assert caught.value.path == PATH
    assert caught.value.line == line


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read_source(tmp_path / "a.py")


def test_positions_count_characters() -> None:
    source = SourceFile(PATH, "a = 'é💡'; b = 1\r\nc\rd\n")
    assert source.position(0) == (1, 1)
    assert source.position(source.text.index("b")) == (1, 11)
    assert source.position(source.text.index("d")) == (3, 1)
    assert source.position(len(source.text)) == (4, 1)
    assert [source.line_text(n) for n in range(6)] == ["", "a = 'é💡'; b = 1", "c", "d", "", ""]
    assert source.newline == "\r\n"
    assert SourceFile(PATH, "a").newline == "\n"


def test_parsing_does_not_warn() -> None:
    code = (
        "from pathlib import Path; from remat_migrate.text import SourceFile;"
        "SourceFile(Path('a.py'), r'''x = '\\d' is 1''').parse()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
