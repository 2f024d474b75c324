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
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple
from weakref import WeakKeyDictionary

import jax

from .internals import internals
from .lines import line_of

# How the names begin that mark what a checkpoint is applied to, see `COUNT`.
MARK = "remat_migrate_site_"

# What stands in it is not the user's code.
OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))

# What checkpoint functions are called where JAX has them.
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


class Asked(NamedTuple):
    """A library was asked for a checkpoint, which it applies later: a site without its number.

    Attributes:
        api: the library's function, as `flax.linen.remat`.
        place: the line that asked.
        function: what the library was given, by its qualified name.
        defined: where that stands.
    """

    api: str
    place: Place
    function: str
    defined: Place


class Decision(NamedTuple):
    """What becomes of the checkpoints of a site.

    Attributes:
        keep: whether there is a checkpoint at all.
        options: options in place of its own, such as `{"policy": ...}`.
        marked: whether one that is left out gives names to the arrays that it is applied to.
    """

    keep: bool = True
    options: Tuple[Tuple[str, Any], ...] = ()
    marked: bool = False


KEEP = Decision()
LEAVE_OUT = Decision(keep=False)
COUNT = Decision(keep=False, marked=True)


class _State:
    """What is known of the process: sites in the order in which they were first called."""

    def __init__(self) -> None:
        self.numbers: Dict[Site, int] = {}
        # How many applications have left marks.
        self.applied = 0
        self.calls: Dict[Site, Dict[Place, int]] = {}
        self.default = KEEP
        self.plan: Mapping[Site, Decision] = {}
        # Whether a function of JAX makes a checkpoint with another one of its own.
        self.applying = False
        # How often one was marked.
        self.applications = 0

    def number(self, site: Site) -> int:
        return self.numbers.setdefault(site, len(self.numbers))


_state = _State()


def install() -> None:
    """Intercept checkpoints from now on, once for the process."""
    originals: Dict[int, Callable[..., Any]] = {}
    for home in internals().homes:
        module = importlib.import_module(home)
        for name in _NAMES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # From 0.8.2 to 0.9 `jax.ad_checkpoint` gives them on request, with a warning.
                original = getattr(module, name, None)
            if callable(original) and original not in originals.values():
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


def caller() -> Place:
    """The innermost line that is neither of JAX nor of a library that applies checkpoints.

    Of a call over several lines it is the one where the name of what is called starts; of a
    decorator its own.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            return Place(frame.f_code.co_filename, line_of(frame))
        frame = frame.f_back
    return Place("", 0)


@contextlib.contextmanager
def _on_its_own() -> Iterator[None]:
    """What JAX applies meanwhile is part of one checkpoint."""
    before, _state.applying = _state.applying, True
    try:
        yield
    finally:
        _state.applying = before


def own_checkpoint(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`jax.checkpoint` that is no site: one that measuring tries itself."""
    with _on_its_own():
        made: Callable[..., Any] = jax.checkpoint(function, **options)
        return made


def _intercepting(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def checkpoint(*args: Any, **options: Any) -> Any:
        if _state.applying:
            return original(*args, **options)  # `jax.remat`, which is made with `jax.checkpoint`
        with _on_its_own():
            wrapped = original(*args, **options)
        function = args[0] if args else options.get("fun", options.get("f"))
        if not callable(function) or not callable(wrapped):
            return wrapped  # a factory, as some versions allow: what it makes is not seen
        asked = _asked() or Asked("jax." + name, caller(), *described(function))
        site = Site(asked.place, asked.api, asked.function, asked.defined)
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
        if decision.marked:
            static = options.get("static_argnums", ())
            inputs, keywords = _marked(number, static, inputs, keywords)
        return function(*inputs, **keywords)
    if decision.options:
        with _on_its_own():
            wrapped = original(*args, **dict(options, **dict(decision.options)))
    return wrapped(*inputs, **keywords)


def _marked(
    number: int, static: Any, inputs: Tuple[Any, ...], keywords: Dict[str, Any]
) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The inputs of an application, the arrays among them with names that mark it."""
    _state.applications += 1
    application = "%s%d_%d_" % (MARK, number, _state.applications)
    given = {place % len(inputs) for place in _places(static)} if inputs else set()
    traced = {place: value for place, value in enumerate(inputs) if place not in given}
    leaves, tree = jax.tree_util.tree_flatten((traced, keywords))
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, jax.Array):
            leaves[place] = internals().named(leaf, application + str(place))
    traced, keywords = jax.tree_util.tree_unflatten(tree, leaves)
    return tuple(traced.get(place, value) for place, value in enumerate(inputs)), keywords


def _places(static: Any) -> Tuple[int, ...]:
    if static is None:
        return ()
    return tuple(static) if isinstance(static, (tuple, list, range, set)) else (int(static),)


def described(function: Callable[..., Any]) -> Tuple[str, Place]:
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

# The name of the local variable that tells what a frame of ours is there for.
ASKED = "asked_for_checkpoint"
_BY_TYPE: WeakKeyDictionary[type, Asked] = WeakKeyDictionary()


def note_type(made: type, asked: Asked) -> None:
    """Checkpoints that a library applies in methods of this class are those asked for here."""
    _BY_TYPE[made] = asked


class Noted(str):
    """A name that also tells what an object was asked for; equal to any other of the same text."""

    asked: Asked


def note_object(made: Any, asked: Asked) -> None:
    """The same for an object of a library, and for copies with other arrays in it.

    Such an object is a tree of arrays, which is taken apart and put together again. What goes with
    its structure, and may not make it another one, are names such as that of its module.
    """
    name = getattr(made, "__dict__", {}).get("__module__")
    if isinstance(name, str):
        noted = Noted(name)
        noted.asked = asked
        made.__dict__["__module__"] = noted


def _asked() -> Optional[Asked]:
    """What a library was asked for, on whose behalf it applies the checkpoint; None for a user's.

    Between the checkpoint and what was asked for there is no line of the user's: code of the user's
    that the library calls may apply checkpoints of its own.
    """
    frame: Any = sys._getframe(2)
    while frame is not None and is_library(frame.f_code.co_filename):
        code = frame.f_code
        names = code.co_varnames + code.co_cellvars + code.co_freevars
        if ASKED in names:
            asked: Optional[Asked] = frame.f_locals[ASKED]
            return asked
        if "self" in names:
            instance = frame.f_locals.get("self")
            for base in type(instance).__mro__:
                if base in _BY_TYPE:
                    return _BY_TYPE[base]
            noted = getattr(instance, "__dict__", {}).get("__module__")
            if isinstance(noted, Noted):
                return noted.asked
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
    is_library.cache_clear()


@functools.lru_cache(maxsize=None)
def is_library(path: str) -> bool:
    """Whether this is a file of Python, of JAX, or of a library that applies checkpoints."""
    if path.startswith("<"):
        return True
    path = os.path.abspath(path)
    for folder in _library_folders():
        if path.startswith(folder):
            # Installed packages lie below the standard library.
            rest = path[len(folder) :]
            return not rest.startswith(("site-packages" + os.sep, "dist-packages" + os.sep))
    return False
