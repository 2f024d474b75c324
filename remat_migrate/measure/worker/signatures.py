"""Number equations by what they compute, so that equal runs of equations are found quickly.

Two equations get the same number if they have the same primitive, parameters, types and literals.
Jaxprs in parameters are compared by their equations, functions such as differentiation rules by
their names.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from .internals import internals


class Signatures:
    """Numbers equations; keeps what it numbered, because jaxprs are cached by `id`."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._jaxprs: dict[int, tuple[Any, int]] = {}

    def of_run(
        self, equations: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> int:
        """Return the number of a run of equations, whatever its variables are called."""
        names: dict[Any, int] = {}
        for variable in inputs:
            names.setdefault(variable, len(names))
        key: list[Hashable] = [len(names)]
        for equation in equations:
            read = tuple(
                self._literal(atom) if internals().is_literal(atom) else names[atom]
                for atom in equation.invars
            )
            key.append((self._of_equation(equation), read))
            for variable in equation.outvars:
                names[variable] = len(names)
        key.append(
            tuple(
                self._literal(atom) if internals().is_literal(atom) else names[atom]
                for atom in outputs
            )
        )
        return self._number(tuple(key))

    def _of_equation(self, equation: Any) -> int:
        types = tuple(_type(atom) for atom in (*equation.invars, *equation.outvars))
        params = tuple((name, self._value(value)) for name, value in equation.params.items())
        return self._number((equation.primitive.name, types, params))

    def _value(self, value: Any) -> Hashable:
        """Return a key for a parameter."""
        if hasattr(value, "eqns"):
            return self._of_jaxpr(value)
        if isinstance(value, (tuple, list)):
            return tuple(map(self._value, value))
        if isinstance(value, dict):
            return tuple((name, self._value(one)) for name, one in value.items())
        if callable(value) and not isinstance(value, type):
            return type(value).__name__, getattr(value, "__name__", "")
        try:
            hash(value)
        except TypeError:
            return str(value)
        return type(value).__name__, value

    def _of_jaxpr(self, jaxpr: Any) -> int:
        if id(jaxpr) not in self._jaxprs:
            opened = internals().opened(jaxpr)
            inputs = [*opened.constvars, *opened.invars]
            number = self.of_run(opened.eqns, inputs, opened.outvars)
            types = tuple(map(_type, inputs))
            constants = tuple(map(id, getattr(jaxpr, "consts", ())))
            self._jaxprs[id(jaxpr)] = jaxpr, self._number((number, types, constants))
        return self._jaxprs[id(jaxpr)][1]

    def _literal(self, atom: Any) -> Hashable:
        return str(atom.val), _type(atom)

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _type(atom: Any) -> Hashable:
    aval = atom.aval
    return getattr(aval, "shape", None), str(getattr(aval, "dtype", aval)), _is_weak(aval)


def _is_weak(aval: Any) -> bool:
    return bool(getattr(aval, "weak_type", False))
