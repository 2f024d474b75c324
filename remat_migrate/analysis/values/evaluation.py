"""What the modules of the evaluator share: its tables, its results so far, and its questions.

An expression may be a call, whose result is what another expression denotes, and so on: the modules
of this package call one another. They all take an `Evaluation`, which `Evaluator` implements.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping

from ...libraries.apis import ApiTable
from ...libraries.transforms import TransformTable
from ..names.module import Module
from ..names.scopes import Binding, FunctionNode
from .values import Class, Container, External, Function, Value, Values

# What a function returns, the resolution order of a class, the definition behind an external name,
# what a module imports everything from, a name of a module, and what a `def` or an expression
# denotes.
Question = (
    Function
    | Class
    | External
    | Module
    | tuple[Module, str | ast.FunctionDef | ast.AsyncFunctionDef | ast.expr]
)
Substitution = Mapping[tuple[FunctionNode, str], Values]


class Evaluation(ABC):
    """The state of an evaluator.

    Attributes:
        apis: the checkpoint family.
        transforms: the functions that differentiate and that loop.
        find_module: returns the project's module for a dotted name in an importing module.
        find_installed: returns an installed module by its dotted name, see `installed_definition`.
        subclasses: the subclasses of each class.
        passed: the Apis that are passed for parameters of the project's functions.
        aliases: other names that files of the project give to Apis, for others to import.
        reads, held: the reads of names, and what containers hold, by origin, see `sites.calls`.
        names, contents: answers cached for `api_names` and `contents`.
    """

    def __init__(self, apis: ApiTable, find_module: Callable[[str, Module], Module | None]) -> None:
        self.apis = apis
        self.transforms = TransformTable()
        self.find_module = find_module
        self.find_installed: Callable[[str], Module | None] = lambda name: None
        self.subclasses: dict[ast.ClassDef, list[Class]] = {}
        self.passed: dict[tuple[FunctionNode, str], set[Value]] = {}
        self.aliases: set[str] = set()
        self.reads: dict[tuple[Module, str], dict[ast.AST | None, dict[ast.Name, int]]] = {}
        self.held: dict[Container, dict[ast.AST | None, set[Value]]] = {}
        self.names: dict[object, frozenset[str]] = {}
        self.contents: dict[FunctionNode, object] = {}

    @abstractmethod
    def ask(self, question: Question) -> Collection[Value]:
        """Answer a question; questions may depend on each other in cycles."""

    @property
    @abstractmethod
    def is_guess(self) -> bool:
        """Whether something is not known yet that was asked for the answer being computed."""

    @abstractmethod
    def values(self, module: Module, node: ast.expr) -> Values:
        """Return what an expression may denote; empty when nothing is known."""

    @abstractmethod
    def attribute(self, base: Value, name: str) -> Values:
        """Return what `base.name` denotes."""

    @abstractmethod
    def member(self, module: Module, name: str) -> Values:
        """Return what a module-level name denotes, including submodules and `import *`."""

    @abstractmethod
    def dotted(self, name: str, importer: Module) -> Values:
        """Return what a dotted name imported in `importer` denotes."""

    @abstractmethod
    def installed_definition(self, outside: External) -> Values:
        """Return the function or class behind an external name, if its source is found."""

    @abstractmethod
    def binding(self, module: Module, binding: Binding) -> Values:
        """Return what one binding gives its name."""
