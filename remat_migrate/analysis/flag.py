"""Finds the flag `jax_new_checkpoint`, in Python and in other files, and what removes each use.

In Python, a statement, list item, mapping item, or keyword that does nothing but set the flag is
removed. Other files are searched with regular expressions: a line, item, or word that holds nothing
but the setting is removed. Any other use, such as a branch on the flag, is reported with the reason
why it is left to the user. Comments and prose are not uses.
"""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_right
from collections.abc import Container as AbstractContainer
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..discovery.file_kinds import text_kind
from ..text import SourceFile, Span
from .names.expected_failures import expects_failure
from .names.mentions import find_mentions, has_side_effects, last_name
from .names.module import Module
from .names.scopes import parameters
from .project import Project
from .sites.references import is_used_elsewhere
from .values.values import Container, External, Function, Parameter, Result

# The effect of a use on current JAX: `update` and `read` raise AttributeError, `option` ends the
# program; `attribute`, `environment`, and `environment-read` have no effect. `name` is unclear.
Form = Literal["update", "read", "attribute", "environment", "environment-read", "option", "name"]

VARIABLE, OPTION = "JAX_NEW_CHECKPOINT", "jax_new_checkpoint"
NAMES = (OPTION, VARIABLE)

# A value without side effects: `0`, `"false"`, `$X`, `${X:-0}`, but not `$(command)`.
_VALUE = (
    r"""(?:"(?:[^"`\\$\n]|\$(?!\())*"|'[^'\n]*'"""
    r"""|(?:\$\{[^{}`\s]*\}|[^\s"'`()\[\]{},;&|<>\\])*)"""
)
_ASSIGNMENT = rf"{VARIABLE}\+?={_VALUE}"
_OPTION = rf"--?(?:no)?{OPTION}(?:={_VALUE})?"
# A word that sets the flag and does nothing else.
_WORD = rf"(?:{_ASSIGNMENT}|{_OPTION})"
_NAME = re.compile(rf"(?<!\w)(?:{VARIABLE}|(?:no)?{OPTION})(?!\w)")

_OWN_OPTION = "the project defines its own option with this name"
_UNCLEAR = "it is unclear what this does with the flag: remove it by hand"
_READ = "keep the code for the new implementation, the only one since jax 0.3.17"
_NOT_CONFIG = "this may not be jax.config"
_VALUE_BEFORE = "the option before it takes it as its value: remove both by hand"
_VALUE_AFTER = "the next word may be its value: remove both by hand"


def reasons_to_keep(project: Project) -> Mapping[Form, str]:
    """Return why uses of a form stay; "" if nothing depends on them."""
    return {
        "option": _own_option(project),
        "environment": _reader(project, VARIABLE, "environment-read", "variable"),
        "attribute": _reader(project, OPTION, "read", "attribute"),
    }


def _own_option(project: Project) -> str:
    defines = re.compile(r"add_argument|add_option|option|Option|DEFINE_\w+|(define_)?bool_state")
    for module in project.mentioning((*NAMES, OPTION.replace("_", "-"))):
        for node in module.nodes:
            if isinstance(node, ast.Call) and defines.fullmatch(last_name(node.func)):
                words = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
                if OPTION in (word.strip("-").replace("-", "_") for word in words):
                    return _OWN_OPTION
    return ""


def _reader(project: Project, name: str, form: Form, what: str) -> str:
    for module in project.mentioning((name,)):
        for use in _all_uses(module, project):
            unclear = use.form == "name" and getattr(use.node, "value", None) == name
            if unclear or use.form == form:
                source, span = module.location(use.node)
                place = f"{source.path.name}:{source.position(span.start)[0]}"
                return f"{place} {'may read' if unclear else 'reads'} the {what}"
    return ""


# -- Python

# `jax.config` is an object; before 0.4.25 it was also a module with the object `config`.
_CONFIG = re.compile(
    r"jax(\.\w+)*\.config(\.config)?(\.(flags\.)?FLAGS)?|absl\.flags\.FLAGS|jax\._src\.config\.FLAGS"
)
_CONFIG_READS = frozenset({"read", "_read", "getattr", "hasattr"})
_CONFIG_WRITES = frozenset({"update", "setattr", "delattr"})
_CONFIG_CONTEXT = re.compile(r"\w*(config|flags?)(_context|_override|_scope|_values|saver)?")
_ENVIRONMENT = re.compile(
    r"(?i)_*((\w*_)?(env|environ|environment)s?(_?vars?|_variables)?|passenv)"
)
_SETS_VARIABLE = frozenset({"putenv", "unsetenv", "setenv", "delenv"})
_ENVIRONMENT_WRITES = _SETS_VARIABLE | {"setitem", "delitem", "pop", "setdefault"}
# What a longer string must contain to be a command or code.
_TOLD = re.compile(rf"-(?:no)?{OPTION}|{VARIABLE}[\"']?\s*[=:]|[\"'\\]{OPTION}|\$\{{?{VARIABLE}")
_SPEAKS = re.compile(
    r"p?print|echo|log\w*|debug|info|warn\w*|error|exception|critical|fatal|fail|skip\w*|xfail"
    r"|secho|[A-Z]\w*(Error|Warning|Exception|Test)"
)
_PROSE_KEYWORDS = frozenset({"help", "usage", "description", "epilog", "reason", "msg", "message"})


@dataclass(frozen=True, slots=True)
class FlagUse:
    """One use of the flag in Python.

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
    kept = project.once(reasons_to_keep)
    return [
        replace(use, remove=None, reason=why)
        if (why := kept.get(use.form)) and (use.remove or why is _OWN_OPTION)
        else use
        for use in _all_uses(module, project)
    ]


def _all_uses(module: Module, project: Project) -> list[FlagUse]:
    found = _Finder(module, project).find()
    uses = [use for use in found if not expects_failure(module, use.node)]
    return sorted(uses, key=lambda use: module.span(use.node))


def is_import_needed(project: Project, module: Module, name: str) -> bool:
    """Return whether an import stays although the module no longer uses it.

    Importing a module of the project may do more than define names.
    """
    for node in find_mentions(module).imports:
        for alias in node.names:
            if (alias.asname or alias.name.partition(".")[0]) == name:
                source = node.module if isinstance(node, ast.ImportFrom) else alias.name
                if (source or "").partition(".")[0] not in ("jax", *sys.stdlib_module_names):
                    return True
    return is_used_elsewhere(project, module, name)


class _Finder:
    """Finds the uses in one module."""

    def __init__(self, module: Module, project: Project) -> None:
        self.module, self.project = module, project
        self.parent = module.parent

    def find(self) -> Iterator[FlagUse]:
        """Yield the uses, in no particular order."""
        for node in self.module.nodes:
            match node:
                case ast.keyword(arg=str(name)) if name in NAMES:
                    yield from self._keyword(node, name)
                case ast.Attribute(attr=name, value=owner) if name == OPTION:
                    yield from self._attribute(node, owner)
                case ast.Constant(value=str(text)) if text in NAMES:
                    yield from self._name(node, text)
                case ast.Constant(value=str(text)) if _NAME.search(text):
                    yield from self._text(node, text)

    def _is_config(self, node: ast.expr) -> bool | None:
        """Return whether an expression is JAX's configuration; None if that is unknown."""
        values = self.project.values(self.module, node)
        if values and all(isinstance(v, External) and _CONFIG.fullmatch(v.name) for v in values):
            return True
        unknown = any(isinstance(v, External | Parameter | Result) for v in values)
        return None if unknown or not values else False

    def _is_environment(self, node: ast.expr) -> bool:
        """Return whether an expression is `os.environ`, a copy of it, or is named like an
        environment.
        """
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                if names := self.project.qualified(self.module, node):
                    return names == {"os.environ"}
                return _ENVIRONMENT.fullmatch(name) is not None
            case ast.Call(func=ast.Attribute(value=base, attr="copy"), args=[]):
                return self._is_environment(base)
            case ast.Call(args=[base, *_]) if Container(self.module, node) in (
                self.project.values(self.module, node)
            ):
                return self._is_environment(base)  # `dict(os.environ, ...)`
            case ast.Dict(keys=[None, *_], values=[base, *_]):
                return self._is_environment(base)  # `{**os.environ, ...}`
        return False

    def _becomes_environment(self, node: ast.expr) -> bool:
        """Return whether a mapping is used as an environment."""
        match holder := self.parent(node):
            case ast.keyword(arg=str(name)):
                return _ENVIRONMENT.fullmatch(name) is not None
            case ast.Call():
                return self._merges(holder)
        return self._is_environment(node)

    def _merges(self, call: ast.Call) -> bool:
        """Return whether a call merges its arguments into an environment."""
        match call:
            case ast.Call(func=ast.Attribute(value=base, attr="update")):
                return self._is_environment(base)
            case ast.Call(func=ast.Attribute(attr="dict"), args=[first, *_]):  # `patch.dict`
                return ast.unparse(first) == "'os.environ'" or self._is_environment(first)
        return self._is_environment(call)

    def _name(self, node: ast.Constant, key: str) -> Iterator[FlagUse]:
        """Yield a use of the name of the flag or of the variable as a string."""
        match holder := self.parent(node):
            case ast.keyword(arg="name" | "key") if isinstance(
                call := self.parent(holder), ast.Call
            ):
                yield from self._call(call, node, key)
            case ast.Call():
                yield from self._call(holder, node, key)
            case ast.Subscript(value=mapping) if key == VARIABLE and self._is_environment(mapping):
                if isinstance(holder.ctx, ast.Load):
                    yield FlagUse(node, "environment-read", reason=_READ)
                else:
                    yield self._setting(node, "environment", holder)
            case ast.Compare() if key == VARIABLE:
                yield FlagUse(node, "environment-read", reason=_READ)
            case ast.Dict(keys=keys) if node in keys:
                yield from self._item(holder, node, key)
            case ast.Assign():
                yield FlagUse(node, "name", reason="remove it with what uses this name")
            case ast.Expr():
                return  # a docstring
            case _:
                yield FlagUse(node, "name", reason=_UNCLEAR, sure=False)

    def _call(self, call: ast.Call, node: ast.expr, key: str) -> Iterator[FlagUse]:
        """Yield a call with the name as an argument: `setattr(jax.config, NAME, value)`."""
        method, functions = last_name(call.func), self.project.qualified(self.module, call.func)
        position = call.args.index(node) if node in call.args else 0
        values = [*call.args[position + 1 :], *(k.value for k in call.keywords)]
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        of = call.args[0] if position else of
        if _SPEAKS.fullmatch(method):
            return
        if key == OPTION:
            owners = [name.removesuffix(".update") for name in functions]
            if not position and any(
                f"{o}.update" in functions and _CONFIG.fullmatch(o) for o in owners
            ):
                yield self._setting(node, "update", call, values)
            else:
                yield from self._config_call(call, node, of, values)
        elif method in _SETS_VARIABLE or (of is not None and self._is_environment(of)):
            if method in _ENVIRONMENT_WRITES:
                yield self._setting(node, "environment", call, values)
            else:
                yield FlagUse(node, "environment-read", reason=_READ)
        elif method == "getenv" or "os.getenv" in functions:
            yield FlagUse(node, "environment-read", reason=_READ)
        else:
            yield FlagUse(node, "name", reason=_UNCLEAR, sure=False)

    def _config_call(
        self, call: ast.Call, node: ast.expr, of: ast.expr | None, values: list[ast.expr]
    ) -> Iterator[FlagUse]:
        """Yield a call that reads or sets the option of `of`, if that is JAX's configuration."""
        method = last_name(call.func)
        if of is None or method not in _CONFIG_READS | _CONFIG_WRITES:
            yield FlagUse(node, "name", reason=_UNCLEAR, sure=False)
        elif (is_config := self._is_config(of)) is None:
            yield FlagUse(node, "name", reason=_NOT_CONFIG, sure=False)
        elif is_config and method in _CONFIG_READS:
            yield FlagUse(node, "read", reason=_READ)
        elif is_config:
            yield self._setting(node, "attribute", call, values)

    def _attribute(self, node: ast.Attribute, owner: ast.expr) -> Iterator[FlagUse]:
        is_config = self._is_config(owner)
        if is_config is None:
            yield FlagUse(node, "name", reason=_NOT_CONFIG, sure=False)
        elif is_config and isinstance(node.ctx, ast.Load):
            yield FlagUse(node, "read", reason=_READ)
        elif is_config:
            yield self._setting(node, "attribute", node)

    def _keyword(self, keyword: ast.keyword, name: str) -> Iterator[FlagUse]:
        """Yield `with_config(jax_new_checkpoint=False)`, `dict(os.environ, JAX_NEW_CHECKPOINT="0")`
        and the like.
        """
        call = self.parent(keyword)
        if not isinstance(call, ast.Call) or any(
            isinstance(value, Function) and name in (a.arg for a in parameters(value.node))
            for value in self.project.values(self.module, call.func)
        ):
            return  # a parameter of a function of the project
        is_variable = name == VARIABLE
        if is_variable and (self._merges(call) or self._becomes_environment(call)):
            yield self._setting(keyword, "environment", keyword, [keyword.value])
        elif not is_variable and _CONFIG_CONTEXT.fullmatch(last_name(call.func)):
            yield self._setting(keyword, "update", keyword, [keyword.value])
        else:
            yield FlagUse(keyword, "name", reason=_UNCLEAR, sure=False)

    def _item(self, mapping: ast.Dict, node: ast.Constant, key: str) -> Iterator[FlagUse]:
        value = mapping.values[mapping.keys.index(node)]
        if isinstance(value, ast.Constant) and re.search(r"\w\s+\w", str(value.value)):
            return  # a text about the flag
        if key == VARIABLE and self._becomes_environment(mapping):
            part = mapping if len(mapping.keys) == 1 else node
            yield self._setting(node, "environment", part, [value])
        else:
            reason = "it is unclear what this mapping is used for: remove the item by hand"
            yield FlagUse(node, "name", reason=reason, sure=False)

    def _setting(
        self,
        node: ast.expr | ast.keyword,
        form: Form,
        part: ast.expr | ast.keyword,
        values: Sequence[ast.expr] = (),
    ) -> FlagUse:
        """Return the use for what sets the flag: a call, a target, a keyword, or an item.

        Args:
            node: what to report.
            form: what it does.
            part: what is removed, with its statement where that does nothing else.
            values: what is evaluated for it.
        """
        remove: ast.AST | None = None
        holder = self.parent(part)
        match part:
            case ast.Call() if isinstance(holder, ast.Expr):
                remove = holder
            case ast.Attribute() | ast.Subscript():
                match holder:
                    case ast.Assign(targets=[_], value=value):
                        remove, values = holder, [value]
                    case ast.Delete(targets=[_]):
                        remove = holder
            case ast.Dict(keys=[item]) | ast.List(elts=[item]) | ast.Tuple(elts=[item]):
                remove = self._emptied(holder) or item
            case ast.keyword() | ast.Constant():
                remove = self._emptied(holder) or part
        if remove is None:
            return FlagUse(
                node,
                form,
                reason="it is part of another expression or statement: remove it by hand",
            )
        if any(map(has_side_effects, values)):
            reason = "evaluating the value may have side effects: keep them by hand"
            return FlagUse(node, form, reason=reason)
        may_fail = form in ("update", "attribute") or isinstance(remove, ast.Delete)
        if may_fail and any(map(_handles_failure, self.module.ancestors(remove))):
            reason = "a `try` around it depends on whether it fails: keep what runs today"
            return FlagUse(node, form, reason=reason)
        return FlagUse(node, form, remove)

    def _emptied(self, holder: ast.AST | None) -> ast.AST | None:
        """Return the statement that does nothing without its only argument or value."""
        match holder:
            case ast.Call(func=ast.Attribute(attr="update" | "extend"), args=args, keywords=named):
                statement = self.parent(holder)
                is_only = len(args) + len(named) == 1 and isinstance(statement, ast.Expr)
                return statement if is_only else None
            case ast.AugAssign():
                return holder
        return None

    def _text(self, node: ast.Constant, text: str) -> Iterator[FlagUse]:
        """Yield an argument of a command line, or a string that holds more than the flag."""
        form: Form = "option" if OPTION in text else "environment"
        if not re.fullmatch(_WORD, text):
            if _TOLD.search(text) and not self._is_prose(node):
                reason = "it is part of a longer string: remove it by hand"
                yield FlagUse(node, "name", reason=reason, sure=False)
            return
        match holder := self.parent(node):
            case ast.List(elts=words) | ast.Tuple(elts=words):
                reason = _bound_to_neighbor(words, node, form) or self._position_matters(holder)
                use = self._setting(node, form, holder if len(words) == 1 else node)
                yield replace(use, remove=None, reason=reason) if reason else use
            case ast.Call(func=ast.Attribute(attr="append"), args=[_]):
                yield self._setting(node, form, holder)
            case _ if not self._is_prose(node):
                yield FlagUse(node, form, reason=_UNCLEAR, sure=False)

    def _position_matters(self, words: ast.expr) -> str:
        """Return why an argument stays in its list: other code may use positions in it."""
        uses: Sequence[ast.expr] = [words]
        match self.parent(words):
            case ast.Assign(targets=[ast.Name(id=name)]):
                uses = find_mentions(self.module).names.get(name, [])
        for use in uses:
            match self.parent(use):
                case ast.Call(func=func) if last_name(func) in ("parametrize", "product"):
                    return "a test runs for each of these values: remove this one by hand"
                case ast.Call() | ast.keyword() | ast.Starred() | ast.BinOp() | ast.AugAssign():
                    pass
                case _:
                    return "other code may use positions in this list: remove it by hand"
        return ""

    def _is_prose(self, node: ast.expr) -> bool:
        """Return whether a string is a message or documentation, or is passed to no function."""
        for around in self.module.ancestors(node):
            match around:
                case ast.Call(func=func):
                    return _SPEAKS.fullmatch(last_name(func)) is not None
                case ast.keyword(arg=str(name)) if name in _PROSE_KEYWORDS:
                    return True
                case ast.stmt():
                    break
        return True


def _handles_failure(node: ast.AST) -> bool:
    match node:
        case ast.Try(handlers=[_, *_]):
            return True
        case ast.With(items=items):
            return any("suppress" in ast.dump(item) for item in items)
    return False


def _bound_to_neighbor(words: Sequence[ast.expr], node: ast.Constant, form: Form) -> str:
    """Return why an argument stays: it belongs to the one before or after it."""
    texts = ["", *(str(getattr(word, "value", "")) for word in words), ""]
    number = words.index(node) + 1
    if form == "environment" and texts[number - 1].startswith("-"):
        return _VALUE_BEFORE
    has_value = "=" in texts[number] or not _IS_VALUE.fullmatch(texts[number + 1])
    return "" if form == "environment" or has_value else _VALUE_AFTER


# -- other files

_IS_VALUE = re.compile("true|false|0|1", re.IGNORECASE)
# In a longer line, words are not told apart.
_LONGEST = 2_000
_MORE = "the setting is part of something else, or spread over lines: remove it by hand"

_BLANK = r"(?:[ \t]|\\\r?\n)+"
_PLAIN = rf"(?:export[ \t]+|[A-Z]:)?[\"']?{VARIABLE}[\"']?[ \t]*[:?+]?=[ \t]*{_VALUE}"
# What sets the flag and is all of a line, by kind of file.
_SETTINGS = {
    "shell": rf"(?:export[ \t]+)?{_ASSIGNMENT};?|(?:export|unset)[ \t]+{VARIABLE};?",
    "docker": rf"(?:ENV|ARG)[ \t]+{VARIABLE}(?:(?:=|[ \t]+){_VALUE})?",
    "make": rf"{_PLAIN}|export[ \t]+{VARIABLE}",
    "yaml": (
        rf"[\"']?{VARIABLE}[\"']?:[ \t]+(?=[^\s#]){_VALUE}|(?:-[ \t]+)?export[ \t]+{_ASSIGNMENT}"
        rf"|-[ \t]+(?P<quote>[\"']?){_WORD}(?P=quote)"
    ),
    **dict.fromkeys(("env", "ini", "toml"), _PLAIN),
}
_ITEM = (
    rf"(?P<setting>(?P<quote>[\"']?)"
    rf"(?:{VARIABLE}(?P=quote)\s*[:=]\s*{_VALUE}|{_WORD}(?P=quote)))"
)
# An item of a list or mapping in brackets, with the comma before or after it.
_ITEMS = (
    rf"(?P<cut>^[ \t]*{_ITEM}[ \t]*,[ \t]*\r?\n)",
    rf"(?P<cut>,\s*{_ITEM})(?=\s*[\]}}])",
    rf"(?<=[\[{{,])\s*(?P<cut>{_ITEM}(?:\s*,[ \t]*|(?=\s*[\]}}])))",
)
_BRACKET = re.compile(r"\s*(?:(?:CMD|ENTRYPOINT|RUN|[\w.\"'-]+:|-)\s+)*[\[{][^\[\]{}]*")
# A word of a command: `VARIABLE=0 command`, `command --option=0`.
_WORDS = (
    r"^[ \t]*[@+]*(?:- +)?(?:(?:run|script|command|cmd): +)?"
    r"(?:(?:ENV|RUN|env|exec|export|nohup|sudo|time|then|do|\w+=\S*)[ \t]+)*"
    rf"(?P<cut>(?P<setting>{_ASSIGNMENT}){_BLANK})(?=[\w./$~])",
    rf"(?<=[^\s:=-])(?P<cut>{_BLANK}(?P<setting>(?P<quote>[\"']?){_OPTION}(?P=quote)))(?=\s|$)",
)
_COMMANDS = frozenset({"shell", "docker", "make", "yaml"})
_LISTS = frozenset({"json", "toml", "yaml", "docker"})
_PROGRAM = re.compile(r"\bpython|\.(?:py|sh)\b")
_OPTION_BEFORE = re.compile(r"(?:^|[\s\"'\[])--?[A-Za-z][\w-]*[\"']?[\s,\\]*[\"']?$")
_VALUE_NEXT = re.compile(rf"[\s,\\\"'-]*(?:{_IS_VALUE.pattern})\b", re.IGNORECASE)

_READS = re.compile(
    rf"(?:\$\{{?|\benv(?:\.|\[['\"])|(?:\bifn?def|\bprintenv|-v)[ \t]+){VARIABLE}"
    rf"|\$\({VARIABLE}[):]"
)
_COMMENT = re.compile(r"(?:^|\s)(?:#|//)|^\s*;")
_ECHO = re.compile(r"(?:^|[;&|:]|\bthen|\bdo|RUN)[\s@]*(?:echo|printf)\b(?!.*(?:>(?!&)|\|))")
_PROSE = re.compile(
    r"(?i)[\s{\"'-]*\w*(?:name|description|title|summary|help|message|comment|note|label)s?"
    rf"[\"']?\s*[:=](?!\s*[\"']?{VARIABLE}[\"']?\s*(?:$|,))"
)
# Lines with content. One that is continued below, or opens or closes a block of a script.
_CONTENT = re.compile(r"^[ \t]*[^\s#].*$", re.MULTILINE)
_CONTINUED = re.compile(r"(?:&&|\|\||[^:\s-]\s*\||\\)\s*$")
_OPENS = re.compile(r"(?:(?:^|[\s;])(?:then|do|else)|[{(]|^[^#(]*\))[ \t]*(?:#.*)?\s*$")
_CLOSES = re.compile(r"\s*(?:fi|done|else|elif|esac|[})]|;;)")


@dataclass(frozen=True, slots=True)
class TextUse:
    """A use of the flag in a file that is not Python.

    Attributes:
        span: its offsets.
        form: what it does.
        cut: the range to remove; None if `reason` says why it is left to the user.
        reason: why it is left to the user; "" if it is removed.
    """

    span: Span
    form: Form
    cut: Span | None = None
    reason: str = ""


def find_text_uses(source: SourceFile, kept: Mapping[Form, str]) -> list[TextUse]:
    """Find the uses of the flag in a file that is not Python, in order.

    `kept` says why uses of a form stay.
    """
    kind = text_kind(source.path.name, source.text[:200])
    uses = list(_text_uses(source.text, kind)) if kind else []
    reads = [use.span.start for use in uses if use.form == "environment-read"]
    if reads:
        line = source.position(reads[-1])[0]
        kept = {**kept, "environment": f"line {line} reads the variable"}
    return [
        replace(use, cut=None, reason=why) if use.cut and (why := kept.get(use.form)) else use
        for use in uses
    ]


def _text_uses(text: str, kind: str) -> Iterator[TextUse]:
    settings = _find_settings(text, kind)
    content = [Span(*line.span()) for line in _CONTENT.finditer(text)]
    lines = {setting.start() for role, setting in settings.values() if role == "line"}
    covered = 0
    for mention in _NAME.finditer(text):
        start, end = mention.span()
        low = text.rfind("\n", 0, start) + 1
        line = text[low : low + _LONGEST].partition("\n")[0]
        before = line[: start - low]
        form: Form = "environment" if mention[0] == VARIABLE else "option"
        if start < covered or _COMMENT.search(before):
            continue  # a mention in the value of the last is part of it
        if (kind in _COMMANDS and _ECHO.search(line)) or (kind in _LISTS and _PROSE.match(line)):
            continue
        if _READS.search(text, max(low, start - 10), end + 1):
            reason = "uses of the value are not analyzed"
            yield TextUse(Span(start, end), "environment-read", reason=reason)
            continue
        cut, reason = None, _MORE
        if start in settings and len(line) < _LONGEST:
            role, setting = settings[start]
            end = covered = setting.end("setting")
            cut, reason = Span(*setting.span("cut")), _word_reason(role, setting, kind, form)
            if role == "line" and not reason:
                cut, reason = _whole_line(text, kind, content, cut, lines)
        yield TextUse(Span(start, end), form, None if reason else cut, reason)


def _find_settings(text: str, kind: str) -> dict[int, tuple[str, re.Match[str]]]:
    """Return what sets the flag and nothing else, by where its name is: lines, items, and words."""
    patterns: list[tuple[str, str]] = []
    if kind in _SETTINGS:
        rest = r"[ \t]*(?:[ \t]#.*)?\r?(?:\n|\Z)"
        patterns += [("line", rf"(?P<cut>^[ \t]*(?P<setting>{_SETTINGS[kind]}){rest})")]
    patterns += [("item", pattern) for pattern in _ITEMS if kind in _LISTS]
    patterns += [("word", pattern) for pattern in _WORDS if kind in _COMMANDS]
    # What follows may be part of a here-document, or of a string over several lines.
    marks = ("<<",) if kind in ("shell", "docker") else ('"""', "'''")
    end = min(at if (at := text.find(mark)) >= 0 else len(text) for mark in marks)
    found: dict[int, tuple[str, re.Match[str]]] = {}
    for role, pattern in patterns:
        for setting in re.compile(pattern, re.MULTILINE).finditer(text, 0, end):
            name = _NAME.search(text, *setting.span("setting"))
            if name is not None:
                found.setdefault(name.start(), (role, setting))
    return found


def _word_reason(role: str, setting: re.Match[str], kind: str, form: Form) -> str:
    """Return why a setting stays: it belongs to the words around it."""
    text, (at, end) = setting.string, setting.span("setting")
    before = text[max(0, at - _LONGEST) : at]
    if role == "word" and kind != "yaml":
        before = re.split(r"(?<!\\)(?<!\\\r)\n", before)[-1]
    line = before.rpartition("\n")[2]
    if role == "word" and (line.count('"') % 2 or line.count("'") % 2):
        return _MORE
    if kind in ("yaml", "docker") and role == "item" and not _BRACKET.fullmatch(line):
        return _MORE
    if kind == "yaml" and role == "word" and form == "option" and not _PROGRAM.search(line):
        return _MORE
    if form == "option":
        has_value = "=" in setting["setting"] or not _VALUE_NEXT.match(text[end : end + 99])
        return "" if has_value else _VALUE_AFTER
    takes_value = (role != "line" or kind == "yaml") and _OPTION_BEFORE.search(before[-99:])
    return _VALUE_BEFORE if takes_value else ""


def _whole_line(
    text: str, kind: str, content: Sequence[Span], cut: Span, lines: AbstractContainer[int]
) -> tuple[Span, str]:
    """Return what to remove for a line, or why it stays.

    `content` are the lines with content, `lines` the starts of those that only set the flag.
    """
    number = bisect_right(content, cut.start, key=lambda line: line.start) - 1
    above, line, below = (
        text[slice(*content[i])][-_LONGEST:] if 0 <= i < len(content) else ""
        for i in (number - 1, number, number + 1)
    )
    is_command = kind == "make" and line.startswith("\t")
    goes_on = kind in ("ini", "yaml") and _indent(below) > _indent(line)
    if _CONTINUED.search(above) or is_command or goes_on:
        return cut, _MORE
    if kind not in ("shell", "yaml"):
        return cut, ""
    stays = [
        0 <= i < len(content) and content[i].start not in lines for i in (number - 1, number + 1)
    ]
    if stays[1] and _is_beside(below, line) and not _CLOSES.match(below):
        return cut, ""
    if not _OPENS.search(above) and (kind == "shell" or (stays[0] and _is_beside(above, line))):
        return cut, ""
    # Without variables, the environment of all jobs is absent.
    if re.fullmatch(r"env(?:ironment)?:\s*", above) and not below[:1].isspace():
        if content[number - 1].end + 1 == cut.start:
            return Span(content[number - 1].start, cut.end), ""
    return cut, "a block may be empty without it: remove it by hand"


def _is_beside(other: str, line: str) -> bool:
    """Return whether another line is in the same block of a script or of YAML."""
    are_items = {text.lstrip().startswith("-") for text in (other, line)}
    return _indent(other) == _indent(line) and len(are_items) == 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
