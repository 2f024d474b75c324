"""Measure a target in a process of the user's interpreter."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import VerificationError
from ..verify.options import check_options, find_python
from ..verify.scratch import scratch_folder
from ..verify.session import Side, Worker, WorkerEnded
from .devices import parse_device
from .measurement import Measurement
from .options import MeasureOptions
from .target import Target, parse_target
from .worker.records import (
    Alternative,
    CallLine,
    Cost,
    NameUse,
    PolicyUse,
    Residual,
    SiteMeasurement,
    SiteVerdict,
    pareto_marked,
)

START = Path(__file__).parent / "worker" / "start.py"
# Errors that JAX raises if Python code needs the value of a traced array.
_NEEDS_VALUE = re.compile(r"ConcretizationTypeError|Tracer\w+ConversionError|NonConcrete")
_ADDRESS = re.compile(r" object at 0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Session:
    """A measured target, and the process that answers further requests about it.

    Attributes:
        measurement: the target as it is.
        target: the target.
        worker: the process.
        options: how it is measured.
        folder: the folder that relative names in the options refer to.
        seconds: how long it took to start the process and to measure the target.
    """

    measurement: Measurement
    target: Target
    worker: Worker
    options: MeasureOptions
    folder: Path
    seconds: float

    def ask(self, request: str, **fields: object) -> Mapping[str, Any]:
        """Return the reply to a request.

        Raises:
            VerificationError: the request failed, or the process has ended.
        """
        if not self.worker.is_running:
            raise VerificationError("the measuring process has ended")
        return _ask(self.worker, self.target.text, request, fields)


def measure(target: Target, options: MeasureOptions, folder: Path) -> Measurement:
    """Measure a function.

    Args:
        target: function to measure.
        options: how to measure it.
        folder: folder that relative names in the options refer to.

    Raises:
        VerificationError: the function cannot be measured; the message says why.
    """
    with measuring(target, options, folder) as session:
        options = compiling(options, session.measurement)
        found = _add_passes(session, options, session.measurement)
        found = _add_names(session, found)
        found = _add_alternatives(session, options, found)
        if found.sites and not options.policies:
            if reply := session.ask("cheaper")["cheaper"]:
                found = replace(found, cheaper=_alternative(reply))
        return _add_compiled(session, options, found)


def compiling(options: MeasureOptions, found: Measurement) -> MeasureOptions:
    """Return the options; a target that a trace says too little about is compiled.

    That is a program on a mesh, whose values only XLA divides, and one that draws random numbers,
    unless compiling is ruled out.
    """
    is_random = found.is_random and options.compile is None
    return replace(options, compile=True) if found.devices > 1 or is_random else options


@contextmanager
def measuring(target: Target, options: MeasureOptions, folder: Path) -> Iterator[Session]:
    """Measure a function as it is, and keep the process for further requests.

    Raises:
        VerificationError: the function cannot be measured; the message says why.
    """
    check_options(options.running)
    if options.device:
        parse_device(options.device)
    args = parse_target(options.args, folder) if options.args else None
    started = time.monotonic()
    with scratch_folder() as scratch:
        worker = _worker(target, args, options, scratch)
        with closing(worker):
            found = _measured(worker, target, args, options)
            yield Session(found, target, worker, options, folder, time.monotonic() - started)


def _worker(target: Target, args: Target | None, options: MeasureOptions, scratch: Path) -> Worker:
    flags: dict[str, object] = {}
    if options.x64:
        flags["jax_enable_x64"] = True
    if options.devices > 1:
        flags["jax_num_cpu_devices"] = options.devices
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
    return Worker(side, scratch, options.running.timeout, options.running.memory, START)


def _measured(
    worker: Worker, target: Target, args: Target | None, options: MeasureOptions
) -> Measurement:
    cases = options.running.cases
    _ask(worker, target.text, "load", _location(target))
    request = {
        "function": _location(args) if args else None,
        "cases": str(cases) if cases else None,
        "name": f"{target.module or ''}.{target.qualname}",
    }
    source = args.text if args else str(cases or target.text)
    _ask(worker, source, "arguments", request)
    how = {
        "by": options.grad,
        "argnums": options.argnums,
        "has_aux": options.has_aux,
    }
    reply = _ask(worker, target.text, "measure", how)
    return Measurement(
        target.text,
        worker.jax,
        reply["backend"],
        reply["grad"],
        reply["forward_flops"],
        Cost(*reply["cost"]),
        Cost(*reply["bare"]),
        tuple(map(_site, reply["sites"])),
        device=parse_device(options.device) if options.device else None,
        argument_bytes=reply["argument_bytes"],
        devices=reply["devices"],
        is_random=reply["is_random"],
    )


def _add_passes(session: Session, options: MeasureOptions, found: Measurement) -> Measurement:
    """Add the residuals and the jaxprs of both passes, if requested."""
    try:
        if options.residuals:
            rows = session.ask("residuals")["residuals"]
            found = replace(found, residuals=tuple(map(_residual, rows)))
        if options.jaxprs:
            reply = session.ask("jaxprs")
            found = replace(found, jaxprs=(reply["forward"], reply["backward"]))
    except VerificationError as error:
        return replace(found, notes=(*found.notes, f"not shown: {error}"))
    return found


def _add_names(session: Session, found: Measurement) -> Measurement:
    """Add what each name and policy saves."""
    try:
        reply = session.ask("explain")
    except VerificationError as error:
        return replace(found, notes=(*found.notes, f"names not explained: {error}"))
    names, policies = map(NameUse._make, reply["names"]), map(PolicyUse._make, reply["policies"])
    return replace(
        found,
        names=tuple(one._replace(path=one.path and Path(one.path)) for one in names),
        policies=tuple(one._replace(path=Path(one.path)) for one in policies),
    )


def _add_alternatives(session: Session, options: MeasureOptions, found: Measurement) -> Measurement:
    which = {"compiling": options.compile, "are_all": options.policies}
    try:
        reply = session.ask("alternatives", **which)
    except VerificationError as error:
        return replace(found, failed={str(error): ["all placements"]})
    failed: dict[str, list[str]] = {}
    for name, reason in reply["failed"]:
        failed.setdefault(_failure_message(reason), []).append(name)
    return replace(
        found,
        alternatives=tuple(pareto_marked(list(map(_alternative, reply["alternatives"])))),
        failed=failed,
    )


def _add_compiled(session: Session, options: MeasureOptions, found: Measurement) -> Measurement:
    """Add figures of the compiled program, if requested or if a checkpoint looks wasteful."""
    sites, notes, total, needed = list(found.sites), list(found.notes), None, None
    try:
        if options.compile:
            reply = session.ask("compile_target")
            total, needed = reply["temporary"], reply["needed"]
        for number, site in enumerate(sites):
            if options.compile or site.verdict is SiteVerdict.WASTEFUL:
                sites[number] = _site(session.ask("confirm", site=number)["site"])
    except VerificationError as error:
        notes.append(f"not confirmed by the compiled program: {error}")
    return replace(
        found,
        sites=tuple(sites),
        compiled_bytes=total,
        needed_compiled=needed,
        notes=tuple(notes),
    )


def _ask(
    worker: Worker, subject: str, request: str, fields: Mapping[str, object]
) -> Mapping[str, Any]:
    """Return the reply to a request; `subject` is what it is about, in messages."""
    try:
        reply = worker.ask(do=request, **fields)
    except WorkerEnded as error:
        raise VerificationError(f"{subject}: {request}: the process {error}") from error
    if "unfit" in reply:
        raise VerificationError(f"{subject}: {reply['unfit']}")
    if "error" in reply:
        raise VerificationError(f"{subject}: {_failure_message(reply['error'])}")
    return reply


def _location(target: Target) -> dict[str, object]:
    path = str(target.path) if target.path else ""
    return {"module": target.module, "path": path, "qualname": target.qualname}


def _site(fields: Any) -> SiteMeasurement:
    site = SiteMeasurement._make(fields)
    return site._replace(
        path=Path(site.path),
        calls=tuple(CallLine(Path(path), line, times) for path, line, times in site.calls),
        cost=Cost(*site.cost),
        without=Cost(*site.without),
        verdict=SiteVerdict(site.verdict),
        compiled=site.compiled and (site.compiled[0], site.compiled[1]),
        rivals=tuple((Path(path), line) for path, line in site.rivals),
    )


def _alternative(fields: Any) -> Alternative:
    found = Alternative._make(fields)
    return found._replace(lines=tuple((Path(path), line) for path, line in found.lines))


def _residual(fields: Any) -> Residual:
    found = Residual._make(fields)
    return found._replace(path=found.path and Path(found.path))


def _failure_message(error: Mapping[str, Any]) -> str:
    """Return the message for an exception.

    Args:
        error: its `type` and `message`, and `at`, the path and line in the user's code that raised
            it, or None.
    """
    kind, message = error["type"], _ADDRESS.sub("", error["message"].strip())
    place = f" at {_relative(*error['at'])}" if error.get("at") else ""
    if _NEEDS_VALUE.search(kind):
        # Later lines of the message name functions of remat-migrate.
        first = message.partition("\n")[0].rstrip(".")
        return (
            f"it needs the value of an array{place} ({first}), but is traced on shapes: pass values"
            " that are needed at trace time as Python values, not as arrays"
        )
    text = f"{kind}{place}: {message}" if message else f"{kind}{place}"
    if kind == "NotImplementedError" and "Effects not supported" in message:
        text += (
            "\nJAX cannot differentiate a checkpoint with side effects such as"
            " jax.experimental.io_callback: move them out of the checkpointed function"
        )
    if "mesh" in message and "Number of devices" in message:
        text += "\npass --devices N for N virtual CPU devices"
    return text


def _relative(path: str, line: int) -> str:
    folder = os.getcwd()
    if Path(path).is_relative_to(folder):
        path = os.path.relpath(path, folder)
    return f"{Path(path).as_posix()}:{line}"
