"""Compare one case of a unit: run it on both sides, as programs first, and then as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .copies.sides import Sides, needed
from .evidence import BothExecuted, Evidence, Executed, Outcome, Unit, Verdict
from .executed import all_of
from .session import ChannelSpoiled, Reply, Worker, WorkerEnded
from .worker.failures import headline

# Compiled values that are further apart differ, unless the old code varies by itself; for nearer
# ones, derivatives and uncompiled values decide. Relative to the largest entry of an array.
_PLAIN = 0.05


# A fix may also change how the callers of a unit pass its arguments, see `worker.unit_cases.FORMS`.
OTHER_FORMS = ("position", "name")


class _Refused(Exception):
    """The code does what it may not do in calls that verification makes up; the message says it."""


class _How(NamedTuple):
    """How to evaluate a case.

    Attributes:
        derivatives: for its programs, with all derivatives.
        first: for its programs.
        values: with the values, if it is for its programs.
        seed: of Python's and NumPy's random numbers.
        constants: compute what depends on no argument, instead of tracing it.
    """

    derivatives: bool = False
    first: bool = False
    values: bool = True
    seed: int = 0
    constants: bool = False


def compared(
    sides: Sides, unit: Unit, case: str, *, derivatives: bool, values: bool = True
) -> Verdict:
    """Compare a case as programs and, unless they are the same, as numbers in every mode.

    If `derivatives`, the programs include those of all derivatives. Without `values`, nothing is
    computed where the programs are the same.
    """
    return _Comparison(sides, unit, case).verdict(derivatives, values)


def compared_in_turn(sides: Sides, unit: Unit, cases: tuple[str, ...]) -> Verdict:
    """Compare the results of calls one after the other, of a unit that keeps data between them."""
    return _Comparison(sides, unit, *cases).verdict_in_turn()


def is_undecided(verdict: Verdict) -> bool:
    """Return whether a case says that a unit cannot be called equal, although it is not wrong.

    Numbers differ, but no more than those of the old code do by themselves; or the new code fails,
    but so does the old code with its checkpoints.
    """
    if verdict.outcome is Outcome.FAILS_BEFORE:
        return verdict.calls > 0
    return verdict.outcome is Outcome.NOT_EXERCISED and verdict.max_abs is not None


def _differs_plainly(verdict: Verdict) -> bool:
    """Return whether compiled values alone decide."""
    return bool(verdict.max_rel and verdict.max_rel > _PLAIN)


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """How one side evaluated a case.

    Attributes:
        failure: how it failed in every mode, empty if it did not.
        error: the failure as `failures.describe` returns it.
        lacks: what it failed for, if the interpreter lacks it.
        executed: the edited code that ran.
        reply: the worker's, see `worker.answers.evaluate`; None if there are no results to compare.
    """

    failure: str = ""
    error: Mapping[str, Any] | None = None
    lacks: str = ""
    executed: Executed = field(default_factory=Executed)
    reply: Reply | None = None

    def said(self, key: str, default: Any = None) -> Any:
        """Return a value of the reply."""
        return self.reply.get(key, default) if self.reply else default


# Settings with which JAX computes the same, and those that a migration removes or adds, in lower
# case.
_NO_EFFECT = re.compile(
    r".*(log|dump|trace|cache|profil|debug|explain|leak|compiler_detailed|platform|distributed"
    r"|transfer_guard|check|captured_const|new_checkpoint|remat).*"
)


def _settings_differ(before: _Evaluated, after: _Evaluated) -> str:
    """Return which settings of JAX differ; empty if none."""
    found = []
    first, second = before.said("settings", {}), after.said("settings", {})
    for name in sorted({*first, *second}):
        old, new = first.get(name), second.get(name)
        if old != new and not _NO_EFFECT.fullmatch(name.lower()):
            said = [f"sets {name} to {value}" if value else "does not" for value in (old, new)]
            found.append(f"the old code {said[0]}, the new code {said[1]}")
    return "; ".join(found)


def _habits_differ(before: _Evaluated, after: _Evaluated) -> str:
    """Return what the new code does besides computing and the old code does not; empty if nothing.

    A checkpoint copies the containers that it returns, so there may be less of it.
    """
    old = before.said("habits", ())
    found = [habit for habit in after.said("habits", ()) if habit not in old]
    return f"the new code {found[0]}, the old code does not" if found else ""


class _Comparison:
    """Runs a unit on both sides on a case, or on several in turn, and compares."""

    def __init__(self, sides: Sides, unit: Unit, *cases: str) -> None:
        self._sides = sides
        self._unit = unit
        self._cases = cases
        # What the runs have executed. What JAX has traced in one does not run again in the next.
        self._ran: list[BothExecuted] = []

    def verdict(self, derivatives: bool, values: bool) -> Verdict:
        """Return the verdict on a case; see `compared`."""
        try:
            found = self._compared(derivatives, values)
            return self._fails_before(found) or found
        except _Refused as refusal:
            return self._verdict(Outcome.NOT_EXERCISED, str(refusal))

    def verdict_in_turn(self) -> Verdict:
        """Return the verdict on the results of all cases in turn."""
        try:
            return self._run_both(_How())
        except _Refused as refusal:
            return self._verdict(Outcome.NOT_EXERCISED, str(refusal))

    def _compared(self, derivatives: bool, values: bool) -> Verdict:
        first = self._run_both(_How(derivatives, first=True, values=values))
        if first.outcome is Outcome.EQUAL and first.evidence is not Evidence.NUMBERS:
            return first
        if first.outcome is Outcome.NOT_EXERCISED and first.difference and not values:
            first = self._run_both(_How(first=True))
        if first.outcome is Outcome.DIFFERS and (first.max_rel is None or _differs_plainly(first)):
            return first
        if first.evidence is Evidence.PROGRAM:
            # Where the programs are the same but for checkpoints, XLA may round differently for
            # these.
            executed = all_of(self._ran)
            return replace(first, outcome=Outcome.EQUAL, detail="", executed=executed)
        verdict = self._run_both(_How())
        if first.dropped and not verdict.outcome.is_wrong:
            verdict = replace(verdict, outcome=Outcome.DIFFERS, detail=first.dropped, evidence=None)
        return replace(verdict, difference=first.difference)

    def _fails_before(self, verdict: Verdict) -> Verdict | None:
        """Return the verdict if the old code, with its checkpoints in place, fails like the new."""
        task = self._sides.task
        if verdict.outcome is not Outcome.FAILS_AFTER or task.before == task.after:
            return None
        for how in (_How(first=True), _How()):
            written = self._run_both(how, self._sides.written)
            if written.outcome is Outcome.FAILS_AFTER:
                detail = f"with its checkpoints, the old code fails, too: {written.detail}"
                return replace(written, outcome=Outcome.FAILS_BEFORE, detail=detail)
        return None

    def _run_both(self, how: _How, new_side: Worker | None = None) -> Verdict:
        """Run both sides and compare."""
        sides = self._sides
        worker = new_side or sides.after
        old, new = sides.folder("before"), sides.folder("after")
        after_run = sides.pool.submit(self._evaluated, worker, new, how)
        before = self._evaluated(sides.before, old, how)
        after = after_run.result()
        if before.said("needs_constants") and not after.said("needs_constants"):
            if not how.constants:
                return self._run_both(how._replace(constants=True), new_side)
        if before.lacks:
            return Verdict(self._unit, Outcome.NOT_EXERCISED, detail=before.lacks)
        if before.failure:
            return self._verdict(Outcome.FAILS_BEFORE, before.failure, before.error)
        only_after = sides.fails_only_after(self._unit)
        if only_after and new_side is None:
            return replace(self._verdict(Outcome.FAILS_AFTER, only_after), calls=1)
        if after.failure:
            for form in OTHER_FORMS:
                moved = sides.folder("after")
                again = self._evaluated(worker, moved, how, form)
                if not again.failure:
                    after, new = again, moved
                    break
        if refusal := self._of_stand_in(after.error):
            return refusal
        if after.reply is None:
            return replace(self._verdict(Outcome.FAILS_AFTER, after.failure, after.error), calls=1)
        shapes = tuple(before.said("shapes", ()))
        if differs := _settings_differ(before, after) or _habits_differ(before, after):
            return Verdict(self._unit, Outcome.DIFFERS, calls=1, detail=differs, shapes=shapes)
        verdict = replace(
            self._decided(how, old, new),
            shapes=shapes,
            takes_others=bool(after.failure) and not after.said("fits"),
            keeps_data=bool(before.said("keeps_data") or after.said("keeps_data")),
        )
        if new_side is None:
            self._ran.append((before.executed, after.executed))
        if verdict.outcome is not Outcome.EQUAL:
            return verdict
        if verdict.returns_nothing and before.said("configures"):
            detail = "its settings were compared"
            verdict = replace(verdict, returns_nothing=False, detail=detail, evidence=None)
        return replace(verdict, executed=all_of(self._ran))

    def _decided(self, how: _How, old: str, new: str) -> Verdict:
        """Compare, and say nothing about the new code if the old code differs from itself."""
        verdict = self._of_results(old, new)
        if verdict.outcome is not Outcome.DIFFERS:
            return verdict
        if how.first and verdict.max_rel is not None and not _differs_plainly(verdict):
            return verdict
        again = self._sides.folder("again")
        if not self._evaluated(self._sides.before, again, how._replace(seed=1)).reply:
            return verdict
        itself = self._of_results(old, again)
        if itself.outcome is not Outcome.DIFFERS:
            return verdict
        detail = f"the old code's own results vary from run to run: {itself.detail}"
        return replace(verdict, outcome=Outcome.NOT_EXERCISED, detail=detail)

    def _evaluated(self, worker: Worker, folder: str, how: _How, form: str = "") -> _Evaluated:
        sides, unit = self._sides, self._unit
        try:
            reply = sides.ask(
                worker,
                unit,
                "evaluate",
                cases=self._cases,
                folder=folder,
                how=how._asdict(),
                form=form,
                names=sides.shared_names,
            )
        except ChannelSpoiled as error:
            raise _Refused(f"it {error}") from error
        except WorkerEnded as error:
            return _Evaluated(f"it {error}")
        if refusal := reply["refused"]:
            raise _Refused(refusal)
        lacks = needed(reply)
        if "missing" in reply:
            return _Evaluated(reply["missing"], lacks=lacks)
        if "error" in reply:
            return _Evaluated(headline(reply["error"]), reply["error"], lacks)
        executed = sides.executed(worker, reply)
        if not (failure := reply["failure"]):
            return _Evaluated(executed=executed, reply=reply)
        return _Evaluated(headline(failure), failure, lacks, executed, reply)

    def _of_results(self, old: str, new: str) -> Verdict:
        """Return the verdict on the results in two folders."""
        sides = self._sides
        try:
            reply = sides.after.ask(
                do="compare", before=old, after=new, tolerances=dict(sides.task.options.tolerance)
            )
        except WorkerEnded as error:
            # The code under test may still run there.
            detail = f"its results cannot be compared: the process {error}"
            return Verdict(self._unit, Outcome.NOT_EXERCISED, detail=detail)
        if "error" in reply:
            detail = f"its results cannot be compared: {headline(reply['error'])}"
            return self._verdict(Outcome.NOT_EXERCISED, detail, reply["error"])
        if refusal := self._of_stand_in(reply["failure"]):
            return refusal
        outcome, detail = Outcome(reply["verdict"]), reply["detail"]
        evidence = Evidence.NUMBERS if outcome is Outcome.EQUAL else None
        returns_nothing = reply["returns_nothing"]
        if reply["program"] == "same":
            if returns_nothing:
                # Then the programs are those of what edited checkpoints return.
                evidence, returns_nothing, detail = Evidence.PROGRAM, False, ""
            elif outcome is Outcome.EQUAL:
                evidence = Evidence.BOTH
            elif reply["only_numbers_differ"]:
                evidence = Evidence.PROGRAM
                if outcome is Outcome.NOT_EXERCISED:  # nothing could be computed
                    outcome, detail = Outcome.EQUAL, ""
        return replace(
            self._verdict(outcome, detail, reply["failure"]),
            calls=1,
            max_abs=reply["max_abs"],
            max_rel=reply["max_rel"],
            evidence=evidence,
            difference=sides.translate(reply["difference"]),
            returns_nothing=returns_nothing,
            dropped=sides.translate(reply["dropped"]),
        )

    def _of_stand_in(self, error: Mapping[str, Any] | None) -> Verdict | None:
        """Return the verdict if new code fails because of a made-up function or object."""
        if not error or not error["in_stand_in"]:
            return None
        detail = f"JAX takes no function that is made up: {headline(error)}"
        return self._verdict(Outcome.NOT_EXERCISED, detail)

    def _verdict(
        self, outcome: Outcome, detail: str, error: Mapping[str, Any] | None = None
    ) -> Verdict:
        """Return a verdict with the user's paths in its texts."""
        translate = self._sides.translate
        trace = translate(error["traceback"]) if error else ""
        return Verdict(self._unit, outcome, detail=translate(detail), traceback=trace)
