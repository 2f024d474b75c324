"""Reports to be rendered: one with hostile text everywhere, one with sites, a measurement."""

from __future__ import annotations

from pathlib import Path

from support import analysed

from remat_migrate.analysis.sites.find_sites import sites_of
from remat_migrate.engine.analyse import Hidden
from remat_migrate.measure.measurement import Measurement
from remat_migrate.measure.worker.records import Alternative, Cost, SiteMeasurement, SiteVerdict
from remat_migrate.report.content import Report
from remat_migrate.report.site_rows import site_rows
from remat_migrate.report.terminal.display import Screen
from remat_migrate.rule import Finding, Fix, Related, Safety
from remat_migrate.text import Edit, SourceFile, Span

FOLDER = Path("/project")
SCREEN = Screen(100, False, FOLDER)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`--><b>&amp;"


def hostile_report() -> Report:
    path = FOLDER / "a<b>&'\"/mod</script>.py"
    text = f"x = 1\ny = {HOSTILE!r}  # {HOSTILE}\nz = call(x)\n"
    file = SourceFile(path, text)
    at = text.index("call")
    fix = Fix(f"write {HOSTILE}", Safety.SAFE, (Edit(path, at, at + 4, f"g  # {HOSTILE}\nh"),))
    finding = Finding(
        code="RMT901",
        name="hostile",
        message=f"message `{HOSTILE}` {HOSTILE}",
        source=file,
        span=Span(at, at + 4),
        fix=fix,
        related=(Related(file, Span(6, 7), f"label {HOSTILE}"),),
        reason=f"{HOSTILE}\n    {HOSTILE}",
        url="https://example.org/?a=1&b=<2>",
    )
    return Report((finding,), 1, FOLDER, hidden=(Hidden(finding, "comment"),), sources={path: file})


def whole_report() -> Report:
    """Sites with and without findings, and a finding at none."""
    analysis = analysed(
        {
            "pkg/a.py": "import jax\nfrom functools import partial\n\n\n"
            "@partial(jax.checkpoint, concrete=True)\ndef f(x, flag):\n"
            "  if flag:\n    return x\n  return -x\n\n\ng = jax.checkpoint(abs)\n",
            "pkg/b.py": "from pkg.a import f\n\ny = f(1.0, flag=True)\n",
            "run.sh": "JAX_NEW_CHECKPOINT=1 python train.py\n",
        }
    )
    folder = next(iter(analysis.findings)).path.parents[1]
    edited = {e.path for f in analysis.findings if f.fix for e in f.fix.edits}
    return Report(
        analysis.findings,
        3,
        folder,
        sites=site_rows(sites_of(analysis.project), analysis.findings),
        sources={path: analysis.source(path) for path in edited},
    )


def measurement() -> Measurement:
    cost, bare = Cost(600_000, 3_000, 10), Cost(900_000, 2_000, 20)
    weight = SiteMeasurement(
        FOLDER / "a.py", 1, "jax.checkpoint", "f", (), 4, cost, bare, SiteVerdict.SAVES, (5, 9)
    )
    rows = (
        Alternative("<b>all</b>", 500_000, 4_000, None, True),
        Alternative("none", 900_000, 2_000, None, True),
        Alternative("worse", 950_000, 4_000, None, False),
    )
    return Measurement(
        "a:loss<", "0.10.2", "cpu", "value_and_grad", 1_000, cost, bare, (weight,), None, rows
    )  # fmt: skip
