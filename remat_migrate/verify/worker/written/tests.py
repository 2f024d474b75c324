"""A case of a unit as the source of a test, with the arrays of its inputs and results."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Tuple

import jax
import numpy as np

from ..frameworks import pure_functions
from ..load import Unit
from ..lookup import has
from .source import SEPARATOR, CannotWrite, Writer, composed, storable

SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "support.py")
_MOST_BYTES = 16 << 20
# A result may differ by this many times what compiling it changes.
_ROUNDING = 8.0
_ACCESS = re.compile(r"(?:\[\d+\]|\['[^'\\]*'\])*")


class WrittenTest(NamedTuple):
    """A test.

    Attributes:
        text: the source of its function.
        modules: the modules to import for it.
        arrays: its arrays by name.
    """

    text: str
    modules: List[str]
    arrays: Dict[str, Any]


def write_test(unit: Unit, request: Mapping[str, Any], case: Dict[str, Any]) -> WrittenTest:
    """Return a test that compares a case with what this process computes for it.

    Args:
        unit: the unit.
        request: `module` and `qualname` of the unit, the name of the `test`, and a `comment`.
        case: the case.

    Raises:
        CannotWrite: an argument cannot be written, or the test does not run.
    """
    writer = Writer()
    lines = _Lines(writer, unit, request)
    if request["module"] is None:
        raise CannotWrite("the file has no name as a module")
    if case.get("within"):
        raise CannotWrite("a case under other settings")
    if not request["qualname"] or unit.is_fixture:
        raise CannotWrite("the values of a module" if not unit.is_fixture else "a pytest fixture")
    lines.write(case)
    text = lines.text("")
    arrays = {name: np.asarray(value) for name, value in storable(writer.arrays).items()}
    tried = WrittenTest(text, sorted(writer.modules), arrays)
    found, rounding = _results(tried)
    if not found:
        raise CannotWrite("its result has no arrays")
    if rounding:
        text = lines.text(", tolerance={:.0e}".format(rounding))
    expected = {lines.name + " -> " + name: value for name, value in found.items()}
    arrays.update(storable(expected))
    size = sum(array.nbytes for array in arrays.values())
    if size > _MOST_BYTES:
        raise CannotWrite("{} MiB of arrays".format(size >> 20))
    written = WrittenTest(text, tried.modules, arrays)
    failure = run_test(written)
    if failure:
        raise CannotWrite("the old code computes something else each time: " + failure)
    return written


def run_test(test: WrittenTest) -> str:
    """Run a test in this process; return how it failed, if it did."""
    space = _space(test)
    try:
        _function(test, space)()
    except Exception as error:
        lines = str(error).strip().splitlines()
        return "{}: {}".format(type(error).__name__, lines[0] if lines else "")
    return ""


def save(test: WrittenTest, folder: str) -> Dict[str, Any]:
    """Save a test, and return what `load` makes the test of."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "arrays.npz")
    np.savez(path, **test.arrays)
    return {"text": test.text, "modules": test.modules, "arrays": path}


def load(saved: Mapping[str, Any]) -> WrittenTest:
    """Return a test that was saved."""
    with np.load(saved["arrays"]) as file:
        arrays = {name: file[name] for name in file.files}
    return WrittenTest(saved["text"], saved["modules"], arrays)


def _space(test: WrittenTest) -> Dict[str, Any]:
    """Return the names that a written module has."""
    with open(SUPPORT, encoding="utf-8") as file:
        source = file.read()
    space: Dict[str, Any] = {"__name__": "support"}
    exec(compile(source, SUPPORT, "exec"), space)
    for name in test.modules:
        importlib.import_module(name)
        top = name.partition(".")[0]
        space[top] = importlib.import_module(top)
    arrays = {}
    for name, value in test.arrays.items():
        name, _, dtype = name.partition("; ")
        arrays[name] = jax.numpy.asarray(value).astype(dtype) if dtype else value
    space["ARRAYS"] = arrays
    return space


def _function(test: WrittenTest, space: Dict[str, Any]) -> Callable[[], None]:
    exec(compile(test.text, "<test>", "exec"), space)
    name = test.text.partition("(")[0].rpartition(" ")[2]
    function: Callable[[], None] = space[name]
    return function


def _results(test: WrittenTest) -> Tuple[Dict[str, Any], float]:
    """Return what a test computes, and a tolerance if that of the dtypes is too small."""
    space = _space(test)
    found: List[Tuple[Dict[str, Any], float]] = []

    def record(case: str, function: Any, args: Any, kwargs: Any = None, **how: Any) -> None:
        gradient = how.get("gradient", True)
        plain = space["results"](function, args, kwargs or {}, gradient)
        found.append((plain, _rounding(space, plain, function, args, kwargs or {}, gradient)))

    space["check"] = record
    try:
        _function(test, space)()
    except Exception as error:
        lines = str(error).strip().splitlines()
        message = "{}: {}".format(type(error).__name__, lines[0] if lines else "")
        raise CannotWrite("the test does not run: " + message) from error
    return found[0]


def _rounding(space: Dict[str, Any], plain: Mapping[str, Any], function: Any, *given: Any) -> float:
    """Return a tolerance for what compiling changes; 0 if that of the dtypes is enough."""

    def compiled(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
        traced = {i: leaf for i, leaf in enumerate(leaves) if has(leaf, "dtype")}

        def call(arrays: Any) -> Any:
            filled = [arrays.get(i, leaf) for i, leaf in enumerate(leaves)]
            args, kwargs = jax.tree_util.tree_unflatten(structure, filled)
            return function(*args, **kwargs)

        return jax.jit(call)(traced)

    try:
        other = space["results"](compiled, *given)
    except Exception:  # not everything can be compiled, and then there is nothing to learn
        return 0.0
    most = 0.0
    allowed = 0.0
    overall = max((space["largest"](value) for value in plain.values()), default=0.0)
    for name, value in plain.items():
        allowed = max(allowed, space["TOLERANCE"].get(str(value.dtype), 0.0))
        if name in other and space["is_inexact"](value):
            scale = max(space["largest"](value), 1e-6 * overall)
            apart = space["largest"](space["wide"](value) - space["wide"](other[name]))
            most = max(most, apart / scale if scale else 0.0)
    return most * _ROUNDING if most * _ROUNDING > allowed else 0.0


class _Lines:
    """The lines of a test function.

    Attributes:
        name: the name of its case, which the names of its arrays begin with.
    """

    def __init__(self, writer: Writer, unit: Unit, request: Mapping[str, Any]) -> None:
        self.name: str = request["test"]
        self._writer = writer
        self._unit = unit
        self._request = request
        self._body: List[str] = []
        self._call: List[str] = []

    def text(self, more: str) -> str:
        """Return the source of the function; `more` are further arguments of `check`."""
        comment = ["# " + self._request["comment"]] if self._request["comment"] else []
        call = composed("check", [*self._call, *([more[2:]] if more else [])])
        lines = "\n".join([*comment, *self._body, call]).splitlines()
        body = "".join("    {}\n".format(line) if line else "\n" for line in lines)
        return "def test_{}():\n{}".format(re.sub(r"\W+", "_", self.name).strip("_"), body)

    def write(self, case: Dict[str, Any]) -> None:
        """Write the arguments of `check` for a case, and what they need."""
        if case.get("then"):
            self._of_result(case)
            return
        prepared = pure_functions.prepare(self._unit.function, case)[-1]
        if prepared.function is self._unit.function:
            self._checked(self._target(), prepared.args, prepared.kwargs)
            return
        if prepared.label == "init":
            raise CannotWrite("a module whose parameters cannot be initialised")
        state, *args = prepared.args
        pure: Any = getattr(prepared.function, "__self__", None)
        if case["context"]["library"] == "flax":
            self._flax(pure, state, args, prepared.kwargs)
        else:
            self._haiku(state, args, prepared.kwargs)

    def _target(self) -> str:
        return self._writer.dotted(self._request["module"], self._request["qualname"])

    def _checked(self, function: str, args: Any, kwargs: Dict[str, Any]) -> None:
        given = self._writer.expression(tuple(args), self.name)
        named = [self._writer.expression(kwargs, self.name)] if kwargs else []
        self._call = ['"{}"'.format(self.name), function, given, *named]

    def _of_result(self, case: Dict[str, Any]) -> None:
        then = case["then"]
        if not _ACCESS.fullmatch(then["of"]):
            raise CannotWrite("a function at {} of the result".format(then["of"]))
        self._body = [
            "def call(args, kwargs, inner_args, inner_kwargs):",
            "    inner = {}(*args, **kwargs){}".format(self._target(), then["of"]),
            "    return inner(*inner_args, **inner_kwargs)",
            "",
        ]
        self._checked("call", (case["args"], case["kwargs"], then["args"], then["kwargs"]), {})

    def _flax(self, pure: Any, state: Any, args: Any, kwargs: Dict[str, Any]) -> None:
        if not pure.is_method or pure.elsewhere:
            raise CannotWrite("a function that is called while a Flax module runs")
        module, *rest = args
        variables = state["variables"]
        others = sorted(name for name in variables if name != "params")
        given = ["variables", "*args", "rngs=rngs"]
        if pure.mutable is True:
            given.append("mutable=True")
        elif isinstance(pure.mutable, (list, str)) and pure.mutable:
            given.append("mutable={!r}".format(pure.mutable))
        elif isinstance(pure.mutable, dict) and others:
            given.append("mutable={!r}".format(others))
        if self._request["qualname"].rpartition(".")[2] != "__call__":
            given.append("method={}".format(self._target()))
        given.append("**kwargs")
        self._body = [
            "module = " + self._writer.expression(module, self.name + SEPARATOR + "module"),
            "",
            "def apply(variables, rngs, *args, **kwargs):",
            "    return " + composed("module.apply", given).replace("\n", "\n    "),
            "",
        ]
        rngs = dict(state.get("rngs") or {})
        known = self.name + SEPARATOR + "variables"
        arguments = [
            self._writer.expression(_dicts(variables), known),
            self._writer.expression(rngs, self.name + SEPARATOR + "rngs"),
            *self._writer.items(rest, {}, self.name),
        ]
        self._pass(arguments, kwargs, "apply")

    def _haiku(self, state: Any, args: Any, kwargs: Dict[str, Any]) -> None:
        self._writer.modules.add("haiku")
        if args and isinstance(args[0], pure_functions.Deferred):
            made, *args = args
            inner = self._writer.items(made.args, made.kwargs, self.name + SEPARATOR + "module")
            method = self._request["qualname"].rpartition(".")[2]
            target = composed(self._writer.name(made.cls), inner)
            target += "" if method == "__call__" else "." + method
        else:
            target = self._target()
        self._body = [
            "@haiku.transform_with_state",
            "def transformed(*args, **kwargs):",
            "    return {}(*args, **kwargs)".format(target.replace("\n", "\n    ")),
            "",
        ]
        arguments = [
            self._writer.expression(_dicts(state[part]), self.name + SEPARATOR + part)
            for part in ("params", "state")
        ]
        arguments.append(self._writer.expression(state["rng"], self.name + SEPARATOR + "rng"))
        self._pass(
            [*arguments, *self._writer.items(args, {}, self.name)], kwargs, "transformed.apply"
        )

    def _pass(self, arguments: List[str], kwargs: Dict[str, Any], function: str) -> None:
        named = [self._writer.expression(kwargs, self.name)] if kwargs else []
        self._call = ['"{}"'.format(self.name), function, composed("", arguments), *named]


def _dicts(tree: Any) -> Any:
    """Return nested mappings as dictionaries."""
    if isinstance(tree, Mapping):
        return {key: _dicts(value) for key, value in tree.items()}
    return tree
