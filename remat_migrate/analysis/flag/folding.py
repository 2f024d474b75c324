"""Folds expressions and statements that depend on known values.

An `if` with a known test is reduced to one branch. `not`, `and`, `or`, comparisons, conditional
expressions, and conversions are evaluated. A value that cannot be folded away is written as a
literal.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ...codemod.tree.reductions import Reduction, is_pure
from ...formats.setting import read_bool
from ..names.mentions import last_name


class TrueText:
    """A string that spells true, such as the value of an environment variable."""


TRUE_TEXT: Final = TrueText()

Known = bool | int | TrueText | None

_TEXT_METHODS = frozenset({"lower", "upper", "strip", "casefold", "title", "capitalize"})
_TO_NUMBER = frozenset({"int", "float", "strtobool", "str2bool", "literal_eval"})
_SKIPS = frozenset({"skipTest", "SkipTest", "skip"})
_ASSERTIONS = {"assertTrue": True, "assertFalse": False}
_EXITS = frozenset({"exit", "_exit", "quit", "abort", "fail"})


@dataclass(frozen=True, slots=True)
class Folding:
    """How an expression with known parts changes, or why it stays."""

    reads: tuple[ast.expr, ...]
    change: Reduction = field(default_factory=Reduction)
    refused: str = ""


def fold(
    known: Mapping[ast.expr, Known], parent: Callable[[ast.AST], ast.AST | None]
) -> list[Folding]:
    """Fold the expressions that depend on the `known` ones.

    Return one Folding per outermost expression made of known parts, in the order of `known`.
    """
    roots: dict[ast.expr, list[ast.expr]] = {}
    for node in known:
        roots.setdefault(_root(node, parent), []).append(node)
    return [_Folder(known, parent).settle(root, tuple(reads)) for root, reads in roots.items()]


def literal(value: Known) -> str:
    """Return the source of a known value."""
    return '"1"' if isinstance(value, TrueText) else repr(value)


def _root(node: ast.expr, parent: Callable[[ast.AST], ast.AST | None]) -> ast.expr:
    """Return the outermost expression around `node` that can be folded."""
    while True:
        above = parent(node)
        if isinstance(above, ast.Attribute) and above.attr in _TEXT_METHODS:
            call = parent(above)
            if not (isinstance(call, ast.Call) and call.func is above):
                return node
            node = call
        elif isinstance(above, ast.expr) and _folds(above, node):
            node = above
        else:
            return node


def _folds(node: ast.expr, part: ast.expr) -> bool:
    match node:
        case ast.BoolOp() | ast.Compare() | ast.IfExp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(args=[argument]):
            return part is argument and bool(_conversion(node))
    return False


def _conversion(call: ast.Call) -> str:
    """Return the name of the function with which a call converts one value; "" for other calls."""
    name = last_name(call.func)
    if len(call.args) == 1 and not call.keywords and name in _TO_NUMBER | {"bool", "str"}:
        return name
    return ""


class _Folder:
    def __init__(
        self, known: Mapping[ast.expr, Known], parent: Callable[[ast.AST], ast.AST | None]
    ) -> None:
        self.known = known
        self.parent = parent
        self.change = Reduction()

    def settle(self, root: ast.expr, reads: tuple[ast.expr, ...]) -> Folding:
        """Return how `root` and the statement that it decides change."""
        above = self.parent(root)
        truth = isinstance(above, ast.If | ast.While | ast.Assert | ast.comprehension) and (
            not isinstance(above, ast.Assert) or above.test is root
        )
        value = self._reduce(root, truth)
        if value is _UNKNOWN:
            return Folding(reads, self.change)
        yes = bool(value)
        match above:
            case ast.If(test=test) if test is root:
                return self._branch(above, above.body if yes else above.orelse, reads)
            case ast.While(test=test) if test is root and not yes:
                return self._branch(above, above.orelse, reads)
            case ast.Assert(test=test) if test is root:
                return _asserted(above, reads, holds=yes)
            case ast.Call(func=called) if (name := last_name(called)) in _ASSERTIONS:
                statement = self.parent(above)
                if above.args[:1] == [root] and isinstance(statement, ast.Expr):
                    return _asserted(statement, reads, holds=yes == _ASSERTIONS[name])
            case ast.Attribute(attr=name) if name not in dir(str):
                return Folding(reads, refused=f"what `.{name}` does with the value is unknown")
            case ast.Subscript(value=indexed) if indexed is root:
                return Folding(reads, refused="it is unclear how the value is used")
            case ast.comprehension() if root in above.ifs and yes:
                return Folding(reads, Reduction(remove=(root,)))
            case ast.Expr():
                return Folding(reads, Reduction(remove=(above,)))
            case ast.Call() if (skip := self._skip(above, root, yes)) is not None:
                return Folding(reads, skip)
        assert not isinstance(value, _Unknown)
        return Folding(reads, Reduction(replace=((root, literal(value)),)))

    # -- statements

    def _branch(
        self, statement: ast.If | ast.While, suite: list[ast.stmt], reads: tuple[ast.expr, ...]
    ) -> Folding:
        if suite and _fails(suite[-1]):
            return Folding(reads, refused="the branch for the new implementation raises an error")
        return Folding(
            reads, Reduction(suites=((statement, suite),), dead=self._unreached(statement, suite))
        )

    def _unreached(self, statement: ast.stmt, suite: list[ast.stmt]) -> tuple[ast.stmt, ...]:
        """Return the statements that become unreachable when `statement` is replaced by `suite`."""
        jumps = ast.Return | ast.Raise | ast.Continue | ast.Break
        if not suite or not isinstance(suite[-1], jumps):
            return ()
        holder = self.parent(statement)
        tail: list[ast.stmt] = []
        for _, siblings in ast.iter_fields(holder) if holder is not None else ():
            if isinstance(siblings, list) and statement in siblings:
                tail = siblings[siblings.index(statement) + 1 :]
        function = holder
        while function is not None and not isinstance(
            function, ast.FunctionDef | ast.AsyncFunctionDef
        ):
            function = self.parent(function)
        # A `yield` makes a generator and a binding makes a name local even if never reached.
        if function is None or any(
            isinstance(node, ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal)
            for part in tail
            for node in ast.walk(part)
        ):
            return ()
        inside = {node for part in tail for node in ast.walk(part)}
        outside = [node for node in ast.walk(function) if node not in inside]
        bound = {name for node in inside for name in _names_bound(node)}
        bound -= {name for node in outside for name in _names_bound(node)}
        used = {node.id for node in outside if isinstance(node, ast.Name)}
        return () if bound & used else tuple(tail)

    def _skip(self, call: ast.Call, test: ast.expr, yes: bool) -> Reduction | None:
        """Fold a test decorator such as `skipIf(test, reason)`."""
        name = last_name(call.func)
        if name not in ("skipIf", "skipUnless", "skipif") or call.args[:1] != [test]:
            return None
        above = self.parent(call)
        decorates = (
            isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and call in above.decorator_list
        )
        if yes == (name == "skipUnless"):
            return Reduction(remove=(call,)) if decorates else None
        # The test is for the old implementation: it stays skipped.
        if decorates and isinstance(call.func, ast.Attribute):
            base = ast.unparse(call.func.value)
            return Reduction(remove=(test,), replace=((call.func, f"{base}.skip"),))
        return None

    # -- expressions

    def _reduce(self, node: ast.expr, truth: bool) -> Known | _Unknown:
        """Return the value of an expression; if it is _UNKNOWN, record the changes inside it.

        `truth` means that only the truth of the value matters.
        """
        if node in self.known:
            return self.known[node]
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                value = self._reduce(operand, True)
                if isinstance(value, _Unknown):
                    return value
                return not value
            case ast.BoolOp():
                return self._reduce_operands(node, truth)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compare(left, op, right)
            case ast.IfExp():
                return self._reduce_conditional(node, truth)
            case ast.Call(args=[argument]) if name := _conversion(node):
                value = self._reduce(argument, name == "bool")
                return value if isinstance(value, _Unknown) else _converted(value, name)
            case ast.Call(func=ast.Attribute(value=text, attr=name)) if name in _TEXT_METHODS:
                value = self._reduce(text, False)
                if isinstance(value, TrueText):
                    return value
                self._write(text, value)
        return _UNKNOWN

    def _write(self, node: ast.expr, value: Known | _Unknown) -> None:
        if not isinstance(value, _Unknown):
            self.change |= Reduction(replace=((node, literal(value)),))

    def _reduce_operands(self, node: ast.BoolOp, truth: bool) -> Known | _Unknown:
        """Fold `and` or `or`: drop operands that cannot decide, and end the chain at the first that
        does.
        """
        decides = isinstance(node.op, ast.Or)
        kept: list[ast.expr] = []
        gone: list[ast.expr] = []
        ends: Known | _Unknown = _UNKNOWN
        for index, operand in enumerate(node.values):
            value = self._reduce(operand, truth)
            last = index == len(node.values) - 1
            if isinstance(value, _Unknown):
                kept.append(operand)
                continue
            yes = bool(value)
            if yes == decides:
                gone += node.values[index + 1 :]
                if not kept or (truth and all(map(is_pure, kept))):
                    return value
                self._write(operand, value)
                kept.append(operand)
                break
            if last and not truth and kept:
                # `x and True` is x or True: only its truth is that of x.
                self._write(operand, value)
                kept.append(operand)
            else:
                gone.append(operand)
                ends = value
        if not kept:
            return ends
        if len(kept) == 1 and gone:
            self.change |= Reduction(keep=((node, kept[0]),))
        else:
            self.change |= Reduction(remove=tuple(gone))
        return _UNKNOWN

    def _reduce_conditional(self, node: ast.IfExp, truth: bool) -> Known | _Unknown:
        test = self._reduce(node.test, True)
        if isinstance(test, _Unknown):
            for part in (node.body, node.orelse):
                self._write(part, self._reduce(part, truth))
            return _UNKNOWN
        branch = node.body if test else node.orelse
        value = self._reduce(branch, truth)
        if isinstance(value, _Unknown):
            self.change |= Reduction(keep=((node, branch),))
        return value

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Known | _Unknown:
        a, b = self._reduce(left, False), self._reduce(right, False)
        if isinstance(a, _Unknown) and isinstance(b, _Unknown):
            return _UNKNOWN
        if isinstance(a, _Unknown) or not isinstance(b, _Unknown):
            known, other, node = b, left, right
        else:
            known, other, node = a, right, left
        assert not isinstance(known, _Unknown)
        result = _equal(known, other)
        if isinstance(op, ast.In | ast.NotIn):
            result = _among(known, other) if node is left else _UNKNOWN
        if isinstance(result, _Unknown) or isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            self._write(node, known)
            return _UNKNOWN
        return result is not isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn)


def _asserted(statement: ast.stmt, reads: tuple[ast.expr, ...], *, holds: bool) -> Folding:
    """Remove an assertion that always holds; refuse one that never does."""
    if holds:
        return Folding(reads, Reduction(remove=(statement,)))
    return Folding(reads, refused="the assertion holds only for the removed implementation")


class _Unknown:
    """The type of `_UNKNOWN`, for values that are not known."""


_UNKNOWN: Final = _Unknown()


def _converted(value: Known, function: str) -> Known:
    yes = bool(value)
    if function == "bool":
        return yes
    if function == "str":
        # str(True) is compared with "True", one more spelling of true.
        return TRUE_TEXT if yes else value
    return int(yes)


def _equal(known: Known, other: ast.expr) -> bool | _Unknown:
    if not isinstance(other, ast.Constant):
        return _UNKNOWN
    if not isinstance(known, TrueText):
        return bool(known == other.value)
    if other.value is None:
        return False
    spelled = read_bool(str(other.value)) if other.value != "" else False
    return _UNKNOWN if spelled is None else spelled


def _among(known: Known, others: ast.expr) -> bool | _Unknown:
    if not isinstance(others, ast.Tuple | ast.List | ast.Set) or not others.elts:
        return _UNKNOWN
    verdicts = {_equal(known, other) for other in others.elts}
    return verdicts.pop() if len(verdicts) == 1 else _UNKNOWN


def _fails(statement: ast.stmt) -> bool:
    """Return whether a statement always fails, other than by skipping a test."""
    match statement:
        case ast.Raise(exc=ast.Call(func=what)) | ast.Raise(exc=ast.expr() as what):
            return last_name(what) not in _SKIPS
        case ast.Raise() | ast.Assert(test=ast.Constant(value=False)):
            return True
        case ast.Expr(value=ast.Call(func=what)):
            return last_name(what) in _EXITS
    return False


def _names_bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=asname):
            yield asname or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.arg(arg=name):
            yield name
