"""Run two states of a project and return a verdict for each unit that differs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import MappingProxyType

from ..engine.run import Progress, silent
from .command import RecordedCalls
from .compare_case import compared, compared_in_turn, is_undecided
from .copies.sides import Sides, Task
from .evidence import Evidence, Inputs, Outcome, Proof, Unit, UnitKey, Verdict
from .executed import alone, graded, is_unproved, reaches, settled, together, weakest_evidence
from .inputs import (
    LOWER_PRECISION,
    MAGNITUDES,
    RESIZED,
    Cases,
    declared_cases,
    find_cases,
    summary_of,
)
from .project_tests import ProjectTests
from .recording import record
from .schedule import decide_all
from .scratch import scratch_folder, signal_of
from .session import Reply

# The worker's description of a case that varies the defaults of numbers.
_VARIED = "other values of "
# How JAX says that a traced value must be concrete.
_NEEDS_VALUE = re.compile(r"jax\.errors\.(Concretization|NonConcrete|Tracer)")
# A string that no code knows.
_MADE_UP = "='other'"
_SAME_PROGRAM = (Evidence.PROGRAM, Evidence.BOTH)


class ProofInterrupted(KeyboardInterrupt):
    """Fixes could not be proved because the run was interrupted.

    Attributes:
        proof: the verdicts until then.
    """

    def __init__(self, proof: Proof) -> None:
        super().__init__()
        self.proof = proof


def prove(task: Task, progress: Progress = silent, tests: ProjectTests | None = None) -> Proof:
    """Run both states and compare their units.

    After an interrupt, the proof has the verdicts so far, and how many units are left.

    Args:
        task: what to compare.
        progress: receives progress reports.
        tests: runs the project's tests for units that would not be exercised.

    Raises:
        VerificationError: nothing can be run: the project cannot be copied, the file of cases is
            wrong, or the command fails before it reaches a unit.
    """
    total = len(task.units)
    if not total:
        return Proof()
    decided: list[Verdict] = []
    used: list[Verdict] = []
    retried: Mapping[UnitKey, Verdict] = {}
    proof = Proof()
    try:
        with scratch_folder() as scratch, ExitStack() as stack:
            progress("copying the project", 0, total)
            sides = Sides(task, scratch, stack)
            proof = replace(proof, notes=sides.old.notes)
            command = task.options.command
            if command:
                progress("running the command before and after", 0, total)
            runs, calls = record(sides, command) if command else (None, {})
            proof = replace(proof, command=runs)
            cases = task.options.cases
            declared = declared_cases(sides, cases) if cases else {}
            decide_all(task.units, _decider(sides, declared, calls), decided, progress, sides.stop)
            _add_callers(sides, decided, used, progress)
            found = settled([*decided, *used])[:total]
            # Unchanged units are compared for the sake of others.
            unproved = [v for v in found if is_unproved(v) and v.unit.qualname and not v.unit.uses]
            if tests and unproved:
                progress("running the project's tests", total - len(unproved), total)
                retried = _with_tests(sides, unproved, tests, progress)
            proof = replace(proof, jax=(sides.before.jax, sides.after.jax))
    except KeyboardInterrupt as interrupt:
        proof = replace(proof, interrupted=signal_of(interrupt))
    decided = [retried.get(v.unit.key, v) for v in decided]
    wrong = (verdict for verdict in used if verdict.outcome.is_wrong)
    progress("", total, total)
    return replace(
        proof,
        verdicts=(*settled([*decided, *used])[: len(decided)], *wrong),
        left=total - len(decided),
        notes=(*proof.notes, *(tests.notes if tests else ())),
    )


def _add_callers(
    sides: Sides, verdicts: Sequence[Verdict], found: list[Verdict], progress: Progress
) -> None:
    """Find verdicts on the callers of units that were not exercised alone."""
    unproved = {v.unit.key for v in settled(verdicts) if is_unproved(v)}
    done = {verdict.unit.key for verdict in verdicts}
    callers = [caller for caller in sides.task.callers if caller.key not in done]
    if needed := [caller for caller in callers if not unproved.isdisjoint(caller.uses)]:
        decide_all(needed, _decider(sides, {}, {}), found, progress, sides.stop)


def _with_tests(
    sides: Sides, verdicts: Sequence[Verdict], tests: ProjectTests, progress: Progress
) -> Mapping[UnitKey, Verdict]:
    """Return the verdicts on the units that the project's tests call."""
    recorded = tests.recorded(sides, [verdict.unit for verdict in verdicts])
    before = {v.unit.key: v for v in verdicts if v.unit.key in recorded}
    if not before:
        return {}
    units = [verdict.unit for verdict in before.values()]
    calls = {sides.identity(v.unit): recorded[key] for key, v in before.items()}
    found: list[Verdict] = []
    decide_all(units, _decider(sides, {}, calls, before), found, progress, sides.stop)
    return {v.unit.key: _from_tests(v, before[v.unit.key], recorded) for v in found}


def _from_tests(
    verdict: Verdict, before: Verdict, recorded: Mapping[UnitKey, RecordedCalls]
) -> Verdict:
    """Return the verdict on calls that tests made; the one before if they exercise nothing."""
    if is_unproved(verdict) or verdict.inputs is not Inputs.RECORDED:
        detail = "; ".join(dict.fromkeys(filter(None, [before.detail, verdict.detail])))
        return replace(before, detail=detail, executed=verdict.executed or before.executed)
    names = recorded[verdict.unit.key].tests or ["the project's tests"]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return replace(
        verdict, detail="; ".join(filter(None, [f"from {names[0]}{more}", verdict.detail]))
    )


def _decider(
    sides: Sides,
    declared: Mapping[str, Reply],
    recorded: Mapping[str, RecordedCalls],
    earlier: Mapping[UnitKey, Verdict] = MappingProxyType({}),
) -> Callable[[Unit], Verdict]:
    def decide(unit: Unit) -> Verdict:
        calls = recorded.get(sides.identity(unit))
        with sides.for_unit() as own:
            cases = find_cases(own, unit, declared.get(unit.name), calls)
            found = cases if isinstance(cases, Verdict) else _replayed(own, unit, cases)
            found = alone(found, *filter(None, [earlier.get(unit.key)]))
            if found.outcome is Outcome.EQUAL and unit.qualname:
                found = replace(found, outcome=graded(found.evidence))
            return replace(found, substituted=own.substituted(unit))

    return decide


def _replayed(sides: Sides, unit: Unit, cases: Cases) -> Verdict:
    """Return the first wrong verdict, or else the equal ones combined."""
    verdicts: list[Verdict] = []
    undecided: list[Verdict] = []
    said: list[str] = []
    for case in cases.found:
        about = case["about"]
        if about in MAGNITUDES and verdicts and verdicts[0].evidence in _SAME_PROGRAM:
            continue  # they have the program of the first, and only their numbers would say more
        # Where the programs are the same, derivatives and numbers of one case will do. Recorded
        # cases have made arrays, too.
        made = cases.inputs is not Inputs.DECLARED
        is_first = not any(verdict.outcome is Outcome.EQUAL for verdict in verdicts)
        is_other = about.startswith((LOWER_PRECISION, RESIZED))
        values = not is_other and (is_first or not made)
        verdict = compared(sides, unit, case["file"], derivatives=is_first, values=values)
        is_failing = verdict.outcome is Outcome.FAILS_AFTER
        if about.startswith(_VARIED) and is_failing and _NEEDS_VALUE.match(verdict.detail):
            # The number must be concrete, and real calls may never pass another value.
            continue
        if _MADE_UP in about and is_failing:
            # The new code refuses what the old code took for the last of its options.
            continue
        if verdict.outcome.is_wrong or is_undecided(verdict):
            where = f" (with {about})" if about else ""
            verdict = replace(verdict, inputs=cases.inputs, detail=verdict.detail + where)
            if verdict.outcome.is_wrong:
                return verdict
            undecided.append(verdict)
        verdicts.append(verdict)
        if reaches(unit, verdict.executed):
            said.append(about)
    if len(cases.found) > 1 and any(verdict.keeps_data for verdict in verdicts):
        verdict = compared_in_turn(sides, unit, tuple(case["file"] for case in cases.found))
        if verdict.outcome.is_wrong:
            detail = f"called with all cases in turn: {verdict.detail}"
            return replace(verdict, inputs=cases.inputs, detail=detail)
    if undecided:
        return undecided[0]
    equal = [verdict for verdict in verdicts if verdict.outcome is Outcome.EQUAL]
    if not equal:
        return replace(verdicts[0], inputs=cases.inputs)
    notes = dict.fromkeys(verdict.detail for verdict in equal if verdict.detail)
    returns_nothing = all(verdict.returns_nothing for verdict in equal)
    is_edited = bool(unit.qualname or unit.before or unit.after)
    return Verdict(
        unit,
        # Of a module whose imports changed, there is nothing to compare but that they work.
        Outcome.NOT_EXERCISED if returns_nothing and is_edited else Outcome.EQUAL,
        cases.inputs,
        len(equal),
        max(verdict.max_abs or 0.0 for verdict in equal),
        max(verdict.max_rel or 0.0 for verdict in equal),
        "; ".join(part for part in (summary_of(said), *notes) if part),
        shapes=next((verdict.shapes for verdict in equal if verdict.shapes), ()),
        executed=together(equal),
        evidence=weakest_evidence(verdict.evidence for verdict in equal),
        difference=next((verdict.difference for verdict in equal if verdict.difference), ""),
        returns_nothing=returns_nothing,
    )
