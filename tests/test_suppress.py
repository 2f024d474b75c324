"""Suppressions: syntax and scope."""

from __future__ import annotations

from pathlib import Path

import pytest

from remat_migrate.suppressions import Directive, read_directives
from remat_migrate.text import SourceFile


def read(text: str, *, python: bool = True) -> list[Directive]:
    return list(read_directives(SourceFile(Path("/x"), text), python=python))


def summaries(text: str, *, python: bool = True) -> list[tuple[str, str, str]]:
    """Return the text, codes and lines of each directive."""
    return [
        (
            text[slice(*d.span)],
            ",".join(d.codes),
            "file" if d.whole_file else f"{d.lines.start}-{d.lines.stop - 1}" if d.lines else "",
        )
        for d in read(text, python=python)
    ]


@pytest.mark.parametrize(
    ("comment", "span", "codes"),
    [
        ("# noqa: RMT101", "# noqa: RMT101", "RMT101"),
        ("#noqa:RMT101", "#noqa:RMT101", "RMT101"),
        ("# NOQA : rmt101", "# NOQA : rmt101", "rmt101"),
        ("# noqa: RMT101,RMT102", "# noqa: RMT101,RMT102", "RMT101,RMT102"),
        ("# noqa: E501, RMT101 RMT102", "# noqa: E501, RMT101 RMT102", "E501,RMT101,RMT102"),
        ("# noqa: RMT101 because of JAX 0", "# noqa: RMT101", "RMT101"),
        ("# noqa: RMT101, see below", "# noqa: RMT101", "RMT101"),
        ("# type: ignore # noqa: RMT101 # pragma", "# noqa: RMT101", "RMT101"),
        ("# noqa", "# noqa", ""),
        ("# noqa because", "# noqa", ""),
    ],
)
def test_forms(comment: str, span: str, codes: str) -> None:
    assert summaries(f"x = 1  {comment}\n") == [(span, codes, "1-1")]


def test_only_comments_count() -> None:
    assert summaries('x = "# noqa: RMT101"\ny = """\n# noqa: RMT101\n"""\n') == []


def test_a_suppression_covers_its_whole_logical_line() -> None:
    text = "f(\n    1,  # noqa: RMT101\n    2,\n)\ng()\n"
    assert summaries(text) == [("# noqa: RMT101", "RMT101", "1-4")]
    assert summaries("x = 1 + \\\n    2  # noqa: RMT101\n")[0][2] == "1-2"
    assert summaries('f("""\n\n""")  # noqa: RMT101\n')[0][2] == "1-3"


def test_decorators_and_headers_are_separate_logical_lines() -> None:
    text = (
        "@a  # noqa: RMT101\n@b\ndef f(\n    x,  # noqa: RMT102\n):\n    return x  # noqa: RMT103\n"
    )
    assert [lines for _, _, lines in summaries(text)] == ["1-1", "3-5", "6-6"]


def test_ignore_file() -> None:
    assert summaries("x = 1\n# remat-migrate: ignore-file\n")[0][2] == "file"
    assert summaries("x = 1  # remat-migrate:ignore-file (old)\n")[0][2] == "file"
    assert summaries("x = '# remat-migrate: ignore-file'\n") == []


def test_text_formats() -> None:
    text = "export X=1  # noqa: RMT102\n# remat-migrate: ignore-file\ny=a#noqa: RMT102\n"
    assert [(codes, lines) for _, codes, lines in summaries(text, python=False)] == [
        ("RMT102", "1-1"),
        ("", "file"),
    ]


def test_codes_match_by_prefix() -> None:
    (directive,) = read("x = 1  # noqa: rmt1\n")
    assert directive.covers(1, "RMT101")
    assert not directive.covers(1, "RMT201")
    assert not directive.covers(2, "RMT101")
    (bare,) = read("x = 1  # noqa\n")
    assert bare.covers(1, "RMT201")
