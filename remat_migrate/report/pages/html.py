"""The format `html`: one file that loads nothing, for reviewers; and the page of `measure`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import UsageError
from ..content import Report
from ..terminal.display import Screen, printable
from ..terminal.summary import shares
from ..terminal.weights import how, measurement_lines, operations, size
from . import drawing
from .content import RISKS, Page, page_of
from .evidence import WeightEntry, tone_of, weight_entry

if TYPE_CHECKING:
    from jinja2 import Environment

    from ...measure.measurement import Measurement

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class TargetView:
    """A measured function as the pages show it; pictures are SVG, or nothing.

    Attributes:
        id: unique in a page.
        found: what was measured.
        how: how it is differentiated.
        peak: the peak as it is.
        bare: that without checkpoints.
        figures: name, value and what else there is to say.
        weights: its checkpoints, each with its place.
        alternatives: peak, operations as a multiple of the fewest, compiled bytes, whether on the
            front, name.
        text: all of it, as the format `full` has it.
        pictures: title and text of the forward and the backward computation, if asked for.
    """

    id: str
    found: Measurement
    how: str
    peak: str
    bare: str
    figures: tuple[tuple[str, str, str], ...]
    course: object
    pareto: object
    weights: tuple[tuple[str, WeightEntry], ...]
    alternatives: tuple[tuple[str, str, str, bool, str], ...]
    has_compiled: bool
    text: str
    pictures: tuple[tuple[str, str], ...]


def render(report: Report, screen: Screen) -> str:
    """The whole page of a report.

    Raises:
        UsageError: jinja2 is not installed.
    """
    plain = Screen(screen.width, False, screen.folder)
    environment = _environment()
    page = page_of(report, plain)
    total = sum(count for _, count in page.totals.risks)
    most = max((folder.total for folder in page.folders), default=0)
    bars = (
        _drawn(drawing.shares(folder.counts, most, f"folder-{number}"))
        for number, folder in enumerate(page.folders)
    )
    return _page(
        environment,
        "report.html",
        page=page,
        risks=RISKS,
        shares=_shares(report, page),
        risk_bar=_drawn(drawing.shares(page.totals.risks, total, "risks")),
        outcomes=[
            {"name": outcome.replace("-", " "), "tone": tone_of(outcome), "count": count}
            for outcome, count in page.totals.verdicts or ()
        ],
        folders=list(zip(page.folders, bars, strict=True)),
        choices=_choices(page),
        sections=list(_sections(page)),
        targets=_views(page.measured, plain),
    )


def render_measurements(found: Sequence[Measurement], screen: Screen) -> str:
    """The whole page of measurements.

    Raises:
        UsageError: jinja2 is not installed.
    """
    plain = Screen(screen.width, False, screen.folder)
    return _page(_environment(), "measure.html", targets=_views(found, plain))


def _page(environment: Environment, template: str, **content: object) -> str:
    """A page with its style and its scripts, and a policy that lets nothing else run."""
    style, early, script = map(_asset, ("page.css", "early.js", "page.js"))
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(early)}"
        f" {_digest(script)}; base-uri 'none'; form-action 'none'"
    )
    return environment.get_template(template).render(
        content,
        version=__version__,
        policy=policy,
        style=_drawn(style),
        early=_drawn(early),
        script=_drawn(script),
    )


def _environment() -> Environment:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise UsageError(
            "the format html needs jinja2: pip install 'remat-migrate[report]'"
        ) from error
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _drawn(text: str) -> Any:
    """Text that is HTML already: a picture, or what comes with this package."""
    from markupsafe import Markup

    return Markup(text)


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _shares(report: Report, page: Page) -> list[str]:
    parts = [f"{len(report.advice)} of them advice"] if report.advice else []
    parts += shares(report.findings, unsafe=report.unsafe)
    comments, settings = page.totals.suppressed
    if comments:
        parts.append(f"{comments} suppressed")
    if settings:
        parts.append(f"{settings} ignored by settings")
    if page.totals.fixed is not None:
        parts.append(f"{page.totals.fixed} fixed")
    return parts


def _sections(page: Page) -> Iterator[tuple[str, str]]:
    """The page's sections: id and title."""
    if len(page.folders) > 1:
        yield "folders-h", "By folder"
    if page.sites is not None:
        yield "sites-h", "Checkpoints"
    if page.loose:
        yield "findings-h", "Findings" if page.sites is None else "Findings at no checkpoint"
    if page.measured or page.failed:
        yield "measured-h", "Measured"
    if page.totals.verdicts is not None:
        yield "verified-h", "Verified"


def _choices(page: Page) -> list[tuple[str, str, list[str]]]:
    """What can be chosen from: the id of each list, its label, its values."""
    sites = page.sites or ()
    lists = [
        ("rule", "Rule", sorted(code for code, _, _ in page.totals.codes)),
        ("api", "Api", sorted({site.api for site in sites})),
        ("folder", "Folder", sorted({site.folder for site in sites})),
    ]
    # One rule alone still tells what it finds from what nothing does.
    return [one for one in lists if len(one[2]) > (0 if one[0] == "rule" else 1)]


def _views(found: Sequence[Measurement], screen: Screen) -> list[TargetView]:
    return [_view(number, one, screen) for number, one in enumerate(found)]


def _view(number: int, found: Measurement, screen: Screen) -> TargetView:
    name = f"target-{number}"
    rows = found.alternatives
    least = min((one.flops for one in rows), default=1) or 1
    return TargetView(
        name,
        found,
        how(found),
        size(found.cost.peak_bytes),
        size(found.bare.peak_bytes),
        tuple(_figures(found)),
        found.courses and _drawn(drawing.course(found, f"{name}-course")),
        rows and _drawn(drawing.pareto(found, f"{name}-pareto")),
        tuple(
            (f"{screen.path(site.path)}:{site.line}", weight_entry(site, found))
            for site in found.sites
        ),
        tuple(
            (
                size(one.peak_bytes),
                f"{one.flops / least:.3f}",
                "" if one.compiled_bytes is None else size(one.compiled_bytes),
                one.pareto,
                printable(one.name),
            )
            for one in rows
        ),
        any(one.compiled_bytes is not None for one in rows),
        "\n".join(measurement_lines(found, screen)),
        tuple(zip(("Forward", "Backward"), found.jaxprs, strict=True)) if found.jaxprs else (),
    )


def _figures(found: Measurement) -> list[tuple[str, str, str]]:
    """Name, value and what else there is to say of a target's totals."""
    bare = found.bare if found.sites else None
    ratio = f"×{found.cost.flops / bare.flops:.3f} of those without" if bare and bare.flops else ""
    figures = [
        (
            "peak memory",
            size(found.cost.peak_bytes),
            f"{size(bare.peak_bytes)} without checkpoints" if bare else "",
        ),
        ("operations", operations(found.cost.flops), ratio),
    ]
    if found.cost.residual_bytes is not None:
        figures.append(("kept for the backward pass", size(found.cost.residual_bytes), ""))
    if found.compiled_bytes is not None:
        figures.append(("compiled", size(found.compiled_bytes), "of temporary memory"))
    return figures
