"""Execute modules of the project one statement at a time, so that a failure ends only its own.

What a statement that fails would have bound becomes a stand-in. Statements that run the program of
a script are left out. Line numbers stay as they are.
"""

from __future__ import annotations
import __future__

import ast
import functools
import importlib.machinery
import linecache
import sys
from typing import Any, Dict, FrozenSet, Iterator, List

from .. import coverage
from . import ledger, projects, scripts
from .ledger import Reason
from .missing import Missing, MissingDependency

_Loader = importlib.machinery.SourceFileLoader


def install() -> None:
    """Take over the execution of the project's modules in this process."""
    original = _Loader.exec_module

    def exec_module(self: Any, module: Any) -> None:
        if projects.is_project_file(self.path):
            _execute(self, module)
        else:
            original(self, module)

    _Loader.exec_module = exec_module  # type: ignore[method-assign]


def _execute(loader: Any, module: Any) -> None:
    path = loader.path
    data = loader.get_data(path)
    tree = ast.parse(data, path)
    skipped = scripts.effects(tree)
    coverage.watch(tree, path, skipped)
    flags = _future_flags(tree)
    names = vars(module)
    with ledger.importing():
        for number, statement in enumerate(tree.body):
            if statement in skipped:
                _leave_out(statement, names, path)
            elif not (number and _is_text(statement)):
                for part in _parts(statement):
                    _run(part, names, path, flags)


def _parts(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield an import of several names as imports of one."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            fields = dict(ast.iter_fields(statement), names=[alias])
            yield ast.copy_location(type(statement)(**fields), statement)
    else:
        yield statement


def _run(statement: ast.stmt, names: Dict[str, Any], path: str, flags: int) -> None:
    tree = ast.Module(body=[statement], type_ignores=[])
    code = compile(tree, path, "exec", flags, dont_inherit=True)
    try:
        exec(code, names)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ImportError) and _is_tried(sys._getframe()):
            raise  # the code that imports this module handles it
        _replace(statement, names, path, error)


def _is_tried(frame: Any) -> bool:
    """Return whether the import of a module is in a `try` of the project that has handlers."""
    while frame is not None:
        path = frame.f_code.co_filename
        if projects.is_project_file(path) and frame.f_lineno in _tried_lines(path):
            return True
        frame = frame.f_back
    return False


@functools.lru_cache(maxsize=None)
def _tried_lines(path: str) -> FrozenSet[int]:
    with open(path, "rb") as file:
        tree = ast.parse(file.read())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Try) and node.handlers]
    return frozenset(
        line for node in found for line in range(node.body[0].lineno, node.handlers[0].lineno)
    )


def _leave_out(statement: ast.stmt, names: Dict[str, Any], path: str) -> None:
    """Bind stand-ins to names that only the program of a script sets."""
    where = "%s:%d" % (projects.relative(path), statement.lineno)
    for name in _bound(statement):
        if name not in names:
            full = "%s.%s" % (names.get("__name__", ""), name)
            reason = Reason(full, "(set by the program that %s runs)" % where, "failed")
            names[name] = Missing(full, reason)


def _replace(statement: ast.stmt, names: Dict[str, Any], path: str, error: BaseException) -> None:
    """Bind stand-ins to what a statement that failed should have bound."""
    bound = [name for name in _bound(statement) if name not in names or _binds(statement)]
    if isinstance(error, MissingDependency):
        reason = error.reason  # known already
    elif isinstance(error, ImportError):
        reason = _not_imported(statement, error)
    else:
        # Of a statement without a name, the text: lines move when code is migrated.
        what = ", ".join(bound) or linecache.getline(path, statement.lineno).strip()[:60]
        where = "%s:%d" % (projects.relative(path), statement.lineno)
        text = "(%s at %s)" % (_described(error), where)
        reason = Reason("%s.%s" % (names.get("__name__", ""), what), text, "failed")
    ledger.note(reason)
    for name in bound:
        if isinstance(statement, ast.Import) and name in sys.modules:
            names[name] = sys.modules[name]  # a part of it is missing
        else:
            names[name] = Missing(_full_name(statement, name, names), reason)


def _full_name(statement: ast.stmt, name: str, names: Dict[str, Any]) -> str:
    """Return the dotted name of what a statement that failed should have bound."""
    if isinstance(statement, ast.Import):
        return statement.names[0].name if statement.names[0].asname else name
    if isinstance(statement, ast.ImportFrom):
        return "%s.%s" % (statement.module or "", statement.names[0].name)
    return "%s.%s" % (names.get("__name__", ""), name)


def _not_imported(statement: ast.stmt, error: ImportError) -> Reason:
    """Return why something cannot be imported."""
    lacking = error.name or ""
    if not lacking:
        return Reason(ast.unparse(statement), "(%s)" % _described(error), "failed")
    top = lacking.partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and top not in sys.modules:
        return Reason(top, "(not installed)", "missing")
    if not isinstance(error, ModuleNotFoundError) and isinstance(statement, ast.ImportFrom):
        lacking += "." + statement.names[0].name
    if projects.is_project_module(top):
        return Reason(lacking, "(not in the project)", "failed")
    version = getattr(sys.modules[top], "__version__", "")
    return Reason(lacking, "(not in %s)" % ("%s %s" % (top, version)).strip(), "failed")


def _described(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return "%s: %s" % (type(error).__name__, lines[0][:300]) if lines else type(error).__name__


def _binds(statement: ast.stmt) -> bool:
    """Return whether a statement does nothing but bind names."""
    kinds = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(statement, (*kinds, ast.Import, ast.ImportFrom))


def _bound(statement: ast.stmt) -> List[str]:
    """Return the global names that a statement binds."""
    found: List[str] = []
    waiting: List[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append(node.id)
        elif isinstance(node, ast.alias):
            found.append(node.asname or node.name.partition(".")[0])
        elif not isinstance(node, ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
    return list(dict.fromkeys(name for name in found if name != "*"))


def _future_flags(tree: ast.Module) -> int:
    """Return the compiler flags of the module's `from __future__ import ...`."""
    flags = 0
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                feature = getattr(__future__, alias.name, None)
                flags |= feature.compiler_flag if feature is not None else 0
    return flags


def _is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is a constant: alone, it would become the docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
