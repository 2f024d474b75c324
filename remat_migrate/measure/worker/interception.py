"""Checkpoints of the code under measurement: where each was applied, and what to make of it.

`install` puts a function of the same signature in the place of `jax.checkpoint` and `jax.remat`
before the user's modules are imported. It notes the line that applies the checkpoint. At each call
it does what the plan says for that line: keep the checkpoint, leave it out, or give it another
policy. So a variant of a program is the program itself, traced once more, whatever transformation
the checkpoint stands in, and whichever implementation of checkpoints JAX uses.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import jax

# Marks the equations of a site in the name stack of a jaxpr.
MARK = "remat_migrate_site_"

# What stands in it is not the user's code.
OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))

# Where JAX has had checkpoint functions.
_HOMES = ("jax", "jax.ad_checkpoint", "jax._src.ad_checkpoint", "jax._src.api")
_NAMES = ("checkpoint", "remat")
# Packages whose checkpoints are applied on behalf of whoever calls them.
_APPLYING = ("jax", "flax", "haiku", "equinox", "remat_migrate")


class Place(NamedTuple):
    """A line of source."""

    path: str
    line: int


class Site(NamedTuple):
    """Where a checkpoint is applied, and to what: what a plan decides about.

    Attributes:
        place: the line that applies it.
        api: the function that it applies, as `jax.checkpoint`.
        function: what it is applied to, by its qualified name.
        defined: where that stands.
    """

    place: Place
    api: str
    function: str
    defined: Place


class Decision(NamedTuple):
    """What becomes of the checkpoints of a site.

    Attributes:
        keep: whether there is a checkpoint at all.
        options: options in place of its own, such as `{"policy": ...}`.
    """

    keep: bool = True
    options: Tuple[Tuple[str, Any], ...] = ()


KEEP = Decision()
LEAVE_OUT = Decision(keep=False)


class _State:
    """What is known of the process: sites in the order in which they were first called."""

    def __init__(self) -> None:
        self.numbers: Dict[Site, int] = {}
        self.policies: Dict[Site, Any] = {}
        self.calls: Dict[Site, Dict[Place, int]] = {}
        self.default = KEEP
        self.plan: Mapping[Site, Decision] = {}
        # Places where libraries that apply checkpoints later were asked to.
        self.asked: List[Tuple[str, Place]] = []

    def number(self, site: Site) -> int:
        return self.numbers.setdefault(site, len(self.numbers))


_state = _State()


def install() -> None:
    """Intercept checkpoints from now on, once for the process."""
    originals: Dict[int, Callable[..., Any]] = {}
    for home in _HOMES:
        with contextlib.suppress(ImportError):
            module = importlib.import_module(home)
            for name in _NAMES:
                original = vars(module).get(name)
                # `jax._src.ad_checkpoint.checkpoint` may be bound to a module in old versions.
                if callable(original):
                    replacement = originals.setdefault(id(original), _intercepting(original, name))
                    setattr(module, name, replacement)


def sites() -> List[Site]:
    """All sites that a trace has met so far, in the order in which they were first called."""
    return list(_state.numbers)


def numbered(number: int) -> Site:
    """The site with this number in the marks of a jaxpr."""
    return list(_state.numbers)[number]


def calls_of(site: Site) -> Dict[Place, int]:
    """The lines of user code from which a site was called in the last trace, with how often."""
    return dict(_state.calls.get(site, {}))


def policy_of(site: Site) -> Any:
    """The policy that the source gives a site, None without one."""
    return _state.policies.get(site)


@contextlib.contextmanager
def plan(decisions: Mapping[Site, Decision], default: Decision = KEEP) -> Iterator[None]:
    """Trace with these decisions, and with `default` for all other sites.

    What JAX remembers of earlier traces is forgotten: it does not know that the meaning of a
    function has changed.
    """
    before = _state.plan, _state.default
    _state.plan, _state.default = dict(decisions), default
    _state.calls = {}
    _forget_traces()
    try:
        yield
    finally:
        _state.plan, _state.default = before
        _forget_traces()


def _forget_traces() -> None:
    forget: Any = jax.clear_caches
    forget()


@contextlib.contextmanager
def on_behalf_of(api: str, place: Place) -> Iterator[None]:
    """Checkpoints applied meanwhile are those of a library's function `api`, applied at `place`."""
    _state.asked.append((api, place))
    try:
        yield
    finally:
        _state.asked.pop()


def caller() -> Place:
    """The innermost line that is neither of JAX nor of a library that applies checkpoints."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not _is_library(frame.f_code.co_filename):
            return Place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return Place("", 0)


def _intercepting(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def checkpoint(*args: Any, **options: Any) -> Any:
        wrapped = original(*args, **options)
        function = args[0] if args else options.get("fun", options.get("f"))
        if not callable(function) or not callable(wrapped):
            return wrapped  # a factory, as some versions allow: what it makes is not seen
        asked = _state.asked[-1] if _state.asked else _asked_by_instance()
        api, place = asked or ("jax." + name, caller())
        site = Site(place, api, *_described(function))
        _state.policies[site] = options.get("policy")
        apply = functools.partial(_apply, site, original, args, options, wrapped, function)

        @functools.wraps(wrapped)
        def checkpointed(*inputs: Any, **keywords: Any) -> Any:
            return apply(inputs, keywords)

        return checkpointed

    return checkpoint


def _apply(
    site: Site,
    original: Callable[..., Any],
    args: Tuple[Any, ...],
    options: Dict[str, Any],
    wrapped: Callable[..., Any],
    function: Callable[..., Any],
    inputs: Tuple[Any, ...],
    keywords: Dict[str, Any],
) -> Any:
    number = _state.number(site)
    calls = _state.calls.setdefault(site, {})
    place = caller()
    calls[place] = calls.get(place, 0) + 1
    decision = _state.plan.get(site, _state.default)
    if not decision.keep:
        return function(*inputs, **keywords)
    if decision.options:
        wrapped = original(*args, **dict(options, **dict(decision.options)))
    with jax.named_scope(MARK + str(number)):
        return wrapped(*inputs, **keywords)


def _described(function: Callable[..., Any]) -> Tuple[str, Place]:
    """The name of what a checkpoint is applied to, and where it is defined."""
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
        return name, Place("", 0)
    return name.replace("<locals>.", ""), Place(code.co_filename, code.co_firstlineno)


# -- libraries that apply checkpoints on behalf of their users

_BY_TYPE: Dict[type, Tuple[str, Place]] = {}


def note_type(made: type, api: str, place: Place) -> None:
    """Checkpoints applied in methods of this class are those asked of `api` at `place`."""
    _BY_TYPE[made] = (api, place)


def _asked_by_instance() -> Optional[Tuple[str, Place]]:
    """What the innermost method on the stack of a class of `note_type` stands for."""
    if not _BY_TYPE:
        return None
    frame: Any = sys._getframe(2)
    while frame is not None:
        if _is_library(frame.f_code.co_filename) and "self" in frame.f_code.co_varnames:
            asked = _BY_TYPE.get(type(frame.f_locals.get("self")))
            if asked is not None:
                return asked
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=None)
def _library_folders() -> Tuple[str, ...]:
    folders = []
    for name in _APPLYING:
        module = sys.modules.get(name)
        for folder in getattr(module, "__path__", ()):
            folders.append(os.path.abspath(folder) + os.sep)
    return (*folders, os.path.dirname(os.__file__) + os.sep)


def forget_folders() -> None:
    """Look anew where the libraries lie: one has been imported."""
    _library_folders.cache_clear()
    _is_library.cache_clear()


@functools.lru_cache(maxsize=None)
def _is_library(path: str) -> bool:
    if path.startswith("<"):
        return True
    path = os.path.abspath(path)
    for folder in _library_folders():
        if path.startswith(folder):
            # Installed packages lie below the standard library.
            rest = path[len(folder) :]
            return not rest.startswith(("site-packages" + os.sep, "dist-packages" + os.sep))
    return False
