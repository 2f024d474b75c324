"""Programs in the style of training code in several files; `main.py` and `outside.py` are run.

They contain class hierarchies with overridden methods, parameters that eager loops change in place,
transformed aliases, values in containers, library functions, registries, re-exports and modules of
Flax, Haiku and Equinox.
"""

from __future__ import annotations

from ..drawing import Draw
from .callees import function, hierarchy, registry
from .modules import equinox, haiku, linen, nnx
from .project import OUTSIDE, Project, Texts
from .uses import use

__all__ = ["OUTSIDE", "trainer"]

_CALLEES = (function, function, function, function, hierarchy, hierarchy, registry)
_MODULES = (linen, linen, equinox, haiku, nnx)


def trainer(draw: Draw) -> Texts:
    """Return a program."""
    project = Project(draw)
    if draw.flip(20):
        draw.pick(_MODULES)(draw, project)
        return project.texts()
    callee = draw.pick(_CALLEES)(draw, project)
    for _ in range(draw.pick((1, 1, 2))):
        use(draw, project, callee)
    return project.texts()
