"""A model's own switches for checkpoints: settings that decide whether a checkpoint is applied.

A switch is a field of a class, a parameter with a default, or a global variable. It is found from a
site: in a test around it, as in `if self.remat:`, or in what computes its policy.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..names.module import Module
from ..names.scopes import parameters
from ..project import Project
from ..sites.find_sites import sites_in
from ..sites.site import Site
from .switch_tests import Requirement, Wanted, constants_compared, requirements

# How often an argument is followed to the callers.
_DEPTH = 3
# The values of a switch for policies that are tried.
_VALUES = 6
# Policies that need no arguments, for `getattr(jax.checkpoint_policies, name)`.
_POLICIES = ("nothing_saveable", "dots_with_no_batch_dims_saveable", "dots_saveable")


@dataclass(frozen=True, slots=True)
class Holder:
    """Where a switch is declared.

    Attributes:
        path: the file.
        line: the line of the declaration.
        owner: the class with the field, or the function with the parameter, as a dotted name
            within the module; empty for a global variable.
        name: the name of the field, parameter, or variable.
        is_field: whether it is a field.
    """

    path: Path
    line: int
    owner: str
    name: str
    is_field: bool

    def set_to(self, value: object) -> str:
        """Return the setting as a user would write it: `Config.remat = True`, `f(remat=True)`."""
        if self.is_field or not self.owner:
            return f"{self.owner and self.owner + '.'}{self.name} = {value!r}"
        return f"{self.owner}({self.name}={value!r})"


@dataclass(frozen=True, slots=True)
class Switch:
    """Values of settings that together switch checkpoints on.

    Attributes:
        values: the holder and the value of each setting.
    """

    values: tuple[tuple[Holder, object], ...]


@dataclass(frozen=True, slots=True)
class _Declared:
    """A holder, with the constants that its annotation and default allow."""

    holder: Holder
    default: object
    literals: tuple[object, ...] = ()


def find_switches(project: Project, paths: Collection[Path]) -> list[Switch]:
    """Return the switches of the checkpoints in some files, without repeats."""
    search = _Search(project)
    found: dict[Switch, None] = {}
    for path in sorted(paths):
        module = project.module(path)
        for site in sites_in(project, module) if module is not None else ():
            found.update(dict.fromkeys(search.switches(site)))
    return list(found)


class _Search:
    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[ast.expr, list[_Declared]] = {}

    def switches(self, site: Site) -> Iterator[Switch]:
        """Yield the settings that switch a site on, alone and with each policy."""
        module = site.module
        node = site.application or site.reference
        policies = list(self._policies(site))
        alternatives = requirements(module, node)
        if not alternatives:
            yield from (Switch(tuple(policy.items())) for policy in policies)
        for required in alternatives:
            choices = [list(self._values(module, one, policies)) for one in required]
            known = [here for here in choices if here]
            if not known:
                continue
            for values in itertools.islice(itertools.product(*known), _VALUES):
                base = dict(pair for here in values for pair in here)
                yield Switch(tuple(base.items()))
                for policy in policies:
                    if not policy.keys() & base.keys():
                        yield Switch(tuple({**base, **policy}.items()))

    def _values(
        self, module: Module, required: Requirement, policies: Sequence[dict[Holder, object]]
    ) -> Iterator[tuple[tuple[Holder, object], ...]]:
        """Yield the holders of a tested expression, each time with a value that satisfies it."""
        declared = self._declared(module, required.node, 0)
        if not declared:
            return
        values: dict[str, object] = {}
        for one in declared:
            known = [*one.literals, *self._compared(module, required.node, one.holder)]
            known += [policy[one.holder] for policy in policies if one.holder in policy]
            for value in _satisfying(required.wanted, one.default, known):
                values.setdefault(repr(value), value)
        for value in itertools.islice(values.values(), _VALUES):
            yield tuple((one.holder, value) for one in declared)

    def _policies(self, site: Site) -> Iterator[dict[Holder, object]]:
        """Yield values of the settings that the policy of a site is chosen by."""
        option = site.arguments.get("policy")
        if option is None:
            return
        seen: set[str] = set()
        for module, node, known in self._choosing(option.module, option.value, 0):
            declared = self._declared(module, node, 0)
            for one in declared:
                for value in (*one.literals, *known, *self._compared(module, node, None)):
                    if isinstance(value, str) and value not in seen and len(seen) < _VALUES:
                        seen.add(value)
                        yield {each.holder: value for each in declared}

    def _choosing(
        self, module: Module, node: ast.expr, depth: int
    ) -> Iterator[tuple[Module, ast.expr, list[object]]]:
        """Yield the expressions that a policy is chosen by, with the constants known for them."""
        if depth > _DEPTH:
            return
        match node:
            case ast.Name():
                yield module, node, []
                for binding in module.reaching(node):
                    if isinstance(binding.node, ast.arg):
                        for caller, argument in self._passed(module, binding.node):
                            yield from self._choosing(caller, argument, depth + 1)
                    elif binding.value is not None:
                        yield from self._choosing(module, binding.value, depth + 1)
                        for required in requirements(module, binding.value):
                            yield from ((module, one.node, []) for one in required)
            case ast.Attribute():
                yield module, node, []
            case ast.Subscript(container, key):
                yield from ((module, one, _keys(module, container)) for one in _atoms(key))
            case ast.IfExp(test, body, orelse):
                yield from ((module, one, []) for one in _atoms(test))
                for part in (body, orelse):
                    yield from self._choosing(module, part, depth + 1)
            case ast.Call(func, args, keywords):
                known: list[object] = []
                if isinstance(func, ast.Attribute):
                    known += _keys(module, func.value)
                elif _terminal(func) == "getattr":
                    known += _POLICIES
                for home, function in self._functions(module, _terminal(func)):
                    for parameter in parameters(function):
                        known += constants_compared(home, parameter.arg)
                    for inner in ast.walk(function):
                        if isinstance(inner, ast.If):
                            yield from ((home, one, []) for one in _atoms(inner.test))
                for argument in (*args, *(keyword.value for keyword in keywords)):
                    yield from ((module, one, known) for one in _atoms(argument))

    def _functions(
        self, module: Module, name: str
    ) -> Iterator[tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef]]:
        """Yield the functions of a name, in the module if it has one."""
        for here in dict.fromkeys((module, *self._project.mentioning([name]))) if name else ():
            found = [
                node
                for node in here.functions()
                if not isinstance(node, ast.Lambda) and node.name == name
            ]
            yield from ((here, node) for node in found)
            if found:
                return

    def _compared(self, module: Module, node: ast.expr, holder: Holder | None) -> list[object]:
        """Return the constants that a setting is compared with, or that a dict has for it."""
        names = {_terminal(node), holder.name if holder else ""} - {""}
        found: list[object] = []
        modules = [module]
        if holder is not None and (home := self._project.module(holder.path)) is not None:
            modules += [home] if home is not module else []
        for name in names:
            for here in modules:
                found += constants_compared(here, name)
        return found

    # -- declarations

    def _declared(self, module: Module, node: ast.expr, depth: int) -> list[_Declared]:
        """Return where a tested expression gets its value from."""
        if depth > _DEPTH:
            return []
        if node not in self._known:
            self._known[node] = []
            self._known[node] = list(dict.fromkeys(self._find_declared(module, node, depth)))
        return self._known[node]

    def _find_declared(self, module: Module, node: ast.expr, depth: int) -> Iterator[_Declared]:
        match node:
            case ast.Attribute(attr=name):
                yield from self._fields(name)
            case ast.Name():
                for binding in module.reaching(node):
                    if isinstance(binding.node, ast.arg):
                        yield from self._parameter(module, binding.node, depth)
                    elif isinstance(binding.value, ast.Constant):
                        if binding.scope.parent is None:
                            place = module.source.path, binding.value.lineno
                            holder = Holder(*place, "", node.id, is_field=False)
                            yield _Declared(holder, binding.value.value)
                    elif isinstance(binding.value, ast.Attribute | ast.Name):
                        yield from self._declared(module, binding.value, depth + 1)

    def _fields(self, name: str) -> Iterator[_Declared]:
        """Yield the fields of a name, except those that always get the value of another."""
        modules = self._project.mentioning([name])
        passed_to = {callee for one in modules for callee in _passing_on(one, name)}
        for module in modules:
            for cls in module.nodes:
                if isinstance(cls, ast.ClassDef) and cls.name not in passed_to:
                    if (found := _field(module, cls, name)) is not None:
                        yield found

    def _parameter(self, module: Module, node: ast.arg, depth: int) -> Iterator[_Declared]:
        """Yield a parameter with a default, and what callers pass for it."""
        function = module.parent(module.parent(node) or node)
        if isinstance(function, ast.FunctionDef):
            default = _default(function, node.arg)
            if default is not None and function in module.tree.body:
                holder = Holder(
                    module.source.path, node.lineno, function.name, node.arg, is_field=False
                )
                yield _Declared(holder, default.value, _literals(node.annotation))
        for caller, argument in self._passed(module, node):
            if isinstance(argument, ast.Attribute | ast.Name):
                yield from self._declared(caller, argument, depth + 1)

    def _passed(self, module: Module, node: ast.arg) -> Iterator[tuple[Module, ast.expr]]:
        """Yield what callers pass for a parameter."""
        function = module.parent(module.parent(node) or node)
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        cls = module.enclosing_class(function)
        callee = cls.name if cls is not None and function.name == "__init__" else function.name
        names = [parameter.arg for parameter in parameters(function)]
        position = names.index(node.arg) - (cls is not None)
        for caller in self._project.mentioning([callee]):
            for call in caller.nodes:
                if isinstance(call, ast.Call) and _terminal(call.func) == callee:
                    if (argument := _argument(call, node.arg, position)) is not None:
                        yield caller, argument


def _atoms(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the names and attributes in an expression, but not what the attributes are of."""
    if isinstance(node, ast.Attribute | ast.Name):
        yield node
    else:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield from _atoms(part)


def _satisfying(wanted: Wanted, default: object, known: Sequence[object]) -> Iterator[object]:
    """Yield the values that satisfy a test, from those known."""
    if wanted.equal is not None:
        yield wanted.equal
    elif wanted.truth is False:
        yield False
    elif isinstance(default, bool) or not (known or default is None or isinstance(default, str)):
        yield True
    else:
        refused = (*wanted.others, None, "", False, default)
        yield from (value for value in known if value not in refused)


def _field(module: Module, cls: ast.ClassDef, name: str) -> _Declared | None:
    owner = _owner(module, cls)
    for node in cls.body:
        match node:
            case ast.AnnAssign(ast.Name(id=found), annotation, value) if found == name:
                default = _constant_default(value)
                holder = Holder(module.source.path, node.lineno, owner, name, is_field=True)
                return _Declared(holder, default, _literals(annotation))
            case ast.Assign([ast.Name(id=found)], ast.Constant(default)) if found == name:
                holder = Holder(module.source.path, node.lineno, owner, name, is_field=True)
                return _Declared(holder, default)
            case ast.FunctionDef(name="__init__"):
                for inner in ast.walk(node):
                    match inner:
                        case ast.Assign([ast.Attribute(ast.Name(), attr)], value) if attr == name:
                            default = None
                            if isinstance(value, ast.Name):
                                constant = _default(node, value.id)
                                default = constant.value if constant is not None else None
                            place = module.source.path, inner.lineno
                            return _Declared(Holder(*place, owner, name, is_field=True), default)
    return None


def _constant_default(value: ast.expr | None) -> object:
    """Return a default, or that of `field(default=...)`, if it is a constant."""
    if isinstance(value, ast.Constant):
        return value.value
    for keyword in value.keywords if isinstance(value, ast.Call) else ():
        if keyword.arg == "default" and isinstance(keyword.value, ast.Constant):
            return keyword.value.value
    return None


def _literals(annotation: ast.expr | None) -> tuple[object, ...]:
    """Return the constants of `Literal[...]` in an annotation."""
    found: list[object] = []
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Subscript) and _terminal(node.value) == "Literal":
            found += [part.value for part in ast.walk(node.slice) if isinstance(part, ast.Constant)]
    return tuple(found)


def _default(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> ast.Constant | None:
    arguments = function.args
    places = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(places[len(places) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    for place, default in pairs:
        if place.arg == name and isinstance(default, ast.Constant):
            return default
    return None


def _argument(call: ast.Call, name: str, position: int) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    given = call.args[: position + 1]
    if len(given) == position + 1 and not any(isinstance(one, ast.Starred) for one in given):
        return given[position]
    return None


def _passing_on(module: Module, name: str) -> Iterator[str]:
    """Yield what is called with the value of a setting for one of the same name."""
    for node in module.nodes:
        if isinstance(node, ast.keyword) and node.arg == name and _terminal(node.value) == name:
            call = module.parent(node)
            if isinstance(call, ast.Call):
                yield _terminal(call.func)


def _keys(module: Module, node: ast.expr) -> list[object]:
    """Return the keys of a dict display, or of one that a name is bound to."""
    if isinstance(node, ast.Name):
        bound = [binding.value for binding in module.reaching(node)]
        node = next((one for one in bound if isinstance(one, ast.Dict)), node)
    keys = node.keys if isinstance(node, ast.Dict) else ()
    return [key.value for key in keys if isinstance(key, ast.Constant)]


def _owner(module: Module, node: ast.AST) -> str:
    """Return the dotted name of a class or function within its module."""
    return module.qualified_name(node).removeprefix(module.name + ".")


def _terminal(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
