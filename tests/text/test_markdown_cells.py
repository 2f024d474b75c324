"""Markdown notebooks: which files are notebooks, which text is code, and the round trip."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.text import read_source
from remat_migrate.text.escapes import BrokenEscape, lines_of, original
from remat_migrate.text.markdown_cells import is_notebook, read_markdown

PATH = Path("/notebook.md")
HEAD = "---\njupytext:\n  text_representation:\n    format_name: "
MYST = HEAD + "myst\nkernelspec:\n  language: {}\n---\n"
PLAIN = HEAD + "markdown\n---\n"


def code_of(text: str) -> list[str]:
    """Return the lines that are Python; check that the view converts back."""
    found = read_markdown(text)
    lines = lines_of(found.view)
    assert len(lines) == len(lines_of(text))
    assert "".join(original(found.mark, line) for line in lines) == text
    return [line.rstrip("\r\n") for line in lines if found.mark not in line]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("# Title\n\n```python\nx = 1\n```\n", False),
        ("# Title\n\nUse `{code-cell}`, or jupytext: it is good.\n", False),
        ("```{code-cell}\nx = 1\n```\n", True),
        (MYST.format("python"), True),
        (MYST.format("julia") + "```{code-cell}\nx = 1\n```\n", False),
        (PLAIN + "```python\nx = 1\n```\n", True),
        ("---\ntitle: jupytext\n---\n```python\nx = 1\n```\n", False),
    ],
)
def test_which_files_are_notebooks(text, is_one):
    assert is_notebook(text.encode()) is is_one


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```{code-cell} ipython3\nx = 1\n\ny = 2\n```\nb\n", ["x = 1", "", "y = 2"]),
        ("```{code-cell}\n:tags: [hide]\n:id: a\n\nx = 1\n```\n", ["", "x = 1"]),
        ("```{code-cell}\n---\ntags: [a]\n---\nx = 1\n```\n", ["x = 1"]),
        ("```{code-cell}\r\nx = 1\r\n```\r\n", ["x = 1"]),
        (":::{code-cell} python\nx = 1\n:::\n", ["x = 1"]),
        ("~~~~{code-cell}\nx = '''\n~~~\n'''\n~~~~\n", ["x = '''", "~~~", "'''"]),
        ("```{code-cell}\nx = 1", ["x = 1"]),
        ("```{code-cell} julia\nx = 1\n```\n", []),
        ("````md\n```{code-cell}\nx = 1\n```\n````\n", []),
        ("<!--\n```{code-cell}\nx = 1\n```\n-->\n", []),
        ("- item\n\n  ```{code-cell}\n  x = 1\n  ```\n", []),
        ("```{code-cell}\n%%bash\nls\n```\n", []),
        ("```{code-cell}\nprint 1\n```\n```{code-cell}\nx = 1\n```\n", ["x = 1"]),
        (MYST.format("python") + "```python\nshown\n```\n```{code-cell}\nx = 1\n```\n", ["x = 1"]),
        (PLAIN + "```python tags=['a']\nx = 1\n```\n```bash\nls\n```\n", ["x = 1"]),
    ],
)
def test_code_cells(text, code):
    assert code_of(text) == code


FENCES = ["```", "```{code-cell}", "````", "~~~python", ":::{note}", "```python", "---"]
PROSE = ["text *é*", "<!-- a", "-->", "<!-- a -->", "\ue0a0", "jupytext:", ":tags: [a]"]
PYTHON = ["x = 1", "%ls", "  !ls", "def f(x):", "  return x", "'''", "%time f(x)"]
LINES = st.sampled_from([*FENCES, *PROSE, *PYTHON])
TEXTS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\n", "\r\n", "\r"])), max_size=25)


@given(st.sampled_from(["", MYST.format("python"), PLAIN]), TEXTS)
def test_round_trip(head: str, lines: list[tuple[str, str]]) -> None:
    text = head + "".join(line + end for line, end in lines)
    code_of(text)
    source = read_source(PATH, text.encode())
    source.parse()
    assert source.data == text.encode()
    for line in range(1, len(source.line_starts)):
        start = source.line_starts[line - 1]
        assert source.file_position(start)[0] == line


def test_prose_cannot_be_changed():
    source = read_source(PATH, b"a\n```{code-cell}\nx = 1\n```\n")
    with pytest.raises(BrokenEscape):
        source.encode(source.text.replace("=a", "=b"))
    assert source.encode(source.text.replace("x", "y")) == b"a\n```{code-cell}\ny = 1\n```\n"
