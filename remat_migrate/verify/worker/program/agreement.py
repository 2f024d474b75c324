"""Compare the programs that the two sides have written, and find the first value that differs."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..failures import headline

FILE = "programs.json"
SAME, DIFFERS, FAILS, UNKNOWN = "same", "differs", "fails", ""

_KINDS = {"forward": "", "vjp": " of the gradient", "jvp": " of the forward-mode derivative"}

Traced = Dict[str, Any]
Returned = Sequence[Tuple[str, str]]


class Agreement(NamedTuple):
    """Whether both sides are the same program.

    Attributes:
        state: SAME; DIFFERS; FAILS where only the new code does, as it is written; UNKNOWN where a
            side cannot be traced or compared.
        detail: what differs, or why nothing is known.
        is_dropped: whether only values differ that edited checkpoints return, and nothing uses.
        failure: how the new code fails, see `failures.describe`.
    """

    state: str
    detail: str = ""
    is_dropped: bool = False
    failure: Optional[Dict[str, Any]] = None


def save(folder: str, traced: Dict[str, Traced]) -> None:
    """Write the programs of a unit, by the label of the call."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, FILE), "w") as file:
        json.dump(traced, file)


def agreement(before: str, after: str) -> Agreement:
    """Compare the programs in two result folders."""
    old, new = _read(before), _read(after)
    if old is None or new is None:
        return Agreement(UNKNOWN)
    if old.keys() != new.keys():
        return Agreement(DIFFERS, "it is called in other ways")
    found = [_call(old[label], new[label], label and " of %s" % label) for label in sorted(old)]
    for state in (DIFFERS, FAILS, UNKNOWN):
        for one in found:
            if one.state == state:
                return one
    return Agreement(SAME if found else UNKNOWN)


def _read(folder: str) -> Optional[Dict[str, Traced]]:
    try:
        with open(os.path.join(folder, FILE)) as file:
            read: Dict[str, Traced] = json.load(file)
    except FileNotFoundError:
        return None
    return read


def _call(old: Traced, new: Traced, where: str) -> Agreement:
    found = _forward(old, new, where)
    if found.state != SAME and not found.is_dropped:
        return found
    derivatives = [program for kind, program in old["programs"].items() if kind != "forward"]
    if derivatives and old["programs"]["forward"].get("custom"):
        if all("error" in program for program in derivatives):
            detail = headline(derivatives[0]["error"])
            return Agreement(UNKNOWN, "its rules for derivatives cannot be traced: " + detail)
    for kind, before in old["programs"].items():
        after = new["programs"].get(kind)
        if after is None:
            return Agreement(UNKNOWN, "only one side has rules for derivatives")
        if "error" in before:
            continue  # nothing to preserve
        if "error" in after:
            detail = "the program%s%s fails: %s" % (_KINDS[kind], where, headline(after["error"]))
            return Agreement(DIFFERS, detail)
        if "opaque" in before or "opaque" in after:
            if kind != "jvp" and found.state == SAME:
                found = Agreement(UNKNOWN, before.get("opaque") or after["opaque"])
        elif before["types"] != after["types"] or before["outputs"] != after["outputs"]:
            detail = _first_difference(before, after)
            return Agreement(DIFFERS, "%s in the program%s%s" % (detail, _KINDS[kind], where))
    if new["programs"].keys() - old["programs"].keys():
        return Agreement(UNKNOWN, "only one side has rules for derivatives")
    traced = any(_is_traced(side["programs"]["forward"]) for side in (old, new))
    if old.get("has_arguments") and not traced:
        # Other arguments may give other results, of which no program tells.
        return Agreement(UNKNOWN, "its result is computed in Python")
    return found


def _forward(old: Traced, new: Traced, where: str) -> Agreement:
    """Compare what is known of the forward programs besides what they compute."""
    if new.get("concrete") and not old.get("concrete"):
        detail = headline(new["concrete"]) + " under jax.jit" + where
        return Agreement(FAILS, detail, failure=new["concrete"])
    before, after = old["programs"]["forward"], new["programs"]["forward"]
    if failure := before.get("error") or after.get("error"):
        return Agreement(UNKNOWN, "it cannot be traced: " + headline(failure))
    if old["result"] != new["result"]:
        return Agreement(DIFFERS, "the result%s has another structure or type" % where)
    if "array" not in old["result"] and not (before.get("returned") and after.get("returned")):
        return Agreement(UNKNOWN, "it returns no arrays")
    if failure := after.get("fails"):
        if "fails" in before:
            return Agreement(UNKNOWN, "both sides fail as they are written: " + headline(failure))
        return Agreement(FAILS, headline(failure) + " under jax.jit" + where, failure=failure)
    if set(after.get("donated", ())) - set(before.get("donated", ())):
        return Agreement(DIFFERS, "an argument is donated%s, which deletes the caller's" % where)
    separate = before.get("shared", ())
    if any(now < then for then, now in zip(separate, after.get("shared", ()))):
        # Donating one deletes the other.
        return Agreement(UNKNOWN, "results share an array that were separate" + where)
    return _returned(before, after, where)


def _is_traced(program: Traced) -> bool:
    """Return whether a program computes something, or returns an argument."""
    given = any(number.startswith("input ") for number in program.get("outputs", ()))
    return given or "opaque" in program or bool(program.get("values"))


def _returned(old: Traced, new: Traced, where: str) -> Agreement:
    """Compare what the edited checkpoints return, of which the results may depend on nothing.

    A right migration may remove a checkpoint, or wrap more or less than before: then what one side
    returns, the other computes as well.
    """
    theirs, ours = old.get("returned", ()), new.get("returned", ())
    gone, come = _alone(theirs, ours, new), _alone(ours, theirs, old)
    is_other = bool(gone or come) if len(theirs) == len(ours) else bool(gone and come)
    if theirs and ours and is_other:
        detail = "the checkpoint of %s returns other values%s" % ((come or gone)[0], where)
        return Agreement(DIFFERS, detail, is_dropped=True)
    return Agreement(SAME)


def _alone(returned: Returned, others: Returned, program: Traced) -> List[str]:
    """Return the checkpoints that return values which the other side's program does not compute."""
    known = {*program.get("values", ()), *program.get("given", ()), *(n for _, n in others)}
    return [checkpoint for checkpoint, number in returned if number not in known]


def _first_difference(old: Traced, new: Traced) -> str:
    """Describe the first value that only one side computes, on each side."""
    ours, theirs = _first_own(new, old), _first_own(old, new)
    if ours is None and theirs is None:
        if old["types"] != new["types"]:
            return "the types are %s, were %s" % (_listed(new["types"]), _listed(old["types"]))
        return "other values are returned, or effects differ,"
    if ours is None:
        return "%s is gone" % theirs
    if theirs is None:
        return "%s is new" % ours
    return "the first value that differs is %s, was %s" % (ours, theirs)


def _listed(types: List[str]) -> str:
    return ", ".join(types[:4]) + (", ..." if len(types) > 4 else "")


def _first_own(program: Traced, other: Traced) -> Optional[str]:
    """Describe the first value of a program that the other lacks, or None."""
    for number, (text, place) in program["values"].items():
        if number not in other["values"]:
            return "`%s`%s" % (text, " (%s)" % place if place else "")
    return None
