"""The flag in argument lists and in command lines inside Python strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...codemod.tree.reductions import Reduction, is_pure
from ...formats.setting import TextPlan, TextSyntaxError
from ...formats.shell import plan_argv, plan_shell
from ...text.replacements import Piece, join_pieces
from ..names.mentions import find_mentions, last_name
from .names import SETTING, Names, is_environment_name
from .string_literals import HOLE, LiteralText, read_literal
from .uses import SIDE_EFFECTS, FlagUse, Form, Forms, truth

_COMMAND_NAME = re.compile(
    r"(?i)(\w*_)?(cmds?|commands?|cmdline|command_?line|args?|argv|flags|opts|options|script|launch"
    r"|shell|entrypoint|prefix|invocation)(_\w+)?"
)
_PROSE_NAME = re.compile(
    r"(?i)(\w*_)?(help|usage|doc|docs|msg|message|description|desc|text|epilog|reason|title|label"
    r"|comment|note|error|warning|readme|info)(_\w+)?"
)
_RUNS = frozenset(
    {
        "system", "popen", "run", "call", "check_call", "check_output", "Popen", "getoutput",
        "getstatusoutput", "split", "create_subprocess_shell", "exec_command", "sudo", "local",
        "run_command", "run_cmd", "run_shell", "sh", "execute", "check_run", "spawn",
    }
)  # fmt: skip
# Functions that take the words of a command as separate arguments.
_RUNS_WORDS = re.compile(r"(os\.)?(exec|spawn)l\w*|create_subprocess_exec")
_SPEAKS = re.compile(
    r"print|p?print|echo|log\w*|debug|info|warn\w*|error|exception|critical|fatal|fail|skip\w*"
    r"|xfail|add_argument|add_option|DEFINE_\w+|secho|[A-Z]\w*(Error|Warning|Exception|Test)"
)
_PROGRAM = re.compile(
    r"(\w+=\S*\s+)*(python[\d.]*|ipython|pytest|bash|sh|zsh|env|export|unset|sudo|srun|sbatch|mpirun"
    r"|torchrun|nohup|time|timeout|poetry|uv|docker|make|\S+\.(py|sh))(?=\s|$)"
)
_CODE = re.compile(rf"config\.update\(\s*[\"']{SETTING.option}|environ\[\s*[\"']{SETTING.variable}")

Words = ast.List | ast.Tuple | ast.Set


class Strings:
    """Recognises arguments and command lines in one module."""

    def __init__(self, names: Names, forms: Forms) -> None:
        self.names = names
        self.forms = forms
        self.module = names.module
        # Strings found as elements of an argument list.
        self._elements: set[ast.expr] = set()

    # -- lists of arguments

    def words(self, node: Words | ast.Call) -> Iterator[FlagUse]:
        """Yield the uses in the words of a command: elements of a list, or arguments of `execl`."""
        if isinstance(node, ast.Call):
            if not _RUNS_WORDS.fullmatch(last_name(node.func)):
                return
            elements = node.args
        else:
            elements = node.elts
        texts = [self._text(element) for element in elements]
        if not any(map(SETTING.occurs, texts)) or any(self._is_line(text) for text in texts[:1]):
            return
        text = "\0".join(texts)
        spans: list[tuple[int, int]] = []
        at = 0
        for part in texts:
            spans.append((at, at + len(part)))
            at += len(part) + 1
        plan = TextPlan()
        dropped = plan_argv(text, spans, SETTING, plan)
        for number, use in enumerate(plan.uses):
            index = next(i for i, (low, high) in enumerate(spans) if low <= use.start <= high)
            self._elements.add(elements[index])
            asked = truth(ast.Constant(use.value))
            form: Form = "option" if use.form == "option" else "environment"
            if use.refused:
                yield FlagUse(elements[index], form, asked, reason=use.refused)
                continue
            gone = [elements[i] for i, causes in dropped.items() if number in causes]
            if self._is_named_apart(node) and elements[0] in gone and texts[0] == "env":
                gone.remove(elements[0])  # the first word is only what the program is called
            if gone:
                yield self._without(node, elements, gone, elements[index], form, asked)
            else:
                yield self._rewritten(elements[index], plan, number, spans[index], form, asked)

    def _is_named_apart(self, node: ast.expr) -> bool:
        """Return whether another argument names the program: `os.execvp("env", ["env", ...])`."""
        call = self.module.parent(node)
        if isinstance(node, ast.Call):
            return True
        return (
            isinstance(call, ast.Call)
            and re.match(r"exec|spawn|posix", last_name(call.func)) is not None
        )

    def _text(self, node: ast.expr) -> str:
        """Return the text of an element; `HOLE` if it is unknown."""
        if isinstance(node, ast.JoinedStr):
            literal = read_literal(self.module.segment(node))
            return literal.value if literal else HOLE
        return self.names.text(node) or HOLE

    def _is_line(self, text: str) -> bool:
        """Return whether an element is a command line, so that the list is one of commands."""
        return re.search(r"\S\s+\S", text) is not None and SETTING.tells(f" {text}")

    def _without(
        self,
        node: Words | ast.Call,
        elements: Sequence[ast.expr],
        gone: Sequence[ast.expr],
        shown: ast.expr,
        form: Form,
        asked: bool | None,
    ) -> FlagUse:
        holder = self.module.parent(node)
        if isinstance(holder, ast.Call) and last_name(holder.func) in ("parametrize", "product"):
            return FlagUse(shown, form, asked, reason="tests run for each of these values")
        change: Reduction | None = None
        if len(gone) == len(elements):
            change = self._emptied(node)
        return FlagUse(shown, form, asked, change or Reduction(remove=tuple(gone)))

    def _emptied(self, node: ast.expr) -> Reduction | None:
        """Return what to remove with an empty list; None: keep it, empty."""
        match self.module.parent(node):
            case ast.Call(func=ast.Attribute(attr="extend"), args=[_]) as call:
                return self.forms.without(call)
        return self.forms.emptied(node)

    def _rewritten(
        self,
        node: ast.expr,
        plan: TextPlan,
        number: int,
        span: tuple[int, int],
        form: Form,
        asked: bool | None,
    ) -> FlagUse:
        """Return the use in an element that is a script (after `-c`) and the new element."""
        literal = self._literal(node)
        if literal is None:
            return FlagUse(node, form, asked, reason="the string is not a literal here")
        pieces = [
            (start - span[0], end - span[0], put, causes)
            for start, end, put, causes in plan.pieces
            if number in causes
        ]
        return FlagUse(node, form, asked, _replacement(node, literal, pieces))

    def _literal(self, node: ast.expr) -> LiteralText | None:
        if not isinstance(node, ast.Constant | ast.JoinedStr):
            return None
        return read_literal(self.module.segment(node))

    # -- single strings

    def string(self, node: ast.Constant | ast.JoinedStr) -> FlagUse | None:
        """Recognise a string that is an argument or a command line."""
        holder = self.module.parent(node)
        if node in self._elements or isinstance(holder, ast.JoinedStr | ast.FormattedValue):
            return None
        if isinstance(holder, ast.Expr):
            return None  # a docstring
        literal = self._literal(node)
        if literal is None or not SETTING.tells(f" {literal.value}"):
            return None
        word = literal.value
        if SETTING.is_option(word) or (SETTING.is_assignment(word) and " " not in word):
            appended = self._appended(node, holder, word)
            if appended is not None:
                return appended
        return self._line(node, literal)

    def _appended(self, node: ast.expr, holder: ast.AST | None, word: str) -> FlagUse | None:
        """Recognise `cmd.append("--jax_new_checkpoint=0")`."""
        match holder:
            case ast.Call(func=ast.Attribute(attr="append" | "insert" | "remove")):
                change = self.forms.without(holder)
                form: Form = "option" if SETTING.is_option(word) else "environment"
                if change is not None:
                    return FlagUse(node, form, _asked(word), change)
        return None

    def _line(self, node: ast.Constant | ast.JoinedStr, literal: LiteralText) -> FlagUse | None:
        """Recognise a command line."""
        outer = self._outer(node)
        context = self._context(outer)
        if context == "prose":
            return None
        form: Form = "option" if SETTING.option in literal.value else "environment"
        if _CODE.search(literal.value):
            reason = "it is code in a string"
            return FlagUse(node, form, reason=reason, sure=False)
        line = literal.value.strip()
        likely = _PROGRAM.match(line) is not None or (
            SETTING.is_assignment(line) and not re.search(r"\s", line)
        )
        if context == "unknown" and not (likely and self._is_assigned(outer)):
            if not likely and not SETTING.is_option(line):
                return None
            reason = "it is unclear what runs this text"
            return FlagUse(node, form, reason=reason, sure=False)
        return self._without_use(node, literal, form)

    def _without_use(
        self, node: ast.Constant | ast.JoinedStr, literal: LiteralText, form: Form
    ) -> FlagUse | None:
        plan = TextPlan()
        try:
            gone = plan_shell(literal.value, SETTING, plan)
        except TextSyntaxError as error:
            return FlagUse(node, form, reason=f"cannot parse it as a command: {error}")
        if not plan.uses:
            return None
        asked = truth(ast.Constant(plan.uses[0].value))
        refused = next((use.refused for use in plan.uses if use.refused), "")
        if not refused and any(not plan.covers(*read) for read in plan.reads):
            refused = "the command reads the variable"
        if not refused and isinstance(node, ast.JoinedStr):
            lost = any(HOLE in literal.value[low:high] for low, high, _, _ in plan.pieces)
            parts = [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
            if lost and not all(map(is_pure, parts)):
                refused = SIDE_EFFECTS
        if not refused and self._is_filled_in(node):
            lost = any(
                re.search(r"[%{]", literal.value[low:high]) for low, high, _, _ in plan.pieces
            )
            refused = "the template would lose a placeholder" if lost else ""
        if refused:
            return FlagUse(node, form, asked, reason=refused)
        if gone is not None and (change := self._nothing_left(node)):
            return FlagUse(node, form, asked, change)
        return FlagUse(node, form, asked, _replacement(node, literal, plan.pieces))

    def _is_filled_in(self, node: ast.expr) -> bool:
        """Return whether a string is a template: `"..." % values` or `"...".format(values)`."""
        match self.module.parent(node):
            case ast.BinOp(op=ast.Mod()) | ast.Attribute(attr="format" | "format_map"):
                return True
        return False

    def _nothing_left(self, node: ast.expr) -> Reduction | None:
        """Return what to remove with an empty command line; None: keep it, empty."""
        match self.module.parent(node):
            case ast.Call(func=function, args=[first, *_]) as call if first is node:
                if last_name(function) in _RUNS - {"split"}:
                    return self.forms.without(call)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return Reduction(remove=(node,)) if len(elements) > 1 else None
        return self.forms.emptied(node)

    # -- where a string goes

    def _outer(self, node: ast.expr) -> ast.expr:
        """Return the outermost expression that builds a string from this one."""
        while True:
            holder = self.module.parent(node)
            match holder:
                case ast.BinOp(op=ast.Add() | ast.Mod()) | ast.IfExp() | ast.NamedExpr():
                    node = holder
                case ast.Attribute(attr="format" | "strip" | "join" | "replace" | "rstrip"):
                    call = self.module.parent(holder)
                    if not isinstance(call, ast.Call):
                        return node
                    node = call
                case ast.Call(func=ast.Attribute(attr="join" | "dedent")) | ast.Starred():
                    node = holder
                case _:
                    return node

    def _context(self, node: ast.expr, depth: int = 0) -> str:
        """Return whether a string is run as a "command", is "prose", or "unknown"."""
        holder = self.module.parent(node)
        match holder:
            case ast.keyword(arg=str(name)):
                call = self.module.parent(holder)
                known = _by_name(name)
                if known != "unknown" or not isinstance(call, ast.Call):
                    return known
                return self._by_callee(call)
            case ast.Call():
                return self._by_callee(holder)
            case ast.Attribute(attr="split" | "splitlines"):
                return "command"
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                return self._by_target(target, depth)
            case ast.AugAssign(target=target):
                return self._by_target(target, depth)
            case ast.Dict():
                for key, value in zip(holder.keys, holder.values, strict=True):
                    if value is node and isinstance(key, ast.Constant):
                        return _by_name(str(key.value))
            case ast.List() | ast.Tuple() | ast.Set():
                return self._context(holder, depth)
            case ast.Return():
                function = self.module.enclosing_function(holder)
                return _by_name(getattr(function, "name", ""))
            case ast.Raise() | ast.Assert():
                return "prose"
        return "unknown"

    def _by_callee(self, call: ast.Call) -> str:
        name = last_name(call.func)
        if name in _RUNS:
            return "command"
        return "prose" if _SPEAKS.fullmatch(name) else "unknown"

    def _by_target(self, target: ast.expr, depth: int) -> str:
        match target:
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                return _by_name(name)
            case ast.Attribute(attr=name):
                return _by_name(name)
            case ast.Name(id=name):
                known = _by_name(name)
                if known != "unknown" or depth > 2:
                    return known
                loads = find_mentions(self.module).names.get(name, ())
                found = {self._context(load, depth + 1) for load in loads}
                return "command" if "command" in found else known
        return "unknown"

    def _is_assigned(self, node: ast.expr) -> bool:
        holder = self.module.parent(node)
        while isinstance(holder, ast.List | ast.Tuple):
            holder = self.module.parent(holder)
        return isinstance(holder, ast.Assign | ast.AnnAssign | ast.AugAssign)


def _replacement(node: ast.expr, literal: LiteralText, pieces: Sequence[Piece]) -> Reduction:
    """Return the replacement of a literal by one without `pieces` of its text."""
    edits = [e for r in join_pieces(Path(), literal.value, pieces) for e in r.edits]
    return Reduction(replace=((node, literal.without((e.start, e.end, e.text) for e in edits)),))


def _by_name(name: str) -> str:
    if _PROSE_NAME.fullmatch(name):
        return "prose"
    if _COMMAND_NAME.fullmatch(name) or is_environment_name(name):
        return "command"
    return "unknown"


def _asked(word: str) -> bool | None:
    if word.lstrip("-").startswith("no"):
        return False
    value = word.partition("=")[2]
    return truth(ast.Constant(value)) if value else True
