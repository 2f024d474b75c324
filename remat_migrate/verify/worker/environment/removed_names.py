"""Names that JAX, Flax, Haiku, Optax, and NumPy removed, and what replaced them.

From the changelogs of the libraries. A name is looked up only if it is missing, so a row holds for
every release. What no longer exists under any name has no row. Checkpoint functions have none
either: they are what migrations are about.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

# Columns: the old name, where a final `*` stands for every member of a module; the release that
# deprecates or removes it, by the changelog, `-` for what was never public; the names that replace
# it, by preference.
_TABLE = """
jax.DeviceArray                                0.4.7  jax.Array
jax.PRNGKey                                    -      jax.random.PRNGKey
jax.ShapedArray                                -      jax.core.ShapedArray
jax.abstract_arrays.*                          0.4.17 jax.core.* jax.extend.core.* jax._src.core.*
jax.api.*                                      0.2.21 jax.* jax._src.api.*
jax.api_util.*                                 -      jax._src.api_util.*
jax.clear_backends                             0.4.26 jax.extend.backend.clear_backends
jax.config.config                              0.4.25 jax.config
jax.core.*                                     0.4.38 jax.extend.core.* jax._src.core.*
jax.core.ConcretizationTypeError               0.7.0  jax.errors.ConcretizationTypeError
jax.core.ShapeDtypeStruct                      -      jax.ShapeDtypeStruct
jax.core.get_aval                              0.8.2  jax.typeof
jax.custom_derivatives.*                       0.6.1  jax._src.custom_derivatives.*
jax.custom_transpose.*                         -      jax._src.custom_transpose.*
jax.experimental.PartitionSpec                 0.4.1  jax.sharding.PartitionSpec
jax.experimental.array.*                       -      jax.*
jax.experimental.enable_x64                    0.8.0  jax.enable_x64
jax.experimental.export.*                      0.4.36 jax.export.*
jax.experimental.gda_serialization.*           0.4.9  jax.experimental.array_serialization.*
jax.experimental.global_device_array.GlobalDeviceArray -      jax.Array
jax.experimental.layout.DeviceLocalLayout      0.7.0  jax.experimental.layout.Layout
jax.experimental.maps.FrozenDict               0.4.26 flax.core.FrozenDict
jax.experimental.maps.Mesh                     0.4.1  jax.sharding.Mesh
jax.experimental.maps.ResourceEnv              0.4.26 jax._src.mesh.ResourceEnv
jax.experimental.maps.mesh                     0.3.8  jax.sharding.Mesh
jax.experimental.maps.thread_resources         0.4.26 jax._src.mesh.thread_resources
jax.experimental.optimizers.*                  0.2.25 jax.example_libraries.optimizers.*
jax.experimental.pjit.PartitionSpec            0.4.1  jax.sharding.PartitionSpec
jax.experimental.pjit.pjit                     0.8.0  jax.jit
jax.experimental.pjit.with_sharding_constraint 0.4.16 jax.lax.with_sharding_constraint
jax.experimental.shard_map.shard_map           0.8.0  jax.shard_map
jax.experimental.sharding.*                    -      jax.sharding.*
jax.experimental.stax.*                        0.2.25 jax.example_libraries.stax.*
jax.host_count                                 0.2.13 jax.process_count
jax.host_id                                    0.2.13 jax.process_index
jax.interpreters.ad.*                          -      jax._src.interpreters.ad.*
jax.interpreters.batching.*                    -      jax._src.interpreters.batching.*
jax.interpreters.mlir.*                        0.6.0  jax._src.interpreters.mlir.*
jax.interpreters.partial_eval.*                -      jax._src.interpreters.partial_eval.*
jax.interpreters.pxla.*                        0.11.0 jax._src.mesh.* jax.sharding.*
jax.interpreters.sharded_jit.PartitionSpec     0.3.5  jax.sharding.PartitionSpec
jax.interpreters.xla.DeviceArray               0.4.7  jax.Array
jax.interpreters.xla._DeviceArray              0.4.7  jax.Array
jax.interpreters.xla.*                         0.4.31 jax.extend.core.* jax._src.dispatch.*
jax.lax.*                                      0.4.18 jax._src.lax.lax.* jax._src.lax.slicing.*
jax.lax.zeros_like_array                       0.7.1  jax.numpy.zeros_like
jax.lib.xla_bridge.*                           0.8.0  jax.extend.backend.* jax._src.xla_bridge.*
jax.lib.xla_client.*                           0.8.0  jax._src.lib.xla_client.*
jax.lib.xla_extension.*                        0.8.0  jaxlib.xla_extension.* jaxlib._jax.*
jaxlib.xla_extension.DeviceArray               0.4.7  jax.Array
jaxlib.xla_extension.*                         0.8.0  jaxlib._jax.*
jax.linear_util.*                              0.4.16 jax.extend.linear_util.*
jax.nn.normalize                               0.3.5  jax.nn.standardize
jax.numpy.DeviceArray                          0.4.7  jax.Array
jax.numpy.alltrue                              0.4.12 jax.numpy.all
jax.numpy.cumproduct                           0.4.12 jax.numpy.cumprod
jax.numpy.fix                                  0.9.0  jax.numpy.trunc
jax.numpy.in1d                                 0.4.16 jax.numpy.isin
jax.numpy.product                              0.4.12 jax.numpy.prod
jax.numpy.round_                               0.4.32 jax.numpy.round
jax.numpy.row_stack                            0.4.16 jax.numpy.vstack
jax.numpy.sometrue                             0.4.12 jax.numpy.any
jax.numpy.trapz                                0.4.16 jax.numpy.trapezoid
jax.partial                                    0.2.21 functools.partial
jax.prng.*                                     0.4.16 jax.extend.random.* jax._src.prng.*
jax.random.KeyArray                            0.4.16 jax.Array
jax.random.PRNGKeyArray                        0.4.16 jax.Array
jax.random.default_prng_impl                   -      jax._src.random.default_prng_impl
jax.random.shuffle                             0.4.31 jax.random.permutation
jax.sharding.use_mesh                          0.7.1  jax.set_mesh
jax.tree_all                                   0.6.0  jax.tree.all
jax.tree_flatten                               0.6.0  jax.tree_util.tree_flatten
jax.tree_leaves                                0.6.0  jax.tree_util.tree_leaves
jax.tree_map                                   0.4.26 jax.tree_util.tree_map
jax.tree_multimap                              0.3.5  jax.tree_util.tree_map
jax.tree_reduce                                0.6.0  jax.tree_util.tree_reduce
jax.tree_structure                             0.6.0  jax.tree_util.tree_structure
jax.tree_transpose                             0.6.0  jax.tree_util.tree_transpose
jax.tree_unflatten                             0.6.0  jax.tree_util.tree_unflatten
jax.tree_util.tree_multimap                    0.3.5  jax.tree_util.tree_map
jax.treedef_is_leaf                            0.3.15 jax.tree_util.treedef_is_leaf
jax.util.*                                     0.8.0  jax._src.util.*
jax.xla.*                                      -      jax.interpreters.xla.*
jax._src.lib.xla_bridge.*                      -      jax._src.xla_bridge.*
jax._src.linear_util.*                         -      jax.extend.linear_util.*
jax._src.tree_util.tree_multimap               -      jax.tree_util.tree_map
haiku.experimental.profiler_name_scopes        -      haiku.experimental.name_scope
optax.AdditiveWeightDecayState                 -      optax.AddDecayedWeightsState
optax.NO_PARAMS_MSG                            -      optax.base.NO_PARAMS_MSG
optax.additive_weight_decay                    -      optax.add_decayed_weights
optax.maybe_update                             -      optax.conditionally_transform
optax.safe_int32_increment                     0.2.5  optax.safe_increment
numpy.ComplexWarning                           2.0    numpy.exceptions.ComplexWarning
numpy.Inf                                      2.0    numpy.inf
numpy.Infinity                                 2.0    numpy.inf
numpy.NaN                                      2.0    numpy.nan
numpy.PINF                                     2.0    numpy.inf
numpy.alltrue                                  2.0    numpy.all
numpy.bool                                     1.24   builtins.bool
numpy.bool8                                    2.0    numpy.bool_
numpy.cfloat                                   2.0    numpy.complex128
numpy.complex                                  1.24   builtins.complex
numpy.complex_                                 2.0    numpy.complex128
numpy.cumproduct                               2.0    numpy.cumprod
numpy.float                                    1.24   builtins.float
numpy.float_                                   2.0    numpy.float64
numpy.in1d                                     2.4    numpy.isin
numpy.infty                                    2.0    numpy.inf
numpy.int                                      1.24   builtins.int
numpy.issubclass_                              2.0    builtins.issubclass
numpy.long                                     1.24   builtins.int
numpy.mat                                      2.0    numpy.asmatrix
numpy.math                                     1.25   math
numpy.object                                   1.24   builtins.object
numpy.product                                  2.0    numpy.prod
numpy.round_                                   2.0    numpy.round
numpy.row_stack                                2.4    numpy.vstack
numpy.singlecomplex                            2.0    numpy.complex64
numpy.sometrue                                 2.0    numpy.any
numpy.str                                      1.24   builtins.str
numpy.string_                                  2.0    numpy.bytes_
numpy.trapz                                    2.4    numpy.trapezoid
numpy.unicode_                                 2.0    numpy.str_
"""


def _read(table: str) -> Dict[str, Tuple[str, ...]]:
    rows = [line.split() for line in table.strip().splitlines()]
    return {old: tuple(new) for old, _, *new in rows}


_ROWS = _read(_TABLE)

# The modules that have members in the table, and the packages around them, those first.
MODULES = sorted(
    {old[:end] for old in _ROWS for end, character in enumerate(old) if character == "."}
)

# What migrations are about: bridging it would hide a wrong one.
CHECKPOINTS = frozenset(["checkpoint", "remat", "new_checkpoint", "remat_transform"])


def successors(name: str) -> List[str]:
    """Return the names that may replace one that is missing, by preference."""
    module, _, member = name.rpartition(".")
    if member in CHECKPOINTS:
        return []
    members = (new.replace("*", member) for new in _ROWS.get(module + ".*", ()))
    return [*_ROWS.get(name, ()), *members]
