"""Campaigns with real processes: killed at random times, run concurrently, or on a full disk."""

from __future__ import annotations

import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kill_checks import FIX, UNDO, Findings, Subject, check_after
from kill_trees import copy_tree, differences, tree_of
from support import heed_signals

# Python ignores the last one.
_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


def times(subject: Subject, turns: int, chance: random.Random) -> list[Findings]:
    """Send signals to real processes at random times, mostly while they write."""
    both = []
    for command, fixed in ((FIX, False), (UNDO, True)):
        found = Findings(f"random kills of {'undo' if fixed else '--fix'}")
        spans = [_span(subject.start(fixed), command) for _ in range(3)]
        before, writing = (statistics.median(part) for part in zip(*spans, strict=True))
        found.counts["ms before writing"] = round(before * 1000)
        found.counts["ms of writing"] = round(writing * 1000)
        for turn in range(turns if not fixed else max(1, turns // 3)):
            root = subject.start(fixed)
            at_writing = chance.random() < 0.9
            delay = chance.random() * (writing * 1.1 if at_writing else before + writing)
            number = _SIGNALS[turn % len(_SIGNALS)]
            done = _signalled_after(root, command, number, delay, at_writing)
            where = f"turn {turn}, {delay * 1000:.1f} ms {'of writing' if at_writing else ''}"
            found.check(where, "it failed:", done in (0, 1, -number), str(done))
            name = number.name if done < 0 else f"{number.name} after the end, or ignored"
            found.counts[name] += 1
            check_after(found, where, subject, root)
        both.append(found)
    return both


def _start(root: Path, command: Sequence[str], told: bool = False) -> subprocess.Popen[bytes]:
    """Start a run; `told` is whether its output is captured."""
    command = [sys.executable, "-m", "remat_migrate", *command]
    errors = subprocess.PIPE if told else subprocess.DEVNULL
    return subprocess.Popen(
        command, cwd=root, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=heed_signals
    )


def is_writing(root: Path) -> bool:
    """Return whether a run is between its first and its last write."""
    try:
        return any(".open." in name for name in os.listdir(root / ".remat_migrate/journal"))
    except FileNotFoundError:
        return False


def _span(root: Path, command: Sequence[str]) -> tuple[float, float]:
    """Return the seconds before a run starts to write, and the seconds it spends writing."""
    start = time.perf_counter()
    process = _start(root, command)
    while not is_writing(root) and process.poll() is None:
        time.sleep(0.0002)
    begun = time.perf_counter()
    while is_writing(root):
        time.sleep(0.0002)
    end = time.perf_counter()
    process.wait()
    return begun - start, end - begun


def _signalled_after(
    root: Path, command: Sequence[str], number: int, delay: float, at_writing: bool
) -> int:
    process = _start(root, command)
    while at_writing and not is_writing(root) and process.poll() is None:
        time.sleep(0.0002)
    time.sleep(delay)
    process.send_signal(number)
    return process.wait()


def twice(subject: Subject, number: int, chance: random.Random) -> list[Findings]:
    """Run `--fix` concurrently with another `--fix` or with `undo` on the same tree."""
    both = []
    _, writing = _span(subject.start(), FIX)
    for commands, fixed in (((FIX, FIX), False), ((FIX, UNDO), False), ((UNDO, FIX), True)):
        names = " and ".join("undo" if command == UNDO else "--fix" for command in commands)
        found = Findings(f"{names} at once, on a {'fixed' if fixed else 'pristine'} tree")
        for turn in range(number):
            root = subject.start(fixed)
            first = _start(root, commands[0], told=True)
            while turn % 2 and not is_writing(root) and first.poll() is None:
                time.sleep(0.0002)
            # Runs that start together start to write at about the same time.
            time.sleep(chance.random() * (writing if turn % 2 else 0.05))
            second = _start(root, commands[1], told=True)
            said = [process.communicate()[1].decode() for process in (first, second)]
            codes = (first.returncode, second.returncode)
            where = f"turn {turn}, codes {codes}"
            found.counts["pairs"] += 1
            broke = any("Traceback" in text or "defect" in text for text in said)
            found.check(where, "one broke down:", not broke, str(said))
            refused = [text for code, text in zip(codes, said, strict=True) if code == 2]
            found.counts["one stood back"] += any("another run" in text for text in said)
            for text in refused:
                is_clear = "run again" in text or "nothing to undo" in text
                found.check(where, "not said why:", is_clear, text)
            tree = tree_of(root)
            if commands == (FIX, FIX):
                found.check(where, "the tree is not fixed:", not differences(tree, subject.new))
            check_after(found, where, subject, root)
        both.append(found)
    return both


def full_disks(subject: Subject, folder: Path) -> list[Findings]:
    """Run on a disk that is full, if one can be mounted, and with a file size limit."""
    both = [_limited(subject)]
    found = Findings("--fix on a real disk that is full")
    disk = folder / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=8m,mode=755", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(["mount", *options], check=False).returncode:
        found.counts["skipped: no disk can be mounted here"] = 1
        return [*both, found]
    try:
        place = disk / "place"
        for free in range(0, 24 * 4096, 4096):
            copy_tree(subject.pristine, place)
            filler = disk / "filler"
            space = os.statvfs(disk)
            filler.write_bytes(b"x" * (space.f_bavail * space.f_frsize - free))
            done = _start(place, FIX, told=True)
            said = done.communicate()[1].decode()
            where = f"{free} bytes free"
            found.counts["runs"] += 1
            found.counts["ended with 2"] += done.returncode == 2
            is_told = "No space left" in said if done.returncode == 2 else done.returncode == 1
            found.check(where, "not told:", is_told and "Traceback" not in said, said)
            filler.unlink()
            root = copy_tree(place, subject.place)
            shutil.rmtree(place)
            check_after(found, where, subject, root)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return [*both, found]


def _limited(subject: Subject) -> Findings:
    found = Findings("--fix where no file may grow beyond a size")
    for limit in (0, 1, 100, 1000, 5000, 20_000, 100_000):
        root = subject.start()
        code = (
            "import resource, runpy, sys;"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
            "sys.argv[0] = 'remat-migrate'; runpy.run_module('remat_migrate', run_name='__main__')"
        )
        command = [sys.executable, "-c", code, *FIX]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        where = f"{limit} bytes"
        found.counts["runs"] += 1
        found.check(where, "exit code", done.returncode == 2, f"{done.returncode} {done.stderr}")
        is_told = "File too large" in done.stderr and "Traceback" not in done.stderr
        found.check(where, "not told:", is_told, done.stderr)
        check_after(found, where, subject, root)
    return found
