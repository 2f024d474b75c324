"""What a user says about measuring, from `[tool.remat-migrate.measure]` and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import SettingsError
from ..settings import Settings
from ..verify.options import VerifyOptions, verify_options

_TABLE = "tool.remat-migrate.measure"
# Seconds that a request may take: of one function, where verification has many.
_TIMEOUT = 600.0
HOW = ("value_and_grad", "grad", "none")


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """How to measure.

    Attributes:
        args: `module:function` or `file.py:function` that returns the arguments; None without one.
        grad: `value_and_grad`, `grad`, or `none` for a function that takes gradients itself.
        argnums: the arguments that are differentiated.
        has_aux: whether the function returns a pair of a scalar and anything else.
        jit: whether the gradient computation is compiled as one.
        x64: whether JAX computes in 64 bits.
        remat3: whether `jax_remat3` is on.
        compile: whether to compile, for the temporary memory that the program needs.
        policies: whether to measure alternatives.
        residuals: whether to list what the forward pass keeps.
        pictures: whether to show the forward and the backward computation.
        running: where and with which limits code runs, which verification decides, too.
    """

    args: str | None = None
    grad: str = "value_and_grad"
    argnums: tuple[int, ...] = (0,)
    has_aux: bool = False
    jit: bool = True
    x64: bool = False
    remat3: bool = False
    compile: bool = False
    policies: bool = False
    residuals: bool = False
    pictures: bool = False
    running: VerifyOptions = field(default_factory=VerifyOptions)


def measure_options(settings: Settings) -> MeasureOptions:
    """What the settings say.

    Raises:
        SettingsError: a value of the wrong type.
    """
    running = verify_options(settings)
    if "timeout" not in settings.verify:
        running = replace(running, timeout=_TIMEOUT)
    options = MeasureOptions(running=running)
    for key, value in settings.measure.items():
        name = f"{settings.config}: {_TABLE}.{key}"
        match key:
            case "args":
                if not isinstance(value, str) or ":" not in value:
                    raise SettingsError(f"{name}: expected module:function, got {value!r}")
                options = replace(options, args=value)
            case "grad":
                if value not in HOW:
                    raise SettingsError(f"{name}: expected one of {', '.join(HOW)}, got {value!r}")
                options = replace(options, grad=str(value))
            case "argnums":
                options = replace(options, argnums=_argnums(value, name))
            case "jit" | "x64" | "compile" | "has-aux" | "remat3":
                if not isinstance(value, bool):
                    raise SettingsError(f"{name}: expected a boolean, got {value!r}")
                flag = {key.replace("-", "_"): value}
                options = replace(options, **flag)  # type: ignore[arg-type]
    return options


def chosen_options(
    settings: Settings, running: Mapping[str, object], how: Mapping[str, object]
) -> MeasureOptions:
    """What the settings say, and the command line instead.

    Args:
        settings: the settings.
        running: `cases`, `python` and `platform`, None where the command line says nothing.
        how: values of `MeasureOptions` by name, likewise.
    """
    options = measure_options(settings)
    paths = {
        key: value.expanduser().absolute() if isinstance(value, Path) else value
        for key, value in running.items()
        if value is not None
    }
    given = {key: value for key, value in how.items() if value is not None}
    return replace(
        options,
        running=replace(options.running, **paths),  # type: ignore[arg-type]
        **given,  # type: ignore[arg-type]
    )


def configured_targets(settings: Settings) -> tuple[str, ...]:
    """The targets that the settings name, for `report` and for `measure` without one.

    Raises:
        SettingsError: not a string or an array of strings.
    """
    value = settings.measure.get("target", [])
    targets = [value] if isinstance(value, str) else value
    if not isinstance(targets, list) or not all(isinstance(each, str) for each in targets):
        raise SettingsError(
            f"{settings.config}: {_TABLE}.target: expected module:function or an array of such,"
            f" got {value!r}"
        )
    return tuple(targets)


def _argnums(value: object, name: str) -> tuple[int, ...]:
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(type(number) is int for number in numbers):
        raise SettingsError(f"{name}: expected an integer or an array of integers, got {value!r}")
    return tuple(numbers)
