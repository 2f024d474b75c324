"""What verification compares and what it says: units, verdicts, proofs."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class Outcome(enum.StrEnum):
    """What came of a comparison.

    EQUAL: the same structure, shapes, types, values and gradients. DIFFERS: not so. FAILS_AFTER:
    the new code fails where the old one ran. FAILS_BEFORE: the old one fails. NOT_EXERCISED:
    nothing ran.
    """

    EQUAL = "equal"
    DIFFERS = "differs"
    FAILS_AFTER = "fails-after"
    FAILS_BEFORE = "fails-before"
    NOT_EXERCISED = "not-exercised"

    @property
    def is_wrong(self) -> bool:
        """Whether a fix with this outcome is taken back."""
        return self in (Outcome.DIFFERS, Outcome.FAILS_AFTER)


class Inputs(enum.StrEnum):
    """Where the inputs came from: the user's cases, a run of their command, the signature."""

    DECLARED = "declared"
    RECORDED = "recorded"
    MADE = "made"


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """The outermost function, or method of a class, around a change.

    Attributes:
        path: the file, in the user's tree.
        qualname: `block`, `Net.__call__`; empty for the module itself.
        module: its dotted name, None for a file whose name is none.
        search: the folders from which it and what it imports are imported.
        line: where it is defined now, counted from 1.
        is_text: whether it stands for a file that is not Python.
    """

    path: Path
    qualname: str
    module: str | None = None
    search: tuple[Path, ...] = ()
    line: int = 1
    is_text: bool = False

    @property
    def key(self) -> tuple[Path, str]:
        """What names the unit whatever the line it has moved to."""
        return self.path, self.qualname

    @property
    def name(self) -> str:
        """Its dotted name: `trainer.blocks.attention_block`."""
        module = self.module or self.path.name
        return f"{module}.{self.qualname}" if self.qualname else module


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about one unit.

    Attributes:
        unit: which.
        outcome: the verdict proper.
        inputs: what it rests on; None where nothing ran.
        calls: how many calls were compared.
        max_abs: the largest absolute difference of an entry, None where nothing was compared.
        max_rel: the largest difference relative to the largest entry of its array.
        detail: one line more: where it differs, which error, why nothing ran.
        failure: how the new code failed, where it did.
    """

    unit: Unit
    outcome: Outcome
    inputs: Inputs | None = None
    calls: int = 0
    max_abs: float | None = None
    max_rel: float | None = None
    detail: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of the code under test.

    Attributes:
        type: the qualified name of its class.
        message: its text, with the user's own paths.
        arguments: the arguments whose values Python needed, where JAX says so.
        function: the function whose arguments they are.
        place: the file and line of that function.
    """

    type: str
    message: str
    arguments: tuple[str, ...] = ()
    function: str = ""
    place: tuple[Path, int] | None = None


@dataclass(frozen=True, slots=True)
class CommandRuns:
    """How the user's command ended before and after.

    Attributes:
        command: the command line.
        before: the exit status before, None where it was stopped.
        after: the exit status after.
        wrong: why the two are not alike, empty where they are.
        seconds: wall time of each.
        calls: how many calls of units were recorded.
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
        notes: what there is to say besides, such as units that are new or were renamed.
        command: how the user's command went, where there is one.
        jax: the versions of JAX before and after.
    """

    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    command: CommandRuns | None = None
    jax: tuple[str, str] = ("", "")

    @property
    def wrong(self) -> tuple[Verdict, ...]:
        """The verdicts that say that a fix is wrong."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome.is_wrong)

    @property
    def by_unit(self) -> Mapping[tuple[Path, str], Verdict]:
        """Each verdict under the key of its unit."""
        return {verdict.unit.key: verdict for verdict in self.verdicts}
