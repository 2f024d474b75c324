"""The format `markdown`: a comment on a pull request, the worst first, no longer than allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from ..content import Report
from ..terminal.display import Screen, pluralize, printable
from ..terminal.summary import shares
from ..terminal.weights import operations, size
from .code import CodeLine, FileDiff, Piece
from .content import FindingEntry, Page, RelatedEntry, SiteEntry, page_of
from .evidence import VerdictEntry

# GitHub takes this many characters in a comment; it is taken to count as JavaScript does.
MOST = 65_536
# Of the characters, for the table: the rest is for what stands behind the rows.
_TABLE = 0.35
_WIDEST = 160
_SIGNS = {"high": "🔴", "medium": "🟠", "low": "🔵", "none": "⚪"}
_SEE = "see the report in full: `remat-migrate report --output-format html`"
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-!|<>~&$^=])")


def render(report: Report, screen: Screen) -> str:
    """The whole text; what does not fit is counted in it."""
    page = page_of(report, Screen(screen.width, False, screen.folder))
    text = _Comment(MOST)
    text.add("\n".join(_head(report, page)) + "\n")
    _table(page, text)
    tail = [*_measured(page), *_verified(page)]
    left = [piece for piece in tail if not text.add(piece)]
    if left:
        text.add(f"\n{pluralize(len(left), 'section')} about what ran left out; {_SEE}.\n")
    _entries(page, text)
    return str(text)


class _Comment:
    """A text with a limit; what would pass it is refused."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[str] = []
        self._length = 0

    def __str__(self) -> str:
        return "".join(self._parts)

    @property
    def room(self) -> int:
        """How many characters there are left."""
        return self._limit - self._length

    def add(self, text: str, reserve: int = 0) -> bool:
        """Add a text if it fits and leaves `reserve`; whether it did."""
        length = _length(text)
        if length + reserve > self.room:
            return False
        self._parts.append(text)
        self._length += length
        return True


# What a line about what is left out may take.
_RESERVE = 300


def _head(report: Report, page: Page) -> Iterator[str]:
    totals = page.totals
    what = "Findings" if totals.sites is None else "Checkpoints"
    yield f"## {what} in {_plain(page.project)}"
    yield ""
    parts = []
    if totals.sites is not None:
        at_risk = ", ".join(f"{_SIGNS[risk]} {count} {risk}" for risk, count in totals.risks)
        parts.append(f"**{pluralize(totals.sites, 'checkpoint')}**: {at_risk}")
    found = f"**{pluralize(totals.findings, 'finding')}**"
    if report.advice:
        found += f" ({len(report.advice)} of them advice)"
    details = list(shares(report.findings, unsafe=report.unsafe))
    by_code = ", ".join(f"{count} {code} {name}" for code, name, count in totals.codes)
    parts.append(f"{found}: {', '.join(details)} ({by_code})" if details else found)
    if totals.fixed is not None:
        parts.append(f"**{totals.fixed} fixed**")
    if suppressed := sum(totals.suppressed):
        parts.append(f"{suppressed} suppressed")
    if totals.verdicts is not None:
        verdicts = ", ".join(f"{n} {name.replace('-', ' ')}" for name, n in totals.verdicts)
        taken = f", {totals.reverted} reverted" if totals.reverted else ""
        parts.append(f"verified: {verdicts or 'nothing differs'}{taken}")
    yield from (f"- {part}" for part in parts)
    for found_one in page.measured:
        bare = f", {size(found_one.bare.peak_bytes)} without checkpoints" if found_one.sites else ""
        yield (
            f"- measured {_code(found_one.target)}: peak {size(found_one.cost.peak_bytes)}{bare},"
            f" {operations(found_one.cost.flops)}"
        )
    for target, reason in page.failed:
        yield f"- not measured: {_code(target)}: {_plain(reason)}"


# -- the table


@dataclass(frozen=True, slots=True)
class _Column:
    head: str
    cell: Callable[[SiteEntry | FindingEntry], str]


def _table(page: Page, text: _Comment) -> None:
    """The checkpoints with findings or figures, then findings that belong to none."""
    sites = [site for site in page.sites or () if site.risk != "none" or site.weights]
    rows: list[SiteEntry | FindingEntry] = [*sites, *page.loose]
    if not rows:
        return
    columns = list(_columns(page))
    text.add("\n" + "".join(line + "\n" for line in _heading(columns)))
    least = int(MOST * (1 - _TABLE))
    for number, row in enumerate(rows):
        cells = " | ".join(column.cell(row) for column in columns)
        if not text.add(f"| {cells} |\n", least):
            text.add(f"\nand {len(rows) - number} more, {_SEE}.\n")
            return


def _heading(columns: Sequence[_Column]) -> Iterator[str]:
    yield f"| {' | '.join(column.head for column in columns)} |"
    yield f"|{'|'.join(' --- ' for _ in columns)}|"


def _columns(page: Page) -> Iterator[_Column]:
    yield _Column("risk", lambda row: f"{_SIGNS[row.risk]} {row.risk}")
    yield _Column("place", lambda row: _code(str(row.place)))
    yield _Column("what", _what)
    yield _Column("fix", lambda row: ", ".join(dict.fromkeys(f.tag for f in _told(row) if f.tag)))
    if page.totals.verdicts is not None:
        yield _Column("proof", lambda row: ", ".join(dict.fromkeys(_outcomes(row))))
    if page.has_weights:
        yield _Column("saves", lambda row: _each(row, "saves"))
        yield _Column("costs", lambda row: _each(row, "costs"))
        yield _Column("measured", lambda row: _each(row, "verdict"))


def _what(row: SiteEntry | FindingEntry) -> str:
    told = _told(row)
    if not told:
        assert isinstance(row, SiteEntry)
        return _code(row.api) + (f" of {_code(row.target)}" if row.target else "")
    more = f", and {len(told) - 1} more" if len(told) > 1 else ""
    return f"{told[0].code} {_prose(told[0].message)}{more}"


def _told(row: SiteEntry | FindingEntry) -> Sequence[FindingEntry]:
    return (row,) if isinstance(row, FindingEntry) else (*row.findings, *row.elsewhere)


def _outcomes(row: SiteEntry | FindingEntry) -> Iterator[str]:
    own = row.verdicts if isinstance(row, SiteEntry) else ()
    found = [*own, *(one for finding in _told(row) for one in finding.verdicts)]
    return (one.outcome.replace("-", " ") for one in found)


def _each(row: SiteEntry | FindingEntry, name: str) -> str:
    weights = row.weights if isinstance(row, SiteEntry) else ()
    return "<br>".join(str(getattr(one, name)) for one in weights)


# -- what stands behind it


def _entries(page: Page, text: _Comment) -> None:
    """Each finding in full, as long as there is room."""
    findings = [f for site in page.sites or () for f in site.findings]
    findings += page.loose
    if not findings:
        return
    left = 0
    opened = text.add("\n### What is found, and what it would become\n", _RESERVE)
    for finding in findings:
        whole = _entry(finding)
        # One that is too long may be told without its differences.
        if not opened or not (
            text.add(whole, _RESERVE) or text.add(_entry(finding, short=True), _RESERVE)
        ):
            left += 1
    if left:
        text.add(f"\nand {left} more not shown in full, {_SEE}.\n")


def _entry(finding: FindingEntry, *, short: bool = False) -> str:
    head = (
        f"{_SIGNS[finding.risk]} <code>{_html(str(finding.place))}</code>"
        f" {finding.code} {_html_prose(finding.message)}"
    )
    parts = [f"\n<details>\n<summary>{head}</summary>\n"]
    if finding.lines:
        parts.append(_fenced(_numbered(finding.lines), "text"))
    for block in finding.note:
        if block.is_code:
            parts.append(_fenced(block.pieces[0].text, "python"))
        else:
            parts.append(_prose(block.pieces) + "\n")
    if finding.related and not short:
        parts.append("\n".join(_related(finding.related)) + "\n")
    if finding.title:
        word = "By hand" if finding.tag == "by hand" else f"What it would become ({finding.tag})"
        parts.append(f"**{word}:** {_prose(finding.title)}\n")
    if finding.changes and not short:
        parts.append(_fenced("\n".join(_diff(finding.changes)), "diff"))
    elif finding.changes:
        parts.append(f"The difference is too long for a comment; {_SEE}.\n")
    if finding.verdicts:
        parts.append("\n".join(map(_verdict, finding.verdicts)) + "\n")
    parts.append("</details>\n")
    return "\n".join(parts)


def _numbered(lines: Sequence[CodeLine]) -> str:
    width = max(len(str(line.number or "")) for line in lines)
    shown = []
    for line in lines:
        if line.number is None:
            shown.append("...")
            continue
        sign = ">" if line.is_marked else " "
        labels = "".join(f"  ← {_text(label)}" for label in line.labels)
        shown.append(f"{sign} {line.number:>{width}} | {_cut(line.text)}{labels}".rstrip())
    return "\n".join(shown)


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _related(entries: Sequence[RelatedEntry]) -> Iterator[str]:
    for entry in entries[:12]:
        yield f"- {_code(str(entry.place))} {_prose(entry.message)}"
    if len(entries) > 12:
        yield f"- and {len(entries) - 12} more places"


def _diff(changes: Sequence[FileDiff]) -> Iterator[str]:
    for change in changes:
        yield f"--- {change.path}"
        yield f"+++ {change.path}"
        for line in change.lines:
            yield f"{line.sign}{line.text}"


def _verdict(one: VerdictEntry) -> str:
    rests_on = f" ({_plain(one.rests_on)})" if one.rests_on else ""
    return f"- **{one.outcome.replace('-', ' ')}** {_code(one.unit or one.path)}{rests_on}"


def _measured(page: Page) -> Iterator[str]:
    """The Pareto front of each target as a table: a comment shows no picture."""
    for found in page.measured:
        front = [one for one in found.alternatives if one.pareto]
        if not front:
            continue
        least = min(one.flops for one in found.alternatives) or 1
        lines = [
            f"\n<details>\n<summary>Placements that no other one beats, of"
            f" <code>{_html(found.target)}</code></summary>\n",
            "| peak | operations | checkpoints |",
            "| ---: | ---: | --- |",
        ]
        lines += [
            f"| {size(one.peak_bytes)} | ×{one.flops / least:.3f} | {_plain(one.name)} |"
            for one in front
        ]
        yield "\n".join([*lines, "\n</details>\n"])


def _verified(page: Page) -> Iterator[str]:
    if page.verdicts:
        head = f"\n<details>\n<summary>{pluralize(len(page.verdicts), 'verdict')}</summary>\n"
        lines = [
            f"{_verdict(one)} in {_code(f'{one.path}:{one.line}')}" for one in page.verdicts[:100]
        ]
        if len(page.verdicts) > 100:
            lines.append(f"- and {len(page.verdicts) - 100} more")
        yield "\n".join([head, *lines, "\n</details>\n"])


# -- text that is nothing but text


def _length(text: str) -> int:
    """Characters as GitHub's limit counts them at most: those beyond the 16th bit as two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _plain(text: str) -> str:
    """Text in which nothing is markup, a mention, a reference or a link."""
    text = printable(" ".join(text.split()))
    return _MARKUP.sub(r"\\\1", _without_references(text))


def _without_references(text: str) -> str:
    # A blank of no width behind what begins a mention, an issue's number or an address.
    text = re.sub(r"(@|#|\bGH-)(?=\w)", "\\1\u200b", text)
    text = re.sub(r"(:)(?=//)", "\\1\u200b", text)
    return re.sub(r"\b(www)(?=\.)", "\\1\u200b", text, flags=re.IGNORECASE)


def _code(text: str) -> str:
    """Text as code in a line, in a table too."""
    text = printable(" ".join(text.split()))
    if not text:
        return ""
    text = _cut(text)
    if "`" in text or "|" in text or "\\" in text:
        # Quotes, bars and backslashes in code mean different things in and out of tables.
        return f"<code>{_html(text)}</code>"
    return f"`{text}`"


def _html(text: str) -> str:
    """Text within an element of HTML, where Markdown's signs still count."""
    text = escape(_without_references(printable(" ".join(text.split()))))
    return re.sub(r"[\\`*_\[\]|~$@]", lambda found: f"&#{ord(found[0])};", text)


def _prose(pieces: Sequence[Piece]) -> str:
    return "".join(
        _code(piece.text) if piece.kind == "code" else _spaced(piece.text, _plain)
        for piece in pieces
    )


def _html_prose(pieces: Sequence[Piece]) -> str:
    return "".join(
        f"<code>{_html(piece.text)}</code>" if piece.kind == "code" else _spaced(piece.text, _html)
        for piece in pieces
    )


def _spaced(text: str, shown: Callable[[str], str]) -> str:
    """A piece of a line with the blanks at its ends kept."""
    lead = " " if text[:1].isspace() else ""
    tail = " " if text[-1:].isspace() and text.strip() else ""
    return f"{lead}{shown(text)}{tail}"


def _fenced(text: str, language: str) -> str:
    """A block of code, its fence longer than any run of backquotes in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
