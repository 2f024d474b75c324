"""Measuring options, from `[tool.remat-migrate.measure]` and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import SettingsError, UsageError
from ..settings import Settings
from ..verify.options import VerifyOptions, verify_options

# Seconds for a request.
_TIMEOUT = 600.0
GRAD_MODES = ("value_and_grad", "grad", "none")


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


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _are_names(value: object) -> bool:
    return all(isinstance(one, str) and ":" in one for one in _listed(value))


def _are_indices(value: object) -> bool:
    return bool(_listed(value)) and all(type(one) is int for one in _listed(value))


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


# For each setting, whether a value is valid, and what is expected.
_SETTINGS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "target": (_are_names, "module:function or an array of them"),
    "args": (_are_names, "module:function, an array of them for several targets"),
    "grad": (GRAD_MODES.__contains__, f"one of {', '.join(GRAD_MODES)}"),
    "device": (lambda value: isinstance(value, str), "a string"),
    "devices": (lambda value: type(value) is int and value > 0, "a positive integer"),
    "argnums": (_are_indices, "an integer or an array of integers"),
    "x64": (_is_boolean, "a boolean"),
    "compile": (_is_boolean, "a boolean"),
    "has-aux": (_is_boolean, "a boolean"),
}


def measure_options(settings: Settings) -> MeasureOptions:
    """Return the options from the settings.

    Raises:
        SettingsError: a value has the wrong type.
    """
    running = verify_options(settings)
    if "timeout" not in settings.verify:
        running = replace(running, timeout=_TIMEOUT)
    values: dict[str, Any] = {}
    for key in settings.measure.keys() - {"target"}:
        value = _setting(settings, key)
        is_tuple = key in ("args", "argnums")
        values[key.replace("-", "_")] = tuple(_listed(value)) if is_tuple else value
    return MeasureOptions(running=running, **values)


def _setting(settings: Settings, key: str) -> Any:
    value = settings.measure[key]
    is_valid, expected = _SETTINGS[key]
    if not is_valid(value):
        raise SettingsError(
            f"{settings.origin}: tool.remat-migrate.measure.{key}: expected {expected},"
            f" got {value!r}"
        )
    return value


def configured_targets(settings: Settings) -> tuple[str, ...]:
    """Return the targets from the settings.

    Raises:
        SettingsError: the setting is neither a string nor an array of strings.
    """
    return tuple(_listed(_setting(settings, "target"))) if "target" in settings.measure else ()


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
        running: `cases`, `python` and `platform`; None if not given on the command line.
        how: other values of `MeasureOptions` by name, likewise.
    """
    options = measure_options(settings)
    paths: dict[str, Any] = {
        key: value.expanduser().absolute() if isinstance(value, Path) else value
        for key, value in running.items()
        if value is not None
    }
    given: dict[str, Any] = {key: value for key, value in how.items() if value is not None}
    return replace(options, running=replace(options.running, **paths), **given)
