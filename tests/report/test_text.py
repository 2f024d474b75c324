"""The text formats, character by character."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remat_migrate.console import wants_color
from remat_migrate.engine.analyse import Hidden
from remat_migrate.engine.baseline import Comparison, Entry
from remat_migrate.report.content import Report
from remat_migrate.report.terminal import concise, full
from remat_migrate.report.terminal.display import Screen, display_width, printable
from remat_migrate.report.terminal.statistics import rule_counts, statistics
from remat_migrate.report.terminal.summary import would_fix
from remat_migrate.rule import Finding, Fix, Related, Safety
from remat_migrate.text import Edit, SourceFile, Span

FOLDER = Path("/project")
TRAIN = SourceFile(FOLDER / "src/train.py", "\n" * 39 + "loss = block(x, is_training=True)\n")


def source(text: str, name: str = "src/model.py") -> SourceFile:
    return SourceFile(FOLDER / name, text)


def span(file: SourceFile, piece: str) -> Span:
    start = file.text.index(piece)
    return Span(start, start + len(piece))


def finding(
    file: SourceFile, piece: str, *related: tuple[str, str], message: str = "found", **more: object
) -> Finding:
    return Finding(
        code="RMT101",
        name="concrete-option",
        message=message,
        source=file,
        span=span(file, piece),
        related=tuple(Related(file, span(file, at), says) for at, says in related),
        **more,  # type: ignore[arg-type]
    )


def fix(file: SourceFile, safety: Safety = Safety.SAFE, title: str = "drop it") -> Fix:
    return Fix(title, safety, (Edit(file.path, 0, 1, ""),))


def shown(one: Finding, width: int = 80) -> str:
    lines = list(full.render_finding(one, Screen(width, False, FOLDER)))
    return "\n".join(lines)


def drawing(file: SourceFile, piece: str, *related: tuple[str, str], width: int = 80) -> str:
    """Return the code of a finding without its header."""
    return shown(finding(file, piece, *related), width).partition("\n")[2]


MODEL = source(
    "\n" * 13
    + "@partial(jax.checkpoint, concrete=True)\n"
    + "def block(x, is_training):\n"
    + "  if is_training:\n"
    + "    x = drop(x)\n"
)


def test_finding_with_all_its_parts() -> None:
    call = Related(TRAIN, span(TRAIN, "block"), "called with `is_training=` by keyword")
    body = MODEL.text.rindex("is_training")
    needed = Related(MODEL, Span(body, body + 11), "must be concrete")
    one = Finding(
        code="RMT101",
        name="concrete-option",
        message="`jax.checkpoint` no longer accepts `concrete=`",
        source=MODEL,
        span=span(MODEL, "concrete=True"),
        fix=fix(MODEL, title="static_argnums=(1,), and a call passed by position"),
        related=(needed, call),
        reason="Static arguments must be passed by position.",
    )
    assert (
        shown(one, 100)
        == """\
src/model.py:14:26: RMT101 `jax.checkpoint` no longer accepts `concrete=`                   safe fix
   |
14 | @partial(jax.checkpoint, concrete=True)
   |                          ^^^^^^^^^^^^^
15 | def block(x, is_training):
16 |   if is_training:
   |      ----------- must be concrete
   ::: src/train.py:40  called with `is_training=` by keyword
   = help: static_argnums=(1,), and a call passed by position
   = note: Static arguments must be passed by position."""
    )


def test_distant_lines_are_omitted() -> None:
    file = source("first\n" + "\n" * 20 + "last\n")
    assert (
        drawing(file, "last", ("first", "here"))
        == """\
   |
 1 | first
   | ----- here
...
22 | last
   | ^^^^"""
    )


def test_two_marks_on_one_line() -> None:
    file = source("f(a, b)\n")
    assert (
        drawing(file, "b", ("a", "first"))
        == """\
  |
1 | f(a, b)
  |      ^
  |   - first"""
    )


def test_mark_of_several_lines() -> None:
    file = source("x = f(\n    1,\n\n    2,\n)\n")
    assert (
        drawing(file, "f(\n    1,\n\n    2,\n)")
        == """\
  |
1 | x = f(
  |     ^^
2 |     1,
  |     ^^
3 |
4 |     2,
  |     ^^
5 | )
  | ^"""
    )


def test_middle_of_a_long_mark_is_omitted() -> None:
    file = source("f(\n" + "    1,\n" * 30 + ")\n")
    lines = drawing(file, file.text.strip()).splitlines()
    assert lines[1] == " 1 | f("
    assert lines[-3:] == ["...", "32 | )", "   | ^"]
    assert len(lines) == 1 + 2 * 6 + 3


def test_wide_characters_and_tabs_do_not_shift_underlines() -> None:
    file = source("\t模型 = e\u0301 + bad\n")
    assert (
        drawing(file, "bad")
        == """\
  |
1 |     模型 = e\u0301 + bad
  |                ^^^"""
    )
    assert display_width("模型 = e\u0301 + ") == len("      e + ") + 1


def test_underline_is_as_wide_as_its_text() -> None:
    assert drawing(source("f(模型)\n"), "模型").splitlines()[-1] == "  |   ^^^^"


def test_empty_span_is_marked() -> None:
    file = source("x = 1\n")
    one = Finding("RMT101", "n", "m", file, Span(5, 5))
    assert "|      ^" in shown(one)
    at_end = Finding("RMT101", "n", "m", file, Span(6, 6))
    assert shown(at_end).splitlines()[0].startswith("src/model.py:2:1: ")


def test_long_line_is_cropped_around_the_mark() -> None:
    file = source("a" * 300 + " bad " + "b" * 300 + "\n")
    lines = drawing(file, "bad", width=60).splitlines()
    assert all(len(line) <= 60 for line in lines)
    code, underline = lines[1:]
    assert code.startswith("1 | …a")
    assert code.endswith("b…")
    assert code[underline.index("^") :][:3] == "bad"
    assert underline.count("^") == 3


def test_mark_wider_than_the_screen() -> None:
    file = source("f(" + "x" * 500 + ")\n")
    code, underline = drawing(file, "x" * 500, width=60).splitlines()[1:]
    assert len(code) <= 60
    assert len(underline) <= 60
    assert underline.count("^") > 30


def test_start_of_a_long_line_is_shown_if_marked() -> None:
    file = source("bad = " + "x" * 500 + "\n")
    code, underline = drawing(file, "bad", width=60).splitlines()[1:]
    assert code.startswith("1 | bad = xxx")
    assert underline == "  | ^^^"


def test_control_characters_are_replaced() -> None:
    file = source("x = '\x1b[2J\x9b31m\u202e' + bad\r\n", "src/\x1b[31mred\n.py")
    one = finding(file, "bad", message="the value '\x1b[2J'", reason="a\x07b")
    text = shown(one)
    assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]
    assert text.startswith("src/␛[31mred␊.py:1:")
    assert "x = '␛[2J�31m�' + bad" in text
    assert "a␇b" in text
    assert text.splitlines()[3].index("^") == text.splitlines()[2].index("bad")


def test_printable_keeps_ordinary_text() -> None:
    for text in ("naïve 模型 🎉", "a\tb", "\u00a0x", "👩\u200d🔬"):
        assert printable(text) == text


def test_unreadable_file_has_no_snippet() -> None:
    assert shown(Finding("RMT101", "n", "is binary", source(""), Span(0, 0))) == (
        "src/model.py:1:1: RMT101 is binary"
    )


@pytest.mark.parametrize(
    ("mend", "tag", "note"),
    [
        (fix(MODEL), "safe fix", "= help: drop it"),
        (fix(MODEL, Safety.UNSAFE), "unsafe fix", "= help: drop it"),
        (Fix("use jax.lax.cond", Safety.MANUAL), "manual fix", "= help: use jax.lax.cond"),
    ],
)
def test_fix_tags(mend: Fix, tag: str, note: str) -> None:
    text = shown(finding(MODEL, "concrete=True", fix=mend))
    assert text.splitlines()[0].endswith(f"  {tag}")
    assert note in text


def test_notes_are_wrapped_but_not_their_code() -> None:
    reason = "word " * 30 + "\n    jax.lax.cond(" + "x, " * 30 + "x)"
    lines = shown(finding(MODEL, "concrete=True", reason=reason), 60).splitlines()
    notes = [line for line in lines if "word" in line or "lax" in line]
    assert all(len(line) <= 60 for line in notes if "word" in line)
    assert sum(line.count("word") for line in notes) == 30
    assert sum("jax.lax.cond(" in line and line.endswith("x)") for line in notes) == 1


def test_many_related_places() -> None:
    file = source("bad\n" + "\n".join(f"call{i:02}" for i in range(20)) + "\n")
    related = [(f"call{i:02}", "called here") for i in range(20)]
    text = shown(finding(file, "bad", *related))
    assert text.count("- called here") == 6
    assert text.count("src/model.py:") == 1 + 6
    assert "::: and 8 more" in text


def test_concise() -> None:
    report = Report(
        (finding(MODEL, "concrete=True", fix=fix(MODEL)), finding(TRAIN, "block", message="a\nb")),
        files=3,
        hidden=(Hidden(finding(MODEL, "block"), "comment"),),
    )
    assert list(concise.render(report, Screen(80, False, FOLDER))) == [
        "src/model.py:14:26: RMT101 found [safe fix]",
        "src/train.py:40:8: RMT101 a␊b",
        "Found 2 findings in 2 files: 1 fixable, 1 manual.  (1 suppressed)",
    ]


def stale(count: int) -> Entry:
    return Entry("a.py", "RMT101", count, "f", "x = 1", "0" * 32)


def compared(*known: Finding, gone: int = 0) -> Comparison:
    return Comparison(FOLDER / "known.json", known, (stale(gone),) if gone else ())


SAFE = finding(MODEL, "block", fix=fix(MODEL))
UNSAFE = finding(MODEL, "block", fix=fix(MODEL, Safety.UNSAFE))
MANUAL = finding(TRAIN, "block")
HIDDEN = (Hidden(SAFE, "comment"), Hidden(MANUAL, "settings"))
KNOWN = (Hidden(MANUAL, "baseline"),)


def summarized(*findings: Finding, files: int = 2, **more: Any) -> list[str]:
    report = Report(findings, files, **more)
    return list(concise.render(report, Screen(80, False, FOLDER)))[len(findings) :]


def test_summary_of_findings() -> None:
    assert summarized(files=0) == ["No findings in 0 files."]
    assert summarized(files=1) == ["No findings in 1 file."]
    assert summarized(hidden=HIDDEN) == ["No findings in 2 files.  (2 suppressed)"]
    assert summarized(SAFE) == ["Found 1 finding in 1 file: 1 fixable."]
    assert summarized(UNSAFE, MANUAL, MANUAL) == [
        "Found 3 findings in 2 files: 1 fixable with --unsafe-fixes, 2 manual."
    ]
    assert summarized(SAFE, UNSAFE, unsafe=True) == ["Found 2 findings in 1 file: 2 fixable."]


def test_summary_of_a_baseline() -> None:
    known = {"hidden": KNOWN, "baseline": compared(MANUAL)}
    assert summarized(baseline=compared()) == ["No findings in 2 files.  (0 known)"]
    assert summarized(**known) == ["No findings in 2 files.  (1 known)"]
    assert summarized(**known, fixed={}) == ["No findings in 2 files.  (1 known)"]
    assert summarized(SAFE, hidden=(*HIDDEN, *KNOWN), baseline=compared(MANUAL, gone=3)) == [
        "Found 1 finding in 1 file: 1 fixable.  (2 suppressed, 1 known, 3 stale)"
    ]


def test_summary_of_fixes() -> None:
    assert summarized(fixed={}) == ["No findings in 2 files."]
    assert summarized(fixed={"RMT101": 0}) == ["No findings in 2 files."]
    assert summarized(MANUAL, fixed={"RMT101": 0}, baseline=compared(gone=1)) == [
        "Fixed nothing.",
        "Found 1 finding in 1 file: 1 manual.  (0 known, 1 stale)",
    ]
    assert summarized(UNSAFE, hidden=HIDDEN, fixed={"RMT103": 2, "RMT101": 1}) == [
        "Fixed 3: 1 RMT101, 2 RMT103.",
        "Remaining: 1 finding in 1 file: 1 fixable with --unsafe-fixes.  (2 suppressed)",
    ]
    assert summarized(hidden=KNOWN, fixed={"RMT101": 1}, baseline=compared(MANUAL)) == [
        "Fixed 1: 1 RMT101.",
        "No findings left.  (1 known)",
    ]


@pytest.mark.parametrize(
    ("number", "left", "line"),
    [
        (0, Report((), 1), "Nothing to fix."),
        (0, Report((), 1, hidden=HIDDEN), "Nothing to fix.  (2 suppressed)"),
        (0, Report((MANUAL,), 1), "Nothing to fix; found 1 finding."),
        (2, Report((), 1), "Would fix 2 findings and leave none."),
        (
            2,
            Report((MANUAL,), 1, hidden=KNOWN, baseline=compared(MANUAL, gone=1)),
            "Would fix 2 findings and leave 1.  (1 known, 1 stale)",
        ),
    ],
)
def test_diff_summary(number: int, left: Report, line: str) -> None:
    assert list(would_fix(number, left, Screen())) == [line]


def test_statistics() -> None:
    other = Finding("RMT103", "ad-checkpoint-alias", "m", MODEL, Span(0, 1), fix=fix(MODEL))
    third = Finding("RMT301", "whole-function", "m", MODEL, Span(0, 1))
    alone = Finding("RMT302", "nested-twice", "m", MODEL, Span(0, 1))
    found = (other, *[MANUAL] * 9, SAFE, UNSAFE, third)
    hidden = (*HIDDEN, *KNOWN, Hidden(alone, "baseline"))
    report = Report(found, 3, hidden=hidden, baseline=compared(MANUAL, alone, gone=2))
    assert list(statistics(report, Screen())) == [
        "11  RMT101  [-]  concrete-option      in 2 files    (2 suppressed, 1 known, 2 stale)",
        " 1  RMT103  [*]  ad-checkpoint-alias  in 1 file",
        " 1  RMT301       whole-function       in 1 file",
        " 0  RMT302       nested-twice                       (1 known)",
        "",
        "[*] all, [-] some fixable with --fix",
    ]
    assert list(statistics(Report((UNSAFE,), 1, unsafe=True), Screen())) == [
        "1  RMT101  [*]  concrete-option  in 1 file",
        "",
        "[*] all fixable with --fix --unsafe-fixes",
    ]
    assert list(statistics(Report((UNSAFE,), 1), Screen())) == [
        "1  RMT101       concrete-option  in 1 file"
    ]
    assert list(statistics(Report((), 1), Screen())) == []
    [first, *_] = rule_counts(report)
    assert (first.findings, first.safe, first.unsafe, first.known) == (11, 1, 1, 1)


def test_colour_adds_only_escape_sequences() -> None:
    import re

    one = finding(MODEL, "concrete=True", ("is_training", "x"), fix=fix(MODEL), reason="why")
    plain = "\n".join(full.render_finding(one, Screen(80, False, FOLDER)))
    painted = "\n".join(full.render_finding(one, Screen(80, True, FOLDER)))
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain


def test_paths_outside_the_folder_are_absolute() -> None:
    screen = Screen(80, False, FOLDER)
    assert screen.path(Path("/project/a/b.py")) == "a/b.py"
    assert screen.path(Path("/projects/a.py")) == "/projects/a.py"


def test_environment_controls_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_color(True)
    assert not wants_color(False)
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_color(True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert wants_color(False)
    monkeypatch.setenv("TERM", "dumb")
    assert wants_color(True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(True)


def test_span_of_whitespace_is_marked_at_its_start() -> None:
    file = source("x\n\n \n\ny\n")
    one = Finding("RMT101", "concrete-option", "found", file, Span(2, 6))
    assert shown(one).splitlines()[1:3] == ["  |", "2 |"]
