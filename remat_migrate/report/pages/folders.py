"""How checkpoints are spread over a project's folders."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..content import Risk

# So many rows are seen at a glance.
_MOST = 12


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with the number of its sites by risk, `high`, `medium`, `low`, `none`."""

    name: str
    counts: tuple[tuple[Risk, int], ...]

    @property
    def total(self) -> int:
        """All of its sites."""
        return sum(count for _, count in self.counts)


def grouping(folders: Sequence[str]) -> Mapping[str, str]:
    """For each folder (with `/`) the one it is shown as: itself, or one above it.

    The largest groups are split until there are about a dozen. What stands in a folder itself and
    not further down is a group of its own, `folder/*`, where the folder has been split.
    """
    sizes = Counter(folders)
    groups: dict[str, list[str]] = {_shared(list(sizes)): list(sizes)}
    while True:
        splits = {name: _split(name, own) for name, own in groups.items()}
        fitting = [
            name
            for name, parts in splits.items()
            if len(parts) > 1 and len(groups) - 1 + len(parts) <= _MOST
        ]
        if not fitting:
            break
        largest = max(fitting, key=lambda name: sum(sizes[folder] for folder in groups[name]))
        del groups[largest]
        groups |= splits[largest]
    return {folder: name or "." for name, own in groups.items() for folder in own}


def folders_of(sites: Sequence[tuple[str, Risk]]) -> tuple[Folder, ...]:
    """The groups with their numbers, those with the worst risks first."""
    order: tuple[Risk, ...] = ("high", "medium", "low", "none")
    counts: dict[str, Counter[Risk]] = defaultdict(Counter)
    for name, risk in sites:
        counts[name][risk] += 1
    found = [
        Folder(name, tuple((risk, own[risk]) for risk in order)) for name, own in counts.items()
    ]
    return tuple(sorted(found, key=lambda one: ([-count for _, count in one.counts], one.name)))


def _split(name: str, folders: Sequence[str]) -> dict[str, list[str]]:
    """A group's folders by the next part of their paths."""
    if name.endswith("/*"):
        return {name: list(folders)}
    parts: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        rest = folder[len(name) :].lstrip("/") if name else folder
        if not rest:
            parts[f"{name}/*" if name else "*"].append(folder)
        elif name:
            parts[f"{name.rstrip('/')}/{rest.partition('/')[0]}"].append(folder)
        else:
            lead = "/" if folder.startswith("/") else ""
            parts[lead + folder.lstrip("/").partition("/")[0]].append(folder)
    # A chain of folders that hold one folder each is one step.
    return {
        key if key.endswith("/*") or key == "*" else _shared(own): own for key, own in parts.items()
    }


def _shared(folders: Sequence[str]) -> str:
    """The deepest folder that all are in or below."""
    first, *others = [folder.split("/") for folder in folders] or [[""]]
    for other in others:
        alike = 0
        while alike < min(len(first), len(other)) and first[alike] == other[alike]:
            alike += 1
        first = first[:alike]
    return "/".join(first)
