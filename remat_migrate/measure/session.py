"""Measure a target in a process of the user's interpreter."""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

from ..errors import VerificationError
from ..verify.options import check_options, find_python
from ..verify.scratch import scratch_folder
from ..verify.session import START, Side, Worker, WorkerEnded
from .devices import parse_device
from .measurement import Measurement
from .options import MeasureOptions
from .target import Target, parse_target
from .worker.records import pareto_marked

_PACKAGE = Path(__file__).parents[1]
PROGRAM = START, _PACKAGE.name, _PACKAGE, "measure.worker.serve"
# Errors that JAX raises if Python code needs the value of a traced array.
_NEEDS_VALUE = re.compile(r"ConcretizationTypeError|Tracer\w+ConversionError|NonConcrete")
_ADDRESS = re.compile(r" object at 0x[0-9a-f]+")


# What is said of a request that fails, whose answer is left out.
_FAILURES = {
    "residuals": "not shown",
    "jaxprs": "not shown",
    "explain": "names not explained",
    "alternatives": "no other placement measured",
    "confirm": "not confirmed by the compiled program",
}


@dataclass(frozen=True, slots=True)
class Session:
    """A measured target, and the process that answers further requests about it.

    Attributes:
        measurement: the target as it is.
        target: its name.
        worker: the process.
    """

    measurement: Measurement
    target: str
    worker: Worker

    def ask(self, request: str, **fields: object) -> Mapping[str, Any]:
        """Return the reply to a request.

        Raises:
            VerificationError: the request failed, or the process has ended.
        """
        if not self.worker.is_running:
            raise VerificationError("the measuring process has ended")
        return _ask(self.worker, self.target, request, fields)


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
        found = session.measurement
        options = compiling(options, found)
        wanted: dict[str, dict[str, object]] = {
            "explain": {},
            "alternatives": {"compiling": options.compile, "are_all": options.policies},
            "confirm": {"are_all": bool(options.compile)},
        }
        if options.jaxprs:
            wanted = {"jaxprs": {}, **wanted}
        if options.residuals:
            wanted = {"residuals": {}, **wanted}
        for request, fields in wanted.items():
            try:
                found = replace(found, **_fields(session.ask(request, **fields)))
            except VerificationError as error:
                found = replace(found, notes=(*found.notes, f"{_FAILURES[request]}: {error}"))
        return found


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
    args = parse_target(options.args[0], folder) if options.args else None
    with scratch_folder() as scratch:
        worker = _worker(target, args, options, scratch)
        with closing(worker):
            yield Session(_measured(worker, target, args, options), target.text, worker)


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
    return Worker(side, scratch, options.running.timeout, options.running.memory, PROGRAM)


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
    device = parse_device(options.device) if options.device else None
    return Measurement(target.text, worker.jax, device=device, **_fields(reply))


def _fields(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a measurement that a reply holds."""
    kinds = get_type_hints(Measurement)
    fields = {
        name: decoded(kinds[name], value) for name, value in reply.items() if name != "failed"
    }
    if "alternatives" in fields:
        failed: dict[str, list[str]] = {}
        for name, reason in reply["failed"]:
            failed.setdefault(_failure_message(reason), []).append(name)
        fields |= {"alternatives": pareto_marked(fields["alternatives"]), "failed": failed}
    return fields


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


def decoded(kind: Any, value: Any) -> Any:
    """Return a value of a type from its JSON: a record is an array of its fields."""
    arguments = get_args(kind)
    if value is None or (arguments and type(None) in arguments):
        return None if value is None else decoded(arguments[0], value)
    if arguments:
        kinds = itertools.repeat(arguments[0]) if ... in arguments else arguments
        return tuple(map(decoded, kinds, value))
    if hasattr(kind, "_fields"):
        return kind(*map(decoded, _kinds(kind), value))
    return kind(value) if issubclass(kind, Path | Enum) else value


@functools.cache
def _kinds(record: Any) -> tuple[Any, ...]:
    """Return the types of the fields of a record."""
    hints = get_type_hints(record)
    return tuple(hints[name] for name in record._fields)


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
    if "mesh" in message and "Number of devices" in message:
        text += "\npass --devices N for N virtual CPU devices"
    return text


def _relative(path: str, line: int) -> str:
    folder = os.getcwd()
    if Path(path).is_relative_to(folder):
        path = os.path.relpath(path, folder)
    return f"{Path(path).as_posix()}:{line}"
