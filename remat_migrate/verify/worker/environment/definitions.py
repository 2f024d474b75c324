"""Execute modules of the project one statement at a time, so that a failure ends only its own.

What a statement that fails would have bound becomes a stand-in. Statements that run the program of
a script are left out. Line numbers stay as they are.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import importlib.machinery
import linecache
import signal
import threading
from typing import Any, Dict, Iterator, List

from .. import coverage
from . import guards, ledger, projects, scripts, substitutes
from .ledger import Reason
from .missing import Missing, MissingDependency

# Seconds of processor time that a statement may take on import, unless it imports or defines.
_LONGEST = 10.0

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


class _TooLong(BaseException):
    """The statement took too long."""


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
                _run(statement, names, path, flags)


def _run(statement: ast.stmt, names: Dict[str, Any], path: str, flags: int) -> None:
    tree = ast.Module(body=[statement], type_ignores=[])
    code = coverage.compiled(tree, path, "exec", flags, dont_inherit=True)
    while True:
        try:
            with _time_limit(statement):
                exec(code, names)
            return
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            caller = error.__traceback__ and error.__traceback__.tb_frame.f_back
            if guards.expects(caller, error):
                raise  # the code that imports this module handles it
            if isinstance(error, AttributeError):
                if substitutes.stand_in_for_attribute(error, path):
                    continue
            _replace(statement, names, path, error)
            return


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
    module = names.get("__name__", "")
    if isinstance(error, MissingDependency):
        # What is missing is known already.
        for name in bound:
            names[name] = Missing("%s.%s" % (module, name), error.reason)
        return
    message = str(error).strip().splitlines()
    text = "%s: %s" % (type(error).__name__, message[0][:300]) if message else type(error).__name__
    if isinstance(error, _TooLong):
        text = "takes longer than %g s on import" % _LONGEST
    where = "%s:%d" % (projects.relative(path), statement.lineno)
    # Of a statement without a name, the text: lines move when code is migrated.
    what = ", ".join(bound) or linecache.getline(path, statement.lineno).strip()[:60]
    label = "%s.%s" % (module, what)
    reason = Reason(label, "(%s at %s)" % (text, where), "failed")
    ledger.note(path, reason)
    for name in bound:
        names[name] = Missing("%s.%s" % (module, name), reason)


def _binds(statement: ast.stmt) -> bool:
    """Return whether a statement does nothing but bind names."""
    kinds = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(statement, kinds)


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


@contextlib.contextmanager
def _time_limit(statement: ast.stmt) -> Iterator[None]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    inside = ast.walk(statement)
    free = isinstance(statement, kinds) or any(isinstance(n, kinds[3:]) for n in inside)
    if free or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise _TooLong

    handler = signal.signal(signal.SIGPROF, stop)
    outer = signal.setitimer(signal.ITIMER_PROF, _LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, *outer)
        signal.signal(signal.SIGPROF, handler)


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
