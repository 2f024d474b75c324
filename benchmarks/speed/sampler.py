"""Run a command of remat-migrate in this interpreter, and sample its stacks.

    python sampler.py REPORT check --jobs 1 --no-cache PATH

A signal arrives after each millisecond of CPU time, or as often as the system sends it, and the
current stack is charged with the CPU time since the last signal. A long call into C, which delays
the signal, is charged in full. Unlike cProfile, this does not slow the program down or exaggerate
the cost of small functions.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
from collections import defaultdict
from types import CodeType, FrameType

_EVERY = 0.001


def main(report: str, *arguments: str) -> None:
    """Run the command, and write its stacks, outermost function first, with their seconds."""
    spent: dict[tuple[CodeType, ...], float] = defaultdict(float)
    last = started = time.process_time()

    def charge(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.process_time()
        stack = []
        while frame is not None:
            stack.append(frame.f_code)
            frame = frame.f_back
        spent[tuple(stack)] += now - last
        last = now

    signal.signal(signal.SIGPROF, charge)
    signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
    try:
        from remat_migrate.cli.commands import main as run

        run(arguments)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        ended = time.process_time()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(report, "w", encoding="utf-8") as file:
            json.dump(
                {
                    "before": started,
                    "unsampled": ended - last,
                    "ended": ended,
                    "children": children.ru_utime + children.ru_stime,
                    "stacks": [
                        [[[code.co_filename, code.co_name] for code in reversed(stack)], seconds]
                        for stack, seconds in spent.items()
                    ],
                },
                file,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
