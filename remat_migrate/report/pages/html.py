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
from ..content import RISKS, Report
from ..terminal.display import Screen, printable
from ..terminal.statistics import rule_counts
from ..terminal.summary import shares
from ..terminal.verdicts import basis, unit_of, verdict_counts, words, worst_verdicts
from ..terminal.weights import compiled_kind, effect, how, operations, remarks, size
from .entries import Entries

if TYPE_CHECKING:
    from jinja2 import Environment

# How outcomes of verifying and measuring are colored.
_TONES = {
    "equal": "good",
    "differs": "bad",
    "fails-after": "bad",
    "saves": "good",
    "wasteful": "bad",
}
_TEMPLATES = Path(__file__).parent / "templates"


def render(report: Report, screen: Screen) -> str:
    """Return the page of a report.

    Raises:
        UsageError: jinja2 is not installed.
    """
    plain = Screen(screen.width, False, screen.folder)
    environment = _environment(plain)
    entries = Entries(report, plain)
    sites = entries.sites()
    rules = [one for one in rule_counts(report) if one.findings]
    apis = sorted({site.row.site.api for site in sites})
    return _render(
        environment,
        "report.html",
        report=report,
        project=report.root.name or "/",
        sites=sites,
        loose=[*entries.findings()],
        verdicts=worst_verdicts(report.verdicts),
        outcomes=[(o, count) for o, count in verdict_counts(report.verdicts).items() if count],
        risks=RISKS,
        rules=rules,
        shares=list(shares(report.findings, unsafe=report.unsafe)),
        # The drop-down lists of the filter: id, label, and values.
        choices=[
            *([("rule", "Rule", sorted(one.code for one in rules))] if rules else []),
            *([("api", "API", apis)] if len(apis) > 1 else []),
        ],
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
        "words": words,
        "tone": lambda outcome: _TONES.get(outcome, "open"),
        "unit": unit_of,
        "basis": basis,
        "how": how,
        "effect": effect,
        "remarks": remarks,
        "compiled_kind": compiled_kind,
        "path": screen.path,
        "diff_kind": _diff_kind,
    }
    return environment


def _diff_kind(line: str) -> str:
    if line.startswith(("---", "+++", "@@")):
        return "hunk"
    return {"+": "added", "-": "removed"}.get(line[:1], "")


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
