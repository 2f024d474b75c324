"""Removes an option of an application, or writes its `static_argnums`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import partial

from ..analysis import Module, Project
from ..analysis.names.mentions import find_mentions
from ..analysis.sites.find_sites import sites_with
from ..analysis.sites.references import is_used_elsewhere
from ..analysis.sites.site import Option, Site
from ..analysis.values.application import api_of
from ..analysis.values.values import Container, External
from ..codemod.changes import Change, Code, Keep, NameArgument, Remove, Replace, SetArgument
from .refusal import Refused, check_editable


def literal_indices(option: Option) -> tuple[int, ...]:
    """Return the value of a literal `static_argnums`; raise Refused if it is computed."""
    try:
        value = ast.literal_eval(option.value)
    except ValueError:
        value = None
    if isinstance(value, int):
        return (value,)
    if isinstance(value, tuple | list) and all(isinstance(i, int) for i in value):
        return tuple(value)
    reason = "`static_argnums` is computed, so no argument can be added to it"
    raise Refused(reason, option.module, option.value)


def indices_text(indices: Sequence[int]) -> str:
    """Return the literal of a tuple of indices."""
    return repr(tuple(indices))


def drop_option(project: Project, option: Option, *, imports: bool = True) -> list[Change]:
    """Return the changes that remove an option.

    `functools.partial(jax.checkpoint, concrete=True)` without other options becomes
    `jax.checkpoint`, and with `imports`, an unused import of `partial` goes. Options that follow by
    position must be named as well, see `naming_changes`.
    """
    call, module = option.call, option.module
    if isinstance(call, ast.Dict):
        key = next(k for k, v in zip(call.keys, call.values, strict=True) if v is option.value)
        assert key is not None
        return remove(project, module, [key])
    if option.keyword is None:
        return remove(project, module, [option.value])
    # As an attribute of a class, a function would be bound to `self`, and a partial is not.
    held = isinstance(module.parent(call), ast.Assign | ast.AnnAssign)
    is_method = held and module.scope_at(call).is_class
    if len(call.args) == 1 and len(call.keywords) == 1 and not is_method:
        if project.evaluator.is_partial(module, call):
            if imports:
                return keep(project, module, call, call.args[0])
            check_editable(module, [call])
            return [Replace(module, call, Code.of("{function}", function=call.args[0]))]
    return remove(project, module, [option.keyword])


def check_only_checkpoints_get(project: Project, option: Option) -> None:
    """Raise Refused if another option applies where this one is removed, or if the dict with it is
    used for more than the options of checkpoints.
    """
    for site in sites_with(project, option):
        hidden = site.arguments[option.name].overrides
        if hidden is not None:
            reason = f"without it, this `{option.name}` applies: take that out first"
            raise Refused(reason, hidden.module, hidden.value, "applies instead")
    held = project.values(option.module, option.call)
    if any(isinstance(value, Container) for value in held):
        _DictUses(project, option).check()


class _DictUses:
    """Checks each use of a dict, and of those that are made from it, in all files."""

    def __init__(self, project: Project, option: Option) -> None:
        self._project = project
        self._dicts: set[ast.AST] = {option.call}
        self._names: set[str] = set()
        self._checked: set[ast.expr] = set()
        self._add_names(option.module, option.call)
        self._own = option.module

    def check(self) -> None:
        checked = 0
        while checked < (size := len(self._names) + len(self._dicts)):
            checked = size
            words = sorted(name for name in self._names if len(name) > 1)
            files = self._project.mentioning(words) if words else ()
            for module in dict.fromkeys((self._own, *files)):
                mentions = find_mentions(module)
                for name in sorted(self._names):
                    self._names.update(mentions.renamed.get(name, ()))
                    for node in mentions.reads(name):
                        self._look_at(module, node)

    def _add_names(self, module: Module, node: ast.AST) -> None:
        """Add the names under which the value of an expression goes on."""
        for around in module.ancestors(node):
            match around:
                case ast.Assign(targets=targets):
                    self._names |= {getattr(t, "id", getattr(t, "attr", "")) for t in targets}
                case ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
                    self._names.add(getattr(target, "id", getattr(target, "attr", "")))
                case ast.Return():
                    function = module.enclosing_function(around)
                    self._names.add(getattr(function, "name", ""))

    def _look_at(self, module: Module, node: ast.Name | ast.Attribute) -> None:
        if node in self._checked:
            return
        for part in (node, *module.ancestors(node)):
            if not isinstance(part, ast.expr):
                return
            if self._holds(module, part):
                self._checked.add(node)
                self._check_use(module, part)
                return

    def _holds(self, module: Module, node: ast.expr) -> bool:
        return isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and any(
            isinstance(value, Container) and value.node in self._dicts
            for value in self._project.values(module, node)
        )

    def _check_use(self, module: Module, node: ast.expr) -> None:
        parent = module.parent(node)
        match parent:
            case ast.BoolOp() | ast.IfExp() if getattr(parent, "test", None) is not node:
                return self._check_use(module, parent)
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() | ast.Return():
                return self._add_names(module, node)
            case ast.Dict():
                self._dicts.add(parent)
                return self._add_names(module, parent)
            case ast.keyword(arg=None):
                call = module.parent(parent)
                assert isinstance(call, ast.Call)
                called = [
                    v for n in (call.func, *call.args) for v in self._project.values(module, n)
                ]
                if any(api_of(self._project.apis, value) for value in called):
                    return None
                if External("builtins.dict") in called:
                    self._dicts.add(call)
                    return self._add_names(module, call)
                reason = "its options are passed to another function, too: give each its own"
                raise Refused(reason, module, call, "also gets the options")
            case ast.Call(func=func) if External("builtins.dict") in self._project.values(
                module, func
            ):
                self._dicts.add(parent)
                return self._add_names(module, parent)
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                return None
            case ast.Subscript(slice=ast.Constant(value=key)) if key != "concrete":
                return None
            case ast.Attribute(attr="update"):
                return None
            case ast.Attribute(attr="get" | "pop" | "setdefault"):
                match module.parent(parent):
                    case ast.Call(args=[ast.Constant(value=key), *_]) if key != "concrete":
                        return None
        reason = (
            "other code reads the dictionary with the option, too: check that code, and remove"
            " `concrete` by hand"
        )
        raise Refused(reason, module, node, "also reads the options")


def given_behind(option: Option) -> list[tuple[str, ast.expr]]:
    """Return the options that follow one by position in the same call, with their names."""
    if option.position is None or not isinstance(option.call, ast.Call):
        return []
    return list(zip(option.behind, option.call.args[option.position + 1 :], strict=False))


def naming_changes(module: Module, named: Iterable[tuple[str, ast.expr]]) -> list[Change]:
    """Return the changes that pass positional arguments by keyword."""
    return [NameArgument(module, value, name) for name, value in named]


def remove(project: Project, module: Module, nodes: Sequence[ast.AST]) -> list[Change]:
    """Return the changes that remove nodes of a module, and imports that become unused."""
    check_editable(module, nodes)
    is_used = partial(is_used_elsewhere, project, module)
    return [Remove(module, node, is_used) for node in nodes]


def keep(project: Project, module: Module, whole: ast.expr, part: ast.expr) -> list[Change]:
    """Return the same for an expression that is reduced to one of its parts."""
    check_editable(module, [whole])
    return [Keep(module, whole, part, partial(is_used_elsewhere, project, module))]


def static_argnums_changes(
    site: Site, indices: Sequence[int], instead_of: Option | None
) -> list[Change]:
    """Return the changes that add `static_argnums` to an application.

    Args:
        site: the application; it is a call, or a decorator that is one.
        indices: the arguments to add to those that are static already.
        instead_of: an option of the same call to replace.

    Raises:
        Refused: the present `static_argnums` are computed.
    """
    if site.application is not None:
        check_editable(site.module, [site.application])
    named = site.arguments.get("static_argnums")
    if named is not None:
        together = tuple(sorted({*literal_indices(named), *indices}))
        return [Replace(named.module, named.value, Code(indices_text(together)))]
    code = Code(indices_text(indices))
    if instead_of is not None:
        assert isinstance(instead_of.call, ast.Call)
        place = instead_of.keyword or instead_of.value
        return [SetArgument(instead_of.module, instead_of.call, "static_argnums", code, place)]
    assert isinstance(site.application, ast.Call)
    return [SetArgument(site.module, site.application, "static_argnums", code)]
