"""The words without which a file cannot matter. Searching for them costs as much as `grep`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .code import code_of

# A file without one of these cannot apply a checkpoint, set the flag, or suppress a finding: the
# name of each Api contains one, and rule codes start with `RMT`.
WORDS = (b"remat", b"checkpoint", b"NEW_CHECKPOINT", b"RMT")

# The last parts of the names of the checkpoint family.
FAMILY = (b"checkpoint", b"filter_checkpoint", b"remat", b"remat_scan")

# The packages of the checkpoint family, and the usual names of their modules.
LIBRARY = (b"jax", b"flax", b"haiku", b"equinox", b"nnx", b"hk.", b"brainstate", b"JAX", b"Jax")

# The flag in its two spellings. A file with one of them is always looked at.
FLAGS = (b"jax_new_checkpoint", b"JAX_NEW_CHECKPOINT")

# The option that was removed.
CONCRETE = b"concrete"

# A comment that suppresses findings.
SUPPRESSION = re.compile(rb"RMT\d|remat-migrate")

# A differentiated scan: its call, and the name of a function that differentiates.
SCAN = b"scan("
_GRADIENTS = (b"grad", b"vjp", b"jacrev", b"jacobian", b"hessian", b"linearize", b"minimize")
# The names of functions that differentiate.
DIFFERENTIATING = frozenset(
    prefix + word.decode()
    for word in _GRADIENTS
    for prefix in ("", "filter_", "value_and_", "filter_value_and_")
)
_BEFORE_GRADIENT = re.compile(rb"(?<!\w)(?:filter_)?(?:value_and_)?\Z")
_AFTER_GRADIENT = re.compile(rb"(?:_from_state)?(?!\w)")

# JSON may contain letters of a word as escapes, though nobody writes them.
ESCAPED = re.compile(rb"\\u00[2-7]")

# A checkpoint that is not applied immediately: `ck = jax.checkpoint`, `checkpoint as ck`,
# `ck = nnx.remat(prevent_cse=False)`
_MENTION = re.compile(
    rb"\b(?:filter_)?(?:remat|checkpoint)\b"
    rb"(?:[ \t]+as[ \t]+(\w+)|(?![ \t]*\((?!\s*(?:\)|\w+[ \t]*=))))"
)
_TARGETS = re.compile(rb"[ \t]*(?:\w+\.)*(\w+)[ \t]*(?::[^=,\n]*)?(?:,|=(?!=))")
# A line that opens a bracket.
_OPENED = re.compile(rb"[({\[][ \t]*(?:#.*)?\Z")
_MOST_LINES = 40


def places_of(word: bytes, data: bytes) -> Iterator[int]:
    """Yield the places of a word in some bytes."""
    at = data.find(word)
    while at >= 0:
        yield at
        at = data.find(word, at + 1)


def may_differentiate_scan(data: bytes) -> bool:
    """Return whether a file may differentiate a scan, whose body may want a checkpoint."""
    return SCAN in data and may_differentiate(data, SCAN)


def may_differentiate(data: bytes, *words: bytes) -> bool:
    """Return whether a file may differentiate a function, and has some words in its code."""
    if b"jax" not in data or not _differentiates(data):
        return False
    code = code_of(data)  # without comments and docstrings
    return _differentiates(code) and all(word in code for word in (b"jax", *words))


def _differentiates(code: bytes) -> bool:
    for word in _GRADIENTS:
        at = code.find(word)
        while at >= 0:
            end = at + len(word)
            if _AFTER_GRADIENT.match(code, end) and _BEFORE_GRADIENT.search(
                code, max(0, at - 18), at
            ):
                return True
            at = code.find(word, end)
    return b"jaxopt" in code


def bound_aliases(data: bytes) -> Iterator[bytes]:
    """Yield the names that a Python file may bind to a checkpoint."""
    for mention in _MENTION.finditer(data):
        if mention[1]:
            yield mention[1]
        at = data.rfind(b"\n", 0, mention.start()) + 1
        before = data[at : mention.start()]
        code = before.lstrip(b" \t")
        if code.startswith(b"@") or b"#" in code:
            continue
        yield from _targets(before)
        # In brackets over several lines: `OPS = {`
        indent = len(before) - len(code)
        for _ in range(_MOST_LINES if indent else 0):
            start = data.rfind(b"\n", 0, max(at - 1, 0)) + 1
            line = data[start : max(at - 1, 0)]
            if len(line) - len(line.lstrip(b" \t")) < indent and line.strip():
                if _OPENED.search(line):
                    yield from _targets(line)
                break
            if start == 0:
                break
            at = start


def _targets(text: bytes) -> Iterator[bytes]:
    """Yield the targets at the start of an assignment: `a, b =`, `a = b =`, `ops.a: Any =`."""
    at = 0
    names: list[bytes] = []
    while (found := _TARGETS.match(text, at)) is not None:
        at = found.end()
        names.append(found[1])
        if found[0].endswith(b"="):
            yield from names
            names.clear()
