"""What a function reads from outside and what changes between its calls.

JAX traces a checkpointed function once for equal static arguments and shapes, and remembers the
result: what the function reads from outside is read at the first call only. It traces
`jax.checkpoint(self.f)` once for each object, since two `self.f` of one object are equal, and a
function that is created anew for each call at each call.

The answer is conservative: an object that is changed anywhere in the project after the import, in
whatever attribute, may change between calls.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import NoneType

from ...libraries.apis import KNOWN_PACKAGES
from ..names.module import (
    Binding,
    FunctionNode,
    Mentions,
    Module,
    Place,
    Scope,
    body_nodes,
    find_mentions,
    last_name,
    once,
    own_nodes,
    reads_of,
)
from ..needs.needs import ORDER, changes_in_place, runs_at_compile_time
from ..project import Project
from ..sites.calls import overrides_of, resolved, values_through_callers
from ..sites.site import Site
from ..values.bind import bind_call, default_of, first_parameter, positional_parameters
from ..values.containers import sources
from ..values.declarations import is_decorated, self_assignments
from ..values.evaluator import Target, class_chain, targets_of
from ..values.values import (
    NOTHING,
    Bound,
    Class,
    Constant,
    External,
    Function,
    Instance,
    ModuleValue,
    Partial,
    Result,
    Value,
    Values,
    layers,
    order,
    underlying,
    union,
)
from .arguments import argument_kind, origins_of, project_needs

# A variable: its module, the scope that binds it, and its name.
_Variable = tuple[Module, Scope, str]
# A function that is called, and the class of its `self` if that exists before the call.
_Reached = tuple[Function, Class | None]

_MODULE = External("flax.linen.Module")
# Modules with functions that change their arguments, where their result is dropped.
_CHANGING = ("numpy.", "random.", "heapq.", "bisect.")
# Methods whose result is dropped although they do not change what the code reads: of loggers.
_QUIET_METHODS = frozenset(
    {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "write"}
)
_INITIALISERS = frozenset({"__init__", "__new__", "__post_init__", "setup"})
_DEFINITIONS = ("def", "class", "import")
_CONFIGURATION = ("os.environ", "jax.config.")
_SURROUNDINGS = (
    "os.environ", "os.getenv", "random.", "numpy.random.", "time.", "datetime.", "builtins.open",
    "contextvars.", "queue.",
)  # fmt: skip


def changing_state(project: Project, target: Target, site: Site) -> Place | None:
    """Return a name in what a function runs that denotes state that changes between its calls.

    The function, or one of the project's functions that it calls, reads or changes it, or a partial
    passes it, and something other than code that runs once at import, or an initialiser, changes
    it.
    """
    state = project.once(_State, target.function, target.owner)
    return state.changing() or state.changing_in(_bound(project, site))


def leaking(project: Project, target: Target) -> Place | None:
    """Return what may be a result of JAX that a function keeps for later calls: in a cache, or in a
    container.

    In a checkpoint the result is a tracer, which must not outlive the trace.
    """
    state = project.once(_State, target.function, target.owner)
    for function, owner in state.reached:
        module, node = function.module, function.node
        kept = [*state.stored_outside(function, owner)]
        for call in own_nodes(node):
            match call:  # `next(hk.PRNGSequence(0))` keeps what is left of the key
                case ast.Call(func=ast.Name("next"), args=[iterator, *_]):
                    values = project.values(module, iterator)
                    if any(isinstance(v, Result | Instance) for v in values):
                        return module, iterator
                    if _is_generator(project, module, iterator, owner):
                        return module, iterator
        if isinstance(node, ast.FunctionDef) and any(map(_caches, node.decorator_list)):
            kept += [n.value for n in own_nodes(node) if isinstance(n, ast.Return) and n.value]
        for part in kept:
            bindings = module.reaching(part) if isinstance(part, ast.Name) else ()
            sources = [part, *(b.value for b in bindings if b.value is not None)]
            if argument_kind(project, module, part) != "python" and not any(
                runs_at_compile_time(module, source) for source in sources
            ):
                return module, part
    return None


def _is_generator(project: Project, module: Module, node: ast.expr, owner: Class | None) -> bool:
    """Return whether a generator function of the project makes an object."""
    made = [binding.value for binding in sources(module, node)]
    if isinstance(node, ast.Attribute) and owner is not None:
        made += self_assignments(owner.node).get(node.attr, ())
    calls = (call for call in made if isinstance(call, ast.Call))
    return any(
        isinstance(value, Function)
        and any(isinstance(one, ast.Yield) for one in own_nodes(value.node))
        for call in calls
        for value in project.values(module, call.func)
    )


def _caches(decorator: ast.expr) -> bool:
    name = last_name(getattr(decorator, "func", decorator))
    return name in ("lru_cache", "cache", "cached_property")


def _bound(project: Project, site: Site) -> Iterator[Place]:
    """Yield the arguments that partials pass to what a site wraps."""
    if site.subject is None or not isinstance(site.subject[1], ast.expr):
        return
    for value in project.values(site.subject[0], site.subject[1]):
        for layer in layers(value):
            if isinstance(layer, Partial):
                for argument in (*layer.call.args[1:], *(k.value for k in layer.call.keywords)):
                    yield layer.module, argument


class _State:
    """The outside state that one function, and those that it calls, read or change."""

    def __init__(self, project: Project, function: Function, owner: Class | None) -> None:
        self.project = project
        self.evaluator = project.evaluator
        self.start = function
        self.reached = self._follow((function, owner))
        self.nodes = {
            node
            for reached, _ in self.reached
            for node in ast.walk(reached.node)
            if isinstance(node, FunctionNode)
        }

    def changing(self) -> Place | None:
        """Return a name that denotes such state, and that changes between calls."""
        for function, owner in self.reached:
            for node in ast.walk(function.node):
                if isinstance(node, ast.Name) and self._is_changing_name(function, node):
                    return function.module, node
                if isinstance(node, ast.expr) and self._reads_surroundings(function, node):
                    return function.module, node
                if isinstance(node, ast.Attribute) and self._is_changing_field(
                    function, owner, node
                ):
                    return function.module, node
        return None

    def _reads_surroundings(self, function: Function, node: ast.expr) -> bool:
        """Return whether an expression reads what may change: the environment, a draw."""
        read: list[ast.expr] = []
        names: tuple[str, ...] = _SURROUNDINGS
        if isinstance(node, ast.Attribute):
            read, names = [node], _CONFIGURATION
        elif isinstance(node, ast.Call):
            # `rng.normal()` draws from what `numpy.random.default_rng()` returned.
            read = [node.func]
            read += [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return any(
            isinstance(called := underlying(value), External | Result)
            and called.name.startswith(names)
            for expr in read
            for value in self._resolved(function.module, expr)
        )

    def _resolved(self, module: Module, node: ast.expr) -> Values:
        """Return what an expression may be, of parameters by what callers pass."""
        if isinstance(node, ast.Attribute):
            return values_through_callers(self.project, module, node)
        return union(resolved(self.project, v) for v in self.project.values(module, node))

    def changing_in(self, bound: Iterable[Place]) -> Place | None:
        """Return a name in arguments that are bound already, whose object changes."""
        start = self.reached[0][0].node
        for module, expr in bound:
            for node in ast.walk(expr):
                if isinstance(node, ast.Name) and self._holds_changing(module, node, start.lineno):
                    return module, node
        return None

    def stored_outside(self, function: Function, owner: Class | None) -> Iterator[ast.expr]:
        """Yield what a function stores in an object or a variable that exists before the call."""
        module = function.module
        is_nested = module.enclosing_function(function.node) in self.nodes
        for node in body_nodes(function.node):
            for holder, stored in changes_in_place(node):
                if self._is_outside(function, owner, holder) or any(
                    map(_is_mutable_default, sources(module, holder))
                ):
                    yield from stored
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value:
                for name in ast.walk(node):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                        scope = module.scope_at(name)
                        outer = () if is_nested else scope.nonlocal_names
                        if name.id in (*scope.global_names, *outer):
                            yield node.value

    # -- what runs

    def _follow(self, start: _Reached) -> list[_Reached]:
        """Return a function and the project's functions that it calls or passes on."""
        reached = [start]
        seen = {(start[0].node, start[1])}
        for function, owner in reached:
            for node in body_nodes(function.node):
                for inner, cls in self._run(function, owner, node):
                    if inner.module.is_own and (inner.node, cls) not in seen:
                        seen.add((inner.node, cls))
                        reached.append((inner, cls))
        return reached

    def _run(self, function: Function, owner: Class | None, node: ast.AST) -> Iterator[_Reached]:
        """Yield the functions that a name or an attribute in a function denotes."""
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return
        callees = overrides_of(self.project).callees(function.module, node, owner)
        values = union(resolved(self.project, value) for value in callees.values)
        values = values or self._resolved(function.module, node)
        outside = self._is_outside(function, owner, node) or self._is_given(function, node)
        if outside and isinstance(node, ast.Attribute):
            yield from self._properties(function.module, node)
        above = function.module.parent(node)
        is_called = isinstance(above, ast.Call) and above.func is node
        for value in sorted(values, key=order):
            if isinstance(value, Instance) and not is_called:
                continue
            methods: Values = NOTHING
            if isinstance(value, Class):  # whose instances are made in the call
                methods = self.evaluator.attribute(Instance(value), "__init__")
            for target in (t for v in (value, *methods) for t in targets_of(self.evaluator, v)):
                exists = outside and target.skip and not isinstance(value, Class)
                yield target.function, target.owner if exists else None

    def _is_outside(self, function: Function, owner: Class | None, node: ast.expr) -> bool:
        """Return whether an object, or the one whose attribute it is, exists before the call."""
        module = function.module
        return any(
            function.node not in (binding.scope.node, *module.ancestors(binding.scope.node))
            or (owner is not None and binding.node is first_parameter(function.node))
            for binding in sources(module, node)
        )

    def _is_given(self, function: Function, node: ast.expr) -> bool:
        """Return whether an object is an argument of the call, or an attribute of one."""
        bindings = sources(function.module, node) if function is self.start else ()
        return any(isinstance(binding.node, ast.arg) for binding in bindings)

    def _properties(self, module: Module, node: ast.Attribute) -> Iterator[_Reached]:
        """Yield the properties that reading an attribute runs."""
        for value in self.project.values(module, node.value):
            cls = value.cls if isinstance(value, Instance) else None
            chain = class_chain(self.evaluator, cls) if isinstance(cls, Class) else ()
            for base in (base for base in chain if isinstance(base, Class)):
                for found in base.node.body:
                    if isinstance(found, ast.FunctionDef) and found.name == node.attr:
                        if is_decorated(found, "property", "cached_property"):
                            yield Function(base.module, found), base

    # -- variables

    def _is_changing_name(self, function: Function, name: ast.Name) -> bool:
        """Return whether a name denotes an outside variable whose value, or object, changes."""
        module = function.module
        bindings = module.reaching(name)
        inside = [b.scope.node in self.nodes for b in bindings]
        scope = module.scope_at(name)
        if name.id in (*scope.global_names, *scope.nonlocal_names) and not all(inside):
            return True
        if name in _changed_in_place(module) and any(_is_mutable_default(b) for b in bindings):
            return True
        if not bindings or any(inside) or not isinstance(name.ctx, ast.Load):
            return False
        line = function.node.lineno
        return self._holds_changing(module, name, line) or any(
            b.scope.parent is not None
            or len(module.visible(name.id, b.scope)) > 1
            or is_repeated(module, b)
            for b in bindings
            if b.kind not in _DEFINITIONS and getattr(b.node, "lineno", 0) > line
        )

    def _holds_changing(self, module: Module, node: ast.expr, since: int) -> bool:
        """Return whether the variable that a name, or an attribute of a module, denotes changes:
        it is assigned again, or its object changes.

        Of a local variable, after the line `since`, or that of the call that passes it on.
        """
        above = module.parent(node)
        is_read = False
        if isinstance(above, ast.Attribute):
            if isinstance(node, ast.Name) and self._holds_changing(module, above, since):
                return True
        if not isinstance(above, ast.Call) or above.func is not node:
            is_read = not all(map(_is_library, self.project.values(module, node)))
        for place in {(module, node): None, **origins_of(self.project, module, node)}:
            line = since if place == (module, node) else place[1].lineno
            for variable in _variables(self.project, *place):
                owner, scope, name = variable
                is_object = any(b.kind not in _DEFINITIONS for b in owner.visible(name, scope))
                if self._is_rebound(variable):
                    return True
                if (is_object or is_read) and self._is_changed(variable, line):
                    return True
        return False

    def _is_rebound(self, variable: _Variable) -> bool:
        """Return whether a function or another module assigns to a variable."""
        owner, scope, name = variable
        if owner.is_written_elsewhere(scope, name):
            return True
        if scope.parent is not None:
            return False
        modules = self.project.mentioning([name])
        return any(
            ModuleValue(owner) in self.project.values(module, node.value)
            and self._runs_later(module, node)
            for module in modules
            for node in find_mentions(module).written.get(name, ())
        ) or any(self._writes_by_name(module, owner, name) for module in modules)

    def _writes_by_name(self, module: Module, owner: Module | None, name: str) -> bool:
        """Return whether a module assigns to an attribute, or a variable of `owner`, by its name:
        `setattr`, `globals()`, or `mock.patch`.
        """
        mentions = find_mentions(module)
        for word in ("setattr", "patch", "globals"):
            for node in mentions.reads(word):
                holder = module.parent(node)
                call = module.parent(holder) if isinstance(holder, ast.Attribute) else holder
                if not isinstance(call, ast.Call):
                    continue
                above = module.parent(call)
                places = [above] if word == "globals" and module is owner else call.args[:2]
                if isinstance(getattr(above, "ctx", None), ast.Load) and word == "globals":
                    continue  # `globals()["name"]` reads it
                if any(_may_spell(place, name) for place in places):
                    return True
        return False

    # -- objects

    def _is_changed(self, variable: _Variable, since: int) -> bool:
        """Return whether the object that a variable holds changes, if local, after a line."""
        _, scope, _ = variable
        for user, use in self.project.once(_changing_uses, variable):
            around = user.enclosing_function(use)
            if around in self.nodes:
                return True
            if scope.parent is None:
                if self._runs_later(user, use):
                    return True
            elif around is not scope.node or use.lineno > since:
                return True
        return False

    def _runs_later(self, module: Module, node: ast.AST) -> bool:
        """Return whether code is in a function, or in a script that may have called the function
        before: after its definition, or after a call of any function of the project.
        """
        start = self.reached[0][0]
        if module.enclosing_function(node) is not None:
            return True
        if module is start.module:
            return getattr(node, "lineno", 0) > start.node.lineno
        loops = [n for n in module.ancestors(node) if isinstance(n, ast.For | ast.While)]
        last = getattr([node, *loops][-1], "end_lineno", 0)
        return last >= self.project.once(_first_call, module)

    # -- attributes of objects

    def _is_changing_field(
        self, function: Function, owner: Class | None, node: ast.Attribute
    ) -> bool:
        """Return whether an attribute of an outside object is read, and one of that name changes
        later, of whatever object.
        """
        module = function.module
        if not self._is_outside(function, owner, node):
            return False
        values = self.project.values(module, node.value)
        if values and all(map(_is_library, values)):
            return False
        first = first_parameter(function.node)
        if owner is not None and first is not None and last_name(node.value) == first.arg:
            module = owner.module
            bases = class_chain(self.evaluator, owner)
            if _MODULE in bases:
                return False  # Flax rejects assignments outside of `setup`
            if any(
                self._holds_changing(base.module, given, function.node.lineno)
                for base in bases
                if isinstance(base, Class)
                for given in self_assignments(base.node).get(node.attr, ())
                if isinstance(given, ast.Name)
            ):
                return True
        above = function.module.parent(node)
        is_called = isinstance(above, ast.Call) and above.func is node

        def uses(mentions: Mentions) -> tuple[ast.Attribute, ...]:
            read = () if is_called else mentions.attributes.get(node.attr, ())
            return (*mentions.written.get(node.attr, ()), *read)

        return any(
            (
                self._writes_by_name(user, None, node.attr)
                or any(self._changes_later(user, use) for use in uses(find_mentions(user)))
            )
            and _may_get_instances(self.project, user.source.path, module.source.path)
            for user in self.project.mentioning([node.attr])
        )

    def _changes_later(self, user: Module, use: ast.Attribute) -> bool:
        """Return whether a use of an attribute, not in an initialiser, changes it or its object."""
        return (
            getattr(user.enclosing_function(use), "name", "") not in _INITIALISERS
            and (not isinstance(use.ctx, ast.Load) or _changes(self.project, user, use, set()))
            and self._runs_later(user, use)
        )


def _first_call(project: Project, module: Module) -> float:
    """Return the first line on which importing a module may call a function of the project.

    A method of a library's object may: `net.apply(...)` runs what `net` was made of.
    """
    calls = (node for node in module.nodes if isinstance(node, ast.Call))
    called = (
        (call.lineno, project.values(module, call.func))
        for call in calls
        if module.enclosing_function(call) is None
    )
    lines = (line for line, values in called if not values or not all(map(_is_library, values)))
    return min(lines, default=math.inf)


def _variables(project: Project, module: Module, node: ast.expr) -> set[_Variable]:
    """Return the project's variables that a name, or an attribute of a module, denotes."""
    found: set[_Variable] = set()
    pending: list[_Variable] = []
    if isinstance(node, ast.Name):
        for binding in module.reaching(node):
            is_global = node.id in binding.scope.global_names
            scope = module.scope_of(module.tree) if is_global else binding.scope
            pending.append((module, scope, node.id))
    elif isinstance(node, ast.Attribute):
        pending += _exported(project.values(module, node.value), node.attr)
    while pending:
        variable = owner, scope, name = pending.pop()
        if variable in found or not owner.is_own:
            continue
        found.add(variable)
        for binding in owner.visible(name, scope):
            statement = binding.statement
            if isinstance(statement, ast.ImportFrom) and isinstance(binding.node, ast.alias):
                bases = project.evaluator.import_base(statement, owner)
                pending += _exported(bases, binding.node.name)
    return found


def _changing_uses(project: Project, variable: _Variable) -> list[Place]:
    """Return the uses of a variable in the project that change its object."""
    owner, scope, name = variable
    modules = project.mentioning([name]) if scope.parent is None else [owner]
    return [
        (module, node)
        for module in modules
        for alias in (name, *find_mentions(module).renamed.get(name, ()))
        for node in find_mentions(module).reads(alias)
        if variable in _variables(project, module, node) and _changes(project, module, node, set())
    ]


def _changes(project: Project, module: Module, node: ast.expr, seen: set[ast.AST]) -> bool:
    """Return whether a use of an object changes it, or something in it."""
    if node in seen:
        return False
    seen.add(node)
    if node in _changed_in_place(module):
        return True
    match above := module.argument_holder(node):
        case ast.Attribute(value=base) | ast.Subscript(value=base) if base is node:
            return not isinstance(above.ctx, ast.Load) or _changes(project, module, above, seen)
        case ast.Call(func=ast.Name("vars"), args=[_]):
            return _changes(project, module, above, seen)
        case ast.Call():
            return _call_changes(project, module, above, node)
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
            reads = reads_of(module, name, above)
            return any(_changes(project, module, use, seen) for use in reads)
    return False


def _call_changes(project: Project, module: Module, call: ast.Call, node: ast.expr) -> bool:
    """Return whether a call changes what is passed to it, or the object whose method it is."""
    if any(keyword.arg == "out" and keyword.value is node for keyword in call.keywords):
        return True
    values = project.values(module, call.func)
    if isinstance(module.parent(call), ast.Expr):  # It is called for its effect.
        is_unseen = all(isinstance(v, Bound) and isinstance(v.func, External) for v in values)
        if is_unseen and last_name(call.func) not in _QUIET_METHODS:
            passed = project.values(module, node)
            return not passed or any(not isinstance(value, Constant) for value in passed)
        if any(isinstance(v, External) and v.name.startswith(_CHANGING) for v in values):
            return True
    for value in values:
        for target in targets_of(project.evaluator, value):
            function = target.function
            if getattr(function.node, "name", "") in _INITIALISERS:
                continue
            bound = bind_call(function.node, call.args, call.keywords, target.skip).by_name
            own = positional_parameters(function.node)[: target.skip]
            names = {name for name, expr in bound.items() if expr is node}
            names.update(p.arg for p in own if node is call.func)
            if names and any(
                need.changed and need.parameter in names and need.reason != ORDER
                for need in project_needs(project).of(function, target.owner)
            ):
                return True
    return False


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


@once
def _changed_in_place(module: Module) -> frozenset[ast.expr]:
    """Return the expressions whose objects a statement or a call changes."""
    return frozenset(held for node in module.nodes for held, _ in changes_in_place(node))


def _is_mutable_default(binding: Binding) -> bool:
    """Return whether a parameter has a default that is made once, and can change."""
    function, parameter = binding.scope.node, binding.node
    if not isinstance(function, FunctionNode) or not isinstance(parameter, ast.arg):
        return False
    return not isinstance(default_of(function, parameter), ast.Constant | NoneType)


def _may_spell(node: ast.AST | None, name: str) -> bool:
    """Return whether code contains a name as a string, alone or at the end of a dotted name."""
    texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant)) if node else ()
    return any(isinstance(text, str) and text.rpartition(".")[2] == name for text in texts)


def _exported(values: Iterable[Value], name: str) -> Iterator[_Variable]:
    """Yield the variables of that name of the modules among some values."""
    for value in values:
        if isinstance(value, ModuleValue):
            yield value.module, value.module.scope_of(value.module.tree), name


def _is_library(value: Value | None) -> bool:
    """Return whether a value is a module, or belongs to a library whose objects do not change."""
    if isinstance(value, External):
        return value.name.partition(".")[0] in (*KNOWN_PACKAGES, "builtins")
    return isinstance(value, ModuleValue)


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
            if any(is_repeated(module, binding) for binding in bindings):
                return name
    return None


def is_repeated(module: Module, binding: Binding) -> bool:
    """Return whether a loop binds a name again, where a function would see the last binding."""
    return any(
        isinstance(around, ast.For | ast.AsyncFor | ast.While)
        and module.scope_at(around) is binding.scope
        for around in (binding.node, *module.ancestors(binding.node))
    )
