"""Which removed file is which added one: by equal content, then by the lines they share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

# As git has it: this share of the larger file's bytes is in both.
_ALIKE = 0.5
# Each with each is compared; beyond this only equal contents count.
_MOST_PAIRS = 10_000


def paired(removed: Mapping[Path, bytes], added: Mapping[Path, bytes]) -> dict[Path, Path]:
    """Removed files with the added ones that they have become, each at most once."""
    pairs = _equal(removed, added)
    old = {path: data for path, data in removed.items() if path not in pairs}
    taken = set(pairs.values())
    new = {path: data for path, data in added.items() if path not in taken}
    return {**pairs, **_similar(old, new)}


def _equal(removed: Mapping[Path, bytes], added: Mapping[Path, bytes]) -> dict[Path, Path]:
    same: defaultdict[bytes, list[Path]] = defaultdict(list)
    for path, data in added.items():
        if data.strip():  # empty files are all equal
            same[data].append(path)
    pairs = {}
    for path in sorted(removed):
        found = same.get(removed[path])
        if found:
            nearest = max(found, key=lambda other: _shared_name(path, other))
            found.remove(nearest)
            pairs[path] = nearest
    return pairs


def _similar(removed: Mapping[Path, bytes], added: Mapping[Path, bytes]) -> dict[Path, Path]:
    if len(removed) * len(added) > _MOST_PAIRS:
        return {}
    lines = {path: _lines(data) for path, data in (*removed.items(), *added.items())}
    ranked = sorted(
        (
            (score, _shared_name(old, new), old, new)
            for old in removed
            for new in added
            if old.suffix == new.suffix and (score := _alike(lines[old], lines[new])) >= _ALIKE
        ),
        reverse=True,
    )
    pairs: dict[Path, Path] = {}
    taken: set[Path] = set()
    for _, _, old, new in ranked:
        if old not in pairs and new not in taken:
            pairs[old] = new
            taken.add(new)
    return pairs


def _lines(data: bytes) -> Counter[bytes]:
    """The bytes of a file by line."""
    found: Counter[bytes] = Counter()
    for line in data.splitlines():
        if stripped := line.strip():
            found[stripped] += len(stripped)
    return found


def _alike(one: Counter[bytes], other: Counter[bytes]) -> float:
    size = max(one.total(), other.total())
    return (one & other).total() / size if size else 0.0


def _shared_name(one: Path, other: Path) -> int:
    """How many parts two paths share, counted from their ends."""
    shared = 0
    for a, b in zip(reversed(one.parts), reversed(other.parts), strict=False):
        if a != b:
            break
        shared += 1
    return shared
