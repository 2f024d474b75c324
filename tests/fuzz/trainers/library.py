"""Calls of library functions with a Python value `{n}` as one of their arguments.

Each is an expression of the vector `y` of three entries, with possible values of `{n}`. Functions
that also accept a traced value are included: these values need not be concrete. `CALLS` are
commonly used functions, `probed` those that `benchmarks.library_needs` has found.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FLAGS = ("True", "False")
_SMALL = ("1", "2")
_AXIS = ("0", "-1")

CALLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("jnp.cumsum(y, axis={n})", _AXIS),
    ("lax.cumsum(y, reverse={n})", _FLAGS),
    ("lax.cumprod(y, 0, {n})", _FLAGS),
    ("lax.cummax(y, reverse={n})", _FLAGS),
    ("lax.cumlogsumexp(y, reverse={n})", _FLAGS),
    ("jnp.diag(y, k={n})", ("0", "1")),
    ("jnp.diag(y, {n})", ("0", "-1")),
    ("jnp.diagonal(jnp.outer(y, y), offset={n})", ("0", "1")),
    ("jnp.trace(jnp.outer(y, y), {n})", ("0", "1")),
    ("jnp.tril(jnp.outer(y, y), k={n})", ("0", "-1")),
    ("jnp.triu(jnp.outer(y, y), {n})", ("0", "1")),
    ("jnp.eye(3, k={n}) @ y", ("0", "1")),
    ("jnp.eye(3, 3, {n}) @ y", ("0", "1")),
    ("jnp.rot90(jnp.outer(y, y), k={n})", _SMALL),
    ("jnp.rot90(jnp.outer(y, y), {n}) @ y", ("0", "3")),
    ("jnp.roll(y, {n})", _SMALL),
    ("jnp.flip(y, axis={n})", _AXIS),
    ("jnp.expand_dims(y, {n})", ("0", "1")),
    ("jnp.squeeze(y[None], axis={n})", ("0", "(0,)")),
    ("jnp.moveaxis(y[None], 0, {n})", ("0", "1")),
    ("jnp.swapaxes(y[None], 0, {n})", ("0", "1")),
    ("jnp.transpose(y[None], {n})", ("(1, 0)", "(0, 1)")),
    ("jnp.concatenate([y, y], axis={n})", ("0", "-1")),
    ("jnp.stack([y, y], axis={n}) * 0.5", ("0", "1")),
    ("jnp.split(y, {n})[0]", ("1", "3")),
    ("jnp.array_split(y, {n})[0]", _SMALL),
    ("jnp.tile(y, {n})", _SMALL),
    ("jnp.repeat(y, {n})", _SMALL),
    ("jnp.repeat(y, 2, axis={n})", _AXIS),
    ("jnp.repeat(y, jnp.array([1, 2, 0]), total_repeat_length={n})", ("3", "4")),
    ("jnp.pad(y, {n})", _SMALL),
    ("jnp.pad(y, 1, mode={n})", ("'edge'", "'reflect'")),
    ("jnp.diff(y, n={n})", _SMALL),
    ("jnp.vander(y, N={n})", ("2", "3")),
    ("jnp.linspace(0.0, 1.0, num={n}).sum() * y", ("2", "3")),
    ("jnp.linspace(0.0, 1.0, 3, endpoint={n}) * y", _FLAGS),
    ("jnp.arange({n}).sum() * y", ("2", "3")),
    ("jnp.full((3,), 0.5, dtype={n}) * y", ("'float32'", "jnp.float32")),
    ("y.astype({n})", ("'float32'", "jnp.float32")),
    ("jnp.sum(y, axis={n})", _AXIS),
    ("jnp.mean(y, keepdims={n})", _FLAGS),
    ("jnp.max(y, {n})", _AXIS),
    ("jnp.std(y, ddof={n})", ("0", "1")),
    ("jnp.sort(y, descending={n})", _FLAGS),
    ("jnp.quantile(y, 0.5, method={n})", ("'linear'", "'lower'")),
    ("jnp.convolve(y, y, mode={n})", ("'full'", "'same'")),
    ("jnp.einsum({n}, y, y)", ("'i,i->'", "'i,j->ij'")),
    ("jnp.tensordot(y, y, {n})", ("0", "1")),
    ("jnp.linalg.norm(y, ord={n})", ("1", "2")),
    ("jnp.linalg.matrix_power(jnp.diag(y), {n})", ("1", "2")),
    ("jnp.unique(y, size={n})", ("2", "3")),
    ("jnp.nonzero(y, size={n})[0] * y[:{n}]", ("2", "3")),
    ("jnp.fft.fft(y, {n}).real", ("2", "3")),
    ("jnp.apply_along_axis(jnp.sin, {n}, y)", _AXIS),
    ("lax.top_k(y, {n})[0]", _SMALL),
    ("lax.reduce_precision(y, {n}, 10)", ("5", "8")),
    ("lax.reduce_precision(y, 8, mantissa_bits={n})", ("7", "10")),
    ("lax.iota(jnp.float32, {n}).sum() * y", ("2", "3")),
    ("lax.broadcast(y, {n})", ("(2,)", "()")),
    ("lax.expand_dims(y, {n})", ("(0,)", "(1,)")),
    ("lax.slice_in_dim(y, 0, {n})", ("2", "3")),
    ("lax.dynamic_slice_in_dim(y, 0, {n})", ("1", "2")),
    ("lax.squeeze(y[None], {n})", ("(0,)", "[0]")),
    ("lax.rev(y, {n})", ("(0,)", "()")),
    ("lax.integer_pow(y, {n})", ("2", "3")),
    ("lax.sort(y, dimension={n})", ("0", "-1")),
    ("lax.map(jnp.sin, y, batch_size={n})", ("None", "1")),
    ("lax.scan(lambda c, a: (c + a, c), 0.0, y, reverse={n})[1]", _FLAGS),
    ("lax.scan(lambda c, a: (c + a, c), 0.0, y, unroll={n})[0] * y", ("1", "True")),
    ("lax.associative_scan(jnp.add, y, reverse={n})", _FLAGS),
    ("lax.fori_loop(0, {n}, lambda _, a: jnp.sin(a), y)", _SMALL),
    ("lax.conv_general_dilated(IMAGE * y[0], KERNEL, window_strides={n}, padding='SAME',"
     " dimension_numbers=('NHWC', 'HWIO', 'NHWC'))", ("(1, 1)", "(2, 2)")),
    ("lax.conv_general_dilated(IMAGE * y[0], KERNEL, (1, 1), {n},"
     " dimension_numbers=('NHWC', 'HWIO', 'NHWC'))", ("'SAME'", "'VALID'")),
    ("lax.reduce_window(y, 0.0, lax.add, {n}, (1,), 'VALID')", ("(1,)", "(2,)")),
    ("jax.nn.one_hot(jnp.arange(3), {n}).sum() * y", ("3", "4")),
    ("jax.nn.softmax(y, axis={n})", _AXIS),
    ("jax.nn.log_softmax(y, {n})", _AXIS),
    ("jax.nn.logsumexp(y, keepdims={n})", _FLAGS),
    ("jax.nn.gelu(y, approximate={n})", _FLAGS),
    ("jax.nn.standardize(y, axis={n})", _AXIS),
    ("jax.nn.glu(jnp.stack([y, y]), {n})", ("0",)),
    ("jax.ops.segment_sum(y, jnp.array([0, 1, 1]), num_segments={n})", ("2", "3")),
    ("jax.ops.segment_max(y, jnp.array([0, 1, 1]), {n})", ("2",)),
    ("jax.random.normal(KEY, {n}) * y", ("(3,)", "(1, 3)")),
    ("jax.random.uniform(KEY, shape={n}) * y", ("(3,)", "(2, 3)")),
    ("jax.random.split(KEY, {n}).shape[0] * y", ("2", "3")),
    ("jax.random.permutation(KEY, y, independent={n})", _FLAGS),
    ("jax.random.choice(KEY, y, replace={n})", _FLAGS),
    ("jax.image.resize(y, {n}, 'linear')", ("(2,)", "(4,)")),
    ("jax.image.resize(y, (4,), method={n})", ("'nearest'", "'linear'")),
    ("jax.scipy.special.logsumexp(y, axis={n})", _AXIS),
    ("jax.vmap(lambda a, b: a * b, in_axes={n})(y, y)", ("0", "(0, 0)")),
    ("jax.vmap(jnp.sin, out_axes={n})(y)", ("0", "-1")),
    ("jax.vmap(jnp.outer, in_axes=(0, {n}))(y, y)", ("0", "None")),
    ("jax.grad(lambda a, b: a @ b, argnums={n})(y, y)", ("0", "1")),
    ("jax.named_scope({n})(jnp.sin)(y)", ("'block'", "'layer'")),
    ("jax.named_call(jnp.sin, name={n})(y)", ("'block'", "'layer'")),
    ("jax.jit(jnp.cumsum, static_argnums={n})(y, 0)", ("1", "(1,)")),
    ("jax.tree.map(jnp.sin, (y, y))[{n}]", ("0", "1")),
    ("y.reshape({n})", ("(3,)", "(1, 3)")),
    ("y.sum({n})", _AXIS),
    ("y.repeat({n})", _SMALL),
    # The value may be traced.
    ("jax.random.fold_in(KEY, {n}).shape[0] * y + jax.random.uniform(jax.random.fold_in(KEY, {n}))",
     ("1", "2")),
    ("jax.random.bernoulli(KEY, {n}, (3,)) * y", ("0.5", "0.9")),
    ("jax.random.normal(jax.random.key({n}), (3,)) * y", ("1", "2")),
    ("jnp.take(y, {n})", ("0", "1")),
    ("y[{n}]", ("0", "1")),
    ("y.at[{n}].set(0.0)", ("0", "1")),
    ("lax.dynamic_index_in_dim(y, {n}, 0)", ("0", "1")),
    ("lax.dynamic_slice(y, ({n},), (2,))", ("0", "1")),
    ("jnp.clip(y, -1.0, {n})", ("0.3", "1")),
    ("jax.nn.one_hot({n}, 3) * y", ("0", "2")),
    ("jax.nn.leaky_relu(y, {n})", ("0.1", "0.2")),
    ("jax.nn.elu(y, alpha={n})", ("0.5", "1.0")),
    ("jnp.where(jnp.arange(3) < {n}, y, 0.0)", ("1", "2")),
    ("jnp.power(jnp.abs(y) + 0.1, {n})", ("2", "0.5")),
    ("lax.cond({n}, jnp.sin, jnp.cos, y)", _FLAGS),
    ("lax.switch({n}, (jnp.sin, jnp.cos), y)", ("0", "1")),
    ("lax.select({n}, y, -y)", _FLAGS),
    ("jnp.full_like(y, {n})", ("0.5", "2.0")),
    ("jnp.maximum(y, {n})", ("0.1", "0.5")),
)  # fmt: skip


@cache
def probed() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return calls of the probed functions of JAX and Flax whose value is not an array."""
    found = []
    text = Path(__file__).parents[1].joinpath("library_calls.txt").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        _, function, _, value, call = line.split("\t")
        simple = not re.search(r"array|Key|lambda|jax|dtype", value) and len(call) < 110
        if simple and function.startswith(("jax.", "flax.")):
            call = call.replace("jax.numpy.", "jnp.").replace("jax.lax.", "lax.")
            call = re.sub(r"(?<!')\bv\b(?![='])", "{n}", call)
            found.append((re.sub(r"(?<!')\bx\b(?![='])", "y", call), (value,)))
    return tuple(found)
