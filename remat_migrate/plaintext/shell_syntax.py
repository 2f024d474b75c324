"""The structure of a shell script: simple commands, lists and compound commands.

Enough of POSIX shell and bash to know what is a word of which command, where a command starts and
ends, and which list it stands in; nothing is run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .shell_lexer import BLANK, Lexer, ShellSyntaxError, Token, Word

_REDIRECTS = frozenset(("<<<", "<<-", "&>>", "<<", ">>", "&>", ">&", "<&", "<>", ">|", "<", ">"))


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
    parser = _Parser(Lexer(text, end, indent), start)
    found = parser.commands(frozenset())
    if parser.token.kind != "end":
        raise ShellSyntaxError(f"{parser.token.text!r} at {parser.token.start} is not expected")
    return found


class _Parser:
    def __init__(self, lexer: Lexer, start: int) -> None:
        self.lexer = lexer
        self.last_end = start
        self.token = lexer.next(start)

    def advance(self) -> Token:
        token = self.token
        self.last_end = token.end
        self.token = self.lexer.next(token.end)
        return token

    def is_word(self, *texts: str) -> bool:
        return self.token.kind == "word" and self.token.text in texts

    def is_operator(self, *texts: str) -> bool:
        return self.token.kind == "operator" and self.token.text in texts

    def expect(self, text: str) -> Token:
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
        blank = BLANK.match(self.lexer.text, end, self.lexer.end)
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
