"""Taking commands out of the lists of a shell script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..text.replacements import Causes, united
from .setting import TextPlan
from .shell_tree import Command, CommandList, Compound, Link
from .written_lists import CHAINED, COMMANDS, drop_items

_JOINING = frozenset(("&&", "||", "|", "|&"))
_NOTHING = ":"

Chain = Sequence[Link]


class ListWriter:
    """Writes what remains of lists of commands once some commands have gone.

    `gone` holds the commands that go, with their causes. A list that must not be empty is left
    with `:`; so is a place in a chain whose outcome counts.
    """

    def __init__(self, text: str, plan: TextPlan, gone: Mapping[Command, Causes]) -> None:
        self.text = text
        self.plan = plan
        self.gone = gone

    def write(self, commands: CommandList, *, required: bool) -> None:
        """Write a list and the lists inside it."""
        chains = _chains(commands)
        gone = {i: causes for i, c in enumerate(chains) if (causes := self._lost(c)) is not None}
        for index, chain in enumerate(chains):
            if index not in gone:
                self._partly(chain)
        if required and chains and len(gone) == len(chains):
            self.plan.put(*_span(chains[0]), _NOTHING, gone.pop(0))
        drop_items(self.text, [_span(chain) for chain in chains], gone, COMMANDS, self.plan)

    def _lost(self, chain: Chain) -> Causes | None:
        if any(link.command not in self.gone or link.negated for link in chain):
            return None
        return united(self.gone[link.command] for link in chain)

    def _partly(self, chain: Chain) -> None:
        before = ""
        dropped: dict[int, Causes] = {}
        for index, link in enumerate(chain):
            causes = self.gone.get(link.command)
            command = link.command
            if causes is None:
                self._inside(command)
            elif link.operator == "&&" and before in ("", "&&") and not link.negated:
                dropped[index] = causes
            else:
                self.plan.put(command.start, command.end, _NOTHING, causes)
            before = link.operator
        spans = [(link.command.start, link.command.end) for link in chain]
        drop_items(self.text, spans, dropped, CHAINED, self.plan)

    def _inside(self, command: Command) -> None:
        if not isinstance(command, Compound):
            return
        for test in command.tests:
            self.write(test, required=True)
        for body in command.bodies:
            self.write(body, required=command.kind != "case")


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


def _span(chain: Chain) -> tuple[int, int]:
    return chain[0].command.start, chain[-1].command.end
