"""How to write a qualified name at a place in a module: through an existing import, or a new
one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...codemod.changes import AddImport, Change, Code, Insert
from ..names.module import Binding, Module, Scope, find_mentions
from ..project import Project
from ..values.values import Constant, External, ModuleValue

# Packages from which, by convention, one name is imported rather than the package.
_BY_NAME = frozenset({"functools"})
# Modules that importing their package does not load.
_SUBMODULES = ("jax.ad_checkpoint",)
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True, slots=True)
class Reference:
    """How a qualified name is written at a place.

    Attributes:
        text: the expression.
        changes: the import that it needs, if it needs a new one.
    """

    text: str
    changes: tuple[Change, ...] = ()

    @property
    def imports(self) -> Iterator[str]:
        """The new import as a statement."""
        yield from (c.statement for c in self.changes if isinstance(c, AddImport))


def reference_to(
    module: Module,
    project: Project,
    qualified: str,
    at: ast.expr | ast.stmt,
    *,
    beside: ast.stmt | None = None,
) -> Reference:
    """Return how to write `qualified` (`jax.checkpoint`, `functools.partial`) in place of `at`.

    An existing import is used if it is visible at `at`, is not shadowed, and has run by then.

    Args:
        module: the module to write in.
        project: the project.
        qualified: the dotted name of a function in a package.
        at: a node of the module.
        beside: the statement before which a new import goes, if the top of the module would be
            wrong: another import of the package, inside a function or a `try`.
    """
    for name, imported in _imports(module, project, qualified):
        if any(qualified.startswith(f"{m}.") and m not in imported for m in _SUBMODULES):
            continue
        if _is_seen(module, project, name, imported, at):
            rest = qualified[len(imported) :]
            return Reference(name + rest)
    return _import_anew(module, qualified, at, beside)


def import_of(module: Module, node: ast.expr) -> ast.stmt | None:
    """Return the only import statement that the first name of `a.b.c` comes from.

    A name that is None if the import fails counts as imported.
    """
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    bindings = module.reaching(node)
    found = {binding.statement for binding in bindings if binding.statement is not None}
    others = [b for b in bindings if b.statement is None]
    absent = all(isinstance(b.value, ast.Constant) and b.value.value is None for b in others)
    return found.pop() if len(found) == 1 and absent else None


def is_used_elsewhere(project: Project, module: Module, name: str) -> bool:
    """Return whether another module of the project imports a module-level name from this one."""
    last = module.name.rpartition(".")[2]
    for path in project.files.mentioning((name,)):
        text = project.files.read(path).text if path != module.source.path else ""
        # `from . import name` names no module.
        if last not in text and "import" not in text:
            continue
        other = project.module(path)
        if other is not None and other is not module and _takes(project, other, module, name):
            return True
    return False


def _takes(project: Project, other: Module, module: Module, name: str) -> bool:
    this, mentions = ModuleValue(module), find_mentions(other)
    attributes = (*mentions.attributes.get(name, ()), *mentions.written.get(name, ()))
    return any(this in project.values(other, node.value) for node in attributes) or any(
        this in project.evaluator.import_base(node, other)
        for node in mentions.imports
        if isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & {name, "*"}
    )


def _imports(module: Module, project: Project, qualified: str) -> Iterator[tuple[str, str]]:
    """Yield local names bound by imports to `qualified` or to a package of it, best first."""
    found: set[tuple[str, str]] = set()
    for node in find_mentions(module).imports:
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            for imported in _imported(module, project, node, alias):
                if qualified == imported or qualified.startswith(f"{imported}."):
                    found.add((bound, imported))

    # `jnp.where` rather than `jax.numpy.where`, `jax.checkpoint` rather than `checkpoint`: the
    # usual spelling.
    def rank(pair: tuple[str, str]) -> tuple[bool, int, bool, str]:
        bound, imported = pair
        return imported == qualified, -len(imported), bound != imported, bound

    yield from sorted(found, key=rank)


def _imported(
    module: Module, project: Project, node: ast.Import | ast.ImportFrom, alias: ast.alias
) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name if alias.asname else alias.name.partition(".")[0]}
    return {
        f"{base.name}.{alias.name}"
        for base in project.evaluator.import_base(node, module)
        if isinstance(base, External)
    }


def _is_seen(
    module: Module, project: Project, name: str, imported: str, at: ast.expr | ast.stmt
) -> bool:
    """Return whether `name` at `at` is always the import of `imported`."""
    if _is_local_to_comprehension(module, name, at):
        return False
    owner = _owner(module, name, at)
    if owner is None or owner.is_class:
        return False
    if name in find_mentions(module).deleted:
        return False
    imports = []
    for binding in module.visible(name, owner):
        values = project.evaluator.binding(module, binding)
        if External(imported) in values and len(values) == 1:
            imports.append(binding)
        elif values != {Constant(None)}:  # `except ImportError: jax = None`
            return False
    return any(_has_run(module, owner, binding, at) for binding in imports)


def _is_local_to_comprehension(module: Module, name: str, at: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name
        for around in module.ancestors(at)
        if isinstance(around, _COMPREHENSIONS)
        for generator in around.generators
        for node in ast.walk(generator.target)
    )


def _owner(module: Module, name: str, at: ast.AST) -> Scope | None:
    """Return the scope whose binding of `name` is visible at `at`."""
    inner = module.scope_at(at)
    scope: Scope | None = inner
    while scope is not None:
        if name in scope.global_names:
            return module.scope_of(module.tree)
        if name in module.flow(scope).bound and (scope is inner or not scope.is_class):
            return scope
        scope = scope.parent
    return None


def _has_run(module: Module, owner: Scope, binding: Binding, at: ast.AST) -> bool:
    """Return whether an import has always run when `at` is evaluated.

    An import in a `try` has succeeded, or the handler has dealt with it.
    """
    statement = binding.statement
    if statement is None or binding.scope is not owner:
        return False
    holder = module.parent(statement)
    if isinstance(holder, ast.Try) and statement in holder.body:
        holder = module.parent(holder)
    function = module.enclosing_function(at)
    later = function is not None and module.scope_of(function) is not owner
    return holder is owner.node and (later or _position(statement) < _position(at))


def _position(node: ast.AST) -> tuple[int, int]:
    assert isinstance(node, ast.expr | ast.stmt)
    return node.lineno, node.col_offset


def _import_anew(
    module: Module, qualified: str, at: ast.expr | ast.stmt, beside: ast.stmt | None
) -> Reference:
    package, _, last = qualified.rpartition(".")
    top = package.partition(".")[0]
    if package == top and package not in _BY_NAME and _is_free(module, top, at):
        text, statement = qualified, f"import {package}"
    else:
        name = _free_name(module, last, top, at)
        text = name
        statement = f"from {package} import {last}" + (f" as {name}" if name != last else "")
    if beside is not None:
        return Reference(text, (Insert(module, beside, (Code(statement),)),))
    in_function = module.enclosing_function(at) is not None
    statements = [node for node in (at, *module.ancestors(at)) if isinstance(node, ast.stmt)]
    before = module.tree if in_function else statements[-1]
    return Reference(text, (AddImport(module, before, statement),))


def _is_free(module: Module, name: str, at: ast.AST) -> bool:
    """Return whether a module-level import may bind `name`, be visible at `at`, and break
    nothing.
    """
    root = module.scope_of(module.tree)
    if name in module.flow(root).bound or _owner(module, name, at) is not None:
        return False
    if _is_local_to_comprehension(module, name, at):
        return False
    # The name of a builtin, or from an `import *`, that is read somewhere.
    return all(map(module.reaching, find_mentions(module).names.get(name, ())))


def _free_name(module: Module, last: str, top: str, at: ast.AST) -> str:
    names = [last, f"{top}_{last}", *(f"{top}_{last}_{n}" for n in range(2, 100))]
    return next(name for name in names if _is_free(module, name, at))
