"""The modules of a generated project: definitions on levels, levels in files, imports between them.

A definition may use those of its own level and lower ones, so that imports never form a cycle.
Names are unique in a program: a module imports each name of another module that it mentions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..bodies import shared_by
from ..drawing import Draw

Lines = list[str]
Texts = dict[str, str]

# From the lowest level to the highest; a file is named after its highest level.
COMPAT, OPS, BASE, BLOCKS, MAIN = range(5)
LEVELS = ("compat", "ops", "base", "blocks", "main")
# Callers whose code the tool does not see.
OUTSIDE = "outside"

_IMPORTS = {
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "lax": "from jax import lax",
    "partial": "from functools import partial",
    "dataclasses": "import dataclasses",
    "types": "import types",
    "np": "import numpy as np",
    "NamedTuple": "from typing import NamedTuple",
    "Any": "from typing import Any",
}
_CONSTANTS = {
    "X": "X = jnp.arange(3.0) / 3.0 + 0.1",
    "KEY": "KEY = jax.random.key(0)",
    "DEEP": "DEEP = True",
    "total": (
        "def total(tree):\n    return sum(jnp.sum(x) for x in jax.tree_util.tree_leaves(tree))"
    ),
}


class Project:
    """The definitions of a program and their places."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._files: list[int] = [MAIN] * len(LEVELS)
        if draw.flip(60):
            last = MAIN
            for level in reversed(range(MAIN)):
                last = level if draw.flip(45) else last
                self._files[level] = last
        self._package = draw.flip(25)
        self._definitions: dict[str, tuple[int, Lines]] = {}
        self._numbers = 0

    def name(self, stem: str) -> str:
        """Return an unused name."""
        self._numbers += 1
        return f"{stem}{self._numbers}"

    def define(self, level: int, name: str, lines: Sequence[str]) -> str:
        """Add a definition and return its name."""
        self._definitions[name] = level, list(lines)
        return name

    def use(self, lines: Sequence[str], *, outside: bool = False) -> None:
        """Add a function to run."""
        name = self.name("use_")
        level = len(LEVELS) if outside else MAIN
        self.define(level, name, [f"def {name}():", *indented(lines)])

    def texts(self) -> Texts:
        """Return the program's files."""
        homes: dict[str, str] = {}
        lines: dict[str, Lines] = {}
        for name, (level, text) in self._definitions.items():
            homes[name] = self._module(level)
            lines.setdefault(homes[name], []).extend(["", "", *text])
        lines.setdefault("main", [])
        homes = {name: home for name, home in homes.items() if not name.startswith("use_")}
        through_package = self._package and self._draw.flip(30)
        files: Texts = {}
        for module, text in lines.items():
            files[f"{module.replace('.', '/')}.py"] = self._text(
                module, "\n".join(text).strip("\n"), homes, through_package
            )
        inside = sorted(module for module in lines if module.startswith("lib."))
        if inside:
            stars = [f"from .{m.removeprefix('lib.')} import *" for m in inside]
            files["lib/__init__.py"] = "\n".join([*stars, ""]) if through_package else ""
        return files

    def _module(self, level: int) -> str:
        if level > MAIN:
            return OUTSIDE
        file = LEVELS[self._files[level]]
        return f"lib.{file}" if self._package and file != "main" else file

    def _text(self, module: str, text: str, homes: dict[str, str], through: bool) -> str:
        draw = self._draw
        imports: list[str] = []
        wanted: dict[str, list[str]] = {}
        for name, home in homes.items():
            if home != module and mentions(text, name):
                wanted.setdefault(home, []).append(name)
        for home, names in wanted.items():
            here = home
            if home.startswith("lib."):
                inside = module.startswith("lib.")
                here = home.removeprefix("lib") if inside else ("lib" if through else home)
            form = draw.pick(("from", "from", "star", "alias", "module"))
            if form == "module" and not here.startswith("."):
                imports.append(f"import {here} as {home.rpartition('.')[2]}_module")
                for name in names:
                    reached = f"{home.rpartition('.')[2]}_module.{name}"
                    text = re.sub(rf"(?<![\w.'\"]){name}\b", reached, text)
            elif form == "alias":
                imports += [f"from {here} import {name} as my_{name}" for name in names]
                for name in names:
                    text = re.sub(rf"(?<![\w.'\"]){name}\b", f"my_{name}", text)
            else:
                what = "*" if form == "star" else ", ".join(names)
                imports.append(f"from {here} import {what}")
        values = [value for name, value in _CONSTANTS.items() if mentions(text, name)]
        shared = shared_by(re.sub(r"\.\w+", "", "\n".join([*values, text])))
        values += [line for line in shared if not line.startswith("import")]
        whole = "\n".join([*values, text])
        libraries = [line for name, line in _IMPORTS.items() if mentions(whole, name)]
        libraries += [line for line in shared if line.startswith("import")]
        libraries += [f"import {one}" for one in re.findall(r"\bjax\.scipy\.[a-z]+", whole)]
        head = [*dict.fromkeys([*libraries, *imports])]
        parts = ["\n".join(head), "\n\n".join(values), text]
        return "\n\n\n".join(part for part in parts if part) + "\n"


def mentions(text: str, name: str) -> bool:
    """Return whether a text reads a name, other than as an attribute."""
    return re.search(rf"(?<![\w.'\"]){name}\b", text) is not None


def indented(lines: Sequence[str], levels: int = 1) -> Lines:
    """Indent lines, which may contain line breaks."""
    each = [one for line in lines for one in line.split("\n")]
    return ["    " * levels + one if one else "" for one in each]
