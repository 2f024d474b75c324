"""The `html` format: one self-contained file for reviewers, and the page of `sweep`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import UsageError
from ..content import Report
from ..terminal.display import Screen, printable
from ..terminal.summary import shares
from ..terminal.weights import compiled_kind, how, operations, size
from .entries import RISKS, Page, page_of
from .evidence import tone_of, weight_entry

if TYPE_CHECKING:
    from jinja2 import Environment


_TEMPLATES = Path(__file__).parent / "templates"


def render(report: Report, screen: Screen) -> str:
    """Return the page of a report.

    Raises:
        UsageError: jinja2 is not installed.
    """
    plain = Screen(screen.width, False, screen.folder)
    environment = _environment(plain)
    page = page_of(report, plain)
    return _render(
        environment,
        "report.html",
        page=page,
        report=report,
        risks=RISKS,
        shares=list(shares(report.findings, unsafe=report.unsafe)),
        choices=_choices(page),
        targets=report.weighed.found if report.weighed else (),
        failed=report.weighed.failed if report.weighed else {},
    )


def render_sweep(totals: object, rules: Sequence[object], most: int) -> str:
    """Return the page of a sweep.

    Args:
        totals: what was found, see `sweep.totals`.
        rules: the code and the counts of each rule, the most frequent first.
        most: the number of repositories that a list has at most.

    Raises:
        UsageError: jinja2 is not installed.
    """
    environment = _environment(Screen(0, False, Path()))
    return _render(environment, "sweep.html", totals=totals, rules=rules, risks=RISKS, most=most)


def _render(environment: Environment, template: str, **content: object) -> str:
    """Render a page with its style and scripts, and a policy that lets nothing else run."""
    from markupsafe import Markup

    style, early, script = map(_asset, ("page.css", "early.js", "page.js"))
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(early)}"
        f" {_digest(script)}; base-uri 'none'; form-action 'none'"
    )
    return environment.get_template(template).render(
        content,
        version=__version__,
        policy=policy,
        style=Markup(style),
        early=Markup(early),
        script=Markup(script),
    )


def _environment(screen: Screen) -> Environment:
    """Return the environment; it makes printable and escapes whatever a template outputs."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise UsageError(
            "the format html needs jinja2: pip install 'remat-migrate[report]'"
        ) from error
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable_lines,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "size": size,
        "operations": operations,
        "words": lambda outcome: outcome.replace("-", " "),
        "tone": tone_of,
        "how": how,
        "compiled_kind": compiled_kind,
        "path": screen.path,
        "weight_entry": weight_entry,
    }
    return environment


def _printable_lines(value: Any) -> Any:
    # Markup is what the templates themselves have produced.
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return "\n".join(map(printable, value.split("\n")))
    return value


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _choices(page: Page) -> list[tuple[str, str, list[str]]]:
    """Return the drop-down lists of the filter: id, label, and values."""
    sites = page.sites or ()
    lists = [
        ("rule", "Rule", sorted(code for code, _, _ in page.codes)),
        ("api", "API", sorted({site.row.site.api for site in sites})),
    ]
    # Even a single rule separates the checkpoints that it reports from the others.
    return [one for one in lists if len(one[2]) > (0 if one[0] == "rule" else 1)]
