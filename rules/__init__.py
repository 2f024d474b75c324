"""The built-in rules of remat-migrate, one per file: an ordinary plug-in of the engine."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from remat_migrate.api import Rule


def _rules() -> Iterator[type[Rule]]:
    for found in pkgutil.iter_modules(__path__, f"{__name__}."):
        if not found.ispkg:
            for value in vars(importlib.import_module(found.name)).values():
                if isinstance(value, type) and value.__module__ == found.name:
                    if issubclass(value, Rule):
                        yield value


RULES: list[type[Rule]] = sorted(_rules(), key=lambda rule: rule.code)
