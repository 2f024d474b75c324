"""Run programs and save their results, in a process of its own.

    python run_programs.py {plain,real,lenient} OUTPUT_FOLDER MODULE:FUNCTION...

Each FUNCTION has no parameters and returns a pytree of arrays; modules are imported from the
current folder. `plain` replaces all checkpoints by the plain function, `lenient` only those that
current JAX rejects. Writes OUTPUT_FOLDER/MODULE.FUNCTION.npz, one array per leaf named by its path,
or MODULE.FUNCTION.txt with the traceback.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path

import numpy as np


def main(mode: str, output: str, *targets: str) -> None:
    sys.path.insert(0, os.getcwd())
    import jax

    if mode == "plain":
        import plain_checkpoint

        plain_checkpoint.install()
    elif mode == "lenient":
        from remat_migrate.verify.copies.sides import shim_table
        from remat_migrate.verify.worker import shim

        shim.install(shim_table("refused"))
    for target in targets:
        module, function = target.split(":")
        try:
            result = getattr(importlib.import_module(module), function)()
        except Exception:
            Path(output, f"{module}.{function}.txt").write_text(traceback.format_exc())
            continue
        leaves, _ = jax.tree_util.tree_flatten_with_path(result)
        arrays = {jax.tree_util.keystr(path) or ".": np.asarray(leaf) for path, leaf in leaves}
        assert all(array.dtype != object for array in arrays.values()), target
        np.savez(Path(output, f"{module}.{function}.npz"), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
