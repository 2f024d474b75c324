"""Taking commands out of the lists of a shell script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..source.pieces import Causes
from .setting import TextPlan
from .shell_tree import Command, CommandList, Compound, Link

_JOINING = frozenset(("&&", "||", "|", "|&"))
_NOTHING = ":"

Chain = Sequence[Link]


class ListWriter:
    """Writes what remains of lists of commands once some commands have gone.

    `gone` holds the commands that go, with their causes. A list that must not be empty is left
    with `:`; so is a place in a chain whose outcome counts.
    """

    def __init__(
        self, text: str, plan: TextPlan, gone: Mapping[Command, Causes], start: int, end: int
    ) -> None:
        self.text = text
        self.plan = plan
        self.gone = gone
        self.start = start
        self.end = end

    def write(self, commands: CommandList, *, required: bool) -> None:
        """Write a list and the lists inside it."""
        chains = _chains(commands)
        lost = [self._lost(chain) for chain in chains]
        empty = bool(chains) and all(causes is not None for causes in lost)
        kept = [c is None or (empty and required and i == 0) for i, c in enumerate(lost)]
        for index, (chain, causes) in enumerate(zip(chains, lost, strict=True)):
            if causes is None:
                self._partly(chain)
            elif empty and required and index == 0:
                self.plan.put(*_span(chain), _NOTHING, causes)
            else:
                self._statement(chains, kept, index, causes)

    def _lost(self, chain: Chain) -> Causes | None:
        if any(link.command not in self.gone or link.negated for link in chain):
            return None
        return frozenset[int]().union(*(self.gone[link.command] for link in chain))

    def _partly(self, chain: Chain) -> None:
        before = ""
        for index, link in enumerate(chain):
            causes = self.gone.get(link.command)
            command = link.command
            if causes is None:
                self._inside(command)
            elif link.operator == "&&" and before in ("", "&&") and not link.negated:
                following = chain[index + 1]
                self.plan.put(command.start, _start(following), "", causes)
            else:
                self.plan.put(command.start, command.end, _NOTHING, causes)
            before = link.operator

    def _inside(self, command: Command) -> None:
        if not isinstance(command, Compound):
            return
        for test in command.tests:
            self.write(test, required=True)
        for body in command.bodies:
            self.write(body, required=command.kind != "case")

    def _statement(
        self, chains: Sequence[Chain], kept: Sequence[bool], index: int, causes: Causes
    ) -> None:
        """Take a chain out with its separator, and its line if nothing else stands there."""
        start, end = _span(chains[index])
        behind = self._separator(end)
        if self._alone(start, behind):
            self._line(start, behind, causes)
            return
        if index + 1 < len(chains):
            following = _span(chains[index + 1])[0]
            if not self._breaks(end, following):
                self.plan.put(start, following, "", causes)
                return
        previous = next((i for i in range(index - 1, -1, -1) if kept[i]), None)
        if previous is None or self._breaks(_span(chains[previous])[1], start):
            self.plan.put(start, behind, "", causes)
        elif chains[previous][-1].operator == "&":
            self.plan.put(self._separator(_span(chains[previous])[1]), behind, "", causes)
        else:
            # The `;` of the one before goes; the one behind, if any, ends the list.
            self.plan.put(_span(chains[previous])[1], end, "", causes)

    def _breaks(self, start: int, end: int) -> bool:
        """Whether a line ends in a range, other than behind a backslash."""
        return "\n" in re.sub(r"\\\r?\n", "", self.text[start:end])

    def _separator(self, end: int) -> int:
        """Past the `;` or `&` behind a command."""
        at = end
        while self.text[at : at + 1] in (" ", "\t") and at < self.end:
            at += 1
        if at < self.end and self.text[at] in ";&" and self.text[at + 1 : at + 2] not in (";", "&"):
            return at + 1
        return end

    def _alone(self, start: int, end: int) -> bool:
        line = self.text.rfind("\n", 0, start) + 1
        if line < self.start and self.text[line : self.start].strip():
            return False
        stop = self.text.find("\n", end)
        after = self.text[end : len(self.text) if stop < 0 else stop].strip()
        return not self.text[line:start].strip() and (not after or after[0] == "#")

    def _line(self, start: int, end: int, causes: Causes) -> None:
        line = max(self.text.rfind("\n", 0, start) + 1, 0)
        stop = self.text.find("\n", end)
        below = len(self.text) if stop < 0 else stop + 1
        comment = self.text.find("#", end, below)
        if comment >= 0:
            self.plan.put(start, comment, "", causes)
        else:
            self.plan.put(line, below, "", causes)


def _chains(commands: CommandList) -> list[list[Link]]:
    chains: list[list[Link]] = []
    joined = False
    for link in commands.links:
        if joined:
            chains[-1].append(link)
        else:
            chains.append([link])
        joined = link.operator in _JOINING
    return chains


def _start(link: Link) -> int:
    return link.command.start


def _span(chain: Chain) -> tuple[int, int]:
    return chain[0].command.start, chain[-1].command.end
