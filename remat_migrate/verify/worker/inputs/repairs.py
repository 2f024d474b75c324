"""Suggest other shapes, dtypes, and values for an input, given an error that it may be about."""

from __future__ import annotations

import re
from typing import Collection, List

from ..program.trace import CONCRETE
from . import candidates, guesses, shapes
from .node import ARRAY, CONSTANT, DICT, KEY, LIST, TUPLE, VALUE, Choice, Node, array, value

_VALUE_TEXTS = re.compile(
    r"truth value of an array|[Oo]nly (integer )?scalar arrays|sequences of concrete values"
    r"|[Uu]nhashable|unhashable type|concrete value|interpreted as an integer|static arg"
    r"|must be (an )?integers?\b|not (a )?hashable|[Ee]xpected (an )?int|only length-1 arrays"
)

# Flax says so of random keys for a network.
_KEYS = re.compile(r'needs PRNG for "(\w+)"|RNGs should be of shape|rngs should be a dictionary')


def needs_value(error: BaseException) -> bool:
    """Return whether an error says that a traced value must be concrete."""
    return isinstance(error, CONCRETE) or bool(_VALUE_TEXTS.search(str(error)))


def missing_attribute(error: BaseException) -> str:
    """Return the attribute that an error says a value lacks; empty for other errors."""
    found = re.search(r"has no attribute '?(\w+)", str(error))
    return found.group(1) if found and isinstance(error, AttributeError) else ""


def missing_entry(error: BaseException) -> str:
    """Return the key or the attribute that an error says a dictionary lacks; empty for others."""
    if found := _KEYS.search(str(error)):
        return found.group(1) or "dropout"
    if isinstance(error, KeyError) and error.args and type(error.args[0]) is str:
        return error.args[0]
    return missing_attribute(error) if isinstance(getattr(error, "obj", None), dict) else ""


def others_of(choice: Choice) -> List[Choice]:
    """Return the values that are worth a case beside one that an error has asked for."""
    return candidates.both() if choice.kind == VALUE and type(choice.value) is bool else []


def choices(node: Node, error: BaseException, integers: Collection[int]) -> List[Choice]:
    """Return everything to try for a node, likeliest first.

    `integers` are those of the unit's code, which tell how arrays are split.
    """
    text = str(error)
    found: List[Choice] = []
    if type(node.choice.value) is str:
        # What the message may allow.
        found = node.alternatives + [value(one) for one in re.findall(r"['\"](\w+)['\"]", text)]
    elif node.choice.kind in (ARRAY, KEY) and needs_value(error):
        # "must be an integer" may be about the type of an array.
        typed = [] if isinstance(error, CONCRETE) else _types(node.choice, text)
        found = typed + _python_values(node, error)
    elif node.choice.kind == KEY and _KEYS.search(text):
        found = [Choice(DICT, (missing_entry(error),))]
    elif node.choice.kind in (ARRAY, CONSTANT):
        found = _other_kinds(node, text) + _arrays(node, text, integers)
    elif node.choice.kind == DICT and (name := missing_entry(error)):
        known = node.choice.value if node.choice.value != candidates.MADE_UP else ()
        found = [Choice(DICT, (*known, name))]
    elif node.choice.kind in (LIST, TUPLE):
        found = _sequences(node.choice, text)
    kept = {choice.key(): choice for choice in [*found, *node.queue]}
    kept.pop(node.choice.key(), None)
    return list(kept.values())


def _python_values(node: Node, error: BaseException) -> List[Choice]:
    """Return Python values in place of an array, by the error that asks for them."""
    text = type(error).__name__ + str(error)
    constant = [Choice(CONSTANT, node.choice.value)] if node.choice.kind == ARRAY else []
    if re.search("[Bb]ool|truth", text):
        values = candidates.both()
    elif re.search("Integer|integer|Shapes must be|shape|hash", text):
        values = candidates.integers(node.name)
    else:
        values = []
    values = values + candidates.numbers(node.name)
    is_array = constant and node.choice.value[0] and candidates.looks_like_array(node.name)
    return constant + values if is_array else values + constant


def _other_kinds(node: Node, text: str) -> List[Choice]:
    """Return other kinds of values that an error asks for in place of an array."""
    if "string index" in text or "only integers, slices" in text:
        return [Choice(DICT)]
    if "callable" in text:
        return guesses.functions(node)
    is_text = candidates.matches(candidates.TEXT, node.name) and not node.inside
    if is_text or re.search(r"must be (a )?str|expected str|attribute name", text):
        return candidates.strings(node.name)
    if re.search(r"must be real number|as an integer|must be integers", text):
        return candidates.numbers(node.name)
    return []


def _sequences(choice: Choice, text: str) -> List[Choice]:
    """Return the lengths and the kinds that a message suggests for a list or tuple."""
    if re.search("operand|can't multiply sequence|bad operand|must be (real )?number", text):
        # It is unpacked, and also computed with.
        count = choice.value if isinstance(choice.value, int) else len(choice.value)
        return [array((count, *axes)) for axes in ((), (candidates.WIDTH,))]
    wanted = shapes.unpacked(text)
    return [Choice(choice.kind, wanted)] if wanted else []


def _arrays(node: Node, text: str, integers: Collection[int]) -> List[Choice]:
    """Return the dtypes and shapes that a message suggests for an array."""
    kind, (shape, dtype) = node.choice.kind, node.choice.value
    # What has been found out about the type holds for other shapes.
    queue = [
        array(other.value[0], dtype) if other.kind == ARRAY and dtype != "float32" else other
        for other in node.queue
    ]
    fewer = [Choice(kind, (axes, dtype)) for axes in (shape[1:], shape[:-1]) if shape]
    if wanted := shapes.rank_wanted(text, len(shape)):
        more = (candidates.BATCH,) * (wanted - len(shape))
        cut = [axes for axes in (shape[-wanted:], shape[:wanted]) if len(axes) == wanted]
        fitting = [Choice(kind, (axes, dtype)) for axes in cut]
        return [*fitting, *shapes.ranked(queue, wanted), Choice(kind, ((*more, *shape), dtype))]
    fitting = shapes.repairs(node.choice, text, integers)
    return _types(node.choice, text) + fitting[:4] + fewer + fitting[4:] + queue


def _types(choice: Choice, message: str) -> List[Choice]:
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
