"""Names that JAX, Flax, Haiku, Optax, and NumPy removed, and what replaced them.

From the changelogs of the libraries. A name is looked up only if it is missing, so a row holds for
every release. The functions in `replacements` stand for what no longer exists under any name.
Checkpoint functions are missing here: they are what migrations are about.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Tuple


class Renamed(NamedTuple):
    """A row of the table.

    Attributes:
        old: the dotted name; a final `*` stands for every member of a module.
        new: names that replaced it, by preference; `{}` stands for the module of `replacements`.
        since: the first release without the old name.
    """

    old: str
    new: Tuple[str, ...]
    since: str


# Columns: the old name, the first release without it, the new names.
_TABLE = """
jax.DeviceArray                           jax   0.4.10 jax.Array
jax.PRNGKey                               jax   0.1    jax.random.PRNGKey
jax.ShapedArray                           jax   0.4    jax.core.ShapedArray
jax.abstract_arrays.*                     jax   0.4.14 jax.core.* jax.extend.core.* jax._src.core.*
jax.api.*                                 jax   0.3.16 jax.* jax._src.api.*
jax.api_util.*                            jax   0.4.36 jax._src.api_util.*
jax.clear_backends                        jax   0.4.36 jax.extend.backend.clear_backends
jax.config.config                         jax   0.4.25 jax.config
jax.core.*                                jax   0.6.0  jax.extend.core.* jax._src.core.*
jax.core.ConcretizationTypeError          jax   0.4.36 jax.errors.ConcretizationTypeError
jax.core.ShapeDtypeStruct                 jax   0.4    jax.ShapeDtypeStruct
jax.core.as_named_shape                   jax   0.4.36 {}.identity
jax.core.get_aval                         jax   0.8.2  jax.typeof
jax.core.raise_to_shaped                  jax   0.5.0  {}.identity
jax.custom_derivatives.*                  jax   0.4    jax._src.custom_derivatives.*
jax.custom_transpose                      jax   0.4    jax._src.custom_transpose
jax.device_put_replicated                 jax   0.10.0 {}.device_put_replicated
jax.device_put_sharded                    jax   0.10.0 {}.device_put_sharded
jax.dlpack.to_dlpack                      jax   0.8.0  {}.identity
jax.dtypes.*                              jax   0.4    jax._src.dtypes.*
jax.experimental.PartitionSpec            jax   0.4.14 jax.sharding.PartitionSpec
jax.experimental.array.*                  jax   0.4.14 jax.*
jax.experimental.disable_x64              jax   0.10.0 {}.disable_x64
jax.experimental.enable_x64               jax   0.10.0 jax.enable_x64
jax.experimental.export                   jax   0.5.0  jax.export
jax.experimental.gda_serialization.*      jax   0.4.14 jax.experimental.array_serialization.*
jax.experimental.global_device_array.GlobalDeviceArray jax   0.4.14 jax.Array
jax.experimental.host_callback.call       jax   0.5.0  {}.host_call
jax.experimental.host_callback.id_print   jax   0.5.0  {}.id_print
jax.experimental.host_callback.id_tap     jax   0.5.0  {}.id_tap
jax.experimental.layout.DeviceLocalLayout jax   0.8.0  jax.experimental.layout.Layout
jax.experimental.maps.FrozenDict          jax   0.4.31 flax.core.FrozenDict
jax.experimental.maps.Mesh                jax   0.4.14 jax.sharding.Mesh
jax.experimental.maps.ResourceEnv         jax   0.4.14 jax._src.mesh.ResourceEnv
jax.experimental.maps.mesh                jax   0.3.17 jax.sharding.Mesh
jax.experimental.maps.thread_resources    jax   0.4.14 jax._src.mesh.thread_resources
jax.experimental.optimizers               jax   0.3.16 jax.example_libraries.optimizers
jax.experimental.pallas.load              jax   0.7.0  jax.experimental.pallas.triton.load
jax.experimental.pjit.PartitionSpec       jax   0.4.14 jax.sharding.PartitionSpec
jax.experimental.pjit.pjit                jax   0.12   jax.jit
jax.experimental.pjit.with_sharding_constraint jax   0.4.14 jax.lax.with_sharding_constraint
jax.experimental.shard_map.shard_map      jax   0.8.0  jax.shard_map
jax.experimental.sharding.*               jax   0.4.14 jax.sharding.*
jax.experimental.stax                     jax   0.3.16 jax.example_libraries.stax
jax.host_count                            jax   0.10   jax.process_count
jax.host_id                               jax   0.10   jax.process_index
jax.host_ids                              jax   0.10   {}.host_ids
jax.interpreters.ad.*                     jax   0.4.36 jax._src.interpreters.ad.*
jax.interpreters.batching.*               jax   0.4.36 jax._src.interpreters.batching.*
jax.interpreters.mlir.*                   jax   0.4.36 jax._src.interpreters.mlir.*
jax.interpreters.partial_eval.*           jax   0.4.36 jax._src.interpreters.partial_eval.*
jax.interpreters.pxla.*                   jax   0.4.36 jax._src.mesh.* jax.sharding.*
jax.interpreters.sharded_jit.PartitionSpec jax   0.3.0  jax.sharding.PartitionSpec
jax.interpreters.xla.DeviceArray          jax   0.4.10 jax.Array
jax.interpreters.xla._DeviceArray         jax   0.4.10 jax.Array
jax.interpreters.xla.*                    jax   0.4.36 jax.extend.core.* jax._src.dispatch.*
jax.lax.*                                 jax   0.4.36 jax._src.lax.lax.* jax._src.lax.slicing.*
jax.lax.pvary                             jax   0.12   {}.pvary
jax.lax.tie_in                            jax   0.4.10 {}.tie_in
jax.lax.zeros_like_array                  jax   0.10   jax.numpy.zeros_like
jax.lib.xla_bridge.*                      jax   0.8.0  jax.extend.backend.* jax._src.xla_bridge.*
jax.lib.xla_client                        jax   0.8.0  jax._src.lib.xla_client
jax.lib.xla_extension                     jax   0.8.0  jaxlib.xla_extension jaxlib._jax
jax.linear_util                           jax   0.4.24 jax.extend.linear_util
jax.nn.normalize                          jax   0.4.16 jax.nn.standardize
jax.numpy.DeviceArray                     jax   0.4.10 jax.Array
jax.numpy.alltrue                         jax   0.4.16 jax.numpy.all
jax.numpy.cumproduct                      jax   0.4.16 jax.numpy.cumprod
jax.numpy.fix                             jax   0.12   jax.numpy.trunc
jax.numpy.in1d                            jax   0.4.36 jax.numpy.isin
jax.numpy.msort                           jax   0.4.10 {}.msort
jax.numpy.product                         jax   0.4.16 jax.numpy.prod
jax.numpy.round_                          jax   0.4.36 jax.numpy.round
jax.numpy.row_stack                       jax   0.4.36 jax.numpy.vstack
jax.numpy.sometrue                        jax   0.4.16 jax.numpy.any
jax.numpy.trapz                           jax   0.4.36 jax.numpy.trapezoid
jax.ops.index                             jax   0.3.2  {}.index
jax.ops.index_add                         jax   0.3.2  {}.index_add
jax.ops.index_max                         jax   0.3.2  {}.index_max
jax.ops.index_min                         jax   0.3.2  {}.index_min
jax.ops.index_mul                         jax   0.3.2  {}.index_mul
jax.ops.index_update                      jax   0.3.2  {}.index_update
jax.partial                               jax   0.3.0  functools.partial
jax.prng.*                                jax   0.5.0  jax.extend.random.* jax._src.prng.*
jax.random.KeyArray                       jax   0.4.24 jax.Array
jax.random.PRNGKeyArray                   jax   0.4.24 jax.Array
jax.random.shuffle                        jax   0.4.16 jax.random.permutation
jax.sharding.use_mesh                     jax   0.8.0  jax.set_mesh
jax.tree_all                              jax   0.4.10 jax.tree.all
jax.tree_flatten                          jax   0.4.10 jax.tree_util.tree_flatten
jax.tree_leaves                           jax   0.4.10 jax.tree_util.tree_leaves
jax.tree_map                              jax   0.6.0  jax.tree_util.tree_map
jax.tree_multimap                         jax   0.3.16 jax.tree_util.tree_map
jax.tree_reduce                           jax   0.4.10 jax.tree_util.tree_reduce
jax.tree_structure                        jax   0.4.10 jax.tree_util.tree_structure
jax.tree_transpose                        jax   0.4.10 jax.tree_util.tree_transpose
jax.tree_unflatten                        jax   0.4.10 jax.tree_util.tree_unflatten
jax.tree_util.tree_multimap               jax   0.3.16 jax.tree_util.tree_map
jax.treedef_is_leaf                       jax   0.4.10 jax.tree_util.treedef_is_leaf
jax.util.*                                jax   0.8.2  jax._src.util.*
jax.xla.*                                 jax   0.4    jax.interpreters.xla.*
jax._src.lib.xla_bridge                   jax   0.4.10 jax._src.xla_bridge
jax._src.linear_util                      jax   0.12   jax.extend.linear_util
jax._src.tree_util.tree_multimap          jax   0.3.16 jax.tree_util.tree_map
flax.linen.partitioning._AxisRules        flax  0.8    flax.linen.spmd._AxisRules
flax.linen.partitioning.*                 flax  0.12   flax.linen.* flax.linen.spmd.*
haiku.experimental.named_call             haiku 0.0.10 {}.named_call
haiku.experimental.profiler_name_scopes   haiku 0.0.10 haiku.experimental.name_scope
optax.AdditiveWeightDecayState            optax 0.0.9  optax.AddDecayedWeightsState
optax.NO_PARAMS_MSG                       optax 0.1.8  optax.base.NO_PARAMS_MSG
optax.additive_weight_decay               optax 0.0.9  optax.add_decayed_weights
optax.maybe_update                        optax 0.2.0  optax.conditionally_transform
optax.safe_int32_increment                optax 0.2.5  optax.safe_increment
numpy.ComplexWarning                      numpy 2.0    numpy.exceptions.ComplexWarning
numpy.Inf                                 numpy 2.0    numpy.inf
numpy.Infinity                            numpy 2.0    numpy.inf
numpy.NINF                                numpy 2.0    {}.NINF
numpy.NaN                                 numpy 2.0    numpy.nan
numpy.PINF                                numpy 2.0    numpy.inf
numpy.alltrue                             numpy 2.0    numpy.all
numpy.bool                                numpy 1.24   builtins.bool
numpy.bool8                               numpy 2.0    numpy.bool_
numpy.cfloat                              numpy 2.0    numpy.complex128
numpy.complex                             numpy 1.24   builtins.complex
numpy.complex_                            numpy 2.0    numpy.complex128
numpy.cumproduct                          numpy 2.0    numpy.cumprod
numpy.float                               numpy 1.24   builtins.float
numpy.float_                              numpy 2.0    numpy.float64
numpy.in1d                                numpy 2.4    numpy.isin
numpy.infty                               numpy 2.0    numpy.inf
numpy.int                                 numpy 1.24   builtins.int
numpy.issubclass_                         numpy 2.0    builtins.issubclass
numpy.long                                numpy 1.24   builtins.int
numpy.mat                                 numpy 2.0    numpy.asmatrix
numpy.math                                numpy 1.25   math
numpy.object                              numpy 1.24   builtins.object
numpy.product                             numpy 2.0    numpy.prod
numpy.round_                              numpy 2.0    numpy.round
numpy.row_stack                           numpy 2.4    numpy.vstack
numpy.singlecomplex                       numpy 2.0    numpy.complex64
numpy.sometrue                            numpy 2.0    numpy.any
numpy.str                                 numpy 1.24   builtins.str
numpy.string_                             numpy 2.0    numpy.bytes_
numpy.trapz                               numpy 2.4    numpy.trapezoid
numpy.unicode_                            numpy 2.0    numpy.str_
"""


class Keyword(NamedTuple):
    """A parameter that was renamed: function, old name, new name, and since when."""

    function: str
    old: str
    new: str
    since: str


KEYWORDS = [
    Keyword("jax.numpy.clip", "a", "arr", "jax 0.4.31"),
    Keyword("jax.numpy.clip", "a_min", "min", "jax 0.4.31"),
    Keyword("jax.numpy.clip", "a_max", "max", "jax 0.4.31"),
    Keyword("jax.experimental.pjit.pjit", "in_axis_resources", "in_shardings", "jax 0.4.14"),
    Keyword("jax.experimental.pjit.pjit", "out_axis_resources", "out_shardings", "jax 0.4.14"),
]


def _read(table: str) -> Dict[str, Renamed]:
    rows: List[Renamed] = []
    for line in table.strip().splitlines():
        old, library, version, *new = line.split()
        rows.append(Renamed(old, tuple(new), "%s %s" % (library, version)))
    return {row.old: row for row in rows}


ROWS = _read(_TABLE)

# What migrations are about: bridging it would hide a wrong one.
CHECKPOINTS = frozenset(["checkpoint", "remat", "new_checkpoint", "remat_transform"])


def replacements(name: str) -> List[str]:
    """Return the names that may replace one that is missing, by preference."""
    module, _, member = name.rpartition(".")
    if member in CHECKPOINTS:
        return []
    found = list(ROWS[name].new) if name in ROWS else []
    while module:
        rest = name[len(module) + 1 :]
        if module + ".*" in ROWS:
            found += [new.replace("*", rest) for new in ROWS[module + ".*"].new]
        if module in ROWS:
            found += ["%s.%s" % (new, rest) for new in ROWS[module].new]
        module = module.rpartition(".")[0]
    return found


def has_members(module: str) -> bool:
    """Return whether the table has rows for members of a module."""
    return any(old.startswith(module + ".") for old in ROWS)


def modules() -> List[str]:
    """Return the modules that have members in the table."""
    return sorted({old.rpartition(".")[0] for old in ROWS})
