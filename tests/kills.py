"""Kill `remat-migrate --fix` and `undo` at every point and at random times; no file may be lost.

    python tests/kills.py --times 300
    python tests/kills.py --times 100 --tree some/repository

Each campaign prints its counters and violations:

- points: kill right before every call that changes something on disk, and during every write (the
  run is a fork, so this is exact);
- faults: every such call fails, once or together with all later ones: a full disk, a broken disk;
- edits: at every such call, another process edits, deletes or replaces a file that is to be fixed;
- exchanges: at every such call, another process exchanges a folder for a link out of the project;
- power: the possible disk contents, by the guarantees of POSIX, after a power loss at any call;
- times: kill `python -m remat_migrate` at random times, while it writes and during the whole run;
- twice: two concurrent runs, either two `--fix` or one `--fix` and one `undo`;
- disks: a real disk that is full, and a file size limit.

After each kill every file is intact, either old or new, with its mode; `undo` restores the old tree
byte for byte; and the next `--fix` completes the work and leaves no temporary file.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from kill_checks import FIX, UNDO, Findings, prepare
from kill_faults import load
from kill_points import concurrent_edits, exchanges, faults, points, power
from kill_times import full_disks, times, twice
from kill_trees import make_tree, plant

_EXACT = ("points", "faults", "edits", "exchanges", "power")
_REAL = ("times", "twice", "disks")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaigns; return 1 if a file was lost."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=100, help="number of kills at random times")
    parser.add_argument("--points", type=int, help="number of points of each kind (default: all)")
    parser.add_argument("--only", nargs="*", choices=[*_EXACT, *_REAL])
    parser.add_argument("--tree", type=Path, help="a repository to copy and add faults to")
    parser.add_argument(
        "--size", type=int, default=4, help="size of the generated tree for random times"
    )
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    # Unmount the test disk when terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    load(FIX, UNDO)
    with tempfile.TemporaryDirectory(prefix="remat-kills-") as name:
        wrong = 0
        for found in _campaigns(asked, Path(name).resolve()):
            print("\n".join(found.lines()), flush=True)
            wrong += len(found.wrong)
    return 1 if wrong else 0


def _campaigns(asked: argparse.Namespace, folder: Path) -> Iterator[Findings]:
    chance = random.Random(asked.seed)

    def sample(calls: int) -> list[int]:
        every = range(1, calls + 1)
        number = calls if asked.points is None else min(asked.points, calls)
        return sorted(chance.sample(every, number))

    def wants(*names: str) -> set[str]:
        return set(names) & set(asked.only or (*_EXACT, *_REAL))

    if asked.tree is None and wants(*_EXACT):
        # Every call for every kind of file is tried, so one file of each kind is enough.
        subject = prepare(make_tree(folder / "small"), folder)
        campaigns = {
            "points": points,
            "faults": faults,
            "edits": concurrent_edits,
            "exchanges": exchanges,
        }
        for name, campaign in campaigns.items():
            if wants(name):
                yield from campaign(subject, sample)
        if wants("power"):
            yield from power(subject, chance, 20 if asked.points is None else asked.points)
    if not wants(*_REAL):
        return
    large = folder / "large"
    if asked.tree is None:
        make_tree(large, asked.size)
    else:
        nothing = shutil.ignore_patterns(".git")
        shutil.copytree(asked.tree, large, symlinks=True, ignore=nothing)
        print(f"planted in {plant(large)} files")
    subject = prepare(large, folder)
    if wants("times"):
        yield from times(subject, asked.times, chance)
    if wants("twice"):
        yield from twice(subject, max(1, asked.times // 10), chance)
    if wants("disks") and asked.tree is None:
        yield from full_disks(prepare(make_tree(folder / "one"), folder), folder)


if __name__ == "__main__":
    sys.exit(main())
