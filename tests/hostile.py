"""Reports with hostile paths, names and messages, which every output format must escape."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remat_migrate.engine.analyse import Hidden
from remat_migrate.report.content import Report
from remat_migrate.rule import Finding, Fix, Related, Safety
from remat_migrate.text import Edit, SourceFile, Span

FOLDER = Path("/project")

_PIECES = [
    *("\n", "\r\n", "\r", "\t", "\0", "\x1b[31m", "\x0b", "\x7f", "\x85", "\u2028", "\ufeff"),
    *("\ufffe", "::", "::error::", "%", "%0A", "##[error]", "]]>", "<!--", "&lt;", "<b>", '"', "'"),
    *(
        "\\",
        "|",
        "`",
        "``",
        "[a](b)",
        "](",
        "{0}",
        ",",
        ":",
        "#",
        "?",
        "*",
        "~",
        "@",
        "$",
        "\u202e",
    ),
    *("\u200d", "é", "模", "🜁", "\ud800", "\udc80", "\udcff", "\ud83d", "block", "f(x)", " ", "a"),
]
texts = st.lists(st.sampled_from(_PIECES) | st.characters(), max_size=8).map("".join)


def _name(text: str) -> str:
    """Return text as a valid file name: lone surrogates only where they stand for an undecodable
    byte.
    """
    name = text.translate(dict.fromkeys((0, 0x2F, *range(0xD800, 0xDC80))))
    return "".join(letter for letter in name if not "\udcff" < letter <= "\udfff")


_NAMES = texts.map(_name).filter(lambda name: name not in ("", ".", ".."))


@st.composite
def sources(draw: st.DrawFn) -> SourceFile:
    """Generate a file inside or outside the project folder."""
    folder = draw(st.sampled_from([FOLDER, FOLDER / "a b", Path("/elsewhere")]))
    name = draw(_NAMES) + draw(st.sampled_from(["", ".py", ".sh"]))
    return SourceFile(folder / name, draw(texts))


def _spans(file: SourceFile) -> st.SearchStrategy[Span]:
    at = st.integers(0, len(file.text))
    return st.tuples(at, at).map(lambda ends: Span(min(ends), max(ends)))


@st.composite
def findings(draw: st.DrawFn, files: list[SourceFile]) -> Finding:
    """Generate a finding in one of the files, sometimes with a fix and related locations."""
    file = draw(st.sampled_from(files))
    fix = None
    if draw(st.booleans()):
        cuts = sorted(draw(st.sets(st.integers(0, len(file.text)), max_size=4)))
        edits = tuple(
            Edit(file.path, start, end, draw(texts))
            for start, end in zip(cuts[::2], cuts[1::2], strict=False)
        )
        fix = Fix(draw(texts), draw(st.sampled_from(Safety)), edits)
    others = draw(st.lists(st.sampled_from(files), max_size=2))
    return Finding(
        code=draw(st.sampled_from(["RMT000", "RMT101", "RMT301"])),
        name=draw(st.sampled_from(["concrete-option", "a,b:c"])),
        message=draw(texts),
        source=file,
        span=draw(_spans(file)),
        severity=draw(st.sampled_from(["error", "warning", "note"])),
        confidence=draw(st.sampled_from(["high", "medium", "low"])),
        fix=fix,
        related=tuple(Related(one, draw(_spans(one)), draw(texts)) for one in others),
        reason=draw(texts),
        url=draw(st.sampled_from(["", "https://docs.jax.dev/a_(b)#c"])),
    )


@st.composite
def reports(draw: st.DrawFn, most: int = 4) -> Report:
    """Generate a report of several findings, a few of them suppressed."""
    files = draw(st.lists(sources(), min_size=1, max_size=3, unique_by=lambda file: file.path))
    found = draw(st.lists(findings(files), max_size=most, unique=True))
    hidden = draw(st.lists(findings(files), max_size=2, unique=True))
    by = draw(st.sampled_from(["comment", "settings", "baseline"]))
    return Report(
        tuple(found),
        files=len(files) + draw(st.integers(0, 2)),
        root=FOLDER,
        hidden=tuple(Hidden(one, by) for one in hidden),
        sources={file.path: file for file in files},
    )


# A few examples are enough: the slow part of these tests is starting another process.
_quickly = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


def given_reports(test: Callable[[Report], None]) -> Callable[[], None]:
    """Run a test with generated reports."""
    return cast("Callable[[], None]", _quickly(given(reports())(test)))
