"""Reading files: encodings, line endings, and positions."""

from __future__ import annotations

import ast
import codecs
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.errors import SourceError
from remat_migrate.text import SourceFile, read_source

PATH = Path("/project/a.py")


def read(data: bytes) -> SourceFile:
    return read_source(PATH, data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x = 1",
        "größe = 'π'\n".encode(),
        b"a = 1\r\nb = 2\rc = 3\n\x0cd = 4\x0b\x1c\n",
        codecs.BOM_UTF8 + b"x = 1\n",
        codecs.BOM_UTF8 + b"# coding: utf-8\nx = 1\n",
        "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
        "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '€'\n".encode("cp1252"),
        "# coding: shift_jis\nx = '日本'\n".encode("shift_jis"),
        "# coding: utf-8-unix\nx = 'é'\n".encode(),
        "# coding: Latin_1-dos\r\nx = 'é'\r\n".encode("latin-1"),
        "#\r# coding: latin-1\rx = 'é'\r".encode("latin-1"),
    ],
)
def test_bytes_round_trip(data: bytes) -> None:
    source = read(data)
    assert source.encode(source.text) == data
    assert not source.text.startswith("\ufeff")


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"x = 1\n", "utf-8"),
        (b"# coding: latin-1\n", "iso8859-1"),
        (b"# coding: UTF_8\n", "utf-8"),
        (b"# coding: utf-8-sig\n", "utf-8"),
        (b"\n# coding=ascii\n", "ascii"),
        (b"x = 1\n# coding=latin-1\n", "utf-8"),
        (b"\n\n# coding=latin-1\n", "utf-8"),
        (b"x = 'coding: latin-1'\n", "utf-8"),
        (b"# x\ry = 1\r# coding: latin-1\r", "utf-8"),
    ],
)
def test_encoding_matches_python(data: bytes, encoding: str) -> None:
    assert read(data).encoding == encoding


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"a\nx = '\xe9'\n", 2, "is not valid utf-8: byte 0xe9 at offset 7"),
        (b"# coding: klingon\n", 1, "unknown encoding 'klingon'"),
        (b"#!/bin/sh\n# coding: hex\n", 2, "unknown encoding 'hex'"),
        (b"# coding: undefined\n", 1, "unknown encoding 'undefined'"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1, "byte-order mark but declares 'latin-1'"),
        ("x = 1\n".encode("utf-16"), 1, "UTF-16"),
        (b"\x7fELF\0\0\0", 1, "is binary"),
        (b"# coding: ascii\nx = '\xe9'\n", 2, "is not valid ascii"),
    ],
)
def test_unreadable_files(data: bytes, line: int, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        read(data)
    assert caught.value.path == PATH
    assert caught.value.line == line


def test_other_files_are_utf8() -> None:
    source = read_source(Path("/project/run.sh"), b"# coding: latin-1\n", python=False)
    assert source.encoding == "utf-8"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read_source(tmp_path / "a.py")


def test_a_file_on_disk(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\r\n")
    source = read_source(tmp_path / "a.py")
    assert (source.text, source.newline) == ("x = 1\r\n", "\r\n")


def test_positions_count_characters() -> None:
    source = SourceFile(PATH, "a = 'é💡'; b = 1\r\nc\rd\n")
    assert source.position(0) == (1, 1)
    assert source.position(source.text.index("b")) == (1, 11)
    assert source.position(source.text.index("d")) == (3, 1)
    assert source.position(len(source.text)) == (4, 1)
    assert [source.line_text(n) for n in range(6)] == ["", "a = 'é💡'; b = 1", "c", "d", "", ""]
    assert source.newline == "\r\n"
    assert SourceFile(PATH, "a").newline == "\n"


SAMPLE = (
    "# é\r\ngrößе = [ñ.x('💡', ü=1) for ñ in a]\n\x0cdef f(a, *, β=2):\r  return f'{a} é' + β\n"
    "if ψ: x = '''\r\n é\n'''; y = 2\n"
)


def test_node_spans() -> None:
    source = SourceFile(PATH, SAMPLE)
    for node in ast.walk(source.parse()):
        if isinstance(node, ast.Name):
            assert source.segment(node) == node.id
        elif isinstance(node, ast.arg):
            assert source.segment(node) == node.arg
        elif isinstance(node, ast.keyword):
            assert source.segment(node) == "ü=1"
        elif isinstance(node, ast.Assign):
            assert ast.dump(ast.parse(source.segment(node)).body[0]) == ast.dump(node)


@given(st.text("aé💡 \n\r\t\x0c'#=1", max_size=40))
def test_lines_match_the_tokenizer(text: str) -> None:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    source = SourceFile(PATH, text)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert [source.line_text(n + 1) for n in range(len(lines))] == lines
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            found = source.segment(node)
            again = ast.dump(ast.parse(f"({found}\n)", mode="eval").body)
            assert again == ast.dump(node).replace("Store()", "Load()")


@given(st.text(max_size=30), st.integers(0, 30))
def test_positions_and_offsets_are_inverse(text: str, offset: int) -> None:
    source = SourceFile(PATH, text.replace("\ud800", ""))
    offset = min(offset, len(source.text))
    line, column = source.position(offset)
    assert source.line_starts[line - 1] + column - 1 == offset
    before = source.text[source.line_starts[line - 1] : offset]
    assert source.offset(line, len(before.encode())) == offset


def test_replaced_keeps_encoding_and_mark() -> None:
    source = SourceFile(PATH, "x", "utf-8", bom=True).replaced("y")
    assert source.encode(source.text) == codecs.BOM_UTF8 + b"y"


def test_syntax_errors_have_a_position() -> None:
    with pytest.raises(SourceError, match="cannot parse it") as caught:
        SourceFile(PATH, "x = 1\ny = (\n").parse()
    assert (caught.value.line, caught.value.column) == (2, 5)
    with pytest.raises(SourceError, match="cannot be parsed"):
        SourceFile(PATH, "-" * 200_000 + "1").parse()


def test_parsing_does_not_warn() -> None:
    code = (
        "from pathlib import Path; from remat_migrate.text import SourceFile;"
        "SourceFile(Path('a.py'), r'''x = '\\d' is 1''').parse()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
