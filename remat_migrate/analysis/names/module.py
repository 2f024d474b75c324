"""A Python module: its tree with parents and scopes, the bindings that reach each use of a name,
and where it reads each name.

The order of assignments matters: `f = jax.checkpoint(f)` reads the old `f` and binds a new one.
Inside a scope the analysis is flow-sensitive (branches are joined, and the bodies of loops see
earlier iterations).
A name from an enclosing function may have its binding at the `def` or any later one; a name from
the module has its binding at the end of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

from ...errors import BoundReached
from ...text import SourceFile, Span

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
ScopeNode = ast.Module | ast.ClassDef | FunctionNode
BindingKind = Literal[
    "assign", "element", "with", "augment", "def", "class", "import", "parameter", "opaque"
]


@dataclass(frozen=True, eq=False, slots=True)
class Binding:
    """One place that binds a name.

    Attributes:
        name: the name.
        kind: "assign" (the value of `value`), "element" (an element of it), "with" (what it enters
            to), "augment" (`x += value`), or the kind of the statement; "opaque" for bindings that
            are not followed (except, match).
        node: the statement, `ast.arg`, or `ast.alias`.
        scope: the scope in which the name is bound.
        value: the expression, for the first four kinds.
        path: the indices by which a tuple value is unpacked; -1 for a starred target.
        statement: the import statement for an "import", else None.
    """

    name: str
    kind: BindingKind
    node: ast.AST
    scope: Scope
    value: ast.expr | None = None
    path: tuple[int, ...] = ()
    statement: ast.Import | ast.ImportFrom | None = None


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class, function, or lambda.

    Attributes:
        node: its node.
        parent: the scope around it.
        bindings: the bindings in it, by name; known once its `Flow` is.
        global_names, nonlocal_names: the names that it declares so.
    """

    node: ScopeNode
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)

    @property
    def is_function(self) -> bool:
        """Whether the scope is a function or lambda."""
        return isinstance(self.node, FunctionNode)

    @property
    def is_class(self) -> bool:
        """Whether the scope is a class body."""
        return isinstance(self.node, ast.ClassDef)


def own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, without those of nested functions and classes."""
    stack: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else [*function.body]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, FunctionNode | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))


def body_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, including those of nested functions."""
    for part in [function.body] if isinstance(function, ast.Lambda) else function.body:
        yield from ast.walk(part)


def parameters(node: FunctionNode) -> list[ast.arg]:
    """Return all parameters of a function in order, including `*args` and `**kwargs`."""
    a = node.args
    found = [*a.posonlyargs, *a.args]
    if a.vararg:
        found.append(a.vararg)
    found += a.kwonlyargs
    if a.kwarg:
        found.append(a.kwarg)
    return found


def target_bindings(
    target: ast.expr,
    value: ast.expr | None,
    kind: BindingKind,
    statement: ast.AST,
    scope: Scope,
    path: tuple[int, ...] = (),
) -> Iterator[Binding]:
    """Yield the bindings made by assigning `value` to `target`."""
    if isinstance(target, ast.Name):
        yield Binding(target.id, kind, statement, scope, value, path)
    elif isinstance(target, ast.Starred):
        yield from target_bindings(target.value, value, kind, statement, scope, (*path, -1))
    elif isinstance(target, ast.Tuple | ast.List):
        starred = False
        for index, part in enumerate(target.elts):
            starred = starred or isinstance(part, ast.Starred)
            step = -1 if starred else index
            inner = part.value if isinstance(part, ast.Starred) else part
            yield from target_bindings(inner, value, kind, statement, scope, (*path, step))


State = dict[str, frozenset[Binding]]

# Of all uses in a scope: each of n uses may see n assignments before it.
_MOST_SEEN = 4_000_000


class Flow:
    """The reaching bindings within one scope.

    Attributes:
        uses: for each `ast.Name` read directly in the scope, the bindings of this scope that reach
            it; names that are not bound in the scope are absent.
        snapshots: the state at each nested class and lambda and, except in a module, function.
        exit: the state at the end of the scope (for a function, at any return).
        bound: the names bound in the scope, but for those that it declares `global` or `nonlocal`.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.uses: dict[ast.Name, frozenset[Binding]] = {}
        self.snapshots: dict[ast.AST, State] = {}
        self.exit: State = {}
        self._loops: list[tuple[list[State], list[State]]] = []
        # What the iterations of each loop seen so far hand to the next one.
        self._carried: dict[ast.stmt, State] = {}
        # All bindings, in the order in which they were visited.
        self._bound: list[Binding] = []
        self._bindings: dict[tuple[ast.AST, str, tuple[int, ...]], Binding] = {}
        # Names whose bindings changed, in order; None where dead code starts from nothing.
        self._changed: list[str | None] = []
        self._seen = 0
        self._run()
        self.bound = scope.bindings.keys() - scope.global_names - scope.nonlocal_names

    def _run(self) -> None:
        node = self.scope.node
        state: State = {}
        if isinstance(node, FunctionNode):
            for parameter in parameters(node):
                self._bind(state, Binding(parameter.arg, "parameter", parameter, self.scope))
        if isinstance(node, ast.Lambda):
            self._expr(node.body, state)
            self.exit = state
            return
        end = self._block(node.body, state)
        if end is not None:
            self._join_into(self.exit, end)

    def _bind(self, state: State, binding: Binding) -> None:
        key = (binding.node, binding.name, binding.path)
        known = self._bindings.get(key)
        if known is None:
            known = self._bindings[key] = binding
            self.scope.bindings.setdefault(binding.name, []).append(binding)
        self._bound.append(known)
        self._changed.append(binding.name)
        state[binding.name] = frozenset((known,))

    @staticmethod
    def _join_into(into: State, other: State) -> None:
        for name, bindings in other.items():
            mine = into.get(name)
            into[name] = bindings if mine is None or mine is bindings else mine | bindings

    def _join(self, *states: State | None) -> State | None:
        alive = [s for s in states if s is not None]
        if not alive:
            return None
        joined = dict(alive[0])
        if len(alive) < 3:
            for state in alive[1:]:
                self._join_into(joined, state)
            return joined
        for name in dict.fromkeys(name for state in alive for name in state):
            joined[name] = frozenset().union(*{s[name] for s in alive if name in s})
        return joined

    def _block(self, statements: list[ast.stmt], state: State | None) -> State | None:
        for statement in statements:
            if state is None:  # Dead code is still read; use the state that would reach it.
                state = {}
                self._changed.append(None)
            state = self._statement(statement, state)
        return state

    def _statement(self, node: ast.stmt, state: State) -> State | None:
        match node:
            case ast.If():
                return self._if(node, state)
            case ast.For() | ast.AsyncFor():
                self._expr(node.iter, state)
                return self._loop(node, state)
            case ast.While():
                return self._loop(node, state)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._expr(item.context_expr, state)
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, item.context_expr, "with", node, state)
                return self._block(node.body, state)
            case ast.Try() | ast.TryStar():
                return self._try(node, state)
            case ast.Match():
                return self._match(node, state)
            case ast.Return():
                self._expressions(node, state)
                self._join_into(self.exit, state)
                return None
            case ast.Raise():
                self._expressions(node, state)
                return None
            case ast.Break() | ast.Continue():
                if self._loops:
                    breaks, continues = self._loops[-1]
                    (breaks if isinstance(node, ast.Break) else continues).append(dict(state))
                return None
        self._simple_statement(node, state)
        return state

    def _simple_statement(self, node: ast.stmt, state: State) -> None:
        """Visit a statement after which the next one runs."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._definition(node, state)
            case ast.ClassDef():
                for part in (*node.decorator_list, *node.bases):
                    self._expr(part, state)
                for keyword in node.keywords:
                    self._expr(keyword.value, state)
                self.snapshots[node] = dict(state)
                self._bind(state, Binding(node.name, "class", node, self.scope))
            case ast.Assign():
                self._expr(node.value, state)
                for target in node.targets:
                    self._assign(target, node.value, "assign", node, state)
            case ast.AnnAssign():
                self._expr(node.annotation, state)
                if node.value is None:
                    self._expr(node.target, state)
                else:
                    self._expr(node.value, state)
                    self._assign(node.target, node.value, "assign", node, state)
            case ast.AugAssign():
                self._augment(node, state)
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    self._import(node, alias, state)
            case ast.Delete():
                for target in node.targets:
                    self._expr(target, state)
                    if isinstance(target, ast.Name):
                        self._changed.append(target.id)
                        state[target.id] = frozenset()
            case _:
                self._expressions(node, state)

    def _expressions(self, node: ast.stmt, state: State) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expr(child, state)

    def _augment(self, node: ast.AugAssign, state: State) -> None:
        self._expr(node.value, state)
        if not isinstance(node.target, ast.Name):
            self._assign(node.target, node.value, "augment", node, state)
            return
        self._use(node.target, state)
        # `blocks += [...]` keeps what was in the list.
        earlier = state.get(node.target.id, frozenset())
        self._assign(node.target, node.value, "augment", node, state)
        state[node.target.id] |= earlier

    def _import(self, node: ast.Import | ast.ImportFrom, alias: ast.alias, state: State) -> None:
        name = alias.asname or alias.name.partition(".")[0]
        # `import jax`, then `import jax.numpy`: both bind `jax`, and both remain.
        is_submodule = alias.asname is None and "." in alias.name
        earlier = state.get(name, frozenset()) if is_submodule else frozenset()
        self._bind(state, Binding(name, "import", alias, self.scope, statement=node))
        state[name] |= earlier

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef, state: State) -> None:
        outer = [*node.decorator_list, *node.args.defaults]
        outer += [d for d in node.args.kw_defaults if d is not None]
        outer += [p.annotation for p in parameters(node) if p.annotation is not None]
        if node.returns is not None:
            outer.append(node.returns)
        for part in outer:
            self._expr(part, state)
        # What a module's functions see is known at its end; methods do not see names of a class.
        if self.scope.is_function:
            self.snapshots[node] = dict(state)
        self._bind(state, Binding(node.name, "def", node, self.scope))

    def _if(self, node: ast.If, state: State) -> State | None:
        self._expr(node.test, state)
        before = dict(state)
        first = len(self._changed)
        body, orelse = self._block(node.body, state), self._block(node.orelse, before)
        changed = set(self._changed[first:])
        if body is None or orelse is None or None in changed:
            return self._join(body, orelse)
        # The other names, which may be many, are the same in both.
        self._join_into(body, {name: orelse[name] for name in changed if name in orelse})
        return body

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, state: State) -> State | None:
        carried = self._carried.setdefault(node, {})
        self._changed += carried
        # The body sees the bindings of the iterations before. It is visited again only for those
        # that no visit has brought, so loops within loops are not visited twice as often a level.
        while True:
            entry = dict(state)
            self._join_into(entry, carried)
            at = dict(entry)
            if isinstance(node, ast.While):
                self._expr(node.test, at)
                after_test = dict(at)
            else:
                after_test = dict(entry)
                self._assign(node.target, node.iter, "element", node, at)
            breaks: list[State] = []
            continues: list[State] = []
            self._loops.append((breaks, continues))
            done = self._block(node.body, at)
            self._loops.pop()
            again = self._join(done, *continues) or {}
            if all(name in entry and again[name] <= entry[name] for name in again):
                break
            self._join_into(carried, again)
        self._join_into(after_test, again)
        endless = isinstance(node, ast.While) and _always_true(node.test)
        return self._join(None if endless else self._block(node.orelse, after_test), *breaks)

    def _try(self, node: ast.Try | ast.TryStar, state: State) -> State | None:
        during = dict(state)
        at: State | None = state
        for statement in node.body:
            at = self._block([statement], at)
            if at is not None:
                self._join_into(during, at)
        ends = [self._block(node.orelse, at) if node.orelse else at]
        for handler in node.handlers:
            inside = dict(during)
            if handler.type is not None:
                self._expr(handler.type, inside)
            if handler.name:
                self._bind(inside, Binding(handler.name, "opaque", handler, self.scope))
            end = self._block(handler.body, inside)
            if end is not None and handler.name:
                end[handler.name] = frozenset()
            ends.append(end)
        joined = self._join(*ends)
        if not node.finalbody:
            return joined
        # It runs on an exit from within the `try`, too; the code after it sees none of that.
        reaching = self._join(during, *ends) or {}
        first = len(self._bound)
        after = self._block(node.finalbody, dict(reaching))
        if joined is None or after is None:
            return None
        bound = frozenset(self._bound[first:])
        for name in reaching.keys() & after:
            after[name] -= reaching[name] - joined.get(name, frozenset()) - bound
        return after

    def _match(self, node: ast.Match, state: State) -> State | None:
        self._expr(node.subject, state)
        ends: list[State | None] = []
        if not any(_takes_everything(case) for case in node.cases):
            ends.append(dict(state))
        for case in node.cases:
            at = dict(state)
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self._bind(at, Binding(name, "opaque", part, self.scope))
                if isinstance(part, ast.MatchValue):
                    self._expr(part.value, at)
            if case.guard is not None:
                self._expr(case.guard, at)
            ends.append(self._block(case.body, at))
        return self._join(*ends)

    def _assign(
        self,
        target: ast.expr,
        value: ast.expr,
        kind: BindingKind,
        statement: ast.AST,
        state: State,
    ) -> None:
        if isinstance(target, ast.Attribute | ast.Subscript):
            self._expr(target, state)
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                if isinstance(part, ast.Attribute | ast.Subscript):
                    self._expr(part, state)
        for binding in target_bindings(target, value, kind, statement, self.scope):
            self._bind(state, binding)

    def _use(self, node: ast.Name, state: State) -> None:
        if node.id in state:
            known = self.uses.get(node)
            self.uses[node] = state[node.id] if known is None else known | state[node.id]
            self._seen += len(self.uses[node])
            if self._seen > _MOST_SEEN:
                raise BoundReached(
                    f"more than {_MOST_SEEN:,} assignments may reach the uses of names in one"
                    " function or in the module's own code"
                )

    def _expr(self, node: ast.expr, state: State) -> None:
        match node:
            case ast.Name():
                if isinstance(node.ctx, ast.Load):
                    self._use(node, state)
                else:  # `del x` and `x: int` make it a name of the scope, too
                    self.scope.bindings.setdefault(node.id, [])
            case ast.Constant():
                pass
            case ast.Lambda():
                for default in (*node.args.defaults, *node.args.kw_defaults):
                    if default is not None:
                        self._expr(default, state)
                self.snapshots[node] = dict(state)
            case ast.NamedExpr():
                self._expr(node.value, state)
                name = node.target.id
                earlier = state.get(name, frozenset())  # in `a and (b := c)`, it may stay
                self._bind(state, Binding(name, "assign", node, self.scope, node.value))
                state[name] |= earlier
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node, state)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._expr(child, state)
                    elif isinstance(child, ast.keyword):
                        self._expr(child.value, state)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, state: State
    ) -> None:
        inside = dict(state)
        for generator in node.generators:
            self._expr(generator.iter, inside)
            for binding in target_bindings(
                generator.target, generator.iter, "element", generator, self.scope
            ):
                key = (binding.node, binding.name, binding.path)
                inside[binding.name] = frozenset((self._bindings.setdefault(key, binding),))
            for test in generator.ifs:
                self._expr(test, inside)
        if isinstance(node, ast.DictComp):
            self._expr(node.key, inside)
            self._expr(node.value, inside)
        else:
            self._expr(node.elt, inside)
        for named in ast.walk(node):
            if isinstance(named, ast.NamedExpr) and named.target.id in inside:
                state[named.target.id] = inside[named.target.id]


def _always_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _takes_everything(case: ast.match_case) -> bool:
    pattern = case.pattern
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and case.guard is None


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
        classes: the classes by name.
        imports: the import statements.
        deleted: the names that are deleted.
    """

    names: dict[str, list[ast.Name]] = field(default_factory=dict)
    attributes: dict[str, list[ast.Attribute]] = field(default_factory=dict)
    written: dict[str, list[ast.Attribute]] = field(default_factory=dict)
    renamed: dict[str, list[str]] = field(default_factory=dict)
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
