"""Memory budgets, and the memory of accelerators, from their data sheets.

A device is what `jax.devices()` lists: a GPU (for MI250X, one of its two dies) or a TPU chip (for
v3, one of its two cores). Memory is in decimal units, as the data sheets name it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..errors import UsageError

_SHARE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*%")
_FORM = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-z]+)")
_UNITS = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}

# The share of a GPU that JAX takes by default, see XLA_PYTHON_CLIENT_MEM_FRACTION.
_PREALLOCATED = 0.75
_NVIDIA = "https://www.nvidia.com/en-us/data-center"
_TPU = "https://cloud.google.com/tpu/docs"
_AMD = "https://www.amd.com/en/products/accelerators/instinct"


@dataclass(frozen=True, slots=True)
class Device:
    """A device to train on.

    Attributes:
        name: its name, or its memory as the user wrote it.
        nominal: bytes of memory.
        share: share of them that JAX uses.
        source: its data sheet.
    """

    name: str
    nominal: int
    share: float = 1.0
    source: str = ""

    @property
    def memory(self) -> int:
        """The bytes that a program may use."""
        return int(self.share * self.nominal)


def _gpu(name: str, gigabytes: int, source: str) -> Device:
    return Device(name, gigabytes * 10**9, _PREALLOCATED, source)


def _tpu(name: str, gigabytes: int) -> Device:
    return Device(f"TPU-{name}", gigabytes * 10**9, source=f"{_TPU}/{name}")


DEVICES = (
    _gpu("V100-16GB", 16, f"{_NVIDIA}/v100/"),
    _gpu("V100-32GB", 32, f"{_NVIDIA}/v100/"),
    _gpu("T4", 16, f"{_NVIDIA}/tesla-t4/"),
    _gpu("A10", 24, f"{_NVIDIA}/products/a10-gpu/"),
    _gpu("A100-40GB", 40, f"{_NVIDIA}/a100/"),
    _gpu("A100-80GB", 80, f"{_NVIDIA}/a100/"),
    _gpu("L4", 24, f"{_NVIDIA}/l4/"),
    _gpu("L40S", 48, f"{_NVIDIA}/l40s/"),
    _gpu("H100", 80, f"{_NVIDIA}/h100/"),
    _gpu("H200", 141, f"{_NVIDIA}/h200/"),
    _gpu("B200", 180, f"{_NVIDIA}/dgx-b200/"),
    _gpu("MI250X", 64, f"{_AMD}/mi200/mi250x.html"),
    _gpu("MI300X", 192, f"{_AMD}/mi300/mi300x.html"),
    _gpu("MI325X", 256, f"{_AMD}/mi300/mi325x.html"),
    _tpu("v3", 16),
    _tpu("v4", 32),
    _tpu("v5e", 16),
    _tpu("v5p", 95),
    _tpu("v6e", 32),
)


def parse_bytes(text: str) -> int | None:
    """Return the bytes of a text such as `8GiB` or `500MB`; None if it has another form.

    Raises:
        UsageError: the number is too large.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None or match[2].lower() not in _UNITS:
        return None
    count = float(match[1]) * _UNITS[match[2].lower()]
    if count == math.inf:
        raise UsageError(f"{text}: too large")
    return int(count)


def parse_device(text: str) -> Device:
    """Return the device of a name such as `H100`, or one with some memory such as `80GB`.

    Raises:
        UsageError: there is no such device, or several.
    """
    memory = parse_bytes(text)
    if memory:
        return Device(text, memory)
    wanted = _plain(text)
    found = [device for device in DEVICES if wanted and wanted in _plain(device.name)]
    exact = [device for device in found if _plain(device.name) == wanted] or found
    if len(exact) == 1:
        return exact[0]
    names = ", ".join(device.name for device in found or DEVICES)
    raise UsageError(f"--device {text}: expected memory such as 80GB, or a name such as {names}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@dataclass(frozen=True, slots=True)
class Budget:
    """The memory that a gradient computation may use.

    Attributes:
        text: the budget as the user wrote it, or the name of a device.
        size: the bytes, or the share of the peak without checkpoints.
        is_device: whether it is the memory of a device, which must also hold the arguments.
    """

    text: str
    size: int | float
    is_device: bool = False

    def bytes_of(self, peak: int, arguments: int = 0) -> int:
        """Return the budget in bytes.

        Args:
            peak: the peak without checkpoints.
            arguments: bytes of arguments that the peak does not include.
        """
        if isinstance(self.size, float):
            return int(self.size * peak)
        return max(self.size - self.is_device * arguments, 0)


def parse_budget(text: str) -> Budget:
    """Parse a budget.

    Raises:
        UsageError: it is neither a share nor bytes, or it is 0, or more than 100%.
    """
    match = _SHARE.fullmatch(text.strip())
    size = float(match[1]) / 100 if match else parse_bytes(text)
    if size is None:
        raise UsageError(
            f"--budget {text}: expected a share of the peak without checkpoints such as 40%, or"
            " bytes such as 8GiB, 500MB"
        )
    if not size:
        raise UsageError(f"--budget {text}: the budget must be greater than 0")
    if match and size > 1:
        raise UsageError(
            f"--budget {text}: more than the peak without checkpoints; nothing to plan"
        )
    return Budget(text, size)
