"""Sample arguments, by the name of the parameter, or of the function if it needs special ones.

Each sample is a list of candidates; the first one with which the function runs is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

VECTOR = jnp.array([0.25, 0.125, 0.625])
MATRIX = jnp.array([[4.0, 0.5, 0.25], [0.5, 3.0, 0.125], [0.25, 0.125, 2.0]])
INTS = jnp.array([0, 1, 2])
BOOLS = jnp.array([True, False, True])
CUBE = jnp.ones((2, 3, 3)) * 0.5
IMAGE = jnp.ones((1, 4, 4, 2))
CHANNELS_FIRST = jnp.ones((1, 2, 4, 4))
SCALAR = 0.5
COMPLEX = jnp.array([0.25 + 0.5j, 0.125, 0.5])
INT_MATRIX = jnp.array([[0, 1, 2], [3, 4, 5], [6, 7, 8]])
COMPLEX_MATRIX = MATRIX.astype(jnp.complex64)
BYTES = jnp.array([0, 1, 2], dtype=jnp.uint8)
KEY = jax.random.PRNGKey(0)
TREE = {"a": VECTOR, "b": MATRIX}

ARRAYS: list[Any] = [
    VECTOR, MATRIX, INTS, BOOLS, SCALAR, CUBE, IMAGE, 2, COMPLEX, COMPLEX_MATRIX, INT_MATRIX,
    BYTES, TREE, True, [VECTOR, VECTOR],
]  # fmt: skip


def first(*args: Any, **_: Any) -> Any:
    """Return the first argument."""
    return args[0]


def carry_and_output(*args: Any, **_: Any) -> Any:
    """Return the carry and the output, as the body of a scan."""
    return args[0], args[-1]


def total(*args: Any, **_: Any) -> Any:
    """Return the sum of all arguments."""
    return sum(jnp.sum(jnp.asarray(leaf)) for leaf in jax.tree_util.tree_leaves(args))


def second(*args: Any, **_: Any) -> Any:
    """Return the second argument."""
    return args[1]


def truth(*_: Any, **__: Any) -> bool:
    """Return False."""
    return False


def add(a: Any, b: Any = 0, *_: Any) -> Any:
    """Return the sum of two numbers."""
    return a + b


FUNCTIONS: list[Any] = [first, total, carry_and_output, second, add, truth]

_INT = [1, 2, 0]
_SHAPES = [(3,), (3, 3), (1, 3), 3]
_AXES = [(0,), (0, 1), ((0,), (0,)), ((0, 1), (0, 1)), 0]
_FLAG = [True, False]

# Candidates by parameter name. Other parameters get arrays.
_BY_NAMES: list[tuple[str, list[Any]]] = [
    ("""axis dimension split_axis concat_axis scatter_dimension sharding_dimension dim axis1
     axis2 all_gather_dimension source destination start_index_axis iota_dimension
     feature_axis""",
     [0, 1, (0,), -1]),
    ("""axes dimensions broadcast_dimensions permutation reduction_axes batch_axis perm
     window_dimensions""",
     [(0,), (0, 1), (1, 0), 0, (0, 1, 2)]),
    ("shape newshape new_sizes out_shape sizes output_shape new_shape", _SHAPES),
    ("dtype preferred_element_type out_dtype accumulator_dtype index_dtype param_dtype",
     [jnp.float32, jnp.int32, jnp.uint32, "float32"]),
    ("""keepdims keep_dims sorted descending reverse unique_indices indices_are_sorted
     endpoint retstep return_index return_inverse return_counts rowvar bias full_matrices
     compute_uv hermitian increasing lower unit_diagonal overwrite_a overwrite_b
     check_finite has_aux holomorphic allow_int inline keep_unused antialias is_causal
     stable assume_unique sparse equal_nan promote_integers independent return_sign left
     right disp as_int copy invert approximate transpose_a conjugate_a left_side
     symmetrize_input tiled use_consecutive include_initial return_residual
     select_and_gather prevent_cse concrete deterministic aggregate_to_topk zero_phase
     unnormalized nesterov centered train is_training return_weights""",
     _FLAG),
    ("""num n k length num_segments size total_repeat_length num_classes M N unroll
     batch_size ndim deg order max_iter maxiter index_offset bits trial_num steps seed
     num_partitions transition_steps decay_steps warmup_steps every_k degree l l_max
     out_dim max_depth""",
     [2, 1, 3, 8]),
    ("mode method",
     ["constant", "clip", "nearest", "linear", "full", "fill", "reflect", "valid"]),
    ("padding", ["SAME", "VALID", ((0, 0), (0, 0)), ((0, 0),), [(0, 0)], 1]),
    ("precision", ["highest", "default"]),
    ("initial", [0.0, 0]),
    ("where", [jnp.array(True), BOOLS]),
    ("weights", [VECTOR, MATRIX]),
    ("aweights", [VECTOR]),
    ("fweights", [INTS]),
    ("key rng rngs rng_key", [KEY]),
    ("""f fun func fn body_fun body cond_fun is_leaf true_fun false_fun matvec solve
     to_apply transpose_solve computation callback combinator func1d init_fun pred_fun
     function op update_fn loss_fn value_fn value_and_grad_fn preconditioner M_inv
     rtol_fn f1 f2 fun_name fwd bwd jvp vjp key_fn mask_fn schedule schedule_fn target""",
     FUNCTIONS),
    ("tree pytree updates params grads xs", [TREE, VECTOR, MATRIX]),
    ("trees rest", [[TREE]]),
    ("arrays tensors operands xi arys tup seq args in_tree",
     [[VECTOR, VECTOR], [MATRIX, MATRIX], [INTS, INTS], [BOOLS, BOOLS], [VECTOR], [TREE]]),
    ("shapes", [[(3,), (1, 3)]]),
    ("axis_name spmd_axis_name", ["i"]),
    ("axis_size", [2, 3]),
    ("in_axes", [0, (0,), None]),
    ("out_axes operand_index start_index", [0]),
    ("argnums", [0, (0,)]),
    ("static_argnums", [(1,), 1]),
    ("static_argnames", [("b",), "b"]),
    ("donate_argnums", [(), (0,), 0]),
    ("donate_argnames", [("a",)]),
    ("nondiff_argnums", [(1,), (0,)]),
    ("name", ["a"]),
    ("backend", [None, "cpu"]),
    ("indexing", ["ij", "xy"]),
    ("window_strides", [(1,), (1, 1), (1, 1, 1)]),
    ("strides", [(1,), (1, 1), (1, 1, 1), 1]),
    ("window_shape", [(2,), (2, 2), (2, 2, 2), (1, 2, 2, 1)]),
    ("kernel_size", [(2, 2), 2]),
    ("lhs_dilation rhs_dilation base_dilation window_dilation", [(1,), (1, 1)]),
    ("dimension_numbers",
     [("NCH", "OIH", "NCH"), ("NHC", "HIO", "NHC"), ("NHWC", "HWIO", "NHWC"), (((1,), (0,)), ((),
      ())), (((0,), (0,)), ((), ()))]),
    ("feature_group_count batch_group_count edge_order num_keys shift step stride index", [1]),
    ("ord", [2, 1, "fro"]),
    ("indices_or_sections", [3, jnp.array([1])]),
    ("sections", [3]),
    ("subscripts", ["i,i->", "ij,jk->ik"]),
    ("start_indices", [(0,), (0, 0), [0], INTS]),
    ("limit_indices", [(2,), (2, 2)]),
    ("slice_sizes", [(2,), (2, 2), (1,)]),
    ("padding_config", [((0, 1, 0),), ((0, 1, 0), (0, 1, 0))]),
    ("padding_value", [0.0]),
    ("pad_width", [1, (1, 1), ((1, 1),)]),
    ("constant_values", [0.0, 0]),
    ("axis_index_groups", [((0, 1),), [[0, 1]]]),
    ("reps", [2, (2, 2)]),
    ("repeats lmax limit_index slice_size count", [2]),
    ("bins", [3, jnp.array([0.0, 0.5, 1.0])]),
    ("range", [(0.0, 1.0)]),
    ("indices", [INTS, (INTS,), 1, (1,)]),
    ("idx", [INTS, 1]),
    ("segment_ids", [INTS]),
    ("dims", [(3, 3), (9,)]),
    ("new_dtype", [jnp.int32, jnp.float32]),
    ("from_ to arg1 arg2", [jnp.float32]),
    ("""out device sharding out_sharding shardings in_shardings out_shardings compiler_options
     abstracted_axes accuracy return_type local_mask_dims jaxpr collision""",
     [None]),
    ("reduce_axes", [()]),
    ("pattern", ["i -> i", "i j -> j i"]),
    ("reduction", ["mean", "sum"]),
    ("exponent_bits", [5]),
    ("mantissa_bits", [10]),
    ("policy", [jax.checkpoint_policies.nothing_saveable]),
    ("fmt", ["{}"]),
    ("impl", ["threefry2x32"]),
    ("treedef", [jax.tree_util.tree_structure(TREE)]),
    ("outer_treedef", [jax.tree_util.tree_structure([0])]),
    ("leaves", [[VECTOR, MATRIX]]),
    ("result_shape_dtypes", [jax.ShapeDtypeStruct((3,), jnp.float32)]),
    ("fill_value", [0.0, 0, 1]),
    ("variance_scaling", [1.0]),
    ("scale", [1.0, 2]),
    ("branches", [[first, first]]),
    ("shape_dtype", [VECTOR]),
    ("vectorized is_stable", [True]),
    ("ordered", [False]),
    ("learning_rate", [0.1]),
    ("replace", [True, False]),
    ("p", [VECTOR, 0.5, 2]),
    ("distribution", ["normal"]),
    ("in_axis", [0, -2]),
    ("out_axis", [1, -1]),
    ("norm", ["ortho"]),
    ("s", [(3, 3), (3,), 3]),
    ("side", ["left"]),
    ("trim", ["fb", "f"]),
    ("kind", ["quicksort"]),
    ("casting", ["unsafe"]),
    ("optimize", [True, "optimal"]),
    ("order", ["C", 2, 1]),
    ("signature", ["(n)->(n)"]),
    ("excluded", [(0,)]),
    ("implementation", ["xla"]),
    ("alphabet", ["abc"]),
    ("decimals offset", [1, 0]),
    ("start", [0, 0.0]),
    ("stop", [4, 1.0]),
    ("lower", [0, True, 0.0]),
    ("upper", [3, 1.0]),
    ("bitorder", ["big"]),
    ("newbyteorder", ["S"]),
]  # fmt: skip
BY_NAME = {name: values for names, values in _BY_NAMES for name in names.split()}

_LHS, _RHS = jnp.ones((1, 2, 5)), jnp.ones((3, 2, 2))
_QKV = jnp.ones((1, 4, 2, 8))
_SCATTER = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
_GATHER = jax.lax.GatherDimensionNumbers((), (0,), (0,))
_TREEDEF = jax.tree_util.tree_structure
_CONV = {"lhs": _LHS, "rhs": _RHS, "window_strides": (1,), "padding": "SAME"}
_REDUCE_WINDOW = {
    "operand": MATRIX, "window_dimensions": (2, 2), "window_strides": (1, 1), "padding": "SAME",
}  # fmt: skip
_DEVICE = jax.sharding.SingleDeviceSharding(jax.devices()[0])
_LOGITS = jnp.ones((2, 4, 3))

# The minimal arguments of a function, by its qualified name.
BY_FUNCTION: dict[str, dict[str, Any]] = {
    "jax.lax.cond": {"pred": True, "true_fun": first, "false_fun": first, "operands": [VECTOR]},
    "jax.lax.switch": {"index": 1, "branches": [first, first], "operands": [VECTOR]},
    "jax.lax.platform_dependent": {"args": [VECTOR], "default": first},
    "jax.lax.scan": {"f": carry_and_output, "init": VECTOR, "xs": INT_MATRIX},
    "jax.lax.associative_scan": {"fn": add, "elems": VECTOR},
    "jax.lax.while_loop": {"cond_fun": truth, "body_fun": first, "init_val": VECTOR},
    "jax.lax.fori_loop": {"lower": 0, "upper": 3, "body_fun": second, "init_val": VECTOR},
    "jax.lax.map": {"f": first, "xs": VECTOR},
    "jax.lax.custom_root": {"f": first, "initial_guess": VECTOR, "solve": second,
                            "tangent_solve": second},
    "jax.lax.conv": _CONV,
    "jax.lax.conv_with_general_padding": {**_CONV, "padding": ((0, 0),), "lhs_dilation": (1,),
                                          "rhs_dilation": (1,)},
    "jax.lax.conv_general_dilated": _CONV,
    "jax.lax.conv_transpose": {"lhs": jnp.ones((1, 5, 2)), "rhs": jnp.ones((2, 2, 3)),
                               "strides": (1,), "padding": "SAME"},
    "jax.lax.conv_general_dilated_local": {
        "lhs": _LHS, "rhs": jnp.ones((3, 4, 4)), "window_strides": (1,), "padding": "VALID",
        "filter_shape": (2,)},
    "jax.lax.conv_general_dilated_patches": {"lhs": _LHS, "filter_shape": (2,),
                                             "window_strides": (1,), "padding": "SAME"},
    "jax.lax.conv_dimension_numbers": {"lhs_shape": (1, 4, 4, 2), "rhs_shape": (2, 2, 2, 3),
                                       "dimension_numbers": ("NHWC", "HWIO", "NHWC")},
    "jax.lax.conv_general_permutations": {"dimension_numbers": ("NHWC", "HWIO", "NHWC")},
    "jax.lax.conv_shape_tuple": {"lhs_shape": (1, 2, 5), "rhs_shape": (3, 2, 2), "strides": (1,),
                                 "pads": ((0, 0),)},
    "jax.lax.conv_transpose_shape_tuple": {
        "lhs_shape": (1, 5, 2), "rhs_shape": (2, 2, 3), "window_strides": (1,), "padding": "SAME",
        "dimension_numbers": ("NHC", "HIO", "NHC")},
    "jax.lax.dot_general": {"lhs": MATRIX, "rhs": MATRIX,
                            "dimension_numbers": (((1,), (0,)), ((), ()))},
    "jax.lax.ragged_dot": {"lhs": MATRIX, "rhs": jnp.ones((2, 3, 4)),
                           "group_sizes": jnp.array([1, 2])},
    "jax.lax.scaled_dot": {"lhs": MATRIX, "rhs": MATRIX},
    "jax.lax.gather": {"operand": VECTOR, "start_indices": jnp.array([[0], [1]]),
                       "dimension_numbers": _GATHER, "slice_sizes": (1,)},
    **{
        f"jax.lax.{name}": {"operand": VECTOR, "scatter_indices": jnp.array([[0], [1]]),
                            "updates": jnp.ones(2), "dimension_numbers": _SCATTER}
        for name in ("scatter", "scatter_add", "scatter_sub", "scatter_max", "scatter_min",
                     "scatter_mul")
    },
    "jax.lax.scatter_apply": {"operand": VECTOR, "scatter_indices": jnp.array([[0], [1]]),
                              "func": first, "dimension_numbers": _SCATTER,
                              "update_shape": (2,)},
    "jax.lax.reduce": {"operands": VECTOR, "init_values": 0.0, "computation": add,
                       "dimensions": (0,)},
    "jax.lax.reduce_window": {**_REDUCE_WINDOW, "init_value": 0.0, "computation": jax.lax.add},
    "jax.lax.reduce_precision": {"operand": VECTOR, "exponent_bits": 5, "mantissa_bits": 10},
    "jax.lax.pad": {"operand": VECTOR, "padding_value": 0.0, "padding_config": ((0, 1, 0),)},
    "jax.lax.slice": {"operand": VECTOR, "start_indices": (0,), "limit_indices": (2,)},
    "jax.lax.dynamic_slice": {"operand": VECTOR, "start_indices": (0,), "slice_sizes": (2,)},
    "jax.lax.dynamic_update_slice": {"operand": VECTOR, "update": jnp.ones(1),
                                     "start_indices": (0,)},
    "jax.lax.dynamic_update_slice_in_dim": {"operand": VECTOR, "update": jnp.ones(1),
                                            "start_index": 0, "axis": 0},
    "jax.lax.dynamic_update_index_in_dim": {"operand": VECTOR, "update": 1.0, "index": 0,
                                            "axis": 0},
    "jax.lax.broadcast_in_dim": {"operand": VECTOR, "shape": (2, 3),
                                 "broadcast_dimensions": (1,)},
    "jax.lax.clamp": {"min": 0.0, "x": VECTOR, "max": 1.0},
    "jax.lax.select": {"pred": BOOLS, "on_true": VECTOR, "on_false": VECTOR},
    "jax.lax.select_n": {"which": BOOLS, "cases": [VECTOR, VECTOR]},
    "jax.lax.transpose": {"operand": MATRIX, "permutation": (1, 0)},
    "jax.lax.reshape": {"operand": MATRIX, "new_sizes": (9,)},
    "jax.lax.top_k": {"operand": VECTOR, "k": 2},
    "jax.lax.bitcast_convert_type": {"operand": VECTOR, "new_dtype": jnp.int32},
    "jax.lax.concatenate": {"operands": [VECTOR, VECTOR], "dimension": 0},
    "jax.lax.full": {"shape": (3,), "fill_value": 1.0},
    "jax.lax.index_take": {"src": VECTOR, "idxs": (INTS,), "axes": (0,)},
    "jax.lax.iota": {"dtype": jnp.int32, "size": 3},
    "jax.lax.broadcasted_iota": {"dtype": jnp.int32, "shape": (3,), "dimension": 0},
    "jax.lax.broadcast_shapes": {"shapes": [(3,), (1, 3)]},
    "jax.lax.broadcast_to_rank": {"x": VECTOR, "rank": 2},
    "jax.lax.all_to_all": {"x": jnp.ones((2, 2)), "axis_name": "i", "split_axis": 0,
                           "concat_axis": 0},
    "jax.lax.ppermute": {"x": VECTOR, "axis_name": "i", "perm": ((0, 1), (1, 0))},
    "jax.lax.pshuffle": {"x": VECTOR, "axis_name": "i", "perm": (1, 0)},
    "jax.lax.psum_scatter": {"x": jnp.ones(2), "axis_name": "i"},
    "jax.lax.pswapaxes": {"x": jnp.ones((2, 2)), "axis_name": "i", "axis": 0},
    "jax.lax.stop_gradient": {"x": VECTOR},
    "jax.lax.sort_key_val": {"keys": VECTOR, "values": VECTOR},
    "jax.lax.optimization_barrier": {"operand": VECTOR},
    "jax.lax.custom_linear_solve": {"matvec": first, "b": VECTOR, "solve": second,
                                    "transpose_solve": second},
    "jax.lax.squeeze": {"array": jnp.ones((1, 3)), "dimensions": (0,)},
    "jax.lax.split": {"operand": VECTOR, "sizes": (1, 2)},
    "jax.lax.rng_uniform": {"a": 0.0, "b": 1.0, "shape": (3,)},
    "jax.lax.rng_bit_generator": {"key": jnp.zeros(4, jnp.uint32), "shape": (3,)},
    "jax.lax.random_gamma_grad": {"a": VECTOR, "x": VECTOR},
    "jax.lax.linalg.tridiagonal_solve": {"dl": VECTOR, "d": VECTOR, "du": VECTOR,
                                         "b": jnp.ones((3, 1))},
    "jax.lax.linalg.lu_pivots_to_permutation": {"pivots": INTS, "permutation_size": 3},
    "jax.lax.linalg.householder_product": {"a": MATRIX, "taus": VECTOR},
    "jax.lax.linalg.symmetric_product": {"a_matrix": MATRIX, "c_matrix": MATRIX},
    "jax.lax.linalg.ormqr": {"a": MATRIX, "taus": VECTOR, "c": MATRIX},
    "jax.numpy.reshape": {"a": VECTOR, "shape": (3, 1)},
    "jax.numpy.where": {"condition": BOOLS, "x": VECTOR, "y": VECTOR},
    "jax.numpy.einsum": {"subscripts": "ij,jk->ik", "operands": [MATRIX, MATRIX]},
    "jax.numpy.einsum_path": {"subscripts": "ij,jk->ik", "operands": [MATRIX, MATRIX]},
    "jax.numpy.select": {"condlist": [BOOLS], "choicelist": [VECTOR]},
    "jax.numpy.piecewise": {"x": VECTOR, "condlist": [BOOLS], "funclist": [first, first]},
    "jax.numpy.choose": {"a": INTS, "choices": [VECTOR, VECTOR, VECTOR]},
    "jax.numpy.apply_along_axis": {"func1d": first, "axis": 0, "arr": MATRIX},
    "jax.numpy.apply_over_axes": {"func": jnp.sum, "a": MATRIX, "axes": (0,)},
    "jax.numpy.fromfunction": {"function": first, "shape": (3,)},
    "jax.numpy.frompyfunc": {"func": add, "nin": 2, "nout": 1},
    "jax.numpy.vectorize": {"pyfunc": first},
    "jax.numpy.put": {"a": VECTOR, "ind": INTS, "v": VECTOR, "inplace": False},
    "jax.numpy.put_along_axis": {"arr": VECTOR, "indices": INTS, "values": VECTOR, "axis": 0,
                                 "inplace": False},
    "jax.numpy.fill_diagonal": {"a": MATRIX, "val": 1.0, "inplace": False},
    "jax.numpy.place": {"arr": VECTOR, "mask": BOOLS, "vals": VECTOR, "inplace": False},
    "jax.numpy.take_along_axis": {"arr": VECTOR, "indices": INTS, "axis": 0},
    "jax.numpy.split": {"ary": VECTOR, "indices_or_sections": 3},
    "jax.numpy.array_split": {"ary": VECTOR, "indices_or_sections": 3},
    "jax.numpy.hsplit": {"ary": VECTOR, "indices_or_sections": 3},
    "jax.numpy.vsplit": {"ary": MATRIX, "indices_or_sections": 3},
    "jax.numpy.dsplit": {"ary": jnp.ones((3, 3, 3)), "indices_or_sections": 3},
    "jax.numpy.interp": {"x": VECTOR, "xp": VECTOR, "fp": VECTOR},
    "jax.numpy.unravel_index": {"indices": INTS, "shape": (3, 3)},
    "jax.numpy.ravel_multi_index": {"multi_index": (INTS, INTS), "dims": (3, 3), "mode": "clip"},
    "jax.numpy.mask_indices": {"n": 3, "mask_func": jnp.triu},
    "jax.numpy.issubdtype": {"arg1": jnp.float32, "arg2": jnp.floating},
    "jax.numpy.isdtype": {"dtype": jnp.float32, "kind": "real floating"},
    "jax.numpy.can_cast": {"from_": jnp.float32, "to": jnp.float32},
    "jax.numpy.promote_types": {"a": jnp.float32, "b": jnp.int32},
    "jax.numpy.fromstring": {"string": "1 2", "sep": " ", "dtype": jnp.int32},
    "jax.numpy.frombuffer": {"buffer": b"1234", "dtype": jnp.uint8},
    "jax.numpy.fromiter": {"iter": [1, 2], "dtype": jnp.int32},
    "jax.numpy.block": {"arrays": [VECTOR, VECTOR]},
    "jax.numpy.linalg.multi_dot": {"arrays": [MATRIX, MATRIX]},
    "jax.numpy.linalg.tensorsolve": {"a": jnp.eye(4).reshape(2, 2, 2, 2), "b": jnp.ones((2, 2))},
    "jax.numpy.linalg.tensorinv": {"a": jnp.eye(4).reshape(2, 2, 2, 2)},
    "jax.numpy.linalg.matrix_power": {"a": MATRIX, "n": 2},
    "jax.numpy.tensordot": {"a": MATRIX, "b": MATRIX, "axes": 1},
    "jax.numpy.cross": {"a": VECTOR, "b": VECTOR},
    "jax.numpy.swapaxes": {"a": MATRIX, "axis1": 0, "axis2": 1},
    "jax.numpy.moveaxis": {"a": MATRIX, "source": 0, "destination": 1},
    "jax.numpy.rollaxis": {"a": MATRIX, "axis": 0},
    "jax.numpy.histogram2d": {"x": VECTOR, "y": VECTOR, "bins": 3},
    "jax.numpy.histogramdd": {"sample": MATRIX, "bins": 3},
    "jax.numpy.polyfit": {"x": VECTOR, "y": VECTOR, "deg": 1},
    "jax.numpy.insert": {"arr": VECTOR, "obj": 1, "values": 1.0},
    "jax.numpy.delete": {"arr": VECTOR, "obj": 1},
    "jax.numpy.compress": {"condition": BOOLS, "a": VECTOR},
    "jax.numpy.extract": {"condition": BOOLS, "arr": VECTOR},
    "jax.numpy.arange": {"start": 3},
    "jax.numpy.linspace": {"start": 0.0, "stop": 1.0},
    "jax.numpy.indices": {"dimensions": (2, 2)},
    "jax.numpy.expand_dims": {"a": VECTOR, "axis": 0},
    "jax.numpy.permute_dims": {"a": MATRIX, "axes": (1, 0)},
    "jax.numpy.packbits": {"a": BYTES},
    "jax.numpy.unpackbits": {"a": BYTES},
    "jax.numpy.array_repr": {"arr": VECTOR},
    "jax.numpy.array_str": {"a": VECTOR},
    "jax.numpy.iterable": {"y": VECTOR},
    "jax.numpy.broadcast_shapes": {"shapes": [(3,), (1, 3)]},
    "jax.numpy.squeeze": {"a": jnp.ones((1, 3)), "axis": 0},
    "jax.numpy.roots": {"p": VECTOR},
    "jax.numpy.repeat": {"a": VECTOR, "repeats": 2},
    "jax.Array.reshape": {"self": VECTOR, "args": [3, 1]},
    "jax.Array.transpose": {"self": MATRIX, "args": [1, 0]},
    "jax.Array.squeeze": {"self": jnp.ones((1, 3)), "axis": 0},
    "jax.Array.argpartition": {"self": VECTOR, "kth": 1},
    "jax.nn.one_hot": {"x": INTS, "num_classes": 3},
    "jax.nn.dot_product_attention": {"query": _QKV, "key": _QKV, "value": _QKV,
                                     "implementation": "xla"},
    "jax.nn.scaled_matmul": {},
    "jax.nn.initializers.uniform": {"scale": 1.0},
    "jax.random.categorical": {"key": KEY, "logits": VECTOR},
    "jax.random.choice": {"key": KEY, "a": VECTOR},
    "jax.random.fold_in": {"key": KEY, "data": 1},
    "jax.random.wrap_key_data": {"key_bits_array": jnp.zeros(2, jnp.uint32)},
    "jax.random.multivariate_normal": {"key": KEY, "mean": VECTOR, "cov": MATRIX},
    "jax.random.randint": {"key": KEY, "shape": (3,), "minval": 0, "maxval": 3},
    "jax.random.binomial": {"key": KEY, "n": 3, "p": 0.5},
    "jax.random.multinomial": {"key": KEY, "n": 3, "p": VECTOR},
    "jax.random.dirichlet": {"key": KEY, "alpha": VECTOR},
    "jax.random.orthogonal": {"key": KEY, "n": 3},
    "jax.random.ball": {"key": KEY, "d": 3},
    "jax.random.key": {"seed": 0},
    "jax.random.PRNGKey": {"seed": 0},
    "jax.random.key_data": {"keys": jax.random.key(0)},
    "jax.random.key_impl": {"keys": jax.random.key(0)},
    "jax.random.triangular": {"key": KEY, "left": 0.0, "mode": 0.5, "right": 1.0},
    "jax.random.clone": {"key": KEY},
    "jax.image.resize": {"image": MATRIX, "shape": (6, 6), "method": "linear"},
    "jax.image.scale_and_translate": {
        "image": MATRIX, "shape": (6, 6), "spatial_dims": (0, 1), "scale": jnp.ones(2),
        "translation": jnp.zeros(2), "method": "linear"},
    "jax.scipy.ndimage.map_coordinates": {"input": MATRIX, "coordinates": [VECTOR, VECTOR],
                                          "order": 1},
    "jax.scipy.integrate.trapezoid": {"y": VECTOR},
    "jax.scipy.special.sph_harm": {"m": INTS, "n": INTS, "theta": VECTOR, "phi": VECTOR,
                                   "n_max": 3},
    "jax.scipy.special.sph_harm_y": {"n": INTS, "m": INTS, "theta": VECTOR, "phi": VECTOR,
                                     "n_max": 3},
    "jax.scipy.special.lpmn": {"m": 2, "n": 2, "z": VECTOR},
    "jax.scipy.special.lpmn_values": {"m": 2, "n": 2, "z": VECTOR, "is_normalized": True},
    "jax.scipy.special.bessel_jn": {"z": VECTOR, "v": 2},
    "jax.scipy.special.multigammaln": {"a": VECTOR + 3, "d": 2},
    "jax.scipy.special.polygamma": {"n": INTS + 1, "x": VECTOR},
    "jax.scipy.optimize.minimize": {"fun": total, "x0": VECTOR, "method": "BFGS"},
    "jax.scipy.linalg.sqrtm": {"A": MATRIX},
    "jax.scipy.linalg.funm": {"A": MATRIX, "func": first},
    "jax.scipy.linalg.eigh_tridiagonal": {"d": VECTOR, "e": VECTOR[:2], "eigvals_only": True},
    "jax.scipy.linalg.solve_triangular": {"a": MATRIX, "b": VECTOR},
    "jax.scipy.linalg.cho_solve": {"c_and_lower": (MATRIX, False), "b": VECTOR},
    "jax.scipy.linalg.lu_solve": {"lu_and_piv": (MATRIX, INTS), "b": VECTOR},
    "jax.scipy.linalg.block_diag": {"arrs": [MATRIX, MATRIX]},
    "jax.scipy.signal.istft": {"Zxx": jnp.ones((5, 4), jnp.complex64), "nperseg": 8},
    "jax.scipy.signal.stft": {"x": jnp.ones(16), "nperseg": 8},
    "jax.scipy.signal.csd": {"x": jnp.ones(16), "y": jnp.ones(16), "nperseg": 8},
    "jax.scipy.signal.welch": {"x": jnp.ones(16), "nperseg": 8},
    "jax.scipy.sparse.linalg.cg": {"A": MATRIX, "b": VECTOR},
    "jax.scipy.sparse.linalg.bicgstab": {"A": MATRIX, "b": VECTOR},
    "jax.scipy.sparse.linalg.gmres": {"A": MATRIX, "b": VECTOR},
    "jax.scipy.cluster.vq.vq": {"obs": MATRIX, "code_book": MATRIX},
    "jax.tree.map": {"f": first, "tree": TREE},
    "jax.tree_util.tree_map": {"f": first, "tree": TREE},
    "jax.tree.transpose": {"outer_treedef": _TREEDEF([0, 0]), "inner_treedef": _TREEDEF((0, 0)),
                           "pytree_to_transpose": [(1.0, 2.0), (3.0, 4.0)]},
    "jax.tree.unflatten": {"treedef": _TREEDEF([0, 0]), "leaves": [VECTOR, VECTOR]},
    "jax.tree.reduce": {"function": add, "tree": [1.0, 2.0]},
    "jax.tree.reduce_associative": {"operation": add, "tree": [1.0, 2.0]},
    "jax.tree.broadcast": {"prefix_tree": 1.0, "full_tree": TREE},
    "jax.tree_util.build_tree": {"treedef": _TREEDEF([0, 0]), "xs": [VECTOR, VECTOR]},
    "jax.tree_util.tree_transpose": {
        "outer_treedef": _TREEDEF([0, 0]), "inner_treedef": _TREEDEF((0, 0)),
        "pytree_to_transpose": [(1.0, 2.0), (3.0, 4.0)]},
    "jax.tree_util.tree_unflatten": {"treedef": _TREEDEF([0, 0]), "leaves": [VECTOR, VECTOR]},
    "jax.tree_util.tree_reduce": {"function": add, "tree": [1.0, 2.0]},
    "jax.tree_util.treedef_tuple": {"treedefs": [_TREEDEF([0])]},
    "jax.tree_util.treedef_children": {"treedef": _TREEDEF([0])},
    "jax.tree_util.treedef_is_leaf": {"treedef": _TREEDEF(0)},
    "jax.tree_util.all_leaves": {"iterable": [VECTOR]},
    "jax.debug.print": {"fmt": "{}", "args": [VECTOR]},
    "jax.debug.callback": {"callback": first, "args": [VECTOR]},
    "jax.debug.log": {"fmt": "{}", "args": [VECTOR]},
    "jax.pure_callback": {"callback": first, "args": [VECTOR],
                          "result_shape_dtypes": jax.ShapeDtypeStruct((3,), jnp.float32)},
    "jax.eval_shape": {"fun": first, "args": [VECTOR]},
    "jax.jvp": {"fun": first, "primals": (VECTOR,), "tangents": (VECTOR,)},
    "jax.vjp": {"fun": first, "primals": [VECTOR]},
    "jax.linearize": {"fun": first, "primals": [VECTOR]},
    "jax.linear_transpose": {"fun": first, "primals": [VECTOR]},
    "jax.jit": {"fun": first}, "jax.lax.fft": {"x": COMPLEX, "fft_type": "FFT",
                                               "fft_lengths": (3,)},
    "jax.lax.polygamma": {"m": VECTOR, "x": VECTOR},
    "jax.lax.with_sharding_constraint": {"x": VECTOR, "shardings": _DEVICE},
    "jax.numpy.clip": {"arr": VECTOR, "min": 0.0, "max": 1.0},
    "jax.numpy.gradient": {"f": VECTOR},
    "jax.numpy.atleast_1d": {"arys": [VECTOR]}, "jax.numpy.atleast_2d": {"arys": [VECTOR]},
    "jax.numpy.atleast_3d": {"arys": [VECTOR]}, "jax.numpy.broadcast_arrays": {"args": [VECTOR]},
    "jax.numpy.ix_": {"args": [VECTOR]}, "jax.numpy.meshgrid": {"xi": [VECTOR, VECTOR]},
    "jax.nn.initializers.variance_scaling": {"scale": 1.0, "mode": "fan_in",
                                             "distribution": "normal"},
    "jax.nn.initializers.delta_orthogonal": {"scale": 1.0},
    "jax.scipy.special.zeta": {"x": VECTOR + 2, "q": VECTOR},
    "jax.tree.all": {"tree": (True, True)}, "jax.tree_util.tree_all": {"tree": (True, True)},
    "jax.default_matmul_precision": {"new_val": "highest"},
    "haiku.scan": {"f": carry_and_output, "init": VECTOR, "xs": INT_MATRIX},
    "haiku.cond": {"pred": True, "true_fun": first, "false_fun": first, "operands": [VECTOR]},
    "haiku.switch": {"index": 1, "branches": [first, first], "operands": [VECTOR]},
    "haiku.while_loop": {"cond_fun": truth, "body_fun": first, "init_val": VECTOR},
    "haiku.fori_loop": {"lower": 0, "upper": 3, "body_fun": second, "init_val": VECTOR},
    "haiku.map": {"f": first, "xs": VECTOR}, "haiku.eval_shape": {"fun": first, "args": [VECTOR]},
    "haiku.grad": {"fun": total}, "haiku.value_and_grad": {"fun": total},
    "haiku.get_parameter": {"name": "w", "shape": (3,), "init": jnp.zeros},
    "haiku.get_state": {"name": "w", "shape": (3,), "init": jnp.zeros},
    "haiku.set_state": {"name": "w", "value": VECTOR},
    "haiku.reserve_rng_keys": {"num": 2}, "haiku.next_rng_keys": {"num": 2},
    "haiku.vmap": {"fun": first, "split_rng": False},
    "jax.grad": {"fun": total}, "jax.value_and_grad": {"fun": total}, "jax.hessian": {"fun": total},
    "jax.jacrev": {"fun": total}, "jax.jacfwd": {"fun": total}, "jax.jacobian": {"fun": total},
    "jax.fwd_and_bwd": {"fun": total, "argnums": 0},
    "jax.xla_computation": {"fun": first},
    "jax.named_scope": {"name": "a"},
    "jax.named_call": {"fun": first, "name": "a"},
    "jax.typeof": {"x": VECTOR},
    "jax.device_put": {"x": VECTOR},
    "jax.ensure_compile_time_eval": {},
    "jax.flatten_util.ravel_pytree": {"pytree": TREE},
    "jax.ad_checkpoint.checkpoint_name": {"x": VECTOR, "name": "a"},
    "jax.ad_checkpoint.print_saved_residuals": {"f": total, "args": [VECTOR]},
    "einops.rearrange": {"tensor": VECTOR, "pattern": "(a b) -> a b", "axes_lengths": {"a": 1}},
    "einops.repeat": {"tensor": VECTOR, "pattern": "i -> i a", "axes_lengths": {"a": 2}},
    "einops.reduce": {"tensor": MATRIX, "pattern": "(a b) j -> a j", "reduction": "mean",
                      "axes_lengths": {"a": 1}},
    "einops.einsum": {"tensors_and_pattern": [MATRIX, MATRIX, "i j, j k -> i k"]},
    "einops.pack": {"tensors": [VECTOR, VECTOR], "pattern": "*"},
    "einops.unpack": {"tensor": VECTOR, "packed_shapes": [(1,), (2,)], "pattern": "*"},
    "einops.parse_shape": {"x": VECTOR, "pattern": "i"},
    "einops.asnumpy": {"tensor": VECTOR},
    "optax.ctc_loss": {"logits": _LOGITS, "logit_paddings": jnp.zeros((2, 4)),
                       "labels": jnp.ones((2, 2), jnp.int32), "label_paddings": jnp.zeros((2, 2))},
    "optax.ctc_loss_with_forward_probs": {
        "logits": _LOGITS, "logit_paddings": jnp.zeros((2, 4)),
        "labels": jnp.ones((2, 2), jnp.int32), "label_paddings": jnp.zeros((2, 2))},
    "optax.softmax_cross_entropy_with_integer_labels": {"logits": MATRIX, "labels": INTS},
    "flax.linen.dot_product_attention": {"query": _QKV, "key": _QKV, "value": _QKV},
    "flax.linen.dot_product_attention_weights": {"query": _QKV, "key": _QKV},
    "flax.linen.make_attention_mask": {"query_input": MATRIX, "key_input": MATRIX},
    "flax.linen.make_causal_mask": {"x": MATRIX},
    "flax.linen.combine_masks": {"masks": [MATRIX, MATRIX]},
    "flax.linen.avg_pool": {"inputs": IMAGE, "window_shape": (2, 2)},
    "flax.linen.max_pool": {"inputs": IMAGE, "window_shape": (2, 2)},
    "flax.linen.min_pool": {"inputs": IMAGE, "window_shape": (2, 2)},
    "flax.linen.pool": {"inputs": IMAGE, "init": 0.0, "reduce_fn": jax.lax.add,
                        "window_shape": (2, 2), "strides": (1, 1), "padding": "SAME"},
    "haiku.avg_pool": {"value": IMAGE, "window_shape": (1, 2, 2, 1), "strides": 1,
                       "padding": "SAME"},
    "haiku.max_pool": {"value": IMAGE, "window_shape": (1, 2, 2, 1), "strides": 1,
                       "padding": "SAME"},
    "haiku.dropout": {"rng": KEY, "rate": 0.5, "x": VECTOR},
    "haiku.one_hot": {"x": INTS, "num_classes": 3},
    "haiku.multinomial": {"rng": KEY, "logits": VECTOR, "num_samples": 2},
}  # fmt: skip
for _loss in ("ctc_loss", "ctc_loss_with_forward_probs"):
    BY_FUNCTION[f"optax.losses.{_loss}"] = BY_FUNCTION[f"optax.{_loss}"]
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    BY_FUNCTION[f"jax.numpy.fft.{_name}"] = {"a": MATRIX}

# Arguments for functions that a function returns; `(VECTOR,)` by default.
CALLED_WITH: dict[str, tuple[Any, ...]] = {
    "jax.nn.initializers": (KEY, (3, 3)),
    "jax.nn.initializers.delta_orthogonal": (KEY, (3, 3, 3)),
    "optax": (2,),
    "jax.numpy.frompyfunc": (VECTOR, VECTOR),
    "jax.fwd_and_bwd": (),
}


def candidates(function: str, parameter: str, annotation: str, default: Any) -> list[Any]:
    """Return candidates for a parameter, the most likely first."""
    given = BY_FUNCTION.get(function, {})
    found: list[Any] = [given[parameter]] if parameter in given else []
    found += BY_NAME.get(parameter, [])
    if isinstance(default, bool) and parameter not in _ALSO_ARRAYS:
        return [*found, True, False]
    if isinstance(default, str):
        return [*found, default]
    if default is not None and not isinstance(default, type) and _plain(default):
        found.append(default)
    array = "Array" in annotation or "Any" in annotation
    if "Callable" in annotation:
        found += FUNCTIONS
    elif "bool" in annotation and not array:
        found += [True, False]
    elif "int" in annotation.lower() and not array:
        found += [2, 1, (2,), (2, 2)]
    elif annotation.startswith(("str", "<class 'str'>", "Optional[str]")):
        found += ["a"]
    elif parameter not in BY_NAME:
        found += ARRAYS
    return found


# Parameters with the default `True` that also take arrays.
_ALSO_ARRAYS = frozenset({"where", "mask"})


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str | tuple | Callable)
