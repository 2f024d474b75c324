"""The search for the calls of a function, or of what a site makes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...libraries.apis import CALL_WITH, DIFFERENTIATE, SAME_CALL
from ..fixed_point import FixedPoint
from ..names.mentions import find_mentions, last_name
from ..names.module import Module, Place, once
from ..names.scopes import Definition, FunctionNode, parameters
from ..project import Project
from ..values.application import api_of
from ..values.bind import bind_call, default_of, first_parameter, positional_parameters
from ..values.callees import applied_module, partial_calls, underlying
from ..values.classes import class_chain, is_decorated
from ..values.declarations import gradient_places
from ..values.evaluator import Evaluator
from ..values.haiku_transforms import APPLY, is_transformed
from ..values.name_search import NameSearch
from ..values.values import (
    Applied,
    Bound,
    Class,
    External,
    Function,
    Instance,
    ModuleValue,
    Parameter,
    Partial,
    Value,
    Values,
    Wrapped,
)
from .search_target import SearchTarget
from .site import Site
from .subclasses import overrides_of
from .uses import Call, Escape, Passed, Uses

_HARMLESS_FUNCTIONS = frozenset(
    {
        *SAME_CALL, *CALL_WITH, "functools.partial", "functools.wraps", "functools.update_wrapper",
        "builtins.zip", "builtins.enumerate", "builtins.list", "builtins.tuple",
        "builtins.reversed", "builtins.len", "builtins.isinstance", "builtins.print",
        "builtins.repr", "builtins.str", "builtins.id", "builtins.callable", "builtins.type",
        "builtins.hasattr", "builtins.iter",
    }
)  # fmt: skip
# Modules that hand a value on to the next, each by another name; beyond, its uses are not known.
_MOST_STEPS = 30
_LOOKING_UP = ("getattr", "globals", "vars", "__dict__", "eval", "import_module")
_HARMLESS_ATTRIBUTES = frozenset({"__name__", "__doc__", "__wrapped__", "__qualname__"})


def uses_of(project: Project, origin: Site | Function, *, loaded: bool = False) -> Uses:
    """Return the calls of what a site makes, or of a function, and where it escapes.

    With `loaded`, only in the project's modules that may matter, which is cheap for any function.
    """
    known = project.once(_known_uses)
    if (origin, loaded) not in known:
        known[origin, loaded] = Uses()  # the answer where the search asks for itself
        target = SearchTarget(project.evaluator, origin)
        known[origin, loaded] = _Search(project, target, loaded=loaded).run()
    return known[origin, loaded]


def passed_for(project: Project, parameter: Parameter, *, loaded: bool = False) -> Passed:
    """Return what is passed for a parameter of a function of the project; see `uses_of`."""
    function, name = parameter.function, parameter.name
    uses = uses_of(project, Function(parameter.module, function), loaded=loaded)
    places: list[Place] = []
    unknown: list[tuple[Module, ast.expr | FunctionNode]] = []
    defaulted = False
    for call in uses.passing:
        bound = call.bound_to(function)
        passed = bound.by_name.get(name)
        if bound.unclear:
            unknown.append((call.module, call.node))
        if passed is not None:
            places.append((call.module_of(passed), passed))
        else:
            defaulted = True
    first = first_parameter(function)
    definitions: list[tuple[Module, Definition]] = []
    for module, decorator, definition in uses.decorated:
        # What another decorator below returns for the definition is not followed.
        if first is not None and first.arg == name and decorator is definition.decorator_list[-1]:
            definitions.append((module, definition))
        else:
            unknown.append((module, decorator))
    decorators = {decorator for _, decorator, _ in uses.decorated}
    for escape in uses.escapes:
        if escape.node not in decorators:
            unknown.append((escape.module, escape.node))
    own = next(p for p in parameters(function) if p.arg == name)
    value = default_of(function, own)
    default = None if value is None else (parameter.module, value)
    return Passed(tuple(places), tuple(definitions), default, next(iter(unknown), None), defaulted)


def _known_uses(project: Project) -> dict[tuple[Site | Function, bool], Uses]:
    _note_subclasses(project)
    return {}


def _known_bases(_: Project) -> dict[Module, set[Module]]:
    return {}


def _note_subclasses(project: Project) -> None:
    """Note all subclasses: a method of a base class may call what a subclass assigns."""
    evaluator = project.evaluator
    known = False
    for module in project.parsed:
        for own, base in _inheritance(evaluator, module):
            evaluator.subclasses.setdefault(base.node, []).append(own)
            known = True
    if known:
        evaluator.forget()


def _inheritance(evaluator: Evaluator, module: Module) -> Iterator[tuple[Class, Class]]:
    """Yield the classes of a module with each of their bases in the project."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and node.bases:
            own = Class(module, node)
            for base in class_chain(evaluator, own):
                if isinstance(base, Class) and base != own:
                    yield own, base


@once
def _lookups(module: Module) -> list[tuple[ast.expr, ast.expr | None, ast.expr]]:
    """Return the look-ups of computed names, each with the object, or None for the module."""
    found: list[tuple[ast.expr, ast.expr | None, ast.expr]] = []
    owner: ast.expr | None
    name: ast.expr
    for node in module.nodes:
        match node:
            case (
                ast.Call(func=ast.Name(id="getattr"), args=[owner, name, *_])
                | ast.Subscript(value=ast.Attribute(value=owner, attr="__dict__"), slice=name)
                | ast.Subscript(value=ast.Call(func=ast.Name(id="vars"), args=[owner]), slice=name)
            ):
                pass
            case (
                ast.Subscript(value=ast.Call(func=ast.Name(id="globals")), slice=name)
                | ast.Call(
                    func=ast.Attribute(value=ast.Call(func=ast.Name(id="globals"))), args=[name, *_]
                )
                | ast.Call(func=ast.Name(id="eval"), args=[name, *_])
            ):
                owner = None
            case ast.Attribute(value=owner, attr=attr) if _is_any_module(owner):
                name = ast.Constant(attr)
            case _:
                continue
        if not isinstance(name, ast.Constant) or (owner is not None and _is_any_module(owner)):
            found.append((node, owner, name))
    return found


def _is_any_module(node: ast.expr) -> bool:
    """Return whether an expression is a module that is looked up."""
    match node:
        case ast.Call(func=func):
            return last_name(func) == "import_module"
        case ast.Subscript(value=ast.Attribute(attr="modules", value=ast.Name(id="sys"))):
            return True
    return False


def _may_be(name: ast.expr, word: str) -> bool:
    """Return whether a computed name may be a word."""
    return re.fullmatch(_pattern(name), word) is not None


def _pattern(name: ast.expr) -> str:
    match name:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.JoinedStr(values=parts):
            return "".join(map(_pattern, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern(left) + _pattern(right)
    return ".*"


def _is_another_notebook(module: Module, own: Module) -> bool:
    """Return whether two modules are different notebooks, which cannot import each other."""
    notebooks = module.source.container is not None and own.source.container is not None
    return notebooks and module is not own


class _Search:
    def __init__(self, project: Project, target: SearchTarget, *, loaded: bool) -> None:
        self.project = project
        self._loaded = loaded
        self.evaluator = project.evaluator
        self.target = target
        self.uses = Uses()
        self.modules: list[Module] = []
        # The attributes of objects that hold it, and the reads of those that cannot be seen.
        self._attributes: set[str] = set()
        self._unseen: list[tuple[Module, ast.Attribute]] = []
        # Whether callers pass only what is called like the function, for each parameter.
        self._alike = FixedPoint[Parameter, bool](self._gets_only_alike, True)

    def run(self) -> Uses:
        self._note_decorators()
        while True:
            before = len(self.target.passed)
            self.uses = Uses()
            self._attributes, self._unseen = self._method_names(), []
            search = self._search_names()
            for module in self.modules:
                for node in search.expressions(module):
                    self._inspect(module, node)
            if len(self.target.passed) == before or self._loaded:
                self._note_own_calls()
                self._note_unseen()
                if not self._loaded:
                    self._note_lookups(search.exported)
                    self._note_unreadable(search.exported)
                self.uses.calls.sort(key=lambda c: c.module.position(c.node))
                self.uses.escapes.sort(key=lambda e: e.module.position(e.node))
                return self.uses

    def _search_names(self) -> NameSearch:
        """Find where the value may be, as far as is known so far.

        Starts with its own module; other modules are searched if they may see a name that leads to
        it.
        """
        self.modules = self._first_modules()
        search = NameSearch(
            self.evaluator,
            self.modules,
            list(self.target.words()),
            self.target.places(),
            lambda value: self.target.matches(value) or self.target.holds(value),
            definition=self.target.definition,
            by_name=False,
            origins=self.target.origins,
        )
        for _ in range(_MOST_STEPS):
            known = set(self.modules)
            more = [m for m in self._modules_mentioning(search.exported) if m not in known]
            if not more:
                return search
            self.modules += more
            search.extend(more)
            if self._loaded:
                return search
        reason = f"it is handed on through more than {_MOST_STEPS} modules"
        self._escape(self.target.module, self.target.place, reason)
        return search

    def _first_modules(self) -> list[Module]:
        found = {self.target.module: None, **dict.fromkeys(self.target.passed.values())}
        # Inherited methods that call what this class assigns.
        for around in self.target.module.ancestors(self.target.place):
            if isinstance(around, ast.ClassDef):
                for base in class_chain(self.evaluator, Class(self.target.module, around)):
                    if isinstance(base, Class):
                        found[base.module] = None
        return list(found)

    def _modules_mentioning(self, words: set[str]) -> Iterator[Module]:
        """Yield the modules that mention one of some words and may see what it denotes."""
        if self._loaded:
            named = [word for word in words if not word.startswith("__")]
            every = self.project.modules.values()
            yield from (module for module in every if find_mentions(module).mention(named))
            return
        for path in self._files_mentioning(sorted(self._search_words(words))):
            module = self.project.module(path)
            if module and not _is_another_notebook(module, self.target.module):
                yield module

    def _files_mentioning(self, wanted: Sequence[str]) -> Iterator[Path]:
        """Yield the files that mention one of some words and may see what it denotes.

        They import a module where the value is known to be, directly or through others, or hold a
        base class of one of its classes; or they mention a method by its own name, which may be
        called on any object.
        """
        files = self.project.files
        goals = {module.source.path for module in self.modules}
        reached: dict[Path, bool] = {}
        visible = {base.source.path for module in self.modules for base in self._bases_of(module)}
        if self.target.is_method and not self._loaded:
            own = [w for w, within in self.target.words() if not within and not w.startswith("__")]
            visible.update(files.mentioning(own))
        for path in files.mentioning(wanted):
            if path in visible or self.project.prefilter.imports_any(path, goals, reached):
                yield path

    def _bases_of(self, module: Module) -> set[Module]:
        """Return the modules that hold base classes of a module's classes."""
        known = self.project.once(_known_bases)
        if module not in known:
            known[module] = {base.module for _, base in _inheritance(self.evaluator, module)}
        return known[module]

    def _search_words(self, words: set[str]) -> set[str]:
        """Return the words by which files are found that can see one of some names."""
        wanted = {word for word in words if not word.startswith("__")}
        if any(len(word) < 3 for word in wanted):
            # Too short to search for: importers also name its module or package.
            wanted = {word for word in wanted if len(word) >= 3}
            wanted.add(self.target.module.name.rpartition(".")[2])
        return wanted

    def _note_unreadable(self, words: set[str]) -> None:
        """Note files that may call it and cannot be parsed, such as those of newer Python."""
        wanted = sorted(self._search_words(words))
        if unreadable := self.project.unreadable(self._files_mentioning(wanted), wanted):
            reason = f"`{unreadable[0].name}` mentions it and cannot be read"
            self._escape(self.target.module, self.target.place, reason)

    def _inspect(self, module: Module, node: ast.expr) -> None:
        if isinstance(node, ast.Call):
            self._inspect_call(module, node)
        if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            if isinstance(node, ast.Call) or isinstance(node.ctx, ast.Load):
                values = self.evaluator.values(module, node)
                if any(self.target.matches(v) or self.target.holds(v) for v in values):
                    self._classify(module, node)
                elif isinstance(node, ast.Attribute) and not values:
                    self._unseen.append((module, node))

    def _inspect_call(self, module: Module, node: ast.Call) -> None:
        callees, results = self._callees(module, node.func), self.evaluator.values(module, node)
        for callee in callees:
            value, first = callee, 0
            if isinstance(underlying(callee), Class) and self.target.name != "__init__":
                continue  # calling a class makes an instance
            if isinstance(callee, Applied | Wrapped) and Instance(callee) in results:
                continue
            if isinstance(callee, Bound) and isinstance(callee.func, External):
                applied = applied_module(callee)
                if applied is None or not self.target.matches(applied[0]):
                    continue
                if any(k.arg == "method" for k in node.keywords):
                    continue
                value, first = applied
            elif isinstance(callee, External) and callee.name in CALL_WITH and node.args:
                for inner in self.evaluator.values(module, node.args[0]):
                    if self.target.matches(inner):
                        self.uses.calls.append(
                            self._call(module, node, inner, 1, True, callee.name)
                        )
                        if callee.name != "jax.eval_shape":
                            for index in range(len(node.args) - 1):
                                self.uses.differentiated.setdefault(index, (module, node))
                continue
            if self.target.matches(value):
                own = self._is_only_callee(callees, callee)
                self.uses.calls.append(self._call(module, node, value, first, own))
                return

    def _callees(self, module: Module, node: ast.expr) -> Values:
        """Return what a call may run; a method that overrides another is called by the other's
        name.
        """
        if self.target.is_method and not self._loaded:
            return overrides_of(self.project).callees(module, node).values
        return self.evaluator.values(module, node)

    def _is_only_callee(self, callees: Values, callee: Value) -> bool:
        """Return whether everything that may be called there takes the same arguments and
        defaults.
        """
        called = [c if (applied := applied_module(c)) is None else applied[0] for c in callees]
        return all(map(self._is_like, called)) and not self._overridden(callee)

    def _is_like(self, value: Value) -> bool:
        """Return whether a value is called like the function, whatever callers pass for it."""
        if isinstance(value, Parameter):
            return self._alike.answer(value)
        return self.target.is_like(value)

    def _gets_only_alike(self, parameter: Parameter) -> bool:
        origin = Function(parameter.module, parameter.function)
        uses = uses_of(self.project, origin, loaded=self._loaded)
        for call in uses.calls:
            bound = call.bound_to(parameter.function)
            passed = bound.by_name.get(parameter.name)
            if bound.unclear or passed is None:
                return False
            values = self.evaluator.values(call.module_of(passed), passed)
            if not values or not all(map(self._is_like, values)):
                return False
        return bool(uses.calls) and not uses.escapes

    def _overridden(self, callee: Value) -> bool:
        """Return whether a method may belong to another class."""
        if not isinstance(callee, Bound) or not isinstance(callee.receiver, Instance):
            return False
        cls = callee.receiver.cls
        names = {getattr(node, "name", "") for node in self.target.functions}
        return isinstance(cls, Class) and any(
            getattr(statement, "name", None) in names
            for sub in self.evaluator.subclasses.get(cls.node, ())
            for statement in sub.node.body
        )

    def _call(
        self,
        module: Module,
        node: ast.Call,
        callee: Value,
        first: int,
        own: bool,
        through: str = "",
    ) -> Call:
        skip = 0
        partials: list[tuple[Module, ast.Call]] = []
        inner: Value | None = callee
        while inner is not None:
            match inner:
                case Applied(target=deeper, module=owner, node=at):
                    if owner is self.target.module and at is self.target.application:
                        break
                    inner = deeper
                case Wrapped(how=how, func=deeper):
                    if how in DIFFERENTIATE:
                        self._differentiated(inner)
                    inner = deeper
                case Partial(func=deeper, call=call, module=owner):
                    partials.append((owner, call))
                    inner = deeper
                case Bound(func=deeper):
                    skip += 1
                    inner = deeper
                case Instance(cls=deeper) if is_transformed(inner):
                    inner = deeper
                case Instance() | Class():
                    skip += 1
                    break
                case _:
                    break
        return Call(module, node, callee, first, skip, tuple(partials), own, through)

    def _differentiated(self, wrapped: Wrapped) -> None:
        """Note the differentiated arguments: `argnums`, by default the first."""
        node = wrapped.node
        places = gradient_places(node) if isinstance(node, ast.Call) else [0]
        for place in places:
            self.uses.differentiated.setdefault(place, (wrapped.module, wrapped.node))

    def _classify(self, module: Module, node: ast.expr) -> None:
        """Note whether a value escapes where it is used, or which parameter receives it."""
        parent = module.parent(node)
        match parent:
            case ast.keyword(arg=name):
                if isinstance(holder := module.parent(parent), ast.Call):
                    self._argument(module, node, holder, name)
            case ast.Call():
                if parent.func is not node:
                    self._argument(module, node, parent, None)
            case ast.Starred():
                self._escape(module, node, "it is spread into a call")
            case ast.BinOp() | ast.Match():
                self._escape(module, node, "it is used in a way that cannot be followed")
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                self._contained(module, parent)
            case ast.Assign():
                for target in parent.targets:
                    if isinstance(target, ast.Subscript):
                        self._escape(module, node, "it is stored in a container")
                    elif isinstance(target, ast.Attribute):
                        owners = self.evaluator.values(module, target.value)
                        self._attributes.add(target.attr)
                        if not any(isinstance(v, Instance) for v in owners):
                            self._escape(module, node, "it is stored on another object")
            case ast.Attribute() if self._is_instance(module, node):
                pass  # a field or method of the module itself
            case ast.Attribute():
                known = parent.attr in _HARMLESS_ATTRIBUTES or parent.attr in APPLY
                if not known and parent.attr not in ("append", "insert", "bind", "__call__"):
                    if not self.evaluator.values(module, parent):
                        self._escape(module, node, f"`.{parent.attr}` of it is used")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if (
                node in parent.decorator_list
            ):
                if self.target.site is None:
                    self.uses.decorated.append((module, node, parent))
                    self._escape(module, node, f"it decorates `{parent.name}`")
            case ast.AnnAssign() if module.scope_at(parent).is_class:
                self._escape(module, node, "a field holds it by default")
            case ast.ClassDef() if node in parent.bases:
                self._escape(module, node, f"`{parent.name}` inherits from it")
            case ast.Yield() | ast.YieldFrom():
                self._escape(module, node, "it is yielded")
            case ast.Return():
                self._returned(module, node)
            case ast.Lambda() if not isinstance(node, ast.Call) or self._matches(module, node):
                uses = uses_of(self.project, Function(module, parent), loaded=self._loaded)
                if not uses.calls or uses.escapes:
                    self._escape(module, node, "a lambda returns it")

    def _contained(self, module: Module, container: ast.expr) -> None:
        """Note an escape where a new container that holds it is used at once."""
        match module.argument_holder(container):
            case ast.BinOp() | ast.Match() | ast.Lambda():
                self._escape(module, container, "it is used in a way that cannot be followed")
            case ast.Call(func=func) if func is not container:
                for callee in self.evaluator.values(module, func):
                    if isinstance(callee, External) and callee.name not in _HARMLESS_FUNCTIONS:
                        self._escape(module, container, f"`{callee.name}` takes it")

    def _note_decorators(self) -> None:
        """Note the functions of the project that receive it as decorators above it."""
        node, module = self.target.application, self.target.module
        holder = module.parent(node) if node is not None else None
        above = getattr(holder, "decorator_list", [])
        for decorator in above[: above.index(node)] if node in above else []:
            for value in self.evaluator.values(module, decorator):
                if isinstance(value, Function) and positional_parameters(value.node):
                    first = positional_parameters(value.node)[0].arg
                    self.target.passed[value.node, first] = value.module

    def _note_own_calls(self) -> None:
        """Note the methods of a checkpointed class that call the instance: `self(x)`."""
        if self.target.site is None or (subject := self.target.site.subject) is None:
            return
        module, node = subject
        own = [Class(module, node)] if isinstance(node, ast.ClassDef) else []
        values = self.evaluator.values(module, node) if isinstance(node, ast.expr) else own
        for cls in values:
            for base in class_chain(self.evaluator, cls) if isinstance(cls, Class) else ():
                if isinstance(base, Class):
                    self._note_calls_of_first(base)

    def _note_calls_of_first(self, cls: Class) -> None:
        for method in cls.node.body:
            if isinstance(method, ast.FunctionDef) and (first := first_parameter(method)):
                for node in ast.walk(method):
                    match node:
                        case ast.Call(
                            func=ast.Name(id=name)
                            | ast.Attribute(value=ast.Name(id=name), attr="__call__")
                        ) if name == first.arg:
                            self._escape(cls.module, node.func, f"`{method.name}` calls it")

    def _is_instance(self, module: Module, node: ast.expr) -> bool:
        values = self.evaluator.values(module, node)
        return bool(values) and all(isinstance(v, Instance) for v in values)

    def _matches(self, module: Module, node: ast.expr) -> bool:
        return any(self.target.matches(v) for v in self.evaluator.values(module, node))

    def _argument(
        self, module: Module, node: ast.expr, call: ast.Call, keyword: str | None
    ) -> None:
        if node is self.target.application and call is self.target.application:
            return
        if isinstance(node, ast.Name) and self._is_instance(module, node):
            if all(b.kind == "parameter" for b in module.reaching(node)):
                return  # `self`, passed on by a method
        callees = self.evaluator.values(module, call.func)
        if not callees:
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "insert"):
                return
            self._escape_with_arguments(module, node, "it is passed to code that cannot be seen")
            return
        for callee in callees:
            if api_of(self.project.apis, callee) is not None:
                continue
            match callee:
                case External(name) if name in _HARMLESS_FUNCTIONS:
                    pass
                case Partial(func=External(name)) if name in SAME_CALL:
                    pass
                case Function() | Bound(func=Function()):
                    self._passed_to(callee, call, node, keyword, module)
                case Class(node=cls):
                    makers = self.evaluator.attribute(Instance(callee), "__init__")
                    for maker in makers:
                        if isinstance(maker, Bound) and isinstance(maker.func, Function):
                            self._passed_to(maker, call, node, keyword, module)
                            break
                    else:
                        self._escape_with_arguments(module, node, f"`{cls.name}` holds it")
                case External(name):
                    self._escape_with_arguments(module, node, f"`{name}` takes it")
                case _:
                    reason = "it is passed to code that cannot be seen"
                    self._escape_with_arguments(module, node, reason)

    def _escape_with_arguments(self, module: Module, node: ast.expr, reason: str) -> None:
        """Note an escape, and what partials that escape there pass."""
        self._escape(module, node, reason)
        call = ast.copy_location(ast.Call(node, [], []), node)
        for value in self.evaluator.values(module, node):
            if self.target.matches(value) and any(partial_calls(value)):
                self.uses.given.append(self._call(module, call, value, 0, own=False))

    def _passed_to(
        self, callee: Value, call: ast.Call, node: ast.expr, keyword: str | None, module: Module
    ) -> None:
        function = callee.func if isinstance(callee, Bound) else callee
        assert isinstance(function, Function)
        if keyword is not None:
            names = {p.arg for p in parameters(function.node)}
            if keyword in names:
                self.target.passed[function.node, keyword] = function.module
                return
        elif node in call.args:
            index = call.args.index(node) + (1 if isinstance(callee, Bound) else 0)
            positional = positional_parameters(function.node)
            if index < len(positional):
                self.target.passed[function.node, positional[index].arg] = function.module
                return
        self._escape(module, node, "it is passed on in a way that cannot be followed")

    def _returned(self, module: Module, node: ast.expr) -> None:
        """Treat the result of a factory as visible only if all calls of the factory are."""
        function = module.enclosing_function(node)
        if function is None or isinstance(function, ast.Lambda):
            self._escape(module, node, "a lambda returns it")
            return
        is_property = is_decorated(function, "property", "cached_property")
        search = NameSearch(self.evaluator, self.modules, [(function.name, None)])
        is_used = False
        for other in self.modules:
            for head in search.expressions(other):
                parent, values = other.parent(head), self.evaluator.values(other, head)
                if is_property:
                    is_used = is_used or any(map(self.target.matches, values))
                elif isinstance(parent, ast.FunctionDef) or (
                    isinstance(parent, ast.Call) and parent.func is head
                ):
                    functions = (v.func if isinstance(v, Bound) else v for v in values)
                    is_used = is_used or Function(module, function) in functions
                if isinstance(head, ast.Attribute) and head.attr == function.name and not values:
                    reason = f"`.{head.attr}` of an object that cannot be seen may return it"
                    self._escape(other, head, reason)
        if not is_used:
            self._escape(module, node, f"`{function.name}` returns it")

    def _method_names(self) -> set[str]:
        """Return the name of the definition, if it is a method's."""
        if self.target.definition is None:
            return set()
        module, node = self.target.definition
        is_method = isinstance(node, FunctionNode) and module.enclosing_class(node) is not None
        return {getattr(node, "name", "")} if is_method else set()

    def _note_unseen(self) -> None:
        """Note the calls `unknown.step(x)` where a method `step`, or what `self.step` holds, may
        be called.
        """
        for module, node in self._unseen:
            call = module.parent(node)
            if node.attr in self._attributes and isinstance(call, ast.Call) and self._fits(call):
                reason = f"`.{node.attr}` of an object that cannot be seen is called"
                self._escape(module, node, reason)

    def _note_lookups(self, words: set[str]) -> None:
        """Note where it may be looked up under a computed name: `getattr(models, f"{kind}_block")`,
        or in `globals()`.
        """
        seeing = map(self.project.module, self._files_mentioning(_LOOKING_UP))
        for module in dict.fromkeys((*self.modules, *filter(None, seeing))):
            for node, owner, name in _lookups(module):
                owners: Iterable[Value] = (ModuleValue(module),)
                if owner is not None and _is_any_module(owner):
                    owners = map(ModuleValue, self.modules)
                elif owner is not None:
                    owners = self.evaluator.values(module, owner)
                if any(
                    self.target.matches(value) or self.target.holds(value)
                    for holder in owners
                    for word in words | self._attributes
                    if _may_be(name, word)
                    for value in self.evaluator.attribute(holder, word)
                ):
                    self._escape(module, node, "it may be looked up under a computed name")

    def _fits(self, call: ast.Call) -> bool:
        """Return whether the function takes the arguments of a call."""
        return any(
            not bind_call(function, call.args, call.keywords, bound).wrong
            for function in self.target.functions
            for bound in (0, 1)
        )

    def _escape(self, module: Module, node: ast.expr | FunctionNode, reason: str) -> None:
        self.uses.escapes.append(Escape(module, node, reason))
