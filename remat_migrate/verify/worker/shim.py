"""The old meaning: every checkpoint function gives back the function that it wraps.

`jax.checkpoint(f)` has the values and gradients of `f`, whatever its options. With that in place
code in the old API runs under any JAX, and gives what its migrated form must give. The flag
`jax_new_checkpoint`, which is gone, may be set to anything.

`install` changes the whole process, and modules as they are imported.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

OLD_FLAG = "jax_new_checkpoint"
# The option that is gone.
GONE = "concrete"

_MISSING = object()
_MARK = "_remat_migrate_makes_checkpoints"


class _Api(NamedTuple):
    """A function to replace: see `install`."""

    attribute: str
    subject: str
    classes: bool
    always: bool


# Those of each module.
_Table = Dict[str, List[_Api]]


def install(table: str) -> None:
    """Put plain functions in place of checkpoints.

    Args:
        table: JSON, {"all", "apis"}. With `all` every application means what it wraps; else only
            one that today's JAX refuses: with `concrete=`, with options by position, by a name that
            is gone. `apis` is a list of {"names": qualified names, "subject": parameter that takes
            what is wrapped, "classes": whether Flax classes may be wrapped}.
    """
    read = json.loads(table)
    modules: _Table = {}
    for entry in read["apis"]:
        for name in entry["names"]:
            module, _, attribute = name.rpartition(".")
            api = _Api(attribute, entry["subject"], entry["classes"], read["all"])
            modules.setdefault(module, []).append(api)
    modules.setdefault("jax", [])
    for name in modules:
        if name in sys.modules:
            _patch(sys.modules[name], modules[name])
    sys.meta_path.insert(0, _AfterImport(modules))


class _AfterImport:
    """A finder that has modules patched right after they have run."""

    def __init__(self, modules: _Table) -> None:
        self._modules = modules
        self._finding: Set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec that the other finders give, with a loader that patches."""
        if name not in self._modules or name in self._finding:
            return None
        self._finding.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding.discard(name)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            _patch(module, self._modules[name])

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _patch(module: Any, apis: List[_Api]) -> None:
    for api in apis:
        # Gone in this JAX or not: the old code expects it. But modules that never had it under this
        # name (`jax._src.api` in some versions) need nothing new.
        real = getattr(module, api.attribute, None)
        if real is not None or module.__name__ in ("jax", "jax.ad_checkpoint"):
            old = plain(api.subject, real if api.classes else None)
            new = old if api.always or real is None else _lenient(real, old, module.__name__)
            setattr(module, api.attribute, new)
    if module.__name__ == "jax":
        _accept_old_flag(type(module.config))
        # Up to jax 0.4 `import jax` was enough to have it.
        importlib.import_module("jax.ad_checkpoint")


def _lenient(real: Callable[..., Any], old: Callable[..., Any], module: str) -> Callable[..., Any]:
    """`real`, but with the old meaning where it would refuse its arguments."""
    only_subject = module.partition(".")[0] in ("jax", "haiku")

    @functools.wraps(real)
    def checkpoint(*args: Any, **options: Any) -> Any:
        refused = GONE in options or (only_subject and len(args) > 1)
        return (old if refused else real)(*args, **options)

    return checkpoint


def plain(subject: str, lifted: Optional[Callable[..., Any]] = None) -> Callable[..., Any]:
    """A function that gives back its first argument, or the one called `subject`.

    Without either it gives a decorator that does. `lifted` is the Flax transform whose place it
    takes: Flax calls an unnamed submodule after its class, and its transforms put their own name
    before it (`CheckpointDense_0`), so a wrapped class becomes a subclass with that name.
    """

    def checkpoint(*args: Any, **options: Any) -> Any:
        wrapped = args[0] if args else options.get(subject, _MISSING)
        if wrapped is _MISSING:
            return _marked(lambda fun: _same(fun, lifted))
        return _same(wrapped, lifted)

    return _marked(checkpoint)


def makes_checkpoints(value: Any) -> bool:
    """Whether a value is a function of `plain`, perhaps with some options bound."""
    while isinstance(value, functools.partial):
        value = value.func
    return bool(getattr(value, _MARK, False)) and isinstance(value, types.FunctionType)


def _marked(function: Callable[..., Any]) -> Callable[..., Any]:
    setattr(function, _MARK, True)
    return function


def _same(wrapped: Any, lifted: Optional[Callable[..., Any]]) -> Any:
    if lifted is None or not isinstance(wrapped, type):
        return wrapped
    name = _prefix(lifted) + wrapped.__name__
    return type(name, (wrapped,), {"__module__": wrapped.__module__, "__qualname__": name})


_PREFIXES: Dict[Any, str] = {}


def _prefix(lifted: Callable[..., Any]) -> str:
    """What a Flax transform puts before the name of a class, asked of Flax itself."""
    if lifted not in _PREFIXES:
        module = sys.modules["flax.linen"].Module
        probe = type("Probe", (module,), {"__call__": lambda self, x: x, "__module__": __name__})
        _PREFIXES[lifted] = lifted(probe).__name__[: -len("Probe")]
    return _PREFIXES[lifted]


def _accept_old_flag(config: Any) -> None:
    """`jax_new_checkpoint` may be set to anything and reads as True, as the migration assumes."""
    update = config.update

    def update_unless_old(self: Any, name: str, value: Any) -> None:
        if name != OLD_FLAG:
            update(self, name, value)

    config.update = update_unless_old
    setattr(config, OLD_FLAG, property(lambda self: True, lambda self, value: None))
