"""Inline the calls of jitted functions in a jaxpr.

The operations of a jitted function get the line of each call, because JAX traces the function once
and records at most its first caller.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Tuple

from .applications import marked_site
from .internals import internals


def inlined(closed: Any) -> Tuple[Any, Tuple[Any, ...]]:
    """Return an open jaxpr without calls of jitted functions and marks, and its constants.

    The first arguments of the jaxpr are the constants.
    """
    opened = internals().opened(closed)
    constants, arguments = _inputs(closed)
    inliner = _Inliner(constants)
    outputs = inliner.run(opened, {}, None)
    inputs = [*inliner.constants, *arguments]
    jaxpr = internals().segment(opened, inputs, outputs, inliner.equations)
    return jaxpr, tuple(inliner.constants.values())


def _inputs(closed: Any) -> Tuple[Dict[Any, Any], List[Any]]:
    """Return the variables of the constants with their values, and those of the arguments."""
    opened = internals().opened(closed)
    values = list(getattr(closed, "consts", ()))
    variables = [*opened.constvars, *opened.invars]
    return dict(zip(variables, values)), variables[len(values) :]


class _Inliner:
    """The equations so far.

    Attributes:
        constants: the values of the constants, by variable.
        equations: the equations.
    """

    def __init__(self, constants: Dict[Any, Any]) -> None:
        self.constants = constants
        self.equations: List[Any] = []

    def run(self, jaxpr: Any, names: Dict[Any, Any], source: Any) -> List[Any]:
        """Add the equations of a jaxpr, and return its outputs.

        Args:
            jaxpr: open jaxpr.
            names: what its variables are called, unless they keep their names.
            source: where the outermost call comes from, None outside calls.
        """

        def renamed(atom: Any) -> Any:
            return atom if internals().is_literal(atom) else names.get(atom, atom)

        for equation in jaxpr.eqns:
            origin = equation.source_info if source is None else source
            inputs = [renamed(atom) for atom in equation.invars]
            if internals().is_inlined_call(equation):
                _, (inner,), _ = internals().inner(equation)
                constants, arguments = _inputs(inner)
                own = dict(zip(arguments, inputs))
                for variable, value in constants.items():
                    own[variable] = copy.copy(variable)
                    self.constants[own[variable]] = value
                outputs = self.run(internals().opened(inner), own, origin)
                names.update(zip(equation.outvars, outputs))
                continue
            if marked_site(equation) is not None:
                names.update(zip(equation.outvars, inputs))
                continue
            outputs = equation.outvars
            if source is not None:
                # The jaxpr of a function is the same for each call.
                outputs = [copy.copy(variable) for variable in equation.outvars]
                names.update(zip(equation.outvars, outputs))
            self.equations.append(
                equation.replace(invars=inputs, outvars=outputs, source_info=origin)
            )
        return [renamed(atom) for atom in jaxpr.outvars]
