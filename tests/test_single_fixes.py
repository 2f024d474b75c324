"""Each fix alone, as other programs apply it: in JSON, SARIF, rdjson and as an editor's action.

Whoever reads a fix makes it in the files as they are, and no other. The finding must be gone then,
and nothing new may fail.
"""

from __future__ import annotations

import ast
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from lsprotocol import types
from more_examples import wrong_examples
from pygls.workspace import PositionCodec
from support import Files, write_files

from remat_migrate.cli.results import Result, report_of
from remat_migrate.engine.analyse import Analysis, analyse
from remat_migrate.engine.check import check_run
from remat_migrate.engine.rules import load_rules
from remat_migrate.engine.run import Run, prepare
from remat_migrate.lsp.actions import ActionContext, code_actions
from remat_migrate.lsp.documents import Document, document, range_of
from remat_migrate.lsp.projects import ProjectView
from remat_migrate.report.content import worst_first
from remat_migrate.report.machine_readable import json as json_report
from remat_migrate.report.machine_readable import rdjson, sarif
from remat_migrate.report.terminal.display import Screen
from remat_migrate.rule import Finding
from remat_migrate.settings import Options
from remat_migrate.text import OffsetMap, SourceFile

ROOT = Path(__file__).parents[1]
Texts = Mapping[Path, str]
# A range of a file by lines and columns from 1, and its new text.
Place = tuple[int, int, int, int, str]


def examples() -> Iterator[tuple[str, Files]]:
    """Name and files of each example."""
    for rule in load_rules():
        if type(rule).__module__.startswith("remat_migrate_rules."):
            for number, example in enumerate(wrong_examples(rule)):
                yield f"{rule.code}-{number}", {example.filename: example.before}
    for path in sorted((ROOT / "fixtures/behaviour/migrated").glob("*.py")):
        yield path.stem, {path.name: path.read_bytes()}
    folder = ROOT / "fixtures/old_trainer"
    inside = [path for path in folder.rglob("*") if path.is_file()]
    yield folder.name, {str(path.relative_to(folder)): path.read_bytes() for path in inside}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(files, marks=[pytest.mark.slow] if number % 6 != 1 else [], id=name)
        for number, (name, files) in enumerate(examples())
    ],
)
def test_each_fix_is_right_alone(tmp_path: Path, files: Files) -> None:
    folder = tmp_path.resolve()
    write_files(folder, files)
    run = prepare([folder], Options())
    analysis = check_run(run)
    seen: dict[str, Any] = {}
    in_sarif, in_rdjson = fixes_in_sarif(run, analysis), fixes_in_rdjson(run, analysis)
    for finding, texts in fixes_in_json(run, analysis):
        assert in_sarif[finding] == texts
        assert in_rdjson.get(finding, texts) == texts
        assert texts in fixes_in_editor(run, analysis, finding)
        if seen.get("texts") != texts:  # findings that stand together may have one fix
            seen = {"texts": texts, "after": analysis_of(run, analysis, texts)}
        check_alone(analysis, finding, seen["after"])


def analysis_of(run: Run, analysis: Analysis, texts: Texts) -> Analysis:
    """What is found in other texts, which must parse."""
    for path, text in texts.items():
        if path.suffix == ".py":
            ast.parse(text)
    sources = {path: analysis.source(path).replaced(text) for path, text in texts.items()}
    return analyse(run, sources, analysis)


def check_alone(analysis: Analysis, finding: Finding, after: Analysis) -> None:
    """Insist that with its fix a finding is gone, and that nothing else has become an error."""
    assert finding.fix is not None
    moves = OffsetMap(edit for edit in finding.fix.edits if edit.path == finding.path)
    known = (finding.code, finding.path, finding.message, moves.moved(finding.span.start))
    assert known not in {(f.code, f.path, f.message, f.span.start) for f in after.findings}
    assert not errors(after) - errors(analysis)


def errors(analysis: Analysis) -> Counter[tuple[str, Path]]:
    return Counter((f.code, f.path) for f in analysis.findings if f.severity == "error")


# -- fixes as each format has them: the texts of the files that they change


def fixes_in_json(run: Run, analysis: Analysis) -> Iterator[tuple[Finding, Texts]]:
    written = rendered(json_report.render, run, analysis)["findings"]
    for finding, one in zip(analysis.findings, written, strict=True):
        edits: dict[Path, list[Place]] = defaultdict(list)
        for edit in (one["fix"] or {"edits": ()})["edits"]:
            start = edit["start_line"], edit["start_column"]
            end = edit["end_line"], edit["end_column"]
            edits[Path("/", edit["path"])].append((*start, *end, edit["text"]))
        if edits:
            yield finding, edited(analysis, edits, len)


def fixes_in_sarif(run: Run, analysis: Analysis) -> dict[Finding, Texts]:
    (written,) = rendered(sarif.render, run, analysis)["runs"]
    folder = Path(unquote(urlsplit(written["originalUriBaseIds"]["%SRCROOT%"]["uri"]).path))
    found = {}
    for finding, one in zip(worst_first(analysis.findings), written["results"], strict=False):
        edits: dict[Path, list[Place]] = defaultdict(list)
        for fix in one.get("fixes", ()):
            for change in fix["artifactChanges"]:
                path = folder / unquote(change["artifactLocation"]["uri"])
                for new in change["replacements"]:
                    at, text = new["deletedRegion"], new.get("insertedContent", {"text": ""})
                    start = at["startLine"], at["startColumn"]
                    end = at["endLine"], at["endColumn"]
                    edits[path].append((*start, *end, text["text"]))
        if edits:
            found[finding] = edited(analysis, edits, utf16)
    return found


def fixes_in_rdjson(run: Run, analysis: Analysis) -> dict[Finding, Texts]:
    """The suggestions, each made alone."""
    written = rendered(rdjson.render, run, analysis)["diagnostics"]
    found = {}
    for finding, one in zip(worst_first(analysis.findings), written, strict=True):
        for new in one.get("suggestions", ()):
            assert finding not in found, "which of two is right alone?"
            start, end = new["range"]["start"], new["range"]["end"]
            place = (start["line"], start["column"], end["line"], end["column"], new["text"])
            found[finding] = edited(analysis, {finding.path: [place]}, utf8)
    return found


def fixes_in_editor(run: Run, analysis: Analysis, finding: Finding) -> list[Texts]:
    """What the actions at a finding that mend it make of the files."""
    source = finding.source
    language = "python" if source.path.suffix == ".py" else source.path.suffix[1:]
    folders = [run.settings.root]
    uri = source.path.as_uri()
    one = document(uri, language, 1, source.text, folders, is_settled=True)
    if one is None:  # of no kind that the server looks at
        return [dict(fixes_in_json(run, analysis))[finding]]
    view = ProjectView((one,), run, analysis)
    opened: Mapping[Path, Document] = {one.path: one}
    scope = ActionContext(view, {}, opened, PositionCodec())
    context = types.CodeActionContext([], only=[types.CodeActionKind.QuickFix])
    place = types.Location(uri, range_of(source, finding.span, scope.codec))
    assert finding.fix is not None
    found = []
    for action in code_actions(scope, one, context, place):
        if action.title.startswith(f"{finding.code}: {finding.fix.title}") and action.edit:
            edits = {
                Path(unquote(urlsplit(changed.text_document.uri).path)): [
                    (
                        edit.range.start.line + 1,
                        edit.range.start.character + 1,
                        edit.range.end.line + 1,
                        edit.range.end.character + 1,
                        edit.new_text,
                    )
                    for edit in changed.edits
                    if isinstance(edit, types.TextEdit)
                ]
                for changed in action.edit.document_changes or ()
                if isinstance(changed, types.TextDocumentEdit)
            }
            found.append(edited(analysis, edits, utf16))
    return found


def rendered(render: Callable[..., str], run: Run, analysis: Analysis) -> Any:
    return json.loads(render(report_of(run, Result(analysis)), Screen()))


def edited(
    analysis: Analysis, edits: Mapping[Path, Sequence[Place]], width: Callable[[str], int]
) -> Texts:
    """Texts with ranges replaced; `width` says what a character counts in a column."""
    texts = {}
    for path, here in edits.items():
        source = analysis.source(path)
        text = source.text
        for line, column, end_line, end_column, new in sorted(here, reverse=True):
            start = offset(source, line, column, width)
            end = offset(source, end_line, end_column, width)
            text = text[:start] + new + text[end:]
        texts[path] = text
    return texts


def offset(source: SourceFile, line: int, column: int, width: Callable[[str], int]) -> int:
    start = at = source.line_starts[line - 1]
    while width(source.text[start:at]) < column - 1:
        at += 1
    return at


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def utf8(text: str) -> int:
    return len(text.encode())
