"""Runs a command of remat-migrate in its own interpreter, and samples where its time goes.

    python sampler.py REPORT check --jobs 1 --no-cache PATH

A signal comes after each millisecond of processor time, or as often as the system sends it, and the
stack of that moment is charged with the processor time since the last one: a long call into C,
which a signal has to wait for, is charged in full. So the program runs about as fast as without,
which it does not under cProfile, where cheap functions that are called often seem to be dear.
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
    """Run it, and write the stacks: lists of files and functions, outermost first, and seconds."""
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
