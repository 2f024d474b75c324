"""The text formats, character by character."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remat_migrate.engine.analyse import Hidden
from remat_migrate.engine.baseline import Comparison, Entry
from remat_migrate.report.content import Report
from remat_migrate.report.terminal import concise, full
from remat_migrate.report.terminal.display import Screen, display_width
from remat_migrate.report.terminal.statistics import rule_counts, statistics
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


def test_control_characters_are_replaced() -> None:
    file = source("x = '\x1b[2J\x9b31m\u202e' + bad\r\n", "src/\x1b[31mred\n.py")
    one = finding(file, "bad", message="the value '\x1b[2J'", reason="a\x07b")
    text = shown(one)
    assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]
    assert text.startswith("src/␛[31mred␊.py:1:")
    assert "x = '␛[2J�31m�' + bad" in text
    assert "a␇b" in text
    assert text.splitlines()[3].index("^") == text.splitlines()[2].index("bad")


def test_many_related_places() -> None:
    file = source("bad\n" + "\n".join(f"call{i:02}" for i in range(20)) + "\n")
    related = [(f"call{i:02}", "called here") for i in range(20)]
    text = shown(finding(file, "bad", *related))
    assert text.count("- called here") == 6
    assert text.count("src/model.py:") == 1 + 6
    assert "::: and 8 more" in text


def stale(count: int) -> Entry:
    return Entry("a.py", "RMT101", "f", "x = 1", count)


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


def test_statistics() -> None:
    other = Finding("RMT103", "ad-checkpoint-alias", "m", MODEL, Span(0, 1), fix=fix(MODEL))
    third = Finding("RMT301", "whole-function", "m", MODEL, Span(0, 1))
    alone = Finding("RMT302", "nested-twice", "m", MODEL, Span(0, 1))
    found = (other, *[MANUAL] * 9, SAFE, UNSAFE, third)
    hidden = (*HIDDEN, *KNOWN, Hidden(alone, "baseline"))
    report = Report(found, 3, hidden=hidden, baseline=compared(MANUAL, alone))
    assert list(statistics(report, Screen())) == [
        "11  RMT101  concrete-option      in 2 files  (1 fixable, 2 suppressed, 1 known)",
        " 1  RMT103  ad-checkpoint-alias  in 1 file   (1 fixable)",
        " 1  RMT301  whole-function       in 1 file",
        " 0  RMT302  nested-twice                     (1 known)",
    ]
    assert list(statistics(Report((UNSAFE,), 1, unsafe=True), Screen())) == [
        "1  RMT101  concrete-option  in 1 file  (1 fixable)"
    ]
    assert list(statistics(Report((UNSAFE,), 1), Screen())) == [
        "1  RMT101  concrete-option  in 1 file"
    ]
    assert list(statistics(Report((), 1), Screen())) == []
    [first, *_] = rule_counts(report)
    assert (first.findings, first.safe_fixes, first.unsafe_fixes, first.known) == (11, 1, 1, 1)


def test_colour_adds_only_escape_sequences() -> None:
    import re

    one = finding(MODEL, "concrete=True", ("is_training", "x"), fix=fix(MODEL), reason="why")
    plain = "\n".join(full.render_finding(one, Screen(80, False, FOLDER)))
    painted = "\n".join(full.render_finding(one, Screen(80, True, FOLDER)))
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain


def test_span_of_whitespace_is_marked_at_its_start() -> None:
    file = source("x\n\n \n\ny\n")
    one = Finding("RMT101", "concrete-option", "found", file, Span(2, 6))
    assert shown(one).splitlines()[1:3] == ["  |", "2 |"]
