"""Intercept the checkpoints of the measured code, and decide what each of them does.

`install` replaces `jax.checkpoint` and `jax.remat` before the user's modules are imported. The
replacement records the line that applies the checkpoint. On each call it follows the current plan
for that line: keep the checkpoint, leave it out, or change its options. A variant of a program is
therefore the program itself, traced again, whatever transformations surround the checkpoint and
whichever implementation of checkpoints JAX uses.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax

from .internals import internals

# Prefix of the names that mark the results of a checkpoint, see `COUNT`.
MARK = "remat_migrate_site_"

# Files below this folder are not the user's code.
OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))

# Names of the checkpoint functions in the modules of JAX.
_NAMES = ("checkpoint", "remat")
# Packages that apply checkpoints on behalf of their callers.
_APPLYING = ("jax", "flax", "haiku", "equinox", "remat_migrate")


class Location(NamedTuple):
    """A line of source."""

    path: str
    line: int


NOWHERE = Location("", 0)


class Site(NamedTuple):
    """A line that applies a checkpoint, and the function that it applies it to.

    Attributes:
        location: line that applies the checkpoint, or asks a library to apply it.
        api: function that is called there, such as `jax.checkpoint` or `flax.linen.remat`.
        function: qualified name of the checkpointed function.
        defined: line that defines it.
    """

    location: Location
    api: str
    function: str
    defined: Location


class Decision(NamedTuple):
    """What to do with the checkpoints of a site.

    Attributes:
        keep: whether to apply the checkpoint at all.
        policy: returns the policy to apply in place of its own, given the site and its own one.
        marked: whether to name a result of a checkpoint that is left out.
    """

    keep: bool = True
    policy: Callable[[Site, Any], Any] | None = None
    marked: bool = False


KEEP = Decision()
LEAVE_OUT = Decision(keep=False)
COUNT = Decision(keep=False, marked=True)


class _State:
    """The state of the process."""

    def __init__(self) -> None:
        # The number of each site, in the order of their first calls.
        self.numbers: dict[Site, int] = {}
        # Calls of each site in the current trace.
        self.calls: dict[Site, dict[Location, int]] = {}
        # The policy of each site that has one.
        self.policies: dict[Site, Any] = {}
        self.default = KEEP
        self.plan: Mapping[Site, Decision] = {}
        # Whether JAX itself is applying a checkpoint, as `jax.remat` does with `jax.checkpoint`.
        self.applying = False


_state = _State()


def install() -> None:
    """Intercept checkpoints from now on, once per process."""
    originals: dict[int, Callable[..., Any]] = {}
    for home in internals().homes:
        module = importlib.import_module(home)
        for name in _NAMES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # From 0.8.2 to 0.9 `jax.ad_checkpoint` has them, with a deprecation warning.
                original = getattr(module, name, None)
            if callable(original) and original not in originals.values():
                replacement = originals.setdefault(id(original), _intercepting(original, name))
                setattr(module, name, replacement)


def sites() -> list[Site]:
    """Return all sites that were traced so far, in the order of their first calls."""
    return list(_state.numbers)


def policies() -> dict[Site, Any]:
    """Return the policy of each site that has one, of those in the last trace."""
    return {site: policy for site, policy in _state.policies.items() if site in _state.calls}


def calls_of(site: Site) -> dict[Location, int]:
    """Return the lines that called a site in the last trace, and how often."""
    return dict(_state.calls.get(site, {}))


@contextlib.contextmanager
def plan(decisions: Mapping[Site, Decision], default: Decision = KEEP) -> Iterator[None]:
    """While active, apply these decisions when sites are traced, and `default` to all other sites.

    Clears the tracing caches of JAX, which do not notice that a decision changes a function.
    """
    before = _state.plan, _state.default
    _state.plan, _state.default = dict(decisions), default
    _state.calls = {}
    jax.clear_caches()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        _state.plan, _state.default = before
        jax.clear_caches()  # type: ignore[no-untyped-call]


def caller() -> Location:
    """Return the innermost line outside JAX and the libraries that apply checkpoints.

    For a call over several lines, this is the line on which the name of the callee starts; for a
    decorator, its own line.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            return Location(frame.f_code.co_filename, _line_of(frame))
        frame = frame.f_back
    return NOWHERE


def _line_of(frame: Any) -> int:
    """Return the line on which the current call of a frame starts; Python's own may be another."""
    # Instructions have two bytes.
    here = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    start: int | None = next(here, (None,))[0]
    return start or frame.f_lineno or 0


@contextlib.contextmanager
def not_intercepting() -> Iterator[None]:
    """Apply checkpoints without recording sites."""
    before, _state.applying = _state.applying, True
    try:
        yield
    finally:
        _state.applying = before


def own_checkpoint(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Apply `jax.checkpoint` without recording a site."""
    with not_intercepting():
        made: Callable[..., Any] = jax.checkpoint(function, **options)
        return made


def _intercepting(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def checkpoint(*args: Any, **options: Any) -> Any:
        if _state.applying:
            return original(*args, **options)
        with not_intercepting():
            wrapped = original(*args, **options)
        function = args[0] if args else options.get("fun", options.get("f"))
        if not callable(function) or not callable(wrapped):
            return wrapped  # a decorator factory, which some versions allow, is not intercepted
        site = _requested_site() or Site(caller(), "jax." + name, *describe(function))
        own = options.get("policy")

        @functools.wraps(wrapped)
        def checkpointed(*inputs: Any, **keywords: Any) -> Any:
            number, decision = _called(site, own)
            if not decision.keep:
                result = function(*inputs, **keywords)
                return _marked(number, result) if decision.marked else result
            if decision.policy is None:
                return wrapped(*inputs, **keywords)
            changed = dict(options, policy=decision.policy(site, own))
            with not_intercepting():
                applied = original(*args, **changed)
            return applied(*inputs, **keywords)

        return checkpointed

    return checkpoint


def _called(site: Site, policy: Any) -> tuple[int, Decision]:
    """Record a call of a site, and return its number and the decision about it."""
    calls = _state.calls.setdefault(site, {})
    location = caller()
    calls[location] = calls.get(location, 0) + 1
    if policy:
        _state.policies[site] = policy
    number = _state.numbers.setdefault(site, len(_state.numbers))
    return number, _state.plan.get(site, _state.default)


def _marked(number: int, result: Any) -> Any:
    """Return the result of an application with the number of its site on its first array."""
    leaves, tree = jax.tree_util.tree_flatten(result)
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, jax.Array):
            leaves[place] = internals().named(leaf, MARK + str(number))
            break
    return jax.tree_util.tree_unflatten(tree, leaves)


def describe(function: Callable[..., Any]) -> tuple[str, Location]:
    """Return the qualified name of a checkpointed function, and the line that defines it."""
    inner: Any = function
    while True:
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        elif hasattr(inner, "__func__"):
            inner = inner.__func__
        else:
            break
    code = getattr(inner, "__code__", None)
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    if code is None:
        return name, NOWHERE
    return name.replace("<locals>.", ""), Location(code.co_filename, code.co_firstlineno)


# -- libraries that apply checkpoints on behalf of their users

# A local variable of this name holds the site that a frame applies a checkpoint for.
REQUESTED = "requested_site"
_BY_TYPE: WeakKeyDictionary[type, Site] = WeakKeyDictionary()


def note_type(made: type, site: Site) -> None:
    """Attribute the checkpoints in the methods of a class to a site."""
    _BY_TYPE[made] = site


class _Noted(str):
    """A string with a site, equal to any other string with the same text."""

    site: Site


def note_object(made: Any, site: Site) -> None:
    """Attribute the checkpoints of a library's object, and of copies of it, to a site.

    Such an object is a pytree, which is flattened and rebuilt. The name of its module survives
    that, and equal names keep the structure equal.
    """
    name = getattr(made, "__dict__", {}).get("__module__")
    if isinstance(name, str):
        noted = _Noted(name)
        noted.site = site
        made.__dict__["__module__"] = noted


def _requested_site() -> Site | None:
    """Return the site that a library is applying a checkpoint for, None if the user applies it.

    Stops at the first frame of the user's code, which may apply checkpoints of its own.
    """
    frame: Any = sys._getframe(2)
    while frame is not None and is_library(frame.f_code.co_filename):
        code = frame.f_code
        names = code.co_varnames + code.co_cellvars + code.co_freevars
        if REQUESTED in names:
            site: Site | None = frame.f_locals[REQUESTED]
            return site
        if "self" in names:
            instance = frame.f_locals.get("self")
            for base in type(instance).__mro__:
                if base in _BY_TYPE:
                    return _BY_TYPE[base]
            noted = getattr(instance, "__dict__", {}).get("__module__")
            if isinstance(noted, _Noted):
                return noted.site
        frame = frame.f_back
    return None


@functools.cache
def _library_folders() -> tuple[str, ...]:
    specs = filter(None, map(importlib.util.find_spec, _APPLYING))
    folders = [folder for spec in specs for folder in spec.submodule_search_locations or ()]
    folders.append(os.path.dirname(os.__file__))
    return tuple(os.path.abspath(folder) + os.sep for folder in folders)


@functools.cache
def is_library(path: str) -> bool:
    """Return whether a file belongs to Python, JAX, or a library that applies checkpoints."""
    if path.startswith("<"):
        return True
    path = os.path.abspath(path)
    for folder in _library_folders():
        if path.startswith(folder):
            # Installed packages are below the standard library.
            rest = path[len(folder) :]
            return not rest.startswith(("site-packages" + os.sep, "dist-packages" + os.sep))
    return False
