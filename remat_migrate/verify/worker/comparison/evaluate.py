"""Evaluate a unit on one case: its programs, values and vector-Jacobian products.

Results are written as arrays of numpy, and their dtypes in JSON: comparing them needs only numpy.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import warnings
from typing import Any, Callable, Dict, List, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from .. import module_state, shim
from ..environment import caches, projects
from ..failures import describe
from ..frameworks import pure_functions
from ..frameworks.abstraction import NotCompiled, PureCall, compiled, has_abstract, split
from ..lookup import fits, named_arguments, signature
from ..program import agreement, trace
from ..program.trace import is_inexact
from ..transfer.arrays import is_key, key_data
from . import changes, precision, results

# An argument with more arrays than these is described by their number and size.
_MOST_ARRAYS = 4

# Addresses differ between processes.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

# The name and address of a function do not matter.
_FUNCTION = re.compile(r"<(?:\w+ )?(?:function|PjitFunction)\b.*?(?: at 0x[0-9a-f]+)>")


def evaluate(
    unit: Any,
    case: Dict[str, Any],
    folder: str,
    derivatives: bool = True,
    first: bool = False,
    values: bool = True,
    seed: int = 0,
    constants: bool = False,
) -> Dict[str, Any]:
    """Run a unit and write what came of it below `folder`.

    Returns {"failure": how the run failed, or {}, "needs_constants": whether it can be traced only
    where constants are computed}.

    Modes: `eager` (values), `gradient` (vector-Jacobian products with random cotangents), `jit`
    (compiled values). A mode that raises is a result, too. What the unit's parameters default to is
    written as well.

    With `first`, there are the values and, in a file of their own, the programs of the unit
    and, with `derivatives`, of its derivatives, which suffice if both sides agree. Without
    `values`, or if an argument is abstract, there are only the programs. `seed` is that of Python
    and NumPy; for `constants`, see `_Program.traced`.
    """
    writer = _Writer(folder, seed)
    modes: Dict[str, Any] = {}
    programs: Dict[str, Any] = {}
    precisions: List[str] = []
    is_abstract = has_abstract(case)
    has_arguments = bool(case["args"] or case["kwargs"] or case.get("left_out"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            prepared = _prepared(unit, case, first)
            computes = first and values and not is_abstract
            if computes and has_abstract([one.args for one in prepared]):
                prepared = _prepared(unit, case)
        except Exception as error:
            prepared = []
            modes["eager"] = {"error": describe(error)}
        for one in prepared:
            label = one.label and one.label + " "
            program = _Program(one.function, one.args, one.kwargs)
            if is_abstract or first:
                # What `init` returns goes into `apply`, if there is one.
                is_used = one.label == "init" and len(prepared) > 1
                if computes and not is_used:
                    modes[label + "eager"] = _compiled(program, writer)
                traced = program.traced(derivatives, is_used, constants)
                programs[one.label] = dict(traced, has_arguments=has_arguments)
            else:
                precisions.append(_run(program, label, modes, writer))
    writer.close(
        {
            "modes": modes,
            "defaults": _defaults(unit),
            "precision": precision.coarsest(precisions),
            "abstract": is_abstract,
        }
    )
    if programs:
        agreement.save(folder, programs)
    errors = [mode.get("error") for mode in modes.values()] or [
        program["programs"]["forward"].get("error") for program in programs.values()
    ]
    return {
        "failure": next((e for e in errors if e), {}) if all(errors) else {},
        "needs_constants": any(program["concrete"] for program in programs.values()),
    }


def in_turn(unit: Any, cases: Sequence[Dict[str, Any]], folder: str, seed: int) -> None:
    """Run a unit on one case after the other, and write the results below `folder`.

    What a call leaves in data outside it, such as a cache, or in its object, is there for the next,
    which is the same call at first. In the end, what has changed is written, too.
    """
    writer = _Writer(folder, seed)
    modes: Dict[str, Any] = {}
    first = cases[0]["args"][:1]
    owner = first if first and results.is_object(first[0]) else ()
    with warnings.catch_warnings(), changes.watched(unit, owner, {}, results.unfolded) as changed:
        warnings.simplefilter("ignore")
        for number, case in enumerate([case for case in cases for _ in range(2)], 1):
            case = dict(case, args=(*owner, *case["args"][len(owner) :]))

            def run(case: Dict[str, Any] = case) -> Any:
                one = _prepared(unit, case)[-1]
                program = _Program(one.function, one.args, one.kwargs)
                return program.result(program.arrays())

            modes["call %d eager" % number] = _outcome(run, writer)
        modes["changes eager"] = _outcome(changed, writer)
    writer.close({"modes": modes, "defaults": {}, "precision": "", "abstract": False})


def _compiled(program: _Program, writer: _Writer) -> Dict[str, Any]:
    """Return the values, from one compiled program if possible: it takes a fraction of the time."""

    def run() -> Any:
        try:
            return compiled(program.outcome_when_traced, program.shared_arrays)
        except NotCompiled:
            _seed(writer.seed)
            return program.outcome(program.arrays())

    return _outcome(run, writer)


def _prepared(unit: Any, case: Dict[str, Any], traced: bool = False) -> List[PureCall]:
    """Return what to run or trace: the unit, or a function in its result if the case says so."""
    then = case.get("then")
    if shim.GONE in case["kwargs"] and not fits(unit, case["args"], case["kwargs"]):
        rest = {name: value for name, value in case["kwargs"].items() if name != shim.GONE}
        case = dict(case, kwargs=rest)
    if not then:
        return pure_functions.prepare(unit, case, traced)
    arguments = (case["args"], case["kwargs"], then["args"], then["kwargs"])
    case = {"args": arguments, "kwargs": {}, "context": case["context"]}
    return pure_functions.prepare(results.called(unit, then["of"]), case, traced)


def _run(program: _Program, label: str, modes: Dict[str, Any], writer: _Writer) -> str:
    """Add the modes of a program, and return the lowest precision that it rounds to."""

    def values(arrays: List[Any]) -> List[Any]:
        return program.array_results(program.call(arrays))

    modes[label + "eager"] = _outcome(lambda: program.outcome(program.arrays()), writer)
    if "error" not in modes[label + "eager"] and program.differentiable:
        gradient = _outcome(lambda: program.gradient(program.arrays()), writer)
        modes[label + "gradient"] = gradient
    modes[label + "jit"] = _outcome(lambda: jax.jit(values)(program.arrays()), writer)
    jaxpr = program.jaxpr()
    return precision.lowest_precision(jaxpr) if jaxpr is not None else ""


def _defaults(unit: Any) -> Dict[str, str]:
    """Return the defaults of the parameters of a unit that have a meaningful text."""
    made = signature(unit)
    parameters = made.parameters.values() if made else ()
    plain = (bool, int, float, complex, str, bytes, type(None))
    return {p.name: repr(p.default) for p in parameters if isinstance(p.default, plain)}


def _outcome(run: Callable[[], Any], writer: _Writer) -> Dict[str, Any]:
    _seed(writer.seed)
    caches.clear()
    process = os.getpid()
    try:
        result = run()
        if os.getpid() != process:
            # The code under test has forked: only the parent writes the results.
            os._exit(0)
        # An error on the device surfaces only when the result is requested.
        jax.block_until_ready(result)  # type: ignore[no-untyped-call]
        return writer.write(result)
    except MemoryError:
        raise
    except Exception as error:
        return {"error": describe(error)}


def _seed(seed: int = 0) -> None:
    """Let both sides draw the same random numbers outside JAX."""
    random.seed(seed)
    np.random.seed(seed)


class _Program:
    """A function and its arguments: JAX may trace arrays; other arguments are fixed.

    Attributes:
        shared_arrays: the arrays, for use under a transformation of JAX.
        differentiable: the indices of those to differentiate with respect to.
    """

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self._function = function
        self.shared_arrays, self._arguments = split((args, kwargs), _is_dynamic)
        self.differentiable = [i for i, one in enumerate(self.shared_arrays) if is_inexact(one)]

    def traced(self, thorough: bool, values_alone: bool, constants: bool) -> Dict[str, Any]:
        """Return the programs, see `trace.programs`, and the structure of the result as text.

        If `values_alone`, there is no program of a derivative. Constants are computed, too, where
        it cannot be traced else, and "concrete" is why.
        """
        arrays = self.shared_arrays
        result: List[str] = []

        def traced(arrays: List[Any]) -> List[Any]:
            _seed()
            outcome = self.outcome_when_traced(arrays)
            leaves, tree = jax.tree_util.tree_flatten(outcome)
            result[:] = [_text(str(tree)), *(_kind(leaf) for leaf in leaves)]
            return [jnp.asarray(leaf) for leaf in leaves if _is_array(leaf)]

        chosen = [] if values_alone else self.differentiable

        def programs(constants: bool) -> Dict[str, Any]:
            # What depends on no argument is computed, as outside `jax.jit`: Python may use it.
            with jax.ensure_compile_time_eval() if constants else contextlib.nullcontext():
                return trace.programs(traced, arrays, chosen, projects.place_of, thorough)

        found, concrete = programs(constants), None
        if found["forward"].get("is_concrete") and not has_abstract(arrays):
            concrete = found["forward"]["error"]
            found = programs(constants=True)
        return {"result": result, "programs": found, "concrete": concrete}

    def arrays(self) -> List[Any]:
        """Return copies of the arrays: the function may change or donate them."""
        return [array.copy() for array in self.shared_arrays]

    def jaxpr(self) -> Any:
        """Return the jaxpr of the values; None if Python needs values of arrays."""
        try:
            closed = jax.make_jaxpr(lambda arrays: self.array_results(self.call(arrays)))(
                self.arrays()
            )
        except Exception:  # running it reports the reason
            return None
        return closed.jaxpr

    def call(self, arrays: List[Any]) -> Any:
        """Return the result for these arrays; containers are copied."""
        with module_state.restored(self._function):
            return self.result(arrays)

    def result(self, arrays: List[Any]) -> Any:
        """As `call`, but the module's data stay as the call leaves them."""
        args, kwargs = self._arguments(arrays)
        return results.unfolded(self._function(*args, **kwargs))

    def outcome(self, arrays: List[Any]) -> Any:
        """As `call`; for a function that returns nothing, the object that it may have changed."""
        outcome = self.outcome_when_traced(arrays)
        leaves = jax.tree_util.tree_leaves(outcome)
        # An object may keep tracers of the call, which cannot be read.
        return None if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves) else outcome

    def outcome_when_traced(self, arrays: List[Any]) -> Any:
        """As `outcome`, where tracers are results like arrays."""
        args, kwargs = self._arguments(arrays)
        return results.unfolded(results.outcome_of(self._function, args, kwargs))

    def array_results(self, result: Any) -> List[Any]:
        """Return the arrays of a result, which is all that a compiled function can return."""
        return [leaf for leaf in jax.tree_util.tree_leaves(result) if _is_array(leaf)]

    def gradient(self, arrays: List[Any]) -> List[Any]:
        """Return the vector-Jacobian products with random cotangents for every inexact array."""
        chosen = self.differentiable

        def results(inexact: List[Any]) -> List[Any]:
            filled = list(arrays)
            for index, array in zip(chosen, inexact):
                filled[index] = array
            return [r for r in self.array_results(self.call(filled)) if is_inexact(r)]

        outputs, pull_back = jax.vjp(results, [jnp.asarray(arrays[index]) for index in chosen])
        return list(pull_back(_cotangents(outputs))[0])


def _is_dynamic(value: Any) -> bool:
    """Return whether JAX may trace an argument."""
    # Python code may branch on a numpy scalar. It may branch on an array of rank 0, too, but JAX
    # returns such arrays where no code can branch.
    return isinstance(value, (jax.Array, np.ndarray, jax.ShapeDtypeStruct)) and not (
        isinstance(value, np.ndarray) and value.dtype.kind in "OSUVMm" and not _known(value.dtype)
    )


def _known(dtype: Any) -> bool:
    """Return whether a dtype that numpy calls void is one of JAX's, such as bfloat16."""
    return bool(jnp.issubdtype(dtype, jnp.number))


def _is_array(value: Any) -> bool:
    if type(value) is int and abs(value) > np.iinfo(np.int32).max:
        return False  # such as a hash, of which JAX makes no array
    return isinstance(value, (jax.Array, np.ndarray, np.generic, bool, int, float, complex))


def _kind(leaf: Any) -> str:
    """Return a leaf of a result as text; arrays are all the same."""
    if _is_array(leaf):
        return "array"
    return "function" if results.is_function(leaf) else _text(repr(leaf))


def _cotangents(outputs: List[Any]) -> List[Any]:
    random = np.random.RandomState(0)
    made = []
    for output in outputs:
        array = random.standard_normal(np.shape(output))
        if jnp.issubdtype(output.dtype, jnp.complexfloating):
            array = array + 1j * random.standard_normal(np.shape(output))
        made.append(jnp.asarray(array).astype(output.dtype))
    return made


def _text(shown: str) -> str:
    """Return a `repr` without the parts that differ between two processes."""
    return _ADDRESS.sub("", _FUNCTION.sub("<function>", shown))


class _Writer:
    """Writes all arrays of the results into one file, the rest into result.json."""

    def __init__(self, folder: str, seed: int = 0) -> None:
        os.makedirs(folder, exist_ok=True)
        self.seed = seed
        self._folder = folder
        self._arrays: List[Any] = []

    def write(self, result: Any) -> Dict[str, Any]:
        """Return a result as its structure and its leaves."""
        pairs, tree = jax.tree_util.tree_flatten_with_path(result)
        return {
            "tree": _text(str(tree)),
            "leaves": [
                dict(self._leaf(leaf), path=jax.tree_util.keystr(path)) for path, leaf in pairs
            ],
        }

    def _leaf(self, leaf: Any) -> Dict[str, Any]:
        if results.is_function(leaf) or isinstance(leaf, type):
            return {"function": True}
        if not _is_array(leaf):
            return {"other": _text(repr(leaf))[:500]}
        # A checkpointed function returns arrays in place of Python and numpy numbers, as JAX does
        # everywhere; that is not a difference.
        array = jnp.asarray(leaf)
        weak = bool(getattr(array, "weak_type", False))
        dtype = str(array.dtype)
        if is_key(array):
            stored = np.asarray(key_data(array))
        elif jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize < 4:
            stored = np.asarray(array.astype(jnp.float32))
        elif np.dtype(array.dtype).kind == "V":
            stored = np.asarray(array.astype(jnp.int32))
        else:
            stored = np.asarray(array)
        self._arrays.append(stored)
        number, shape = len(self._arrays) - 1, list(stored.shape)
        return {"dtype": dtype, "weak": weak, "shape": shape, "number": number}

    def close(self, result: Dict[str, Any]) -> None:
        """Write what is known besides the arrays."""
        np.savez(os.path.join(self._folder, "arrays.npz"), *self._arrays)
        with open(os.path.join(self._folder, "result.json"), "w") as file:
            json.dump(result, file)


def described_arrays(function: Any, case: Dict[str, Any]) -> List[str]:
    """Return the name, dtype and shape of each array among the arguments of a case."""
    found: List[str] = []
    named = named_arguments(function, case["args"], case["kwargs"])
    if case.get("then"):
        named["argument of the result"] = case["then"]["args"]
    for name, value in named.items():
        pairs = jax.tree_util.tree_flatten_with_path(value)[0]
        arrays = [
            (name + jax.tree_util.keystr(path), leaf)
            for path, leaf in pairs
            if isinstance(leaf, (jax.Array, np.ndarray))
        ]
        if len(arrays) > _MOST_ARRAYS:
            size = sum(int(leaf.size) for _, leaf in arrays)
            found.append("%s: %d arrays, %d elements" % (name, len(arrays), size))
        else:
            shapes = [",".join(map(str, leaf.shape)) for _, leaf in arrays]
            found += ["%s: %s[%s]" % (at, a.dtype, s) for (at, a), s in zip(arrays, shapes)]
    return found
