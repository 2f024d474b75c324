"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> dict[str, str]:
    """Processor, cores, memory, system, and how busy it is."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _processor(),
        "cores": str(cores),
        "memory": _memory(),
        "system": f"{_distribution()}{platform.system()} {platform.release()}",
        "load at the start": f"{os.getloadavg()[0]:.2f}",
    }


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return f"{line.partition(':')[2].strip()} ({platform.machine()})"
    return platform.processor() or platform.machine()


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB"


def _distribution() -> str:
    for line in _lines("/etc/os-release"):
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"') + ", "
    return ""


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []
