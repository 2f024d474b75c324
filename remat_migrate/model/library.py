"""What library functions ask of their arguments: which must be known to Python, and not traced.

Read from the documentation and source of jax.numpy, jax.lax, jax.nn, jax.random, Flax, Haiku and
Equinox. Names are keyword names; positions count the arguments of the call from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Attributes of an array that are known while tracing.
STATIC_ATTRIBUTES = frozenset(
    {"shape", "ndim", "dtype", "size", "itemsize", "nbytes", "aval", "sharding", "weak_type"}
)

# Keywords that jax.numpy, jax.lax, jax.nn, array methods and the neural network libraries all
# take as Python values.
STATIC_KEYWORDS = frozenset(
    {
        "axis", "axes", "shape", "dtype", "keepdims", "num_classes", "axis_name", "dimension",
        "dimensions", "dimension_numbers", "window_strides", "strides", "padding", "kernel_size",
        "window_shape", "num", "length", "num_segments", "total_repeat_length", "size", "newshape",
        "unroll", "reverse", "k", "indices_or_sections", "sections", "order", "mode", "method",
        "precision", "static_argnums", "approximate", "ord", "n", "num_heads",
        "preferred_element_type", "feature_group_count", "indexing", "sorted", "descending",
        "train", "training", "is_training", "deterministic", "use_running_average", "inference",
        "test_local_stats", "decode", "enable_dropout", "is_causal", "name", "reps",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Static:
    """The positions of a call's arguments that Python must know; None means all."""

    positions: tuple[int, ...] | None = ()

    def covers(self, position: int) -> bool:
        """Whether the argument at `position` must be known."""
        return self.positions is None or position in self.positions


_REDUCTIONS = (
    "sum", "mean", "max", "min", "prod", "any", "all", "argmax", "argmin", "std", "var", "cumsum",
    "cumprod", "median", "nansum", "nanmean", "nanmax", "nanmin", "amax", "amin", "count_nonzero",
    "argsort", "sort", "logsumexp", "softmax", "log_softmax", "flip", "squeeze", "expand_dims",
    "normalize", "standardize", "glu",
)  # fmt: skip

# By the last part of the name, for functions of jax.numpy, jax.lax, jax.nn, jax.random, jax.scipy.
FUNCTIONS: Mapping[str, Static] = {
    **{name: Static((1,)) for name in _REDUCTIONS},
    "one_hot": Static((1,)),
    "zeros": Static((0, 1)),
    "ones": Static((0, 1)),
    "empty": Static((0, 1)),
    "full": Static((0, 2)),
    "arange": Static((0, 1, 2, 3)),
    "eye": Static((0, 1, 2, 3)),
    "identity": Static((0,)),
    "tri": Static((0, 1, 2)),
    "tril": Static((1,)),
    "triu": Static((1,)),
    "linspace": Static((2,)),
    "reshape": Static((1, 2)),
    "broadcast_to": Static((1,)),
    "tile": Static((1,)),
    "repeat": Static((1, 2)),
    "concatenate": Static((1,)),
    "stack": Static((1,)),
    "split": Static((1, 2)),
    "array_split": Static((1, 2)),
    "roll": Static((2,)),
    "moveaxis": Static((1, 2)),
    "swapaxes": Static((1, 2)),
    "transpose": Static((1,)),
    "rollaxis": Static((1, 2)),
    "take": Static((2,)),
    "take_along_axis": Static((2,)),
    "top_k": Static((1,)),
    "pad": Static((1, 2)),
    "einsum": Static((0,)),
    "iota": Static((0, 1)),
    "broadcasted_iota": Static((0, 1, 2)),
    "broadcast": Static((1,)),
    "broadcast_in_dim": Static((1, 2)),
    "slice": Static((1, 2, 3)),
    "dynamic_slice": Static((2,)),
    "dynamic_slice_in_dim": Static((2, 3)),
    "slice_in_dim": Static((1, 2, 3, 4)),
    "normal": Static((1, 2)),
    "uniform": Static((1, 2)),
    "bernoulli": Static((2,)),
    "truncated_normal": Static((3, 4)),
    "permutation": Static((2,)),
    "astype": Static((1,)),
    "convert_element_type": Static((1,)),
    "psum": Static((1,)),
    "pmean": Static((1,)),
    "all_gather": Static((1,)),
    "axis_index": Static((0,)),
    "matrix_power": Static((1,)),
    "integer_pow": Static((1,)),
    "avg_pool": Static((1, 2, 3)),
    "max_pool": Static((1, 2, 3)),
    "norm": Static((1, 2)),
    "checkpoint_name": Static((1,)),
}

# Functions of arrays in which a number or flag is one more operand.
ELEMENTWISE = frozenset(
    {
        "where", "select", "add", "subtract", "multiply", "divide", "true_divide", "maximum",
        "minimum", "asarray", "array", "sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "square",
        "abs", "absolute", "negative", "sign", "logical_and", "logical_or", "logical_not", "equal",
        "not_equal", "greater", "greater_equal", "less", "less_equal", "clip", "dot", "matmul",
        "relu", "sigmoid", "softplus", "silu", "swish", "cond", "switch", "mod", "stop_gradient",
        "checkpoint_name", "ensure_compile_time_eval", "PRNGKey", "key", "fold_in", "hypot",
        "arctan2", "log1p", "expm1", "reciprocal", "isnan", "isfinite", "dropout",
    }
)  # fmt: skip

# Methods of arrays, by name: which of their arguments Python must know.
METHODS: Mapping[str, Static] = {
    **{name: Static((0,)) for name in _REDUCTIONS},
    "reshape": Static(None),
    "transpose": Static(None),
    "astype": Static((0,)),
    "swapaxes": Static(None),
    "repeat": Static((0, 1)),
    "view": Static((0,)),
    "flatten": Static((0,)),
    "ravel": Static((0,)),
    "resize": Static(None),
    "split": Static(()),
}

# Methods that need the value of the object itself.
CONCRETE_METHODS = frozenset({"item", "tolist", "__index__", "__bool__", "__int__", "__float__"})

# Builtins that need the value of every argument, and those that never do.
CONCRETE_BUILTINS = frozenset(
    {
        "int", "float", "bool", "complex", "range", "max", "min", "sorted", "any", "all", "round",
        "chr", "hex", "oct", "bin", "slice",
    }
)  # fmt: skip
STATIC_BUILTINS = frozenset(
    {"len", "isinstance", "issubclass", "hasattr", "callable", "type", "id", "print", "repr"}
)
# Builtins that tell a traced value from the Python value that it stands for.
IDENTIFYING_BUILTINS = frozenset(
    {"isinstance", "type", "callable", "str", "repr", "hash", "id", "format", "ascii"}
)
NUMBER_TYPES = frozenset(
    {
        "int", "float", "bool", "complex", "Number", "Integral", "Real", "number", "integer",
        "floating", "generic", "ndarray", "Array", "DeviceArray", "ArrayLike",
    }
)  # fmt: skip

# Functions whose result is known while tracing, whatever their arguments are.
STATIC_RESULTS = frozenset(
    {
        "jax.numpy.shape", "jax.numpy.ndim", "jax.numpy.size", "jax.numpy.result_type",
        "jax.numpy.dtype", "jax.numpy.issubdtype", "jax.numpy.iscomplexobj",
        "jax.dtypes.result_type",
        "numpy.shape", "numpy.ndim", "numpy.result_type", "numpy.size", "jax.eval_shape",
        "jax.tree_util.tree_structure", "jax.tree.structure", "jax.local_device_count",
        "jax.device_count",
    }
)  # fmt: skip

# Modules whose functions compute on arrays under trace, and those that need concrete values.
TRACED_MODULES = (
    "jax.numpy.", "jax.lax.", "jax.nn.", "jax.random.", "jax.scipy.", "jax.image.", "jax.ops.",
)  # fmt: skip
CONCRETE_MODULES = ("numpy.", "math.", "operator.", "statistics.", "random.")

# Functions that leave a value what it is, as far as Python is concerned.
IDENTITIES = frozenset(
    {
        "flax.linen.merge_param",
        "flax.linen.module.merge_param",
        "typing.cast",
        "copy.copy",
        "copy.deepcopy",
        "flax.linen.nowrap",
    }
)

# What a call of an instance of these classes needs, by keyword and by position.
INSTANCES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "flax.linen.Dropout": (("deterministic", 1),),
    "flax.linen.BatchNorm": (("use_running_average", 1),),
    "flax.linen.SpectralNorm": (("update_stats", 1),),
    "flax.linen.WeightNorm": (),
    "flax.linen.MultiHeadDotProductAttention": (("deterministic", 4),),
    "flax.linen.MultiHeadAttention": (("deterministic", 4),),
    "flax.linen.SelfAttention": (("deterministic", 2),),
    "flax.linen.RNN": (("return_carry", 99), ("time_major", 99), ("reverse", 99)),
    "flax.nnx.Dropout": (("deterministic", 1),),
    "flax.nnx.BatchNorm": (("use_running_average", 1),),
    "haiku.BatchNorm": (("is_training", 1), ("test_local_stats", 2)),
    "haiku.ExponentialMovingAverage": (("update_stats", 1),),
    "equinox.nn.Dropout": (("inference", 99), ("deterministic", 99)),
    "equinox.nn.BatchNorm": (("inference", 99),),
    "equinox.nn.MultiheadAttention": (("inference", 99), ("deterministic", 99)),
}
