"""Finds the flag `jax_new_checkpoint`, in Python and in other files, and what removes each use.

In Python, a statement, list item, mapping item, or keyword that does nothing but set the flag is
removed. Other files are searched with regular expressions: a line or word that holds nothing but
the setting is removed. Any other use, such as a branch on the flag, is reported with the reason
why it is left to the user. Comments and prose are not uses.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..discovery.file_kinds import text_kind
from ..text import SourceFile, Span
from .names.expected_failures import expects_failure
from .names.module import Module, find_mentions, has_side_effects, last_name, parameters
from .project import Project
from .sites.references import is_used_elsewhere
from .values.values import External, Function, Parameter, Result

# The effect of a use on current JAX: `update` and `read` raise AttributeError, and `handled` is one
# of these where the code expects that; `option` ends the program; `attribute` and `environment`
# have no effect. `name` is unclear, and may be a read.
Form = Literal["update", "read", "handled", "attribute", "environment", "option", "name"]

VARIABLE, OPTION = "JAX_NEW_CHECKPOINT", "jax_new_checkpoint"
NAMES = (OPTION, VARIABLE)

# A value without side effects: `0`, `"false"`, `$X`, `${X:-0}`, but not `$(command)`.
_VALUE = (
    r"""(?:"(?:[^"`\\$\n]|\$(?!\())*"|'[^'\n]*'"""
    r"""|(?:\$\{[^{}`\s]*\}|[^\s"'`()\[\]{},;&|<>\\])*)"""
)
_ASSIGNMENT = rf"{VARIABLE}\+?={_VALUE}"
# `--jax_new_checkpoint` alone may be followed by its value.
_OPTION = rf"--?(?:no{OPTION}|{OPTION}={_VALUE})"
# A word that sets the flag and does nothing else.
_WORD = rf"(?:{_ASSIGNMENT}|{_OPTION})"
_NAME = re.compile(rf"(?<!\w)(?:{VARIABLE}|(?:no)?{OPTION})(?!\w)")

_READ = "keep the code for the new implementation, the only one since jax 0.3.17"
_UNCLEAR = "it is unclear what this does with the flag: remove it by hand"
_NOT_CONFIG = "this may not be jax.config"
_NEIGHBOR = "it may belong to the word before it: remove both by hand"


def reasons_to_keep(project: Project) -> Mapping[Form, str]:
    """Return why uses of a form stay: the code that may read what they set, in this project."""
    found: dict[Form, str] = {}
    read_as: Mapping[Form, str] = {"option": OPTION, "attribute": OPTION, "environment": VARIABLE}
    for module in project.mentioning((*NAMES, OPTION.replace("_", "-"))):
        for use in _all_uses(module, project):
            text = str(getattr(use.node, "value", "")).strip("-").replace("-", "_")
            for form, name in read_as.items():
                is_read = use.form in ("read", "handled") and form == "attribute"
                if is_read or (text == name and not use.sure and use.form in ("name", form)):
                    source, span = module.location(use.node)
                    line = source.position(span.start)[0]
                    found.setdefault(form, f"{source.path.name}:{line} may read it")
    return found


# -- Python

# `jax.config` is an object; before 0.4.25 it was also a module with the object `config`.
_CONFIG = re.compile(
    r"jax(\.\w+)*\.config(\.config)?(\.(flags\.)?FLAGS)?|absl\.flags\.FLAGS|jax\._src\.config\.FLAGS"
)
_CONFIG_CONTEXT = re.compile(r"\w*(config|flags?)(_context|_override|_scope|_values|saver)?")
# What a method of the configuration, or a function that gets it, does.
_CONFIG_METHODS: Mapping[str, Form] = {
    **dict.fromkeys(("read", "_read", "getattr", "hasattr"), "read"),
    **dict.fromkeys(("setattr", "delattr"), "attribute"),
    "update": "update",
}
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
        replace(use, remove=None, reason=why) if use.remove and (why := kept.get(use.form)) else use
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


def _unclear(node: ast.expr | ast.keyword, reason: str = _UNCLEAR, form: Form = "name") -> FlagUse:
    return FlagUse(node, form, reason=reason, sure=False)


class _Finder:
    """Finds the uses in one module."""

    def __init__(self, module: Module, project: Project) -> None:
        self.module, self.project = module, project
        self.parent = module.parent

    def find(self) -> Iterator[FlagUse]:
        """Yield the uses, in no particular order."""
        for node in self.module.nodes:
            use = None
            match node:
                case ast.keyword(arg=str(name)) if name in NAMES:
                    use = self._keyword(node, name)
                case ast.Attribute(attr=name, value=owner) if name == OPTION:
                    is_read = isinstance(node.ctx, ast.Load)
                    use = self._of_config(node, owner, "read" if is_read else "attribute", node)
                case ast.Constant(value=str(text)) if text in NAMES:
                    use = self._name(node, text)
                case ast.Constant(value=str(text)) if _NAME.search(text):
                    use = self._text(node, text)
            if use is not None:
                yield use

    def _is_config(self, node: ast.expr) -> bool | None:
        """Return whether an expression is JAX's configuration; None if that is unknown."""
        values = self.project.values(self.module, node)
        if values and all(isinstance(v, External) and _CONFIG.fullmatch(v.name) for v in values):
            return True
        unknown = any(isinstance(v, External | Parameter | Result) for v in values)
        return None if unknown or not values else False

    def _names_environment(self, node: ast.AST) -> bool:
        """Return whether the statement around a node names an environment: `os.environ`, `env=`."""
        names = (
            getattr(part, field, None)
            for part in ast.walk(self.module.statement(node))
            for field in ("id", "attr", "arg")
        )
        return any(isinstance(name, str) and _ENVIRONMENT.fullmatch(name) for name in names)

    def _name(self, node: ast.Constant, key: str) -> FlagUse | None:
        """Return a use of the name of the flag or of the variable as a string."""
        holder = self.parent(node)
        if isinstance(holder, ast.keyword) and holder.arg in ("name", "key"):
            holder = self.parent(holder)
        match holder:
            case ast.Call() if _SPEAKS.fullmatch(last_name(holder.func)):
                return None
            case ast.Call() if key == OPTION:
                return self._config_call(holder, node)
            case ast.Call() if (method := last_name(holder.func)) in _ENVIRONMENT_WRITES:
                if method in _SETS_VARIABLE or self._names_environment(node):
                    values = _parts_of_call(holder, node)[1]  # `monkeypatch.setenv(NAME, value)`
                    return self._setting(node, "environment", holder, values)
            case ast.Subscript(ctx=ast.Store() | ast.Del()) if key == VARIABLE:
                if self._names_environment(node):
                    return self._setting(node, "environment", holder)
            case ast.Dict(keys=keys) if key == VARIABLE and node in keys:
                if self._names_environment(node):
                    value = holder.values[keys.index(node)]
                    return self._setting(node, "environment", node, [value])
            case ast.Expr():
                return None  # a docstring
        return _unclear(node)

    def _config_call(self, call: ast.Call, node: ast.expr) -> FlagUse | None:
        """Return a call that reads or sets the option: `setattr(jax.config, NAME, value)`."""
        owner, values = _parts_of_call(call, node)
        form = _CONFIG_METHODS.get(last_name(call.func))
        if owner is None or form is None:
            return _unclear(node)
        return self._of_config(node, owner, form, call, values)

    def _of_config(
        self,
        node: ast.expr,
        owner: ast.expr,
        form: Form,
        part: ast.expr,
        values: Sequence[ast.expr] = (),
    ) -> FlagUse | None:
        """Return what reads or sets the option of `owner`, if that is JAX's configuration."""
        match self._is_config(owner):
            case None:
                return _unclear(node, _NOT_CONFIG)
            case False:
                return None
        if form == "read":
            has_default = isinstance(part, ast.Call) and len(part.args) > 2
            if has_default or last_name(getattr(part, "func", part)) == "hasattr":
                form = "handled"
            return FlagUse(node, form, reason=_READ)
        return self._setting(node, form, part, values)

    def _keyword(self, keyword: ast.keyword, name: str) -> FlagUse | None:
        """Return a keyword that sets the flag: of `with_config`, or of `dict(os.environ, ...)`."""
        call = self.parent(keyword)
        if not isinstance(call, ast.Call) or any(
            isinstance(value, Function) and name in (a.arg for a in parameters(value.node))
            for value in self.project.values(self.module, call.func)
        ):
            return None  # a parameter of a function of the project
        if name == VARIABLE and self._names_environment(call):
            return self._setting(keyword, "environment", keyword, [keyword.value])
        if name == OPTION and _CONFIG_CONTEXT.fullmatch(last_name(call.func)):
            return self._setting(keyword, "update", keyword, [keyword.value])
        return _unclear(keyword)

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
            case ast.keyword() | ast.Constant():
                remove = part
        reason = ""
        if remove is None:
            reason = "it is part of another expression or statement: remove it by hand"
        elif any(map(has_side_effects, values)):
            reason = "evaluating the value may have side effects: keep them by hand"
        elif form != "environment" and any(map(_handles_failure, self.module.ancestors(remove))):
            reason = "a `try` around it depends on whether it fails: keep what runs today"
            form = "handled" if form == "update" else form
        return FlagUse(node, form, None if reason else remove, reason)

    def _text(self, node: ast.Constant, text: str) -> FlagUse | None:
        """Return an argument of a command line, or a string that holds more than the flag."""
        form: Form = "option" if OPTION in text else "environment"
        is_word = re.fullmatch(_WORD, text) is not None
        match holder := self.parent(node):
            case ast.List(elts=words) | ast.Tuple(elts=words) if is_word:
                use = self._setting(node, form, node)
                before = getattr(words[max(words.index(node) - 1, 0)], "value", "")
                reason = self._position_matters(holder)
                if form == "environment" and str(before).startswith("-"):
                    reason = _NEIGHBOR  # `-e VARIABLE=0`
                return replace(use, remove=None, reason=reason) if reason else use
            case ast.Call(func=ast.Attribute(attr="append"), args=[_]) if is_word:
                return self._setting(node, form, holder)
        is_word = is_word or text.strip("-") == OPTION
        if (not is_word and not _TOLD.search(text)) or self._is_prose(node):
            return None
        return _unclear(node, form=form if is_word else "name")

    def _position_matters(self, words: ast.expr) -> str:
        """Return why an argument stays in its list: other code may use positions in it."""
        match self.parent(words):
            case ast.Call(func=func) if last_name(func) not in ("parametrize", "product"):
                return ""
            case ast.keyword() | ast.BinOp() | ast.AugAssign():
                return ""
        return "other code may use positions in this list: remove it by hand"

    def _is_prose(self, node: ast.expr) -> bool:
        """Return whether a string is a message, or is passed to no function."""
        for around in self.module.ancestors(node):
            match around:
                case ast.Call(func=func):
                    return _SPEAKS.fullmatch(last_name(func)) is not None
                case ast.stmt():
                    break
        return True


def _parts_of_call(call: ast.Call, node: ast.expr) -> tuple[ast.expr | None, list[ast.expr]]:
    """Return the object whose entry `node` names, and what is passed besides."""
    position = call.args.index(node) if node in call.args else 0
    values = [*call.args[position + 1 :], *(k.value for k in call.keywords)]
    return call.args[0] if position else getattr(call.func, "value", None), values


def _handles_failure(node: ast.AST) -> bool:
    match node:
        case ast.Try(handlers=[_, *_]):
            return True
        case ast.With(items=items):
            return any("suppress" in ast.dump(item) for item in items)
    return False


# -- other files

# In a longer line, words are not told apart.
_LONGEST = 2_000
# In how many lines above and below those beside a line are looked for.
_NEAR = 20
_MORE = "the setting is part of something else, or spread over lines: remove it by hand"
_EMPTY = "a block may be empty without it: remove it by hand"

# What sets the flag and is all of a line of a script, of a Dockerfile, of YAML, or of settings.
_LINE = re.compile(
    rf"[ \t]*(?P<setting>(?:-[ \t]+)?(?:(?:export|ENV|ARG)[ \t]+|[A-Z]:)?{_ASSIGNMENT};?"
    rf"|(?:export|unset|ARG)[ \t]+{VARIABLE};?|ENV[ \t]+{VARIABLE}[ \t]+{_VALUE}"
    rf"|(?:export[ \t]+)?[\"']?{VARIABLE}[\"']?(?:[ \t]*[:?+]?=[ \t]*|:[ \t]+(?=[^\s#])){_VALUE}"
    rf"|-[ \t]+(?P<quote>[\"']?){_WORD}(?P=quote)|{_WORD}[ \t]+\\)[ \t]*(?:[ \t]#.*)?\r?"
)
# A word of a command: `VARIABLE=0 command`, `command --option=0`.
_WORDS = (
    re.compile(
        r"^[ \t]*[@+]*(?:- +)?(?:(?:run|script|command|cmd): +)?"
        r"(?:(?:ENV|RUN|env|exec|export|nohup|sudo|time|then|do|\w+=\S*)[ \t]+)*"
        rf"(?P<cut>(?P<setting>{_ASSIGNMENT})[ \t]+)(?=[\w./$~])"
    ),
    re.compile(
        rf"(?<=[^\s:=-])(?P<cut>[ \t]+(?P<setting>(?P<quote>[\"']?){_OPTION}(?P=quote)))(?=\s|$)"
    ),
)
_COMMANDS = frozenset({"shell", "docker", "make", "yaml"})
_PROGRAM = re.compile(r"\bpython|\.(?:py|sh)\b")
_OPTION_AT_END = re.compile(r"(?:^|[\s\"'\[])--?[A-Za-z][\w-]*[\"']?[\s,\\]*$")

_COMMENT = re.compile(r"(?:^|\s)(?:#|//)|^\s*;")
_PROSE = re.compile(r"[\s@-]*(?:echo|printf)\b(?!.*(?:>(?!&)|\|))")
# A here-document, or a string over several lines.
_QUOTING = re.compile("<<|\"\"\"|'''")
_CONTENT = re.compile(r"[ \t]*[^\s#]")
_CONTINUED = re.compile(r"(?:&&|\|\||[^:\s-]\s*\||\\)\s*$")
_OPENS = re.compile(r"(?:(?:^|[\s;])(?:then|do|else)|[{(]|^[^#(]*\))[ \t]*(?:#.*)?\s*$")


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
    unclear = [use for use in uses if use.form == "environment" and use.reason is _MORE]
    if unclear:
        line = source.position(unclear[-1].span.start)[0]
        kept = {**kept, "environment": f"line {line} may read it"}
    return [
        replace(use, cut=None, reason=why) if use.cut and (why := kept.get(use.form)) else use
        for use in uses
    ]


def _text_uses(text: str, kind: str) -> Iterator[TextUse]:
    lines = text.split("\n")
    low, is_known = 0, kind != "json"
    for number, line in enumerate(lines):
        is_known = is_known and not _QUOTING.search(line)
        if _NAME.search(line) and not _PROSE.match(line):
            settings = _settings(lines, number, kind) if is_known else ()
            for use in _uses_in_line(line, list(settings)):
                cut = use.cut and Span(use.cut.start + low, min(use.cut.end + low, len(text)))
                yield replace(use, span=Span(use.span.start + low, use.span.end + low), cut=cut)
        low += len(line) + 1


def _uses_in_line(line: str, settings: Sequence[TextUse]) -> Iterator[TextUse]:
    comment = _COMMENT.search(line)
    covered = 0
    for mention in _NAME.finditer(line, 0, comment.start() if comment else len(line)):
        start, end = mention.span()
        if start < covered:
            continue  # in the value of the last
        form: Form = "environment" if mention[0] == VARIABLE else "option"
        unclear = TextUse(Span(start, end), form, reason=_MORE)
        use = next((one for one in settings if one.span.start <= start < one.span.end), unclear)
        covered = use.span.end
        yield replace(use, span=Span(start, covered))


def _settings(lines: Sequence[str], number: int, kind: str) -> Iterator[TextUse]:
    """Yield what sets the flag in a line and does nothing else."""
    line = lines[number]
    if len(line) > _LONGEST:
        return
    if whole := _LINE.fullmatch(line):
        found = [(whole, Span(0, len(line) + 1), _line_reason(lines, number, kind))]
    else:
        words = [m for pattern in _WORDS for m in pattern.finditer(line) if kind in _COMMANDS]
        found = [(word, Span(*word.span("cut")), _word_reason(word, kind)) for word in words]
    for setting, cut, reason in found:
        form: Form = "environment" if VARIABLE in setting["setting"] else "option"
        yield TextUse(Span(*setting.span("setting")), form, None if reason else cut, reason)


def _word_reason(word: re.Match[str], kind: str) -> str:
    before = word.string[: word.start("setting")]
    is_text = kind == "yaml" and OPTION in word["setting"] and not _PROGRAM.search(before)
    return _MORE if is_text or before.count('"') % 2 or before.count("'") % 2 else ""


def _line_reason(lines: Sequence[str], number: int, kind: str) -> str:
    """Return why a line stays: it is part of the lines around it, or may be all of a block."""
    line = lines[number]
    before = lines[max(0, number - _NEAR) : number]
    above = next(filter(_CONTENT.match, reversed(before)), "")
    below = next(filter(_CONTENT.match, lines[number + 1 : number + _NEAR]), "")
    is_continued = _CONTINUED.search(line) is not None
    if (_CONTINUED.search(above) is not None) != is_continued:
        return _MORE
    if (kind == "make" and line.startswith("\t")) or _indent(below) > _indent(line):
        return _MORE
    if VARIABLE in line and _OPTION_AT_END.search(above):
        return _NEIGHBOR  # `-e VARIABLE=0`
    may_empty = _OPENS.search(above) or not (_is_beside(above, line) or _is_beside(below, line))
    return _EMPTY if may_empty and not is_continued and kind in ("shell", "yaml") else ""


def _is_beside(other: str, line: str) -> bool:
    """Return whether another line stays, in the same block of a script or of YAML."""
    are_items = {text.lstrip().startswith("-") for text in (other, line)}
    is_near = _indent(other) == _indent(line) and len(are_items) == 1
    return bool(other) and is_near and not (_NAME.search(other) and _LINE.fullmatch(other))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
