"""Finds the uses of the flag in Python, and what removes each.

A statement, list item, mapping item, or keyword that does nothing but set the flag is removed. Any
other mention in code is reported with the reason why it is left to the user.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...codemod.tree.reductions import is_pure
from ...formats import ATOM, NAME, OPTION, VARIABLE
from ..names.expected_failures import expects_failure
from ..names.mentions import find_mentions, last_name
from ..names.module import Module
from ..project import Project
from ..sites.references import is_used_elsewhere
from .names import NAMES, OWN_OPTION, Names, defines_own_option, is_environment_name

# The effect of a use on current JAX: `update` and `read` raise AttributeError, `option` ends the
# program; `attribute`, `environment`, and `environment-read` have no effect. `name` is unclear.
Form = Literal["update", "read", "attribute", "environment", "environment-read", "option", "name"]

_READ = "keep the code for the new implementation, the only one since jax 0.3.17"
_UNCLEAR = "it is unclear what this does with the flag: remove it by hand"
_MAPPING = "it is unclear what this mapping is used for: remove the item by hand"
_SIDE_EFFECTS = "evaluating the value may have side effects: keep them by hand"
_NESTED = "it is part of another expression: remove it by hand"
_TRY = "a `try` around it depends on whether it fails: keep what runs today"
_TESTED = "a test runs for each of these values: remove this one by hand"
_STRING = "it is part of a longer string: remove it by hand"
_POSITIONS = "other code uses positions in this list: remove it by hand"
_PARTIAL = "remove it with its calls"

# A mention in a string that is not prose: `--jax_new_checkpoint`, `JAX_NEW_CHECKPOINT=`, quotes.
_TOLD = re.compile(
    rf"--?(?:no)?{OPTION}|(?:{OPTION}|{VARIABLE})\s*[=:]|[\"'\\](?:{OPTION}|{VARIABLE})|\$\{{?{VARIABLE}"
)
_SPEAKS = re.compile(
    r"p?print|echo|log\w*|debug|info|warn\w*|error|exception|critical|fatal|fail|skip\w*|xfail"
    r"|secho|[A-Z]\w*(Error|Warning|Exception|Test)"
)
_PROSE_NAME = re.compile(
    r"(?i)(\w*_)?(help|usage|docs?|msg|message|description|desc|epilog|reason|title|label|comment"
    r"|note|readme)(_\w+)?"
)
_CONFIG_READS = frozenset({"read", "_read", "bool_env", "getattr", "hasattr"})
_CONFIG_WRITES = frozenset({"update", "setattr", "delattr", "object"})
_ENVIRONMENT_WRITES = frozenset(
    {
        "putenv", "unsetenv", "setenv", "delenv", "setitem", "delitem", "pop", "setdefault",
        "__setitem__", "__delitem__",
    }
)  # fmt: skip
_VALUES = frozenset({"true", "false", "True", "False", "0", "1"})
_CONTEXTS = re.compile(r"\w*(config|flags?)(_context|_override|_scope|_values|saver)?")


@dataclass(frozen=True, slots=True)
class FlagUse:
    """One use of the flag.

    Attributes:
        node: the expression or keyword to report.
        form: what it does.
        remove: the node to remove; None if `reason` says why it is left to the user.
        reason: why it is left to the user; "" if it is removed.
        sure: whether it certainly is this flag.
    """

    node: ast.expr | ast.keyword
    form: Form
    remove: ast.AST | None = None
    reason: str = ""
    sure: bool = True


def find_flag_uses(module: Module, project: Project) -> list[FlagUse]:
    """Find the uses of the flag in a module, in source order.

    Prose, docstrings, and code in a block that expects an error are not uses.
    """
    own = OWN_OPTION if project.once(defines_own_option) else ""
    read = project.once(_config_reader)
    kept: dict[Form, str] = {
        "option": own,
        "environment": project.once(read_reason),
        "attribute": f"{read} reads the attribute" if read else "",
    }
    return [
        replace(use, remove=None, reason=why)
        if (why := kept.get(use.form)) and (use.remove or why is own)
        else use
        for use in _all_uses(module, project)
    ]


def read_reason(project: Project) -> str:
    """Return why the environment variable must stay set; "" if no code reads it."""
    place = _place(project, "environment-read")
    return f"{place} reads the variable" if place else ""


def _config_reader(project: Project) -> str:
    return _place(project, "read")


def _place(project: Project, form: Form) -> str:
    for module in project.mentioning(NAMES):
        for use in _all_uses(module, project):
            if use.form == form:
                source, span = module.location(use.node)
                return f"{source.path.name}:{source.position(span.start)[0]}"
    return ""


def _all_uses(module: Module, project: Project) -> list[FlagUse]:
    finder = _Finder(Names(module, project))
    found = [use for use in finder.find() if not expects_failure(module, use.node)]
    return sorted(found, key=lambda use: module.span(use.node))


def is_needed(project: Project, module: Module, name: str) -> bool:
    """Return whether an import stays although the module no longer uses it.

    Importing a module of the project may do more than define names.
    """
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom | ast.Import):
            for alias in node.names:
                if (alias.asname or alias.name.partition(".")[0]) == name:
                    source = node.module if isinstance(node, ast.ImportFrom) else alias.name
                    if (source or "").partition(".")[0] not in ("jax", *sys.stdlib_module_names):
                        return True
    return is_used_elsewhere(project, module, name)


class _Finder:
    """Finds the uses in one module."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.module = names.module
        self.parent = names.module.parent

    def find(self) -> Iterator[FlagUse]:
        """Yield the uses, in no particular order."""
        for node in self.module.nodes:
            match node:
                case ast.keyword(arg=name) if name in NAMES:
                    yield from self._keyword(node)
                case ast.Attribute(attr=attr) if attr == OPTION:
                    yield from self._attribute(node)
                case ast.Constant(value=str(text)) if text not in NAMES:
                    if NAME.search(text):
                        yield from self._text(node, text)
                case ast.Constant() | ast.Name() | ast.Attribute():
                    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                        continue
                    if key := self.names.key(node):
                        yield from self._mention(node, key)

    # -- the name of the flag, as a string

    def _mention(self, node: ast.expr, key: str) -> Iterator[FlagUse]:
        holder = self.parent(node)
        form: Form = "update" if key == OPTION else "environment"
        match holder:
            case ast.keyword(arg="name" | "key"):
                call = self.parent(holder)
                if isinstance(call, ast.Call):
                    yield from self._call(call, node, key)
            case ast.Call() if holder.func is not node:
                yield from self._call(holder, node, key)
            case ast.Subscript(slice=index) if index is node:
                yield self._subscript(holder, node, key)
            case ast.Compare():
                known = form == "environment" or self._is_config(holder.comparators[0])
                read: Form = "environment-read" if form == "environment" else "read"
                yield FlagUse(node, read if known else "name", reason=_READ, sure=known)
            case ast.Dict() if node in holder.keys:
                yield from self._item(holder, node, key)
            case ast.List() | ast.Tuple() | ast.Set():
                yield self._element(holder, node, form)
            case ast.Assign() | ast.AnnAssign() if isinstance(node, ast.Constant):
                if spare := self._spare(holder):
                    yield FlagUse(node, "name", spare)  # what uses the name is found there
            case ast.Attribute() | ast.Expr():
                return  # part of `names.FLAG`, or a docstring
            case _:
                yield FlagUse(node, "name", reason=_UNCLEAR, sure=False)

    def _spare(self, statement: ast.AST | None) -> ast.AST | None:
        """Return a statement if it only binds a name that nothing uses."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                read = {n.attr for n in self.module.nodes if isinstance(n, ast.Attribute)}
                read |= {str(n.value) for n in self.module.nodes if isinstance(n, ast.Constant)}
                if name in find_mentions(self.module).names or name in read:
                    return None
                used = is_used_elsewhere(self.names.project, self.module, name)
                in_class = isinstance(self.parent(statement), ast.ClassDef)
                return None if used or in_class else statement
        return None

    def _is_config(self, node: ast.expr) -> bool:
        base = node.value if isinstance(node, ast.Attribute) else node
        return "config" in (self.names.config(node), self.names.config(base))

    # -- calls

    def _call(self, call: ast.Call, node: ast.expr, key: str) -> Iterator[FlagUse]:
        method, functions = last_name(call.func), self.names.function(call.func)
        position = call.args.index(node) if node in call.args else 0
        values = [*call.args[position + 1 :], *(k.value for k in call.keywords)]
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if _SPEAKS.fullmatch(method):
            return
        if method == "partial" and call.args and self._updates(call.args[0]):
            spare = self._spare(self.parent(call))
            yield FlagUse(node, "update", spare, "" if spare else _PARTIAL)
            yield from self._calls_of(call)
        elif key == OPTION:
            of = call.args[0] if position else owner
            if position == 0 and self._updates(call.func):
                yield self._removed(call, node, "update", values)
            elif of is not None and method in _CONFIG_READS | _CONFIG_WRITES:
                yield from self._config_call(call, node, method, of, values)
            else:
                reads = any(f.rpartition(".")[2] in _CONFIG_READS for f in functions)
                form: Form = "read" if reads else "name"
                yield FlagUse(node, form, reason=_READ if reads else _UNCLEAR, sure=reads)
        elif method in ("getenv", "bool_env") or "os.getenv" in functions:
            yield FlagUse(node, "environment-read", reason=_READ)
        else:
            mapping = call.args[0] if method in ("setitem", "delitem") else owner
            known = method in ("setenv", "delenv", "putenv", "unsetenv") or (
                mapping is not None and self.names.environment(mapping)
            )
            if known and method in _ENVIRONMENT_WRITES:
                yield self._removed(call, node, "environment", values)
            elif known or any(f.startswith("os.environ.") for f in functions):
                yield FlagUse(node, "environment-read", reason=_READ)
            else:
                yield FlagUse(node, "name", reason=_UNCLEAR, sure=False)

    def _config_call(
        self, call: ast.Call, node: ast.expr, method: str, of: ast.expr, values: Sequence[ast.expr]
    ) -> Iterator[FlagUse]:
        """Yield a call that reads or sets the flag as an attribute of `of`."""
        owner = self.names.config(of)
        if owner == "other":
            return
        if owner == "unknown":
            yield FlagUse(node, "name", reason="this may not be jax.config", sure=False)
        elif method in _CONFIG_READS:
            yield FlagUse(node, "read", reason=_READ)
        else:
            yield self._removed(call, node, "attribute", values)

    def _updates(self, function: ast.expr) -> bool:
        """Return whether a function is `jax.config.update`."""
        return "jax.config.update" in self.names.function(function)

    def _calls_of(self, partial: ast.Call) -> Iterator[FlagUse]:
        """Yield the calls of the name that `partial(jax.config.update, flag)` is assigned to."""
        match self.parent(partial):
            case ast.Assign(targets=[ast.Name(id=name)]):
                for load in find_mentions(self.module).names.get(name, ()):
                    call = self.parent(load)
                    bound = any(b.value is partial for b in self.module.reaching(load))
                    if bound and isinstance(call, ast.Call) and call.func is load:
                        yield self._removed(call, load, "update", call.args)
            case ast.Call() as call:
                yield self._removed(call, partial, "update", call.args)

    def _removed(
        self, call: ast.Call, node: ast.expr, form: Form, values: Sequence[ast.expr]
    ) -> FlagUse:
        """Return the use for a call that is removed where it is all of a statement."""
        holder = self.parent(call)
        remove: ast.AST
        match holder:
            case ast.Expr() | ast.withitem(optional_vars=None):
                remove = holder
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if (
                call in holder.decorator_list and last_name(call.func) != "object"
            ):
                remove = call
            case _:
                return FlagUse(node, form, reason=_NESTED)
        if not all(map(is_pure, values)):
            return FlagUse(node, form, reason=_SIDE_EFFECTS)
        return self._guarded(FlagUse(node, form, remove))

    def _guarded(self, use: FlagUse) -> FlagUse:
        """Return a use with what handles its failure, if that does nothing else."""
        holder = self.parent(use.remove) if use.remove else None
        match holder:
            case ast.Try(body=body, handlers=[_, *_]) if use.remove in body:
                idle = all(isinstance(s, ast.Pass) for h in holder.handlers for s in h.body)
                if len(body) == 1 and idle and not holder.orelse and not holder.finalbody:
                    return replace(use, remove=holder)
            case ast.With(items=items, body=body) if any(
                "suppress" in ast.dump(item.context_expr) for item in items
            ):
                if len(body) == 1:
                    return use
            case _:
                return use
        if use.form == "environment" and not isinstance(use.remove, ast.Delete):
            return use  # it never fails
        return FlagUse(use.node, use.form, reason=_TRY)

    # -- attributes, subscripts, keywords

    def _attribute(self, node: ast.Attribute) -> Iterator[FlagUse]:
        owner = self.names.config(node.value)
        if owner == "other":
            return
        if owner == "unknown":
            yield FlagUse(node, "name", reason="this may not be jax.config", sure=False)
        elif isinstance(node.ctx, ast.Load):
            yield FlagUse(node, "read", reason=_READ)
        else:
            yield self._target(node, node, "attribute")

    def _subscript(self, subscript: ast.Subscript, node: ast.expr, key: str) -> FlagUse:
        mapping = subscript.value
        if key == OPTION and self._is_config(mapping):
            forms: tuple[Form, Form] = "attribute", "read"
        elif key == VARIABLE and self.names.environment(mapping):
            forms = "environment", "environment-read"
        else:
            return FlagUse(node, "name", reason=_MAPPING, sure=False)
        if isinstance(subscript.ctx, ast.Load):
            return FlagUse(node, forms[1], reason=_READ)
        return self._target(subscript, node, forms[0])

    def _target(self, target: ast.expr, node: ast.expr, form: Form) -> FlagUse:
        """Return the use for the target of an assignment or deletion."""
        statement = self.parent(target)
        match statement:
            case ast.Assign(targets=[_], value=value) | ast.AugAssign(value=value):
                if not is_pure(value):
                    return FlagUse(node, form, reason=_SIDE_EFFECTS)
                return self._guarded(FlagUse(node, form, statement))
            case ast.Delete(targets=[_]):
                return self._guarded(FlagUse(node, form, statement))
        return FlagUse(node, form, reason="it is one of several targets: remove it by hand")

    def _keyword(self, keyword: ast.keyword) -> Iterator[FlagUse]:
        """Yield `with_config(jax_new_checkpoint=False)`, `dict(os.environ, JAX_NEW_CHECKPOINT="0")`
        and the like.
        """
        call = self.parent(keyword)
        if not isinstance(call, ast.Call) or not self.names.takes_anything(
            call.func, keyword.arg or ""
        ):
            return  # a parameter of a function of the project
        functions = self.names.function(call.func)
        if keyword.arg == OPTION:
            form: Form = "update"
            known = _CONTEXTS.fullmatch(last_name(call.func)) is not None or any(
                f.startswith("jax.") for f in functions
            )
        else:
            form = "environment"
            known = self._is_environment(call) or self._merges(call)
        if not known:
            yield FlagUse(keyword, "name", reason=_UNCLEAR, sure=False)
        elif not is_pure(keyword.value):
            yield FlagUse(keyword, form, reason=_SIDE_EFFECTS)
        elif len(call.keywords) == 1 and not call.args and isinstance(self.parent(call), ast.Expr):
            yield FlagUse(keyword, form, self.parent(call))
        else:
            yield FlagUse(keyword, form, keyword)

    # -- items of mappings and lists

    def _item(self, mapping: ast.Dict, node: ast.expr, key: str) -> Iterator[FlagUse]:
        value = mapping.values[mapping.keys.index(node)]
        is_variable = key == VARIABLE
        if isinstance(value, ast.Constant) and re.search(r"\w\s+\w", str(value.value)):
            return  # a text about the flag
        known = self._is_environment(mapping) if is_variable else self._is_looped(mapping, key)
        if not known:
            yield FlagUse(node, "name", reason=_MAPPING, sure=False)
        elif not is_pure(value):
            yield FlagUse(node, "environment" if is_variable else "update", reason=_SIDE_EFFECTS)
        else:
            remove = self._emptied(mapping) if len(mapping.keys) == 1 else None
            yield FlagUse(node, "environment" if is_variable else "update", remove or node)

    def _element(
        self, holder: ast.List | ast.Tuple | ast.Set, node: ast.expr, form: Form
    ) -> FlagUse:
        """Return the use for a name, or a pair of name and value, in a list."""
        outer = self.parent(holder)
        whole, item = holder, node
        if isinstance(outer, ast.List | ast.Tuple | ast.Set) and node is holder.elts[0]:
            whole, item = outer, holder
        call = self.parent(whole)
        if isinstance(call, ast.Call) and last_name(call.func) in ("parametrize", "product"):
            return FlagUse(node, form, reason=_TESTED)
        merged = isinstance(call, ast.Call) and item is holder and self._merges(call)
        key = OPTION if form == "update" else VARIABLE
        if not merged and not self._is_looped(whole, key, pairs=item is holder):
            return FlagUse(node, "name", reason=_UNCLEAR, sure=False)
        if not is_pure(item):
            return FlagUse(node, form, reason=_SIDE_EFFECTS)
        remove = self._emptied(whole) if len(whole.elts) == 1 else None
        return FlagUse(node, form, remove or item)

    def _emptied(self, node: ast.expr) -> ast.AST | None:
        """Return the statement that does nothing without the items of a list or mapping."""
        match self.parent(node):
            case ast.Call(args=[_], keywords=[]) as call:
                statement = self.parent(call)
                merges = last_name(call.func) in ("update", "extend")
                return statement if merges and isinstance(statement, ast.Expr) else None
            case ast.AugAssign() | ast.For(orelse=[]) as statement:
                return statement
            case ast.Attribute(attr="items") as method:
                items = self.parent(method)
                return self._emptied(items) if isinstance(items, ast.Call) else None
        return None

    def _merges(self, call: ast.Call) -> bool:
        """Return whether a call merges its arguments into an environment."""
        match call.func:
            case ast.Attribute(value=base, attr="update"):
                return self.names.environment(base)
            case ast.Attribute(value=patch, attr="dict") if last_name(patch) == "patch":
                first = call.args[0] if call.args else None
                path = isinstance(first, ast.Constant) and first.value == "os.environ"
                return path or (first is not None and self.names.environment(first))
        return self.names.environment(call)

    def _is_environment(self, node: ast.expr) -> bool:
        """Return whether a mapping is used as an environment."""
        if self.names.environment(node):
            return True
        holder = self.parent(node)
        match holder:
            case ast.keyword(arg=str(name)):
                return is_environment_name(name)
            case ast.keyword():
                call = self.parent(holder)
                return isinstance(call, ast.Call) and (
                    self._merges(call) or self._is_environment(call)
                )
            case ast.Call():
                return self._merges(holder)
            case ast.AugAssign(target=target, op=ast.BitOr()):
                return self.names.environment(target)
            case ast.BinOp(op=ast.BitOr()):
                return self._is_environment(holder)
            case ast.Dict():
                for key, value in zip(holder.keys, holder.values, strict=True):
                    if value is node and isinstance(key, ast.Constant):
                        return is_environment_name(str(key.value))
                return self._is_environment(holder)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                    return is_environment_name(str(target.slice.value))
                return is_environment_name(last_name(target))
        return False

    def _is_looped(self, node: ast.expr, key: str, *, pairs: bool = True) -> bool:
        """Return whether a list or mapping is only looped over to set each of its items."""
        uses: Sequence[ast.expr] = [node]
        match self.parent(node):
            case ast.Assign(targets=[ast.Name(id=name)]):
                if is_used_elsewhere(self.names.project, self.module, name):
                    return False
                uses = find_mentions(self.module).names.get(name, ())
        return bool(uses) and all(self._is_set_by_loop(use, key, pairs) for use in uses)

    def _is_set_by_loop(self, iterable: ast.expr, key: str, pairs: bool) -> bool:
        method = self.parent(iterable)
        if isinstance(method, ast.Attribute) and method.attr == "items":
            call = self.parent(method)
            iterable = call if isinstance(call, ast.Call) else iterable
        match self.parent(iterable):
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), *_]), body=body) if pairs:
                pass
            case ast.For(target=ast.Name(id=name), body=body) if not pairs:
                pass
            case _:
                return False
        nodes = [n for statement in body for n in ast.walk(statement)]
        reads = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
        return bool(reads) and all(self._sets(read, key) for read in reads)

    def _sets(self, name: ast.Name, key: str) -> bool:
        """Return whether a statement sets what is named by a variable: `config.update(name, 1)`."""
        match self.parent(name):
            case ast.Call(func=function, args=[first, *_]) as call if first is name:
                if key == OPTION:
                    return self._updates(function)
                owner = function.value if isinstance(function, ast.Attribute) else None
                known = owner is not None and self.names.environment(owner)
                return known and isinstance(self.parent(call), ast.Expr)
            case ast.Subscript(value=mapping, ctx=ast.Store()):
                return key == VARIABLE and self.names.environment(mapping)
        return False

    # -- longer strings

    def _text(self, node: ast.Constant, text: str) -> Iterator[FlagUse]:
        """Yield an argument of a command line, or a string that holds more than the flag."""
        holder = self.parent(node)
        form: Form = "option" if OPTION in text else "environment"
        if isinstance(holder, ast.Expr) or not _TOLD.search(text) or self._is_prose(node):
            return
        if not ATOM.fullmatch(text):
            yield FlagUse(node, "name", reason=_STRING, sure=False)
            return
        match holder:
            case ast.List(elts=words) | ast.Tuple(elts=words) | ast.Set(elts=words):
                yield self._argument(holder, words, node, form)
            case ast.Call(func=ast.Attribute(attr="append"), args=[_]):
                yield self._removed(holder, node, form, [])
            case _:
                yield FlagUse(node, form, reason=_UNCLEAR, sure=False)

    def _argument(
        self, holder: ast.expr, words: Sequence[ast.expr], node: ast.Constant, form: Form
    ) -> FlagUse:
        number = words.index(node)
        before, after = (
            str(getattr(word[0], "value", "")) if word else ""
            for word in (words[max(0, number - 1) : number], words[number + 1 : number + 2])
        )
        call = self.parent(holder)
        if isinstance(call, ast.Call) and last_name(call.func) in ("parametrize", "product"):
            return FlagUse(node, form, reason=_TESTED)
        if form == "environment" and before.startswith("-"):
            return FlagUse(node, form, reason=f"`{before}` takes it as its value: remove both")
        if form == "option" and "=" not in str(node.value) and after in _VALUES:
            return FlagUse(node, form, reason="the next word may be its value: remove both by hand")
        if self._is_taken_apart(holder):
            return FlagUse(node, form, reason=_POSITIONS)
        remove = self._emptied(holder) if len(words) == 1 else None
        return FlagUse(node, form, remove or node)

    def _is_taken_apart(self, words: ast.expr) -> bool:
        """Return whether code uses the positions of the words that a name is assigned to."""
        match self.parent(words):
            case (
                ast.Assign(targets=[*_, ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
            ):
                uses = find_mentions(self.module).names.get(name, ())
            case ast.Assign(targets=[ast.Tuple() | ast.List()]):
                return True
            case _:
                return False
        for use in uses:
            match self.parent(use):
                case ast.Subscript(value=value) if value is use:
                    return True
                case ast.Assign(targets=[ast.Tuple() | ast.List(), *_], value=value):
                    return True
        return False

    def _is_prose(self, node: ast.expr) -> bool:
        """Return whether a string is a message or documentation."""
        child: ast.AST = node
        for around in self.module.ancestors(node):
            match around:
                case ast.Raise() | ast.Assert():
                    return True
                case ast.Call() if _SPEAKS.fullmatch(last_name(around.func)):
                    return child is not around.func
                case ast.keyword(arg=str(name)) if _PROSE_NAME.fullmatch(name):
                    return True
                case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                    return _PROSE_NAME.fullmatch(last_name(target)) is not None
                case ast.stmt():
                    return False
            child = around
        return False
