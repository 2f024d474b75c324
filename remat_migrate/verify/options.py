"""Options of verification, from `[tool.remat-migrate.verify]` and the command line."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import SettingsError, UsageError, VerificationError
from ..settings import Settings

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)
_TABLE = "tool.remat-migrate.verify"
_FLOAT32 = 1e-5
# Exit statuses of interpreters that are asked whether they can run the code.
_FIT, _TOO_OLD = 0, 3


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How to verify.

    Attributes:
        cases: a Python file with functions that return arguments for units.
        command: a shell command that exercises the code, run in a copy of the project.
        python: the interpreter that has the project's packages; None to look for one.
        tolerance: the largest difference by dtype, relative to the largest entry of an array.
        timeout: seconds that a unit may take.
        command_timeout: seconds that each run of the command may take.
        memory: bytes that a process may use in addition to what imports use.
        platform: the JAX platform.
        strict: whether to revert fixes that nothing exercised.
        project_tests: whether to run the project's tests for units that are not exercised.
        test_budget: seconds that the project's tests may take in all.
    """

    cases: Path | None = None
    command: str | None = None
    python: Path | None = None
    tolerance: Mapping[str, float] = field(default_factory=dict)
    timeout: float = 120.0
    command_timeout: float = 3600.0
    memory: int = 8 * 2**30
    platform: str = "cpu"
    strict: bool = False
    project_tests: bool = True
    test_budget: float = 60.0


def verify_options(settings: Settings) -> VerifyOptions:
    """Return the options in the settings.

    Raises:
        SettingsError: the memory is not a size.
    """
    values = dict(settings.verify)
    for key, value in settings.verify.items():
        match key:
            case "cases" | "python":
                values[key] = Path(value)  # absolute already
            case "memory":
                values[key] = parse_size(value, f"{settings.origin}: {_TABLE}.{key}")
            case "tolerance":
                values[key] = _tolerance(value)
    named = {key.replace("-", "_"): value for key, value in values.items()}
    return replace(VerifyOptions(), **named)


def check_options(options: VerifyOptions) -> None:
    """Check that the files that the options name exist.

    Raises:
        VerificationError: one does not.
    """
    if options.cases is not None and not options.cases.is_file():
        raise VerificationError(f"cases: {options.cases}: no such file")
    if options.python is not None and not os.access(options.python, os.X_OK):
        raise VerificationError(f"python: {options.python}: no such interpreter")


def find_python(options: VerifyOptions, root: Path, extra: str = "verify") -> Path:
    """Return the interpreter for the project's code: `options.python`, or the first with JAX.

    The candidates are the active virtual environment, the project's `.venv` and `venv`, and the
    interpreter that runs remat-migrate.

    Args:
        options: the options.
        root: the project's folder.
        extra: the extra of remat-migrate that installs JAX.

    Raises:
        VerificationError: none has JAX.
    """
    looked = [options.python] if options.python else list(dict.fromkeys(_candidates(root)))
    for python in looked:
        status = _status(python)
        if status == _FIT:
            return python
        if status == _TOO_OLD and python == options.python:
            raise VerificationError(f"{python} is older than Python 3.11, which runs the code")
    places = ", ".join(map(str, looked))
    raise VerificationError(
        f"jax is not installed for {places}, and is needed to run the code. Install it there, or"
        f" with remat-migrate: pip install 'remat-migrate[{extra}]'. Or pass an interpreter that"
        " has it with --python PATH"
    )


def _candidates(root: Path) -> Iterator[Path]:
    for prefix in (os.environ.get("VIRTUAL_ENV"), root / ".venv", root / "venv"):
        if prefix and os.access(python := Path(prefix) / "bin" / "python", os.X_OK):
            yield python
    yield Path(sys.executable)


def _status(python: Path) -> int:
    """Return `_FIT` if an interpreter can run the code, `_TOO_OLD`, or another status."""
    if python == Path(sys.executable):
        return _FIT if importlib.util.find_spec("jax") else 1
    program = (
        "import sys; from importlib.util import find_spec;"
        f" sys.exit({_TOO_OLD} if sys.version_info < (3, 11) else find_spec('jax') is None)"
    )
    try:
        return subprocess.run([python, "-c", program], capture_output=True).returncode
    except OSError as error:
        raise UsageError(f"{python} cannot be run: {error.strerror or error}") from error


def parse_size(value: object, name: str) -> int:
    """Return a number of bytes, such as "8GiB".

    Raises:
        SettingsError: it is none; `name` says what has this value.
    """
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        value = float(match[1]) * _UNITS[match[2].upper()]
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 2**63:
        return int(value)
    raise SettingsError(f'{name}: expected a size such as "8GiB", got {value!r}')


def _tolerance(value: Any) -> Mapping[str, float]:
    if isinstance(value, dict):
        return value
    # A single number is for float32; the tolerances of other types scale with it.
    return {"float32": value, "complex64": value, "*": value / _FLOAT32}
