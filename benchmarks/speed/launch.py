"""Runs one command, and writes what it used: a program of its own, which is next to nothing.

    python -I -S launch.py REPORT OUTPUT ERRORS COMMAND...

Linux counts into a program's peak memory that of the process that started it. A command is
therefore started from here and not from the benchmark, so that the least that can be measured is
an interpreter without any library. What the command prints goes to files: grep stops at the first
match where it sees that nobody reads it.
"""

from __future__ import annotations

import os
import sys
import time


def main(report: str, output: str, errors: str, *command: str) -> None:
    """Write exit code, processor seconds, seconds on the clock, and `ru_maxrss`."""
    written = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, output, written, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, errors, written, 0o644),
    ]
    started = time.monotonic()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=files)
    _, status, used = os.wait4(child, 0)
    wall = time.monotonic() - started
    with open(report, "w", encoding="ascii") as file:
        print(
            os.waitstatus_to_exitcode(status),
            used.ru_utime + used.ru_stime,
            wall,
            used.ru_maxrss,
            file=file,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
