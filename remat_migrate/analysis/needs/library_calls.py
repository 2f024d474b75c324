"""The arguments that calls of builtins and of library functions need at trace time."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...libraries import library_arguments
from ...libraries.library_arguments import is_array_attribute
from ...libraries.library_needs import LibraryFunction, always_concrete, needs_of
from ..values.values import Container
from .dependence import CONSTANTS, UNSEEN, Dependences
from .dependence_analysis import DependenceAnalysis
from .items import element
from .need import Need
from .object_uses import is_part

# Builtins that compare the elements of their argument.
_ON_ELEMENTS = frozenset({"max", "min", "sorted", "any", "all"})


class LibraryCalls(DependenceAnalysis):
    """Finds the needs of calls whose callee is not code of the project."""

    def _need(
        self,
        node: ast.expr,
        reason: str,
        certain: bool = True,
        found: Dependences | None = None,
    ) -> Iterator[Need]:
        if found is None:
            found = self.dependences(node)
        for d in sorted(found, key=lambda d: (d.parameter, str(d.index), bool(d.operations))):
            traced = d.traced
            is_result = d.is_array and bool(traced) and not self.is_compiled(node)
            if is_result or d.parameter not in (CONSTANTS, UNSEEN):
                yield Need(
                    d.parameter,
                    d.index,
                    self.module,
                    node,
                    reason,
                    certain,
                    traced=traced,
                    is_result=is_result,
                )

    def _needs_of(
        self, nodes: Iterable[ast.expr], reason: str, certain: bool = True
    ) -> Iterator[Need]:
        for node in nodes:
            yield from self._need(node, reason, certain)

    def _opaque_needs(self, nodes: Iterable[ast.expr], reason: str) -> Iterator[Need]:
        for need in self._needs_of(nodes, reason, certain=False):
            yield replace(need, opaque=True)

    def _object_need(self, node: ast.expr) -> Iterator[Need]:
        """Yield the need of a value that is called, or a method of which is."""
        for need in self._need(node, "it is called", certain=False):
            yield replace(need, called=True)

    def _keyword_needs(self, node: ast.Call) -> Iterator[Need]:
        for keyword in node.keywords:
            if keyword.arg in library_arguments.MODULE_KEYWORDS or always_concrete(keyword.arg):
                yield from self._need(keyword.value, f"`{keyword.arg}=`")

    def _external_needs(self, name: str, node: ast.Call) -> Iterator[Need]:
        last = name.rpartition(".")[2]
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if name.startswith("builtins."):
            if last in _ON_ELEMENTS and len(node.args) == 1:
                found = self.operator(node, self._compared(node))
                yield from self._need(node.args[0], f"`{last}()`", found=found)
            elif last in _ON_ELEMENTS:
                for arg in arguments:
                    found = self.operator(node, self.dependences(arg))
                    yield from self._need(arg, f"`{last}()`", found=found)
            elif last in library_arguments.CONCRETE_BUILTINS:
                yield from self._needs_of(arguments, f"`{last}()`")
            elif last in ("getattr", "setattr", "hasattr") and len(node.args) > 1:
                yield from self._need(node.args[1], f"`{last}()`")
                for need in self._need(node.args[0], f"`{last}()`", certain=False):
                    yield replace(need, type_test=self._is_type_test(last, node))
            elif last in library_arguments.IDENTIFYING_BUILTINS:
                for need in self._needs_of(arguments, f"`{last}()`", certain=False):
                    yield replace(need, type_test=self._is_type_test(last, node))
        elif name in library_arguments.STATIC_RESULTS or name in library_arguments.IDENTITIES:
            return
        elif library_arguments.accepts_tracers(name):
            yield from self._needs_of(arguments[1:], f"an argument of `{name}`", certain=False)
        elif name.startswith(library_arguments.CONCRETE_MODULES):
            yield from self._needs_of(arguments, f"`{name}`, which does not accept tracers")
        elif (function := needs_of(name)) is not None:
            yield from self._library_needs(function, last, node)
        elif name.startswith(("jax.", "flax.", "haiku.", "equinox.")):
            yield from self._keyword_needs(node)
            # A Python value may be an option, and is accepted as well where it is data.
            is_field = last[:1].isupper() and name.startswith(("flax.linen.", "haiku."))
            reason = f"a field of `{last}`" if is_field else f"an argument of `{last}`"
            yield from self._needs_of(arguments, reason, certain=is_field)
        elif name.startswith("itertools."):
            yield from self._needs_of(arguments, f"`{name}`", certain=False)
        elif not name.startswith(("functools.", "typing.", "contextlib.")):
            yield from self._opaque_needs(arguments, f"`{name}`, which cannot be resolved")

    def _library_needs(
        self, function: LibraryFunction, name: str, node: ast.Call
    ) -> Iterator[Need]:
        """Yield the needs of a function's arguments by the table."""
        for argument, parameter in function.passed(node):
            match parameter.takes:
                case "traced":
                    pass
                case "concrete":
                    yield from self._need(argument, f"`{parameter.name}` of `{name}`")
                case "function" if is_part(self, argument):
                    yield from self._object_need(argument)
                case _:
                    yield from self._need(argument, f"an argument of `{name}`", certain=False)
        if name == "fori_loop":
            # With traced bounds it is a while loop, which has no gradient.
            bounds = [k.value for k in node.keywords if k.arg in ("lower", "upper")]
            for arg in (*node.args[:2], *bounds):
                yield from self._need(arg, "bounds of a differentiated loop", certain=False)

    def _compared(self, node: ast.Call) -> Dependences:
        """Return the dependences of what `sorted(x)`, `max(x)` and the like compare."""
        match node.args[0]:
            case ast.Call(func=ast.Attribute(attr="items"), args=[]) as pairs:
                return element(self, pairs, (0,))
        return element(self, node.args[0])

    def _instance_needs(self, name: str, node: ast.Call) -> Iterator[Need]:
        last = name.rpartition(".")[2]
        for parameter, position in library_arguments.INSTANCES[name]:
            for keyword in node.keywords:
                if keyword.arg == parameter:
                    yield from self._need(keyword.value, f"`{parameter}` of {last}")
            if position < len(node.args):
                yield from self._need(node.args[position], f"`{parameter}` of {last}")

    def _is_type_test(self, name: str, node: ast.Call) -> bool:
        """Return whether a call of a builtin may tell a number or an array from a tracer."""
        match name, node.args, self.module.parent(node):
            case "hash", _, _:
                return True  # a tracer has no hash
            case "hasattr", [_, ast.Constant(value=str(attribute))], _:
                return is_array_attribute(attribute)
            case "isinstance", [_, types], _:
                return self._tests_for_number(types)
            case "type", [_], ast.Compare(left=left, comparators=others):
                return any(self._tests_for_number(n) for n in (left, *others) if n is not node)
        return False

    def _tests_for_number(self, types: ast.expr) -> bool:
        """Return whether types are those of numbers or arrays, not of containers or classes."""
        values = self.evaluator.values(self.module, types)
        parts = [types, *(v.node for v in values if isinstance(v, Container))]
        names = {getattr(n, "id", getattr(n, "attr", "")) for p in parts for n in ast.walk(p)}
        return bool(names & library_arguments.NUMBER_TYPES)
