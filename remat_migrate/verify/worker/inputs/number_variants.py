"""Vary the numbers of a case: a default used in place of an argument shows only then."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Iterator, List, Tuple

from ..frameworks import pure_functions
from ..frameworks.abstraction import evaluated

# How many numbers are changed one by one if they cannot all be changed together.
_MOST_INDIVIDUAL = 3

# The description of such a case; `prove` recognises it.
ABOUT = "other values of "

_Case = Dict[str, Any]
_Found = Tuple[str, _Case]
# A parameter's name, its position (None if passed by keyword), and another number for it.
_Number = Tuple[str, Any, Any]


def vary_numbers(function: Callable[..., Any], load: Callable[[], _Case]) -> Iterator[_Found]:
    """Yield cases that differ from one in its Python numbers or in defaulted numbers.

    All are changed together if the function runs so; else those are that can be changed alone.
    `load` makes the case anew.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    for other in (_other_number, _special):
        yield from _varied(function, load, list(_numbers(parameters, load(), other)))


def _varied(
    function: Callable[..., Any], load: Callable[[], _Case], numbers: List[_Number]
) -> Iterator[_Found]:
    if numbers and _runs(function, _with_numbers(load(), numbers)):
        yield _description(numbers), _with_numbers(load(), numbers)
    elif len(numbers) > 1:
        individual = [
            n for n in numbers[:_MOST_INDIVIDUAL] if _runs(function, _with_numbers(load(), [n]))
        ]
        if individual and _runs(function, _with_numbers(load(), individual)):
            yield _description(individual), _with_numbers(load(), individual)
        else:
            for number in individual:
                yield _description([number]), _with_numbers(load(), [number])


def _numbers(
    parameters: List[inspect.Parameter], case: _Case, other: Callable[[Any, int], Any]
) -> Iterator[_Number]:
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = 0
    for index, parameter in enumerate(parameters):
        place = None
        if index < len(case["args"]):
            if parameter.kind not in by_place:
                return  # `*args` takes the rest
            place, value = index, case["args"][index]
        elif parameter.kind in by_name:
            value = case["kwargs"].get(parameter.name, parameter.default)
        else:
            continue
        if type(value) in (int, float):
            yield parameter.name, place, other(value, found)
            found += 1


def _other_number(value: Any, found: int) -> Any:
    """Return another number of similar size and the same sign, different for each parameter."""
    if type(value) is int:
        return value + (1 if value >= 0 else -1) * (1 + found)
    return value * (0.75 - 0.0625 * (found % 8)) if value else 0.25 + 0.0625 * found


def _special(value: Any, found: int) -> Any:
    """Return a number that code may treat otherwise: one, or what is on the other side of 1.0."""
    if type(value) is int:
        return 1
    return 2.0 if value <= 1.0 else 0.5


def _with_numbers(case: _Case, numbers: List[_Number]) -> _Case:
    args, kwargs = list(case["args"]), dict(case["kwargs"])
    for name, place, value in numbers:
        if place is None:
            kwargs[name] = value
        else:
            args[place] = value
    return dict(case, args=tuple(args), kwargs=kwargs)


def _runs(function: Callable[..., Any], case: _Case) -> bool:
    try:
        for one in pure_functions.prepare(function, case):
            evaluated(*one[1:])
    except Exception:
        return False  # the new number is invalid
    return True


def _description(numbers: List[_Number]) -> str:
    return ABOUT + " and ".join(name for name, _, _ in numbers)
