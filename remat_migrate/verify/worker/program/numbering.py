"""Number the values of a jaxpr by what computes them.

Two values with the same number are equal for all inputs. Calls, checkpoints, and names are
dissolved; equations that nothing uses do not matter; neither does the order of the others, except
of those with effects. The idea is value numbering, as compilers use it to validate a translation.

Inside a loop, the values that change are numbered by their position in the innermost loops around
them. The number of a loop holds those of everything that its body computes.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Set, Tuple

import jax.numpy as jnp
import numpy as np

from .. import coverage
from ..jaxprs import called_jaxpr, opened
from .digests import Digest, Opaque, constant, digest, parameters

# Primitives that run the jaxpr in their parameters on their operands.
_CALLS = frozenset(
    [
        "pjit",
        "jit",
        "closed_call",
        "core_call",
        "core_closed_call",
        "eval_jaxpr",
        "remat2",
        "checkpoint",
        "remat",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_vjp_call_jaxpr",
    ]
)
# Primitives that return their operands.
_IDENTITIES = frozenset(["name", "optimization_barrier", "copy", "copy_p"])
_COMMUTATIVE = frozenset(["add", "mul", "max", "min", "and", "or", "xor", "eq", "ne"])
_LONGEST_CONSTANT = 24


class Value(NamedTuple):
    """A value of a program.

    Attributes:
        text: the primitive, the type of the value, and the constants among the operands.
        place: the user's file and line, empty if unknown.
    """

    text: str
    place: str


class Numbering:
    """Numbers the values of one program.

    Attributes:
        values: what is known about each number, in the order of computation.
        effects: the number of all effects so far, in their order.
        has_custom_rules: whether there are functions with derivatives of their own.
        given: the numbers of the inputs and constants of all jaxprs.
        returned: the numbers that are marked as returned by edited checkpoints, with their marks.
        donated: the numbers of what jitted calls may overwrite.
    """

    def __init__(self, place_of: Any) -> None:
        """Prepare for one program; `place_of(source_info)` returns a file and a line as text."""
        self.values: Dict[Digest, Value] = {}
        self.effects: Digest = ""
        self.has_custom_rules = False
        self.given: Set[Digest] = set()
        self.returned: List[Tuple[str, Digest]] = []
        self.donated: Set[Digest] = set()
        self._place_of = place_of
        self._sums: Dict[Digest, Tuple[Digest, ...]] = {}
        self._depth = 0

    def numbers(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Digest]) -> List[Digest]:
        """Return the numbers of the outputs of an open jaxpr.

        Args:
            jaxpr: the open jaxpr.
            consts: the values of its constants, or their numbers.
            inputs: the numbers of its inputs.

        Raises:
            Opaque: a parameter of a primitive cannot be compared.
        """
        known: Dict[Any, Digest] = dict(zip(jaxpr.invars, inputs))
        for variable, value in zip(jaxpr.constvars, consts):
            known[variable] = constant(value)
        self.given.update(known.values())

        def read(atom: Any) -> Digest:
            return constant(_literal(atom)) if hasattr(atom, "val") else known[atom]

        for equation in jaxpr.eqns:
            operands = [read(atom) for atom in equation.invars]
            known.update(zip(equation.outvars, self._equation(equation, operands)))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, operands: List[Digest]) -> List[Digest]:
        name = equation.primitive.name
        self.has_custom_rules |= name.startswith("custom_")
        if name in _CALLS:
            donated = equation.params.get("donated_invars", ())
            self.donated.update(number for number, is_it in zip(operands, donated) if is_it)
            inner = called_jaxpr(equation.params)
            if inner is not None:
                jaxpr, consts = opened(inner)
                return self.numbers(jaxpr, consts, operands)
        if name == "name" and equation.params["name"].startswith(coverage.MARK):
            checkpoint = equation.params["name"][len(coverage.MARK) :]
            self.returned.append((checkpoint, operands[0]))
        if name in _IDENTITIES or _keeps_precision(equation):
            return operands
        if name == "custom_lin":
            raise Opaque("a jax.custom_vjp function has no forward-mode derivative")
        if name == "add_any":
            return [self._sum(equation, operands)]
        loops = {"scan": self._scan, "while": self._while, "cond": self._cond}
        if name in loops:
            return loops[name](equation, operands)
        if name in _COMMUTATIVE:
            operands = sorted(operands)
        what = digest(name, parameters(equation.params, self._jaxpr), tuple(operands))
        if getattr(equation, "effects", None):
            self.effects = what = digest("effect", self.effects, what)
        return self._outputs(equation, what)

    def _outputs(self, equation: Any, what: Digest) -> List[Digest]:
        """Return the numbers of the results of an equation."""
        found = []
        for index, variable in enumerate(equation.outvars):
            number = digest(what, index)
            self._note(number, equation, variable)
            found.append(number)
        return found

    def _note(self, number: Digest, equation: Any, variable: Any) -> None:
        if number not in self.values:
            shown = [_shown(atom) for atom in equation.invars if hasattr(atom, "val")]
            text = " ".join([equation.primitive.name, variable.aval.str_short(), *shown])
            place = self._place_of(equation.source_info)
            self.values[number] = Value(text, place)

    def _sum(self, equation: Any, operands: List[Digest]) -> Digest:
        """Number a sum of cotangents, whose order is that of the equations and means nothing."""
        terms: List[Digest] = []
        for operand in operands:
            terms += self._sums.get(operand, (operand,))
        number = digest("sum", sorted(terms))
        self._sums[number] = tuple(terms)
        self._note(number, equation, equation.outvars[0])
        return number

    def _jaxpr(self, value: Any) -> Tuple[Digest, ...]:
        """Return the numbers of the outputs of a jaxpr in a parameter, and of its effects."""
        jaxpr, consts = opened(value)
        inputs = [
            digest("input", self._depth, i, v.aval.str_short()) for i, v in enumerate(jaxpr.invars)
        ]
        return self._inside(jaxpr, consts, inputs)

    def _inside(
        self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Digest]
    ) -> Tuple[Digest, ...]:
        """Return the numbers of the outputs of an inner program, and of its effects."""
        around, self.effects = self.effects, ""
        self._depth += 1
        try:
            return (*self.numbers(jaxpr, consts, inputs), self.effects)
        finally:
            self._depth -= 1
            self.effects = around

    def _varying(self, kind: str, index: int, variable: Any) -> Digest:
        return digest(kind, self._depth, index, variable.aval.str_short())

    def _with_effects(self, what: Digest, *inner: Digest) -> Digest:
        if any(inner):
            self.effects = what = digest("effect", self.effects, what)
        return what

    def _scan(self, equation: Any, operands: List[Digest]) -> List[Digest]:
        params = equation.params
        jaxpr, consts = opened(params["jaxpr"])
        fixed, carried = scan_operands(params)
        start, sequences = operands[fixed : fixed + carried], operands[fixed + carried :]
        inputs = [
            *operands[:fixed],
            *(self._varying("carry", i, v) for i, v in enumerate(jaxpr.invars[fixed:][:carried])),
            *(digest("element", self._depth, number) for number in sequences),
        ]
        body = self._inside(jaxpr, consts, inputs)
        loop = digest("scan", params["length"], params["reverse"], start, body[:carried])
        loop = self._with_effects(loop, body[-1])
        found = []
        for index, variable in enumerate(equation.outvars):
            # What the steps return besides depends on the carried values, not on one another.
            result = index if index < carried else body[index]
            number = digest(loop, result)
            self._note(number, equation, variable)
            found.append(number)
        return found

    def _while(self, equation: Any, operands: List[Digest]) -> List[Digest]:
        params = equation.params
        tested, fixed = params["cond_nconsts"], params["body_nconsts"]
        start = operands[tested + fixed :]
        test, test_consts = opened(params["cond_jaxpr"])
        body, body_consts = opened(params["body_jaxpr"])
        carried = [self._varying("carry", i, v) for i, v in enumerate(body.invars[fixed:])]
        condition = self._inside(test, test_consts, [*operands[:tested], *carried])
        step = self._inside(body, body_consts, [*operands[tested : tested + fixed], *carried])
        what = digest("while", start, condition, step)
        what = self._with_effects(what, condition[-1], step[-1])
        return self._outputs(equation, what)

    def _cond(self, equation: Any, operands: List[Digest]) -> List[Digest]:
        chosen, given = operands[0], operands[1:]
        branches = []
        for branch in equation.params["branches"]:
            jaxpr, consts = opened(branch)
            branches.append(self._inside(jaxpr, consts, given))
        effects = [branch[-1] for branch in branches]
        if any(effects):
            what = self._with_effects(digest("cond", chosen, branches), *effects)
            return self._outputs(equation, what)
        found = []
        for index, variable in enumerate(equation.outvars):
            results = [branch[index] for branch in branches]
            number = digest("cond", chosen, results)
            self._note(number, equation, variable)
            found.append(number)
        return found


def scan_operands(params: Any) -> Tuple[int, int]:
    """Return how many operands of a scan are constants, and how many are carried."""
    if "num_carry" in params:
        return params["num_consts"], params["num_carry"]
    consts, carried, _ = params["ft_in"].unpack()  # since JAX 0.12
    return len(consts), len(carried)


def _literal(atom: Any) -> Any:
    """Return the value of a literal with the dtype that it has in the program."""
    dtype = getattr(atom.aval, "dtype", None)
    if dtype is None or isinstance(atom.val, np.ndarray):
        return atom.val
    try:
        return np.asarray(atom.val, dtype)
    except TypeError:
        return atom.val  # an extended dtype


def _shown(atom: Any) -> str:
    text = str(_literal(atom))
    return text if len(text) <= _LONGEST_CONSTANT else text[:_LONGEST_CONSTANT] + "..."


def _keeps_precision(equation: Any) -> bool:
    """Return whether an equation converts a value to what it is already.

    JAX reduces what a policy saves to its own precision, so that XLA keeps no more of it.
    """
    name, operands, results = equation.primitive.name, equation.invars, equation.outvars
    if name not in ("reduce_precision", "convert_element_type"):
        return False
    dtype = operands[0].aval.dtype
    if dtype != results[0].aval.dtype:
        return False
    if name == "convert_element_type":
        return equation.params.get("sharding") is None
    kind: Any = jnp.finfo(dtype)  # type: ignore[no-untyped-call]
    given = (equation.params["exponent_bits"], equation.params["mantissa_bits"])
    return given == (kind.nexp, kind.nmant)
