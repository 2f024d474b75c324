"""The language server, driven over its protocol as an editor does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsp.editor import ABLE, Editor, path_of
from lsprotocol import types
from support import cli, write_files

MODEL = """\
from functools import partial

import jax


@partial(jax.checkpoint, concrete=True)
def block(x, is_training):
    if is_training:
        return 2 * x
    return x
"""
TRAIN = "from model import block\n\n\ndef loss(x):\n    return block(x, is_training=True)\n"
# In UTF-16 a giraffe is two units, in UTF-8 four.
ALIAS = """\
import jax.ad_checkpoint

a = "🦒🦒"; step = jax.ad_checkpoint.checkpoint(abs); b = "🦒"
"""
SCAN = """\
import jax


def layer(x, w):
    return x * w, None


def apply(x, ws):
    return jax.lax.scan(jax.checkpoint(layer), x, ws)[0].sum()


gradient = jax.grad(apply)
"""
CLEAN = "import jax\n\nstep = jax.checkpoint(abs)\n"
PROJECT = "[project]\nname = 'p'\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """Return a server for all tests that need no special editor."""
    editor = Editor([tmp_path_factory.mktemp("workspace").resolve()])
    yield editor
    assert editor.quit() == 0


@pytest.fixture
def editor(server: Editor) -> Iterator[Editor]:
    yield server
    server.close_all()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve()
    write_files(folder, {"pyproject.toml": PROJECT, "model.py": MODEL, "train.py": TRAIN})
    return folder


class TestDiagnostics:
    def test_match_the_command_line(self, editor: Editor, project: Path) -> None:
        [found] = editor.diagnostics(editor.open(project / "model.py"))
        ran = cli(project, "model.py", "train.py", "--output-format", "json")
        [said] = json.loads(ran.out)["findings"]
        start, end = found.range.start, found.range.end
        assert (start.line + 1, start.character + 1) == (said["line"], said["column"])
        assert (end.line + 1, end.character + 1) == (said["end_line"], said["end_column"])
        assert (found.code, found.message, found.source) == (
            said["code"],
            said["message"],
            "remat-migrate",
        )
        assert found.severity == types.DiagnosticSeverity.Error
        assert found.code_description is not None
        assert found.code_description.href == said["url"]
        assert found.related_information is not None
        assert [
            (path_of(one.location.uri).name, one.location.range.start.line + 1, one.message)
            for one in found.related_information
        ] == [(one["path"], one["line"], one["message"]) for one in said["related"]]
        assert found.data["fix"] == {"title": said["fix"]["title"], "safety": "safe"}

    def test_count_columns_in_utf_16(self, editor: Editor, project: Path) -> None:
        write_files(project, {"alias.py": ALIAS})
        uri = editor.open(project / "alias.py")
        [found] = editor.diagnostics(uri)
        line = ALIAS.splitlines()[2].encode("utf-16-le")
        start, end = found.range.start.character, found.range.end.character
        assert line[2 * start : 2 * end].decode("utf-16-le") in "jax.ad_checkpoint.checkpoint"
        editor.apply(editor.action(uri, "RMT103: ").edit)
        assert 'a = "🦒🦒"; step = jax.checkpoint(abs); b = "🦒"\n' in editor.texts[uri]
        assert editor.codes(uri) == []

    def test_follow_unsaved_text(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "model.py")
        assert editor.codes(uri) == ["RMT101"]
        editor.change(uri, MODEL.replace("concrete=True", "static_argnums=(1,)"))
        assert editor.codes(uri) == []

    def test_are_published_for_the_newest_text(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "model.py")
        editor.diagnostics(uri)
        for number in range(8):
            editor.change(uri, MODEL + f"\nx = {number}\n" * number)
        editor.change(uri, CLEAN)
        assert editor.codes(uri) == []
        told = [one.version for one in editor.published if one.uri == uri]
        assert told == sorted(told, key=lambda version: version or 0)
        assert len(told) < 10
        assert told[-1] == 10

    def test_are_cleared_by_closing(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "model.py")
        assert editor.codes(uri) == ["RMT101"]
        editor.close(uri)
        cleared = editor.wait(
            lambda: next((one for one in editor.published if one.version is None), None)
        )
        assert (cleared.uri, list(cleared.diagnostics)) == (uri, [])

    def test_in_a_shell_script(self, editor: Editor, project: Path) -> None:
        uri = editor.open(
            project / "run.sh", "export JAX_NEW_CHECKPOINT=0\npython train.py\n", "shellscript"
        )
        assert editor.codes(uri) == ["RMT102"]

    def test_are_not_published_for_installed_packages(self, editor: Editor, project: Path) -> None:
        package = project / ".venv/lib/python3.11/site-packages/lib.py"
        editor.open(package, MODEL)
        uri = editor.open(project / "model.py")
        assert editor.codes(uri) == ["RMT101"]
        assert {one.uri for one in editor.published} == {uri}

    def test_in_an_unsaved_document(self, editor: Editor) -> None:
        uri = editor.open("untitled:Untitled-1", ALIAS)
        assert editor.codes(uri) == ["RMT103"]
        editor.apply(editor.action(uri, "RMT103: ").edit)
        assert editor.codes(uri) == []
        assert "step = jax.checkpoint(abs)" in editor.texts[uri]

    def test_go_on_after_addresses_that_name_no_file(self, editor: Editor, project: Path) -> None:
        odd = ["", "file:", "git:/a.py", "file:///a%00b.py", f"file:///{'a' * 5000}.py"]
        for uri in odd:
            editor.open(uri, MODEL)
        assert editor.codes(editor.open(project / "model.py")) == ["RMT101"]
        assert editor.messages == []

    def test_take_unsaved_callers_into_account(self, editor: Editor, project: Path) -> None:
        (project / "train.py").unlink()
        model = editor.open(project / "model.py")
        assert "by position" not in editor.action(model, "RMT101: ").title
        editor.open(project / "unsaved.py", TRAIN)
        assert "by position" in editor.action(model, "RMT101: ").title


class TestSyntaxErrors:
    def test_keep_diagnostics_while_typing(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "model.py")
        assert editor.codes(uri) == ["RMT101"]
        editor.change(uri, MODEL + "\nx = (\n")
        assert editor.actions(uri) == []
        told = len(editor.published)
        editor.change(uri, MODEL + "\nx = ()\n")
        assert editor.codes(uri) == ["RMT101"]
        assert len(editor.published) == told + 1

    def test_other_files_see_the_last_valid_text(self, editor: Editor, project: Path) -> None:
        train = editor.open(project / "train.py")
        model = editor.open(project / "model.py")
        offered = editor.action(model, "RMT101: ").title
        assert "by position" in offered
        editor.change(train, TRAIN + "\nx = (\n")
        # The fix would edit text that is not open: the finding stays without it.
        assert not [one for one in editor.actions(model) if "RMT101: " in one.title]
        assert editor.codes(model) == ["RMT101"]
        editor.change(train, TRAIN + "\nx = ()\n")
        assert editor.action(model, "RMT101: ").title == offered

    def test_are_reported_on_open_and_save(self, editor: Editor, project: Path) -> None:
        broken = "import jax\n\nstep = jax.checkpoint(abs\n"
        write_files(project, {"broken.py": broken})
        uri = editor.open(project / "broken.py")
        assert editor.codes(uri) == ["RMT000"]
        editor.change(uri, broken.replace("(abs", "(abs)"))
        assert editor.codes(uri) == []
        editor.change(uri, broken)
        told = len(editor.published)
        assert editor.actions(uri) == []
        assert len(editor.published) == told
        editor.save(uri)
        editor.wait(lambda: len(editor.published) > told)
        assert editor.codes(uri) == ["RMT000"]


class TestFixes:
    def test_fix_of_several_files(self, editor: Editor, project: Path) -> None:
        model, train = editor.open(project / "model.py"), editor.open(project / "train.py")
        fix = editor.action(model, "RMT101: ")
        assert (fix.kind, fix.is_preferred) == (types.CodeActionKind.QuickFix, True)
        assert [one.code for one in fix.diagnostics or ()] == ["RMT101"]
        editor.apply(fix.edit)
        assert "static_argnums=(1,)" in editor.texts[model]
        assert "block(x, True)" in editor.texts[train]
        assert editor.codes(model) == editor.codes(train) == []

    def test_fix_edits_closed_files(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "model.py")
        editor.apply(editor.action(uri, "RMT101: ").edit)
        assert "block(x, True)" in (project / "train.py").read_text()
        editor.save(uri)
        assert cli(project).code == 0

    def test_unsafe_fix_is_labelled(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "scan.py", SCAN)
        fix = editor.action(uri, "RMT304: ")
        assert "unsafe" in fix.title
        assert not fix.is_preferred
        editor.apply(fix.edit)
        assert "jax.checkpoint(layer, prevent_cse=False)" in editor.texts[uri]
        assert editor.codes(uri) == []

    def test_are_offered_at_the_finding(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "model.py")
        [found] = editor.diagnostics(uri)
        cursor = types.Range(found.range.start, found.range.start)
        assert any("RMT101: " in one.title for one in editor.actions(uri, cursor))
        away = types.Range(types.Position(0, 0), types.Position(0, 4))
        assert not [one for one in editor.actions(uri, away) if "RMT101" in one.title]
        assert editor.actions(uri, None, "refactor") == []

    def test_fix_all(self, editor: Editor, project: Path) -> None:
        text = MODEL + ALIAS.replace("import jax.ad_checkpoint", "import jax.ad_checkpoint\n")
        text += SCAN.replace("import jax\n", "")
        model, train = editor.open(project / "model.py", text), editor.open(project / "train.py")
        assert set(editor.codes(model)) == {"RMT101", "RMT103", "RMT304"}
        fix = editor.action(model, "all safe fixes", "source.fixAll")
        assert fix.kind == "source.fixAll.remat-migrate"
        editor.apply(fix.edit)
        assert editor.codes(model) == ["RMT304"]
        assert "block(x, True)" in editor.texts[train]
        assert not editor.actions(model, None, "source.fixAll")
        for uri in (model, train):
            editor.save(uri)
        write_files(project / "by_hand", {"pyproject.toml": PROJECT})
        write_files(project / "by_hand", {"model.py": text, "train.py": TRAIN})
        cli(project / "by_hand", "--fix")
        assert (project / "by_hand/model.py").read_text() == editor.texts[model]


class TestSuppression:
    def test_adds_a_comment(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "model.py")
        editor.apply(editor.action(uri, "Suppress RMT101").edit)
        assert "@partial(jax.checkpoint, concrete=True)  # noqa: RMT101\n" in editor.texts[uri]
        assert editor.codes(uri) == []

    def test_unused_comment_is_unnecessary_code(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "clean.py", CLEAN.replace("(abs)", "(abs)  # noqa: RMT101"))
        [found] = editor.diagnostics(uri)
        assert (found.code, found.tags) == ("RMT001", (types.DiagnosticTag.Unnecessary,))
        assert not [one for one in editor.actions(uri) if "Suppress" in one.title]
        editor.apply(editor.action(uri, "RMT001: ").edit)
        assert editor.texts[uri] == CLEAN


class TestExplanations:
    def test_hover(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "model.py")
        [found] = editor.diagnostics(uri)
        hover = editor.hover(uri, found.range.start.line, found.range.start.character + 2)
        assert hover is not None
        assert hover.range == found.range
        assert isinstance(hover.contents, types.MarkupContent)
        assert hover.contents.kind == types.MarkupKind.Markdown
        assert hover.contents.value.startswith("# RMT101 concrete-option\n")
        assert "## Why is this bad?\n" in hover.contents.value
        assert editor.hover(uri, 0, 2) is None


class TestSettings:
    def test_are_reloaded_when_the_file_changes(self, editor: Editor, project: Path) -> None:
        uri = editor.open(project / "model.py")
        assert editor.codes(uri) == ["RMT101"]
        (project / "pyproject.toml").write_text('[tool.remat-migrate]\nignore = ["RMT101"]\n')
        told = len(editor.published)
        editor.files_changed(project / "pyproject.toml")
        editor.wait(lambda: len(editor.published) > told)
        assert editor.codes(uri) == []

    def test_invalid_settings_are_reported_once(self, editor: Editor, project: Path) -> None:
        uri, settings = editor.open(project / "model.py"), project / "pyproject.toml"
        assert editor.codes(uri) == ["RMT101"]
        settings.write_text('[tool.remat-migrate]\nselekt = ["RMT1"]\n')
        for number in range(3):
            editor.files_changed(settings)
            editor.change(uri, MODEL + "\n" * number)
            # The last valid settings stay in force.
            assert editor.codes(uri) == ["RMT101"]
            assert editor.action(uri, "RMT101: ").edit is not None
        [shown] = editor.messages
        assert shown.type == types.MessageType.Error
        assert "unknown key tool.remat-migrate.selekt" in shown.message
        settings.write_text('[tool.remat-migrate]\nignore = ["RMT101"]\n')
        editor.files_changed(settings)
        editor.change(uri, MODEL)
        assert editor.codes(uri) == []
        settings.write_text('[tool.remat-migrate]\nselekt = ["RMT1"]\n')
        editor.files_changed(settings)
        editor.wait(lambda: len(editor.messages) > 1)

    def test_invalid_settings_at_startup(self, editor: Editor, project: Path) -> None:
        (project / "pyproject.toml").write_text("[tool.remat-migrate]\nselect = 3\n")
        uri = editor.open(project / "model.py")
        shown = editor.wait(lambda: editor.messages[-1] if editor.messages else None)
        assert "expected an array, got an integer 3" in shown.message
        assert editor.actions(uri) == []
        (project / "pyproject.toml").write_text(PROJECT)
        editor.files_changed(project / "pyproject.toml")
        assert editor.codes(uri) == ["RMT101"]


def test_server_capabilities(server: Editor) -> None:
    can = server.server.capabilities
    assert server.server.server_info is not None
    assert server.server.server_info.name == "remat-migrate"
    assert isinstance(can.code_action_provider, types.CodeActionOptions)
    registered = server.wait(lambda: server.watched[0] if server.watched else None)
    assert registered.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES


def test_editor_with_few_capabilities(tmp_path: Path) -> None:
    """The editor counts columns in UTF-8."""
    root = tmp_path.resolve()
    write_files(root, {"alias.py": ALIAS, "model.py": MODEL, "sub/train.py": TRAIN})
    can = types.ClientCapabilities(
        general=types.GeneralClientCapabilities(
            position_encodings=[types.PositionEncodingKind.Utf8]
        )
    )
    editor = Editor([root], can)
    assert editor.encoding == types.PositionEncodingKind.Utf8
    alias, model = editor.open(root / "alias.py"), editor.open(root / "model.py")
    assert not [one for one in editor.actions(alias) if one.kind not in ("quickfix", None)]
    fix = editor.action(alias, "all safe fixes", "source.fixAll.remat-migrate")
    editor.apply(fix.edit)
    assert 'a = "🦒🦒"; step = jax.checkpoint(abs); b = "🦒"\n' in editor.texts[alias]
    assert editor.codes(alias) == []
    # A workspace folder is a project even without a marker, so its callers are found.
    editor.apply(editor.action(model, "RMT101: ").edit)
    assert "block(x, True)" in (root / "sub/train.py").read_text()
    assert editor.quit(politely=False) == 1


FAULTY = '''
from remat_migrate.rule import Rule


class Faulty(Rule):
    """## What it does"""

    code, name = "ACM001", "faulty"

    def check(self, module, project):
        print("this is not a message of the protocol")
        yield from ()
        raise ValueError("an unexpected tree")
'''


def test_failing_rule_is_reported_once(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    plugin = {
        "acme.py": FAULTY,
        "acme-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme\nVersion: 1\n",
        "acme-1.dist-info/entry_points.txt": "[remat_migrate.rules]\nacme = acme:Faulty\n",
    }
    write_files(root / "site", plugin)
    write_files(root / "p", {"pyproject.toml": PROJECT, "model.py": MODEL})
    path = os.pathsep.join(filter(None, [str(root / "site"), os.environ.get("PYTHONPATH")]))
    editor = Editor([root / "p"], ABLE, {"PYTHONPATH": path})
    uri = editor.open(root / "p/model.py")
    assert editor.codes(uri) == ["RMT101"]
    editor.change(uri, MODEL + "\n")
    assert editor.codes(uri) == ["RMT101"]
    [shown] = editor.messages
    assert "rule ACM001 failed: ValueError: an unexpected tree" in shown.message
    assert "Traceback" in editor.wait(lambda: editor.logged[0] if editor.logged else None)
    assert editor.quit() == 0


def test_exits_when_the_editor_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "remat_migrate", "server"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    try:
        assert process.wait(60) == 1
    finally:
        process.send_signal(signal.SIGKILL)


def test_missing_pygls_is_a_usage_error(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pygls'] = None\n"
        "from remat_migrate.cli import main; main(['server'])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "pip install 'remat-migrate[lsp]'" in ran.stderr
