"""Suggest other shapes, dtypes, and values for the inputs that an error is about."""

from __future__ import annotations

import re
from typing import List

import jax

from . import candidates, guesses, shapes
from .blame import Blame
from .node import ARRAY, CONSTANT, DICT, KEY, LIST, OBJECT, TUPLE, Choice, Node, array, value

_VALUE_ERRORS = tuple(
    getattr(jax.errors, name)
    for name in (
        "ConcretizationTypeError",
        "TracerArrayConversionError",
        "TracerIntegerConversionError",
        "TracerBoolConversionError",
        "NonConcreteBooleanIndexError",
    )
    if hasattr(jax.errors, name)
)
_VALUE_TEXTS = re.compile(
    r"truth value of an array|[Oo]nly (integer )?scalar arrays|sequences of concrete values"
    r"|[Uu]nhashable|unhashable type|concrete value|interpreted as an integer|static arg"
    r"|must be (an )?integers?\b|not (a )?hashable|[Ee]xpected (an )?int|only length-1 arrays"
)


STRUCTURE = re.compile(
    r"(?<!as a )pytree|[Tt]ree ?(def|structure)"
    r"|node type mismatch|key mismatch|arity mismatch|same structure"
)


def needs_value(error: BaseException) -> bool:
    """Return whether an error says that a traced value must be concrete."""
    return isinstance(error, _VALUE_ERRORS) or bool(_VALUE_TEXTS.search(str(error)))


def wants_entries(message: str) -> bool:
    """Return whether an error says that an array is read like a dictionary."""
    return "string index" in message or "only integers, slices" in message


def missing_attribute(error: BaseException) -> str:
    """Return the attribute that an error says a value lacks; empty for other errors."""
    found = re.search(r"has no attribute '?(\w+)", str(error))
    return found.group(1) if found and isinstance(error, AttributeError) else ""


def python_values(node: Node, blamed: Blame) -> List[Choice]:
    """Return Python values in place of an array, by the error that asks for them."""
    text = type(blamed.error).__name__ + str(blamed.error)
    constant = [Choice(CONSTANT, node.choice.value)] if node.choice.kind == ARRAY else []
    array_like = constant and node.choice.value[0] and candidates.looks_like_array(node.name)
    numbers = [choice for number in blamed.numbers for choice in candidates.around(number)]
    if re.search("[Bb]ool|truth", text):
        if numbers:
            node.offer(numbers[:2])
        else:
            node.offer(candidates.both())
        values = numbers + candidates.both()
    elif re.search("Integer|integer|Shapes must be|shape|hash", text):
        values = candidates.integers(node.name)
    else:
        values = candidates.numbers(node.name)
    values = values + candidates.numbers(node.name)
    return constant + values if array_like else values + constant


def by_error(node: Node, blamed: Blame) -> List[Choice]:
    """Return other kinds of values that an error asks for in place of an array."""
    text = str(blamed.error)
    if keys := _keys(blamed):
        node.offer(keys)
        return keys + candidates.strings(node.name)
    if wants_entries(text):
        return [Choice(DICT), Choice(OBJECT)]
    if "callable" in text:
        return guesses.functions(node)
    if re.search(r"must be (a )?str|expected str|attribute name", text):
        return candidates.strings(node.name)
    if re.search(r"must be real number|as an integer|must be integers", text):
        return candidates.numbers(node.name)
    return []


def _keys(blamed: Blame) -> List[Choice]:
    """Return the keys of the dictionary that lacked one."""
    known = [key for key in blamed.keys if isinstance(key, (str, int))]
    return [value(key) for key in known] if isinstance(blamed.error, KeyError) else []


def choices(node: Node, blamed: Blame) -> List[Choice]:
    """Return everything to try for a node that an error is about, likeliest first."""
    if needs_value(blamed.error) and node.choice.kind in (ARRAY, KEY):
        first = python_values(node, blamed)
        if not isinstance(blamed.error, _VALUE_ERRORS):
            # "must be an integer" may be about the type of an array.
            first = types(node.choice, str(blamed.error)) + first
    else:
        first = repaired(node, blamed)
    if node.choice.kind in (ARRAY, CONSTANT):
        first = by_error(node, blamed) + first
        if candidates.is_text(node.name) and not node.inside:
            first = candidates.strings(node.name) + first
    if type(node.choice.value) is str:
        # What the code has compared it with, and what the message may allow.
        quoted = [value(text) for text in re.findall(r"['\"](\w+)['\"]", str(blamed.error))]
        first = _keys(blamed) + first + node.alternatives + quoted
    kept, seen = [], {node.choice.key()}
    for choice in [*first, *node.queue]:
        if choice.key() not in seen:
            seen.add(choice.key())
            kept.append(choice)
    return kept


def repaired(node: Node, blamed: Blame) -> List[Choice]:
    """Return the dtypes, shapes, or lengths that a message suggests for a node."""
    choice = node.choice
    message = str(blamed.error)
    parts = re.search(r"not enough values.*expected (\d+)", message) or re.search(
        r"too many values to unpack \(expected (\d+)", message
    )
    if choice.kind in (LIST, TUPLE):
        if STRUCTURE.search(message):
            return [Choice(TUPLE if choice.kind == LIST else LIST, node.count())]
        if re.search("operand|can't multiply sequence|bad operand|must be (real )?number", message):
            # It is unpacked, and also computed with.
            return [array((node.count(), *axes)) for axes in ((), (candidates.WIDTH,))]
        return [Choice(choice.kind, int(parts.group(1)))] if parts else []
    if choice.kind not in (ARRAY, CONSTANT):
        return []
    shape, dtype = choice.value
    queue = [_typed(other, dtype) for other in node.queue]
    if parts:
        rank = int(parts.group(1))
        more = (candidates.BATCH,) * (rank - len(shape))
        widened = [Choice(choice.kind, ((*more, *shape), dtype))] if more else []
        return shapes.ranked(queue, rank) + widened
    fewer = [Choice(choice.kind, (axes, dtype)) for axes in (shape[1:], shape[:-1]) if shape]
    if "convolution" in message and "ndim" in message:
        # Images and kernels; the next message is about their sizes.
        return shapes.ranked(queue, 4) + fewer[:1] + shapes.ranked(queue, 3)
    ranks = re.search(r"number of dimensions\D+(\d+)\D+(\d+)", message)
    if ranks:
        apart = abs(int(ranks.group(1)) - int(ranks.group(2)))
        cut = [shape[apart:], shape[: len(shape) - apart]] if apart <= len(shape) else []
        return [Choice(choice.kind, (axes, dtype)) for axes in cut] + shapes.ranked(
            queue, len(shape) + apart
        )
    fitting = shapes.repairs(choice, message, blamed.numbers)
    return types(choice, message) + fitting[:4] + fewer + fitting[4:] + queue


def _typed(choice: Choice, dtype: str) -> Choice:
    """Return an array of a dtype that has been found out, in another shape."""
    if choice.kind != ARRAY or dtype == "float32":
        return choice
    return array(choice.value[0], dtype)


def types(choice: Choice, message: str) -> List[Choice]:
    """Return the same array of another dtype, if a message mentions one."""
    if choice.kind not in (ARRAY, CONSTANT):
        return []
    shape, dtype = choice.value
    if dtype == "float32" and "float64" in message:
        return [Choice(choice.kind, (shape, "float64"))]
    if dtype == "float32" and re.search(r"integer|[Ii]ndexer|int32", message):
        return [Choice(choice.kind, (shape, "int32"))]
    if dtype == "float32" and re.search(r"\bbool", message):
        return [Choice(choice.kind, (shape, "bool"))]
    if dtype != "float32" and re.search(r"float|inexact|real-valued", message):
        return [array(shape, "float32")]
    return []


def describe(error: BaseException) -> str:
    """Return an error in one short line."""
    text = " ".join(str(error).split())
    text = re.sub(
        r"<?input_\d+_>?", "an argument", text.replace("inputs['", "").replace("_']", "_")
    )
    name = type(error).__name__
    return "{}: {}".format(name, text[:160] + ("…" if len(text) > 160 else ""))
