"""A Python module: its tree with parents and scopes, the bindings of its names, and where it reads
them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

from ...text import SourceFile, Span
from .scopes import Binding, Definition, Flow, FunctionNode, Scope

_LEAVES = frozenset({ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue})
_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda})
# Fields without nodes, or with operators, which all trees share.
_NO_NODES = frozenset(
    {"ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment", "lineno", "level", "module"}
)


T = TypeVar("T")
# An expression, and the module that contains it.
Place = tuple["Module", ast.expr]


def once(compute: Callable[[Module], T]) -> Callable[[Module], T]:
    """Cache a function of a module's syntax for as long as the module lives.

    A module's text never changes, and the next analysis in an editor reuses the module.
    """
    kept: WeakKeyDictionary[Module, T] = WeakKeyDictionary()

    @wraps(compute)
    def known(module: Module) -> T:
        found = kept.get(module)
        if found is None:
            found = kept[module] = compute(module)
        return found

    return known


def followed_last(error: BaseException) -> Path | None:
    """Return the file of the module that was analysed when an error was raised."""
    found: Path | None = None
    trace = error.__traceback__
    while trace is not None:
        for value in (trace.tb_frame.f_locals.get(name) for name in ("module", "owner", "self")):
            if isinstance(value, Module):
                found = value.source.path
                break
        trace = trace.tb_next
    return found


@dataclass(eq=False)
class Module:
    """A parsed Python file.

    Attributes:
        source: its text.
        tree: its syntax tree.
        name: its dotted name, derived from the folders that hold `__init__.py`.
        is_package: whether it is an `__init__.py`.
        is_own: whether it belongs to the project, so that fixes may change it, and not to an
            installed package.
    """

    source: SourceFile
    tree: ast.Module
    name: str
    is_package: bool = False
    is_own: bool = True
    _parents: dict[ast.AST, ast.AST] = field(default_factory=dict, repr=False)
    _scopes: dict[ast.AST, Scope] = field(default_factory=dict, repr=False)
    # The scopes whose bodies hold a statement or, of a lambda, an expression.
    _bodies: dict[ast.AST, Scope] = field(default_factory=dict, repr=False)
    _flows: dict[Scope, Flow] = field(default_factory=dict, repr=False)
    _writers: dict[tuple[Scope, str], list[Scope]] = field(default_factory=dict, repr=False)
    _reaching: dict[ast.Name, frozenset[Binding]] = field(default_factory=dict, repr=False)
    _exported: dict[str, frozenset[Binding]] = field(default_factory=dict, repr=False)
    _deferred: dict[str, frozenset[Binding]] = field(default_factory=dict, repr=False)
    _assigned: dict[tuple[Scope, str], frozenset[Binding]] = field(default_factory=dict, repr=False)
    _nodes: list[ast.AST] = field(default_factory=list, repr=False)
    _indexed: bool = field(default=False, repr=False)

    def _index(self) -> None:
        """Find, in one walk, the parents of all nodes and all scopes."""
        if self._indexed:
            return
        self._indexed = True
        parents = self._parents
        nodes = self._nodes
        root = self._scopes[self.tree] = Scope(self.tree, None)
        stack: list[tuple[ast.AST, Scope]] = [(self.tree, root)]
        declaring: dict[Scope, None] = {}
        while stack:
            node, scope = stack.pop()
            nodes.append(node)
            kind = node.__class__
            if kind in _LEAVES:
                continue
            own = scope
            if kind in _SCOPES:
                own = self._scopes[node] = Scope(node, scope)  # type: ignore[arg-type]
            elif kind is ast.Global or kind is ast.Nonlocal:
                assert isinstance(node, ast.Global | ast.Nonlocal)
                names = scope.global_names if kind is ast.Global else scope.nonlocal_names
                names.update(node.names)
                declaring[scope] = None
            for name in kind._fields:
                if name in _NO_NODES:
                    continue
                value = getattr(node, name, None)
                inner = own if name == "body" else scope
                for child in value if value.__class__ is list else (value,):
                    if isinstance(child, ast.AST):
                        parents[child] = node
                        stack.append((child, inner))
                        if inner is not scope:
                            self._bodies[child] = inner
        self._note_writers(root, declaring)

    def _note_writers(self, root: Scope, declaring: Iterable[Scope]) -> None:
        """Note the scopes that assign a name of another one: `global` and `nonlocal`."""
        for scope in declaring:
            for name in scope.global_names:
                self._writers.setdefault((root, name), []).append(scope)
            for name in scope.nonlocal_names:
                owner = scope.parent
                while owner and not (owner.is_function and name in self.flow(owner).bound):
                    owner = owner.parent
                if owner is not None:
                    self._writers.setdefault((owner, name), []).append(scope)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the parent of a node."""
        self._index()
        return self._parents.get(node)

    def argument_holder(self, node: ast.expr) -> ast.AST | None:
        """Return the parent of an expression; the call, for the value of a keyword argument."""
        parent = self.parent(node)
        return self.parent(parent) if isinstance(parent, ast.keyword) else parent

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        self._index()
        found = self._parents.get(node)
        while found is not None:
            yield found
            found = self._parents.get(found)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that contains a node; a statement itself."""
        around = (node, *self.ancestors(node))
        return next(part for part in around if isinstance(part, ast.stmt))

    def scope_at(self, node: ast.AST) -> Scope:
        """Return the scope in which a node is evaluated; for decorators and defaults, the outer
        one.
        """
        self._index()
        found: ast.AST | None = node
        scope, path = self._scopes[self.tree], []
        while found is not None:
            if (known := self._bodies.get(found)) is not None:
                scope = known
                break
            path.append(found)
            found = self._parents.get(found)
        self._bodies.update(dict.fromkeys(path, scope))  # or deep nesting takes the square
        return scope

    def scope_of(self, node: ast.Module | ast.ClassDef | FunctionNode) -> Scope:
        """Return the scope that a module, class, function, or lambda opens."""
        self._index()
        return self._scopes[node]

    def flow(self, scope: Scope) -> Flow:
        """Return the reaching bindings of a scope, computed on first use."""
        flow = self._flows.get(scope)
        if flow is None:
            flow = self._flows[scope] = Flow(scope)
        return flow

    def enclosing_function(self, node: ast.AST) -> FunctionNode | None:
        """Return the function whose body contains a node."""
        scope: Scope | None = self.scope_at(node)
        while scope is not None:
            if isinstance(scope.node, FunctionNode):
                return scope.node
            scope = scope.parent
        return None

    def enclosing_class(self, function: FunctionNode) -> ast.ClassDef | None:
        """Return the class in whose body a method is defined."""
        scope = self.scope_of(function).parent
        return scope.node if scope is not None and isinstance(scope.node, ast.ClassDef) else None

    def reaching(self, node: ast.Name) -> frozenset[Binding]:
        """Return the bindings that a use of a name may see; empty for builtins and unknown
        names.
        """
        if node not in self._reaching:
            self._reaching[node] = self._find_reaching(node)
        return self._reaching[node]

    def _find_reaching(self, node: ast.Name) -> frozenset[Binding]:
        scope = self.scope_at(node)
        found = self.flow(scope).uses.get(node)
        if node.id in scope.global_names or node.id in scope.nonlocal_names:
            outside = self._free(scope, node.id)
            # No copy, here and below: there may be many.
            return outside if found is None or found <= outside else found | outside
        if found is not None:
            written = self._written(scope, node.id)
            return found | written if written else found
        return self.visible(node.id, scope)

    def is_written_elsewhere(self, scope: Scope, name: str) -> bool:
        """Return whether a nested scope assigns a name of `scope` through `global` or
        `nonlocal`.
        """
        self._index()
        return (scope, name) in self._writers

    def visible(self, name: str, scope: Scope) -> frozenset[Binding]:
        """Return the bindings of a name that code inside `scope` may see, anywhere in the scope."""
        if name in self.flow(scope).bound and not scope.is_class:
            return frozenset(scope.bindings.get(name, ())) | self._written(scope, name)
        return self._free(scope, name)

    def _written(self, owner: Scope, name: str) -> frozenset[Binding]:
        """Return the bindings of a scope's name that `global` or `nonlocal` make elsewhere."""
        if (writers := self._writers.get((owner, name))) is None:
            return frozenset()
        if (owner, name) not in self._assigned:
            for scope in writers:
                self.flow(scope)
            found = (binding for scope in writers for binding in scope.bindings.get(name, ()))
            self._assigned[owner, name] = frozenset(found)
        return self._assigned[owner, name]

    def _free(self, scope: Scope, name: str) -> frozenset[Binding]:
        deferred = scope.is_function
        inner, outer = scope, scope.parent
        while outer is not None:
            if not outer.is_class and (outer.parent is None or name not in scope.global_names):
                flow = self.flow(outer)
                snapshot = flow.snapshots.get(inner.node, {})
                written = self._written(outer, name)
                if name in snapshot or name in flow.bound or written:
                    now = snapshot.get(name, frozenset()) | written
                    if not deferred or any(isinstance(b.node, ast.comprehension) for b in now):
                        return now
                    everything = outer.bindings.get(name, [])
                    if outer.parent is None:
                        return self._seen_by_functions(name)
                    line = getattr(inner.node, "lineno", 0)
                    return now | {b for b in everything if getattr(b.node, "lineno", 0) > line}
            deferred = deferred or outer.is_function
            inner, outer = outer, outer.parent
        return frozenset()

    def _seen_by_functions(self, name: str) -> frozenset[Binding]:
        """Return the bindings of a module-level name that a function may see when it is called:
        at the end of the module or, in code of the module before that, an earlier one.

        `f = jax.checkpoint(f)` right after `def f` completes a definition; it is no other one.
        """
        if name not in self._deferred:
            scope = self.scope_of(self.tree)
            final = self.exported(name)
            others = {b for b in scope.bindings.get(name, ()) if _may_be_callable(b)} - final
            for binding in (*final, *others):
                others -= self._read_by(binding)
            self._deferred[name] = final | others if others else final
        return self._deferred[name]

    def _read_by(self, binding: Binding) -> set[Binding]:
        """Return the bindings of the same name from which a binding is made, however indirectly."""
        uses = self.flow(binding.scope).uses
        found: set[Binding] = set()
        waiting = [binding]
        while waiting:
            one = waiting.pop()
            made = [one.value] if one.value is not None else getattr(one.node, "decorator_list", ())
            for node in (n for part in made for n in ast.walk(part)):
                if isinstance(node, ast.Name) and node.id == binding.name:
                    new = uses.get(node, frozenset()) - found
                    found |= new
                    waiting += new
        return found

    def exported(self, name: str) -> frozenset[Binding]:
        """Return the bindings of a module-level name at the end of the module."""
        if name not in self._exported:
            scope = self.scope_of(self.tree)
            flow = self.flow(scope)
            found = flow.exit.get(name) or frozenset(scope.bindings.get(name, ()))
            self._exported[name] = found | self._written(scope, name)
        return self._exported[name]

    @cached_property
    def star_imports(self) -> list[ast.ImportFrom]:
        """The statements `from x import *` at module level."""
        return [
            node
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        ]

    @property
    def nodes(self) -> list[ast.AST]:
        """All nodes except operators and contexts, parents before children."""
        self._index()
        return self._nodes

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg | ast.alias) -> Span:
        """Return the span of a node in the text."""
        return self.source.span(node)

    def position(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[str, int, int]:
        """Return the path, line, and column of a node: a sort key that any run reproduces."""
        return str(self.source.path), node.lineno, node.col_offset

    def location(
        self, node: ast.expr | ast.stmt | ast.keyword | ast.arg | ast.alias
    ) -> tuple[SourceFile, Span]:
        """Return the file and the span of a node, as a finding or a related location has them."""
        return self.source, self.source.span(node)

    def segment(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg | ast.alias) -> str:
        """Return the text of a node."""
        return self.source.segment(node)

    def qualified_name(self, node: ast.AST) -> str:
        """Return the dotted name of a function or class in this module, `<lambda>` for lambdas."""
        names = [getattr(node, "name", "<lambda>")]
        for around in self.ancestors(node):
            if isinstance(around, Definition):
                names.append(around.name)
        return ".".join([self.name, *reversed(names)])


def _may_be_callable(binding: Binding) -> bool:
    """Return whether a binding may be that of a function or class of the module."""
    return binding.kind in ("def", "class") or (
        binding.kind == "assign"
        and not binding.path
        and isinstance(binding.value, ast.Call | ast.Name | ast.Attribute | ast.Lambda)
    )


@dataclass(frozen=True, slots=True)
class Mentions:
    """The names that a module reads, and where it renames things.

    Attributes:
        names: the reads of each name.
        attributes: the reads of each attribute of any object.
        written: the assignments to, and deletions of, each attribute.
        renamed: the aliases of a name, by its last part: `import name as other`.
        assigned: the assignments with one target.
        classes: the classes by name.
        imports: the import statements.
        deleted: the names that are deleted.
    """

    names: dict[str, list[ast.Name]] = field(default_factory=dict)
    attributes: dict[str, list[ast.Attribute]] = field(default_factory=dict)
    written: dict[str, list[ast.Attribute]] = field(default_factory=dict)
    renamed: dict[str, list[str]] = field(default_factory=dict)
    assigned: list[ast.Assign] = field(default_factory=list)
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)

    def reads(self, name: str) -> list[ast.Name | ast.Attribute]:
        """Return the reads of a name, and of attributes with that name."""
        return [*self.names.get(name, ()), *self.attributes.get(name, ())]

    def mention(self, names: Iterable[str]) -> bool:
        """Return whether the module reads or renames one of some names."""
        return any(
            name in self.names or name in self.attributes or name in self.renamed for name in names
        )


def last_name(node: ast.AST) -> str:
    """Return a name, or the last part of a dotted name; "" for other expressions."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def has_side_effects(node: ast.AST) -> bool:
    """Return whether evaluating an expression may do more than compute a value."""
    effects = ast.Call | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom
    value = node.value if isinstance(node, ast.keyword) else node
    if isinstance(value, ast.Lambda):
        return False
    return any(isinstance(inner, effects) for inner in ast.walk(value))


@once
def find_mentions(module: Module) -> Mentions:
    """Return the mentions in a module, in no particular order."""
    found = Mentions()
    names, attributes = found.names, found.attributes
    for node in module.nodes:
        kind = node.__class__
        if kind is ast.Name:
            assert isinstance(node, ast.Name)
            if node.ctx.__class__ is ast.Load:
                names.setdefault(node.id, []).append(node)
            elif node.ctx.__class__ is ast.Del:
                found.deleted.add(node.id)
        elif kind is ast.Attribute:
            assert isinstance(node, ast.Attribute)
            by_name = attributes if node.ctx.__class__ is ast.Load else found.written
            by_name.setdefault(node.attr, []).append(node)
        elif kind is ast.alias:
            assert isinstance(node, ast.alias)
            if node.asname is not None:
                last = node.name.rpartition(".")[2]
                found.renamed.setdefault(last, []).append(node.asname)
        elif kind is ast.Assign:
            assert isinstance(node, ast.Assign)
            if len(node.targets) == 1:
                found.assigned.append(node)
        elif kind is ast.ClassDef:
            assert isinstance(node, ast.ClassDef)
            found.classes.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append(node)
    return found


def reads_of(module: Module, name: str, bound: ast.AST) -> list[ast.Name]:
    """Return where a module reads the binding of a name that has the node `bound`."""
    return [
        read
        for read in find_mentions(module).names.get(name, ())
        if any(binding.node is bound for binding in module.reaching(read))
    ]
