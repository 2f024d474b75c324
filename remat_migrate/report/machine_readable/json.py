"""The `json` format: one object of schema version 1 for each command."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...rule import Finding, Fix, Safety
from ...text import SourceFile, Span
from ...text.edits import Replacement
from ..content import Report, SiteRow, Weighed, count_fixes
from ..terminal.display import Screen, display_path
from ..terminal.statistics import rule_counts
from ..terminal.verdicts import verdict_counts
from .shared import cell, on_disk, region

if TYPE_CHECKING:
    from ...measure.devices import Device
    from ...measure.measurement import Measurement
    from ...measure.worker.records import SiteMeasurement
    from ...plan.plan import Placement, Plan
    from ...verify.evidence import Proof, Verdict

SCHEMA_VERSION = 1

_Object = dict[str, object]


def render(report: Report, screen: Screen) -> str:
    """Return the document of `check` and `report`; lines and columns count from 1."""
    document: _Object = {
        **_head(),
        "summary": _summary(report),
        "findings": [_finding(finding, report) for finding in report.findings],
    }
    if report.proved is not None:
        document["verdicts"] = list(map(verdict_row, report.verdicts))
    if report.sites is not None:
        document["sites"] = [_site(row, report) for row in report.sites]
    return _dump(document, screen)


def _dump(document: object, screen: Screen) -> str:
    """Return a document as text, its paths relative to the screen's folder."""

    def shown(value: object) -> str:
        assert isinstance(value, Path)
        return display_path(value, screen.folder)

    # json.dumps writes ASCII: control characters become escapes, and lone surrogates survive.
    return json.dumps(document, indent=2, default=shown) + "\n"


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
            "command": proof.command and asdict(proof.command),
            "notes": list(proof.notes),
        },
        "verdicts": list(map(verdict_row, proof.verdicts)),
    }
    return _dump(document, screen)


def render_measurements(weighed: Weighed, screen: Screen) -> str:
    """Return the document of `measure`: an object, or an array for several targets."""
    documents = list(map(_measurement, weighed.found))
    documents += [
        {**_head(), "target": target, "error": reason} for target, reason in weighed.failed.items()
    ]
    return _dump(documents[0] if len(documents) == 1 else documents, screen)


def render_plan(plan: Plan, screen: Screen) -> str:
    """Return the document of `plan`."""
    document = {
        **_head(),
        "target": plan.found.target,
        "jax": plan.found.jax,
        "backend": plan.found.backend,
        "budget": plan.budget,
        "budget_bytes": plan.budget_bytes,
        "argument_bytes": plan.found.argument_bytes,
        "devices": plan.found.devices,
        "device": plan.found.device and _device(plan.found.device, plan.needed_bytes),
        "met": plan.is_met,
        "met_by": plan.basis.partition(" ")[0] if plan.is_met else None,
        "traced_placements": plan.tried,
        "without_checkpoints": {**plan.bare._asdict(), "compiled_peak_bytes": plan.bare_compiled},
        "as_it_is": {**plan.now._asdict(), "checkpoints": len(plan.found.sites)},
        **_placement(plan.best),
        "not_writable": plan.unwritten
        and {**_placement(plan.unwritten), "obstacles": list(map(asdict, plan.obstacles))},
        "compiled": list(map(_placement, plan.candidates)),
        "values": [one._asdict() for one in plan.values],
    }
    return _dump(document, screen)


def _device(device: Device, needed: int) -> _Object:
    """Return whether a program fits on a device."""
    return {
        "name": device.name,
        "memory_bytes": device.memory,
        "nominal_bytes": device.nominal,
        "needed_bytes": needed,
        "fits": needed <= device.memory,
        "source": device.source or None,
    }


def _placement(placement: Placement) -> _Object:
    return {
        "stages": list(map(asdict, placement.stages)),
        "promised": placement.promised._asdict(),
        "measured": placement.measured._asdict(),
        "compiled_peak_bytes": placement.compiled,
        "name": placement.name or None,
    }


def _head() -> _Object:
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "remat-migrate", "version": __version__},
    }


def _measurement(found: Measurement) -> _Object:
    document: _Object = {
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
        "without_checkpoints": found.bare._asdict(),
        "sites": list(map(_weight, found.sites)),
        "names": [one._asdict() for one in found.names],
        "policies": [one._asdict() for one in found.policies],
        "alternatives": [
            {
                **one._asdict(),
                "policy": one.policy or None,
                "recomputed_flops": one.flops - found.bare.flops,
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
    if found.residuals is not None:
        document["residuals"] = [
            {
                "shape": one.shape,
                "bytes": one.bytes,
                "what": one.origin,
                "name": one.name or None,
                "path": one.path,
                "line": one.line or None,
            }
            for one in found.residuals
        ]
    if found.jaxprs is not None:
        document["forward"], document["backward"] = found.jaxprs
    return document


def verdict_row(verdict: Verdict) -> _Object:
    """Return a verdict as the documents of all commands have it."""
    return {
        "unit": verdict.unit.name,
        "path": verdict.unit.path,
        "line": verdict.unit.line,
        "verdict": verdict.outcome,
        "inputs": verdict.inputs,
        "calls": verdict.calls,
        "max_abs": verdict.max_abs,
        "max_rel": verdict.max_rel,
        "detail": verdict.detail,
        "evidence": verdict.evidence,
        "shapes": verdict.shapes,
        "substituted": verdict.substituted,
        "traceback": verdict.traceback,
        "difference": verdict.difference,
        "through": verdict.through,
    }


def _weight(site: SiteMeasurement) -> _Object:
    """Return what a checkpoint saves and costs."""
    return {
        "path": site.path,
        "line": site.line,
        "api": site.api,
        "function": site.function,
        "calls": [
            {"path": call.path, "line": call.line, "traced": call.times} for call in site.calls
        ],
        "applications": site.applications,
        "residual_bytes_avoided": site.residual_bytes_avoided,
        "peak_bytes_saved": site.peak_bytes_saved,
        "recomputed_flops": site.recomputed_flops,
        "verdict": site.verdict,
        "compiled_bytes": site.compiled and site.compiled[0],
        "compiled_bytes_without": site.compiled and site.compiled[1],
        "note": site.note,
        "redundant_with": [{"path": path, "line": line} for path, line in site.rivals],
    }


def _summary(report: Report) -> _Object:
    safe, unsafe = (count_fixes(report.findings, safety) for safety in (Safety.SAFE, Safety.UNSAFE))
    total = len(report.findings)
    withheld = sum(finding.is_withheld for finding in report.findings)
    proved: _Object = {}
    if report.proved is not None:
        proved = {"taken_back": report.reverted, "verdicts": verdict_counts(report.verdicts)}
    measured: _Object = {}
    if report.weighed is not None:
        failed = [{"target": t, "reason": why} for t, why in report.weighed.failed.items()]
        targets = [found.target for found in report.weighed.found]
        measured["measured"] = {"targets": targets, "failed": failed}
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
        **_baseline(report),
        "fixed": sum((report.fixed or {}).values()),
        **proved,
        **measured,
        "codes": dict(sorted(Counter(finding.code for finding in report.findings).items())),
        "rules": [{**asdict(count), "files": len(count.files)} for count in rule_counts(report)],
    }


def _baseline(report: Report) -> _Object:
    """Return how the run compares with a baseline; empty without one."""
    found = report.baseline
    if found is None:
        return {}
    return {
        "known": len(report.known),
        "stale": found.stale_count,
        "baseline": {"path": found.file, "stale": list(map(asdict, found.stale))},
    }


def _finding(finding: Finding, report: Report) -> _Object:
    source = finding.source
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "path": finding.path,
        **asdict(region(*on_disk(source, finding.span))),
        **cell(source, finding.span.start),
        "severity": finding.severity,
        "confidence": finding.confidence,
        "fix": finding.fix and _fix(finding.fix, report),
        "reason": finding.reason,
        "related": [
            {
                "path": related.source.path,
                "line": related.source.file_position(related.span.start)[0],
                "message": related.message,
            }
            for related in finding.related
        ],
        "url": finding.url,
    }


def _fix(fix: Fix, report: Report) -> _Object:
    edits = []
    for path in dict.fromkeys(edit.path for edit in fix.edits):
        source = report.sources[path]
        own = source.file_edits(edit for edit in fix.edits if edit.path == path)
        edits += [_edit(one, source.on_disk) for one in own]
    return {"safety": fix.safety, "title": fix.title, "edits": edits}


def _edit(edit: Replacement, source: SourceFile) -> _Object:
    at = asdict(region(source, Span(edit.start, edit.end)))
    return {
        "path": source.path,
        "start_line": at.pop("line"),
        "start_column": at.pop("column"),
        **at,
        "text": edit.text,
    }


def _site(row: SiteRow, report: Report) -> _Object:
    site = row.site
    weights = [_weight(weight) for weight in row.weights]
    source = site.module.source
    line, column = source.file_position(site.span.start)
    return {
        "path": source.path,
        "line": line,
        "column": column,
        **cell(source, site.span.start),
        "api": site.api,
        "form": site.form,
        "target": site.target,
        "options": dict(site.options),
        "context": site.context,
        "risk": row.risk,
        "codes": list(row.codes),
        **({"measured": weights} if report.weighed else {}),
    }
