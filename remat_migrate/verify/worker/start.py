"""The worker's entry point: loads the package by its path, under its own name.

Run as a script. The user's modules come first on `sys.path`, and this folder is not on it.
"""

import importlib
import importlib.util
import os
import sys

NAME = "remat_migrate_worker"


def load_package() -> object:
    """Import the package that this file lies in."""
    if NAME not in sys.modules:
        folder = os.path.dirname(os.path.abspath(__file__))
        spec = importlib.util.spec_from_file_location(
            NAME, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = package
        spec.loader.exec_module(package)
    return sys.modules[NAME]


if __name__ == "__main__":
    sys.path.pop(0)
    load_package()
    importlib.import_module(NAME + ".serve").main()
