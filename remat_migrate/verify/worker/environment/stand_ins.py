"""Execute modules of the project one statement at a time, so that a failure ends only its own.

What a statement that fails would have bound becomes a stand-in, and so does a package that cannot
be imported. A stand-in can be imported from, subclassed, used as a decorator, an annotation, or a
default, and nothing but its subclasses is an instance of it. Whatever needs its value raises an
error that names it. Statements that run the program of a script are left out. Line numbers stay as
they are.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import importlib.machinery
import linecache
import sys
import types
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Tuple

from .. import coverage
from ..lookup import has
from . import projects, scripts

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
    with importing():
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
    note(reason)
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


class Reason(NamedTuple):
    """Why a name has a substitute.

    Attributes:
        name: the name that the code asks for: `jax.linear_util`, `torch`, `train.TABLE`.
        text: what became of it: `-> jax.extend.linear_util`, `(not installed)`.
        kind: "bridged", "missing", or "failed" for code of the project that raises on import.
    """

    name: str
    text: str
    kind: str

    def __str__(self) -> str:
        return "%s %s" % (self.name, self.text)


class _State:
    """Attributes:
    importing: how many modules of the project are being imported.
    reasons: of what the imports of the unit asked for.
    is_loaded: whether these have run.
    touched: the reasons whose stand-ins units have computed with since `begin`.
    """

    importing = 0
    reasons: Dict[str, Reason] = {}
    is_loaded = False
    touched: Dict[str, Reason] = {}


state = _State()


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Stand-ins may be called while a module of the project is imported."""
    state.importing += 1
    try:
        yield
    finally:
        state.importing -= 1


def note(reason: Reason) -> None:
    """Record that a file of the project asked for a name that has a substitute."""
    if not state.is_loaded:
        state.reasons[reason.name] = reason


def touch(reason: Reason) -> None:
    """Record that the value of a stand-in is needed; on import, that statement alone fails."""
    if not state.importing:
        state.touched[reason.name] = reason


def begin() -> None:
    """Forget which stand-ins were computed with."""
    state.touched.clear()


def summary() -> Dict[str, Any]:
    """Return the substitutes that the unit depends on."""
    found = {**state.reasons, **state.touched}
    return {"reasons": _rows(found), "touched": _rows(state.touched)}


def _rows(reasons: Dict[str, Reason]) -> List[Dict[str, str]]:
    return [dict(reasons[name]._asdict()) for name in sorted(reasons)]


class MissingDependency(Exception):
    """The code computes with something that could not be imported."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class Missing:
    """Stands in for a module, or anything in it.

    Attributes:
        _name: the dotted name.
        _reason: why there is only a stand-in.
        _members: its attributes so far.
    """

    def __init__(self, name: str, reason: Reason) -> None:
        self.__dict__.update(_name=name, _reason=reason, _members={})

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return self._name.rpartition(".")[2]
        if name.startswith("__"):
            raise AttributeError("%s has no attribute %s" % (self._name, name))
        members: Dict[str, Any] = self._members
        return members.setdefault(name, Missing("%s.%s" % (self._name, name), self._reason))

    def __setattr__(self, name: str, value: Any) -> None:
        self._members[name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what is decorated, or a stand-in for another result; not at run time."""
        self._importing_only()
        if len(args) == 1 and _is_decorated(args[0]):
            return args[0]
        return Missing("%s()" % self._name, self._reason)

    def __getitem__(self, key: Any) -> Any:
        self._importing_only()
        return Missing("%s[]" % self._name, self._reason)

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[type, ...]:
        return (self._base(),)

    def _base(self) -> type:
        """Return the class that stands in for a base class."""
        if "__base__" not in self._members:
            names = {"_stand_in": self, "__module__": __name__}
            self._members["__base__"] = type(self.__name__, (MissingBase,), names)
        found: type = self._members["__base__"]
        return found

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._base())

    def __subclasscheck__(self, subclass: Any) -> bool:
        return issubclass(subclass, self._base())

    def __or__(self, other: Any) -> Any:
        # Nothing is an instance of a stand-in, so a union with it is what else it has.
        self._importing_only()
        return other

    __ror__ = __or__

    def __eq__(self, other: Any) -> bool:
        # It asks whether an annotation is one of its own special forms.
        if sys._getframe(1).f_globals.get("__name__") != "typing":
            self._needed()
        return self is other

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return "<stand-in for %s>" % self._name

    def _importing_only(self) -> None:
        if not state.importing:
            self._needed()

    def _needed(self, *operands: Any) -> Any:
        touch(self._reason)
        raise MissingDependency(explain(self), self._reason)


_NEEDING = (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "matmul", "rmatmul", "truediv", "rtruediv"),
    *("floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "and", "rand", "xor", "rxor"),
    *("lshift", "rlshift", "rshift", "rrshift", "neg", "pos", "abs", "invert", "round"),
    *("ne", "lt", "le", "gt", "ge", "bool", "int", "float", "complex", "index", "len"),
    *("iter", "next", "contains", "array", "jax_array", "setitem", "delitem", "fspath", "enter"),
    *("exit", "copy", "deepcopy"),
)
for _name in _NEEDING:
    setattr(Missing, "__%s__" % _name, Missing._needed)


def refuse(value: Any) -> None:
    """Raise an error that names a stand-in, if the value is one."""
    if isinstance(value, Missing):
        value._needed()


def explain(value: Missing) -> str:
    """Return a message that names a stand-in whose value is needed."""
    reason = value._reason
    if reason.kind == "failed":
        return "it needs %s, which is not set: importing it: %s" % (value._name, reason.text)
    return "it needs %s: %s" % (value._name, reason)


class MissingBase:
    """Stands in for a base class: takes any arguments, and every attribute is a stand-in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(type(self)._stand_in, name)  # type: ignore[attr-defined]


def _is_decorated(value: Any) -> bool:
    """Return whether a decorator is applied to this."""
    kinds = (types.FunctionType, functools.partial, staticmethod, classmethod, property)
    if isinstance(value, type):
        return projects.is_project_module(value.__module__)
    return isinstance(value, kinds) or has(value, "__wrapped__")
