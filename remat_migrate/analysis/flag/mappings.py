"""The flag in mappings, keyword arguments, and lists of names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ...codemod.tree.reductions import Reduction, is_pure
from ..names.mentions import find_mentions, last_name
from .names import SETTING, Names, is_environment_name
from .uses import SIDE_EFFECTS, FlagUse, Form, Forms, truth

# Functions that set the configuration temporarily: `jtu.with_config`, absl's `flagsaver`.
_CONTEXTS = re.compile(
    r"((jtu|with|set|override|update|use|temp\w*|scoped|local|patch(ed)?)_)?(jax_)?(config|flags?)"
    r"(_context|_override|_scope|_values|saver)?"
)
_MERGING = frozenset({"dict", "ChainMap", "OrderedDict"})
_TO_PROGRAMS = re.compile(r"os\.(exec|spawn|posix_spawn)\w*")


class Mappings:
    """Recognises dict entries, keywords, and list elements of one module."""

    def __init__(self, names: Names, forms: Forms) -> None:
        self.names = names
        self.forms = forms
        self.module = names.module

    # -- entries of dicts

    def entries(self, node: ast.Dict) -> Iterator[FlagUse]:
        """Yield the entries of a dict whose key is the flag or the variable."""
        for key, value in zip(node.keys, node.values, strict=True):
            kind = self.names.key(key)
            if key is not None and kind:
                use = self._entry(node, key, value, kind)
                if use is not None:
                    yield use

    def _entry(self, node: ast.Dict, key: ast.expr, value: ast.expr, kind: str) -> FlagUse | None:
        asked = truth(value)
        if kind == SETTING.variable:
            form: Form = "environment"
            if not self._is_environment(node):
                if isinstance(value, ast.Constant) and asked is None:
                    return None  # a text about the variable
                reason = "this mapping may not be an environment"
                return FlagUse(key, form, asked, reason=reason, sure=False)
        else:
            form = "update"
            if not self._goes_to_config(node):
                return self._option_in_mapping(node, key, asked)
        if not is_pure(value):
            return FlagUse(key, form, asked, reason=SIDE_EFFECTS)
        change = self._emptied(node) if len(node.keys) == 1 else None
        return FlagUse(key, form, asked, change or Reduction(remove=(key,)))

    def _option_in_mapping(
        self, node: ast.Dict, key: ast.expr, asked: bool | None
    ) -> FlagUse | None:
        """Report an option in an unknown mapping, if the mapping has other JAX options."""
        others = [k.value for k in node.keys if isinstance(k, ast.Constant) and k is not key]
        if not any(isinstance(other, str) and other.startswith("jax_") for other in others):
            return None
        reason = "this mapping may not be passed to jax.config"
        return FlagUse(key, "update", asked, reason=reason, sure=False)

    def _is_environment(self, node: ast.expr, depth: int = 0) -> bool:
        """Return whether a mapping, or a name bound to it, is used as an environment."""
        if depth > 4:
            return False
        if isinstance(node, ast.Dict | ast.Call) and self.names.environment(node):
            return True
        holder = self.module.parent(node)
        match holder:
            case ast.keyword(arg=str(name)) if is_environment_name(name):
                return True
            case ast.keyword(arg=name):
                call = self.module.parent(holder)
                if not isinstance(call, ast.Call):
                    return False
                if name in (None, "values") and self._merges(call, node):
                    return True
                return name is None and self._is_environment(call, depth + 1)
            case ast.Call():
                return self._merges(holder, node)
            case ast.AugAssign(target=target, op=ast.BitOr()):
                return self.names.environment(target)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                other = right if node is left else left
                return self.names.environment(other) or self._is_environment(holder, depth + 1)
            case ast.Dict():
                return self._is_entry_of_environment(holder, node, depth)
            case ast.Return():
                function = self.module.enclosing_function(holder)
                return is_environment_name(getattr(function, "name", ""))
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                return self._is_environment_target(target, depth)
            case ast.IfExp() | ast.BoolOp():
                return self._is_environment(holder, depth + 1)
        return False

    def _is_environment_target(self, target: ast.expr, depth: int) -> bool:
        match target:
            case ast.Name(id=name):
                return is_environment_name(name) or any(
                    self._is_environment(load, depth + 1) for load in self._loads(target)
                )
            case ast.Attribute(attr=name):
                return is_environment_name(name)
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                return is_environment_name(name)
        return False

    def _is_entry_of_environment(self, holder: ast.Dict, node: ast.expr, depth: int) -> bool:
        """Return whether a mapping is part of an environment: `{"env": {...}}`, `{**os.environ,
        **{...}}`.
        """
        for key, value in zip(holder.keys, holder.values, strict=True):
            if value is not node:
                continue
            if key is None:
                return self._is_environment(holder, depth + 1)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return is_environment_name(key.value)
        return False

    def _merges(self, call: ast.Call, node: ast.expr) -> bool:
        """Return whether a call merges a mapping into an environment or passes it to a program."""
        match call.func:
            case ast.Attribute(value=base, attr="update"):
                return self.names.environment(base)
            case ast.Attribute(attr="dict") if self._is_patch(call):
                return True
        if any(_TO_PROGRAMS.fullmatch(name) for name in self.names.function(call.func)):
            return True
        others = [argument for argument in call.args if argument is not node]
        return last_name(call.func) in _MERGING and any(map(self.names.environment, others))

    def _is_patch(self, call: ast.Call) -> bool:
        """Return whether a call is `mock.patch.dict(os.environ, ...)`."""
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="patch") | ast.Attribute(attr="patch")),
                args=[first, *_],
            ):
                path = isinstance(first, ast.Constant) and first.value == "os.environ"
                return path or self.names.environment(first)
        return False

    def _goes_to_config(self, node: ast.expr) -> bool:
        """Return whether the items of a mapping are passed to `jax.config.update`."""
        for load in [node, *self._names_of(node)]:
            holder = self.module.parent(load)
            match holder:
                case ast.Attribute(attr="items"):
                    call = self.module.parent(holder)
                    if isinstance(call, ast.Call) and self._loop_updates(call, pairs=True):
                        return True
                case ast.keyword(arg=None):
                    call = self.module.parent(holder)
                    if isinstance(call, ast.Call) and self._is_context(call):
                        return True
        return False

    def _names_of(self, node: ast.expr) -> list[ast.Name]:
        """Return the uses of the name that a value is assigned to."""
        holder = self.module.parent(node)
        match holder:
            case (
                ast.Assign(targets=[ast.Name() as name]) | ast.AnnAssign(target=ast.Name() as name)
            ):
                return self._loads(name)
        return []

    def _loads(self, target: ast.Name) -> list[ast.Name]:
        return [
            node
            for node in find_mentions(self.module).names.get(target.id, ())
            if any(_binds(b.node, target) for b in self.module.reaching(node))
        ]

    # -- what is left of nothing

    def _emptied(self, node: ast.expr) -> Reduction | None:
        """Return what to remove with an empty mapping; None: keep it, empty."""
        holder = self.module.parent(node)
        match holder:
            case ast.Call():
                return self._emptied_call(holder, 2 if self._is_patch(holder) else 1)
            case ast.Attribute(attr="items"):
                call = self.module.parent(holder)
                loop = self.module.parent(call) if call is not None else None
                if isinstance(loop, ast.For) and not loop.orelse:
                    return Reduction(remove=(loop,))
        return self.forms.emptied(node)

    def _emptied_call(self, call: ast.Call, arguments: int) -> Reduction | None:
        """Return what to remove with a call that has only `arguments` arguments left."""
        if len(call.args) + len(call.keywords) > arguments:
            return None
        if not self._is_patch(call):
            return self.forms.without(call) if last_name(call.func) == "update" else None
        item = self.module.parent(call)
        block = self.module.parent(item) if isinstance(item, ast.withitem) else None
        if isinstance(block, ast.With | ast.AsyncWith) and self._changes_environment(block.body):
            return None  # `patch.dict` also undoes what the block changes
        return self.forms.without(call)

    def _changes_environment(self, body: Sequence[ast.stmt]) -> bool:
        for statement in body:
            own = [n for n in ast.walk(statement) if isinstance(n, ast.Constant)]
            if any(node.value == SETTING.variable for node in own):
                continue
            for node in ast.walk(statement):
                if last_name(node) in ("environ", "putenv", "setenv", "unsetenv"):
                    return True
        return False

    # -- keyword arguments

    def keyword(self, call: ast.Call, keyword: ast.keyword) -> FlagUse | None:
        """Recognise `with_config(jax_new_checkpoint=False)` or `dict(os.environ,
        JAX_NEW_CHECKPOINT="0")`.
        """
        if keyword.arg not in (SETTING.option, SETTING.variable):
            return None
        asked = truth(keyword.value)
        form: Form = "update"
        if keyword.arg == SETTING.variable:
            form = "environment"
            if not self._merges(call, call) and not self._is_environment(call):
                if self.names.takes_anything(call.func, keyword.arg) is False:
                    return None  # a parameter of one's own
                reason = "it is unclear what the function does with the keyword"
                return FlagUse(keyword, form, asked, reason=reason, sure=False)
        elif not self._is_context(call):
            return None
        if not is_pure(keyword.value):
            return FlagUse(keyword, form, asked, reason=SIDE_EFFECTS)
        change: Reduction | None = None
        if form == "update" and len(call.keywords) == 1 and not call.args:
            change = self.forms.without(call)
        elif form == "environment":
            change = self._emptied_call(call, 2 if self._is_patch(call) else 1)
        return FlagUse(keyword, form, asked, change or Reduction(remove=(keyword,)))

    def _is_context(self, call: ast.Call) -> bool:
        """Return whether a call sets JAX's configuration by keyword."""
        name = last_name(call.func)
        functions = self.names.function(call.func)
        if functions and all(f.startswith(("jax.", "absl.testing.flagsaver")) for f in functions):
            return True
        named = _CONTEXTS.fullmatch(name) is not None
        return named and self.names.takes_anything(call.func, SETTING.option) is not False

    # -- lists of names

    def element(self, node: ast.expr) -> FlagUse | None:
        """Recognise the name of the flag or the variable in a list that a loop iterates over."""
        holder = self.module.parent(node)
        kind = self.names.key(node)
        if not isinstance(holder, ast.List | ast.Tuple | ast.Set) or not kind:
            return None
        form: Form = "update" if kind == SETTING.option else "environment"
        outer = self.module.parent(holder)
        whole = holder
        item: ast.expr = node
        pairs = False
        if isinstance(outer, ast.List | ast.Tuple | ast.Set) and node is holder.elts[0]:
            whole, item, pairs = outer, holder, True
        if self._is_pair_update(whole):
            return FlagUse(node, form, change=self._without_item(whole, item))
        for loop in [whole, *self._names_of(whole)]:
            if self._loop_updates(loop, pairs=pairs, key=kind):
                if len(whole.elts) == 1 and not pairs:
                    return None  # the loop's name is the flag: what it does is found there
                return FlagUse(node, form, change=self._without_item(whole, item))
        others = [e.value for e in whole.elts if isinstance(e, ast.Constant) and e is not node]
        if any(isinstance(other, str) and other.startswith(("jax_", "JAX_")) for other in others):
            reason = "it is unclear how these names are used"
            return FlagUse(node, form, reason=reason, sure=False)
        return None

    def _is_pair_update(self, whole: ast.expr) -> bool:
        """Return whether a list is passed to an update: `os.environ.update([(name, value)])`."""
        call = self.module.parent(whole)
        return isinstance(call, ast.Call) and whole in call.args and self._merges(call, whole)

    def _without_item(self, whole: ast.List | ast.Tuple | ast.Set, item: ast.expr) -> Reduction:
        holder = self.module.parent(whole)
        if len(whole.elts) == 1:
            if isinstance(holder, ast.For) and not holder.orelse:
                return Reduction(remove=(holder,))
            if isinstance(holder, ast.Call) and (change := self._emptied_call(holder, 1)):
                return change
        return Reduction(remove=(item,))

    def _loop_updates(self, iterable: ast.expr, *, pairs: bool, key: str = SETTING.option) -> bool:
        """Return whether a loop over names, or pairs of name and value, sets or reads each."""
        loop = self.module.parent(iterable)
        if not isinstance(loop, ast.For | ast.comprehension) or loop.iter is not iterable:
            return False
        target = loop.target
        if pairs:
            if not isinstance(target, ast.Tuple) or not target.elts:
                return False
            target = target.elts[0]
        if not isinstance(target, ast.Name):
            return False
        body = loop if isinstance(loop, ast.For) else self.module.parent(loop)
        assert body is not None
        return any(
            self._sets(node, key)
            for node in ast.walk(body)
            if isinstance(node, ast.Name)
            and node.id == target.id
            and isinstance(node.ctx, ast.Load)
        )

    def _sets(self, name: ast.Name, key: str) -> bool:
        """Return whether a name would set or read the flag if it were the flag's name."""
        self.names.assumed[name] = key
        try:
            holder = self.module.parent(name)
            use: FlagUse | None = None
            if isinstance(holder, ast.Call):
                use = self.forms.call(holder)
            elif isinstance(holder, ast.Subscript):
                use = self.forms.subscript(holder)
            elif isinstance(holder, ast.Compare):
                use = self.forms.membership(holder)
        finally:
            del self.names.assumed[name]
        return use is not None and use.sure


def _binds(statement: ast.AST, target: ast.Name) -> bool:
    return any(node is target for node in ast.walk(statement))
