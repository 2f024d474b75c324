"""The data of verification: units, verdicts, proofs."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# A unit without its line, which may move.
UnitKey = tuple[Path, str]


class Outcome(enum.StrEnum):
    """The result of comparing a unit.

    EQUAL: the same program. CLOSE: the same
    numbers from other programs. DIFFERS: something is not the same. FAILS_AFTER: the new code fails
    where the old code runs. FAILS_BEFORE: the old code fails. NOT_EXERCISED: nothing ran.
    """

    EQUAL = "equal"
    CLOSE = "close"
    DIFFERS = "differs"
    FAILS_AFTER = "fails-after"
    FAILS_BEFORE = "fails-before"
    NOT_EXERCISED = "not-exercised"

    @property
    def is_wrong(self) -> bool:
        """Whether a fix with this outcome is reverted."""
        return self in (Outcome.DIFFERS, Outcome.FAILS_AFTER)


class Inputs(enum.StrEnum):
    """The origin of inputs: the user's cases, a run of their command, the signature."""

    DECLARED = "declared"
    RECORDED = "recorded"
    MADE = "made"


class Evidence(enum.StrEnum):
    """What an equal or close verdict rests on.

    PROGRAM: both sides are the same program, for all values of the arguments. NUMBERS: both sides
    compute the same numbers. BOTH: both of these.
    """

    PROGRAM = "program"
    NUMBERS = "numbers"
    BOTH = "both"


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A piece of code that an edit changed: a statement without its blocks, or an expression.

    Attributes:
        line: where its syntax tree starts, from 1.
        column: in bytes, from 0.
        end_line: where it ends, its blocks included.
        end_column: in bytes, from 0.
        first: the first line of the piece, decorators included.
        last: its last line, blocks excluded.
        is_expression: whether it is an expression that its statement evaluates only sometimes.
        at_import: whether importing the module runs it.
        text: of a decision of Python, what decides.
        outcomes: its outcomes; empty for other pieces.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    first: int
    last: int
    is_expression: bool = False
    at_import: bool = False
    text: str = ""
    outcomes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Executed:
    """What a run on one side executed of the edited code.

    Attributes:
        ran: the pieces that ran, with their files.
        created: the checkpoints that pieces applied: file, piece, and what is wrapped.
        called: those that were called afterwards.
        decided: the outcomes of decisions, by their index.
    """

    ran: frozenset[tuple[Path, Spot]] = frozenset()
    created: frozenset[tuple[Path, Spot, str]] = frozenset()
    called: frozenset[tuple[Path, Spot, str]] = frozenset()
    decided: frozenset[tuple[Path, Spot, int]] = frozenset()

    def __or__(self, other: Executed) -> Executed:
        """Return what one of two runs executed."""
        return Executed(
            self.ran | other.ran,
            self.created | other.created,
            self.called | other.called,
            self.decided | other.decided,
        )


# Before and after.
BothExecuted = tuple[Executed, Executed]


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """The outermost function, or method of a class, around a change.

    Attributes:
        path: the file, in the user's tree.
        qualname: `block`, `Net.__call__`; empty for the module itself.
        module: the dotted name of its module, None if the file's name is not a module name.
        search: the folders on `sys.path` that importing it requires.
        line: the line of its definition, from 1.
        is_text: whether the unit is a file that is not Python.
        before: the pieces of its old version that were edited; empty for a unit that was not.
        after: the pieces of its new version that were edited.
        edited: the "names" and "constants" of decisions and arithmetic that one version lacks.
        uses: the edited units that it calls or reads, if it is compared for their sake.
    """

    path: Path
    qualname: str
    module: str | None = None
    search: tuple[Path, ...] = ()
    line: int = 1
    is_text: bool = False
    before: tuple[Spot, ...] = field(default=(), compare=False, repr=False)
    after: tuple[Spot, ...] = field(default=(), compare=False, repr=False)
    edited: Mapping[str, Sequence[Any]] = field(default_factory=dict, compare=False, repr=False)
    uses: tuple[UnitKey, ...] = field(default=(), compare=False, repr=False)

    @property
    def key(self) -> UnitKey:
        """The unit's identity, independent of its line."""
        return self.path, self.qualname

    @property
    def is_redefined(self) -> bool:
        """Whether its signature, a decorator, or the value that its name is bound to was edited."""
        return any(spot.at_import for spot in (*self.before, *self.after))

    @property
    def name(self) -> str:
        """Its dotted name: `trainer.blocks.attention_block`."""
        module = self.module or self.path.name
        return f"{module}.{self.qualname}" if self.qualname else module


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one unit.

    Attributes:
        unit: the unit.
        outcome: the result of the comparison.
        inputs: the origin of the inputs; None if nothing ran.
        calls: how many cases were compared.
        max_abs: the largest absolute difference of an entry; None if nothing was compared.
        max_rel: the largest difference relative to the largest entry of its array.
        detail: one line: where it differs, which error, why nothing ran.
        evidence: what the verdict rests on; None unless it is equal or close.
        shapes: the arrays of the first case: `x: float32[2,4,8]`.
        substituted: names that the environment lacks and what stands in for them.
        traceback: where the code under test raised, with the user's paths.
        executed: the edited code that ran in the project, where results were the same.
        through: the units whose runs exercised this one, if its own did not.
        difference: the first value that differs, where both sides are not the same program.
        returns_nothing: whether the unit returns no values, so that what it calls is not compared.
        takes_others: whether the new code refuses the arguments: its parameters are others.
        keeps_data: whether a call leaves something for the next in the data of the module.
        dropped: how what its edited checkpoints return differs, where both sides are the same
            program in all else.
    """

    unit: Unit
    outcome: Outcome
    inputs: Inputs | None = None
    calls: int = 0
    max_abs: float | None = None
    max_rel: float | None = None
    detail: str = ""
    evidence: Evidence | None = None
    shapes: tuple[str, ...] = ()
    substituted: tuple[str, ...] = ()
    traceback: str = ""
    executed: BothExecuted | None = field(default=None, compare=False, repr=False)
    through: tuple[str, ...] = ()
    difference: str = ""
    returns_nothing: bool = field(default=False, compare=False, repr=False)
    takes_others: bool = field(default=False, compare=False, repr=False)
    keeps_data: bool = field(default=False, compare=False, repr=False)
    dropped: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CommandRuns:
    """The two runs of the user's command.

    Attributes:
        command: the command line.
        before: the exit status before, None if the command was stopped.
        after: the exit status after.
        wrong: how the two runs differ, empty if they do not.
        seconds: wall time of each.
        calls: how many calls of units were recorded, as cases.
    """

    command: str
    before: int | None
    after: int | None
    wrong: str = ""
    seconds: tuple[float, float] = (0.0, 0.0)
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """All verdicts of a run.

    Attributes:
        verdicts: one for each unit that changed.
        notes: remarks, such as units that are new or were renamed.
        command: the runs of the user's command, if there is one.
        jax: the versions of JAX before and after.
        left: how many units were not decided because the run was interrupted.
        interrupted: the signal that interrupted the run, 0 if none did.
    """

    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    command: CommandRuns | None = None
    jax: tuple[str, str] = ("", "")
    left: int = 0
    interrupted: int = 0

    @property
    def wrong(self) -> tuple[Verdict, ...]:
        """The verdicts that a fix is wrong."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome.is_wrong)

    @property
    def unproved(self) -> tuple[Verdict, ...]:
        """The verdicts on code that could not be compared."""
        outcomes = (Outcome.CLOSE, Outcome.FAILS_BEFORE, Outcome.NOT_EXERCISED)
        return tuple(v for v in self.verdicts if v.outcome in outcomes and not v.unit.is_text)

    @property
    def by_unit(self) -> Mapping[UnitKey, Verdict]:
        """The verdicts by the keys of their units."""
        return {verdict.unit.key: verdict for verdict in self.verdicts}
