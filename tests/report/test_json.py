"""The format `json`: the contract, key by key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import analysed

from remat_migrate.analysis.sites.find_sites import sites_of
from remat_migrate.engine.analyse import Hidden
from remat_migrate.report.content import Report
from remat_migrate.report.machine_readable.json import render
from remat_migrate.report.site_rows import site_rows
from remat_migrate.report.terminal.display import Screen
from remat_migrate.rule import Finding, Fix, Related, Safety
from remat_migrate.text import Edit, SourceFile, Span

FOLDER = Path("/project")


def document(report: Report) -> dict[str, Any]:
    text = render(report, Screen(80, True, FOLDER))
    assert text.isascii()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def test_finding_has_all_keys() -> None:
    file = SourceFile(FOLDER / "src/a.py", "x = 1\ny = '模' + f(\n  2)\n")
    other = SourceFile(FOLDER / "src/b.py", "\n\ncall()\n")
    at = file.text.index("f(")
    edits = (Edit(file.path, at, at + 1, "g"), Edit(other.path, 2, 6, "模"))
    finding = Finding(
        code="RMT101",
        name="concrete-option",
        message="gone",
        source=file,
        span=Span(at, at + 6),
        severity="warning",
        confidence="medium",
        fix=Fix("use g", Safety.UNSAFE, edits),
        related=(Related(other, Span(2, 6), "called here"),),
        reason="because",
        url="https://docs.jax.dev",
    )
    sources = {file.path: file, other.path: other}
    hidden = (Hidden(finding, "comment"), Hidden(finding, "settings"))
    written = document(Report((finding,), 5, hidden=hidden, fixed={"RMT103": 4}, sources=sources))
    assert list(written) == ["schema_version", "tool", "summary", "findings"]
    assert written["schema_version"] == 1
    assert written["tool"]["name"] == "remat-migrate"
    assert written["summary"] == {
        "files": 5,
        "findings": 1,
        "advice": 0,
        "files_with_findings": 1,
        "safe_fixes": 0,
        "unsafe_fixes": 1,
        "withheld_fixes": 0,
        "manual": 0,
        "suppressed": 2,
        "fixed": 4,
        "codes": {"RMT101": 1},
        "rules": [
            {
                "code": "RMT101",
                "name": finding.name,
                "findings": 1,
                "files": 1,
                "safe_fixes": 0,
                "unsafe_fixes": 1,
                "suppressed": 2,
                "known": 0,
            }
        ],
    }
    assert written["findings"] == [
        {
            "code": "RMT101",
            "name": "concrete-option",
            "message": "gone",
            "path": "src/a.py",
            "line": 2,
            "column": 11,
            "end_line": 3,
            "end_column": 4,
            "severity": "warning",
            "confidence": "medium",
            "fix": {
                "safety": "unsafe",
                "title": "use g",
                "edits": [
                    {
                        "path": "src/a.py",
                        "start_line": 2,
                        "start_column": 11,
                        "end_line": 2,
                        "end_column": 12,
                        "text": "g",
                    },
                    {
                        "path": "src/b.py",
                        "start_line": 3,
                        "start_column": 1,
                        "end_line": 3,
                        "end_column": 5,
                        "text": "模",
                    },
                ],
            },
            "reason": "because",
            "related": [{"path": "src/b.py", "line": 3, "message": "called here"}],
            "url": "https://docs.jax.dev",
        }
    ]


def test_sites() -> None:
    code = """\
import jax
from functools import partial


@jax.jit
@partial(jax.checkpoint, prevent_cse=False)
def block(x):
    return x


def loss(x):
    return jax.remat(block)(x)
"""
    project = analysed(code).project
    (path,) = project.modules
    at = code.index("prevent_cse")
    finding = Finding(
        "RMT304", "n", "m", project.modules[path].source, Span(at, at + 1), severity="note"
    )
    rows = site_rows(sites_of(project), [finding])
    written = document(Report((), 1, sites=rows))
    for site in written["sites"]:
        assert site.pop("path") == path.as_posix()
    assert written["sites"] == [
        {
            "line": 6,
            "column": 2,
            "api": "jax.checkpoint",
            "form": "decorator-partial",
            "target": "block",
            "options": {"prevent_cse": "False"},
            "context": rows[0].site.context,
            "risk": "low",
            "codes": ["RMT304"],
        },
        {
            "line": 12,
            "column": 12,
            "api": "jax.remat",
            "form": "applied",
            "target": "block",
            "options": {},
            "context": rows[1].site.context,
            "risk": "none",
            "codes": [],
        },
    ]
    assert "loss" in rows[1].site.context


@pytest.mark.parametrize(
    ("severities", "risk"),
    [
        ([], "none"),
        (["note"], "low"),
        (["note", "warning"], "medium"),
        (["error", "note", "warning"], "high"),
    ],
)
def test_worst_finding_determines_the_risk(severities: list[Any], risk: str) -> None:
    code = "import jax\n\nf = jax.checkpoint(print)\n"
    project = analysed(code).project
    (module,) = project.modules.values()
    here = Span(code.index("f ="), code.index("f =") + 1)
    found = [Finding("RMT101", "n", "m", module.source, here, severity=s) for s in severities]
    elsewhere = Finding("RMT999", "n", "m", module.source, Span(0, 6))
    (row,) = site_rows(sites_of(project), [*found, elsewhere])
    assert (row.risk, set(row.codes)) == (risk, {"RMT101"} if severities else set())


RISKS = [
    # The import that it comes from, here or in another file.
    {"a.py": "from jax.ad_checkpoint import remat\nf = remat(abs)\n"},
    {
        "b.py": "from jax.ad_checkpoint import remat\n",
        "a.py": "from b import remat\nf = remat(abs)\n",
    },
    {"a.py": "import jax.ad_checkpoint\nck = jax.ad_checkpoint.remat\n\nf = ck(abs)\n"},
    # Options in a dictionary, in a partial, here or in another file.
    {"a.py": "import jax\nOPTIONS = dict(concrete=True)\n\nf = jax.remat(abs, **OPTIONS)\n"},
    {
        "b.py": "OPTIONS = {'concrete': True}\n",
        "a.py": "import jax\nfrom b import OPTIONS\nf = jax.remat(abs, **OPTIONS)\n",
    },
    {
        "b.py": "import functools, jax\nck = functools.partial(jax.remat, concrete=True)\n",
        "a.py": "from b import ck\nf = ck(abs)\n",
    },
    {"a.py": "import jax\nP = jax.checkpoint_policies.no\nf = jax.remat(abs, policy=P)\n"},
    # A call elsewhere.
    {
        "a.py": "import jax\n\n\ndef g(x, n):\n    return x**n\n\n\n"
        "f = jax.remat(g, static_argnums=(1,))\ny = f(1.0, n=2)\n"
    },
]  # fmt: skip


@pytest.mark.parametrize("files", RISKS)
def test_code_that_a_site_depends_on_determines_its_risk(files: dict[str, str]) -> None:
    analysis = analysed(files)
    rows = site_rows(sites_of(analysis.project), analysis.findings)
    applied = [row for row in rows if row.site.form == "assigned"]
    assert [(row.site.module.source.path.name, row.risk) for row in applied] == [("a.py", "high")]
