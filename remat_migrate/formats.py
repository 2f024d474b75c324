"""Finds the flag in shell scripts, Dockerfiles, Makefiles, YAML, TOML, JSON, INI, and .env files.

The search uses regular expressions on lines. A line, list item, or word that holds nothing but the
flag can be removed; any other use gives the reason why it is left to the user. Comments and
prose are not uses.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from .discovery.file_kinds import text_kind

Form = Literal["variable", "option", "read"]

_MORE = "the setting is part of something else, or spread over lines: remove it by hand"
_EMPTY = "a block would be empty without it: remove it by hand"
_STRING = "it is in a longer string or here-document: remove it by hand"
_FAR = 300
# In a longer line, commands and their words are not told apart.
_LONGEST = 10_000

VARIABLE, OPTION = "JAX_NEW_CHECKPOINT", "jax_new_checkpoint"
# A value without side effects: `0`, `"false"`, `$X`, `${X:-0}`, but not `$(command)`.
_VALUE = (
    r"""(?:"(?:[^"`\\$\n]|\$(?!\())*"|'[^'\n]*'"""
    r"""|(?:\$\{[^{}`\s]*\}|[^\s"'`()\[\]{},;&|<>])*)"""
)
_ASSIGNMENT = rf"{VARIABLE}\+?={_VALUE}"
_OPTION = rf"--?(?:no)?{OPTION}(?:={_VALUE})?"
NAME = re.compile(rf"(?<!\w)(?:{VARIABLE}|(?:no)?{OPTION})(?!\w)")
ATOM = re.compile(rf"(?:{_ASSIGNMENT}|{_OPTION})")
_ITEM = re.compile(rf"([\"']?)(?:{VARIABLE}\1\s*[:=]\s*{_VALUE}|{ATOM.pattern}\1)")
# A line that holds nothing but the flag, by kind of file. A script is a block of YAML.
_SHELL_LINE = (
    rf"(?:(?:export|readonly|(?:declare|typeset)\s+-\w+)\s+)?{_ASSIGNMENT};?"
    rf"|(?:export|unset)\s+{VARIABLE};?"
)
_LINES: Mapping[str, str] = {
    "shell": _SHELL_LINE,
    "script": rf"(?:-\s+)?(?:{_SHELL_LINE})|{_OPTION}",
    "docker": rf"(?:ENV|ARG)\s+{VARIABLE}(?:(?:=|\s+){_VALUE})?",
    "make": rf"(?:(?:export|unexport|override)\s+)*{VARIABLE}(?:\s*[:?+]*=\s*{_VALUE})?",
    "env": rf"(?:export\s+)?{VARIABLE}(?:\s*=\s*{_VALUE})?",
    "ini": rf"(?:[A-Z]:)*{VARIABLE}\s*=\s*{_VALUE}|{_OPTION}",
    "toml": rf"(?:[\w-]+\.)*[\"']?{VARIABLE}[\"']?\s*=\s*{_VALUE}",
    "yaml": rf"[\"']?{VARIABLE}[\"']?:\s+{_VALUE}|-\s+(?P<q>[\"']?){ATOM.pattern}(?P=q)",
    "json": r"(?!)",
}
_WORDS = re.compile(
    r"""(?:\\[^\r\n]|'[^']*'|"(?:\\.|[^"\\])*"|\$\([^()]*\)|\$\{[^}]*\}|[^\s;&|()<>"'\\`])+"""
    r"|[;&|()<>`]+",
    re.DOTALL,
)
_OPERATORS = frozenset(";&|()<>`")
# Words that do nothing without others.
_IDLE = re.compile(
    r"export|unset|declare|typeset|readonly|local|then|do|else|elif|if|while|until|time|env|exec|sudo"
    r"|nohup|ONBUILD|RUN|CMD|ENV|ARG|ENTRYPOINT|-g?x|[!{}=-]|\w+\+?:?=|[\w.-]+:"
)
# Here-documents, comments, and strings, which span lines in shell scripts.
_SHELL_REGIONS = (
    r"(?P<here>(?<!<)<<(?!<)-?[ \t]*(?P<q>['\"]?)(?P<tag>\w+)(?P=q)[^\n]*\n(?:.*\n){0,300}?"
    r"[ \t]*(?P=tag)\b)|(?P<comment>(?:^|(?<=[\s;(]))\#[^\n]*)"
    r"""|(?:'[^']*'|"(?:\\[\s\S]|[^"\\])*")|\\."""
)
_REGIONS: Mapping[str, str] = {
    **dict.fromkeys(("shell", "docker", "make", "env"), _SHELL_REGIONS),
    **dict.fromkeys(
        ("yaml", "toml", "json"),
        r"""(?P<comment>(?:^|(?<=\s))(?:\#|//)[^\n]*)|\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}"""
        # Escaped characters, too, or the search for a string would begin again at each of them.
        r"""|'[^'\n]*'|"(?:\\.|[^"\\\n])*"|\\.""",
    ),
    "ini": r"(?P<comment>^[ \t]*[#;][^\n]*|(?<=\s)\#[^\n]*)",
}
# Keys whose values are commands or environments, and keys of prose.
_CODE_KEY = re.compile(
    r"(?i)(\w+[_-])?(run|scripts?|cmds?|commands?|args?|arguments|argv|entrypoint|install|test|exec"
    r"|shell|flags|options|opts|addopts|env|environ(ment)?|variables|env_?vars|pass_?env|set_?env)"
)
_PROSE_KEY = re.compile(
    r"(?i)\w*(name|description|title|summary|help|message|comment|note|label)s?"
)
_KEYS = {
    "yaml": re.compile(r"([ ]*(?:- +)*)(?:[\"']?([\w.$/-]+)[\"']?[ \t]*:(?=\s|$)[ \t]*)?"),
    "ini": re.compile(r"([ \t]*)(?:([\w.-]+)[ \t]*[=:][ \t]*)?"),
}
_BLOCK_SCALAR = re.compile(r"[|>][-+\d]*[ \t]*(?:#.*)?")
# The line above and below what would be an empty block of a shell script.
_OPENS = re.compile(r"(?:(?:^|[\s;])(?:then|do|else)|[{(]|^[^#(]*\))[ \t]*(?:#.*)?$")
_CLOSES = re.compile(r"[ \t]*(?:fi|done|else|elif|esac|[})]|;;)|$")
_CHAINED = re.compile(r"(?:&&|\||\\)[ \t]*$")
# What stands before a list or mapping in brackets.
_BRACKETED = re.compile(r"(?:(?:CMD|ENTRYPOINT|RUN|SHELL)\s|[:=,\[{]|(?:^|\n)[\s-]*)\s*$")
# A mapping of YAML that may be absent where it is empty.
_ENVIRONMENT = re.compile(r"[ \t]*(?:env|environment|env_vars|variables)[ \t]*:[ \t]*(?:#.*)?")
_OPTION_BEFORE = re.compile(r"(?:^|[\s\"'\[])--?[A-Za-z][\w-]*[\"']?[\s,\\]*(?:-\s+)?[\"']?$")
_VALUE_AFTER = re.compile(r"[\s,\\\"'-]*(?:true|false|0|1)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextUse:
    """A use of the flag in a text.

    Attributes:
        start, end: its offsets.
        form: whether the variable is set, the option is passed, or the variable is read.
        cuts: the ranges to remove.
        reason: why it is left to the user; "" if it can be removed.
    """

    start: int
    end: int
    form: Form
    cuts: tuple[tuple[int, int], ...] = ()
    reason: str = ""

    def left(self, reason: str) -> TextUse:
        """Return the same use, left to the user."""
        return TextUse(self.start, self.end, self.form, reason=reason)


def find_uses(
    name: str, text: str, *, keep_variable: str = "", keep_option: str = ""
) -> list[TextUse]:
    """Find the uses of the flag in a file that is not Python.

    Args:
        name: the name of the file.
        text: its text.
        keep_variable: why the variable must stay set; "" if it need not.
        keep_option: why the option must stay; "" if it need not.
    """
    kind = text_kind(name, text[:200])
    if not kind or NAME.search(text) is None:
        return []
    uses = list(_Text(text, kind).uses())
    for read in (use for use in uses if use.form == "read"):
        keep_variable = f"line {text.count(chr(10), 0, read.start) + 1} reads the variable"
    keep = {"variable": keep_variable, "option": keep_option, "read": ""}
    return [use.left(why) if (why := use.reason or keep[use.form]) else use for use in uses]


def _unquoted(word: str) -> str:
    return word[1:-1] if word[:1] in ("'", '"') and word[-1:] == word[:1] else word


class _Text:
    """A file, by lines; a backslash continues a logical line."""

    def __init__(self, text: str, kind: str) -> None:
        self.size, self.kind = len(text), kind
        self.text = text = text if text.endswith("\n") else f"{text}\n"
        self.lines = [line.rstrip("\r") for line in text.split("\n")]
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.first = list(range(len(self.lines)))  # of each logical line
        self.last = list(self.first)
        for i, line in enumerate(self.lines[:-1]):
            inside = kind == "docker" and self.first[i] < i and line.lstrip().startswith("#")
            if kind in ("shell", "docker", "make", "yaml") and (line.endswith("\\") or inside):
                self.first[i + 1] = self.first[i]
        for i in range(len(self.lines) - 1, 0, -1):
            if self.first[i] != i:
                self.last[i - 1] = self.last[i]

    # -- the uses

    def uses(self) -> Iterator[TextUse]:
        """Yield the uses in order."""
        found: list[TextUse] = []
        covered = 0
        for name in NAME.finditer(self.text):
            # Another one in the value of the last is part of it.
            if name.start() >= covered and (use := self._use(*name.span())):
                found.append(use)
                covered = use.end
        lines = {use: self._line(use.start) for use in found}
        whole = {
            use: i
            for use, i in lines.items()
            if use.cuts == (self._range(i, i),) and self.first[i] == self.last[i]
        }
        gone = set(whole.values())
        above, below = self._neighbors(gone)
        parents = [parent for _, _, parent in self.contexts]
        left = Counter(parent for i, parent in enumerate(parents) if i not in gone)
        taken = Counter(parents[i] for i in gone)
        for use, line in lines.items():
            if use in whole and self._is_chained(line, above[line], below[line]):
                yield use.left(_EMPTY)
            elif use in whole:
                yield self._with_parents(use, parents, left, taken)
            else:
                yield use

    def _use(self, start: int, end: int) -> TextUse | None:
        variable = VARIABLE in self.text[start:end]
        form: Form = "variable" if variable else "option"
        region = self._region(start)
        if region[2] == "comment":
            return None
        before, after = self.text[max(0, start - 5) : start], self.text[end : end + 1]
        reading = r"\$\{?$|(?<!\w)env(?:\.|\[.)$" + (r"|\$\($" if after in (")", ":") else "")
        if variable and re.search(reading, before):
            return TextUse(start, end, "read", reason="uses of the value are not analyzed")
        line = self._line(start)
        inside = self.text[region[0] + 1 : region[1] - 1]
        if region[1] and not (inside == VARIABLE or ATOM.fullmatch(inside)):
            use: TextUse | None = TextUse(start, end, form, reason=_STRING)
        else:
            use = self._of_line(start, form, line) or self._of_list(start, form)
            use = use or self._of_command(start, form, line)
        if use is not None and use.cuts:
            return use
        if self._is_prose(start, end, line):
            return None
        if form == "option" and before[-1:] != "-" and not region[1]:
            return TextUse(start, end, form, reason="the program may read it: remove it by hand")
        return use or TextUse(start, end, form, reason=_MORE)

    def _checked(self, form: Form, at: int, end: int, cut: tuple[int, int], start: int) -> TextUse:
        """Return a use to remove, unless the word before or after belongs to it."""
        text = self.text[at:end]
        if form == "variable" and _OPTION_BEFORE.search(self.text[max(0, at - 99) : at]):
            reason = "the option before it takes it as its value: remove both by hand"
        elif form == "option" and "=" not in text and _VALUE_AFTER.match(self.text[end : end + 99]):
            reason = "the next word may be its value: remove both by hand"
        else:
            return TextUse(start, end, form, (cut,))
        return TextUse(start, end, form, reason=reason)

    # -- a line

    def _of_line(self, start: int, form: Form, line: int) -> TextUse | None:
        """Return a use that is all of its line."""
        first, last = self.first[line], self.last[line]
        low, high = self.starts[first], self._end(last)
        key, opened, _ = self.contexts[line]
        listed = self.lines[line].lstrip().startswith("- ") and "script" in key
        kind = "script" if self.kind == "yaml" and (opened >= 0 or listed) else self.kind
        if self.kind == "make" and self.text[low] == "\t":
            return None  # a command
        if kind == "script" and not _CODE_KEY.fullmatch(key):
            return None
        if kind == "ini" and not self._indent(first) and self.lines[first + 1][:1] in (" ", "\t"):
            return None  # its value goes on
        found = re.compile(rf"\s*({_LINES[kind]})\s*(?:\s#.*)?").fullmatch(self.text, low, high)
        if found is None:
            return None
        cut = self._range(first, last)
        if kind == "yaml":
            return self._checked(form, found.start(1), found.end(1), cut, start)
        return TextUse(start, found.end(1), form, (cut,))

    def _is_chained(self, line: int, above: int, below: int) -> bool:
        """Return whether a line of a script is all of a block, or belongs to the line above."""
        opened = self.contexts[line][1]
        if above < 0 or above == opened or not (self.kind == "shell" or opened >= 0):
            return False
        before = self.lines[above][-_FAR:]
        is_block = _OPENS.search(before) and _CLOSES.match(self.lines[below])
        return bool(is_block or _CHAINED.search(before))

    def _with_parents(
        self, use: TextUse, parents: list[int], left: Counter[int], taken: Counter[int]
    ) -> TextUse:
        """Return a use with the keys of YAML that are left without a value: `env:`."""
        parent = parents[self._line(use.start)]
        cuts = use.cuts
        while parent >= 0 and not left[parent]:
            if not _ENVIRONMENT.fullmatch(self.lines[parent]) or taken[parent] > 1:
                return use.left(_EMPTY)
            cuts = (self._range(parent, parent), *cuts)
            parent = parents[parent]
            left[parent] -= 1
        return TextUse(use.start, use.end, use.form, cuts)

    # -- an item

    def _of_list(self, start: int, form: Form) -> TextUse | None:
        """Return a use that is an item between commas: in JSON, or in brackets elsewhere."""
        at = start
        while at and self.text[at - 1] == "-":
            at -= 1
        at -= at > 0 and self.text[at - 1] in "\"'"
        item = _ITEM.match(self.text, at)
        if item is None or self.kind not in ("json", "toml", "yaml", "docker"):
            return None
        before = self.text[max(0, at - 4000) : at].rstrip()
        after = re.compile(r"\s*([\]},])[ \t]*(?=(\r?\n)?)").match(self.text, item.end())
        bracket = max(map(before.rfind, "[{"))
        opened = before[-1:] in ("[", "{", ",") and (
            self.kind == "json"
            or (
                bracket >= max(map(before.rfind, "]}"))
                and _BRACKETED.search(before[:bracket][-_FAR:])
            )
        )
        if after is None or not opened:
            return None
        line = self._line(start)
        if after[1] != ",":
            low = max(0, at - 4000) + len(before) - 1
            cut = (low if before[-1] == "," else at, item.end())
        elif after[2] and not self.text[self.starts[line] : at].strip():
            cut = self._range(line, line)
        else:
            cut = at, after.end()
        return self._checked(form, at, item.end(), cut, start)

    # -- a word

    def _of_command(self, start: int, form: Form, line: int) -> TextUse | None:
        """Return a use that is a word of a command line."""
        first, last = self.first[line], self.last[line]
        low, high = self.starts[first], self._end(last)
        key, opened, _ = self.contexts[line]
        if self.kind not in ("shell", "docker", "make", "yaml", "ini") or high - low > _LONGEST:
            return None
        if self.kind in _KEYS and not _CODE_KEY.fullmatch(key):
            return None
        if self.kind in _KEYS and opened < 0:
            low = _KEYS[self.kind].match(self.text, low).end()  # type: ignore[union-attr]
        command: list[tuple[int, int]] = []
        for word in _WORDS.finditer(self.text, low, high):
            if word[0][0] not in _OPERATORS:
                command.append(word.span())
            elif word.start() > start:
                break
            else:
                command = []
        number = bisect_right(command, start, key=lambda span: span[0]) - 1
        if number < 0:
            return None
        at, end = command[number]
        at += len(self.text[at:end]) - len(self.text[at:end].lstrip("@+"))  # of make
        texts = [_unquoted(self.text[low:high].lstrip("@+")) for low, high in command]
        listed = texts[number] == VARIABLE and texts[0] in ("export", "unset")
        if not (listed or ATOM.fullmatch(texts[number])) or {"echo", "printf"} & {*texts}:
            return None
        if all(_IDLE.fullmatch(text) or ATOM.fullmatch(text) for text in texts):
            reason = "nothing else is left of the command: remove it by hand"
            return TextUse(start, end, form, reason=reason)
        cut = self._cut(at, end, command[number - 1 : number], command[number + 1 :])
        plain = self.kind == "yaml" and opened < 0 and number == 0
        if cut is None or (plain and not re.match(r"[\w./$~]", self.text[cut[1] : cut[1] + 1])):
            return None
        return self._checked(form, at, end, cut, start)

    def _cut(
        self, at: int, end: int, before: list[tuple[int, int]], after: list[tuple[int, int]]
    ) -> tuple[int, int] | None:
        """Return the range to remove for a word, with blanks or a continued line around it."""
        line = self._line(at)
        rest = self.text[end : self._end(line)].strip()
        if line > self.first[line] and not self.text[self.starts[line] : at].strip():
            if rest == "\\":
                return self._range(line, line)
            above = self.lines[line - 1]
            if not rest and above.endswith("\\"):
                return self.starts[line - 1] + len(above[:-1].rstrip()), self._end(line)
            if not rest:
                return None
        if before and before[0][0] >= self.starts[line]:
            return before[0][1], end
        return at, after[0][0] if after else end

    # -- prose

    def _is_prose(self, start: int, end: int, line: int) -> bool:
        """Return whether a mention only talks about the flag."""
        low, high = self.starts[self.first[line]], self._end(self.last[line])
        content = self.text[max(low, start - _FAR) : min(high, end + _FAR)]
        key, _, _ = self.contexts[line]
        if self.kind in ("shell", "docker", "make", "yaml") and re.search("echo|printf", content):
            says = re.search(r"(?:^|[;&|:]|\bthen|\bdo|RUN)[\s@]*(?:echo|printf)\b", content)
            if says and not re.search(r"(?<!\d)>(?!&)|(?<!\|)\|(?!\|)|\$\(|`", content):
                return True
        if self.kind in ("shell", "docker", "make") or _CODE_KEY.fullmatch(key):
            return False
        bare = content.strip().removeprefix("- ").rpartition(": ")[2].strip("\"', ")
        if self.text[start - 1 : start] in ('"', "'") or bare == self.text[start:end]:
            return False
        if re.search(r"[{,]\s*name:\s*$", self.text[max(0, start - 99) : start]):
            return False  # `{name: VARIABLE, value: "0"}`
        told = self.text[start - 1 : start] == "-" or re.match(r"\s*[=:]", self.text[end : end + 9])
        return _PROSE_KEY.fullmatch(key) is not None or not told

    # -- lines

    def _line(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def _end(self, line: int) -> int:
        return self.starts[line] + len(self.lines[line])

    def _range(self, first: int, last: int) -> tuple[int, int]:
        """Return the range of whole lines."""
        return self.starts[first], min(self.starts[last + 1], self.size)

    def _indent(self, line: int) -> int:
        return len(self.lines[line]) - len(self.lines[line].lstrip())

    def _neighbors(self, gone: set[int]) -> tuple[list[int], list[int]]:
        """Return the nearest lines with content above and below each line that are not gone."""
        count = len(self.lines)
        above, below = [-1] * count, [count - 1] * count
        for lines, found in ((range(count), above), (range(count - 1, -1, -1), below)):
            near = found[0]
            for i in lines:
                found[i] = near
                if i not in gone and self.lines[i].strip() and self.lines[i].lstrip()[0] != "#":
                    near = i
        return above, below

    @cached_property
    def regions(self) -> list[tuple[int, int, str]]:
        """The comments, strings, and here-documents, in order."""
        found = re.compile(_REGIONS[self.kind], re.MULTILINE).finditer(self.text)
        return [(*m.span(), m.lastgroup or "") for m in found if m[0][0] != "\\"]

    def _region(self, offset: int) -> tuple[int, int, str]:
        """Return the region that an offset is in; empty if there is none."""
        number = bisect_right(self.regions, (offset, len(self.text) + 1, "")) - 1
        region = self.regions[number] if number >= 0 else (0, 0, "")
        return region if region[0] <= offset < region[1] else (0, 0, "")

    @cached_property
    def contexts(self) -> list[tuple[str, int, int]]:
        """For each line of YAML and INI: the key around it, and the lines that open its block
        scalar and its block.
        """
        found = [("", -1, -1)] * len(self.lines)
        around: list[tuple[int, str, int, int]] = []  # column, key, open block scalar or -1, line
        for i, line in enumerate(self.lines if self.kind in _KEYS else ()):
            key = _KEYS[self.kind].match(line)
            assert key is not None
            if around and around[-1][2] >= 0 and self._indent(i) > around[-1][0]:
                found[i] = around[-1][1:]
            if not line.strip() or found[i][1] >= 0 or line.lstrip()[0] == "#":
                continue
            column = len(key[1])
            while around and around[-1][0] >= column:
                around.pop()
            outer, parent = (around[-1][1], around[-1][3]) if around else ("", -1)
            found[i] = (outer if key[2] in (None, VARIABLE) else key[2]), -1, parent
            if self.kind == "yaml" and _BLOCK_SCALAR.fullmatch(line, key.end()):
                start = column if key[2] else max(0, key[1].rfind("-"))
                around.append((start, key[2] or outer, i, i))
            elif key[2]:
                around.append((column, key[2], -1, i if self.kind == "yaml" else -1))
        return found
