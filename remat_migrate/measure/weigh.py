"""Measuring a target: asks a process of the user's interpreter, and reads what it answers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import VerificationError
from ..verify.copies.workspace import remove_workspace
from ..verify.options import check_options, find_python
from ..verify.session import Side, Worker, WorkerEnded
from .failure import reason
from .measurement import (
    Alternative,
    CallPlace,
    Cost,
    Course,
    Measurement,
    Residual,
    SiteWeight,
    Weight,
)
from .options import MeasureOptions
from .target import Target, parse_target

_START = Path(__file__).parent / "worker" / "start.py"


def weigh(target: Target, options: MeasureOptions, folder: Path) -> Measurement:
    """Measure a function.

    Args:
        target: the function.
        options: how.
        folder: the one that names in the options are seen from.

    Raises:
        VerificationError: it cannot be measured; the message says why.
    """
    with measuring(target, options, folder) as (found, worker):
        if options.policies or not found.sites:
            found = _with_alternatives(worker, target, options, found)
        return _with_compiled(worker, target, options, found)


@contextmanager
def measuring(
    target: Target, options: MeasureOptions, folder: Path
) -> Iterator[tuple[Measurement, Worker]]:
    """A function measured as it is, and the process that did it, for what else is asked.

    Raises:
        VerificationError: it cannot be measured; the message says why.
    """
    check_options(options.running)
    args = parse_target(options.args, folder) if options.args else None
    scratch = Path(os.path.realpath(tempfile.mkdtemp(prefix="remat-migrate-")))
    try:
        worker = _worker(target, args, options, scratch)
        try:
            yield _measured(worker, target, args, options), worker
        finally:
            worker.close()
    finally:
        remove_workspace(scratch)


def _worker(target: Target, args: Target | None, options: MeasureOptions, scratch: Path) -> Worker:
    flags: dict[str, object] = {}
    if options.x64:
        flags["jax_enable_x64"] = True
    if options.remat3:
        flags["jax_remat3"] = True
    folders = (*target.folders, *(args.folders if args else ()))
    side = Side(
        find_python(options.running, target.root, "measure"),
        target.root,
        target.root,
        tuple(dict.fromkeys(folders)),
        flags=flags,
        platform=options.running.platform,
        optimized=True,
    )
    return Worker(side, scratch, options.running.timeout, options.running.memory, _START)


def _measured(
    worker: Worker, target: Target, args: Target | None, options: MeasureOptions
) -> Measurement:
    request = {
        "target": _named(target),
        "args": _named(args) if args else None,
        "cases": str(options.running.cases) if options.running.cases else None,
        "by": options.grad,
        "argnums": list(options.argnums),
        "has_aux": options.has_aux,
        "jit": options.jit,
    }
    given = args.text if args else str(options.running.cases)
    reply = ask(worker, target, "measure", request, given)
    found = Measurement(
        target.text,
        worker.jax,
        options.grad,
        reply["forward_flops"],
        _cost(reply["cost"]),
        _cost(reply["bare"]),
        tuple(_site(site) for site in reply["sites"]),
        courses=(_course(reply["courses"][0]), _course(reply["courses"][1])),
    )
    return _with_pictures(worker, target, options, found)


def _with_pictures(
    worker: Worker, target: Target, options: MeasureOptions, found: Measurement
) -> Measurement:
    try:
        if options.residuals:
            reply = ask(worker, target, "residuals")
            found = replace(found, residuals=tuple(_residual(one) for one in reply["residuals"]))
        if options.pictures:
            reply = ask(worker, target, "pictures")
            found = replace(found, pictures=(reply["forward"], reply["backward"]))
    except VerificationError as error:
        return replace(found, notes=(*found.notes, f"not shown: {error}"))
    return found


def _with_alternatives(
    worker: Worker, target: Target, options: MeasureOptions, found: Measurement
) -> Measurement:
    request = {"compile": options.compile, "stages_alone": not options.policies}
    try:
        reply = ask(worker, target, "alternatives", request)
    except VerificationError as error:
        return replace(found, notes=(*found.notes, f"no alternatives: {error}"))
    return replace(found, alternatives=tuple(_alternative(one) for one in reply["alternatives"]))


def _with_compiled(
    worker: Worker, target: Target, options: MeasureOptions, found: Measurement
) -> Measurement:
    """What the compiled program says: asked for, or needed before a removal is proposed."""
    sites, notes, total = list(found.sites), list(found.notes), None
    try:
        if options.compile:
            total = ask(worker, target, "compile")["bytes"]
        for number, site in enumerate(sites):
            if options.compile or site.verdict is Weight.WASTEFUL:
                reply = ask(worker, target, "confirm", {"site": number})
                sites[number] = _site(reply["site"])
    except VerificationError as error:
        notes.append(f"not confirmed by the compiled program: {error}")
    return replace(found, sites=tuple(sites), compiled_bytes=total, notes=tuple(notes))


def ask(
    worker: Worker,
    target: Target,
    doing: str,
    request: Mapping[str, object] | None = None,
    args: str = "",
) -> Mapping[str, Any]:
    """The reply to a request.

    Args:
        worker: who is asked.
        target: the function.
        doing: the request.
        request: what belongs to it.
        args: what gives the arguments, as the user named it.

    Raises:
        VerificationError: the function cannot be measured, or the process has ended.
    """
    if doing != "measure" and worker.is_fresh:
        raise VerificationError("the process that measured it has ended")
    try:
        reply = worker.ask(do=doing, **(request or {}))
    except WorkerEnded as error:
        raise VerificationError(f"{target.text}: {doing}: the process {error}") from error
    of = args if reply.get("of") == "args" else target.text
    if "unfit" in reply:
        raise VerificationError(f"{of}: {reply['unfit']}")
    if "error" in reply:
        raise VerificationError(f"{of}: {reason(reply['error'])}")
    return reply


def _named(target: Target) -> dict[str, object]:
    path = str(target.path) if target.path else ""
    return {"module": target.module, "path": path, "qualname": target.qualname}


# -- what the worker answers


def _cost(data: Mapping[str, Any]) -> Cost:
    return Cost(data["peak_bytes"], data["flops"], data["residual_bytes"])


def _course(data: Sequence[tuple[int, int]]) -> Course:
    return tuple((done, live) for done, live in data)


def _site(data: Mapping[str, Any]) -> SiteWeight:
    compiled = data["compiled"]
    return SiteWeight(
        Path(data["path"]),
        data["line"],
        data["api"],
        data["function"],
        tuple(CallPlace(Path(path), line, times) for path, line, times in data["calls"]),
        data["applications"],
        _cost(data["with"]),
        _cost(data["without"]),
        Weight(data["verdict"]),
        (compiled[0], compiled[1]) if compiled else None,
        data["note"],
    )


def _alternative(data: Mapping[str, Any]) -> Alternative:
    return Alternative(
        data["name"],
        data["peak_bytes"],
        data["flops"],
        data["compiled_bytes"],
        data["pareto"],
        tuple((Path(path), line) for path, line in data["lines"]),
    )


def _residual(data: Mapping[str, Any]) -> Residual:
    path = Path(data["path"]) if data["path"] else None
    return Residual(data["shape"], data["bytes"], data["what"], data["name"], path, data["line"])
