"""Find inputs for a unit: the user's cases, a recorded command, or made from the signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import VerificationError
from .command import RecordedCalls
from .copies.sides import Sides, needed
from .evidence import Inputs, Outcome, Unit
from .session import Reply, WorkerEnded
from .worker.failures import headline

# How the worker describes cases of other sizes than the first, of another type, and of its sizes
# with other numbers.
RESIZED = "other sizes"
LOWER_PRECISION = "bfloat16 arrays"
MAGNITUDES = ("positive values", "large values", "values of all magnitudes", "small values")

_MOST_CASES = 40
_MOST_WITH_FLIPS = 12
# Of the time that a unit may take, for making its inputs. Rarely reached: operations are counted.
_MAKING_SHARE = 0.6


@dataclass(slots=True)
class Cases:
    """The cases of a unit, or why there are none.

    Attributes:
        inputs: their origin.
        found: each with its "file", a pickle that only workers load, and what it is "about", which
            distinguishes it from the others: `is_training=True`.
        detail: why there are none.
        outcome: the verdict if there are none.
        traceback: of the exception because of which there are none.
    """

    inputs: Inputs
    found: list[Mapping[str, str]] = field(default_factory=list)
    detail: str = ""
    outcome: Outcome = Outcome.NOT_EXERCISED
    traceback: str = ""


def summary_of(about: Iterable[str]) -> str:
    """Return what distinguishes some cases: `both values of is_training`."""
    values: dict[str, dict[str, None]] = {}
    varied: dict[str, dict[str, None]] = {}
    for each in about:
        if each.startswith(RESIZED) or each in MAGNITUDES:
            varied[RESIZED if each.startswith(RESIZED) else "other magnitudes"] = {}
        else:
            for part in filter(None, each.split(", ")):
                name, _, value = part.partition("=")
                values.setdefault(name, {})[value] = None
    said = []
    for name, found in {**values, **varied}.items():
        if sorted(found) == ["False", "True"]:
            said.append(f"both values of {name}")
        else:
            said.append(f"{name}={'|'.join(found)}" if any(found) else name)
    return ", ".join(said)


def declared_cases(sides: Sides, file: Path) -> Mapping[str, Reply]:
    """Return the user's cases by the dotted name of their unit.

    Raises:
        VerificationError: the file of cases cannot be used.
    """
    names = [unit.name for unit in sides.task.units]
    try:
        with sides.for_unit() as own:
            reply = own.before.ask(
                do="declare",
                # A file of the project is run in the new copy: the base may lack it.
                file=str(sides.new.at(file)),
                units=names,
                known=[*names, *sides.task.known],
                folder=sides.folder("declared"),
            )
    except WorkerEnded as error:
        raise VerificationError(f"cases: {file}: {error}") from error
    if "missing" in reply:
        raise VerificationError(f"cases: {file}: {reply['missing']}")
    if "error" in reply:
        trace = sides.translate(reply["error"]["traceback"]).rstrip().splitlines()
        raise VerificationError(
            f"cases: {file} raised {headline(reply['error'])}\n" + "\n".join(trace[1:][-5:])
        )
    units: Mapping[str, Reply] = reply["units"]
    return units


def find_cases(
    sides: Sides,
    unit: Unit,
    declared: Mapping[str, Any] | None,
    recorded: RecordedCalls | None,
) -> Cases:
    """Return inputs for a unit, from the first source that has any."""
    sources = [_cases(Inputs.DECLARED, declared)] if declared else []
    if recorded:
        sources.append(Cases(Inputs.RECORDED, recorded.cases[:_MOST_CASES], recorded.detail))
    for source in sources:
        if source.found:
            return with_flips(sides, unit, source)
    reasons = [f"{source.inputs} inputs: {source.detail}" for source in sources if source.detail]
    made = _made(sides, unit)
    if not made.found and reasons:
        made.detail = "; ".join([*reasons, f"made inputs: {made.detail}"])
    return made


def _made(sides: Sides, unit: Unit) -> Cases:
    none = Cases(Inputs.MADE)
    folder, root = sides.folder("made"), str(sides.old.folder)
    seconds = _MAKING_SHARE * sides.task.options.timeout
    try:
        reply = sides.ask(
            sides.before,
            unit,
            "make",
            folder=folder,
            root=root,
            seconds=seconds,
            edited=unit.edited,
        )
    except WorkerEnded as error:
        none.detail = f"making inputs {error}"
        return none
    if "missing" in reply:
        none.detail = reply["missing"]
        return none
    refusal = reply["refused"]
    if refusal and refusal in (reply.get("detail") or reply.get("error", {}).get("message", "")):
        none.detail = sides.translate(refusal)
        return none
    if "error" in reply:
        # Code whose module cannot be imported did not run.
        none.outcome = Outcome.FAILS_BEFORE if reply["running"] else Outcome.NOT_EXERCISED
        action = "running" if reply["running"] else "importing"
        remedy = _remedy(reply["error"], sides.before.side.python, sides.before.side.platform)
        failure = sides.translate(headline(reply["error"]))
        none.detail = "; ".join(filter(None, [f"{action} it: {failure}", remedy]))
        none.traceback = sides.translate(reply["error"]["traceback"])
        return none
    made = _cases(Inputs.MADE, reply)
    made.detail = needed(reply) or sides.translate(made.detail)
    return made


def _remedy(error: Mapping[str, Any], python: Path, platform: str) -> str:
    """Return a remedy, empty if none is known.

    Args:
        error: an error as `failures.describe` returns it.
        python: the interpreter that ran the code.
        platform: the JAX platform.
    """
    kind, message = error["type"], error["message"]
    if kind == "ModuleNotFoundError":
        return f"install it for {python}, or pass an interpreter that has it with --python PATH"
    if "backend" in message and any(word in message for word in ("Unknown", "no platforms", "No ")):
        return f"JAX runs on {platform} here; choose another platform with --platform NAME"
    return ""


def _cases(inputs: Inputs, reply: Mapping[str, Any]) -> Cases:
    return Cases(inputs, reply["cases"][:_MOST_CASES], reply.get("detail", ""))


def with_flips(sides: Sides, unit: Unit, cases: Cases) -> Cases:
    """Add cases with the other value of each bool that had the same value in all calls."""
    most = max(len(cases.found), _MOST_WITH_FLIPS)
    seen = {part for case in cases.found for part in case["about"].split(", ")}
    place = 1  # before other calls like the first
    for case in tuple(cases.found):
        folder = sides.folder("flipped")
        try:
            reply = sides.ask(sides.before, unit, "flip", case=case["file"], folder=folder)
        except WorkerEnded:
            break  # evaluating the case itself reports the reason
        for flipped in reply.get("cases", ()):
            if flipped["about"] not in seen:
                seen.add(flipped["about"])
                cases.found.insert(place, flipped)
                place += 1
    del cases.found[most:]
    return cases
