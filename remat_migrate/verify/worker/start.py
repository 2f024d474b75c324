"""The worker's entry point: loads a package by its path, and runs a module of it.

Run as a script. The user's modules come first on `sys.path`, and this folder is not on it, nor are
other packages beside it, which may belong to another interpreter.
"""

import importlib
import importlib.util
import os
import sys

NAME = "remat_migrate_worker"


def load_package(
    name: str = NAME, folder: str = os.path.dirname(os.path.abspath(__file__))
) -> None:
    """Import the package in a folder, by default the one that this file lies in."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[name] = package
        spec.loader.exec_module(package)


if __name__ == "__main__":
    sys.path.pop(0)
    _, package, folder, module = sys.argv
    load_package(package, folder)
    importlib.import_module(f"{package}.{module}").main()
