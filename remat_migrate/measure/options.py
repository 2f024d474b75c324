"""Measuring options, from `[tool.remat-migrate.measure]` and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import UsageError
from ..settings import Settings
from ..verify.options import VerifyOptions, verify_options

# Seconds for a request.
_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """How to measure.

    Attributes:
        args: `module:function` or `file.py:function` that returns the arguments, if there are any:
            one for all targets, or one for each.
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

    args: tuple[str, ...] = ()
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
    for key in settings.measure.keys() - {"target"}:
        is_tuple = key in ("args", "argnums")
        value = settings.measure[key]
        values[key.replace("-", "_")] = _tuple(value) if is_tuple else value
    return MeasureOptions(running=running, **values)


def configured_targets(settings: Settings) -> tuple[str, ...]:
    """Return the targets from the settings."""
    return _tuple(settings.measure.get("target", []))


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def options_of_targets(options: MeasureOptions, targets: Sequence[str]) -> list[MeasureOptions]:
    """Return the options for each target, which may have arguments of its own.

    Raises:
        UsageError: there are arguments for another number of targets.
    """
    given = options.args
    if len(given) <= 1:
        return [options] * len(targets)
    if len(given) != len(targets):
        raise UsageError(
            f"{len(given)} functions return arguments (--args), but there are {len(targets)}"
            " targets: name one for all of them, or one for each in the same order"
        )
    return [replace(options, args=(args,)) for args in given]


def chosen_options(
    settings: Settings, running: Mapping[str, object], how: Mapping[str, object]
) -> MeasureOptions:
    """Return the options from the settings, overridden by the command line.

    Args:
        settings: the settings.
        running: `cases`, `python`, and `platform`; None for each that is not on the command line.
        how: other fields of `MeasureOptions` by name, with None in the same way.
    """
    options = measure_options(settings)
    paths, given = (
        {key: value for key, value in one.items() if value is not None} for one in (running, how)
    )
    return replace(options, running=replace(options.running, **paths), **given)  # type: ignore[arg-type]
