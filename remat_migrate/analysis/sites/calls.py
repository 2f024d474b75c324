"""The call index: where a function, or what a site makes, is called, and where it escapes.

A question is answered by a search for the expressions that may denote the function (`NameSearch`),
each of which is then inspected (`_Search`): it is a call of it, hands it on to a parameter, or lets
it escape. `uses_of` and `passed_for` remember their answers. What a parameter may be follows from
what the calls pass for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from ...libraries.apis import CALL_WITH, DIFFERENTIATE, SAME_CALL
from ...prefilter.words import places_of
from ..names.expected_failures import in_test
from ..names.module import (
    Definition,
    FunctionNode,
    Module,
    Place,
    find_mentions,
    last_name,
    once,
    parameters,
)
from ..project import Project
from ..values.bind import (
    Arguments,
    api_of,
    bind_call,
    call_order,
    default_of,
    first_parameter,
    positional_parameters,
    with_partials,
)
from ..values.containers import elements
from ..values.declarations import class_annotations, self_assignments
from ..values.evaluator import (
    Evaluator,
    Overrides,
    applied_module,
    class_attribute,
    class_of,
    declarations_of,
    gradient_places,
    partial_calls,
    project_bases,
    returned,
    targets_of,
)
from ..values.values import (
    APPLY,
    Applied,
    Bound,
    Class,
    Constant,
    Container,
    External,
    Function,
    Instance,
    ModuleValue,
    Parameter,
    Partial,
    Result,
    Value,
    Values,
    Wrapped,
    is_transformed,
    layers,
    underlying,
    union,
)
from .site import Site


def overrides_of(project: Project) -> Overrides:
    """Return what method calls may run, including subclasses in all files of the project."""
    return project.once(_overrides)


def _overrides(project: Project) -> Overrides:
    return Overrides(
        project.evaluator, lambda cls: project.once(_find_subclasses, cls.module, cls.node)
    )


def _find_subclasses(project: Project, module: Module, node: ast.ClassDef) -> Sequence[Class]:
    """Return the direct and indirect subclasses of a class, by file and place.

    Only files that mention the class, a subclass, or an alias of one are read.
    """
    found: set[Class] = set()
    words, before = {node.name}, set[str]()
    searched: dict[Module, None] = {module: None}
    is_local = module.enclosing_function(node) is not None
    while words != before:
        before = set(words)
        if not is_local:
            searched |= dict.fromkeys(project.mentioning(sorted(words)))
        for other in searched:
            own = [
                sub
                for sub in classes_with_bases(other)
                if any(base.node is node for base in project_bases(project.evaluator, sub)[1:])
            ]
            found.update(own)
            words.update(c.node.name for c in own)
            words.update(_other_names(other, before))
    return sorted(found, key=lambda sub: sub.module.position(sub.node))


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


_EXPRESSIONS = ast.Name | ast.Attribute | ast.Call | ast.Subscript
# Displays and comprehensions hold their parts; a string and the result of a test do not.
CONTAINERS = (
    ast.List | ast.Tuple | ast.Set | ast.Dict
    | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
)  # fmt: skip
_WITHOUT_PARTS = ast.JoinedStr | ast.Compare
_CALLED = "__call__"
# With more names, the uses of a function are not known.
MOST_NAMES = 60
# A value with more is looked at in each search.
_MOST_ORIGINS = 8

# A word, and the module if it is a local name of a function there.
_LocalWord = tuple[str, bool]


class Target:
    """A callable whose calls are searched for.

    Attributes:
        module: the module that makes it.
        place: the expression or definition that makes it.
        site: the site, if a site makes it; otherwise it is a function.
        functions: the functions that calling it runs.
        name: the name of the method or function, if it has one.
        is_method: whether it is a method, which may be called by the name of one that it overrides.
        overridden: the methods of its class and bases with its name, if it is a method.
        passed: the parameters of the project's functions that receive it, with the modules of these
            functions.
    """

    def __init__(self, evaluator: Evaluator, origin: Site | Function) -> None:
        self.evaluator = evaluator
        self.site = origin if isinstance(origin, Site) else None
        self.application = self.site.application if self.site is not None else None
        self.module = origin.module
        self.place = origin.reference if isinstance(origin, Site) else origin.node
        self.passed: dict[tuple[FunctionNode, str], Module] = {}
        self._matched: dict[tuple[Value | None, int], bool] = {}
        self.name = "" if isinstance(origin, Site) else getattr(origin.node, "name", "")
        cls = None if isinstance(origin, Site) else origin.module.enclosing_class(origin.node)
        self.is_method = cls is not None
        bases = project_bases(evaluator, Class(origin.module, cls)) if cls is not None else ()
        methods = (statement for base in bases for statement in base.node.body)
        self.overridden: set[ast.AST] = {m for m in methods if getattr(m, "name", "") == self.name}
        if isinstance(origin, Function):
            self.functions = {origin.node}
        else:
            wrapped = self._wrapped(origin)
            self.functions = {t.function.node for v in wrapped for t in targets_of(evaluator, v)}

    def _wrapped(self, site: Site) -> Values:
        """Return what a site makes, or what it decorates."""
        if site.application is None:
            return frozenset()
        match site.subject:
            case module, ast.ClassDef() as node:
                return frozenset((Class(module, node),))
            case module, ast.FunctionDef() | ast.AsyncFunctionDef() as node:
                return frozenset((Function(module, node),))
        return self.evaluator.values(site.module, site.application)

    @property
    def definition(self) -> tuple[Module, ast.AST] | None:
        """The definition whose name is bound to it."""
        if self.site is None:
            return self.module, self.place
        subject = self.site.subject
        return subject if subject is not None and isinstance(subject[1], Definition) else None

    def words(self) -> Iterator[tuple[str, Module | None]]:
        """Yield the names known to be bound to it: of definitions and of parameters."""
        if self.definition is not None and isinstance(self.definition[1], Definition):
            module, node = self.definition
            assert isinstance(node, Definition)
            for word, is_local in _defined_words(module, node):
                yield word, module if is_local else None
        for (_, name), module in self.passed.items():
            yield name, module

    def places(self) -> Iterator[tuple[Module, ast.AST]]:
        """Yield the places that make it."""
        if self.application is not None:
            yield self.module, self.application
        if not isinstance(self.place, Definition):
            yield self.module, self.place

    @property
    def origins(self) -> set[ast.AST]:
        """The application, or the functions: one of them made it, unless nothing shows what did."""
        if self.site is None:
            return {*self.functions}
        return set() if self.application is None else {self.application}

    def matches(self, value: Value | None) -> bool:
        """Return whether calling a value runs it; for a site's function, through the site's
        checkpoint.
        """
        key = value, len(self.passed)
        if key not in self._matched:
            self._matched[key] = self._matches(value)
        return self._matched[key]

    def _matches(self, value: Value | None) -> bool:
        match value:
            case Applied(node=node, target=inner):
                return node is self.application or self.matches(inner)
            case Function(node=node):
                return self.site is None and node in self.functions
            case Class():
                return self._makes(value)
            case Bound(func=inner, receiver=Instance(cls=Class(exact=False))) if (
                getattr(underlying(inner), "node", None) in self.overridden
            ):
                return True  # of an object that may belong to its class
            case Wrapped(func=inner) | Partial(func=inner) | Bound(func=inner):
                return self.matches(inner)
            case Instance(cls=Applied() | Wrapped() | Instance() as inner):
                return self.matches(inner)
            case Instance(cls=Class()) if self.site is not None or self.name == "__call__":
                return any(
                    self.matches(v)
                    for v in self.evaluator.attribute(value, "__call__")
                    if isinstance(v, Bound)
                    and (self.site is None or isinstance(v.func, Applied | Wrapped))
                )
            case Parameter(function=function, name=name):
                return (function, name) in self.passed
        return False

    def _makes(self, cls: Class) -> bool:
        """Return whether a class is called through its `__init__`, or its instances through
        `__call__`.
        """
        if self.site is not None or self.name not in ("__init__", "__call__"):
            return False
        found = class_attribute(self.evaluator, cls, self.name, None)
        return any(self.matches(value) for value in found if not isinstance(value, Class))

    def holds(self, value: Value) -> bool:
        """Return whether a container has it as an element."""
        if not isinstance(value, Container):
            return False
        held = (v for place in elements(value) for v in self.evaluator.values(*place))
        return any(map(self.matches, held))

    def is_like(self, value: Value) -> bool:
        """Return whether a value is called like its function: with the same positions."""
        nodes = {t.function.node for t in targets_of(self.evaluator, value)}
        if not nodes:
            return False
        orders = {call_order(node) for node in self.functions}
        return nodes <= self.functions or (
            len(orders) == 1 and all(call_order(node) in orders for node in nodes)
        )


class NameSearch:
    """The expressions of some modules that may denote the target, found by the words it has.

    A value travels under names: the name it is assigned to, the function that returns it, the loop
    that iterates over it. Only expressions with one of these words are evaluated, which are few,
    and only where the value may have arrived.

    Attributes:
        words: the names under which it can be reached, and the attributes: `.name`.
        exported: those that other modules may see, without the dot; the rest are local names of
            functions.
    """

    def __init__(self, target: Target, modules: Sequence[Module]) -> None:
        self._target = target
        self._evaluator = target.evaluator
        self._defining_nodes: set[ast.AST] = set()
        if target.definition is not None:
            self._defining_nodes.update(_defining(*target.definition))
        self._defining_nodes |= target.overridden
        self._modules: list[Module] = []
        self.words: set[str] = set()
        self.exported: set[str] = set()
        self._waiting: list[tuple[str, Module | None]] = []
        self._known: dict[tuple[str, Module | None], None] = {}
        self._found: dict[Module, dict[ast.expr, bool]] = {}
        self._looking_into: set[Container] = set()
        self.extend(modules)
        for word, within in target.words():
            self._add_word(word, within)
        self._search_waiting()

    def extend(self, modules: Sequence[Module]) -> None:
        """Search further modules."""
        known = list(self._known)
        self._modules += modules
        new: dict[Module, dict[ast.expr, bool]] = {module: {} for module in modules}
        self._found |= new
        for module, place in self._target.places():
            if module in new:
                self._add_expression(module, place)
        for word, within in known:
            for module in modules if within is None else {within} & new.keys():
                self._search_word(module, word)
        self._search_waiting()

    def _search_waiting(self) -> None:
        while self._waiting and not self.is_wide:
            word, within = self._waiting.pop()
            for module in self._modules if within is None else (within,):
                self._search_word(module, word)

    @property
    def is_wide(self) -> bool:
        """Whether it has too many names to search for, such as all that a decorator decorates."""
        return len(self.exported) > MOST_NAMES

    def expressions(self, module: Module) -> list[ast.expr]:
        """Return the names, attributes, calls, and subscripts to look at, by place."""
        return sorted(self._found[module], key=_extent)

    def _add_word(self, word: str, within: Module | None = None) -> None:
        """Follow a word: in all modules, or in the one where it is a local name."""
        name = word.lstrip(".")
        if name and not {(name, None), (word, None), (word, within)} & self._known.keys():
            self._known[word, within] = None
            self.words.add(word)
            if within is None:
                self.exported.add(name)
            self._waiting.append((word, within))

    def _search_word(self, module: Module, word: str) -> None:
        mentions = find_mentions(module)
        for attribute in mentions.attributes.get(word.lstrip("."), ()):
            self._add_expression(module, attribute)
        if word.startswith("."):
            return
        for node in self._names(module, word):
            self._add_expression(module, node)
        for other in mentions.renamed.get(word, ()):
            self._add_word(other)
        if _CALLED in self.words:
            for name in sorted(self.words) if word == _CALLED else (word,):
                for cls in mentions.classes.get(name, ()):
                    self._instances(module, cls)

    def _names(self, module: Module, word: str) -> Iterable[ast.Name]:
        """Return the reads of a name that may denote the value."""
        known = _names_by_origin(self._evaluator, module, word)
        places: dict[ast.Name, int] = {}
        # One name has few origins, and what leads to the value has many nodes.
        near = known.keys() & self._defining_nodes
        for origin in (None, *self._target.origins, *near):
            places |= known.get(origin, {})
        return sorted(places, key=places.__getitem__)

    def _instances(self, module: Module, cls: ast.ClassDef) -> None:
        """In a class whose instances are called by that word, follow the first parameter of the
        methods.
        """
        names = find_mentions(module).names
        for method in cls.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                for first in parameters(method)[:1]:
                    for name in names.get(first.arg, ()):
                        if method.lineno <= name.lineno <= (method.end_lineno or 0):
                            self._add_expression(module, name)

    def _add_expression(self, module: Module, node: ast.AST) -> None:
        """Add an expression, and those that contain it, as far as they may denote the value."""
        found = self._found[module]
        child = node
        while True:
            if isinstance(child, _WITHOUT_PARTS):
                return
            if isinstance(child, _EXPRESSIONS | CONTAINERS):
                if found.get(child):
                    return
                values = self._evaluator.values(module, child)
                found[child] = any(map(self._may_denote, values)) or is_looped_over(module, child)
                if not found[child]:
                    return
            parent = module.parent(child)
            if parent is None:
                return
            self._defining_nodes |= _defining_nodes(module, parent)
            for word, is_local in _words_of_position(module, parent, child):
                self._add_word(word, module if is_local else None)
            if isinstance(parent, ast.stmt):
                return
            child = parent

    def _may_denote(self, value: Value) -> bool:
        """Return whether a value is the one searched for, holds it, or returns it when called."""
        match value:
            case Function(node=ast.Lambda()):
                return any(map(self._is_target, (value, *returned(self._evaluator, value))))
            case Function(node=node) | Class(node=node) | Bound(func=Function(node=node)):
                return node in self._defining_nodes or self._is_target(value)
            case Container():
                return self._may_hold(value)
            case Partial(func=inner) | Wrapped(func=inner):
                return self._may_denote(inner)
            case Applied(target=inner) if inner is not None and not self._is_target(value):
                return self._may_denote(inner)
            case Bound(receiver=receiver) if self._is_target(receiver):
                return True  # `model.apply`
        return self._is_target(value)

    def _may_hold(self, container: Container) -> bool:
        """Return whether an element may denote the value, or what is one is not known."""
        if container in self._looking_into:
            return False
        self._looking_into.add(container)
        parts = list(elements(container))
        held = (v for place in parts for v in self._evaluator.values(*place))
        may_hold = not parts or any(map(self._may_denote, held))
        self._looking_into.remove(container)
        return may_hold

    def _is_target(self, value: Value) -> bool:
        return self._target.matches(value) or self._target.holds(value)


def _names_by_origin(
    evaluator: Evaluator, module: Module, word: str
) -> dict[ast.AST | None, dict[ast.Name, int]]:
    """Return the reads of a name by what makes their values, numbered in order.

    A name may be bound again and again, and each search asks for what one of the bindings made.
    """
    known = evaluator.reads.get((module, word))
    if known is None:
        known = evaluator.reads[module, word] = {}
        for number, node in enumerate(find_mentions(module).names.get(word, ())):
            values = evaluator.values(module, node)
            holder = module.parent(node)
            if isinstance(holder, ast.Subscript) and holder.value is node:
                if all(isinstance(value, Container) for value in values):
                    values = evaluator.values(module, holder)  # what it holds is read here alone
            origins = {origin for value in values for origin in _origins_of(value)}
            for origin in (None,) if is_looped_over(module, node) else origins:
                known.setdefault(origin, {})[node] = number
    return known


def _origins_of(value: Value) -> set[ast.AST | None]:
    """Return the applications and functions that make a value; None if something else may."""
    found: set[ast.AST | None] = set()
    for layer in layers(value):
        match layer:
            case Applied(node=node) | Function(node=ast.FunctionDef() as node):
                found.add(node)
            case Function(node=ast.AsyncFunctionDef() as node):
                found.add(node)
            case Partial() | Wrapped() | External() | Constant() | ModuleValue() | Result():
                pass
            case _:
                return {None}
    return found if len(found) <= _MOST_ORIGINS else {None}


def words_of(module: Module, node: ast.AST) -> Iterator[_LocalWord]:
    """Yield the words for a definition, or for the value of an expression from its position."""
    if isinstance(node, Definition):
        yield from _defined_words(module, node)
        return
    child = node
    for parent in module.ancestors(node):
        yield from _words_of_position(module, parent, child)
        if not isinstance(parent, ast.IfExp | ast.BoolOp | ast.NamedExpr):
            return
        child = parent


def _words_of_position(module: Module, parent: ast.AST, child: ast.AST) -> Iterator[_LocalWord]:
    """Yield the words that a part of `parent` gets from its position."""
    for maker in _defining_nodes(module, parent):
        if isinstance(maker, Definition):
            yield from _defined_words(module, maker)
    match parent:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _target_words(module, target)
        case (
            ast.AnnAssign(target=target) | ast.AugAssign(target=target)
            | ast.NamedExpr(target=target) | ast.comprehension(target=target)
            | ast.For(target=target) | ast.AsyncFor(target=target)
            | ast.withitem(optional_vars=ast.expr() as target)
        ):  # fmt: skip
            yield from _target_words(module, target)
        case ast.arg(arg=name):
            yield name, True
        case ast.arguments():
            for parameter in (*parent.posonlyargs, *parent.args, *parent.kwonlyargs):
                yield parameter.arg, True
        case ast.Call(func=ast.Attribute(value=owner, attr=("append" | "insert" | "extend"))):
            yield from _target_words(module, owner)


def _defined_words(module: Module, node: Definition) -> Iterator[_LocalWord]:
    """Yield the name of a definition; for `__call__` and the like, also that of its class."""
    scope = module.scope_at(node)
    yield node.name, scope.is_function and node.name not in scope.global_names
    if isinstance(scope.node, ast.ClassDef) and node.name.startswith("__"):
        yield from _defined_words(module, scope.node)


def _defining_nodes(module: Module, node: ast.AST) -> set[ast.AST]:
    """Return the definitions whose name denotes a part of `node`, or returns it when called.

    For what a function returns, that is the function, and for `__call__` and the like its class.
    """
    if isinstance(node, Definition):
        return {node}
    if not isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
        return set()
    function = module.enclosing_function(node)
    return set() if function is None else set(_defining(module, function))


def _defining(module: Module, node: ast.AST) -> Iterator[ast.AST]:
    """Yield a definition; for `__call__` and the like, also its class."""
    if isinstance(node, Definition):
        yield node
    if isinstance(node, FunctionNode):
        cls = module.enclosing_class(node)
        if cls is not None and getattr(node, "name", "").startswith("__"):
            yield cls


def _target_words(module: Module, target: ast.expr) -> Iterator[_LocalWord]:
    match target:
        case ast.Name(id=name):
            scope = module.scope_at(target)
            outer = {*scope.global_names, *scope.nonlocal_names}
            yield name, scope.is_function and name not in outer
            if isinstance(scope.node, ast.ClassDef) and name.startswith("__"):
                yield from _defined_words(module, scope.node)
        case ast.Attribute(attr=name):
            yield f".{name}", False
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            yield from _target_words(module, inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _target_words(module, part)


def is_looped_over(module: Module, node: ast.expr) -> bool:
    """Return whether a loop iterates over a call, or over one that contains it:
    `enumerate(blocks)`.
    """
    child: ast.AST = node
    while isinstance(parent := module.parent(child), ast.Call | ast.Attribute):
        child = parent
    loops = isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension)
    return loops and getattr(parent, "iter", None) is child


def _extent(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, -(node.end_lineno or 0), -(node.end_col_offset or 0)


_HARMLESS_FUNCTIONS = frozenset(
    {
        *SAME_CALL, *CALL_WITH, "functools.partial", "functools.wraps", "functools.update_wrapper",
        "builtins.len", "builtins.isinstance", "builtins.print",
        "builtins.repr", "builtins.str", "builtins.id", "builtins.callable", "builtins.type",
        "builtins.hasattr", "inspect.signature", "inspect.getfullargspec",
    }
)  # fmt: skip
# What a loop gets from them has the parts of their arguments.
_SAME_PARTS = ("builtins.zip", "builtins.enumerate")
# Modules that hand a value on to the next, each by another name; beyond, its uses are not known.
_MOST_STEPS = 30
# Where more files mention one of its names, its uses are not known either.
_MOST_FILES = 100
_LOOKING_UP = ("getattr", "globals", "locals", "vars", "__dict__", "eval", "exec", "import_module")
# As `_lookups` finds them; most are `getattr` with a literal.
_LOOKS_UP = re.compile(
    rb"\bgetattr\s*\((?!\s*[\w.]+\s*,\s*(?:'\w*'|\"\w*\")\s*[,)])|\bvars\s*\(|\bimport_module\b"
    rb"|\b(?:globals|locals)\s*\(\s*\)\s*(?:\.|\[(?!\s*['\"]__))|\b__dict__\s*\["
    rb"|(?<![\w.])(?:eval|exec)\s*\(\s*[^\s)]"
)
_HARMLESS_ATTRIBUTES = APPLY | {
    *("__name__", "__doc__", "__wrapped__", "__qualname__", "__call__"),
    *("append", "insert", "bind"),
}
_UNFOLLOWED = "it is used in a way that cannot be followed"
_UNSEEN_CODE = "it is passed to code that cannot be seen"
_ESCAPING_USES: dict[type, str] = {
    ast.Starred: "it is spread into a call",
    ast.BinOp: _UNFOLLOWED,
    ast.Match: _UNFOLLOWED,
    ast.Yield: "it is yielded",
    ast.YieldFrom: "it is yielded",
}
# Statements and operators that give the value to nothing, or whose target is followed.
_HARMLESS_USES = (
    ast.Expr | ast.If | ast.While | ast.Assert | ast.Delete | ast.Compare | ast.UnaryOp
    | ast.FormattedValue | ast.For | ast.AsyncFor | ast.comprehension | ast.withitem
    | ast.arguments | ast.arg | ast.Subscript | ast.Slice | ast.match_case
)  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One call of a function, or of its checkpoint.

    Attributes:
        module: the module.
        node: the call.
        callee: what is called.
        first: the index of the argument for the first parameter: 1 for `jax.vjp(f, x)` and
            `model.apply(variables, x)`.
        skip: how many leading parameters of the function are bound already (`self`).
        partials: calls of `functools.partial` that pass some of the arguments, outermost last.
        own: of a site, whether only its function (or the unwrapped version) can be called here.
        through: the function that makes the call, such as `jax.vjp`; "" for a plain call.
    """

    module: Module
    node: ast.Call
    callee: Value
    first: int = 0
    skip: int = 0
    partials: tuple[tuple[Module, ast.Call], ...] = ()
    own: bool = True
    through: str = ""

    @property
    def arguments(self) -> tuple[list[ast.expr], list[ast.keyword]]:
        """The positional and keyword arguments, including those of partials."""
        partials = (call for _, call in self.partials)
        return with_partials(self.node.args[self.first :], self.node.keywords, partials)

    def bound_to(self, function: FunctionNode) -> Arguments:
        """Return the arguments by parameters of a function that it calls."""
        return bind_call(function, *self.arguments, self.skip)

    def module_of(self, argument: ast.expr) -> Module:
        """Return the module that contains an argument: a partial may be in another one."""
        for module, call in self.partials:
            if argument in call.args or any(argument is k.value for k in call.keywords):
                return module
        return self.module


@dataclass(frozen=True, eq=False, slots=True)
class Escape:
    """A place where a function escapes, so that some calls may be unknown."""

    module: Module
    node: ast.expr | FunctionNode
    reason: str


@dataclass(slots=True)
class Uses:
    """The calls of a function, and what is unknown about them.

    Attributes:
        calls: the calls.
        given: what partials that escape pass.
        escapes: where it escapes.
        decorated: the functions and classes that it decorates, each with the decorator.
        differentiated: the positions that are differentiated, each with a place that says so.
        places: the expressions that denote it.
    """

    calls: list[Call] = field(default_factory=list)
    given: list[Call] = field(default_factory=list)
    escapes: list[Escape] = field(default_factory=list)
    decorated: list[tuple[Module, ast.expr, Definition]] = field(default_factory=list)
    differentiated: dict[int, Place] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)

    @property
    def passing(self) -> list[Call]:
        """The calls, with those of partials that escape."""
        return [*self.calls, *self.given]

    @property
    def unseen(self) -> list[Escape]:
        """Where it escapes, other than as a decorator."""
        decorators = {decorator for _, decorator, _ in self.decorated}
        return [escape for escape in self.escapes if escape.node not in decorators]


@dataclass(frozen=True, slots=True)
class Passed:
    """What is passed for a parameter.

    Attributes:
        places: what the known calls pass.
        definitions: the functions and classes that its function decorates, if it is the first.
        default: the default of the parameter, if it has one.
        unknown: a place where something else may be passed.
        defaulted: whether some call does not pass it.
        unclear: whether some call unpacks arguments, one of which may be passed for it.
    """

    places: tuple[Place, ...]
    definitions: tuple[tuple[Module, Definition], ...]
    default: Place | None
    unknown: tuple[Module, ast.expr | FunctionNode] | None
    defaulted: bool
    unclear: bool


def uses_of(project: Project, origin: Site | Function, *, loaded: bool = False) -> Uses:
    """Return the calls of what a site makes, or of a function, and where it escapes.

    With `loaded`, only in the project's modules that may matter, which is cheap for any function.
    """
    known = project.once(_known_uses)
    if (origin, loaded) not in known:
        known[origin, loaded] = Uses()  # the answer where the search asks for itself
        target = Target(project.evaluator, origin)
        known[origin, loaded] = _Search(project, target, loaded=loaded).run()
    return known[origin, loaded]


def passed_for(project: Project, parameter: Parameter, *, loaded: bool = False) -> Passed:
    """Return what is passed for a parameter of a function of the project; see `uses_of`."""
    function, name = parameter.function, parameter.name
    uses = uses_of(project, Function(parameter.module, function), loaded=loaded)
    places: list[Place] = []
    unknown: list[tuple[Module, ast.expr | FunctionNode]] = []
    defaulted = unclear = False
    for call in uses.passing:
        bound = call.bound_to(function)
        passed = bound.by_name.get(name)
        if bound.unclear:
            unclear = True
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
    unknown += ((escape.module, escape.node) for escape in uses.unseen)
    own = next(p for p in parameters(function) if p.arg == name)
    value = default_of(function, own)
    default = None if value is None else (parameter.module, value)
    first_unknown = next(iter(unknown), None)
    return Passed(tuple(places), tuple(definitions), default, first_unknown, defaulted, unclear)


def _known_uses(project: Project) -> dict[tuple[Site | Function, bool], Uses]:
    return {}


def _files_looking_up(project: Project) -> frozenset[Path]:
    """Return the files that may look up a computed name; see `_lookups`."""
    found: set[Path] = set()
    for path in project.files.mentioning(_LOOKING_UP):
        data = project.files.data(path)
        places = chain.from_iterable(places_of(word.encode(), data) for word in _LOOKING_UP)
        if any(_LOOKS_UP.match(data, at) for at in places):
            found.add(path)
    return frozenset(found)


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
                ast.Subscript(value=ast.Call(func=ast.Name("globals" | "locals")), slice=name)
                | ast.Call(
                    func=ast.Attribute(value=ast.Call(func=ast.Name("globals" | "locals"))),
                    args=[name, *_],
                )
                | ast.Call(func=ast.Name("eval" | "exec") as name, args=[_, *_])
            ):
                owner = None
            case ast.Attribute(value=owner, attr=attr) if _is_any_module(owner):
                name = ast.Constant(attr)
            case _:
                continue
        if not isinstance(name, ast.Constant) or owner is None or _is_any_module(owner):
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


class _Search:
    def __init__(self, project: Project, target: Target, *, loaded: bool) -> None:
        self.project = project
        self._loaded = loaded
        self.evaluator = project.evaluator
        self.target = target
        self.uses = Uses()
        self.modules: list[Module] = []
        # The attributes of objects that hold it, and the reads of those that cannot be seen.
        self._attributes: set[str] = set()
        self._unseen: list[tuple[Module, ast.Attribute]] = []

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
            if isinstance(self.target.place, ast.Lambda):
                self._note_place(self.target.module, self.target.place)
            if len(self.target.passed) == before:
                self._note_own_calls()
                self._note_unseen()
                if not self._loaded and not self.uses.escapes:
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
        search = NameSearch(self.target, self.modules)
        reason = f"it is handed on through more than {_MOST_STEPS} modules"
        for _ in range(_MOST_STEPS):
            if search.is_wide:
                reason = f"it has more than {MOST_NAMES} names"
                break
            more = self._modules_mentioning(search.exported)
            if not more:
                return search
            self.modules += more
            search.extend(more)
            if self._loaded and not search.is_wide:
                return search
        self._escape(self.target.module, self.target.place, reason)
        return search

    def _first_modules(self) -> list[Module]:
        found = {self.target.module: None, **dict.fromkeys(self.target.passed.values())}
        # Inherited methods that call what this class assigns.
        for around in self.target.module.ancestors(self.target.place):
            if isinstance(around, ast.ClassDef):
                for base in project_bases(self.evaluator, Class(self.target.module, around)):
                    found[base.module] = None
        return list(found)

    def _modules_mentioning(self, words: set[str]) -> list[Module]:
        """Return further modules that mention one of some words and may see what it denotes."""
        wanted = sorted(word for word in words if not word.startswith("__"))
        if self._loaded:
            loaded = [m for m in self.project.modules.values() if m not in self.modules]
            return [module for module in loaded if find_mentions(module).mention(wanted)]
        known = {module.source.path for module in self.modules}
        paths = [path for path in self._files_mentioning(wanted) if path not in known]
        if len(paths) > _MOST_FILES:
            reason = f"more than {_MOST_FILES} files may call it, by names as common as its own"
            self._escape(self.target.module, self.target.place, reason)
            return []
        return [m for m in map(self.project.module, paths) if m is not None]

    def _files_mentioning(self, wanted: Sequence[str]) -> Iterator[Path]:
        """Yield the files that mention one of some words and may see what it denotes.

        They import a module where the value is known to be, directly or through others, or hold a
        base class of one of its classes; or they mention a method by its own name, which may be
        called on any object.
        """
        files = self.project.files
        goals = {module.source.path for module in self.modules}
        reached: dict[Path, bool] = {}
        classes = (cls for module in self.modules for cls in classes_with_bases(module))
        bases = chain.from_iterable(project_bases(self.evaluator, cls) for cls in classes)
        visible = {base.module.source.path for base in bases}
        if self.target.is_method and not self._loaded:
            own = [w for w, within in self.target.words() if not within and not w.startswith("__")]
            visible.update(files.mentioning(own))
        for path in files.mentioning(wanted):
            if path in visible or self.project.prefilter.imports_any(path, goals, reached):
                yield path

    def _note_unreadable(self, words: set[str]) -> None:
        """Note files that may call it and cannot be parsed, such as those of newer Python."""
        wanted = sorted(word for word in words if not word.startswith("__"))
        if unreadable := self.project.unreadable(self._files_mentioning(wanted), wanted):
            reason = f"`{unreadable[0].name}` mentions it and cannot be read"
            self._escape(self.target.module, self.target.place, reason)

    def _inspect(self, module: Module, node: ast.expr) -> None:
        if isinstance(node, ast.Call):
            self._inspect_call(module, node)
        if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            if isinstance(node, ast.Call) or isinstance(node.ctx, ast.Load):
                values = self.evaluator.values(module, node)
                if any(map(self.target.matches, values)):
                    self._note_place(module, node)
                elif any(map(self.target.holds, values)):
                    self._classify(module, node)
                elif isinstance(node, ast.Attribute) and not values:
                    self._unseen.append((module, node))

    def _note_place(self, module: Module, node: ast.expr) -> None:
        self.uses.places.append((module, node))
        self._classify(module, node)

    def _inspect_call(self, module: Module, node: ast.Call) -> None:
        callees = self.evaluator.values(module, node.func)
        results = self.evaluator.values(module, node)
        for callee in callees:
            value, first = callee, 0
            if isinstance(underlying(callee), Class) and self.target.name != "__init__":
                continue  # calling a class makes an instance
            if isinstance(callee, Applied | Wrapped) and Instance(callee) in results:
                continue
            if isinstance(callee, Bound) and isinstance(callee.func, External):
                applied = applied_module(callee)
                if applied is None or any(k.arg == "method" for k in node.keywords):
                    continue
                value, first = applied
            elif isinstance(callee, External) and callee.name in CALL_WITH and node.args:
                self._called_with_arguments(module, node, callee.name)
            if self.target.matches(value):
                own = self.target.site is None or self._is_only_callee(callees, callee)
                self.uses.calls.append(self._call(module, node, value, first, own))
                return

    def _called_with_arguments(self, module: Module, node: ast.Call, through: str) -> None:
        """Note a call such as `jax.vjp(f, x)`, which calls its first argument with the others."""
        for value in self.evaluator.values(module, node.args[0]):
            if self.target.matches(value):
                self.uses.calls.append(self._call(module, node, value, 1, True, through))
                if through != "jax.eval_shape":
                    for index in range(len(node.args) - 1):
                        self.uses.differentiated.setdefault(index, (module, node))

    def _is_only_callee(self, callees: Values, callee: Value) -> bool:
        """Return whether everything that may be called there takes the same arguments and
        defaults.
        """
        called = [c if (applied := applied_module(c)) is None else applied[0] for c in callees]
        return all(map(self.target.is_like, called)) and not self._overridden(callee)

    def _overridden(self, callee: Value) -> bool:
        """Return whether a method may belong to another class."""
        if not isinstance(callee, Bound) or (cls := class_of(callee.receiver)) is None:
            return False
        names = {getattr(node, "name", "") for node in self.target.functions}
        return any(
            getattr(statement, "name", None) in names
            for sub in overrides_of(self.project).subclasses_of(cls)
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
        pair = callee if isinstance(callee, Instance) and is_transformed(callee) else None
        for layer in layers(pair.cls if pair is not None else callee):
            match layer:
                case Applied(node=at) if at is self.target.application:
                    break
                case Wrapped(how=how) if how in DIFFERENTIATE:
                    self._differentiated(layer)
                case Partial():
                    partials.append((layer.module, layer.call))
                case Bound() | Instance() | Class():
                    skip += 1
        return Call(module, node, callee, first, skip, tuple(partials), own, through)

    def _differentiated(self, wrapped: Wrapped) -> None:
        """Note the differentiated arguments: `argnums`, by default the first."""
        for place in gradient_places(self.evaluator, wrapped):
            self.uses.differentiated.setdefault(place, (wrapped.module, wrapped.node))

    def _classify(self, module: Module, node: ast.expr) -> None:
        """Note whether a value, or what holds it, escapes where it is used, or which parameter
        receives it.
        """
        parent = module.parent(node)
        match parent:
            case ast.Call():
                if parent.func is not node:
                    self._argument(module, node, parent, None)
            case ast.keyword(arg=name) if isinstance(call := module.parent(parent), ast.Call):
                self._argument(module, node, call, name)
            case ast.Attribute():
                self._attribute_read(module, node, parent)
            case ast.Subscript(value=inner) if inner is node:
                if self._holds(module, node) and not self.evaluator.values(module, parent):
                    self._escape(module, node, _UNFOLLOWED)
            case ast.IfExp(test=test) if test is node:
                pass
            case ast.IfExp() | ast.BoolOp() | ast.NamedExpr() | ast.Await():
                self._classify(module, parent)
            case _ if isinstance(parent, CONTAINERS):
                self._classify(module, parent)
            case _ if not isinstance(parent, _HARMLESS_USES):
                self._follow_statement(module, node, parent)

    def _follow_statement(self, module: Module, node: ast.expr, parent: ast.AST | None) -> None:
        """Note whether a value escapes by what a statement or a lambda does with it."""
        match parent:
            case ast.Assign(targets=targets):
                for target in targets:
                    self._assigned(module, node, target)
            case ast.AnnAssign(target=target) if not module.scope_at(parent).is_class:
                self._assigned(module, node, target)
            case ast.AnnAssign():
                self._escape(module, node, "a field holds it by default")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._in_definition(module, node, parent)
            case ast.Return():
                self._returned(module, node)
            case ast.Lambda():
                if not isinstance(node, ast.Call) or self._matches(module, node):
                    uses = uses_of(self.project, Function(module, parent), loaded=self._loaded)
                    if not uses.calls or uses.escapes:
                        self._escape(module, node, "a lambda returns it")
            case _:
                self._escape(module, node, _ESCAPING_USES.get(type(parent), _UNFOLLOWED))

    def _assigned(self, module: Module, node: ast.expr, target: ast.expr) -> None:
        match target:
            case ast.Name():
                pass
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                if not all(isinstance(part, ast.Name) for part in parts):
                    self._escape(module, node, _UNFOLLOWED)
            case ast.Attribute():
                owners = self.evaluator.values(module, target.value)
                self._attributes.add(target.attr)
                if not any(isinstance(v, Instance) for v in owners):
                    self._escape(module, node, "it is stored on another object")
            case _:
                self._escape(module, node, "it is stored in a container")

    def _attribute_read(self, module: Module, node: ast.expr, read: ast.Attribute) -> None:
        if self._is_instance(module, node):
            return  # a field or method of the module itself
        if read.attr not in _HARMLESS_ATTRIBUTES and not self.evaluator.values(module, read):
            self._escape(module, node, f"`.{read.attr}` of it is used")

    def _in_definition(self, module: Module, node: ast.expr, parent: Definition) -> None:
        if node in parent.decorator_list and self.target.site is None:
            self.uses.decorated.append((module, node, parent))
            self._escape(module, node, f"it decorates `{parent.name}`")
        if isinstance(parent, ast.ClassDef) and node in parent.bases:
            self._escape(module, node, f"`{parent.name}` inherits from it")

    def _is_added(self, module: Module, value: ast.expr, call: ast.Call) -> bool:
        """Return whether a call adds a value to a container whose elements are known."""
        return isinstance(call.func, ast.Attribute) and any(
            part is value
            for owner in self.evaluator.values(module, call.func.value)
            if isinstance(owner, Container)
            for _, part in elements(owner)
        )

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
        classes = [value for value in values if isinstance(value, Class)]
        for base in (base for cls in classes for base in project_bases(self.evaluator, cls)):
            for method in (m for m in base.node.body if isinstance(m, ast.FunctionDef)):
                first = getattr(first_parameter(method), "arg", None)
                for part in ast.walk(method):
                    match part:
                        case ast.Call(
                            func=ast.Name(id=name)
                            | ast.Attribute(value=ast.Name(id=name), attr="__call__")
                        ) if name == first:
                            self._escape(base.module, part.func, f"`{method.name}` calls it")

    def _is_instance(self, module: Module, node: ast.expr) -> bool:
        values = self.evaluator.values(module, node)
        return bool(values) and all(isinstance(v, Instance) for v in values)

    def _matches(self, module: Module, node: ast.expr) -> bool:
        return any(self.target.matches(v) for v in self.evaluator.values(module, node))

    def _holds(self, module: Module, node: ast.expr) -> bool:
        return any(self.target.holds(v) for v in self.evaluator.values(module, node))

    def _argument(
        self, module: Module, node: ast.expr, call: ast.Call, keyword: str | None
    ) -> None:
        if node is self.target.application and call is self.target.application:
            return
        if isinstance(node, ast.Name) and self._is_instance(module, node):
            if all(b.kind == "parameter" for b in module.reaching(node)):
                return  # `self`, passed on by a method
        is_held = not self._matches(module, node)  # in a container
        callees = self.evaluator.values(module, call.func)
        if External("functools.partial") in callees and call.args and not is_held:
            if node is call.args[0]:
                return
            callees = self.evaluator.values(module, call.args[0])
            call = ast.copy_location(ast.Call(call.args[0], call.args[1:], call.keywords), call)
        if not callees and not self._is_added(module, node, call):
            self._escape_with_arguments(module, node, _UNSEEN_CODE)
        for callee in callees:
            receiver, reason = self._receiver(callee)
            if is_held and (receiver is not None or not isinstance(callee, External)):
                self._escape(module, node, "a container that holds it is passed on")
            elif receiver is not None:
                self._passed_to(receiver, call, node, keyword, module)
            elif reason and not (is_held and self._keeps_parts(module, callee, call)):
                self._escape_with_arguments(module, node, reason)

    def _keeps_parts(self, module: Module, callee: Value, call: ast.Call) -> bool:
        """Return whether what a call returns holds what its argument holds, where that is seen."""
        is_same = isinstance(callee, External) and callee.name in _SAME_PARTS
        return self._holds(module, call) or (is_same and is_looped_over(module, call))

    def _receiver(self, callee: Value) -> tuple[Value | None, str]:
        """Return the function whose parameter gets what a call passes, or why that escapes;
        neither where it does not matter.
        """
        if api_of(self.project.apis, callee) is not None:
            return None, ""
        match callee:
            case External(name) if name in _HARMLESS_FUNCTIONS:
                return None, ""
            case Partial(func=External(name)) if name in SAME_CALL:
                return None, ""
            case Wrapped(how=name, func=inner) if name in SAME_CALL:
                return self._receiver(inner)
            case Function(module=owner, node=node) if self.evaluator.transforms.find(
                name := owner.qualified_name(node)
            ):
                return None, f"`{name}` takes it"  # a loop named in the settings
            case Function() | Bound(func=Function()):
                return callee, ""
            case Class(node=cls):
                for maker in self.evaluator.attribute(Instance(callee), "__init__"):
                    if isinstance(maker, Bound) and isinstance(maker.func, Function):
                        return maker, ""
                return None, f"`{cls.name}` holds it"
            case External(name):
                return None, f"`{name}` takes it"
        return None, _UNSEEN_CODE

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
        uses = uses_of(self.project, Function(module, function), loaded=self._loaded)
        if not uses.calls and not uses.decorated:
            self._escape(module, node, f"`{function.name}` returns it")
        for call in uses.calls:
            if not self._matches(call.module, call.node) and not self._holds(
                call.module, call.node
            ):
                reason = f"what `{function.name}` returns cannot be followed"
                self._escape(call.module, call.node, reason)
        for escape in uses.unseen:
            reason = f"`{function.name}` returns it, and {escape.reason}"
            self._escape(escape.module, escape.node, reason)

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
        looking_up = self.project.once(_files_looking_up)
        paths = (path for path in self._files_mentioning(_LOOKING_UP) if path in looking_up)
        seeing = map(self.project.module, paths)
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
                    if getattr(name, "value", word) == word  # computed names may be any
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


# How many calls a value is followed back through.
_MOST_CALLS = 4
# A parameter that more calls pass may be anything.
_MOST_PLACES = 16


def resolved(project: Project, value: Value) -> Values:
    """Return a value; for a parameter, what callers pass."""
    return project.once(_resolved, value, 0)


def _resolved(project: Project, value: Value, depth: int) -> Values:
    own = frozenset((value,))
    if not isinstance(value, Parameter) or depth > _MOST_CALLS:
        return own
    places = passed_for(project, value, loaded=True).places
    passed = [project.values(*place) for place in (places if len(places) <= _MOST_PLACES else ())]
    return union(project.once(_resolved, each, depth + 1) for each in union(passed)) or own


def numbers(project: Project, module: Module, node: ast.expr | None) -> set[int] | None:
    """Return the integers that an expression may be, as `constants` does."""
    values = [constant.value for constant in constants(project, module, node) or ()]
    found = {v for v in values if isinstance(v, int) and not isinstance(v, bool)}
    return found if values and len(found) == len(values) else None


def constants(
    project: Project, module: Module, node: ast.expr | None, depth: int = 0
) -> set[Constant] | None:
    """Return the constants that an expression may be in this project; None if more is possible."""
    places: list[Place] | None = None
    match node:
        case ast.Constant(value=value):
            return {Constant(value)}
        case _ if node is None or depth > _MOST_CALLS or module.parent(node) is None:
            return None  # without a parent, it is of another module, through a partial
        case ast.IfExp(body=one, orelse=other):
            places = [(module, one), (module, other)]
        case ast.Name():
            places = _named_places(project, module, node)
        case ast.Attribute():
            places = _stored_places(project, module, node)
    found = [constants(project, *place, depth + 1) for place in places or ()]
    known = [one for one in found if one is not None]
    return set().union(*known) if found and len(known) == len(found) else None


def _named_places(project: Project, module: Module, node: ast.Name) -> list[Place] | None:
    found: list[Place] = []
    for binding in module.reaching(node):
        if binding.kind == "assign" and binding.value is not None and not binding.path:
            found.append((module, binding.value))
        elif binding.kind == "parameter" and isinstance(binding.node, ast.arg):
            function = binding.scope.node
            assert isinstance(function, FunctionNode)
            passed = passed_for(project, Parameter(module, function, binding.name), loaded=True)
            if passed.unclear:
                return None
            outside_tests = [place for place in passed.places if not in_test(*place)]
            found += outside_tests
            if passed.default is not None and (passed.defaulted or not outside_tests):
                found.append(passed.default)
        else:
            return None
    return found


def _stored_places(project: Project, module: Module, node: ast.Attribute) -> list[Place] | None:
    """Return what the methods of a class assign to an attribute of its instances."""
    found: list[Place] = []
    for value in project.values(module, node.value):
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return None
        stored = self_assignments(value.cls.node).get(node.attr, ())
        if not stored or node.attr in class_annotations(value.cls.node):
            return None
        found += ((value.cls.module, expression) for expression in stored)
    return found


def values_through_callers(project: Project, module: Module, node: ast.expr) -> Values:
    """Return what an expression denotes; an attribute of a parameter, by what callers pass."""
    values = project.values(module, node)
    if values or not isinstance(node, ast.Attribute):
        return values
    owners = union(resolved(project, value) for value in project.values(module, node.value))
    return union(project.evaluator.attribute(owner, node.attr) for owner in owners)


def apply_functions(project: Project) -> Values:
    """Return what a project passes for `apply_fn=`; nothing if that is not always known."""
    found: set[Value] = set()
    for module in project.mentioning(["apply_fn"]):
        for node in module.nodes:
            if not isinstance(node, ast.keyword) or node.arg != "apply_fn":
                continue
            values = values_through_callers(project, module, node.value)
            if not values:
                return frozenset()
            found |= values
    return frozenset(found)


def candidates(
    project: Project, module: Module, node: ast.expr
) -> tuple[list[Value], tuple[Module, ast.expr | FunctionNode] | None]:
    """Return the functions and classes that `node` may hold, and a place that passes something
    unknown.

    A decorator factory checkpoints what it decorates, a registry what is registered: parameters
    stand for what callers pass, everywhere in the project. If there are no values, nothing in the
    project passes any.
    """
    found: dict[Value, None] = {}
    unknown: list[tuple[Module, ast.expr | FunctionNode]] = []
    seen: set[Parameter] = set()
    waiting: list[Place] = [(module, node)]
    while waiting:
        place = waiting.pop(0)
        values = project.values(*place)
        if not values or is_field(project, *place):
            unknown.append(place)
        for value in values:
            if isinstance(value, Parameter) and value not in seen:
                seen.add(value)
                passed = passed_for(project, value)
                waiting += passed.places
                found |= {_defined_by(*definition): None for definition in passed.definitions}
                if passed.unknown is not None:
                    unknown.append(passed.unknown)
                elif not passed.places and not passed.definitions:
                    unknown.append(place)
            elif any(targets_of(project.evaluator, value)):
                found[value] = None
            elif not isinstance(value, Parameter) and value != Constant(None):
                unknown.append(place)  # None is the default of an optional argument
    return list(found), next(iter(unknown), None)


def is_field(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an expression is a field of an object, set by callers: `self.block_cls`."""
    return any(True for _ in declarations_of(project.evaluator, module, node))


def _defined_by(module: Module, node: Definition) -> Value:
    return Class(module, node) if isinstance(node, ast.ClassDef) else Function(module, node)
