"""Measuring options, from `[tool.remat-migrate.measure]` and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..settings import Settings
from ..verify.options import VerifyOptions, verify_options

# Seconds for a request.
_TIMEOUT = 600.0
GRAD_MODES = ("value_and_grad", "grad", "none")


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """How to measure.

    Attributes:
        args: `module:function` or `file.py:function` that returns the arguments, or None.
        args_of: the same for each of several targets, in their order or by target.
        grad: `value_and_grad`, `grad`, or `none` for a function that takes gradients itself.
        argnums: arguments to differentiate by.
        has_aux: whether the function returns a pair of the loss and auxiliary data.
        x64: whether to enable 64-bit types.
        compile: whether to compile, for the memory of the program; if it is None, only shapes with
            shardings are compiled, and `plan` compiles if that takes less than a minute.
        device: the device to fit on, or None.
        devices: number of virtual CPU devices.
        policies: whether to measure alternatives.
        residuals: whether to list the residuals.
        jaxprs: whether to show the forward and the backward pass.
        running: interpreter and limits for running code, shared with verification.
    """

    args: str | None = None
    args_of: tuple[str, ...] | Mapping[str, str] = ()
    grad: str = "value_and_grad"
    argnums: tuple[int, ...] = (0,)
    has_aux: bool = False
    x64: bool = False
    compile: bool | None = None
    device: str | None = None
    devices: int = 1
    policies: bool = False
    residuals: bool = False
    jaxprs: bool = False
    running: VerifyOptions = field(default_factory=VerifyOptions)


def measure_options(settings: Settings) -> MeasureOptions:
    """Return the options from the settings."""
    running = verify_options(settings)
    if "timeout" not in settings.verify:
        running = replace(running, timeout=_TIMEOUT)
    values: dict[str, Any] = {}
    for key, value in settings.measure.items():
        match key, value:
            case "args", str():
                values["args"] = value
            case "args", _:
                values["args_of"] = tuple(value) if isinstance(value, list) else value
            case "argnums", _:
                values[key] = tuple(value) if isinstance(value, list) else (value,)
            case "grad" | "device" | "devices" | "x64" | "compile" | "has-aux", _:
                values[key.replace("-", "_")] = value
    return MeasureOptions(running=running, **values)


def options_of_targets(options: MeasureOptions, targets: Sequence[str]) -> list[MeasureOptions]:
    """Return the options for each target, which may have arguments of its own.

    Raises:
        UsageError: there are arguments for another number of targets.
    """
    given = options.args_of
    if isinstance(given, Mapping):
        return [replace(options, args=given.get(target, options.args)) for target in targets]
    if given and len(given) != len(targets):
        raise UsageError(
            f"{len(given)} functions return arguments (--args), but there are {len(targets)}"
            " targets: name one for all of them, or one for each in the same order"
        )
    return [replace(options, args=args) for args in given or [options.args] * len(targets)]


def chosen_options(
    settings: Settings, running: Mapping[str, object], how: Mapping[str, object]
) -> MeasureOptions:
    """Return the options from the settings, overridden by the command line.

    Args:
        settings: the settings.
        running: `cases`, `python` and `platform`; None if not given on the command line.
        how: other values of `MeasureOptions` by name, likewise.
    """
    options = measure_options(settings)
    paths = {
        key: value.expanduser().absolute() if isinstance(value, Path) else value
        for key, value in running.items()
        if value is not None
    }
    given = {key: value for key, value in how.items() if value is not None}
    if "args" in given:
        named: tuple[str, ...] = given.pop("args")  # type: ignore[assignment]
        options = replace(options, args=named[0], args_of=named if len(named) > 1 else ())
    return replace(
        options,
        running=replace(options.running, **paths),  # type: ignore[arg-type]
        **given,  # type: ignore[arg-type]
    )


def configured_targets(settings: Settings) -> tuple[str, ...]:
    """Return the targets from the settings."""
    value = settings.measure.get("target", [])
    return (value,) if isinstance(value, str) else tuple(value)
