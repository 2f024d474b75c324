"""What is told of a file before it is parsed: nothing with a checkpoint is passed by."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from .conftest import OpenProject

USES = "f = remat(lambda x: x)\n"

# Each with the files that are looked at.
FOLLOWED: list[tuple[Mapping[str, str], set[str]]] = [
    ({"m.py": "from jax import *\nf = checkpoint(g)\n"}, {"m.py"}),
    ({"m.py": "import jax\nf = getattr(jax, 'checkpoint')(g)\n"}, {"m.py"}),
    (
        {"a.py": "import jax\nremat = jax.remat\n", "b.py": f"from a import *\n{USES}"},
        {"a.py", "b.py"},
    ),
    (
        {
            "p/__init__.py": "from .inner import remat\n",
            "p/inner.py": "try:\n    from jax import checkpoint as remat\nexcept E: pass\n",
            "b.py": "import p\nf = p.remat(lambda x: x)\n",
        },
        {"p/__init__.py", "p/inner.py", "b.py"},
    ),
    (
        {
            "p/__init__.py": "from .a import remat\nfrom .b import remat\n",
            "p/a.py": "from p import remat\n",
            "p/b.py": "from jax import remat\n",
            "c.py": f"from p.a import remat\n{USES}",
        },
        {"p/__init__.py", "p/a.py", "p/b.py", "c.py"},
    ),
]


@pytest.mark.parametrize(("files", "looked_at"), FOLLOWED)
def test_what_may_hold_one_is_looked_at(
    files: Mapping[str, str], looked_at: set[str], open_project: OpenProject
) -> None:
    project = open_project(files)
    root = project.settings.root
    assert {path.relative_to(root).as_posix() for path in project.modules} == looked_at
