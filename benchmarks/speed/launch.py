"""Run one command from a minimal process, and write its resource usage.

    python -I -S launch.py REPORT OUTPUT ERRORS COMMAND...

On Linux, the peak memory of a process is at least that of the process that started it. Starting a
command from here limits that to a bare interpreter. The output goes to files, because grep stops at
the first match if its output is /dev/null.
"""

from __future__ import annotations

import os
import sys
import time


def main(report: str, output: str, errors: str, *command: str) -> None:
    """Write the exit code, CPU seconds, wall seconds, and `ru_maxrss`."""
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
