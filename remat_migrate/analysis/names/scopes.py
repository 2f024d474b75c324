"""The scopes and bindings of a module, and the bindings that reach each use of a name.

The order of assignments matters: `f = jax.checkpoint(f)` reads the old `f` and binds a new one.
Inside a scope the analysis is flow-sensitive (branches are joined, and the bodies of loops see
earlier iterations).
A name from an enclosing function may have its binding at the `def` or any later one; a name from
the module has its binding at the end of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ...errors import BoundReached

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
