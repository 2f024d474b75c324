"""Flax NNX modules: objects that hold their own variables."""

from __future__ import annotations

import sys
from typing import Any, List

import jax


def nnx() -> Any:
    """Return `flax.nnx`, if the user's code has imported it."""
    module = sys.modules.get("flax.nnx")
    return module if hasattr(module, "Rngs") else None


def is_module_class(cls: Any) -> bool:
    """Return whether a value is a class of NNX modules."""
    library = nnx()
    return library is not None and isinstance(cls, type) and issubclass(cls, library.Module)


def is_stateful(value: Any) -> bool:
    """Return whether a value is a module, or one of its variables, which a call may change."""
    library = nnx()
    return library is not None and isinstance(value, (library.Module, library.Variable))


def states(tree: Any) -> List[Any]:
    """Return the states of the modules in a tree, as dictionaries."""
    library = nnx()
    if library is None:
        return []

    def is_module(value: Any) -> bool:
        return isinstance(value, library.Module)

    leaves = jax.tree_util.tree_leaves(tree, is_leaf=is_module)
    return [library.to_pure_dict(library.state(leaf)) for leaf in leaves if is_module(leaf)]
