"""Outside state that a checkpointed function uses, and what changes it."""

from __future__ import annotations

import pytest
from support import analysed

from remat_migrate.analysis.sites.find_sites import sites_of
from remat_migrate.analysis.statics.required_arguments import find_statics

HEAD = """\
import jax
def sin(x):
    return x
ITEMS = {}
ITEMS["sin"] = sin
class Config:
    scale = 1.0
    debug = False
CONFIG = Config()
CONFIG.scale = 2.0
def layer(name):
    return ITEMS[name]
@jax.checkpoint
def f(x):
    for name in ITEMS:
        x = layer(name)(x) * CONFIG.scale
    return x
"""


@pytest.mark.parametrize(
    ("rest", "name"),
    [
        ("def main(x):\n    return f(x)\n", None),
        (
            "def change(config):\n    setattr(config, 'scale', 3)\ng = lambda: change(CONFIG)\n",
            "CONFIG.scale",
        ),
    ],
)
def test_what_changes(rest: str, name: str | None) -> None:
    project = analysed(HEAD + rest).project
    (site,) = sites_of(project)
    changing = find_statics(project, site).changing
    assert (changing and changing[0].segment(changing[1])) == name
