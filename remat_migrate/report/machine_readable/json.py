"""The `json` format: one object of schema version 1 for each command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...rule import Finding, Fix, Safety
from ...text import SourceFile
from ...text.edits import Replacement
from ..content import Report, SiteRow, Weighed, count_fixes
from ..terminal.display import Screen, display_path
from ..terminal.statistics import RuleCount, rule_counts
from ..terminal.verdicts import verdict_counts, verdict_rows
from .shared import edits_on_disk

if TYPE_CHECKING:
    from ...measure.devices import Device
    from ...measure.measurement import Measurement
    from ...measure.worker.records import Need, SiteMeasurement
    from ...plan.plan import Placement, Plan
    from ...verify.evidence import CommandRuns, Proof

SCHEMA_VERSION = 1


def render(report: Report, screen: Screen) -> str:
    """Return the document of `check` and `report`; lines and columns count from 1."""
    document: dict[str, object] = {
        **_head(),
        "summary": _summary(report, screen.folder),
        "findings": [_finding(finding, report, screen.folder) for finding in report.findings],
    }
    if report.proved is not None:
        proof = report.proved.proof
        document["verdicts"] = verdict_rows((*proof.verdicts, *report.proved.wrong), screen.folder)
    if report.sites is not None:
        document["sites"] = [_site(row, report, screen.folder) for row in report.sites]
    # json.dumps writes ASCII: control characters become escapes, and lone surrogates survive.
    return json.dumps(document, indent=2) + "\n"


def render_proof(proof: Proof, screen: Screen) -> str:
    """Return the document of `verify`."""
    document = {
        **_head(),
        "complete": not proof.interrupted,
        "summary": {
            "units": len(proof.verdicts),
            "left": proof.left,
            **verdict_counts(proof.verdicts),
            "jax_before": proof.jax[0],
            "jax_after": proof.jax[1],
            "command": proof.command and _command(proof.command),
            "notes": list(proof.notes),
        },
        "verdicts": verdict_rows(proof.verdicts, screen.folder),
    }
    return json.dumps(document, indent=2)


def render_measurements(
    found: Sequence[Measurement], screen: Screen, failed: Mapping[str, str] | None = None
) -> str:
    """Return the document of `measure`: an object, or an array for several targets."""
    documents = [_measurement(one, screen.folder) for one in found]
    documents += [
        {**_head(), "target": target, "error": reason} for target, reason in (failed or {}).items()
    ]
    return json.dumps(documents[0] if len(documents) == 1 else documents, indent=2)


def render_plan(plan: Plan, screen: Screen) -> str:
    """Return the document of `plan`."""
    document = {
        **_head(),
        "target": plan.target,
        "jax": plan.jax,
        "backend": plan.backend,
        "budget": plan.budget,
        "budget_bytes": plan.budget_bytes,
        "argument_bytes": plan.argument_bytes,
        "devices": plan.devices,
        "device": plan.device and _device(plan.device, plan.needed_bytes),
        "met": plan.is_met,
        "met_by": plan.basis.partition(" ")[0] if plan.is_met else None,
        "traced_placements": plan.tried,
        "without_checkpoints": {
            **_need(plan.bare),
            "compiled_peak_bytes": plan.bare_compiled,
        },
        "as_it_is": {**_need(plan.now), "checkpoints": plan.checkpoints},
        **_placement(plan.best, screen.folder),
        "not_writable": plan.unwritten
        and {
            **_placement(plan.unwritten, screen.folder),
            "obstacles": [
                {
                    "path": display_path(one.path, screen.folder),
                    "line": one.line,
                    "reason": one.reason,
                }
                for one in plan.obstacles
            ],
        },
        "compiled": [_placement(one, screen.folder) for one in plan.candidates],
        "pareto": [_placement(one, screen.folder) for one in plan.pareto],
        "values": [
            {**one._asdict(), "path": display_path(one.path, screen.folder)} for one in plan.values
        ],
    }
    return json.dumps(document, indent=2)


def _device(device: Device, needed: int) -> dict[str, object]:
    """Return whether a program fits on a device."""
    return {
        "name": device.name,
        "memory_bytes": device.memory,
        "nominal_bytes": device.nominal,
        "needed_bytes": needed,
        "fits": needed <= device.memory,
        "source": device.source or None,
    }


def _need(need: Need) -> dict[str, int]:
    return need._asdict()


def _placement(placement: Placement, folder: Path) -> dict[str, object]:
    return {
        "stages": [
            {
                "path": display_path(stage.path, folder),
                "line": stage.line,
                "function": stage.function,
                "times": stage.times,
                "wrapped": stage.wrapped,
                "decision": stage.decision,
                "policy": stage.policy,
                "group": list(stage.group),
            }
            for stage in placement.stages
        ],
        "promised": _need(placement.promised),
        "measured": _need(placement.measured),
        "compiled_peak_bytes": placement.compiled,
        "name": placement.name or None,
    }


def _head() -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "remat-migrate", "version": __version__},
    }


def _measurement(found: Measurement, folder: Path) -> dict[str, object]:
    document: dict[str, object] = {
        **_head(),
        "target": found.target,
        "jax": found.jax,
        "backend": found.backend,
        "grad": found.grad,
        "forward_flops": found.forward_flops,
        "flops": found.cost.flops,
        "peak_bytes": found.cost.peak_bytes,
        "residual_bytes": found.cost.residual_bytes,
        "compiled_bytes": found.compiled_bytes,
        "argument_bytes": found.argument_bytes,
        "devices": found.devices,
        "device": found.device and _device(found.device, found.needed_bytes),
        "without_checkpoints": {
            "peak_bytes": found.bare.peak_bytes,
            "flops": found.bare.flops,
            "residual_bytes": found.bare.residual_bytes,
        },
        "sites": [weight_row(site, folder) for site in found.sites],
        "alternatives": [
            {
                "name": one.name,
                "peak_bytes": one.peak_bytes,
                "flops": one.flops,
                "compiled_bytes": one.compiled_bytes,
                "pareto": one.pareto,
                "lines": [
                    {"path": display_path(path, folder), "line": line} for path, line in one.lines
                ],
            }
            for one in found.alternatives
        ],
        "failed": [
            {"name": name, "reason": reason}
            for reason, names in found.failed.items()
            for name in names
        ],
        "notes": list(found.notes),
    }
    if found.cheaper:
        one = found.cheaper
        cheaper = {"policy": one.name, "peak_bytes": one.peak_bytes, "flops": one.flops}
        document["cheaper_policy"] = cheaper
    if found.residuals is not None:
        document["residuals"] = [
            {
                "shape": one.shape,
                "bytes": one.bytes,
                "what": one.origin,
                "name": one.name or None,
                "path": one.path and display_path(one.path, folder),
                "line": one.line or None,
            }
            for one in found.residuals
        ]
    if found.jaxprs is not None:
        document["forward"], document["backward"] = found.jaxprs
    return document


def weight_row(site: SiteMeasurement, folder: Path) -> dict[str, object]:
    """Return what a checkpoint saves and costs."""
    return {
        "path": display_path(site.path, folder),
        "line": site.line,
        "api": site.api,
        "function": site.function,
        "calls": [
            {"path": display_path(call.path, folder), "line": call.line, "traced": call.times}
            for call in site.calls
        ],
        "applications": site.applications,
        "residual_bytes_avoided": site.residual_bytes_avoided,
        "peak_bytes_saved": site.peak_bytes_saved,
        "recomputed_flops": site.recomputed_flops,
        "verdict": str(site.verdict),
        "compiled_bytes": site.compiled and site.compiled[0],
        "compiled_bytes_without": site.compiled and site.compiled[1],
        "note": site.note,
    }


def _command(runs: CommandRuns) -> dict[str, object]:
    return {
        "command": runs.command,
        "before": runs.before,
        "after": runs.after,
        "wrong": runs.wrong,
        "calls": runs.calls,
    }


def _summary(report: Report, folder: Path) -> dict[str, object]:
    safe, unsafe = (count_fixes(report.findings, safety) for safety in (Safety.SAFE, Safety.UNSAFE))
    total = len(report.findings)
    withheld = sum(finding.is_withheld for finding in report.findings)
    proved = report.proved
    shown = (*proved.proof.verdicts, *proved.wrong) if proved else ()
    verdicts = {"verdicts": dict(verdict_counts(shown))} if proved else {}
    reverted = {"taken_back": len(proved.reverted)} if proved else {}
    measured = {"measured": _weighed(report.weighed)} if report.weighed else {}
    return {
        "files": report.files,
        "findings": total,
        "advice": len(report.advice),
        "files_with_findings": len({finding.path for finding in report.findings}),
        "safe_fixes": safe,
        "unsafe_fixes": unsafe,
        "withheld_fixes": withheld,
        "manual": total - safe - unsafe - withheld,
        "suppressed": len(report.suppressed),
        **_baseline(report, folder),
        "fixed": sum((report.fixed or {}).values()),
        **reverted,
        **verdicts,
        **measured,
        "codes": dict(sorted(Counter(finding.code for finding in report.findings).items())),
        "rules": [_rule(count) for count in rule_counts(report)],
    }


def _rule(count: RuleCount) -> dict[str, object]:
    return {
        "code": count.code,
        "name": count.name,
        "findings": count.findings,
        "files": len(count.files),
        "safe_fixes": count.safe,
        "unsafe_fixes": count.unsafe,
        "suppressed": count.suppressed,
        "known": count.known,
    }


def _baseline(report: Report, folder: Path) -> dict[str, object]:
    """Return how the run compares with a baseline; empty without one."""
    found = report.baseline
    if found is None:
        return {}
    return {
        "known": found.known_count,
        "stale": found.stale_count,
        "baseline": {
            "path": display_path(found.file, folder),
            "stale": [asdict(entry) for one in found.every for entry in one.stale],
        },
    }


def _weighed(weighed: Weighed) -> dict[str, object]:
    return {
        "targets": [found.target for found in weighed.found],
        "failed": [
            {"target": target, "reason": reason} for target, reason in weighed.failed.items()
        ],
    }


def _finding(finding: Finding, report: Report, folder: Path) -> dict[str, object]:
    source = finding.source
    line, column = source.file_position(finding.span.start)
    end_line, end_column = source.file_position(finding.span.end)
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "path": display_path(finding.path, folder),
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        **_cell(source, finding.span.start),
        "severity": finding.severity,
        "confidence": finding.confidence,
        "fix": finding.fix and _fix(finding.fix, report, folder),
        "reason": finding.reason,
        "related": [
            {
                "path": display_path(related.source.path, folder),
                "line": related.source.file_position(related.span.start)[0],
                "message": related.message,
            }
            for related in finding.related
        ],
        "url": finding.url,
    }


def _cell(source: SourceFile, offset: int) -> dict[str, object]:
    """Return the notebook cell of an offset; empty for other files."""
    found = source.cell(offset)
    return {"cell": {"number": found[0], "line": found[1]}} if found else {}


def _fix(fix: Fix, report: Report, folder: Path) -> dict[str, object]:
    return {
        "safety": str(fix.safety),
        "title": fix.title,
        "edits": [
            _edit(edit, file, folder) for file, edits in _by_file(fix, report) for edit in edits
        ],
    }


def _by_file(fix: Fix, report: Report) -> Iterator[tuple[SourceFile, Sequence[Replacement]]]:
    for path in dict.fromkeys(edit.path for edit in fix.edits):
        yield edits_on_disk(report.sources[path], (edit for edit in fix.edits if edit.path == path))


def _edit(edit: Replacement, source: SourceFile, folder: Path) -> dict[str, object]:
    start_line, start_column = source.position(edit.start)
    end_line, end_column = source.position(edit.end)
    return {
        "path": display_path(source.path, folder),
        "start_line": start_line,
        "start_column": start_column,
        "end_line": end_line,
        "end_column": end_column,
        "text": edit.text,
    }


def _site(row: SiteRow, report: Report, folder: Path) -> dict[str, object]:
    site = row.site
    weights = [weight_row(weight, folder) for weight in row.weights]
    source = site.module.source
    line, column = source.file_position(site.span.start)
    return {
        "path": display_path(source.path, folder),
        "line": line,
        "column": column,
        **_cell(source, site.span.start),
        "api": site.api,
        "form": site.form,
        "target": site.target,
        "options": dict(site.options),
        "context": site.context,
        "risk": row.risk,
        "codes": list(row.codes),
        **({"measured": weights} if report.weighed else {}),
    }
