"""The old meaning: every checkpoint function returns the function that it wraps.

`jax.checkpoint(f)` has the values and gradients of `f`, whatever its options. With this shim, code
that uses the old API runs under any JAX release and computes what its migrated form must compute.
The removed flag `jax_new_checkpoint` can be set to any value.

`install` patches the whole process, including modules that are imported later.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import coverage
from .environment import projects
from .import_hooks import after_import

OLD_FLAG = "jax_new_checkpoint"
# The removed option.
GONE = "concrete"

_MISSING = object()
_MARK = "_remat_migrate_makes_checkpoints"


class _Api(NamedTuple):
    """A function to replace: see `install`."""

    attribute: str
    subject: str
    classes: bool


# What gets the old meaning: every application; those that today's JAX refuses, except edited ones;
# or none.
ALL, REFUSED, NONE = "all", "refused", "none"

# Places that keep the old meaning although they may be within edited code: file and lines.
_leftover: List[Tuple[str, int, int]] = []
_all_are_left = False

# The old meaning of each checkpoint function, by qualified name.
_replaced: Dict[str, Callable[..., Any]] = {}


def install(table: str) -> None:
    """Put plain functions in place of checkpoints, and watch which edited code applies them.

    Args:
        table: JSON, {"replace", "apis", "leftover"}. `replace` is ALL; REFUSED for applications
            with `concrete=`, with options by position, or by a name that is gone; or NONE. `apis`
            is a list of {"names": qualified names, "subject": parameter that takes what is wrapped,
            "classes": whether Flax classes may be wrapped}. `leftover` is a list of [path, first
            line, last line] of edited code that may still be refused; null if all may.
    """
    global _all_are_left
    read = json.loads(table)
    leftover = read.get("leftover", ())
    _all_are_left = leftover is None
    _leftover.extend((os.path.realpath(path), first, last) for path, first, last in leftover or ())
    modules: Dict[str, List[_Api]] = {}
    for entry in read["apis"]:
        for name in entry["names"]:
            module, _, attribute = name.rpartition(".")
            api = _Api(attribute, entry["subject"], entry["classes"])
            modules.setdefault(module, []).append(api)
            if read["replace"] != NONE:
                old = plain(api.subject, as_function=_returns_functions(module))
                _replaced[name] = coverage.watched(old, api.subject)
    modules.setdefault("jax", [])
    for name, apis in modules.items():
        after_import(name, functools.partial(_patch, apis, read["replace"]))


def replacement(name: str) -> Optional[Callable[..., Any]]:
    """Return the old meaning of a checkpoint function whose module is gone; None for others."""
    return _replaced.get(name)


def _patch(apis: List[_Api], replace: str, module: Any) -> None:
    for api in apis:
        # The old code expects it, even if this JAX release lacks it. But modules that never had
        # the name (`jax._src.api` in some releases) need nothing new.
        real = getattr(module, api.attribute, None)
        expected = module.__name__ in ("jax", "jax.ad_checkpoint")
        if real is None and not (expected and replace != NONE):
            continue
        lifted = real if api.classes else None
        old = plain(api.subject, lifted, _returns_functions(module.__name__))
        if real is not None and module.__name__.partition(".")[0] == "haiku":
            old = _checked(old, real)
        if real is not None and (replace == NONE or projects.is_project_module(module.__name__)):
            # A library under test makes its checkpoints of those of JAX.
            new = real
        elif replace == ALL:
            new = old
        else:
            new = _lenient(real, old, "%s.%s" % (module.__name__, api.attribute))
        setattr(module, api.attribute, coverage.watched(new, api.subject))
    if module.__name__ == "jax" and replace != NONE:
        _settle_old_flag(type(module.config))
        # Up to jax 0.4, `import jax` imported it.
        importlib.import_module("jax.ad_checkpoint")


def _settle_old_flag(config: Any) -> None:
    """Let the removed flag be set to anything, and read as True, as migrations assume."""
    update = config.update

    @functools.wraps(update)
    def update_others(self: Any, name: str, value: Any) -> None:
        if name != OLD_FLAG:
            update(self, name, value)

    config.update = update_others
    setattr(config, OLD_FLAG, property(lambda self: True, lambda self, value: None))


def _lenient(
    real: Optional[Callable[..., Any]], old: Callable[..., Any], name: str
) -> Callable[..., Any]:
    """Return `real`, but with the old meaning where it is gone or would reject its arguments.

    An edited application has its new meaning, so that a wrong edit fails.
    """
    library = name.partition(".")[0]
    only_subject = library in ("jax", "haiku")

    @functools.wraps(real or old)
    def checkpoint(*args: Any, **options: Any) -> Any:
        refused = real is None or GONE in _bound(real, args, options)
        refused = refused or (only_subject and len(args) > 1)
        frame = sys._getframe(2)  # outside of `watched`
        # Flax passes `concrete` on to functions of its own that still take it.
        caller = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        is_own = caller == library and real is not None
        if refused and not is_own and (coverage.edited(frame) is None or _is_leftover(frame)):
            return old(*args, **options)
        if real is None:
            raise AttributeError("%s does not exist" % name)
        return real(*args, **options)

    return checkpoint


def _bound(function: Callable[..., Any], args: Any, options: Dict[str, Any]) -> Dict[str, Any]:
    """Return the arguments of a call by name, where the function takes them."""
    try:
        return inspect.signature(function).bind_partial(*args, **options).arguments
    except TypeError:
        return options


def _is_leftover(frame: Any) -> bool:
    path, line = os.path.realpath(frame.f_code.co_filename), frame.f_lineno
    return _all_are_left or any(
        path == other and first <= line <= last for other, first, last in _leftover
    )


def _returns_functions(module: str) -> bool:
    """Return whether what a module's checkpoint function returns is a function of Python."""
    return module.partition(".")[0] in ("jax", "haiku")


def plain(
    subject: str, lifted: Optional[Callable[..., Any]] = None, as_function: bool = False
) -> Callable[..., Any]:
    """Return a function that returns its first argument, or the one called `subject`.

    Without either it gives a decorator that does. `lifted` is the Flax transform whose place it
    takes: Flax calls an unnamed submodule after its class, and its transforms put their own name
    before it (`CheckpointDense_0`), so a wrapped class becomes a subclass with that name. With
    `as_function`, an object that can be called becomes a function that calls it, and any other
    raises TypeError.
    """

    def checkpoint(*args: Any, **options: Any) -> Any:
        wrapped = args[0] if args else options.get(subject, _MISSING)
        policy = options.get("policy")
        if not (policy is None or isinstance(policy, bool) or callable(policy)):
            raise TypeError("%r object is not callable" % type(policy).__name__)
        if wrapped is _MISSING:
            return _marked(lambda fun: _same(fun, lifted, as_function))
        return _same(wrapped, lifted, as_function)

    # Inputs are made for functions of the user's that `functools.wraps` it.
    parameter = inspect.Parameter(subject, inspect.Parameter.POSITIONAL_ONLY, annotation=Callable)
    checkpoint.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    return _marked(checkpoint)


def _checked(old: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return `old`, which raises where Haiku does: outside of `hk.transform`."""

    def checkpoint(*args: Any, **options: Any) -> Any:
        real(lambda: None)
        return old(*args, **options)

    return _marked(checkpoint)


def makes_checkpoints(value: Any) -> bool:
    """Return whether a value is a function of `plain`, perhaps with some options bound."""
    while isinstance(value, functools.partial):
        value = value.func
    if not isinstance(value, types.FunctionType) or not getattr(value, _MARK, False):
        return False
    # `functools.wraps` gives the mark to functions of the user's, too.
    return value.__code__.co_filename in (plain.__code__.co_filename, coverage.__file__)


def _marked(function: Callable[..., Any]) -> Callable[..., Any]:
    setattr(function, _MARK, True)
    return function


def _same(wrapped: Any, lifted: Optional[Callable[..., Any]], as_function: bool) -> Any:
    if as_function and not callable(wrapped):
        raise TypeError("%r object is not callable" % type(wrapped).__name__)
    if as_function and not isinstance(wrapped, (type, *coverage.FUNCTIONS)):

        @functools.wraps(wrapped)
        def function(*args: Any, **kwargs: Any) -> Any:
            return wrapped(*args, **kwargs)

        return function
    if lifted is None or not isinstance(wrapped, type):
        return wrapped
    name = _prefix(lifted) + wrapped.__name__
    return type(name, (wrapped,), {"__module__": wrapped.__module__, "__qualname__": name})


_PREFIXES: Dict[Any, str] = {}


def _prefix(lifted: Callable[..., Any]) -> str:
    """Return the prefix that a Flax transform adds to the name of a class, by asking Flax."""
    if lifted not in _PREFIXES:
        module = sys.modules["flax.linen"].Module
        probe = type("Probe", (module,), {"__call__": lambda self, x: x, "__module__": __name__})
        _PREFIXES[lifted] = lifted(probe).__name__[: -len("Probe")]
    return _PREFIXES[lifted]
