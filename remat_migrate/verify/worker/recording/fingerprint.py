"""Fingerprints of leaves, by which two runs are compared without keeping their arrays.

A fingerprint is a list that JSON can hold:

- `["array", dtype, shape, weak, entries, finite, nans, sums, largest, samples]`: `weak` is None for
  numpy's; `sums` are those of x, |x|, x² and w·x, with fixed weights w, over the finite entries;
- `["traced", dtype, shape, weak]`: an array of which only that is known;
- `["number", kind, value]`: a Python bool, int, float or complex;
- `["static", text]`: anything else.

Numpy only: it runs inside host callbacks.
"""

from __future__ import annotations

import enum
import os
import pathlib
import re
import types
import zlib
from typing import Any, List, Optional

import numpy as np

from . import traversal

Fingerprint = List[Any]

# Sums over more entries than this use evenly spaced ones: a training step has many arrays, and the
# saved inputs are compared entry by entry anyway.
MOST_SUMMED = 1 << 16
SAMPLES = 9

# The prefix for functions, whose names a migration may change.
FUNCTION = "function "
LONGEST_TEXT = 200

# Numeric dtypes of ml_dtypes, which numpy takes for raw bytes.
_EXTRA = ("bfloat", "float", "int", "uint")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_weights: List[Any] = []


def of_array(array: Any, weak: Optional[bool] = None, dtype: Optional[str] = None) -> Fingerprint:
    """Return the fingerprint of a numpy array; `dtype` is the name of the dtype it represents."""
    name = dtype or str(array.dtype)
    shape = list(array.shape)
    flat = array.reshape(-1)
    if array.dtype.hasobject or not _is_number(array.dtype):
        return ["static", _shortened("{} {} {}".format(name, shape, flat[:8].tolist()))]
    samples = _numbers(flat[places(flat.size)]).tolist()
    step = -(-flat.size // MOST_SUMMED) or 1
    numbers = _numbers(flat[::step])
    finite = np.isfinite(numbers)
    sound = int(np.count_nonzero(finite))
    nans = int(np.count_nonzero(np.isnan(numbers))) if sound < numbers.size else 0
    if sound < numbers.size:
        numbers = np.where(finite, numbers, 0.0)
    size = np.abs(numbers)
    with np.errstate(over="ignore"):
        # No dot products: numpy runs those in threads, which compete with JAX's.
        sums = [
            float(numbers.sum()),
            float(size.sum()),
            float(np.square(numbers).sum()),
            float((numbers * weights(numbers.size)).sum()),
        ]
    largest = float(size.max()) if size.size else 0.0
    return ["array", name, shape, weak, int(numbers.size), sound, nans, sums, largest, samples]


def of_leaf(value: Any) -> Fingerprint:
    """Return the fingerprint of a leaf; for a tracer, only its shape and dtype."""
    if traversal.is_tracer(value):
        return of_tracer(value)
    if type(value) in (bool, int, float):
        return ["number", type(value).__name__, value]
    if isinstance(value, complex):
        return ["number", "complex", [value.real, value.imag]]
    if traversal.is_array(value):
        return _of_concrete(value)
    return ["static", described(value)]


def of_tracer(value: Any) -> Fingerprint:
    """Return the fingerprint of a tracer."""
    aval = value.aval
    shape = [size if isinstance(size, int) else str(size) for size in getattr(aval, "shape", ())]
    dtype = str(getattr(aval, "dtype", type(aval).__name__))
    return ["traced", dtype, shape, getattr(aval, "weak_type", None)]


def _of_concrete(value: Any) -> Fingerprint:
    try:
        weak = (
            None
            if isinstance(value, (np.ndarray, np.generic))
            else bool(getattr(value, "weak_type", False))
        )
        return of_array(bits(value), weak, str(value.dtype))
    except Exception as error:  # deleted, or not fully on this host
        return ["static", "{} {}: {}".format(value.dtype, list(value.shape), type(error).__name__)]


def bits(value: Any) -> Any:
    """Return a concrete array as a numpy array, a typed random key as its key data. Blocks."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    from ..transfer import arrays  # imports JAX, which reading events does not need

    return np.asarray(arrays.key_data(value) if arrays.is_key(value) else value)


def key_kind(value: Any) -> Optional[str]:
    """Return the name of the generator if a JAX array or tracer is a typed random key."""
    from ..transfer import arrays

    return arrays.key_implementation(value) if arrays.is_key(value) else None


def described(value: Any) -> str:
    """Describe a leaf that is not a number in a few words that are the same in two runs."""
    if value is None or isinstance(value, (str, bytes)):
        return _shortened(repr(value))
    if value is traversal.Truncated:
        return "..."
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        word = "class " if isinstance(value, type) else FUNCTION
        return "{}{}.{}".format(word, value.__module__, value.__qualname__)
    kind = type(value)
    name = "{}.{}".format(kind.__module__, kind.__qualname__)
    # The repr of a program's own classes may be anything; these are reliable.
    plain = isinstance(value, (slice, range, type(Ellipsis), frozenset, set, bytearray))
    library = kind.__module__.partition(".")[0] in ("numpy", "jax", "ml_dtypes", "pathlib")
    if plain or library or isinstance(value, (enum.Enum, pathlib.PurePath)):
        return "{} {}".format(name, _shortened(repr(value)))
    return name


def _shortened(text: str) -> str:
    text = _ADDRESS.sub("", text)
    for variable, name in (("REMAT_MIGRATE_COPY", "<project>"), ("TMPDIR", "<tmp>")):
        folder = os.environ.get(variable)
        if folder:
            text = text.replace(folder, name)
    if len(text) <= LONGEST_TEXT:
        return text
    return "{}... ({} characters, {:08x})".format(
        text[:LONGEST_TEXT], len(text), zlib.crc32(text.encode("utf-8", "replace"))
    )


def weights(count: int) -> Any:
    """Return fixed aperiodic weights in [-0.5, 0.5): a weighted sum detects swapped entries."""
    if not _weights or _weights[0].size < count:
        _weights[:] = [np.modf(np.arange(1, max(count, 1024) + 1) * 0.6180339887498949)[0] - 0.5]
    return _weights[0][:count]


def as_array(leaf: Fingerprint) -> Fingerprint:
    """Return the fingerprint that a Python number has as an array, other fingerprints unchanged."""
    if leaf[0] != "number":
        return leaf
    value = complex(*leaf[2]) if leaf[1] == "complex" else leaf[2]
    return of_array(np.asarray(value))


def places(size: int) -> Any:
    """Return the indices of the entries to keep: first, last, and some in between."""
    if size <= SAMPLES:
        return np.arange(size)
    between = (weights(SAMPLES - 2) + 0.5) * size
    return np.unique(np.concatenate([[0, size - 1], between.astype(np.int64)]))


def _is_number(dtype: Any) -> bool:
    """Return whether a dtype is numeric, including bfloat16, float8, and int4."""
    if dtype.kind in "SUV":
        return dtype.kind == "V" and dtype.fields is None and dtype.name.startswith(_EXTRA)
    return True


def _numbers(flat: Any) -> Any:
    """Return the entries as float64, a complex entry as two."""
    if flat.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], axis=-1).reshape(-1)
    if flat.dtype.kind in "mM":
        flat = flat.astype(np.int64)
    return flat.astype(np.float64)
