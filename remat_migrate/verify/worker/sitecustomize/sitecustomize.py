"""Run by every Python of the user's command as it starts: this folder is first in PYTHONPATH.

Puts the recorder among the builtins if calls are recorded, the old meaning of checkpoints in place
if requested, and imports the project from its copy. Then the `sitecustomize` that this one hides
runs. It must be quick and must not stop the interpreter: it imports neither numpy nor JAX.
"""

import os
import sys

TYPE_CHECKING = False  # `typing` costs more than the rest of this
if TYPE_CHECKING:
    from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "remat_migrate_worker"


def _unit(identity: str, bound: int) -> "Any":
    import importlib

    return importlib.import_module(PACKAGE + ".recording").unit(identity, bound)


def _seed(numpy_random: "Any") -> None:
    # Otherwise two runs that draw without a seed might end differently.
    numpy_random.seed(0)


def _begin() -> None:
    if PACKAGE in sys.modules or sys.version_info < (3, 11):
        return
    import builtins
    import importlib
    import runpy

    start = runpy.run_path(os.path.join(os.path.dirname(FOLDER), "start.py"))
    start["load_package"]()
    import_hooks = importlib.import_module(PACKAGE + ".import_hooks")
    relocate = importlib.import_module(PACKAGE + ".relocate")
    original, copy = (os.environ.get("REMAT_MIGRATE_" + name) for name in ("ORIGINAL", "COPY"))
    if original and copy:
        relocate.install(original, copy)
    record = os.environ.get("REMAT_MIGRATE_RECORD")
    if os.environ.get("REMAT_MIGRATE_SHIM"):
        importlib.import_module(PACKAGE + ".shim").install(os.environ["REMAT_MIGRATE_SHIM"])
    if copy and os.environ.get("REMAT_MIGRATE_TESTS"):
        # A test needs not have all that its modules import.
        importlib.import_module(PACKAGE + ".environment.install").install(copy)
    if record:
        builtins.__dict__["__remat_migrate_unit__"] = _unit
    import_hooks.after_import("numpy.random", _seed)


def _hidden() -> None:
    """Run the `sitecustomize` that would have been found without this folder."""
    import importlib.machinery
    import importlib.util

    def same(entry: str) -> bool:
        return os.path.realpath(entry or os.curdir) == os.path.realpath(FOLDER)

    sys.path[:] = [entry for entry in sys.path if not same(entry)]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    _begin()
except Exception:
    import traceback

    sys.stderr.write("remat-migrate: this process is not recorded:\n" + traceback.format_exc())
_hidden()
