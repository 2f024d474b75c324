"""The `markdown` format: limits, order, and text that must not become markup."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from report_samples import FOLDER, HOSTILE, SCREEN, measurement, whole_report

from remat_migrate.report.content import Report, Weighed
from remat_migrate.report.pages.markdown import MAX_LENGTH, render
from remat_migrate.report.terminal.display import Screen
from remat_migrate.rule import Finding, Fix, Safety
from remat_migrate.text import Edit, SourceFile, Span


def findings(count: int, text: str = "call(x)\n", **more: object) -> Report:
    files = [SourceFile(FOLDER / f"m{number}.py", text) for number in range(count)]
    found = tuple(
        Finding(
            "RMT901",
            "name",
            f"message {number}",
            file,
            Span(0, 4),
            severity="note" if number % 2 else "error",
            fix=Fix("write it", Safety.SAFE, (Edit(file.path, 0, 4, "other"),)),
        )
        for number, file in enumerate(files)
    )
    return Report(found, count, FOLDER, sources={file.path: file for file in files}, **more)  # type: ignore[arg-type]


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def outside_fences(text: str) -> str:
    kept, fence = [], ""
    for line in text.split("\n"):
        run = re.match("`{3,}", line)
        if not fence and run:
            fence = run.group()
        elif fence and line == fence:
            fence = ""
        elif not fence:
            kept.append(line)
    assert not fence, "a fence is open"
    return "\n".join(kept)


def test_worst_finding_comes_first_with_its_diff() -> None:
    report = whole_report()
    text = render(report, Screen(100, False, report.root))
    rows = [line for line in text.splitlines() if line.startswith("<summary>")]
    assert rows[0].startswith("<summary>🔴 <code>pkg/a.py:5</code> RMT101 <code>jax.checkpoint")
    assert "**Safe fix:**" in text
    assert "+@partial(jax.checkpoint, static_argnums=(1,))" in text
    assert "**2 checkpoints**: 🔴 1 high" in text
    assert text.count("<details>") == text.count("</details>") > 0


def test_comment_counts_what_does_not_fit() -> None:
    text = render(findings(900), SCREEN)
    assert units(text) <= MAX_LENGTH
    shown = text.count("<summary>🔴")
    assert 100 < shown < 450
    assert "<summary>🔵" not in text
    assert f"and {900 - shown} more not shown, see the full report" in text
    assert text.count("<details>") == text.count("</details>")


def test_diff_longer_than_a_comment_is_omitted() -> None:
    lines = "".join(f"line_{number} = {'y' * 90}\n" for number in range(2000))
    report = findings(1, "call(x)\n" + lines)
    [finding] = report.findings
    edits = tuple(
        Edit(finding.path, at.start(), at.start() + 4, "LINE") for at in re.finditer("line", lines)
    )
    shifted = tuple(Edit(e.path, e.start + 8, e.end + 8, e.text) for e in edits)
    report = replace(report, findings=(replace(finding, fix=Fix("all", Safety.SAFE, shifted)),))
    text = render(report, SCREEN)
    assert units(text) <= MAX_LENGTH
    assert "The diff is too long for a comment" in text


def test_hostile_text_is_neither_markup_nor_a_mention() -> None:
    bad = f"@someone #12 GH-7 www.evil.org https://evil.org |cell| **bold** [a](b) {HOSTILE}"
    code = "````\ncall(x)\n```\n@someone </details>\n"
    file = SourceFile(FOLDER / "a|b`c<d>.py", code)
    finding = Finding(
        "RMT901",
        "name",
        f"{bad} `code | @someone <i>`",
        file,
        Span(5, 9),
        fix=Fix(bad, Safety.SAFE, (Edit(file.path, 5, 9, "`````\nx"),)),
        reason=f"{bad}\n    ``` {bad}",
    )
    text = render(Report((finding,), 1, FOLDER, sources={file.path: file}), SCREEN)
    prose = outside_fences(text)
    in_code = re.sub(r"`[^`\n]*`|<code>.*?</code>", "", prose)
    in_code = re.sub(r"&#\d+;|\\.", "", in_code)
    for wrong in ("@someone", "#12", "GH-7", "www.evil", "https://", "<script", "<img", "[a](b)"):
        assert wrong not in in_code, wrong
    assert "**bold" not in in_code
    # Only the elements of the format are there.
    assert set(re.findall(r"</?([a-z]+)", re.sub(r"`[^`\n]*`|\\.", "", prose))) <= {
        "details",
        "summary",
        "code",
    }
    assert "\n`````` " not in text
    assert re.search(r"^`{6}diff$", text, re.MULTILINE)


def test_measurements_are_tables() -> None:
    report = replace(whole_report(), weighed=Weighed((measurement(),), {"b:c": "cannot | be"}))
    text = render(report, SCREEN)
    assert "| `a.py:1` | 300 kB | 1.00 kFLOP | saves |" in text
    assert "peak 600 kB, 900 kB without checkpoints" in text
    assert "not measured: `b:c`: cannot \\| be" in text


def test_no_findings() -> None:
    text = render(Report((), 3, Path("/x/project"), sites=()), SCREEN)
    assert text.splitlines() == [
        "## Checkpoints in project",
        "",
        "- **0 checkpoints**: 🔴 0 high, 🟠 0 medium, 🔵 0 low, ⚪ 0 none",
        "- **0 findings**",
    ]
