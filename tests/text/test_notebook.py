"""Jupyter notebooks: any JSON round-trips byte for byte, and an edit changes only its lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.errors import SourceError
from remat_migrate.text import Edit, SourceFile, apply_edits, read_source
from remat_migrate.text.edits import Replacement
from remat_migrate.text.escapes import MARK, BrokenEscape, lines_of

PATH = Path("/notebook.ipynb")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

CODE = st.sampled_from(
    """x = 1|y = 'é' + "\\\\n"||# päth/☃|%matplotlib inline|!ls 'a/b'|def f(x):|  return x|%%bash
for i in 𝐱:|  %time f(x)|s = '''|\tif|π=2|z = (|)|\ue0a0 = 3|t = '\ud83d'|a\x0cb = 1|w = '\x00'
u = '\u2028'""".replace("\n", "|").split("|")
)
ENDINGS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
TEXTS = st.lists(st.tuples(CODE, ENDINGS), max_size=6).flatmap(
    lambda lines: st.sampled_from(["".join(line + end for line, end in lines), _open(lines)])
)


def _open(lines: list[tuple[str, str]]) -> str:
    return "".join(line + end for line, end in lines)[: -len(lines[-1][1])] if lines else ""


@st.composite
def sources(draw: st.DrawFn) -> str | list[str]:
    """Draw the source of a cell: a string, a list of lines, or a list split anywhere."""
    text = draw(TEXTS)
    match draw(st.integers(0, 3)):
        case 0:
            return text
        case 1:
            cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
            return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        case _:
            pieces = text.split("\n")
            lines = [piece + "\n" for piece in pieces[:-1]]
            return [*lines, pieces[-1]] if pieces[-1] else lines


@st.composite
def notebooks(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a notebook, in any JSON style."""
    kinds = st.sampled_from(["code", "code", "markdown", "raw"])
    cells = [
        {"cell_type": kind, **draw(st.sampled_from([{}, {"metadata": {"a": [1]}}])), "source": text}
        for kind, text in draw(st.lists(st.tuples(kinds, sources()), max_size=5))
    ]
    keys = {"cells": cells, "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4}
    order = draw(st.permutations(list(keys)))
    text = json.dumps(
        {key: keys[key] for key in order},
        indent=draw(st.sampled_from([None, 0, 1, 2, 4, "\t"])),
        ensure_ascii=True,
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")])),
    )
    if draw(st.booleans()):
        text = text.replace("/", "\\/")
    if draw(st.booleans()):
        text = text.replace("\\u00e9", "é").replace("\\u03c0", "π")
    text = text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))
    return (
        draw(st.sampled_from(["", "\ufeff"])) + text + draw(st.sampled_from(["", "\n"]))
    ).encode()


def texts_of(data: bytes) -> list[str]:
    """Return the text of every cell."""
    found = json.loads(data.decode("utf-8-sig"))
    return ["".join(cell["source"]) for cell in found["cells"]]


def plain_lines(source: SourceFile) -> list[int]:
    """Return the lines of the view that are Python and belong to a cell."""
    count = len(source.line_starts)
    return [
        line
        for line in range(1, count)
        if MARK not in source.line_text(line) and source.line_text(line).strip()
    ]


@given(notebooks(), st.data())
def test_an_edit_changes_only_its_line(data: bytes, choose: st.DataObject) -> None:
    source = read_source(PATH, data)
    lines = plain_lines(source)
    if not lines:
        return
    line = choose.draw(st.sampled_from(lines))
    start = source.line_starts[line - 1]
    old = source.line_text(line)
    number, _ = source.cell(start)
    new = choose.draw(st.sampled_from(["changed = 'é/\"'", "changed\nmore = '☃'", "\tchanged"]))
    edit = Edit(PATH, start, start + len(old), new)
    after = source.replaced(apply_edits(source.text, [edit])).data
    before, now = texts_of(data), texts_of(after)
    cell, changed = before[number - 1], now[number - 1]
    assert now[: number - 1] + now[number:] == before[: number - 1] + before[number:]
    assert len(changed) == len(cell) + len(new) - len(old)
    assert new in changed
    # The rest of the file is unchanged, to the byte, and so are the other lines of an array.
    edits = source.file_edits([edit])
    raw = source.on_disk.text
    whole = json.loads(data.decode("utf-8-sig"))["cells"][number - 1]["source"]
    [written] = edits
    replaced = raw[written.start : written.end]
    if isinstance(whole, list):
        items = {json.loads(item): item for item in _STRING.findall(replaced)}
        assert all(items[line] in written.text for line in lines_of(changed) if line in items)
        replaced = replaced if replaced.startswith("[") else f"[{replaced}]"
    assert json.loads(replaced) == whole
    text = "".join(letters for letters in _with(raw, edits))
    assert ("\ufeff" * source.bom + text).encode() == after


def _with(text: str, edits: Sequence[Replacement]) -> Iterator[str]:
    at = 0
    for edit in edits:
        yield text[at : edit.start] + edit.text
        at = edit.end
    yield text[at:]


@given(notebooks(), st.data())
def test_escaped_lines_cannot_be_changed(data: bytes, choose: st.DataObject) -> None:
    source = read_source(PATH, data)
    places = [at for at, letter in enumerate(source.text) if letter == MARK]
    if not places:
        return
    at = choose.draw(st.sampled_from(places))
    damaged = choose.draw(
        st.sampled_from(
            [
                source.text[:at] + source.text[at + 1 :],
                source.text[: at + 2] + "!" + source.text[at + 2 :],
                source.text[: source.text.rfind("\n", 0, at) + 1]
                + source.text[source.text.find("\n", at) + 1 :],
            ]
        )
    )
    with pytest.raises(BrokenEscape):
        source.replaced(damaged).encode(damaged)


def notebook(*cells: str | list[str], **more: object) -> bytes:
    """Return a notebook with code cells, as Jupyter writes it."""
    found = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": c}
        for c in cells
    ]
    keys = {"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}
    return (json.dumps(keys, indent=1, ensure_ascii=False) + "\n").encode()


def edited(data: bytes, old: str, new: str) -> str:
    """Return the notebook with the only `old` in its code replaced."""
    source = read_source(PATH, data)
    assert source.text.count(old) == 1
    text = source.text.replace(old, new)
    return source.replaced(text).data.decode()


class TestEdits:
    """The text of the file after an edit."""

    def test_inserting_lines(self):
        data = notebook(["a = 1\n", "b = 2"])
        assert edited(data, "b = 2", "b = 2\nc = 3\nd = 4") == data.decode().replace(
            '    "b = 2"', '    "b = 2\\n",\n    "c = 3\\n",\n    "d = 4"'
        )
        assert edited(data, "a = 1", "z = 0\na = 1") == data.decode().replace(
            '    "a', '    "z = 0\\n",\n    "a'
        )

    def test_removing_lines(self):
        data = notebook(["a = 1\n", "b = 2\n", "c = 3"])
        text = data.decode()
        assert edited(data, "a = 1\n", "") == text.replace('    "a = 1\\n",\n', "")
        assert edited(data, "b = 2\n", "") == text.replace('    "b = 2\\n",\n', "")
        assert edited(data, "b = 2\nc = 3\n", "") == text.replace(
            '"a = 1\\n",\n    "b = 2\\n",\n    "c = 3"', '"a = 1"'
        )

    def test_non_ascii_is_written_as_in_the_file(self):
        plain = notebook(["a = 'x'"], ["b = 'é'"]).decode()
        assert "a = 'ü'" in edited(plain.encode(), "'x'", "'ü'")
        assert "a = '\\u00fc'" in edited(plain.replace("é", "\\u00e9").encode(), "'x'", "'ü'")


class TestCells:
    """Which cells are Python."""

    @pytest.mark.parametrize(
        "metadata",
        [
            {"kernelspec": {"name": "ir"}},
            {"language_info": {"name": "R"}},
        ],
    )
    def test_other_languages_are_skipped(self, metadata):
        assert read_source(PATH, notebook(["x = 1"], metadata=metadata)).text == ""

    @pytest.mark.parametrize(
        "metadata",
        [
            {"kernelspec": {"language": "python", "name": "torch"}},
            {"language_info": {"name": "python", "version": "3.11"}},
        ],
    )
    def test_python_kernels(self, metadata):
        assert "x = 1\n" in read_source(PATH, notebook(["x = 1"], metadata=metadata)).text

    def test_format_3_is_older_than_jax(self):
        cells = [{"cell_type": "code", "language": "python", "input": ["x = 1\n", "y = 2"]}]
        data = json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3})
        assert read_source(PATH, data.encode()).text == ""

    @pytest.mark.parametrize(
        ("text", "message", "line"),
        [
            ('{"cells": [\n{]}', "invalid JSON", 2),
            ("", "not an object", 1),
            ("[1]", "not an object", 1),
            ('{"a": 1}', "no cells", 1),
            ('{"cells": []} x', "Extra data", 1),
            ('{"cells": ' + "[" * 100_000, "nested too deeply", 1),
        ],
    )
    def test_invalid_notebooks(self, text, message, line):
        with pytest.raises(SourceError, match=message) as caught:
            read_source(PATH, text.encode())
        assert caught.value.line == line

    def test_a_cell_with_the_mark_is_not_analyzed(self):
        source = read_source(PATH, notebook([f"x = '{MARK}'\n", "%ls"], ["y = 1"]))
        assert "x =" not in source.text
        assert f"x = '{MARK}'" in edited(source.data, "y = 1", "y = 2")


def test_cells_and_lines():
    data = notebook(["a = 1\n", "%ls\n", "é = 2"], "b = 3")
    source = read_source(PATH, data)
    at = source.text.index("é")
    assert source.cell(at) == (1, 3)
    assert source.place(at) == "cell 1:3:1"
    row, column = source.file_position(at)
    assert data.decode().splitlines()[row - 1][column - 1] == "é"
    assert source.place(source.text.index("3\n", at)) == "cell 2:1:5"
