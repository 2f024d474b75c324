"""The worker package, under the name it has in a worker process."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from remat_migrate.verify.worker import start

FOLDER = Path(start.__file__).parent


def load_worker(module: str) -> ModuleType:
    """Return a module of the worker package."""
    start.load_package()
    return importlib.import_module(f"{start.NAME}.{module}")
