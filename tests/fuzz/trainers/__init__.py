"""Programs in the style of training code in several files; `main.py` and `outside.py` are run.

They contain class hierarchies with overridden methods, parameters that eager loops change in place,
transformed aliases, values in containers, registries, and re-exports.
"""

from __future__ import annotations

from ..drawing import Draw
from .callees import function, hierarchy, registry
from .project import OUTSIDE, Project, Texts
from .uses import use

__all__ = ["OUTSIDE", "trainer"]

_CALLEES = (function, function, function, function, hierarchy, hierarchy, registry)


def trainer(draw: Draw) -> Texts:
    """Return a program."""
    project = Project(draw)
    callee = draw.pick(_CALLEES)(draw, project)
    for _ in range(draw.pick((1, 1, 2))):
        use(draw, project, callee)
    return project.texts()
