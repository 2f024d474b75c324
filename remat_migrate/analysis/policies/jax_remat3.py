"""How `jax_remat3`, the next implementation of checkpoints, differs.

Taken from the sources of jax 0.10.0 to 0.12.0; `tests/model/test_next_implementation.py` compares
it with the installed JAX with the flag on. `known_policies.py` says what happens to policies.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..project import Project
from .known_policies import Version

FLAG = "jax_remat3"
# Without cotangents in its barriers, XLA may move the recomputation into the forward pass.
BARRIER_FLAG = "jax_remat_barrier_no_cotangents"
FLAGS_SINCE: Mapping[str, Version] = {FLAG: (0, 10, 2), BARRIER_FLAG: (0, 11, 1)}

# The primitives that a policy function is consulted about, and the first release with that rule.
# Before it, only some of JAX's own policies have an effect.
CONSULTED = frozenset({"dot_general", "conv_general_dilated", "name"})
CONSULTED_SINCE: Version = (0, 12, 0)
# The primitives that policies are not consulted about today either: each has its own rule.
NEVER_ASKED = frozenset(
    {
        "addupdate", "call", "closed_call", "cond", "core_map", "debug_callback", "debug_print",
        "eval_jaxpr", "get", "jit", "mpmd_map", "new_ref", "pjit", "remat2", "scan", "shard_map",
        "swap", "while", "xla_metadata_call", "xla_pmap",
    }
)  # fmt: skip
# From this release on, `prevent_cse` flags for single arguments cannot be combined with static
# arguments; before it they have no effect.
SOME_CSE_REFUSED_SINCE: Version = (0, 11, 1)

# The name of the checkpoint primitive without the flag, and its replacement with it.
PRIMITIVE = "remat2"
NEXT_PRIMITIVE = "call_hi_primitive"
NEXT_CLASS = "RematTraced"
# Where the library defines that primitive and the one for named values, which is also gone.
PRIMITIVE_OBJECTS: Mapping[str, str] = {
    "jax._src.ad_checkpoint.remat_p": PRIMITIVE,
    "jax.extend.core.primitives.remat_p": PRIMITIVE,
    "jax._src.ad_checkpoint.name_p": "name",
}

_NAMES = ("jax_remat3", "JAX_REMAT3")


def uses_next_implementation(project: Project) -> bool:
    """Return whether a module sets the flag by `update`, as an attribute, or in the environment."""
    for module in project.mentioning(_NAMES):
        for node in module.nodes:
            match node:
                case ast.Call(args=[ast.Constant(value=str(name)), ast.Constant(value=value)]):
                    if name in _NAMES and value not in (False, "0", "false", "False"):
                        return True
                case ast.Assign(targets=[target], value=ast.Constant(value=value)):
                    if _names_flag(target) and value not in (False, "0", "false", "False"):
                        return True
    return False


def _names_flag(target: ast.expr) -> bool:
    match target:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)):
            return name in _NAMES
    return False
