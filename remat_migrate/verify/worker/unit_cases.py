"""Derive the cases of a unit: inputs for it and for the functions that it returns."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import math
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import shim
from .comparison import results
from .environment import projects
from .frameworks import pure_functions
from .inputs import code_usage, construct, make, variants
from .load import Unit
from .lookup import bound, signature, unwrapped
from .transfer import pickling

Case = Dict[str, Any]

# The work for finding inputs for a function that a unit returns.
_WORK = make.WORK // 2
_MOST_ALSO_CALLED = 6
_MOST_SUBCLASSES = 2
_MOST_FILES = 400

_Cases = List[Tuple[str, Case]]


def all_cases(unit: Unit, classes: List[type], seconds: float = math.inf) -> make.Made:
    """Return inputs for a unit.

    `classes` are dataclasses of the project that may be arguments. After `seconds` of CPU time, no
    more are looked for.

    A case with `then` is about a function in the unit's result: where in it ("of"), and with which
    arguments to call that ("args", "kwargs").
    """
    end = time.process_time() + seconds
    made = make.make_cases(unit.function, unit.owner, classes, end)
    found = list(made.cases)
    for cls in _subclasses(unit):
        others = make.make_cases(unit.function, cls, classes, end)
        plain = [(about, case) for about, case in others.cases if not _is_scaled(about)]
        found += [(_named(cls, about), case) for about, case in plain]
    cases = [(about, _by_name(unit.function, case)) for about, case in found]
    if cases:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "case.pkl")
            derived = _further(unit, cases[0][1], classes, path, end)
            plain = [found for found in derived if not _is_scaled(found[0])]
            cases += plain + _also_called(cases, plain)
            cases += [found for found in derived if _is_scaled(found[0])]
    return made._replace(cases=cases)


def _subclasses(unit: Unit) -> Iterator[type]:
    """Yield classes of the project that inherit a method, and override what it reads of itself."""
    owner = unit.owner
    if owner is None or not projects.is_project_file(unit.file):
        return
    _import_users(owner, unit.file)
    read = code_usage.names_read([unwrapped(unit.function)])
    waiting: List[Any] = list(type.__subclasses__(owner))
    count = 0
    while waiting and count < _MOST_SUBCLASSES:
        cls = waiting.pop(0)
        waiting += type.__subclasses__(cls)
        overridden = set(vars(cls)).intersection(read)
        if overridden - {unit.function.__name__} and not inspect.isabstract(cls):
            count += 1
            yield cls


def _import_users(owner: type, file: str) -> None:
    """Import the modules in the folder of a class, or below, that define a class derived of it."""
    package, _, _ = owner.__module__.rpartition(".")
    folder = os.path.dirname(os.path.realpath(file))
    derived = re.compile(r"^class \w+\(.*\b%s\b" % re.escape(owner.__name__), re.MULTILINE)
    for path in sorted(Path(folder).rglob("*.py"))[:_MOST_FILES]:
        if derived.search(path.read_text(encoding="utf-8", errors="replace")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            with contextlib.suppress(Exception):  # as the module would where it is imported
                importlib.import_module("%s.%s" % (package, name) if package else name)


def _named(cls: type, about: str) -> str:
    return ", ".join(filter(None, ["self=" + cls.__name__, about]))


def _further(
    unit: Unit, case: Case, classes: List[type], path: str, end: float
) -> List[Tuple[str, Case]]:
    """Return the cases for the functions that the unit returns for its first case."""
    try:
        pickling.save(case, path)
    except pickling.CannotSave:
        return []  # reported for the case itself
    if not _is_left_by_functions(case["context"]):
        return []
    # A call may change or donate its arguments, so each gets a copy.
    return list(_of_result(unit, lambda: pickling.load(path), classes, end))


def _also_called(cases: List[Tuple[str, Case]], derived: List[Tuple[str, Case]]) -> _Cases:
    """Return cases with other flags that call the functions in the result as the first case does.

    A flag or a setting may matter only there.
    """
    first: Dict[str, Tuple[str, Case]] = {}
    for about, case in derived:
        if "then" in case:
            first.setdefault(case["then"]["of"], (about.partition(",")[0], case))
    others = [(about, case) for about, case in cases[1:] if not _is_scaled(about)]
    return [
        (about + ", " + what, dict(case, then=called["then"], context=called["context"]))
        for about, case in others[:_MOST_ALSO_CALLED]
        for what, called in first.values()
    ]


def _is_scaled(about: str) -> bool:
    """Return whether a case repeats the first with other sizes, types, or magnitudes."""
    last = about.rpartition(", ")[2]
    known = (variants.LOWER_PRECISION, *construct.MAGNITUDES.values())
    return last in known or variants.ABOUT in about


def _by_name(function: Any, case: Case) -> Case:
    """Return a case that passes the removed option and the parameters after it by keyword.

    A wrapper of the user's own may have that option as a parameter, which its migrated form lacks.
    """
    parameters = list(inspect.signature(function).parameters.values())
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if shim.GONE not in names or len(case["args"]) > len(names):
        return case
    first = names.index(shim.GONE)
    named = dict(zip(names[first:], case["args"][first:]))
    return dict(case, args=case["args"][:first], kwargs=dict(case["kwargs"], **named))


def _of_result(
    unit: Unit, load: Callable[[], Case], classes: List[type], end: float
) -> Iterator[Tuple[str, Case]]:
    """Yield cases for the functions in what a unit returns."""
    case = load()

    def outcome(*args: Any, **kwargs: Any) -> Any:
        return results.outcome_of(unit.function, args, kwargs)

    try:
        made_in = pure_functions.initialised(outcome, case["args"], case["kwargs"], case["context"])
        result = results.unfolded(made_in)
    except Exception:
        return  # evaluating the case reports it
    given = [*case["args"], *case["kwargs"].values()]
    for place, function in itertools.islice(results.functions(result), results.MOST_FUNCTIONS):
        if any(unwrapped(function) is unwrapped(one) for one in given):
            continue  # it is made up, and so would be the number of its arguments
        made = make.make_cases(function, None, classes, end, _WORK)
        for about, inner in made.cases:
            if _is_left_by_functions(inner["context"]):
                then = {"of": place, "args": inner["args"], "kwargs": inner["kwargs"]}
                what = "its result%s called" % place
                context = case["context"] or inner["context"]
                both = dict(load(), then=then, context=context)
                yield (what + ", " + about if about else what), both


def _is_left_by_functions(context: Any) -> bool:
    """Return whether a function that is made in a context works in another one of its kind.

    A Haiku function does in any transform; a Flax module does not.
    """
    return context is None or bool(context["library"] == "haiku")


def flipped(case: Case, function: Any) -> Iterator[Tuple[str, Case]]:
    """Yield a copy of the case for each Python bool in it, with that one inverted."""
    case = dict(case, asked_for=False)
    for index, value in enumerate(case["args"]):
        if isinstance(value, bool):
            args = tuple(not v if i == index else v for i, v in enumerate(case["args"]))
            yield "%s=%s" % (_parameter_name(function, index), not value), dict(case, args=args)
    for name, value in case["kwargs"].items():
        if isinstance(value, bool):
            kwargs = dict(case["kwargs"], **{name: not value})
            yield "%s=%s" % (name, not value), dict(case, kwargs=kwargs)


def _parameter_name(function: Any, index: int) -> str:
    made = signature(function)
    names = list(made.parameters) if made else []
    return names[index] if index < len(names) else "argument %d" % index


def left_out(function: Any, case: Case) -> List[str]:
    """Return the parameters for which a case passes what they default to."""
    found = bound(function, case["args"], case["kwargs"])
    if found is None:
        return []
    given, parameters = found.arguments, found.signature.parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    same = {name for name, value in given.items() if value is defaults[name]}
    plain = (bool, int, float, str)
    return sorted(
        same.union(
            name
            for name, value in given.items()
            if type(value) in plain and type(value) is type(defaults[name])
            if value == defaults[name]
        )
    )


def with_own_defaults(function: Any, case: Case) -> Case:
    """Return a case without what its parameters default to, which each side has by itself.

    Arguments after the first omitted one are passed by name.
    """
    found = bound(function, case["args"], case["kwargs"])
    if found is None:
        return case  # the call raises it again
    given, known = found.arguments, found.signature.parameters
    parameters = list(known.values())[: len(case["args"])]
    left_out = {
        name
        for name in case.get("left_out", ())
        if name in given and known[name].default is not inspect.Parameter.empty
    }
    first = next((i for i, p in enumerate(parameters) if p.name in left_out), len(parameters))
    if any(parameter.kind in _BY_PLACE for parameter in parameters[first:]):
        return case
    named = {p.name: given[p.name] for p in parameters[first:] if p.name not in left_out}
    kept = {name: value for name, value in case["kwargs"].items() if name not in left_out}
    return dict(case, args=case["args"][:first], kwargs={**named, **kept})


def by_position(function: Any, case: Case) -> Case:
    """Return a case with defaults written out and, where possible, arguments by position.

    Static arguments must be passed by position.
    """
    found = bound(function, case["args"], case["kwargs"])
    if found is None:
        return case  # the call raises it again
    found.apply_defaults()
    return dict(case, args=found.args, kwargs=found.kwargs)


def by_name(function: Any, case: Case) -> Case:
    """Return a case with the arguments of optional parameters by name, if they can be.

    A wrapper may bind named arguments and let JAX trace the others.
    """
    made = signature(function)
    if made is None:
        return case
    parameters = list(made.parameters.values())
    given = zip(parameters, case["args"])
    optional = [p for p, _ in given if p.default is not p.empty and p.kind not in _BY_PLACE]
    first = len(case["args"]) - len(optional)
    if [p.name for p in parameters[first : len(case["args"])]] != [p.name for p in optional]:
        return case
    named = {p.name: value for p, value in zip(optional, case["args"][first:])}
    return dict(case, args=case["args"][:first], kwargs={**named, **case["kwargs"]})


# How a case is called; fixes may change how the callers of a unit pass its arguments.
FORMS = {"": lambda function, case: case, "position": by_position, "name": by_name}
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
