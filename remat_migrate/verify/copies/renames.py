"""Pair removed files with the added files that they became, as git's rename detection does."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

# The share of the larger file's bytes that both must have; git's default.
_SIMILAR = 0.5
# Above this many pairs, only files with equal content are paired.
_MOST_PAIRS = 100_000


def paired(removed: Mapping[Path, bytes], added: Mapping[Path, bytes]) -> dict[Path, Path]:
    """Map removed files to the added files that they became, each at most once."""
    pairs = _equal(removed, added)
    taken = set(pairs.values())
    old = {path: _lines(data) for path, data in removed.items() if path not in pairs}
    new = {path: _lines(data) for path, data in added.items() if path not in taken}
    return {**pairs, **_similar(old, new)}


def _equal(removed: Mapping[Path, bytes], added: Mapping[Path, bytes]) -> dict[Path, Path]:
    same: defaultdict[bytes, list[Path]] = defaultdict(list)
    for path, data in added.items():
        if data.strip():  # empty files are all equal
            same[data].append(path)
    pairs = {}
    for path in sorted(removed):
        if found := same.get(removed[path]):
            pairs[path] = max(found, key=lambda other: _shared_parts(path, other))
            found.remove(pairs[path])
    return pairs


def _similar(
    removed: Mapping[Path, Counter[bytes]], added: Mapping[Path, Counter[bytes]]
) -> dict[Path, Path]:
    if len(removed) * len(added) > _MOST_PAIRS:
        return {}
    ranked = sorted(
        (
            (score, _shared_parts(old, new), old, new)
            for old, old_lines in removed.items()
            for new, new_lines in added.items()
            if old.suffix == new.suffix and (score := _score(old_lines, new_lines)) >= _SIMILAR
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
    """Return the bytes that each distinct line of a file contributes."""
    found: Counter[bytes] = Counter()
    for line in data.splitlines():
        found[line.strip()] += len(line.strip())
    return found


def _score(one: Counter[bytes], other: Counter[bytes]) -> float:
    """Return the share of the larger file's bytes that both files have."""
    small, large = sorted((one.total(), other.total()))
    if small < _SIMILAR * large or not large:
        return 0.0
    return (one & other).total() / large


def _shared_parts(one: Path, other: Path) -> int:
    """Count the trailing parts that two paths share."""
    shared = 0
    for a, b in zip(reversed(one.parts), reversed(other.parts), strict=False):
        if a != b:
            break
        shared += 1
    return shared
