"""Describe the machine."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> dict[str, str]:
    """Return processor, cores, memory, system, and load."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _processor(),
        "cores": str(cores),
        "memory": _memory(),
        "system": f"{_distribution()}{platform.system()} {platform.release()}",
        "load at the start": f"{os.getloadavg()[0]:.2f}",
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    for line in known.read_text().splitlines() if known.exists() else ():
        if line.startswith("model name"):
            return f"{line.partition(':')[2].strip()} ({platform.machine()})"
    return platform.processor() or platform.machine()


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB"


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"] + ", "
    except OSError:
        return ""
