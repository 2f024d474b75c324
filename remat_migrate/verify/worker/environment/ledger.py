"""What the environment lacks of what a unit's imports ask for."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, NamedTuple


class Reason(NamedTuple):
    """Why a name has a substitute.

    Attributes:
        name: the name that the code asks for: `jax.linear_util`, `torch`, `train.TABLE`.
        text: what became of it: `-> jax.extend.linear_util`, `(not installed)`.
        kind: "bridged", "missing", or "failed" for code of the project that raises on import.
    """

    name: str
    text: str
    kind: str

    def __str__(self) -> str:
        return "%s %s" % (self.name, self.text)


class _State:
    """Attributes:
    importing: how many modules of the project are being imported.
    reasons: of what the imports of the unit asked for.
    is_loaded: whether these have run.
    touched: the reasons whose stand-ins units have computed with since `begin`.
    refused: what the code may not do outside of its process, and tried since `begin`.
    """

    importing = 0
    reasons: Dict[str, Reason] = {}
    is_loaded = False
    touched: Dict[str, Reason] = {}
    refused: List[str] = []


state = _State()


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Stand-ins may be called while a module of the project is imported."""
    state.importing += 1
    try:
        yield
    finally:
        state.importing -= 1


def note(reason: Reason) -> None:
    """Record that a file of the project asked for a name that has a substitute."""
    if not state.is_loaded:
        state.reasons[reason.name] = reason


def touch(reason: Reason) -> None:
    """Record that the value of a stand-in is needed; on import, that statement alone fails."""
    if not state.importing:
        state.touched[reason.name] = reason


def begin() -> None:
    """Forget which stand-ins were computed with, and what was refused."""
    state.touched.clear()
    del state.refused[:]


def refusal() -> str:
    """Return what was refused first, as a sentence; empty if nothing was."""
    rest = "which is allowed only in declared cases, commands, and tests"
    return "it %s, %s" % (state.refused[0], rest) if state.refused else ""


def summary() -> Dict[str, Any]:
    """Return the substitutes that the unit depends on."""
    found = {**state.reasons, **state.touched}
    return {"reasons": _rows(found), "touched": _rows(state.touched), "refused": refusal()}


def _rows(reasons: Dict[str, Reason]) -> List[Dict[str, str]]:
    return [dict(reasons[name]._asdict()) for name in sorted(reasons)]
