"""Estimate how the values of a program are divided over the devices of a mesh.

The shardings of arguments are propagated through the equations, much as XLA's partitioner does:
forward; then backward, from results to operands that nothing has divided yet; and forward again. A
value that an operation gathers counts as it is stored.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

from ....verify.worker.program.numbering import scan_operands
from ..internals import internals

# The mesh axes that divide each axis of a value.
Spec = Tuple[Tuple[str, ...], ...]
# An outer value, the value inside a loop or call, and how many leading axes the outer one has more.
_Pair = Tuple[Any, Any, int]


def spec_of(sharding: Any, rank: int) -> Spec:
    """Return the mesh axes that divide each axis of an array; none for an unnamed sharding."""
    found: List[Tuple[str, ...]] = []
    for axes in tuple(getattr(sharding, "spec", None) or ())[:rank]:
        named = (axes,) if isinstance(axes, str) else axes
        found.append(named if isinstance(named, tuple) else ())
    return (*found, *[()] * (rank - len(found)))


def argument_shardings(jaxpr: Any) -> List[Any]:
    """Return the sharding that a jitted function requests for each argument of an open jaxpr."""
    found: Dict[Any, Any] = {}
    for equation in jaxpr.eqns:
        if internals().is_inlined_call(equation):
            requested = equation.params.get("in_shardings", ())
            found.update(
                (atom, sharding)
                for atom, sharding in zip(equation.invars, requested)
                if not internals().is_literal(atom) and hasattr(sharding, "spec")
            )
    return [found.get(variable) for variable in jaxpr.invars]


def shares(jaxpr: Any, specs: Sequence[Spec], sizes: Mapping[str, int]) -> Dict[Any, int]:
    """Return the number of parts of each value of an open jaxpr that is divided.

    Args:
        jaxpr: open jaxpr.
        specs: how its arguments are divided.
        sizes: size of each axis of the mesh.
    """
    partition = _Partition(sizes)
    for variable, spec in zip(jaxpr.invars, specs):
        partition.specs[variable] = spec
        partition.pinned.add(variable)
    partition.forward(jaxpr)
    partition.backward(jaxpr)
    partition.forward(jaxpr)
    counts = {
        variable: math.prod(sizes[axis] for axes in spec for axis in axes)
        for variable, spec in partition.specs.items()
    }
    return {variable: count for variable, count in counts.items() if count > 1}


class _Partition:
    """The mesh axes that divide each value.

    Attributes:
        specs: the axes, by variable.
        pinned: the variables whose sharding the user chose.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.specs: Dict[Any, Spec] = {}
        self.pinned: Set[Any] = set()
        self._sizes = sizes

    def _of(self, atom: Any) -> Spec:
        if internals().is_literal(atom) or atom not in self.specs:
            return ((),) * len(_shape(atom))
        return self.specs[atom]

    def _divide(self, atom: Any, spec: Sequence[Tuple[str, ...]]) -> None:
        """Divide the axes of a value that are not divided yet."""
        if internals().is_literal(atom) or atom in self.pinned:
            return
        shape, now = _shape(atom), list(self._of(atom))
        used = {axis for axes in now for axis in axes}
        for place, axes in enumerate(spec[: len(shape)]):
            parts = math.prod(self._sizes.get(axis, 1) for axis in axes)
            if axes and not now[place] and not used.intersection(axes):
                if shape[place] % parts == 0:
                    now[place] = axes
                    used.update(axes)
        if used:
            self.specs[atom] = tuple(now)

    def forward(self, jaxpr: Any) -> None:
        """Divide the results of each equation as its operands."""
        for equation in jaxpr.eqns:
            bodies = _bodies(equation)
            for body, inputs, outputs in bodies:
                self._enter(inputs)
                self.forward(body)
                if internals().name(equation) == "scan":
                    self._carry(equation, body)
                    self.forward(body)
                self._leave(outputs)
            if not bodies and equation.outvars:
                self._apply(equation)

    def backward(self, jaxpr: Any) -> None:
        """Divide the operands of equations as their results."""
        for equation in reversed(jaxpr.eqns):
            bodies = _bodies(equation)
            for body, inputs, outputs in bodies:
                self._enter(outputs)
                if internals().name(equation) == "scan":
                    self._carry(equation, body)
                self.backward(body)
                self._leave(inputs)
            if bodies:
                continue
            for result in equation.outvars:
                spec = self._of(result)
                for atom in equation.invars:
                    if _shape(atom) == _shape(result):
                        self._divide(atom, spec)
            self._undo_view(equation)

    def _carry(self, equation: Any, body: Any) -> None:
        """Divide what an iteration of a scan gets as what the one before returns."""
        first, count = scan_operands(equation.params)
        for after, before in zip(body.outvars[:count], body.invars[first : first + count]):
            self._divide(before, self._of(after))

    def _enter(self, pairs: Sequence[_Pair]) -> None:
        for outer, inner, leading in pairs:
            self._divide(inner, self._of(outer)[leading:])

    def _leave(self, pairs: Sequence[_Pair]) -> None:
        for outer, inner, leading in pairs:
            self._divide(outer, ((),) * leading + self._of(inner))

    def _undo_view(self, equation: Any) -> None:
        name = internals().name(equation)
        if not equation.invars or not equation.outvars:
            return
        result = equation.outvars[0]
        spec, operand = self._of(result), equation.invars[0]
        if name == "transpose":
            permuted: List[Tuple[str, ...]] = [()] * len(spec)
            for place, source in enumerate(equation.params["permutation"]):
                permuted[source] = spec[place]
            self._divide(operand, permuted)
        elif name == "reshape":
            self._divide(operand, _reshaped(spec, _shape(result), _shape(operand)))

    def _apply(self, equation: Any) -> None:
        """Divide the results of an equation without a body."""
        name, params = internals().name(equation), equation.params
        operands = [self._of(atom) for atom in equation.invars]
        result = equation.outvars[0]
        rank = len(_shape(result))
        if name == "sharding_constraint":
            self.specs[result] = spec_of(params["sharding"], rank)
            self.pinned.add(result)
        elif name == "dot_general":
            (contracted, batch) = params["dimension_numbers"]
            left, right = (
                [
                    axes
                    for place, axes in enumerate(spec)
                    if place not in (*contracted[side], *batch[side])
                ]
                for side, spec in enumerate(operands)
            )
            shared = [operands[0][a] or operands[1][b] for a, b in zip(*batch)]
            self._divide(result, [*shared, *left, *right])
        elif name == "conv_general_dilated":
            numbers = params["dimension_numbers"]
            spec: List[Tuple[str, ...]] = [()] * rank
            spec[numbers.out_spec[0]] = operands[0][numbers.lhs_spec[0]]
            spec[numbers.out_spec[1]] = operands[1][numbers.rhs_spec[0]]
            self._divide(result, spec)
        elif name == "transpose":
            self._divide(result, [operands[0][place] for place in params["permutation"]])
        elif name == "reshape":
            shape = _shape(equation.invars[0])
            self._divide(result, _reshaped(operands[0], shape, _shape(result)))
        elif name == "broadcast_in_dim":
            spec = [()] * rank
            for source, place in enumerate(params["broadcast_dimensions"]):
                spec[place] = operands[0][source]
            self._divide(result, spec)
        elif name == "squeeze":
            self._divide(result, _without(operands[0], params["dimensions"]))
        elif "axes" in params and len(operands[0]) > rank:
            for made in equation.outvars:
                self._divide(made, _without(operands[0], params["axes"]))
        elif name == "gather":
            numbers = params["dimension_numbers"]
            gone = {*numbers.collapsed_slice_dims, *getattr(numbers, "operand_batching_dims", ())}
            taken = iter(_without(operands[0], gone))
            indices = iter(operands[1])
            offset = numbers.offset_dims
            self._divide(
                result, [next(taken if place in offset else indices, ()) for place in range(rank)]
            )
        else:
            for made in equation.outvars:
                for atom, spec_of_operand in zip(equation.invars, operands):
                    if len(_shape(atom)) == len(_shape(made)):
                        self._divide(
                            made,
                            [
                                axes if a == b else ()
                                for axes, a, b in zip(spec_of_operand, _shape(atom), _shape(made))
                            ],
                        )


def _shape(atom: Any) -> Tuple[int, ...]:
    return tuple(getattr(atom.aval, "shape", ()))


def _without(spec: Spec, gone: Any) -> List[Tuple[str, ...]]:
    return [axes for place, axes in enumerate(spec) if place not in gone]


def _reshaped(spec: Spec, old: Sequence[int], new: Sequence[int]) -> List[Tuple[str, ...]]:
    """Return the axes after a reshape: those of the first axis of each group of axes stay."""
    found: List[Tuple[str, ...]] = [()] * len(new)
    i = j = 0
    while i < len(old) and j < len(new):
        if old[i] != new[j] and 1 in (old[i], new[j]):
            i, j = i + (old[i] == 1), j + (new[j] == 1)
            continue
        found[j] = spec[i]
        before, after = old[i], new[j]
        i, j = i + 1, j + 1
        while before != after:
            if before < after and i < len(old):
                before, i = before * old[i], i + 1
            elif after < before and j < len(new):
                after, j = after * new[j], j + 1
            else:
                return found
    return found


def _bodies(equation: Any) -> List[Tuple[Any, List[_Pair], List[_Pair]]]:
    """Return the jaxprs inside an equation, with their inputs and outputs."""
    name = internals().name(equation)
    how, inner, _ = internals().inner(equation)
    if not how or name == "shard_map":
        return []  # inside `shard_map`, shapes are those of a device
    opened = [internals().opened(body) for body in inner]
    return [(body, *_pairs(name, equation, body, place)) for place, body in enumerate(opened)]


def _pairs(name: str, equation: Any, body: Any, place: int) -> Tuple[List[_Pair], List[_Pair]]:
    given, made, params = list(equation.invars), list(equation.outvars), equation.params
    if name == "scan":
        constants, carried = scan_operands(params)
        kept = constants + carried
        inputs = [(o, i, int(n >= kept)) for n, (o, i) in enumerate(zip(given, body.invars))]
        outputs = [(o, i, int(n >= carried)) for n, (o, i) in enumerate(zip(made, body.outvars))]
        return inputs, outputs
    if name == "while":
        of_body, of_condition = params["body_nconsts"], params["cond_nconsts"]
        carry = given[of_body + of_condition :]
        if place == 0:
            own = given[of_condition : of_condition + of_body]
            return _zip([*own, *carry], body.invars), _zip(made, body.outvars)
        return _zip([*given[:of_condition], *carry], body.invars), []
    if name == "cond":
        return _zip(given[1:], body.invars), _zip(made, body.outvars)
    if len(given) != len(body.invars) or len(made) != len(body.outvars):
        return [], []
    return _zip(given, body.invars), _zip(made, body.outvars)


def _zip(outer: Sequence[Any], inner: Sequence[Any]) -> List[_Pair]:
    return [(one, other, 0) for one, other in zip(outer, inner)]
