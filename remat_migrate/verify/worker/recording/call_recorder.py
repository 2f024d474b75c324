"""One call of a unit: its inputs, its outputs, and the inputs as a case."""

from __future__ import annotations

import inspect
import json
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np

from ..failures import describe
from ..frameworks import pure_functions
from ..transfer import pickling
from ..transfer.placeholders import HostArray, Slot
from . import traversal
from .event_log import EventLog, main_module
from .fingerprint import Fingerprint, bits, key_kind, of_array, of_leaf, of_tracer

Described = List[Tuple[str, Union[Fingerprint, Slot]]]


class UnitSignature:
    """A unit's signature, read when it is first called.

    `bound`: how many arguments, such as the class of a class method, the call gets besides those
    that a caller of the unit gives.
    """

    def __init__(self, function: Any, bound: int = 0) -> None:
        self.function = function
        self.bound = bound
        self._signature: Any = False

    def named(self, args: Any, kwargs: Dict[str, Any]) -> Dict[str, Any]:
        """Return arguments by the names of their parameters, with defaults.

        A migration passes by position what was passed by keyword, or writes out a default.
        """
        if self._signature is False:
            try:
                self._signature = inspect.signature(self.function)
            except (TypeError, ValueError, NameError):
                self._signature = None
        if self._signature is not None:
            try:
                bound = self._signature.bind(*args, **kwargs)
            except TypeError:  # the call raises it again
                return {"args": args, **kwargs}
            bound.apply_defaults()
            return dict(bound.arguments)
        return {"args": args, **kwargs}


class CallRecorder:
    """A call in progress. Inputs are read at its start: the call may change or donate them."""

    def __init__(
        self, log: EventLog, identity: str, unit: UnitSignature, args: Any, kwargs: Dict[str, Any]
    ) -> None:
        self.log = log
        self.identity = identity
        self.tracers: List[Any] = []
        self.abstract: List[Fingerprint] = []
        self._slots: Dict[int, Slot] = {}
        self.about: Dict[str, Any] = {}
        self.template: Any = None
        context = pure_functions.capture(args, kwargs)
        self.inputs: Described = []
        for name, value in unit.named(args, kwargs).items():
            self.inputs += self._described(value, name)
        if context is not None:
            self.inputs += self._described(context, "context")
        self._save({"args": args[unit.bound :], "kwargs": kwargs, "context": context})

    def raised(self, error: BaseException) -> None:
        """Record that the call failed; traced inputs are known only by shape and dtype."""
        self._abstract([], describe(error))

    def returned(self, result: Any) -> None:
        """Record what the call returned; traced values are written each time the program runs."""
        outputs = self._described(result, "")
        if not self.tracers:
            self._write(self.inputs, outputs, self.about, None)
            return
        trace = self.log.trace(self.identity)
        try:
            self._stage(trace, outputs)
        except Exception as error:
            self.log.note(self.identity, "no callback is possible here: {!r}".format(error)[:1000])
            self._abstract(outputs, None, trace)

    def _described(self, value: Any, path: str) -> Described:
        found: Described = []
        for leaf in traversal.leaves(value, path):
            if traversal.is_tracer(leaf.value):
                found.append((leaf.path, self._slot(leaf)))
            elif not (leaf.state and isinstance(leaf.value, float)):  # floats in objects are clocks
                found.append((leaf.path, of_leaf(leaf.value)))
        return found

    def _slot(self, leaf: traversal.Leaf) -> Union[Slot, Fingerprint]:
        tracer = leaf.value
        if leaf.state or not hasattr(tracer, "dtype"):
            # An object may hold tracers of a finished trace; references have no dtype.
            return of_tracer(tracer)
        if id(tracer) not in self._slots:
            self._slots[id(tracer)] = Slot(len(self.tracers))
            self.tracers.append(tracer)
            self.abstract.append(of_tracer(tracer))
        return self._slots[id(tracer)]

    def _save(self, case: Any) -> None:
        if self.log.has_all_cases(self.identity):
            return
        if not self.tracers:
            size = sum(_size(leaf.value) for leaf in traversal.leaves(case, ""))
            self.about = _saved(self.log, self.identity, self._signature(), size, lambda: case)
            return
        try:
            self.template = traversal.replaced(case, self._kept)
        except Exception as error:  # copying runs code of the program's classes
            self.about = {"case_error": "the call cannot be copied: {!r}".format(error)[:500]}

    def _kept(self, value: Any) -> Any:
        """Return a leaf in the form that is kept until the program runs."""
        if traversal.is_tracer(value):
            return self._slots.get(id(value), Slot(None))
        if not traversal.is_array(value):
            return value
        if not isinstance(value, (np.ndarray, np.generic)):
            return HostArray(bits(value), bool(getattr(value, "weak_type", False)), key_kind(value))
        return value.copy()

    def _signature(self) -> Tuple[str, str]:
        """Return what distinguishes calls: structure, shapes, static values; and numbers."""
        coarse: List[Any] = []
        numbers: List[Any] = []
        for path, leaf in self.inputs:
            about = self.abstract[leaf.number or 0] if isinstance(leaf, Slot) else leaf
            if about[0] == "number" and about[1] != "bool":
                coarse.append([path, about[1]])
                numbers.append(about[2])
            elif about[0] in ("array", "traced"):
                coarse.append([path, about[1], about[2]])
            else:
                coarse.append([path, about])
        return json.dumps(coarse), json.dumps(numbers)

    def _stage(self, trace: int, outputs: Described) -> None:
        from . import callbacks, retracing

        retracing.watch()
        log, identity, about, template = self.log, self.identity, self.about, self.template
        inputs, signature = self.inputs, self._signature()

        def sink(known: List[callbacks.Value]) -> callbacks.Sink:
            # Do not keep the tracers alive: this lives as long as the compiled program.
            def receive(values: List[Any]) -> None:
                if log.leaves_out(identity):
                    if log.give_up(retracing.compiling_seconds()):
                        retracing.trace_again()
                    return
                with log.timed():
                    write(values)

            def write(values: List[Any]) -> None:
                seen = [of_array(x, k.weak, k.dtype) for x, k in zip(values, known)]
                noted = about
                if template is not None:
                    size = sum(value.nbytes for value in values)
                    restored = [HostArray(x, k.weak, k.key) for x, k in zip(values, known)]
                    noted = _saved(
                        log, identity, signature, size, lambda: _filled(template, restored)
                    )
                event = _event(_with(inputs, seen), _with(outputs, seen), noted, trace)
                log.call(identity, event, once=True)

            return callbacks.Sink(
                receive,
                lambda calls: log.leaves_out(identity, calls),
                lambda error: log.note(identity, "in a callback: {!r}".format(error)[:1000]),
            )

        callbacks.stage(self.tracers, sink)

    def _abstract(
        self, outputs: Described, raised: Optional[Dict[str, Any]], trace: Optional[int] = None
    ) -> None:
        inputs, outputs = _with(self.inputs, self.abstract), _with(outputs, self.abstract)
        self._write(inputs, outputs, {"raised": raised, **self.about}, trace)

    def _write(
        self, inputs: Described, outputs: Described, about: Dict[str, Any], trace: Optional[int]
    ) -> None:
        self.log.call(self.identity, _event(inputs, outputs, about, trace), once=False)


def _event(
    inputs: Described, outputs: Described, about: Dict[str, Any], trace: Optional[int]
) -> Dict[str, Any]:
    return {"traced": trace, "in": inputs, "out": outputs, "raised": None, **about}


def _with(described: Described, seen: List[Fingerprint]) -> Described:
    """Return the leaves with their slots replaced by what is known of the values."""
    return [
        (path, seen[leaf.number or 0] if isinstance(leaf, Slot) else leaf)
        for path, leaf in described
    ]


def _filled(template: Any, restored: List[HostArray]) -> Any:
    def fill(value: Any) -> Any:
        if not isinstance(value, Slot):
            return value
        if value.number is None:
            raise pickling.CannotSave("a traced value in the state of an object")
        return restored[value.number]

    return traversal.replaced(template, fill)


def _saved(
    log: EventLog,
    identity: str,
    signature: Tuple[str, str],
    size: int,
    case: Callable[[], Any],
) -> Dict[str, Any]:
    """Save a case if it is wanted; what the event says about it."""
    path = log.case_file(identity, signature, size)
    if path is None:
        return {}
    try:
        pickling.save(case(), path, main=main_module())
    except Exception as error:  # CannotSave, a full disk, or an error in the program's classes
        log.not_saved(identity, size)
        return {"case_error": str(error) or type(error).__name__}
    return {"case": log.relative(path)}


def _size(value: Any) -> int:
    return int(getattr(value, "nbytes", 0)) if traversal.is_array(value) else 0
