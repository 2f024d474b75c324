"""What a function reads from outside and what changes between its calls.

JAX traces a checkpointed function once for equal static arguments and shapes, and remembers the
result: what the function reads from outside is read at the first call only. It traces
`jax.checkpoint(self.f)` once for each object, since two `self.f` of one object are equal, and a
function that is created anew for each call at each call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...libraries.apis import KNOWN_PACKAGES
from ...libraries.library_needs import computes_array
from ..names.mentions import find_mentions, last_name
from ..names.module import Module, Place
from ..names.scopes import FunctionNode, Scope, own_nodes
from ..project import Project
from ..sites.calls import Uses
from ..sites.passed_arguments import PassedArguments
from ..sites.site import Site
from ..sites.subclasses import overrides_of
from ..values.bind import bind_call, first_parameter
from ..values.callees import Target, is_pytree, layers, order, receiver_of, targets_of, underlying
from ..values.evaluator import class_chain, returned_expressions
from ..values.values import (
    Class,
    Container,
    External,
    Function,
    Instance,
    ModuleValue,
    Partial,
    Result,
    Value,
    union,
)
from .argument_kinds import kinds_of

# A variable: its module, the scope that binds it, and its name.
_Variable = tuple[Module, Scope, str]
# A function that is called, and the class of its `self` if that exists before the call.
_Reached = tuple[Function, Class | None]

_MODULE = External("flax.linen.Module")
_INITIALISERS = frozenset({"__init__", "__new__", "__post_init__", "setup"})
_DEFINITIONS = ("def", "class", "import")
_MUTATORS = frozenset(
    {
        "append", "appendleft", "extend", "insert", "remove", "pop", "popleft", "popitem", "clear",
        "sort", "reverse", "update", "setdefault", "add", "discard",
    }
)  # fmt: skip
_STORING = _MUTATORS - {"remove", "pop", "popleft", "popitem", "clear", "discard"}
_MUTATING_FUNCTIONS = frozenset({"setattr", "delattr", "next"})


def changing_state(project: Project, target: Target, site: Site, uses: Uses) -> Place | None:
    """Return a name in what a function runs that denotes state that changes between its calls.

    The function, or one of the project's functions that it calls, reads or changes it, or a partial
    passes it, and something other than code that runs once at import, or an initialiser, changes
    it. `uses` are the calls of what the site makes.
    """
    owner = target.owner if target.skip else None
    search = _search(project, target.function, owner)
    return search.found() or search.found_in(_bound(project, site)) or search.found_in_factory(uses)


def leaking(project: Project, target: Target) -> Place | None:
    """Return a result of JAX that a function keeps for later calls: in a cache, or in a container.

    In a checkpoint the result is a tracer, which must not outlive the trace.
    """
    search = _search(project, target.function, target.owner if target.skip else None)
    for function, owner in search.reached:
        module, node = function.module, function.node
        kept: Iterable[ast.expr] = ()
        if isinstance(node, ast.FunctionDef) and any(map(_caches, node.decorator_list)):
            kept = [n.value for n in own_nodes(node) if isinstance(n, ast.Return) and n.value]
        for part in (*kept, *search.stored_outside(function, owner)):
            if kinds_of(project).of(module, part) == "array" and not _is_early(
                project, module, part
            ):
                return module, part
            for call in ast.walk(part):
                if isinstance(call, ast.Call) and not _at_compile_time(project, module, call):
                    for value in project.values(module, call.func):
                        if isinstance(value, External) and computes_array(value.name):
                            return module, call
    return None


def _is_early(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an expression, or the variable that it names, is computed at compile time."""
    bindings = module.reaching(node) if isinstance(node, ast.Name) else ()
    sources = [node, *(b.value for b in bindings if b.value is not None)]
    return any(_at_compile_time(project, module, source) for source in sources)


def _caches(decorator: ast.expr) -> bool:
    return last_name(getattr(decorator, "func", decorator)) in ("lru_cache", "cache")


def _at_compile_time(project: Project, module: Module, node: ast.AST) -> bool:
    return any(
        External("jax.ensure_compile_time_eval") in project.values(module, item.context_expr.func)
        for around in module.ancestors(node)
        if isinstance(around, ast.With)
        for item in around.items
        if isinstance(item.context_expr, ast.Call)
    )


def _bound(project: Project, site: Site) -> Iterator[Place]:
    """Yield the arguments that partials pass to what a site wraps."""
    if site.subject is None or not isinstance(site.subject[1], ast.expr):
        return
    for value in project.values(site.subject[0], site.subject[1]):
        for layer in layers(value):
            if isinstance(layer, Partial):
                for argument in (*layer.call.args[1:], *(k.value for k in layer.call.keywords)):
                    yield layer.module, argument


def _search(project: Project, function: Function, owner: Class | None) -> _Search:
    known = project.once(_known_searches)
    if (function, owner) not in known:
        known[function, owner] = _Search(project, function, owner)
    return known[function, owner]


def _known_searches(_: Project) -> dict[_Reached, _Search]:
    return {}


class _Search:
    """Looks for the outside state that one function reads or changes."""

    def __init__(self, project: Project, function: Function, owner: Class | None) -> None:
        self.project = project
        self.evaluator = project.evaluator
        self._arguments = project.once(PassedArguments)
        self.reached = self._follow((function, owner))
        self.nodes = {
            node
            for reached, _ in self.reached
            for node in ast.walk(reached.node)
            if isinstance(node, FunctionNode)
        }

    def found(self) -> Place | None:
        """Return a name that denotes such state."""
        for function, owner in self.reached:
            node = self._variable(function) or self._attribute(function, owner)
            if node is not None:
                return function.module, node
        return None

    def stored_outside(self, function: Function, owner: Class | None) -> Iterator[ast.expr]:
        """Yield what a function stores in an object that exists before the call."""
        for node in _body(function.node):
            match node:
                case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as place], value=value):
                    stored = [value]
                case ast.Call(func=ast.Attribute(attr=attr) as place) if attr in _STORING:
                    stored = [*node.args, *(keyword.value for keyword in node.keywords)]
                case _:
                    continue
            kept_in = place.value
            match kept_in:
                case ast.Call(func=ast.Attribute(attr="get" | "setdefault", value=container)):
                    kept_in = container
            if self._is_outside(function, owner, kept_in):
                yield from stored

    def found_in(self, bound: Iterable[Place]) -> Place | None:
        """Return a name in arguments that are bound already, whose object changes."""
        start = self.reached[0][0]
        for module, expr in bound:
            for node in ast.walk(expr):
                if isinstance(node, ast.Name) and any(
                    self._changes(v, module, node, start.node) for v in self._of(module, node)
                ):
                    return module, node
        return None

    def found_in_factory(self, uses: Uses) -> Place | None:
        """Return a name that denotes an argument of a factory, whose object changes.

        A function that is called only where it is made is made anew for each call.
        """
        kinds = kinds_of(self.project)
        for function, _ in self.reached:
            module = function.module
            for name in (n for n in _body(function.node) if isinstance(n, ast.Name)):
                factories = [b.scope.node for b in module.reaching(name) if b.kind == "parameter"]
                if not factories or any(factory in self.nodes for factory in factories):
                    continue
                if uses.calls and all(
                    _runs_within(call.module, call.node, factory)
                    for factory in factories
                    for call in uses.calls
                ):
                    continue
                for owner, origin in kinds.origins(module, name):
                    variables = self._of(owner, origin) if isinstance(origin, ast.Name) else ()
                    if any(self._changes(v, module, name, origin) for v in variables):
                        return module, name
        return None

    # -- what runs

    def _follow(self, start: _Reached) -> list[_Reached]:
        """Return a function and the project's functions that it calls or passes on."""
        reached = [start]
        seen = {(start[0].node, start[1])}
        for function, owner in reached:
            for node in _body(function.node):
                for inner, cls in self._run(function, owner, node):
                    if inner.module.is_own and (inner.node, cls) not in seen:
                        seen.add((inner.node, cls))
                        reached.append((inner, cls))
        return reached

    def _run(self, function: Function, owner: Class | None, node: ast.AST) -> Iterator[_Reached]:
        """Yield the functions that an expression of a function denotes or calls."""
        module = function.module
        if isinstance(node, ast.Call):
            passed = map(self._arguments.resolved, self.project.values(module, node.func))
            for value in sorted(union(passed), key=order):
                if isinstance(value, Instance):
                    for target in targets_of(self.evaluator, value):
                        outside = self._is_outside(function, owner, node.func)
                        yield target.function, target.owner if outside else None
                elif isinstance(value, Class):
                    for method in self.evaluator.attribute(Instance(value), "__init__"):
                        if isinstance(inner := underlying(method), Function):
                            yield inner, None
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            values: Iterable[Value] = self.project.values(module, node)
            if owner is not None and isinstance(node, ast.Attribute):
                if _is_self(function.node, node.value):
                    values = overrides_of(self.project).attribute(Instance(owner), node.attr).values
            for value in sorted(values, key=order):
                if isinstance(inner := underlying(value), Function):
                    outside = self._is_outside(function, owner, node)
                    yield inner, receiver_of(value) if outside else None

    def _is_outside(self, function: Function, owner: Class | None, node: ast.expr) -> bool:
        """Return whether an object, or the one whose attribute it is, exists before the call."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        if owner is not None and _is_self(function.node, node):
            return True
        bindings = function.module.reaching(node)
        return bool(bindings) and not any(
            function.node in (b.scope.node, *function.module.ancestors(b.scope.node))
            for b in bindings
        )

    # -- variables

    def _variable(self, function: Function) -> ast.Name | None:
        """Return a name of a function that denotes an outside variable whose value changes."""
        module = function.module
        names = [node for node in _body(function.node) if isinstance(node, ast.Name)]
        declared = {
            name
            for node in _body(function.node)
            if isinstance(node, ast.Nonlocal | ast.Global)
            for name in node.names
        }
        for name in names:
            bindings = module.reaching(name)
            inside = [b.scope.node in self.nodes for b in bindings]
            if name.id in declared and not all(inside):
                return name
            if not bindings or any(inside) or not isinstance(name.ctx, ast.Load):
                continue
            if any(self._is_rebound(v) for v in _bound_here(module, name)) or any(
                b.scope.parent is not None and getattr(b.node, "lineno", 0) > function.node.lineno
                for b in bindings
                if b.kind not in _DEFINITIONS
            ):
                return name
            above = module.parent(name)
            attributes = [above] if isinstance(above, ast.Attribute) else []
            for variable in (v for a in attributes for v in self._exported_as(module, a)):
                if self._is_rebound(variable):
                    return name
            for node in (name, *attributes):
                if any(
                    self._changes(v, module, node, function.node) for v in self._of(module, node)
                ):
                    return name
        return None

    def _is_rebound(self, variable: _Variable) -> bool:
        """Return whether a function or another module assigns to a variable."""
        owner, scope, name = variable
        if owner.is_written_elsewhere(scope, name):
            return True
        return scope.parent is None and any(
            isinstance(node.ctx, ast.Store)
            and ModuleValue(owner) in self.project.values(module, node.value)
            and self._runs_later(module, node)
            for module, node in _attributes_written(self.project, name)
        )

    def _of(self, module: Module, node: ast.expr) -> set[_Variable]:
        """Return the project's variables that a name, or an attribute of a module, denotes."""
        found: set[_Variable] = set()
        pending: list[_Variable] = []
        if isinstance(node, ast.Name):
            for binding in module.reaching(node):
                is_global = node.id in binding.scope.global_names
                scope = module.scope_of(module.tree) if is_global else binding.scope
                pending.append((module, scope, node.id))
        elif isinstance(node, ast.Attribute):
            pending += self._exported_as(module, node)
        while pending:
            variable = owner, scope, name = pending.pop()
            if variable in found or not owner.is_own:
                continue
            found.add(variable)
            for binding in owner.visible(name, scope):
                statement = binding.statement
                if isinstance(statement, ast.ImportFrom) and isinstance(binding.node, ast.alias):
                    for base in self.evaluator.import_base(statement, owner):
                        if isinstance(base, ModuleValue):
                            root = base.module.scope_of(base.module.tree)
                            pending.append((base.module, root, binding.node.name))
        return found

    def _exported_as(self, module: Module, node: ast.Attribute) -> Iterator[_Variable]:
        """Yield the variable that an attribute of a module of the project is."""
        for value in self.project.values(module, node.value):
            if isinstance(value, ModuleValue):
                yield value.module, value.module.scope_of(value.module.tree), node.attr

    # -- objects

    def _changes(
        self, variable: _Variable, module: Module, read: ast.expr, since: FunctionNode | ast.expr
    ) -> bool:
        """Return whether the object that a variable holds, as it is read somewhere, changes.

        Of a local variable, later than `since`: the function, or what passes it to a factory.
        """
        owner, scope, name = variable
        above = module.parent(read)
        attr = above.attr if isinstance(above, ast.Attribute) else None
        bindings = owner.visible(name, scope)
        if all(b.kind in _DEFINITIONS for b in bindings):
            if attr is None or all(map(_is_library, self.project.values(module, read))):
                return False
        elif above is not None and getattr(module.parent(above), "func", None) is above:
            attr = None  # a method may read any attribute
        for user, use in self._changing_uses(variable, attr):
            around = user.enclosing_function(use)
            if around in self.nodes:
                later = True
            elif scope.parent is None:
                later = self._runs_later(user, use)
            else:
                later = around is not scope.node or use.lineno > since.lineno
            if later:
                return True
        return False

    def _changing_uses(self, variable: _Variable, attr: str | None) -> list[Place]:
        """Return the uses of a variable in the project that change its object, see `_changes`."""
        known = self.project.once(_known_changes)
        if (variable, attr) not in known:
            owner, scope, name = variable
            modules = self.project.mentioning([name]) if scope.parent is None else [owner]
            known[variable, attr] = [
                (module, node)
                for module in modules
                for alias in (name, *find_mentions(module).renamed.get(name, ()))
                for node in find_mentions(module).reads(alias)
                if variable in self._of(module, node)
                and self._is_changed_by(module, node, attr, set())
            ]
        return known[variable, attr]

    def _is_changed_by(
        self, module: Module, node: ast.expr, attr: str | None, seen: set[ast.AST]
    ) -> bool:
        """Return whether a use of an object changes it; if given, only that attribute of it."""
        if node in seen:
            return False
        seen.add(node)
        above = module.argument_holder(node)
        match above:
            case ast.Attribute(attr=name, ctx=ctx):
                if not isinstance(ctx, ast.Load):
                    return attr in (None, name)
                call = module.parent(above)
                if isinstance(call, ast.Call) and call.func is above:
                    if name in _MUTATORS and self._may_be_container(module, node):
                        return True
                    values = self.project.values(module, above)
                    methods = [underlying(v) for v in values if receiver_of(v) is not None]
                    return any(self._changes_first(m, attr, seen) for m in methods)
                return attr in (None, name) and self._is_changed_by(module, above, None, seen)
            case ast.Subscript(value=base, ctx=ctx) if base is node and attr is None:
                return not isinstance(ctx, ast.Load) or self._is_changed_by(
                    module, above, None, seen
                )
            case ast.Call(func=func) if func is node:
                values = self.project.values(module, func)
                return any(
                    self._changes_first(target.function, attr, seen)
                    for value in values
                    if isinstance(value, Instance)
                    for target in targets_of(self.evaluator, value)
                )
            case ast.Call():
                return self._is_changed_by_call(module, above, node, attr, seen)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                return any(
                    any(b.node is above for b in module.reaching(use))
                    and self._is_changed_by(module, use, attr, seen)
                    for use in find_mentions(module).names.get(name, ())
                )
        return False

    def _is_changed_by_call(
        self,
        module: Module,
        call: ast.Call,
        node: ast.expr,
        attr: str | None,
        seen: set[ast.AST],
    ) -> bool:
        """Return whether a call changes an object that is passed to it."""
        if isinstance(call.func, ast.Name) and not module.reaching(call.func):
            return call.func.id in _MUTATING_FUNCTIONS and call.args[:1] == [node]
        for value in self.project.values(module, call.func):
            for target in targets_of(self.evaluator, value):
                function = target.function
                bound = bind_call(function.node, call.args, call.keywords, target.skip)
                if any(
                    expr is node and self._changes_parameter(function, name, attr, seen)
                    for name, expr in bound.by_name.items()
                ):
                    return True
        return False

    def _changes_first(self, function: Value | None, attr: str | None, seen: set[ast.AST]) -> bool:
        """Return whether a method changes its object."""
        if not isinstance(function, Function):
            return False
        first = first_parameter(function.node)
        if first is None or getattr(function.node, "name", "") in _INITIALISERS:
            return False
        return self._changes_parameter(function, first.arg, attr, seen)

    def _changes_parameter(
        self, function: Function, name: str, attr: str | None, seen: set[ast.AST]
    ) -> bool:
        """Return whether a function changes what is passed for a parameter."""
        module = function.module
        return any(
            any(b.kind == "parameter" and b.scope.node is function.node for b in bindings)
            and self._is_changed_by(module, use, attr, seen)
            for use in find_mentions(module).names.get(name, ())
            if (bindings := module.reaching(use))
        )

    def _may_be_container(self, module: Module, node: ast.expr) -> bool:
        """Return whether an object may be a list, a dictionary, or the like."""
        return all(
            isinstance(value, Container)
            or (isinstance(value, Result) and value.name.startswith(("builtins.", "collections.")))
            for value in self.project.values(module, node)
        )

    # -- code that runs once

    def _runs_later(self, module: Module, node: ast.AST) -> bool:
        """Return whether code may run at other times than once when modules are imported."""
        function = _outermost_function(module, node)
        if function is None:
            return False
        return function in self.nodes or not self._runs_at_import(module, function, set())

    def _runs_at_import(self, module: Module, function: FunctionNode, seen: set[ast.AST]) -> bool:
        """Return whether only module-level code, and what it calls, uses a function."""
        name = getattr(function, "name", "")
        if not name or function in seen:
            return False
        seen.add(function)
        if self.reached[0][0].node in _search(self.project, Function(module, function), None).nodes:
            return False  # a program, which calls the checkpointed function
        uses = [
            (user, use)
            for user in self.project.mentioning([name])
            for use in find_mentions(user).reads(name)
        ]
        for user, use in uses:
            around = _outermost_function(user, use)
            if around is not None and not self._runs_at_import(user, around, seen):
                return False
        return bool(uses)

    # -- attributes of `self`

    def _attribute(self, function: Function, owner: Class | None) -> ast.Name | None:
        """Return `self` if a method uses an attribute of its object that is assigned later."""
        if owner is None or is_pytree(self.evaluator, owner):
            return None
        if _MODULE in class_chain(self.evaluator, owner):
            return None  # Flax rejects assignments outside of `setup`
        for node in _body(function.node):
            if not isinstance(node, ast.Attribute) or not _is_self(function.node, node.value):
                continue
            found = overrides_of(self.project).attribute(Instance(owner), node.attr).values
            if any(isinstance(underlying(value), Function) for value in found):
                continue
            if self._is_attribute_assigned(owner, node.attr):
                assert isinstance(node.value, ast.Name)
                return node.value
        return None

    def _is_attribute_assigned(self, cls: Class, attr: str) -> bool:
        """Return whether an attribute of an existing object, maybe of the class, is assigned."""
        home = cls.module.source.path
        if any(
            getattr(module.enclosing_function(node), "name", "") not in _INITIALISERS
            and _may_be_instance(self.project, module, node.value, cls)
            and _may_get_instances(self.project, module.source.path, home)
            for module, node in _attributes_written(self.project, attr)
        ):
            return True
        return any(
            getattr(module.enclosing_function(node), "name", "") not in _INITIALISERS
            and self.project.values(module, node.value)
            and _may_be_instance(self.project, module, node.value, cls)
            and self._is_changed_by(module, node, None, set())
            for module in self.project.mentioning([attr])
            for node in find_mentions(module).attributes.get(attr, ())
        )


def _body(function: FunctionNode) -> Iterator[ast.AST]:
    """Yield the nodes of a function that run when it is called."""
    for part in [function.body] if isinstance(function, ast.Lambda) else function.body:
        yield from ast.walk(part)


def _runs_within(module: Module, call: ast.AST, factory: ast.AST) -> bool:
    """Return whether a call runs before a factory returns: no function around it is returned."""
    for around in module.ancestors(call):
        if around is factory:
            return True
        if isinstance(around, FunctionNode) and _is_returned(module, around):
            return False
    return False


def _is_returned(module: Module, function: FunctionNode) -> bool:
    """Return whether the function around a nested one returns it, and not what it computes."""
    outer, name = module.enclosing_function(function), getattr(function, "name", None)
    return outer is not None and any(
        part is function or (isinstance(part, ast.Name) and part.id == name)
        for returned in returned_expressions(outer)
        for part in ast.walk(returned)
        if not isinstance(module.parent(part), ast.Call)
    )


def _is_self(function: FunctionNode, node: ast.expr) -> bool:
    """Return whether an expression is the name of a method's first parameter."""
    first = first_parameter(function)
    return isinstance(node, ast.Name) and first is not None and node.id == first.arg


def _bound_here(module: Module, name: ast.Name) -> Iterator[_Variable]:
    """Yield the variables of a module that a name denotes and that may be assigned."""
    bindings = module.reaching(name)
    if any(b.kind not in _DEFINITIONS for b in bindings):
        for scope in {module.scope_of(module.tree), *(b.scope for b in bindings)}:
            yield module, scope, name.id


def _attributes_written(project: Project, name: str) -> Iterator[tuple[Module, ast.Attribute]]:
    """Yield the assignments to, and deletions of, attributes of a name."""
    attribute = re.compile(rf"\.[\s\\]*{re.escape(name)}\b")
    for path in project.files.mentioning((name,)):
        if not attribute.search(project.files.read(path).text):
            continue  # Reading is cheaper than parsing.
        if module := project.module(path):
            for node in module.nodes:
                if isinstance(node, ast.Attribute) and node.attr == name:
                    if not isinstance(node.ctx, ast.Load):
                        yield module, node


def _is_library(value: Value) -> bool:
    """Return whether a value is a module, or belongs to a library whose objects do not change."""
    if isinstance(value, External):
        return value.name.partition(".")[0] in (*KNOWN_PACKAGES, "builtins")
    return isinstance(value, ModuleValue)


def _may_be_instance(project: Project, module: Module, node: ast.expr, cls: Class) -> bool:
    """Return whether an expression may be an instance of a class, its bases or subclasses."""
    values = project.values(module, node)
    for value in values:
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return True
        if cls.node in _bases(project, value.cls) or value.cls.node in _bases(project, cls):
            return True
    return not values


def _may_get_instances(project: Project, user: Path, home: Path) -> bool:
    """Return whether imports connect a file with the one that defines a class.

    One imports the other, or a file imports both. A repository holds unrelated programs, too.
    """
    imports = project.prefilter.imports_any
    if user == home or imports(user, [home], {}) or imports(home, [user], {}):
        return True
    name = user.parent.name if user.name == "__init__.py" else user.stem
    return any(
        imports(path, [user], {}) and imports(path, [home], {})
        for path in project.files.mentioning([name])
    )


def _bases(project: Project, cls: Class) -> set[ast.ClassDef]:
    return {c.node for c in class_chain(project.evaluator, cls) if isinstance(c, Class)}


def changes_later(module: Module, node: ast.expr) -> ast.Name | None:
    """Return a name in an expression that may change before a nested function evaluates it."""
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
            bindings = module.reaching(name)
            if any(b.kind in ("element", "with", "opaque", "augment") for b in bindings):
                return name
            scope = module.scope_at(name)
            if scope.is_function and len(module.visible(name.id, scope)) > 1:
                return name
            if any(_in_loop(module, b.node, scope.node) for b in bindings):
                return name
    return None


def _in_loop(module: Module, node: ast.AST, within: ast.AST) -> bool:
    for around in module.ancestors(node):
        if around is within:
            return False
        if isinstance(around, ast.For | ast.While | ast.AsyncFor):
            return True
    return False


def _outermost_function(module: Module, node: ast.AST) -> FunctionNode | None:
    """Return the function of the module's body whose body contains a node."""
    found = module.enclosing_function(node)
    while found is not None and (around := module.enclosing_function(found)) is not None:
        found = around
    return found


def _known_changes(project: Project) -> dict[tuple[_Variable, str | None], list[Place]]:
    return {}
