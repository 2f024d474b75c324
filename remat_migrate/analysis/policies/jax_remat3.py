"""Whether a project uses `jax_remat3`, the next implementation of checkpoints.

It accepts some static arguments that today's implementation rejects. `known_policies.py` says what
happens to policies.
"""

from __future__ import annotations

import ast

from ..project import Project

_NAMES = ("jax_remat3", "JAX_REMAT3")


def uses_next_implementation(project: Project) -> bool:
    """Return whether a module sets the flag by `update`, as an attribute, or in the environment."""
    for module in project.mentioning(_NAMES):
        for node in module.nodes:
            match node:
                case (
                    ast.Call(args=[ast.Constant(value=name), ast.Constant(value=value)])
                    | ast.Assign(
                        targets=[
                            ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name))
                        ],
                        value=ast.Constant(value=value),
                    )
                ) if name in _NAMES and value not in (False, "0", "false", "False"):
                    return True
    return False
