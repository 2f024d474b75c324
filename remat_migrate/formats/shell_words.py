"""The words of a shell command that set a variable or pass an option."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..text.replacements import Causes, united
from .lists import BLANKS, drop_items
from .setting import Setting, TextPlan, read_bool
from .shell_tree import Redirect, Word

NAME = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=")
# Options whose argument is a script, and commands whose arguments are scripts.
SCRIPT_OPTIONS = frozenset({"-c", "-lc", "-ic", "-ec", "-xc", "-exc", "--command", "--wrap"})
_SCRIPT_COMMANDS = frozenset({"eval", "ssh", "tmux", "watch", "parallel", "trap", "su"})
# Options that take a variable: `docker run -e NAME=0`, `mpirun -x NAME`.
_VARIABLE_OPTIONS = frozenset(
    {
        "-e", "--env", "-x", "-v", "--build-arg", "--setenv", "--export", "--test_env",
        "--action_env", "--repo_env", "--set-env-vars", "--update-env-vars", "--remove-env-vars",
        "-u", "--unset", "--env-add", "--env-rm",
    }
)  # fmt: skip
# Variables that hold text for people.
PROSE_NAME = re.compile(r"(?i)msg|message|help|usage|desc|text|comment|note|title|doc")

Removed = dict[Word, Causes]


class WordPlanner:
    """Adds the uses in words to a plan, and the words to remove with their causes to a dict.

    `run_script(start, end, strict)` plans a range that is a script of its own. The text of a strict
    planner may be prose: `NAME=0` is an assignment only where nothing else is possible.
    """

    def __init__(
        self,
        text: str,
        setting: Setting,
        plan: TextPlan,
        run_script: Callable[[int, int, bool], None],
        *,
        strict: bool = False,
    ) -> None:
        self.text = text
        self.setting = setting
        self.plan = plan
        self.run_script = run_script
        self.strict = strict

    def assignment(self, word: Word, removed: Removed) -> None:
        """Plan `NAME=value` before a command or alone; the value may be a command line."""
        if self.setting.is_assignment(word.text):
            drop(removed, [word], self.variable(word, word.text.partition("=")[2]))
            return
        match = NAME.match(word.text)
        assert match is not None
        if PROSE_NAME.search(match.group(1)) or not self.setting.occurs(word.text):
            return
        if word.elements is not None:
            kept: Removed = {}
            self.arguments(word.elements, kept)
            self.cut(word.elements, kept)
            return
        start = word.start + match.end()
        value = Word(start, word.end, self.text[start : word.end])
        if self.setting.is_option(bare(value.text)):
            quoted = value.text[:1] in ('"', "'")
            if causes := self._option(value):
                self.plan.put(start + quoted, word.end - quoted, "", causes)
        else:
            self._script(start, word.end, strict=True)

    def operands(self, words: Sequence[Word], removed: Removed) -> None:
        """Plan the words after `export` or `ENV`: assignments and names."""
        for word in words:
            if self._is_operand(word):
                drop(removed, [word], self.variable(word, bare(word.text).partition("=")[2]))
            elif NAME.match(word.text):
                self.assignment(word, removed)

    def arguments(self, words: Sequence[Word], removed: Removed, command: str = "") -> None:
        """Plan the words of a command without special treatment of variables."""
        for index, word in enumerate(words):
            if word not in removed and self.setting.occurs(word.text):
                self._argument(words, index, removed, command)
        self._drop_env(words, removed)

    def cut(self, parts: Sequence[Word | Redirect], removed: Removed) -> None:
        """Plan adjacent `parts` without the removed words."""
        gone = {i: removed[w] for i, w in enumerate(parts) if isinstance(w, Word) and w in removed}
        spans = [(part.start, part.end) for part in parts]
        drop_items(self.text, spans, gone, BLANKS, self.plan)

    def variable(self, word: Word, value: str) -> Causes | None:
        """Plan a word that sets the variable to `value`."""
        refused = ""
        if word.inner:
            refused = "its value is the output of a command, which would no longer run"
        return self.plan.take(word.start, word.end, "variable", bare(value), refused)

    # -- single arguments

    def _argument(self, words: Sequence[Word], index: int, removed: Removed, command: str) -> None:
        word = words[index]
        before = words[index - 1] if index else None
        after = words[index + 1] if index + 1 < len(words) else None
        if self.setting.is_option(bare(word.text)):
            if after and self.setting.takes_next(bare(word.text), bare(after.text)):
                drop(removed, [word, after], self._option(word, bare(after.text)))
            else:
                drop(removed, [word], self._option(word))
        elif before and after and before.text == "-genv" and word.text == self.setting.variable:
            drop(removed, [before, word, after], self.variable(word, after.text))
        elif self._is_operand(word):
            self._operand(word, before, removed)
        elif self._attached(word, removed) or self._listed(word, before):
            pass
        elif self._is_script(word, before, command):
            known = len(self.plan.uses)
            quote = min(i for q in ('"', "'") if (i := word.text.find(q)) >= 0)
            self._script(word.start + quote, word.end, strict=self.strict)
            if len(self.plan.uses) == known and self.setting.tells(word.text):
                self.plan.refuse(word.start, word.end, "variable", "it is inside a script")
        elif word.elements is None and self.setting.tells(word.text):
            self.plan.refuse(word.start, word.end, "variable", "it is inside a quoted argument")

    def _option(self, word: Word, value: str = "") -> Causes | None:
        name, _, given = bare(word.text).partition("=")
        if name.lstrip("-").startswith("no"):
            given = "false"
        return self.plan.take(word.start, word.end, "option", value or given or "true")

    def _is_operand(self, word: Word) -> bool:
        if self.setting.is_assignment(word.text) or bare(word.text) == self.setting.variable:
            return True
        return self.setting.is_assignment(bare(word.text)) and not re.search(r"\s", word.text)

    def _operand(self, word: Word, before: Word | None, removed: Removed) -> None:
        """Plan `NAME=value` or `NAME` among the arguments, with the option that takes it."""
        if before is not None and before.text in _VARIABLE_OPTIONS:
            causes = self.variable(word, bare(word.text).partition("=")[2])
            drop(removed, [before, word], causes)
        elif bare(word.text) == self.setting.variable:
            self.plan.reads.append((word.start, word.end))  # `printenv NAME`
        elif not self.strict:
            drop(removed, [word], self.variable(word, bare(word.text).partition("=")[2]))

    def _attached(self, word: Word, removed: Removed) -> bool:
        """Plan `--env=NAME=0` or `-eNAME=0`; return whether the word is one."""
        name = self.setting.variable
        found = re.fullmatch(rf"(?:--?[\w-]+=|-\w){name}(?:=(\S*))?", bare(word.text))
        if found is None:
            return False
        value, comma, _ = (found.group(1) or "").partition(",")
        if comma and read_bool(value) is not None:
            return False  # a list: behind the comma comes another variable
        drop(removed, [word], self.variable(word, word.text.rpartition(f"{name}=")[2]))
        return True

    def _listed(self, word: Word, before: Word | None) -> bool:
        """Plan one item of `--export=ALL,NAME=0`; return whether the word has one."""
        name = self.setting.variable
        item = re.search(rf"(?:(?<=[,=])|^){name}(=[^,\s\"']*)?(?=[,\"']|$)", word.text)
        option = word.text.startswith("-") or (before is not None and before.text[:1] == "-")
        if item is None or not option or "," not in word.text:
            return False
        start, end = word.start + item.start(), word.start + item.end()
        if causes := self.plan.take(start, end, "variable", (item.group(1) or "=")[1:]):
            last = self.text[end : end + 1] != ","
            self.plan.put(start - last, end + (not last), "", causes)
        return True

    def _is_script(self, word: Word, before: Word | None, command: str) -> bool:
        if re.match(r"--(command|wrap)=[\"']", word.text):
            return True
        if word.text[:1] not in ('"', "'"):
            return False
        return command in _SCRIPT_COMMANDS or (before is not None and before.text in SCRIPT_OPTIONS)

    def _script(self, start: int, end: int, *, strict: bool) -> None:
        """Plan a quoted string that is a command line."""
        quote = self.text[start]
        if quote not in "\"'" or self.text[end - 1] != quote or end - start < 2:
            return
        inside = self.text[start + 1 : end - 1]
        if self.setting.occurs(inside) and quote not in inside.replace("\\" + quote, ""):
            self.run_script(start + 1, end - 1, strict)

    def _drop_env(self, words: Sequence[Word], removed: Removed) -> None:
        """Remove an `env` that no longer sets anything before its command."""
        for index, word in enumerate(words):
            if bare(word.text).rpartition("/")[2] != "env":
                continue
            operands = []
            for operand in words[index + 1 :]:
                if not (operand in removed or operand.text[0] == "-" or NAME.match(operand.text)):
                    break
                operands.append(operand)
            followed = len(words) > index + 1 + len(operands)
            if operands and followed and all(operand in removed for operand in operands):
                removed[word] = united(removed[o] for o in operands)
            return


def drop(removed: Removed, words: Sequence[Word], causes: Causes | None) -> None:
    """Mark words for removal, unless the use must stay."""
    if causes is not None:
        removed |= dict.fromkeys(words, causes)


def bare(text: str) -> str:
    """Return a word without its quotes."""
    return text.replace('"', "").replace("'", "")
