"""Entry point of a measuring process: makes remat_migrate importable from its own folder.

Run as a script. The user's modules come first on `sys.path`. The folder of remat_migrate is not on
it, because it may hold packages of another interpreter.
"""

import importlib
import importlib.util
import os
import sys

NAME = "remat_migrate"


def load_package() -> None:
    """Make `import remat_migrate` import the package that contains this file."""
    folder = os.path.abspath(__file__)
    for _ in range(3):
        folder = os.path.dirname(folder)
    spec = importlib.util.spec_from_file_location(
        NAME, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    sys.path.pop(0)
    load_package()
    importlib.import_module(NAME + ".measure.worker.serve").main()
