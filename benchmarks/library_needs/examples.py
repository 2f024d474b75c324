"""Write calls as source text for generated programs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import samples

_FUNCTIONS = {
    samples.first: "lambda *a: a[0]",
    samples.second: "lambda *a: a[1]",
    samples.carry_and_output: "lambda *a: (a[0], a[-1])",
    samples.add: "lambda a, b: a + b",
    samples.truth: "lambda *a: False",
    jnp.sum: "jnp.sum",
    jnp.triu: "jnp.triu",
    jax.lax.add: "jax.lax.add",
}


def call_text(
    name: str, parameters: Mapping[str, inspect.Parameter], values: Mapping[str, Any], varied: str
) -> tuple[str, str] | None:
    """Return the source of a value and of a call with `v` in its place, or None.

    Another array argument is written as `x`.
    """
    value = _text(values[varied])
    if value is None or parameters[varied].kind in (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ):
        return None
    x = next((n for n in values if n != varied and values[n] is samples.VECTOR), None)
    arguments: list[str] = []
    by_position = True
    variadic = any(p.kind is p.VAR_POSITIONAL and n in values for n, p in parameters.items())
    for parameter, detail in parameters.items():
        if parameter not in values:
            if detail.kind is detail.POSITIONAL_ONLY:
                return None
            by_position = False
            continue
        if detail.kind is detail.VAR_POSITIONAL:
            texts = [_text(v) for v in values[parameter]]
            if None in texts:
                return None
            arguments += [t for t in texts if t is not None]
            continue
        if detail.kind is detail.VAR_KEYWORD:
            arguments += [f"{n}={_text(v)}" for n, v in values[parameter].items()]
            continue
        text = "v" if parameter == varied else "x" if parameter == x else _text(values[parameter])
        if text is None:
            return None
        positional = by_position and (
            detail.default is detail.empty or variadic or detail.kind is detail.POSITIONAL_ONLY
        )
        if detail.kind is detail.KEYWORD_ONLY or not positional:
            text = f"{parameter}={text}"
        arguments.append(text)
    if name.startswith("jax.Array.at."):
        called = f"({arguments.pop(0)}).at[jnp.arange(3)].{name.rpartition('.')[2]}"
    elif name.startswith("jax.Array."):
        called = f"({arguments.pop(0)}).{name.rpartition('.')[2]}"
    else:
        called = name
    return value, f"{called}({', '.join(arguments)})"


def _text(value: Any) -> str | None:
    if value is samples.KEY:
        return "jax.random.PRNGKey(0)"
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if isinstance(value, jax.Array):
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            return "jax.random.key(0)"
        array = np.asarray(value)
        if array.size > 3 and (array == array.flat[0]).all():
            return f"jnp.full({array.shape}, {array.flat[0].item()!r}, {array.dtype.name!r})"
        numbers = " ".join(repr(array.tolist()).split())
        return f"jnp.array({numbers}, {value.dtype.name!r})"
    if isinstance(value, type) and getattr(jnp, value.__name__, None) is value:
        return f"jnp.{value.__name__}"
    if isinstance(value, dict):
        texts = [_text(v) for v in value.values()]
        if None in texts:
            return None
        return "{" + ", ".join(f"{k!r}: {t}" for k, t in zip(value, texts, strict=True)) + "}"
    if type(value) in (tuple, list):
        texts = [_text(v) for v in value]
        if None in texts:
            return None
        inner = ", ".join(t for t in texts if t is not None)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    try:
        return _FUNCTIONS.get(value)
    except TypeError:
        return None
