"""Execute modules of the project without what an interpreter lacks, or a script would run.

An import at the top of a module that fails binds stand-ins. Statements that run the program of a
script are left out. Line numbers stay as they are.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import sys
from typing import Any, List

from .. import coverage
from . import ledger, projects, scripts
from .ledger import Reason
from .missing import Missing, MissingDependency

_Loader = importlib.machinery.SourceFileLoader
_STAND_IN = "__remat_migrate_stand_in__"


def install() -> None:
    """Take over the execution of the project's modules in this process."""
    original = _Loader.exec_module
    setattr(builtins, _STAND_IN, _stand_in)

    def exec_module(self: Any, module: Any) -> None:
        if projects.is_project_file(self.path):
            _execute(self, module)
        else:
            original(self, module)

    _Loader.exec_module = exec_module  # type: ignore[method-assign]


def _execute(loader: Any, module: Any) -> None:
    path = loader.path
    tree = ast.parse(loader.get_data(path), path)
    skipped = scripts.effects(tree)
    coverage.watch(tree, path, skipped)
    body: List[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            body += _guarded(statement)
        elif statement not in skipped:
            body.append(statement)
    tree.body = body
    with ledger.importing():
        exec(
            compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True), vars(module)
        )


def _guarded(statement: Any) -> List[ast.stmt]:
    """Return imports of one name each, which bind a stand-in if they fail."""
    if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
        return [statement]
    found: List[ast.stmt] = []
    for alias in statement.names:
        one = type(statement)(**dict(ast.iter_fields(statement), names=[alias]))
        name = alias.asname or alias.name.partition(".")[0]
        call = ast.Call(ast.Name(_STAND_IN, ast.Load()), [ast.Constant(ast.unparse(one))], [])
        bound: ast.stmt = ast.Expr(call)
        if name != "*":
            bound = ast.Assign([ast.Name(name, ast.Store())], call)
        caught = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [bound])
        part = ast.Try([ast.copy_location(one, statement)], [caught], [], [])
        found.append(ast.copy_location(part, statement))
    return found


def _stand_in(text: str) -> Any:
    """Return what the import of one name binds that has just failed."""
    (statement,) = ast.parse(text).body
    assert isinstance(statement, (ast.Import, ast.ImportFrom))
    (alias,) = statement.names
    error: Any = sys.exc_info()[1]
    ledger.note(reason := _reason(text, statement, error))
    if isinstance(statement, ast.ImportFrom):
        return Missing("%s.%s" % (statement.module or "", alias.name), reason)
    top = alias.name.partition(".")[0]
    if not alias.asname and top in sys.modules:
        return sys.modules[top]  # a part of it is missing
    return Missing(alias.name if alias.asname else top, reason)


def _reason(text: str, statement: Any, error: Any) -> Reason:
    """Return why something cannot be imported."""
    if isinstance(error, MissingDependency):
        return error.reason  # known already
    lacking = (isinstance(error, ImportError) and error.name) or ""
    if not lacking:
        return Reason(text, "(%s: %s)" % (type(error).__name__, error), "failed")
    top = lacking.partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and top not in sys.modules:
        return Reason(top, "(not installed)", "missing")
    if not isinstance(error, ModuleNotFoundError) and isinstance(statement, ast.ImportFrom):
        lacking += "." + statement.names[0].name
    if projects.is_project_module(top):
        return Reason(lacking, "(not in the project)", "failed")
    version = getattr(sys.modules[top], "__version__", "")
    return Reason(lacking, "(not in %s)" % ("%s %s" % (top, version)).strip(), "failed")
