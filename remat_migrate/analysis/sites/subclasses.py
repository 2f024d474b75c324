"""The subclasses of a class in all files of a project."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from ..names.module import Module, once
from ..project import Project
from ..values.evaluator import project_bases
from ..values.overrides import Overrides
from ..values.values import Class


def overrides_of(project: Project) -> Overrides:
    """Return what method calls may run, including subclasses in all files of the project."""
    return project.once(_overrides)


def _overrides(project: Project) -> Overrides:
    return Overrides(project.evaluator, Subclasses(project).of)


class Subclasses:
    """Finds the subclasses of each class once.

    Only files that mention the class, a subclass, or an alias of one are read.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[ast.ClassDef, tuple[Class, ...]] = {}

    def of(self, cls: Class) -> tuple[Class, ...]:
        """Return the direct and indirect subclasses of a class, by file and place."""
        if cls.node not in self._known:
            self._known[cls.node] = ()
            found = sorted(self._find(cls), key=lambda sub: sub.module.position(sub.node))
            self._known[cls.node] = tuple(found)
        return self._known[cls.node]

    def _find(self, cls: Class) -> set[Class]:
        found, evaluator = set[Class](), self._project.evaluator
        words, before = {cls.node.name}, set[str]()
        searched: dict[Module, None] = {cls.module: None}
        is_local = cls.module.enclosing_function(cls.node) is not None
        while words != before:
            before = set(words)
            if not is_local:
                searched |= dict.fromkeys(self._project.mentioning(sorted(words)))
            for module in searched:
                own = [
                    sub
                    for sub in classes_with_bases(module)
                    if any(base.node is cls.node for base in project_bases(evaluator, sub)[1:])
                ]
                found.update(own)
                words.update(c.node.name for c in own)
                words.update(_other_names(module, before))
        return found


@once
def classes_with_bases(module: Module) -> list[Class]:
    """Return the classes of a module that inherit from others."""
    nodes = (node for node in module.nodes if isinstance(node, ast.ClassDef) and node.bases)
    return [Class(module, node) for node in nodes]


def _other_names(module: Module, words: Set[str]) -> Iterator[str]:
    """Yield aliases that a module gives to one of some names: `import A as B`, `B = lib.A`."""
    for statement in module.tree.body:
        match statement:
            case ast.ImportFrom(names=names):
                for alias in names:
                    if alias.name in words and alias.asname is not None:
                        yield alias.asname
            case ast.Assign(value=value, targets=targets):
                # `B = nn.remat(A)` is also a class; `b = A(...)` is not.
                parts = value.args if isinstance(value, ast.Call) else [value]
                if any(getattr(p, "id", getattr(p, "attr", None)) in words for p in parts):
                    yield from (t.id for t in targets if isinstance(t, ast.Name))
