"""Calls of library functions with a Python value `{n}` as one of their arguments.

Each is an expression of the vector `y` of three entries, with possible values of `{n}`. Functions
that also accept a traced value are included: these values need not be concrete.
"""

from __future__ import annotations

_FLAGS = ("True", "False")
_SMALL = ("1", "2")
_AXIS = ("0", "-1")

CALLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("jnp.cumsum(y, axis={n})", _AXIS),
    ("lax.cumprod(y, 0, {n})", _FLAGS),
    ("lax.cumlogsumexp(y, reverse={n})", _FLAGS),
    ("jnp.diag(y, {n})", ("0", "-1")),
    ("jnp.trace(jnp.outer(y, y), {n})", ("0", "1")),
    ("jnp.triu(jnp.outer(y, y), {n})", ("0", "1")),
    ("jnp.eye(3, 3, {n}) @ y", ("0", "1")),
    ("jnp.rot90(jnp.outer(y, y), {n}) @ y", ("0", "3")),
    ("jnp.flip(y, axis={n})", _AXIS),
    ("jnp.squeeze(y[None], axis={n})", ("0", "(0,)")),
    ("jnp.swapaxes(y[None], 0, {n})", ("0", "1")),
    ("jnp.concatenate([y, y], axis={n})", ("0", "-1")),
    ("jnp.split(y, {n})[0]", ("1", "3")),
    ("jnp.tile(y, {n})", _SMALL),
    ("jnp.repeat(y, 2, axis={n})", _AXIS),
    ("jnp.pad(y, {n})", _SMALL),
    ("jnp.diff(y, n={n})", _SMALL),
    ("jnp.linspace(0.0, 1.0, num={n}).sum() * y", ("2", "3")),
    ("jnp.arange({n}).sum() * y", ("2", "3")),
    ("y.astype({n})", ("'float32'", "jnp.float32")),
    ("jnp.mean(y, keepdims={n})", _FLAGS),
    ("jnp.std(y, ddof={n})", ("0", "1")),
    ("jnp.quantile(y, 0.5, method={n})", ("'linear'", "'lower'")),
    ("jnp.einsum({n}, y, y)", ("'i,i->'", "'i,j->ij'")),
    ("jnp.linalg.norm(y, ord={n})", ("1", "2")),
    ("jnp.unique(y, size={n})", ("2", "3")),
    ("jnp.fft.fft(y, {n}).real", ("2", "3")),
    ("lax.top_k(y, {n})[0]", _SMALL),
    ("lax.reduce_precision(y, 8, mantissa_bits={n})", ("7", "10")),
    ("lax.broadcast(y, {n})", ("(2,)", "()")),
    ("lax.slice_in_dim(y, 0, {n})", ("2", "3")),
    ("lax.squeeze(y[None], {n})", ("(0,)", "[0]")),
    ("lax.integer_pow(y, {n})", ("2", "3")),
    ("lax.map(jnp.sin, y, batch_size={n})", ("None", "1")),
    ("lax.scan(lambda c, a: (c + a, c), 0.0, y, unroll={n})[0] * y", ("1", "True")),
    ("lax.fori_loop(0, {n}, lambda _, a: jnp.sin(a), y)", _SMALL),
    ("lax.conv_general_dilated(IMAGE * y[0], KERNEL, (1, 1), {n},"
     " dimension_numbers=('NHWC', 'HWIO', 'NHWC'))", ("'SAME'", "'VALID'")),
    ("jax.nn.one_hot(jnp.arange(3), {n}).sum() * y", ("3", "4")),
    ("jax.nn.log_softmax(y, {n})", _AXIS),
    ("jax.nn.gelu(y, approximate={n})", _FLAGS),
    ("jax.nn.glu(jnp.stack([y, y]), {n})", ("0",)),
    ("jax.ops.segment_max(y, jnp.array([0, 1, 1]), {n})", ("2",)),
    ("jax.random.uniform(KEY, shape={n}) * y", ("(3,)", "(2, 3)")),
    ("jax.random.permutation(KEY, y, independent={n})", _FLAGS),
    ("jax.image.resize(y, {n}, 'linear')", ("(2,)", "(4,)")),
    ("jax.scipy.special.logsumexp(y, axis={n})", _AXIS),
    ("jax.vmap(jnp.sin, out_axes={n})(y)", ("0", "-1")),
    ("jax.grad(lambda a, b: a @ b, argnums={n})(y, y)", ("0", "1")),
    ("jax.named_call(jnp.sin, name={n})(y)", ("'block'", "'layer'")),
    ("jax.tree.map(jnp.sin, (y, y))[{n}]", ("0", "1")),
    ("y.sum({n})", _AXIS),
    # The value may be traced.
    ("jax.random.fold_in(KEY, {n}).shape[0] * y + jax.random.uniform(jax.random.fold_in(KEY, {n}))",
     ("1", "2")),
    ("jax.random.normal(jax.random.key({n}), (3,)) * y", ("1", "2")),
    ("y[{n}]", ("0", "1")),
    ("lax.dynamic_index_in_dim(y, {n}, 0)", ("0", "1")),
    ("jnp.clip(y, -1.0, {n})", ("0.3", "1")),
    ("jax.nn.leaky_relu(y, {n})", ("0.1", "0.2")),
    ("jnp.where(jnp.arange(3) < {n}, y, 0.0)", ("1", "2")),
    ("lax.cond({n}, jnp.sin, jnp.cos, y)", _FLAGS),
    ("lax.select({n}, y, -y)", _FLAGS),
    ("jnp.maximum(y, {n})", ("0.1", "0.5")),
)  # fmt: skip
