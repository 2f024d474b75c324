"""What builtins, NumPy, and layers of Flax, Haiku and Equinox require of their arguments.

For JAX functions, see `library_needs`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .framework_layers import names

# Attributes of an array that are known at trace time.
STATIC_ATTRIBUTES = names("shape ndim dtype size itemsize nbytes aval sharding weak_type")

# Attributes of an array that depend on its values.
ARRAY_ATTRIBUTES = frozenset({"T", "mT", "at", "real", "imag", "flat"})


def is_array_attribute(name: str) -> bool:
    """Return whether arrays have an attribute, which Python numbers and strings have not."""
    return name in STATIC_ATTRIBUTES | {"T", "mT", "at", "flat"}


# Keywords for which layers of neural network libraries require Python values.
MODULE_KEYWORDS = names(
    """
    train training is_training deterministic use_running_average inference test_local_stats
    decode enable_dropout is_causal name
    """
)

# Methods that need the value of their object.
CONCRETE_METHODS = frozenset({"item", "tolist", "__index__", "__bool__", "__int__", "__float__"})

# Builtins that need the value of every argument, and those that need none.
CONCRETE_BUILTINS = names(
    """
    int float bool complex range max min sorted any all chr hex oct bin slice
    """
)
STATIC_BUILTINS = names("len isinstance issubclass hasattr callable type id print repr")
# Builtins that tell a traced value from the Python value that it stands for.
IDENTIFYING_BUILTINS = names("isinstance type callable str repr hash id format ascii")
NUMBER_TYPES = names(
    """
    int float bool complex Number Integral Real number integer floating generic ndarray Array
    DeviceArray ArrayLike
    """
)

# Functions whose result is known at trace time, whatever their arguments are. `library_needs` has
# more of JAX.
STATIC_RESULTS = names(
    """
    jax.numpy.dtype jax.local_device_count jax.device_count numpy.shape numpy.ndim
    numpy.result_type numpy.size
    """
)

# Modules whose functions compute on arrays under trace, and those that need concrete values.
TRACED_MODULES = (
    "jax.numpy.", "jax.lax.", "jax.nn.", "jax.random.", "jax.scipy.", "jax.image.", "jax.ops.",
)  # fmt: skip
# Functions in them that accept trees and Python values as well.
OF_ANYTHING = names("scan map cond switch while_loop fori_loop stop_gradient")
# Modules of neural network layers.
LAYER_MODULES = ("flax.linen.", "flax.nnx.", "haiku.", "equinox.nn.")
CONCRETE_MODULES = ("numpy.", "math.", "operator.", "statistics.", "random.")
# Functions in these that accept tracers: NumPy calls the method of the array, and returns a tracer.
_ARRAY_FUNCTIONS = {
    "numpy": names(
        """
        all amax amin any argmax argmin around cumprod cumsum diff flip imag isreal max mean min
        permute_dims prod real repeat reshape rollaxis round squeeze std sum transpose var
        """
    ),
    "operator": names(
        """
        abs add eq floordiv ge gt iadd ifloordiv imod imul ipow isub itruediv le lt mod mul ne neg
        pos pow sub truediv
        """
    ),
}


def accepts_tracers(name: str) -> bool:
    """Return whether a function of NumPy or `operator` returns a tracer for a tracer."""
    module, _, function = name.rpartition(".")
    return function in _ARRAY_FUNCTIONS.get(module, ())


# Functions that return their argument unchanged.
IDENTITIES = names(
    """
    flax.linen.merge_param flax.linen.module.merge_param typing.cast copy.copy copy.deepcopy
    flax.linen.nowrap
    """
)

# The arguments that a call of an instance of these classes needs, with their positions.
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
