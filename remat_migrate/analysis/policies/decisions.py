"""What a policy function answers for a primitive, by abstract interpretation of its code.

Nothing is executed. The interpreter compares names of primitives and follows `if`, `and`, `or`, and
`not`; everything else is unknown.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..names.module import Module
from ..project import Project
from ..values.calls import returned_expressions
from ..values.values import Container, External, Function
from .jax_remat3 import CONSULTED
from .known_policies import DOTS, policy_of

# Stands for all primitives that the policy does not name.
ANY_OTHER = "\0"

_MOST_STEPS = 4


class Answer(enum.Enum):
    """What happens to the result of a primitive."""

    SAVED = "saved"
    COMPUTED_AGAIN = "computed again"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive object."""

    name: str


class _Unknown(enum.Enum):
    UNKNOWN = enum.auto()


_UNKNOWN = _Unknown.UNKNOWN
# The value of an expression: a primitive, a constant, an answer, a tuple of them, or unknown.
_Known = Primitive | Answer | str | bool | None | tuple["_Known", ...] | _Unknown


@dataclass(slots=True)
class PolicyFunction:
    """A policy function of the project.

    Attributes:
        project: the project.
        function: the function.
        named: the primitives that it has been seen to distinguish.
    """

    project: Project
    function: Function
    named: set[str] = field(default_factory=set)

    def answer(self, primitive: str) -> Answer:
        """Return what it answers for a primitive."""
        return self.answer_of(self.function, primitive, 0)

    def answer_of(self, function: Function, primitive: str, depth: int) -> Answer:
        """Return the answer of a function that is called with a primitive, `depth` calls deep."""
        node = function.node
        parameters = [*node.args.posonlyargs, *node.args.args]
        if not parameters or isinstance(node, ast.AsyncFunctionDef) or depth > _MOST_STEPS:
            return Answer.UNKNOWN
        names: dict[str, _Known] = {parameters[0].arg: Primitive(primitive)}
        scope = _Scope(self, primitive, function.module, depth, names)
        if isinstance(node, ast.Lambda):
            return scope.answered(node.body)
        if not list(returned_expressions(node)):
            return Answer.UNKNOWN
        answers = set(scope.run(node.body))
        return answers.pop() if len(answers) == 1 else Answer.UNKNOWN

    def primitives(self) -> frozenset[str]:
        """Return the names of the primitives that it distinguishes."""
        while True:
            before = frozenset(self.named)
            for primitive in (ANY_OTHER, *CONSULTED, *before):
                self.answer(primitive)
            if self.named == before:
                return before


@dataclass(slots=True)
class _Scope:
    """The known values of one function's names."""

    policy: PolicyFunction
    primitive: str
    module: Module
    depth: int
    names: dict[str, _Known]

    # -- statements

    def run(self, body: Sequence[ast.stmt]) -> Iterator[Answer]:
        """Yield the possible answers of some statements; reaching the end is unknown."""
        for number, statement in enumerate(body):
            rest = body[number + 1 :]
            match statement:
                case ast.Return(value=None):
                    yield Answer.UNKNOWN
                    return
                case ast.Return(value=ast.expr() as value):
                    yield self.answered(value)
                    return
                case ast.Raise():
                    return
                case ast.If(test=test, body=yes, orelse=no):
                    known = self.truth(test)
                    if known is None:
                        for branch in (yes, no):
                            yield from replace(self, names=dict(self.names)).run([*branch, *rest])
                    else:
                        yield from self.run([*(yes if known else no), *rest])
                    return
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.names[name] = self.value(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.names[name] = self.value(value)
                case ast.Expr() | ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Assert():
                    pass
                case ast.With(body=inner):
                    yield from self.run([*inner, *rest])
                    return
                case _:
                    yield Answer.UNKNOWN
                    return
        yield Answer.UNKNOWN

    # -- expressions

    def answered(self, node: ast.expr) -> Answer:
        """Return the answer that an expression's value stands for."""
        value = self.value(node)
        if isinstance(value, Answer):
            return value
        if isinstance(value, bool):
            return Answer.SAVED if value else Answer.COMPUTED_AGAIN
        return Answer.UNKNOWN

    def truth(self, node: ast.expr) -> bool | None:
        """Return the truth of an expression; None if unknown."""
        value = self.value(node)
        if isinstance(value, Answer):
            return None if value is Answer.UNKNOWN else value is Answer.SAVED
        return None if isinstance(value, _Unknown | Primitive) else bool(value)

    def value(self, node: ast.expr) -> _Known:
        """Return the value of an expression."""
        match node:
            case ast.Constant(value=str() | bool() | None as value):
                return value
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Name() | ast.Attribute():
                return self._named(node)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return tuple(self.value(part) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                known = self.truth(inner)
                return _UNKNOWN if known is None else not known
            case ast.BoolOp(op=operator, values=parts):
                return self._joined(isinstance(operator, ast.Or), parts)
            case ast.IfExp(test=test, body=yes, orelse=no):
                known = self.truth(test)
                if known is not None:
                    return self.value(yes if known else no)
                one, other = self.value(yes), self.value(no)
                return one if one == other else _UNKNOWN
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self.names[name] = self.value(value)
                return self.names[name]
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return self._compared(self.value(left), operator, self.value(right))
            case ast.Call():
                return self._called(node)
        return _UNKNOWN

    def _joined(self, is_or: bool, parts: Sequence[ast.expr]) -> _Known:
        """Evaluate `or` or `and`: the first operand that decides is the value, if those before are
        known.
        """
        unknown = False
        last: _Known = _UNKNOWN
        for part in parts:
            last = self.value(part)
            known = self.truth(part)
            if known is is_or:
                # Decided whatever the other operands are; which true value it is does not matter.
                return last
            unknown = unknown or known is None
        return _UNKNOWN if unknown else last

    def _named(self, node: ast.Name | ast.Attribute) -> _Known:
        if isinstance(node, ast.Attribute) and node.attr == "name":
            owner = self.value(node.value)
            if isinstance(owner, Primitive):
                return owner.name
        values = self.policy.project.values(self.module, node)
        match list(values):
            case [External(name)]:
                return _external(name)
            case [Container(module=owner_module, node=written)]:
                if isinstance(written, ast.Tuple | ast.List | ast.Set):
                    return _Scope(self.policy, self.primitive, owner_module, self.depth, {}).value(
                        written
                    )
        return _UNKNOWN

    def _compared(self, left: _Known, operator: ast.cmpop, right: _Known) -> _Known:
        if isinstance(left, _Unknown) or isinstance(right, _Unknown):
            return _UNKNOWN
        match operator:
            case ast.Eq() | ast.Is():
                self._note(left, right)
                return left == right
            case ast.NotEq() | ast.IsNot():
                self._note(left, right)
                return left != right
            case ast.In() | ast.NotIn() if isinstance(right, tuple):
                for one in right:
                    self._note(left, one)
                if left in right:
                    return isinstance(operator, ast.In)
                unknown = any(isinstance(one, _Unknown) for one in right)
                return _UNKNOWN if unknown else isinstance(operator, ast.NotIn)
            case ast.In() | ast.NotIn() if isinstance(left, str) and isinstance(right, str):
                self._note_part(left)
                return (left in right) is isinstance(operator, ast.In)
        return _UNKNOWN

    def _note(self, left: _Known, right: _Known) -> None:
        """Record the primitive that is compared with the given one."""
        for one, other in ((left, right), (right, left)):
            asked = self.primitive
            if one in (asked, Primitive(asked)) and isinstance(other, str | Primitive):
                self.policy.named.add(other if isinstance(other, str) else other.name)

    def _note_part(self, part: str) -> None:
        """Record a part of a name that the policy looks for, unless it matches a consulted
        primitive.
        """
        if part and not any(part in name for name in CONSULTED):
            self.policy.named.add(part)

    # -- calls

    def _called(self, node: ast.Call) -> _Known:
        match node:
            case ast.Call(func=ast.Name(id="str"), args=[inner], keywords=[]):
                value = self.value(inner)
                return value.name if isinstance(value, Primitive) else value
            case ast.Call(
                func=ast.Name(id="set" | "frozenset" | "tuple" | "list"), args=[inner], keywords=[]
            ):
                return self.value(inner)
            case ast.Call(
                func=ast.Attribute(value=owner, attr="startswith" | "endswith" as how), args=[part]
            ):
                name, start = self.value(owner), self.value(part)
                if isinstance(name, str) and isinstance(start, str):
                    self._note_part(start)
                    return name.startswith(start) if how == "startswith" else name.endswith(start)
                return _UNKNOWN
        return self._asked(node)

    def _asked(self, node: ast.Call) -> _Known:
        """Evaluate a call of another policy, or of an object that is an answer."""
        project = self.policy.project
        first = self.value(node.args[0]) if node.args else _UNKNOWN
        values = project.values(self.module, node.func)
        match list(values):
            case [External(name)] if name.rpartition(".")[2] == "Offloadable":
                return Answer.SAVED
            case [External(name)] if isinstance(first, Primitive):
                return _library(name, first.name)
            case [Function() as function] if isinstance(first, Primitive):
                return self.policy.answer_of(function, self.primitive, self.depth + 1)
        if isinstance(node.func, ast.Call) and isinstance(first, Primitive):
            made = {
                policy_of(value.name)
                for value in project.values(self.module, node.func.func)
                if isinstance(value, External)
            }
            # A factory of JAX makes a policy for matrix products or named values.
            if made and None not in made and first.name not in CONSULTED:
                return any(p is not None and p.constant is True for p in made)
        return _UNKNOWN


def _external(name: str) -> _Known:
    """Return the value of a library object: `lax.dot_general_p` is a primitive."""
    last = name.rpartition(".")[2]
    if last in ("Saveable", "Recompute"):
        return Answer.SAVED if last == "Saveable" else Answer.COMPUTED_AGAIN
    if name.startswith("jax.") and (last.endswith("_p") or "_p_" in last):
        return Primitive(last.lstrip("_").removesuffix("_p").replace("_p_", "_"))
    return _UNKNOWN


def _library(name: str, primitive: str) -> _Known:
    """Return what a policy of JAX answers for a primitive."""
    policy = policy_of(name)
    if policy is None or policy.is_made:
        return _UNKNOWN
    if policy.constant is not None:
        return policy.constant
    # Whether a product has batch dimensions depends on its operands.
    return _UNKNOWN if primitive in DOTS else False
