"""The structure of a shell script: words, simple commands, lists and compound commands.

Enough of POSIX shell and bash to know what is a word of which command, where a command starts and
ends, and which list it stands in; nothing is expanded or run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

_OPERATORS = (
    "<<<", "<<-", "&>>", ";;&",
    "&&", "||", ";;", ";&", "|&", "<<", ">>", "&>", ">&", "<&", "<>", ">|",
    ";", "&", "|", "(", ")", "<", ">",
)  # fmt: skip
_REDIRECTS = frozenset(("<<<", "<<-", "&>>", "<<", ">>", "&>", ">&", "<&", "<>", ">|", "<", ">"))
_BLANK = re.compile(r"(?:[ \t]|\\\r?\n)+")
_NEWLINE = re.compile(r"\r?\n")
_WORD_ENDS = frozenset(" \t\r\n;&|()<>")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=")


class ShellSyntaxError(Exception):
    """The text is not a script that can be read."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it stands in the script.

    Attributes:
        start, end: its offsets.
        text: its characters, quotes and all.
        inner: the ranges of the commands in its `$(...)` and backquotes.
        elements: the words of an array, `NAME=(a b c)`.
    """

    start: int
    end: int
    text: str
    inner: tuple[tuple[int, int], ...] = ()
    elements: tuple[Word, ...] | None = None


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection; `body` is the range of the lines of a here-document, if it is one."""

    start: int
    end: int
    operator: str
    target: Word
    body: list[tuple[int, int]]


@dataclass(frozen=True, eq=False, slots=True)
class Simple:
    """A simple command: assignments, name, arguments and redirections, in order."""

    start: int
    end: int
    parts: tuple[Word | Redirect, ...]

    @property
    def words(self) -> list[Word]:
        """The words without the redirections."""
        return [part for part in self.parts if isinstance(part, Word)]

    @property
    def redirects(self) -> list[Redirect]:
        """The redirections."""
        return [part for part in self.parts if isinstance(part, Redirect)]


@dataclass(frozen=True, eq=False, slots=True)
class Compound:
    """`if`, `while`, `for`, `case`, a group, a subshell or the definition of a function.

    `tests` are the lists whose outcome decides, `bodies` the others; `words` what a `for` or a
    `case` looks at.
    """

    kind: str
    start: int
    end: int
    tests: tuple[CommandList, ...] = ()
    bodies: tuple[CommandList, ...] = ()
    words: tuple[Word, ...] = ()


Command = Simple | Compound


@dataclass(frozen=True, eq=False, slots=True)
class Link:
    """A command of a list and the operator behind it (`""` at the end of the list)."""

    command: Command
    operator: str
    negated: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class CommandList:
    """Commands one after the other."""

    links: tuple[Link, ...] = ()


@dataclass(slots=True)
class _Token:
    kind: str  # "word", "operator", "newline", "end"
    start: int
    end: int
    text: str
    word: Word | None = None


@dataclass(slots=True)
class _Lexer:
    text: str
    end: int
    indent: str
    pending: list[tuple[str, bool, list[tuple[int, int]]]] = field(default_factory=list)

    def next(self, at: int) -> _Token:
        """The token at or after an offset, here-documents behind its newline skipped."""
        while True:
            blank = _BLANK.match(self.text, at, self.end)
            at = blank.end() if blank else at
            if at >= self.end:
                return _Token("end", self.end, self.end, "")
            if self.text[at] == "#":
                line = self.text.find("\n", at, self.end)
                at = self.end if line < 0 else line
                continue
            break
        newline = _NEWLINE.match(self.text, at, self.end)
        if newline:
            return _Token("newline", at, self._after_documents(newline.end()), "\n")
        if self.text.startswith(("<(", ">("), at):
            word = self.word(at)
            return _Token("word", at, word.end, word.text, word)
        for operator in _OPERATORS:
            if self.text.startswith(operator, at) and at + len(operator) <= self.end:
                return _Token("operator", at, at + len(operator), operator)
        word = self.word(at)
        following = self.text[word.end : word.end + 1]
        if word.text.isdigit() and following in ("<", ">") and following:
            return self.next(word.end)  # the file descriptor of a redirection
        return _Token("word", at, word.end, word.text, word)

    def _after_documents(self, at: int) -> int:
        for terminator, tabs, ranges in self.pending:
            start = at
            while at < self.end:
                stop = self.text.find("\n", at, self.end)
                stop = self.end if stop < 0 else stop
                line = self.text[at:stop].rstrip("\r").removeprefix(self.indent)
                here = at
                at = min(stop + 1, self.end)
                if (line.lstrip("\t") if tabs else line) == terminator:
                    ranges.append((start, here))
                    break
            else:
                ranges.append((start, self.end))
        self.pending.clear()
        return at

    def word(self, start: int) -> Word:
        """The word that starts at an offset."""
        at = start
        inner: list[tuple[int, int]] = []
        if self.text.startswith(("<(", ">("), at):
            at = self._parenthesis(at + 1, inner)
        while at < self.end:
            letter = self.text[at]
            if letter == "\\":
                at += 2
            elif letter == "'":
                at = self._find("'", at + 1) + 1
            elif letter == '"':
                at = self._double_quoted(at + 1, inner)
            elif letter == "`":
                stop = self._find("`", at + 1)
                inner.append((at + 1, stop))
                at = stop + 1
            elif letter == "$":
                at = self._dollar(at, inner)
            elif letter == "(" and _ASSIGNMENT.fullmatch(self.text, start, at):
                return self._array(start, at)
            elif letter in _WORD_ENDS:
                break
            else:
                at += 1
        if at > self.end:
            raise ShellSyntaxError(f"a word at {start} does not end")
        if at == start:
            raise ShellSyntaxError(f"no word at {start}")
        return Word(start, at, self.text[start:at], tuple(inner))

    def _find(self, what: str, at: int) -> int:
        found = self.text.find(what, at, self.end)
        if found < 0:
            raise ShellSyntaxError(f"a {what} before {at} is not closed")
        return found

    def _double_quoted(self, at: int, inner: list[tuple[int, int]]) -> int:
        while at < self.end:
            letter = self.text[at]
            if letter == '"':
                return at + 1
            if letter == "\\":
                at += 2
            elif letter == "`":
                stop = self._find("`", at + 1)
                inner.append((at + 1, stop))
                at = stop + 1
            elif letter == "$":
                at = self._dollar(at, inner)
            else:
                at += 1
        raise ShellSyntaxError('a " is not closed')

    def _dollar(self, at: int, inner: list[tuple[int, int]]) -> int:
        if self.text.startswith("$((", at):
            return self.nested(at + 1, "(", ")")
        if self.text.startswith("$(", at):
            return self._parenthesis(at + 1, inner)
        if self.text.startswith("${", at):
            return self.nested(at + 1, "{", "}")
        if self.text.startswith("$'", at):
            at += 2
            while at < self.end and self.text[at] != "'":
                at += 2 if self.text[at] == "\\" else 1
            return at + 1
        return at + 1

    def _parenthesis(self, at: int, inner: list[tuple[int, int]]) -> int:
        """Past the parenthesis that opens at an offset; what is in it are commands."""
        stop = self.nested(at, "(", ")")
        inner.append((at + 1, stop - 1))
        return stop

    def nested(self, at: int, opening: str, closing: str) -> int:
        """Past the bracket that closes the one at an offset; quotes hide brackets."""
        depth = 0
        while at < self.end:
            letter = self.text[at]
            if letter == "\\":
                at += 1
            elif letter == "'" and opening == "(":
                at = self._find("'", at + 1)
            elif letter == '"':
                at = self._double_quoted(at + 1, []) - 1
            elif letter == opening:
                depth += 1
            elif letter == closing:
                depth -= 1
                if depth == 0:
                    return at + 1
            at += 1
        raise ShellSyntaxError(f"a {opening} is not closed")

    def _array(self, start: int, at: int) -> Word:
        elements: list[Word] = []
        at += 1
        while True:
            blank = re.compile(r"(?:[ \t\r\n]|\\\r?\n|#[^\n]*)*").match(self.text, at, self.end)
            at = blank.end() if blank else at
            if at >= self.end:
                raise ShellSyntaxError("an array is not closed")
            if self.text[at] == ")":
                end = at + 1
                inner = tuple(part for element in elements for part in element.inner)
                return Word(start, end, self.text[start:end], inner, tuple(elements))
            elements.append(self.word(at))
            at = elements[-1].end


_Parts = tuple[list[CommandList], list[CommandList], list[Word]]


def parse_shell(text: str, start: int, end: int, indent: str = "") -> CommandList:
    """The commands in `text[start:end]`.

    Args:
        text: the whole text; offsets in the result are of this text.
        start: where the script starts.
        end: where it ends.
        indent: white space that stands before every line of the script and is none of it.

    Raises:
        ShellSyntaxError: it is no script, or one that is beyond this parser.
    """
    parser = _Parser(_Lexer(text, end, indent), start)
    found = parser.commands(frozenset())
    if parser.token.kind != "end":
        raise ShellSyntaxError(f"{parser.token.text!r} at {parser.token.start} is not expected")
    return found


class _Parser:
    def __init__(self, lexer: _Lexer, start: int) -> None:
        self.lexer = lexer
        self.last_end = start
        self.token = lexer.next(start)

    def advance(self) -> _Token:
        token = self.token
        self.last_end = token.end
        self.token = self.lexer.next(token.end)
        return token

    def is_word(self, *texts: str) -> bool:
        return self.token.kind == "word" and self.token.text in texts

    def is_operator(self, *texts: str) -> bool:
        return self.token.kind == "operator" and self.token.text in texts

    def expect(self, text: str) -> _Token:
        if self.token.text != text or self.token.kind not in ("word", "operator"):
            raise ShellSyntaxError(f"{text!r} expected at {self.token.start}")
        return self.advance()

    def newlines(self) -> None:
        while self.token.kind == "newline":
            self.advance()

    def commands(self, terminators: frozenset[str]) -> CommandList:
        """Commands up to a word of `terminators` in the place of a command, or the end."""
        links: list[Link] = []
        self.newlines()
        while not self.at_end(terminators):
            negated = False
            while self.is_word("!", "time"):
                negated = True
                self.advance()
            command = self.command()
            operator = ""
            if self.is_operator(";", "&", "&&", "||", "|", "|&"):
                operator = self.advance().text
            elif self.token.kind == "newline":
                operator = "\n"
                self.advance()
            links.append(Link(command, operator, negated))
            self.newlines()
        return CommandList(tuple(links))

    def at_end(self, terminators: frozenset[str]) -> bool:
        if self.token.kind == "end" or self.is_operator(")", ";;", ";&", ";;&"):
            return True
        return self.token.kind == "word" and self.token.text in terminators

    def command(self) -> Command:
        start = self.token.start
        if self.is_operator("("):
            return self.compound("subshell", start, self.subshell)
        match self.token.text if self.token.kind == "word" else "":
            case "if":
                return self.compound("if", start, self.if_)
            case "while" | "until":
                return self.compound("while", start, self.while_)
            case "for" | "select":
                return self.compound("for", start, self.for_)
            case "case":
                return self.compound("case", start, self.case)
            case "{":
                return self.compound("group", start, self.group)
            case "[[":
                return self.condition()
            case "function":
                self.advance()
                self.advance()
                if self.is_operator("("):
                    self.advance()
                    self.expect(")")
                return self.function(start)
        return self.simple()

    def compound(self, kind: str, start: int, parse: Callable[[], _Parts]) -> Compound:
        tests, bodies, words = parse()
        end = self.last_end
        while self.is_redirect():
            end = self.redirect().end
        return Compound(kind, start, end, tuple(tests), tuple(bodies), tuple(words))

    def subshell(self) -> _Parts:
        self.expect("(")
        body = self.commands(frozenset())
        self.expect(")")
        return [], [body], []

    def group(self) -> _Parts:
        self.expect("{")
        body = self.commands(frozenset(("}",)))
        self.expect("}")
        return [], [body], []

    def if_(self) -> _Parts:
        tests: list[CommandList] = []
        bodies: list[CommandList] = []
        self.expect("if")
        while True:
            tests.append(self.commands(frozenset(("then",))))
            self.expect("then")
            bodies.append(self.commands(frozenset(("elif", "else", "fi"))))
            if not self.is_word("elif"):
                break
            self.advance()
        if self.is_word("else"):
            self.advance()
            bodies.append(self.commands(frozenset(("fi",))))
        self.expect("fi")
        return tests, bodies, []

    def while_(self) -> _Parts:
        self.advance()
        test = self.commands(frozenset(("do",)))
        return [test], [self.do()], []

    def do(self) -> CommandList:
        self.expect("do")
        body = self.commands(frozenset(("done",)))
        self.expect("done")
        return body

    def for_(self) -> _Parts:
        self.advance()
        words: list[Word] = []
        if self.is_operator("("):  # for ((i = 0; i < n; i++))
            end = self.lexer.nested(self.token.start, "(", ")")
            self.token = self.lexer.next(end)
        else:
            self.advance()
            self.newlines()
            if self.is_word("in"):
                self.advance()
                while self.token.kind == "word":
                    word = self.advance().word
                    assert word is not None
                    words.append(word)
        if self.is_operator(";"):
            self.advance()
        self.newlines()
        return [], [self.do()], words

    def case(self) -> _Parts:
        self.advance()
        subject = self.advance().word
        self.newlines()
        self.expect("in")
        self.newlines()
        bodies: list[CommandList] = []
        while not self.is_word("esac"):
            if self.token.kind == "end":
                raise ShellSyntaxError("a case is not closed")
            while not self.is_operator(")"):
                if self.token.kind in ("end", "newline"):
                    raise ShellSyntaxError("a pattern is not closed")
                self.advance()
            self.advance()
            bodies.append(self.commands(frozenset(("esac",))))
            if self.is_operator(";;", ";&", ";;&"):
                self.advance()
            self.newlines()
        self.expect("esac")
        return [], bodies, [subject] if subject else []

    def function(self, start: int) -> Compound:
        self.newlines()
        body = self.command()
        if not isinstance(body, Compound):
            raise ShellSyntaxError("a function has no body")
        return Compound("function", start, body.end, (), (CommandList((Link(body, ""),)),))

    def condition(self) -> Simple:
        """`[[ ... ]]`, in which operators are words."""
        start = self.token.start
        parts: list[Word | Redirect] = []
        while not self.is_word("]]"):
            if self.token.kind == "end":
                raise ShellSyntaxError("a [[ is not closed")
            token = self.advance()
            if token.word is not None:
                parts.append(token.word)
        last = self.advance()
        assert last.word is not None
        parts.append(last.word)
        return Simple(start, last.end, tuple(parts))

    def is_redirect(self) -> bool:
        return self.token.kind == "operator" and self.token.text in _REDIRECTS

    def redirect(self) -> Redirect:
        operator = self.token
        start = operator.start
        while start > 0 and self.lexer.text[start - 1].isdigit():
            start -= 1
        end = operator.end
        blank = _BLANK.match(self.lexer.text, end, self.lexer.end)
        target = self.lexer.word(blank.end() if blank else end)
        ranges: list[tuple[int, int]] = []
        if operator.text in ("<<", "<<-"):
            name = target.text.strip("'\"").replace("\\", "")
            self.lexer.pending.append((name, operator.text == "<<-", ranges))
        self.last_end = target.end
        self.token = self.lexer.next(target.end)
        # The lexer fills `ranges` when it comes to the end of this line.
        return Redirect(start, target.end, operator.text, target, ranges)

    def simple(self) -> Command:
        start = self.token.start
        parts: list[Word | Redirect] = []
        while True:
            if self.is_redirect():
                parts.append(self.redirect())
            elif self.token.kind == "word":
                word = self.advance().word
                assert word is not None
                parts.append(word)
                if len(parts) == 1 and self.is_operator("("):
                    self.advance()
                    self.expect(")")
                    return self.function(start)
            else:
                break
        if not parts:
            raise ShellSyntaxError(f"{self.token.text!r} at {self.token.start} is not expected")
        return Simple(start, parts[-1].end, tuple(parts))
