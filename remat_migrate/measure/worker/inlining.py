"""Inline the calls of jitted functions in a jaxpr.

JAX traces a jitted function once. Its operations know their lines in the function, but not who
calls it, or only the first caller. They get the lines of each call.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable
from typing import Any

from .applications import marked_site
from .interception import is_library
from .internals import internals

# Lines that the user can edit (path, function, line), the innermost first.
Frames = tuple[tuple[str, str, int], ...]


def inlined(closed: Any) -> tuple[Any, tuple[Any, ...], Callable[[Any], Frames]]:
    """Return a jaxpr without calls of jitted functions and marks.

    Returns:
        The open jaxpr, whose first arguments are the constants; the values of the constants; and a
        function that returns the frames of an equation, with those of the calls around it.
    """
    opened = internals().opened(closed)
    constants, arguments = _inputs(closed)
    inliner = _Inliner(constants)
    outputs = inliner.run(opened, {}, None)
    inputs = [*inliner.constants, *arguments]
    jaxpr = internals().segment(opened, inputs, outputs, inliner.equations)
    return jaxpr, tuple(inliner.constants.values()), inliner.frames_of


def _inputs(closed: Any) -> tuple[dict[Any, Any], list[Any]]:
    """Return the variables of the constants with their values, and those of the arguments."""
    opened = internals().opened(closed)
    values = list(getattr(closed, "consts", ()))
    variables = [*opened.constvars, *opened.invars]
    return dict(zip(variables, values)), variables[len(values) :]


def _user_frames(equation: Any) -> Frames:
    return tuple(frame for frame in internals().places(equation) if not is_library(frame[0]))


def _recorded_callers(jaxpr: Any, call: Frames) -> int:
    """Return how many frames of a jitted function's operations are those of its first caller."""
    found = [frames for frames in map(_user_frames, jaxpr.eqns) if frames]
    if not call or any(frames[-1] != call[-1] for frames in found):
        return 0  # JAX 0.5 and later record none
    levels = zip(*map(reversed, found))
    return sum(1 for _ in itertools.takewhile(lambda level: len(set(level)) == 1, levels))


class _Call:
    """A call of a jitted function: its equation, its jaxpr, and the call around it, if any."""

    def __init__(self, equation: Any, jaxpr: Any, around: _Call | None) -> None:
        self._equation, self._jaxpr, self._around = equation, jaxpr, around

    @functools.cached_property
    def frames(self) -> Frames:
        """The frames of the call, with those of the calls around it."""
        return _frames(self._equation, self._around)

    @functools.cached_property
    def recorded(self) -> int:
        """How many frames of the operations are those of the first caller."""
        return _recorded_callers(self._jaxpr, _user_frames(self._equation))


def _frames(equation: Any, call: _Call | None) -> Frames:
    found = _user_frames(equation)
    return found if call is None else found[: len(found) - call.recorded] + call.frames


class _Inliner:
    """The equations so far.

    Attributes:
        constants: the values of the constants, by variable.
        equations: the equations.
    """

    def __init__(self, constants: dict[Any, Any]) -> None:
        self.constants = constants
        self.equations: list[Any] = []
        # The calls of inlined equations, by the identity of their source information.
        self._calls: dict[int, _Call] = {}

    def frames_of(self, equation: Any) -> Frames:
        """Return the frames of an equation, with those of the calls around it."""
        return _frames(equation, self._calls.get(id(equation.source_info)))

    def run(self, jaxpr: Any, names: dict[Any, Any], call: _Call | None) -> list[Any]:
        """Add the equations of a jaxpr, and return its outputs.

        Args:
            jaxpr: open jaxpr.
            names: what its variables are called, unless they keep their names.
            call: the call that it belongs to, if any.
        """

        def renamed(atom: Any) -> Any:
            return atom if internals().is_literal(atom) else names.get(atom, atom)

        for equation in jaxpr.eqns:
            inputs = [renamed(atom) for atom in equation.invars]
            if marked_site(equation) is not None:
                names.update(zip(equation.outvars, inputs))
                continue
            if internals().is_inlined_call(equation):
                _, (inner,), _ = internals().inner(equation)
                constants, arguments = _inputs(inner)
                own = dict(zip(arguments, inputs))
                for variable, value in constants.items():
                    own[variable] = copy.copy(variable)
                    self.constants[own[variable]] = value
                body = internals().opened(inner)
                outputs = self.run(body, own, _Call(equation, body, call))
                names.update(zip(equation.outvars, outputs))
                continue
            outputs, source = equation.outvars, equation.source_info
            if call is not None:
                # The jaxpr of a function is the same for each call.
                outputs = [copy.copy(variable) for variable in equation.outvars]
                names.update(zip(equation.outvars, outputs))
                source = copy.copy(source)
                self._calls[id(source)] = call
            self.equations.append(
                equation.replace(invars=inputs, outvars=outputs, source_info=source)
            )
        return [renamed(atom) for atom in jaxpr.outvars]
