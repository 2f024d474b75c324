"""Read the events that the processes of a run recorded. Needs only numpy."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Set, Tuple

import numpy as np

from . import fingerprint

Key = Tuple[Tuple[str, str], ...]

# An input this much smaller than another may be pure rounding: a bias without a gradient.
ROUNDING = 1e-6


class Call:
    """A recorded call.

    Attributes:
        process: which of the run's processes made it, counted from 0.
        thread: which thread of that process.
        traced: the number of its trace, None if nothing in it was traced.
        inputs, outputs: paths with fingerprints, in the order of the paths.
        raised: the exception that ended it, as `failures.describe` gives it.
        case: the file with its inputs, if they were saved.
        test: the pytest test that made it, if one did.
        case_error: why they were not.
        key: what calls with comparable inputs have in common.
        values, scales: features of the inputs and what they are relative to, see `distances`.
    """

    def __init__(self, line: Dict[str, Any], process: int, folder: str) -> None:
        self.process = process
        self.thread: int = line["thread"]
        self.traced: Optional[int] = line["traced"]
        # Sorted by path, because JAX sorts the keys of a traced dict.
        self.inputs: List[Any] = sorted(line["in"], key=_path)
        self.outputs: List[Any] = sorted(line["out"], key=_path)
        self.raised: Optional[Dict[str, Any]] = line["raised"]
        self.case = os.path.join(folder, *line["case"].split("/")) if line.get("case") else None
        self.test: str = line.get("test", "")
        self.case_error: str = line.get("case_error", "")
        described = [(path, _features(leaf)) for path, leaf in self.inputs]
        self.key: Key = tuple((path, kind) for path, (kind, _, _) in described)
        self.values = np.array([v for _, (_, own, _) in described for v in own], float)
        floats = [_is_float(leaf) for _, leaf in self.inputs]
        scales = [s for _, (_, _, s) in described]
        least = ROUNDING * max([s for s, known in zip(scales, floats) if known] or [0.0])
        scales = [max(s, least) if known else s for s, known in zip(scales, floats)]
        self.scales = np.array(
            [s for s, (_, (_, own, _)) in zip(scales, described) for _ in own], float
        )

    @property
    def is_abstract(self) -> bool:
        """Return whether some input is known only by shape and dtype."""
        return any(leaf[0] == "traced" for _, leaf in self.inputs)

    def flags(self) -> str:
        """Return the Python bools among its arguments: `is_training=True`."""
        found = [
            "{}={}".format(path, leaf[2])
            for path, leaf in self.inputs
            if leaf[0] == "number" and leaf[1] == "bool" and not path.startswith("context[")
        ]
        return ", ".join(found[:4])


class UnitCalls:
    """The calls of a unit in a run, in the order in which they were written.

    Attributes:
        total: how often it was called.
        is_cut: whether there were calls that are not recorded.
    """

    def __init__(self) -> None:
        self.calls: List[Call] = []
        self.total = 0
        self.is_cut = False

    @property
    def is_sequence(self) -> bool:
        """Return whether the calls are ordered: one thread made them, and JAX traced none."""
        places = {(call.process, call.thread) for call in self.calls}
        return len(places) <= 1 and all(call.traced is None for call in self.calls)


class Run:
    """Everything recorded below a folder, except for lines that were cut off with a process."""

    def __init__(self, folder: str) -> None:
        self.units: Dict[str, UnitCalls] = {}
        self.notes: Dict[str, List[str]] = {}
        self.dtypes: Set[str] = set()
        processes = []
        for name in sorted(os.listdir(folder) if os.path.isdir(folder) else ()):
            lines = _lines(os.path.join(folder, name, "events.jsonl"))
            if lines:
                processes.append((lines[0].get("time", 0.0), name, lines))
        processes.sort(key=lambda each: each[:2])
        for number, (_, name, lines) in enumerate(processes):
            self._read(lines, number, os.path.join(folder, name))

    def calls(self, unit: str) -> UnitCalls:
        """Return the calls of a unit."""
        return self.units.get(unit) or UnitCalls()

    def _read(self, lines: List[Dict[str, Any]], process: int, folder: str) -> None:
        for line in lines:
            if line["kind"] == "call":
                calls = self.units.setdefault(line["unit"], UnitCalls())
                calls.calls.append(Call(line, process, folder))
                for _, leaf in line["in"] + line["out"]:
                    if leaf[0] in ("array", "traced"):
                        self.dtypes.add(leaf[1])
            elif line["kind"] == "count":
                self.units.setdefault(line["unit"], UnitCalls()).total += line["calls"]
            elif line["kind"] == "cut":
                self.units.setdefault(line["unit"], UnitCalls()).is_cut = True
            elif line["kind"] == "note":
                self.notes.setdefault(line["unit"], []).append(line["text"])


def _path(described: List[Any]) -> str:
    return str(described[0])


def _lines(path: str) -> List[Dict[str, Any]]:
    found = []
    try:
        with open(path, encoding="utf-8") as file:
            for text in file:
                try:
                    found.append(json.loads(text))
                except ValueError:
                    break
    except OSError:
        return []
    return found


def _features(leaf: Any) -> Tuple[str, List[float], float]:
    """Return the kind of an input, numbers that distinguish it within its kind, and their scale.

    A Python number, an array of numpy's and one of JAX's may be the same input: what one run calls
    directly, the other may call from a trace. Of an input seen by tracing alone, all is NaN.
    """
    leaf = fingerprint.as_array(leaf)
    if leaf[0] == "static":
        return ("function" if leaf[1].startswith(fingerprint.FUNCTION) else leaf[1]), [], 1.0
    name, shape = leaf[1], leaf[2]
    is_key = name.startswith("key<")
    kind = "key" if is_key else str(shape)
    if leaf[0] == "traced":
        return kind, [float("nan")] * (6 if is_key else 6 + _sampled(name, shape)), 1.0
    _, _, _, _, entries, sound, nans, sums, largest, samples = leaf
    count = max(entries, 1)
    scale = largest or 1.0
    own = [scale * sound / count, scale * nans / count]
    own += [sums[0] / count, sums[1] / count, (sums[2] / count) ** 0.5, sums[3] / count]
    if not is_key:
        own += [value if abs(value) < float("inf") else 0.0 for value in samples]
    return kind, own, scale


def _is_float(leaf: Any) -> bool:
    is_static = leaf[0] == "static"
    return not is_static and leaf[1].startswith(("float", "bfloat", "complex"))


def _sampled(name: str, shape: List[Any]) -> int:
    """Return how many entries of an array are kept."""
    size = 1
    for length in shape:
        size *= length if isinstance(length, int) else 1
    return len(fingerprint.places(size)) * (2 if name.startswith("complex") else 1)
