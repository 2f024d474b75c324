"""Read cases that the user declares: a Python file of functions that return arguments.

A function belongs to the unit of the same name (`def attention_block(): ...`), or to the name that
the dictionary `CASES` maps to it: `"Net.__call__"`, `"trainer.blocks.head"`. It returns a tuple of
positional arguments, a dictionary of keyword arguments, or both as `(tuple, dict)`. A generator
function gives several cases. For a method, the first argument is the instance. Each
`jax.ShapeDtypeStruct` is replaced by a random array, unless those of a case are too large together:
then they stay as they are, and the unit is only traced.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

import jax
import numpy as np

from ..load import NotFound
from ..transfer.arrays import made_numbers

Case = Dict[str, Any]

# Larger arguments are not computed with: a unit needs several times as much memory, and time.
_MOST_BYTES = 2**26


def read(file: str, units: List[str], known: List[str]) -> Dict[str, List[Tuple[str, Case]]]:
    """Return the cases in a file by the name of the unit.

    Args:
        file: the path of the file of cases.
        units: dotted names of the units to find cases for.
        known: dotted names of all units that there are.

    Raises:
        NotFound: a function is for no unit, or for several.
        Exception: whatever the file or one of its functions raises.
    """
    return {
        unit: list(_cases(function))
        for name, function in functions(file)
        for unit in _units_of(name, units, known)
    }


def functions(file: str) -> Iterator[Tuple[str, Callable[[], Any]]]:
    """Yield the functions in a file of cases, with the names of their units.

    Raises:
        NotFound: it is no Python file, or its `CASES` is no dictionary.
        Exception: whatever the file raises.
    """
    spec = importlib.util.spec_from_file_location("remat_migrate_cases", file)
    if spec is None or spec.loader is None:
        raise NotFound("%s is not a Python file" % file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    declared = getattr(module, "CASES", {})
    if not isinstance(declared, dict):
        raise NotFound("CASES must be a dictionary from names of units to functions")
    for name, function in declared.items():
        yield name, function
    taken = list(declared.values())
    for name, function in vars(module).items():
        own = inspect.isfunction(function) and function.__module__ == module.__name__
        if own and not name.startswith("_") and function not in taken:
            # Functions with parameters are helpers.
            if not inspect.signature(function).parameters:
                yield name, function


def _units_of(name: str, units: List[str], known: List[str]) -> List[str]:
    found = [unit for unit in units if unit == name or unit.endswith("." + name)]
    if len(found) == 1:
        return found
    if found:
        raise NotFound(
            "the case %s matches several units (%s): use the full name in CASES"
            % (name, ", ".join(sorted(found)))
        )
    if any(unit == name or unit.endswith("." + name) for unit in known):
        return []
    lasts = {unit.rpartition(".")[2] for unit in known}
    hint = nearest(name, sorted(lasts | set(known)))
    raise NotFound("the case %s matches no unit%s" % (name, hint))


def nearest(name: str, known: List[str]) -> str:
    """Return `; did you mean X?` with the nearest of the known names, or nothing."""
    near = difflib.get_close_matches(name, known, n=1)
    return "; did you mean %s?" % near[0] if near else ""


def _cases(function: Callable[[], Any]) -> Iterator[Tuple[str, Case]]:
    result = function()
    results = result if inspect.isgenerator(result) else [result]
    for number, one in enumerate(results):
        if _bytes(one) <= _MOST_BYTES:
            one = _filled(one, number)
        args, kwargs = arguments(one, function.__name__)
        yield "", {"args": args, "kwargs": kwargs, "context": None, "asked_for": True}


def _filled(tree: Any, number: int) -> Any:
    """Replace shapes by random arrays: the same in every run, different for each shape."""
    random = np.random.default_rng(number)

    def fill(leaf: Any) -> Any:
        if not _is_struct(leaf):
            return leaf
        # Small integers are valid indices.
        drawn = made_numbers(random, leaf.shape, leaf.dtype, most=2)
        return jax.numpy.asarray(drawn).astype(leaf.dtype)

    return jax.tree_util.tree_map(fill, tree, is_leaf=_is_struct)


def arguments(value: Any, name: str) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Return the result of a case function as positional and keyword arguments.

    Raises:
        NotFound: it is none of the forms that a case may have.
    """
    if type(value) is tuple:
        if len(value) == 2 and type(value[0]) is tuple and type(value[1]) is dict:
            if all(isinstance(key, str) for key in value[1]):
                return value[0], value[1]
        return value, {}
    if type(value) is dict:
        return (), value
    raise NotFound(
        "the case %s returned a %s: return a tuple of arguments, or a dictionary of keyword"
        " arguments" % (name, type(value).__name__)
    )


def _is_struct(value: Any) -> bool:
    return isinstance(value, jax.ShapeDtypeStruct)


def _bytes(tree: Any) -> int:
    """Return how many bytes the arrays of the shapes in a tree take."""
    leaves = jax.tree_util.tree_leaves(tree, is_leaf=_is_struct)
    return sum(
        int(np.prod(leaf.shape, dtype=np.int64)) * np.dtype(leaf.dtype).itemsize
        for leaf in leaves
        if _is_struct(leaf)
    )
