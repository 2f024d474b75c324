"""The worker package under the name that it has in a worker process."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

NAME = "remat_migrate_worker"
FOLDER = Path(__file__).parents[1] / "remat_migrate" / "verify" / "worker"


def load_worker(module: str = "") -> ModuleType:
    """The package, or one of its modules."""
    if NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            NAME, FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
        )
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{NAME}.{module}") if module else sys.modules[NAME]
