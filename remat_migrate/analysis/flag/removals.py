"""Finds and removes every use of `jax_new_checkpoint` in Python.

The flag reads as True, because the new implementation of `jax.checkpoint` is the only one. Code
that sets the flag is removed; code that depends on it is reduced to the case of True.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from ...codemod.tree.reductions import Reduction
from ...codemod.tree.removal import Removal, plan_removals
from ...errors import SourceError
from ..names.expected_failures import expects_failure
from ..names.mentions import last_name
from ..names.module import Module
from ..project import Project
from .folding import Folding, fold
from .mappings import Mappings
from .names import OWN_OPTION, SETTING, Names, defines_own_option
from .strings import Strings
from .uses import FlagUse, Forms

__all__ = ["FlagUse", "find_flag_uses", "remove_flag_uses"]


_RAISES = frozenset({"update", "read", "exists"})
_CATCHING = frozenset({"AttributeError", "Exception", "BaseException"})
_SPEAKING = re.compile(r"print|log\w*|debug|info|warn\w*|error|exception|skipTest|skip|write")


def find_flag_uses(module: Module, project: Project) -> list[FlagUse]:
    """Find the uses of the flag in a module, in source order.

    Prose, docstrings, the project's own options with the same name, and code in a block that
    expects an error are not uses.
    """
    names = Names(module, project)
    own = project.once(defines_own_option)
    found = [use for use in _recognise(names) if not expects_failure(module, use.node)]
    if own:
        found = [_unless_own(use) for use in found if use.form != "option" or use.change]
    found = _with_folded_reads(module, _with_guards(module, found))
    found = [_with_try(module, use, found) for use in found]
    found = [_outside_f_strings(module, use) for use in found]
    return sorted(found, key=lambda use: module.span(use.node))


def remove_flag_uses(
    module: Module,
    project: Project,
    uses: Sequence[FlagUse],
    is_suppressed: Callable[[int], bool] = lambda offset: False,
) -> list[Removal]:
    """Return the changes that remove `uses` from a module; members of a Removal are indices of
    `uses`.

    A suppressed use stays, with what it needs.
    """
    # Reads in one expression share one change: if one of them stays, so do the others.
    kept = [use.change for use in uses if use.reason or is_suppressed(module.span(use.node).start)]
    changes = [Reduction() if use.change in kept else use.change for use in uses]
    strings = {SETTING.option, SETTING.variable}
    for use in uses:
        if isinstance(use.node, ast.Name | ast.Attribute) and use.form in ("option", "environment"):
            strings.add(Names(module, project).text(use.node))

    return plan_removals(
        module,
        changes,
        is_used_elsewhere=_Importers(module, project).take,
        literals=frozenset(strings),
    )


def _recognise(names: Names) -> Iterator[FlagUse]:
    forms = Forms(names)
    mappings, strings = Mappings(names, forms), Strings(names, forms)
    nodes = names.module.nodes
    for node in nodes:
        use: FlagUse | None = None
        match node:
            case ast.Call():
                use = forms.call(node)
                for keyword in node.keywords:
                    if set_by_keyword := mappings.keyword(node, keyword):
                        yield set_by_keyword
                yield from strings.words(node)
            case ast.Attribute(attr=SETTING.option):
                use = forms.attribute(node)
            case ast.Subscript():
                use = forms.subscript(node)
            case ast.Compare():
                use = forms.membership(node)
            case ast.Dict():
                yield from mappings.entries(node)
            case ast.List() | ast.Tuple() | ast.Set():
                yield from strings.words(node)
                for element in node.elts:
                    if listed := mappings.element(element):
                        yield listed
        if use is not None:
            yield use
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr):
            if isinstance(node, ast.Constant) and not isinstance(node.value, str):
                continue
            if use := strings.string(node):
                yield use


def _unless_own(use: FlagUse) -> FlagUse:
    """Refuse the removal of an option that may be the project's own."""
    if use.form != "option":
        return use
    return replace(use, change=Reduction(), reason=OWN_OPTION, sure=False)


# -- reads


def _with_guards(module: Module, uses: Sequence[FlagUse]) -> list[FlagUse]:
    """Set what existence tests read as: False, unless the test guards a read of the flag."""
    reads = {use.node for use in uses if use.known is not None and use.form != "exists"}
    found: list[FlagUse] = []
    for use in uses:
        if use.form == "exists" and use.known is not None:
            node, value = use.known
            if any(inner in reads for inner in ast.walk(_guarded(module, node))):
                use = replace(use, known=(node, not value))
        found.append(use)
    return found


def _guarded(module: Module, test: ast.expr) -> ast.AST:
    """Return the statement or expression that a test controls."""
    child: ast.AST = test
    region: ast.AST = test
    for around in module.ancestors(test):
        if isinstance(around, ast.BoolOp | ast.UnaryOp):
            region = around
        elif isinstance(around, ast.If | ast.IfExp) and around.test is child:
            return around
        else:
            return region
        child = around
    return region


def _with_folded_reads(module: Module, uses: Sequence[FlagUse]) -> list[FlagUse]:
    known = dict(use.known for use in uses if use.known is not None)
    folded: dict[ast.expr, Folding] = {}
    for folding in fold(known, module.parent):
        folded |= dict.fromkeys(folding.reads, folding)
    found: list[FlagUse] = []
    for use in uses:
        if use.known is not None:
            folding = folded[use.known[0]]
            use = replace(use, change=folding.change, reason=folding.refused)
        found.append(use)
    return found


def _outside_f_strings(module: Module, use: FlagUse) -> FlagUse:
    """Refuse changes inside an f-string other than literals; Python 3.11 has no positions there."""
    inside = any(isinstance(around, ast.JoinedStr) for around in module.ancestors(use.node))
    if not inside or not use.change:
        return use
    texts = [text for _, text in use.change.replace]
    only_replaces = use.change == Reduction(replace=use.change.replace)
    placed = all(_is_placed(module, node) for node, _ in use.change.replace)
    if only_replaces and placed and not any('"' in text for text in texts):
        return use
    return replace(use, change=Reduction(), reason="it is in an f-string: write the value by hand")


def _is_placed(module: Module, node: ast.expr) -> bool:
    try:
        again = ast.parse(module.segment(node), mode="eval").body
    except (SyntaxError, SourceError, ValueError):
        return False
    return ast.dump(again) == ast.dump(node)


# -- try


def _with_try(module: Module, use: FlagUse, uses: Sequence[FlagUse]) -> FlagUse:
    """Reduce a `try` around code that fails today to what runs today."""
    if use.reason or use.form not in _RAISES | {"environment-read"}:
        return use
    statement = module.statement(use.node)
    watch = module.parent(statement)
    if not isinstance(watch, ast.Try) or statement not in watch.body:
        return use
    handler = next((h for h in watch.handlers if _catches(h)), None)
    if handler is None:
        return use
    if statement not in use.change.remove:
        return _with_tried_read(use, statement, watch)
    gone = {node for other in uses for node in other.change.remove}
    rest = [
        s for s in watch.body if s not in gone and not isinstance(s, ast.Import | ast.ImportFrom)
    ]
    if all(map(_is_idle, handler.body)):
        if rest:
            return use
        if watch.finalbody:
            return replace(use, change=use.change | Reduction(suites=((watch, watch.finalbody),)))
        return replace(use, change=use.change | Reduction(remove=(watch,)))
    named = handler.name is not None and any(
        isinstance(n, ast.Name) and n.id == handler.name for n in ast.walk(handler)
    )
    if rest or named or watch.finalbody:
        reason = "since jax 0.3.17 the handler always runs: keep its effects by hand"
        return replace(use, change=Reduction(), reason=reason)
    return replace(use, change=use.change | Reduction(suites=((watch, handler.body),)))


def _with_tried_read(use: FlagUse, statement: ast.stmt, watch: ast.Try) -> FlagUse:
    """Unwrap `try: new = config.flag`, which cannot fail once the value is a literal."""
    value = getattr(statement, "value", None)
    constant = any(node is value for node, _ in use.change.replace)
    if not constant or watch.body != [statement] or watch.finalbody or watch.orelse:
        return use
    return replace(use, change=use.change | Reduction(suites=((watch, watch.body),)))


def _catches(handler: ast.ExceptHandler) -> bool:
    match handler.type:
        case None:
            return True
        case ast.Tuple(elts=kinds):
            return any(last_name(kind) in _CATCHING for kind in kinds)
        case kind:
            return last_name(kind) in _CATCHING


def _is_idle(statement: ast.stmt) -> bool:
    """Return whether a statement of a handler only ignores or reports the error."""
    match statement:
        case ast.Pass() | ast.Raise() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return _SPEAKING.fullmatch(last_name(function)) is not None
    return False


# -- other files


class _Importers:
    """The files of the project that may import names of a module, read on first use."""

    def __init__(self, module: Module, project: Project) -> None:
        self.module = module
        self.project = project
        path = module.source.path
        self.stem = (path.parent.name if module.is_package else path.stem).encode()

    @cached_property
    def texts(self) -> list[bytes]:
        """The contents of those files."""
        path, files = self.module.source.path, self.project.files
        found = dict.fromkeys(files.mentioning([self.stem.decode(errors="surrogateescape")]))
        if self.module.is_package:
            found |= dict.fromkeys(file for file in files.all if path.parent in file.parents)
        found.pop(path, None)
        texts: list[bytes] = []
        for other in found:
            with suppress(SourceError):  # reported where it is a target
                texts.append(files.data(other))
        return texts

    def take(self, name: str) -> bool:
        """Return whether one of the files imports or reads `name`."""
        word, stem = re.escape(name).encode(), re.escape(self.stem)
        pattern = (
            rb"from\s+[\w.]*\b%(stem)b\s+import\s+(?:\([^)]*\b%(name)b\b|[^\n(]*\b%(name)b\b|\*)"
            rb"|\b%(stem)b\.%(name)b\b"
        )
        if self.module.is_package:
            pattern += rb"|from\s+\.+\s+import[^\n]*\b%(name)b\b"
        taken = re.compile(pattern % {b"name": word, b"stem": stem})
        return any(name.encode() in data and taken.search(data) for data in self.texts)
