"""Notebooks that an editor shows as cells: the server maps findings and edits to the cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lsp.editor import Editor
from lsprotocol import types
from support import write_files

TITLE = ("markdown", "# A model")
IMPORT = ("python", "import jax\n%matplotlib inline")
# The giraffe is two units in UTF-16.
MODEL = (
    "python",
    "def block(x, train):\n    return x if train else -x\n\n\n"
    "s = '🦒'; step = jax.checkpoint(block, concrete=True)",
)
CALL = ("python", "y = step(1.0, train=True)\n!ls")
SHELL = ("shellscript", "jax.checkpoint(f, concrete=True)")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    editor = Editor([tmp_path_factory.mktemp("workspace").resolve()])
    yield editor
    assert editor.quit() == 0


@pytest.fixture
def notebook(server: Editor, tmp_path: Path) -> Iterator[str]:
    """The URI of a notebook that is not on disk yet, in a project."""
    write_files(tmp_path.resolve(), {"pyproject.toml": "[project]\nname = 'p'\n"})
    uri = (tmp_path.resolve() / "n.ipynb").as_uri()
    yield uri
    server.close_notebook(uri)


def test_findings_are_published_for_their_cells(server: Editor, notebook: str) -> None:
    cells = server.open_notebook(notebook, TITLE, IMPORT, MODEL, CALL, SHELL)
    found = {cell: server.diagnostics(cell) for cell in cells}
    assert [len(one) for one in found.values()] == [0, 0, 1, 0, 0]
    [finding] = found[cells[2]]
    assert (finding.code, finding.range.start.line) == ("RMT101", 4)
    units = MODEL[1].splitlines()[4].encode("utf-16-le")
    start, end = finding.range.start.character, finding.range.end.character
    assert units[2 * start : 2 * end].decode("utf-16-le") == "concrete=True"
    hover = server.hover(cells[2], 4, start)
    assert hover is not None
    assert hover.range == finding.range
    assert server.hover(cells[1], 0, 0) is None


def test_a_fix_edits_the_cells_that_it_concerns(server: Editor, notebook: str) -> None:
    cells = server.open_notebook(notebook, TITLE, IMPORT, MODEL, CALL)
    [finding] = server.diagnostics(cells[2])
    actions = server.actions(cells[2], finding.range)
    assert "Explain RMT101 (concrete-option)" in [one.title for one in actions]
    # The same lines of another cell have nothing.
    assert server.actions(cells[3], finding.range, "quickfix") == []
    edit = server.action(cells[2], "RMT101: ").edit
    assert edit is not None
    for change in edit.document_changes or ():
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.version == 1
        server.edit_cell(notebook, change.text_document.uri, *change.edits)
    assert server.texts[cells[2]].endswith("step = jax.checkpoint(block, static_argnums=(1,))")
    assert server.texts[cells[3]] == "y = step(1.0, True)\n!ls"
    assert server.texts[cells[1]] == IMPORT[1]
    assert server.codes(cells[2]) == []


def test_all_fixes_on_saving(server: Editor, notebook: str) -> None:
    cells = server.open_notebook(notebook, IMPORT, MODEL, CALL)
    for kind in ("source.fixAll", "notebook.source.fixAll"):
        action = server.action(cells[0], "all safe fixes", kind)
        assert action.kind == f"{kind}.remat-migrate"
        assert action.edit is not None
        changed = [
            one.text_document.uri
            for one in action.edit.document_changes or ()
            if isinstance(one, types.TextDocumentEdit)
        ]
        assert changed == [cells[1], cells[2]]


def test_inserted_cells_and_edits_are_followed(server: Editor, notebook: str) -> None:
    cells = server.open_notebook(notebook, IMPORT, CALL)
    assert server.codes(cells[1]) == []
    model = server.insert_cell(notebook, 1, MODEL)
    assert server.codes(model) == ["RMT101"]
    [finding] = server.diagnostics(model)
    start, end = finding.range.start, finding.range.end
    option = types.Range(types.Position(start.line, start.character - 2), end)
    server.edit_cell(notebook, model, types.TextEdit(option, ""))
    assert server.texts[model].endswith("step = jax.checkpoint(block)")
    assert "RMT101" not in server.codes(model)
