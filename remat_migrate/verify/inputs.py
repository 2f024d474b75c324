"""Find inputs for a unit: the user's cases, a recorded command, or made from the signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import VerificationError
from .command import RecordedCalls
from .copies.sides import Sides, needed
from .evidence import Inputs, Outcome, Unit, Verdict
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
    """The cases of a unit.

    Attributes:
        inputs: their origin.
        found: each with its "file", a pickle that only workers load, and what it is "about", which
            distinguishes it from the others: `is_training=True`.
    """

    inputs: Inputs
    found: list[Mapping[str, str]]


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
) -> Cases | Verdict:
    """Return inputs for a unit, from the first source that has any, or the verdict without any."""
    sources = [(Inputs.DECLARED, declared["cases"], declared["detail"])] if declared else []
    if recorded:
        sources.append((Inputs.RECORDED, recorded.cases, recorded.detail))
    for inputs, found, _ in sources:
        if found:
            return with_flips(sides, unit, Cases(inputs, found[:_MOST_CASES]))
    reasons = [f"{inputs} inputs: {detail}" for inputs, _, detail in sources if detail]
    made = _made(sides, unit)
    if isinstance(made, Verdict) and reasons:
        return replace(made, detail="; ".join([*reasons, f"made inputs: {made.detail}"]))
    return made


def _made(sides: Sides, unit: Unit) -> Cases | Verdict:
    try:
        reply = sides.ask(
            sides.before,
            unit,
            "make",
            folder=sides.folder("made"),
            root=str(sides.old.folder),
            seconds=_MAKING_SHARE * sides.task.options.timeout,
            edited=unit.edited,
        )
    except WorkerEnded as error:
        return Verdict(unit, Outcome.NOT_EXERCISED, detail=f"making inputs {error}")
    if "missing" in reply:
        return Verdict(unit, Outcome.NOT_EXERCISED, detail=reply["missing"])
    refusal = reply["refused"]
    if refusal and refusal in (reply.get("detail") or reply.get("error", {}).get("message", "")):
        return Verdict(unit, Outcome.NOT_EXERCISED, detail=sides.translate(refusal))
    if "error" in reply:
        action = "running" if reply["running"] else "importing"
        remedy = _remedy(reply["error"], sides.before.side.python, sides.before.side.platform)
        failure = sides.translate(headline(reply["error"]))
        return Verdict(
            unit,
            # Code whose module cannot be imported did not run.
            Outcome.FAILS_BEFORE if reply["running"] else Outcome.NOT_EXERCISED,
            detail="; ".join(filter(None, [f"{action} it: {failure}", remedy])),
            traceback=sides.translate(reply["error"]["traceback"]),
        )
    if not reply["cases"]:
        detail = needed(reply) or sides.translate(reply["detail"])
        return Verdict(unit, Outcome.NOT_EXERCISED, detail=detail)
    return Cases(Inputs.MADE, reply["cases"][:_MOST_CASES])


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
