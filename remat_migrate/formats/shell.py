"""A setting in a shell script: variables and options."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..text.replacements import Causes, united
from .lists import CHAINED, COMMANDS, drop_items
from .setting import Setting, TextPlan, TextSyntaxError
from .shell_tree import Command, CommandList, Compound, Link, Redirect, Simple, Word, parse_shell
from .shell_words import NAME, SCRIPT_OPTIONS, Removed, WordPlanner, bare, drop

_DECLARING = frozenset({"export", "declare", "typeset", "readonly", "local", "unset"})
_SPEAKING = frozenset({"echo", "printf", "print", "log", "logger", "die", "warn", "info", "git"})
# These commands run the lines of a here-document as a script.
_SHELLS = frozenset({"bash", "sh", "zsh", "ksh", "dash", "ssh", "sbatch", "qsub", "bsub", "su"})
_SCRIPT_FILE = re.compile(r"\.(sh|bash|zsh|ksh|slurm|sbatch|pbs|env|envrc|bashrc|profile)\b")
_JOINING = frozenset({"&&", "||", "|", "|&"})
_PURE_TESTS = frozenset({"[", "[[", "test", "true", "false", ":", "command", "type"})


def plan_shell(
    text: str,
    setting: Setting,
    plan: TextPlan,
    start: int = 0,
    end: int | None = None,
    *,
    skipped: Sequence[tuple[int, int]] = (),
    strict: bool = False,
) -> Causes | None:
    """Add the uses of a setting in `text[start:end]`, and their removal, to `plan`.

    Args:
        text: the whole text, as the shell sees it.
        setting: the setting to remove.
        plan: the plan to add to.
        start: where the script starts.
        end: where it ends; None for the end of the text.
        skipped: ranges within it that are not part of it, in order.
        strict: whether the text may be prose; then `NAME=0` is an assignment only before a command.

    Returns:
        The causes of removing the whole script; None if some of it stays or nothing is removed.

    Raises:
        TextSyntaxError: the script cannot be parsed; `plan` is unchanged.
    """
    stop = len(text) if end is None else end
    commands = parse_shell(text, start, stop, skipped, setting.occurs)
    script = _Script(text, setting, plan, strict=strict)
    script.plan_list(commands)
    script.write_list(commands, required=False)
    return script.all_gone(commands)


def plan_variables(
    text: str,
    start: int,
    end: int,
    setting: Setting,
    plan: TextPlan,
    *,
    skipped: Sequence[tuple[int, int]] = (),
) -> Causes | None:
    """Plan a blank-separated list of assignments or names, such as `A=1 B=2`.

    Returns:
        The causes of removing the whole list; then no pieces are planned for the words themselves.
    """
    commands = [
        link.command for link in parse_shell(text, start, end, skipped, setting.occurs).links
    ]
    match commands:
        case [Simple() as command] if not command.redirects:
            words = command.words
        case _:
            raise TextSyntaxError("it is more than a list of variables")
    if len(words) > 1 and words[0].text == setting.variable and not NAME.match(words[1].text):
        value = text[words[0].end : end].strip()  # the old form, `ENV NAME value`
        return plan.take(words[0].start, end, "variable", value)
    planner = _Script(text, setting, plan).words
    removed: Removed = {}
    planner.operands(words, removed)
    if words and all(word in removed for word in words):
        return united(removed.values())
    planner.cut(words, removed)
    return None


def plan_argv(
    text: str, elements: Sequence[tuple[int, int]], setting: Setting, plan: TextPlan
) -> dict[int, Causes]:
    """Return the elements to remove from a list of arguments, by index, with their causes.

    An argument that is a script (after `-c`) is planned inside. `elements` are ranges without
    quotes.
    """
    words = [Word(start, end, text[start:end]) for start, end in elements]
    script = _Script(text, setting, plan)
    for index, word in enumerate(words[1:], 1):
        if words[index - 1].text in SCRIPT_OPTIONS and setting.occurs(word.text):
            known = len(plan.uses)
            script.run_string(word.start, word.end, False)
            if len(plan.uses) == known and setting.tells(word.text):
                plan.refuse(word.start, word.end, "variable", "it is inside a script")
            words[index] = Word(word.start, word.end, "_")
    # An element with blanks is not a single word: the list is one of command lines.
    words = [Word(w.start, w.end, "_") if re.search(r"\s", w.text) else w for w in words]
    removed: Removed = {}
    script.words.arguments(words, removed)
    return {index: removed[word] for index, word in enumerate(words) if word in removed}


class _Script:
    """Finds the commands to remove, and removes words from the others."""

    def __init__(
        self, text: str, setting: Setting, plan: TextPlan, *, strict: bool = False
    ) -> None:
        self.text = text
        self.setting = setting
        self.plan = plan
        self.gone: dict[Command, Causes] = {}
        self.words = WordPlanner(text, setting, plan, self.run_string, strict=strict)

    def run_string(self, start: int, end: int, strict: bool) -> None:
        """Plan a range of the text as a script of its own, if it can be parsed as one."""
        inner = self.plan.fork()
        try:
            plan_shell(self.text, self.setting, inner, start, end, strict=strict)
        except TextSyntaxError:
            return  # the caller refuses what was not found
        self.plan.adopt(inner)

    def plan_list(self, commands: CommandList) -> None:
        """Plan the commands of a list and of the lists inside it."""
        links = commands.links
        for link, following in zip(links, (*links[1:], None), strict=False):
            if isinstance(link.command, Simple):
                self._simple(link.command, link, following)
            else:
                self._compound(link.command)

    def all_gone(self, commands: CommandList) -> Causes | None:
        """Return the causes if every command of a list is removed; None if one stays."""
        if not commands.links or any(link.command not in self.gone for link in commands.links):
            return None
        return united(self.gone[link.command] for link in commands.links)

    def _compound(self, command: Compound) -> None:
        for inner in (*command.tests, *command.bodies):
            self.plan_list(inner)
        for word in command.words:
            self._inside(word)
        empty = [self.all_gone(body) for body in command.bodies]
        if not empty or any(causes is None for causes in empty):
            return
        if command.kind == "function":
            # A function needs a body, even an empty one.
            for link in command.bodies[0].links:
                self.gone.pop(link.command, None)
            return
        goes = {
            "if": all(map(_is_pure, command.tests)),
            "for": not any(word.inner for word in command.words),
            "group": True,
            "subshell": True,
        }
        if goes.get(command.kind):
            self.gone[command] = united(causes or frozenset() for causes in empty)

    def _simple(self, command: Simple, link: Link, following: Link | None) -> None:
        words = command.words
        removed: Removed = {}
        first = 0
        while first < len(words) and NAME.match(words[first].text):
            self.words.assignment(words[first], removed)
            first += 1
        if first < len(words):
            name = bare(words[first].text).rpartition("/")[2]
            if name in _SPEAKING:
                self._speech(command, words[first + 1 :], link, following)
            else:
                self._command(name, words[first:], removed)
        else:
            name = ""
        for redirect in command.redirects:
            self._document(redirect, command, name)
        for word in words:
            self._inside(word, skip=word in removed)
        for redirect in command.redirects:
            self._note_reads(redirect.start, redirect.end)
        if words and all(word in removed for word in words):
            self.gone[command] = united(removed.values())
        else:
            self.words.cut(command.parts, removed)

    def _command(self, name: str, words: Sequence[Word], removed: Removed) -> None:
        """Plan the words of a command, starting with its name."""
        variable = self.setting.variable
        start, end = words[0].start, words[-1].end
        operands = [word for word in words[1:] if not word.text.startswith("-")]
        if name in ("[", "[[", "test"):
            # `test -v NAME`
            self.plan.add_reads(re.compile(rf"(?<!\S){variable}(?!\S)"), self.text, start, end)
        elif name in _DECLARING:
            self.words.operands(operands, removed)
            _drop_rest(words, operands, removed)
        elif name == ":":
            for word in operands:
                if match := re.fullmatch(rf"\$\{{{variable}:?=([^}}]*)\}}", bare(word.text)):
                    drop(removed, [word], self.words.variable(word, match.group(1)))
            _drop_rest(words, operands, removed)
        elif name == "setenv" and operands and operands[0].text == variable:
            value = " ".join(word.text for word in operands[1:])
            drop(removed, words, self.words.variable(operands[0], value))
        elif name == "set" and operands and operands[0].text == variable:
            # fish: `set -gx NAME 0`
            drop(removed, words, self.words.variable(operands[0], operands[-1].text))
        else:
            self.words.arguments(words, removed, name)

    def _inside(self, word: Word, *, skip: bool = False) -> None:
        """Plan the commands in a word's `$(...)`, and add reads of the variable."""
        self._note_reads(word.start, word.end)
        for commands in () if skip else word.inner:
            self.plan_list(commands)
            self.write_list(commands, required=True)

    def _note_reads(self, start: int, end: int) -> None:
        self.plan.add_reads(self.setting.reading, self.text, start, end)

    # -- text that is written to a file

    def _speech(
        self, command: Simple, words: Sequence[Word], link: Link, following: Link | None
    ) -> None:
        """Plan `echo NAME=0 >> file`, which sets a variable; `echo` alone does not."""
        to_file = any(r.operator in (">", ">>", ">|", "&>") for r in command.redirects)
        tee = _tee(link, following)
        said = [word for word in words if not re.fullmatch(r"-[neE]+", word.text)]
        content = " ".join(bare(word.text) for word in said)
        if not (to_file or tee) or not said or not self.setting.tells(f" {content}"):
            return
        name = self.setting.variable
        whole = re.fullmatch(
            rf"(?:export |ENV |::set-env name=)?{name}(?:=|::)(\S*?)(?:\\n)?", content
        )
        start, end = said[0].start, said[-1].end
        if whole is None:
            reason = "it is part of text written to a file"
            self.plan.refuse(start, end, "variable", reason)
        elif causes := self.plan.take(start, end, "variable", whole.group(1)):
            self.gone[command] = causes
            if tee is not None:
                self.gone[tee] = causes

    def _document(self, redirect: Redirect, command: Simple, name: str) -> None:
        """Plan a here-document that a shell runs or that becomes a script file."""
        targets = [r.target for r in command.redirects if r is not redirect]
        targets += [word.text for word in command.words[1:]]
        written = name in ("cat", "tee") and any(map(_SCRIPT_FILE.search, targets))
        if redirect.body is None:
            return
        start, end = redirect.body
        found = self.setting.pattern.search(self.text, start, end)
        if found is None:
            return
        known = len(self.plan.uses)
        if written or not name or name in _SHELLS:  # without a name: `RUN <<EOF`
            self.run_string(start, end, False)
        if len(self.plan.uses) == known:
            reason = f"it is in a here-document for {name}"
            self.plan.refuse(*found.span(), "variable", reason)

    # -- lists without the removed commands

    def write_list(self, commands: CommandList, *, required: bool) -> None:
        """Plan what remains of a list and the lists inside it; `required` leaves at least a `:`."""
        chains = _chains(commands)
        gone = {i: causes for i, c in enumerate(chains) if (causes := self._chain_gone(c))}
        for index, chain in enumerate(chains):
            if index not in gone:
                self._write_chain(chain)
        spans = [(chain[0].command.start, chain[-1].command.end) for chain in chains]
        if required and chains and len(gone) == len(chains):
            self.plan.put(*spans[0], ":", gone.pop(0))
        drop_items(self.text, spans, gone, COMMANDS, self.plan)

    def _chain_gone(self, chain: Sequence[Link]) -> Causes | None:
        if any(link.command not in self.gone or link.negated for link in chain):
            return None
        return united(self.gone[link.command] for link in chain)

    def _write_chain(self, chain: Sequence[Link]) -> None:
        """Plan a chain of `&&`, `||`, and `|` that loses some of its commands."""
        before = ""
        dropped: dict[int, Causes] = {}
        for index, link in enumerate(chain):
            causes = self.gone.get(link.command)
            command = link.command
            if causes is None:
                if isinstance(command, Compound):
                    self._write_inside(command)
            elif link.operator == "&&" and before in ("", "&&") and not link.negated:
                dropped[index] = causes
            else:
                self.plan.put(command.start, command.end, ":", causes)
            before = link.operator
        spans = [(link.command.start, link.command.end) for link in chain]
        drop_items(self.text, spans, dropped, CHAINED, self.plan)

    def _write_inside(self, command: Compound) -> None:
        for test in command.tests:
            self.write_list(test, required=True)
        for body in command.bodies:
            self.write_list(body, required=command.kind != "case")


def _chains(commands: CommandList) -> list[list[Link]]:
    """Group the commands of a list that `&&`, `||`, or pipes join."""
    chains: list[list[Link]] = []
    joined = False
    for link in commands.links:
        if joined:
            chains[-1].append(link)
        else:
            chains.append([link])
        joined = link.operator in _JOINING
    return chains


def _drop_rest(words: Sequence[Word], operands: Sequence[Word], removed: Removed) -> None:
    if operands and all(word in removed for word in operands):
        causes = united(removed[word] for word in operands)
        drop(removed, words, causes)


def _tee(link: Link, following: Link | None) -> Simple | None:
    """Return the `tee` that a command is piped into."""
    if link.operator != "|" or following is None or not isinstance(following.command, Simple):
        return None
    words = following.command.words
    return following.command if words and words[0].text == "tee" else None


def _is_pure(test: CommandList) -> bool:
    """Return whether a test has no side effects."""
    for link in test.links:
        command = link.command
        if not isinstance(command, Simple) or not command.words:
            return False
        if command.words[0].text not in _PURE_TESTS or any(w.inner for w in command.words):
            return False
    return True
