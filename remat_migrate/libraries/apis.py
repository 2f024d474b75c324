"""The checkpoint family as data: one entry per Api, and functions that take functions.

Read from the signatures of jax 0.3.0 to 0.12.0, flax 0.4 to 0.12.12, dm-haiku 0.0.9 to 0.0.17 and
equinox 0.11 to 0.13. `tests/analysis/test_apis.py` compares the table with what is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .framework_layers import Framework, names
from .transforms import GRADIENTS

Counting = Literal["function", "method", "method-without-self"]
StaticCalls = Literal["by-position", "keywords-ignored", "bound", "unknown"]


@dataclass(frozen=True, slots=True)
class Api:
    """One function of the checkpoint family.

    Attributes:
        name: its public qualified name.
        subject: the parameter that takes the function or class to wrap.
        positional: the positional parameters of current releases, subject first.
        old_positional: those up to jax 0.3.15, if they differ.
        counting: how `static_argnums` counts. "function": parameters of the wrapped callable as it
            is called. "method": for a class or method, `self` is 0. "method-without-self": `self`
            is not counted.
        static_option: the option that names static arguments, or None (Equinox needs none).
        static_calls: how a call must pass a static argument. "by-position": passing it by keyword
            or leaving it out is an error, and a negative index counts what the call passes.
            "keywords-ignored": keywords never reach the function; an omitted argument keeps its
            default. "bound": the call is bound to the signature first, so any way works.
        static_indices: the types that `static_option` accepts.
        negative_shift: what to add to a negative index to count from the last argument; None if it
            never names one.
        argnames_since: the jax release from which `static_argnames` is accepted, and ignored
            unless `jax_remat3` is on; None if it is an error.
        concrete: whether some release accepts `concrete=`.
        concrete_false_fails: the jax release from which even `concrete=False` raises, or None.
        wraps_classes: whether it may wrap a Flax class, whose `__call__` is checkpointed.
        modules: the framework whose modules it is made for, or None.
        takes_instances: whether it may wrap an instance of such a module.
        factory: whether calling it without a subject returns a decorator; jax's own do not.
        removed_in: the jax release that removed this spelling, or None.
        same_function: whether the result computes what the subject computes; `remat_scan` makes
            many layers of one.
    """

    name: str
    subject: str = "fun"
    positional: tuple[str, ...] = ("fun",)
    old_positional: tuple[str, ...] = ()
    counting: Counting = "function"
    static_option: str | None = "static_argnums"
    static_calls: StaticCalls = "by-position"
    static_indices: tuple[str, ...] = ("int", "tuple")
    negative_shift: int | None = 0
    argnames_since: tuple[int, ...] | None = None
    concrete: bool = True
    concrete_false_fails: tuple[int, ...] | None = None
    wraps_classes: bool = False
    modules: Framework | None = None
    takes_instances: bool = True
    factory: bool = False
    removed_in: tuple[int, ...] | None = None
    same_function: bool = True

    @property
    def jax_order(self) -> tuple[str, ...]:
        """The positional parameters, including those of old releases."""
        return self.old_positional or self.positional

    @property
    def subject_index(self) -> int:
        """The position of the subject, which is not first in some wrappers of a project."""
        return self.positional.index(self.subject) if self.subject in self.positional else 0


_JAX = Api(
    "jax.checkpoint",
    old_positional=("fun", "concrete", "prevent_cse", "policy"),
    concrete_false_fails=(0, 10, 0),
    argnames_since=(0, 10, 2),
)
# The new implementation under its first name, which never accepted `concrete` by position.
_AD_CHECKPOINT = replace(
    _JAX,
    old_positional=("fun", "prevent_cse", "policy"),
    argnames_since=None,
    removed_in=(0, 10, 0),
)
_LIFTED_OPTIONS = ("variables", "rngs", "concrete", "prevent_cse", "static_argnums", "policy")
_LINEN = Api(
    "flax.linen.remat",
    subject="target",
    positional=("target", *_LIFTED_OPTIONS, "methods"),
    counting="method",
    # One less than jax's index, which counts the variables and the random state first.
    negative_shift=1,
    wraps_classes=True,
    modules="linen",
    takes_instances=False,
)
_LIFT = Api(
    "flax.core.lift.checkpoint",
    subject="fn",
    positional=("fn", *_LIFTED_OPTIONS),
    # The scope that the lifted function takes first is not counted.
    counting="method-without-self",
    negative_shift=2,
)
_REMAT_SCAN_OPTIONS = (
    "lengths",
    "policy",
    "variable_broadcast",
    "variable_carry",
    "variable_axes",
    "split_rngs",
)
_REMAT_SCAN = Api(
    "flax.linen.remat_scan",
    subject="target",
    positional=("target", *_REMAT_SCAN_OPTIONS),
    static_option=None,
    concrete=False,
    wraps_classes=True,
    modules="linen",
    takes_instances=False,
    same_function=False,
)

_ENTRIES = (
    _JAX,
    replace(_JAX, name="jax.remat", argnames_since=None),
    replace(_AD_CHECKPOINT, name="jax.ad_checkpoint.checkpoint"),
    replace(_AD_CHECKPOINT, name="jax.ad_checkpoint.remat"),
    _LINEN,
    replace(_LINEN, name="flax.linen.checkpoint"),
    replace(
        _LINEN,
        name="flax.linen.partitioning.remat",
        counting="method-without-self",
        static_calls="keywords-ignored",
        static_indices=("tuple", "list", "set", "range"),
        negative_shift=None,
    ),
    _REMAT_SCAN,
    _LIFT,
    replace(_LIFT, name="flax.core.lift.remat"),
    replace(
        _REMAT_SCAN,
        name="flax.core.lift.remat_scan",
        subject="body_fn",
        positional=("body_fn", *_REMAT_SCAN_OPTIONS),
        modules=None,
        takes_instances=True,
    ),
    Api(
        "flax.nnx.remat",
        subject="f",
        positional=("f",),
        static_calls="bound",
        concrete=False,
        modules="nnx",
        # flax 0.12.1, which needs jax 0.8.1.
        factory=True,
    ),
    replace(_JAX, name="haiku.remat", argnames_since=None, modules="haiku"),
    Api(
        "equinox.filter_checkpoint",
        modules="equinox",
        static_option=None,
        concrete=False,
        factory=True,
    ),
    # Wrappers that frameworks publish under their own names.
    Api("brainstate.transform.checkpoint", static_calls="unknown", concrete=False, factory=True),
    Api("brainstate.transform.remat", static_calls="unknown", concrete=False, factory=True),
)

APIS: Mapping[str, Api] = {api.name: api for api in _ENTRIES}

# Other qualified names under which the same functions are reached.
_SPELLINGS: Mapping[str, str] = {
    "jax._src.ad_checkpoint.checkpoint": "jax.checkpoint",
    "jax._src.ad_checkpoint.remat": "jax.remat",
    "jax._src.api.checkpoint": "jax.checkpoint",
    "jax._src.api.remat": "jax.remat",
    "jax.api.checkpoint": "jax.checkpoint",
    "jax.api.remat": "jax.remat",
    "flax.linen.transforms.remat": "flax.linen.remat",
    "flax.linen.transforms.checkpoint": "flax.linen.checkpoint",
    "flax.linen.transforms.remat_scan": "flax.linen.remat_scan",
    "flax.core.checkpoint": "flax.core.lift.checkpoint",
    "flax.core.remat": "flax.core.lift.remat",
    "flax.core.remat_scan": "flax.core.lift.remat_scan",
    "flax.nnx.transforms.autodiff.remat": "flax.nnx.remat",
    "flax.nnx.transforms.remat": "flax.nnx.remat",
    "flax.nnx.transforms.transforms.remat": "flax.nnx.remat",
    "flax.experimental.nnx.remat": "flax.nnx.remat",
    "haiku._src.stateful.remat": "haiku.remat",
    "equinox._ad.filter_checkpoint": "equinox.filter_checkpoint",
    "equinox._grad.filter_checkpoint": "equinox.filter_checkpoint",
    "brainstate.augment.checkpoint": "brainstate.transform.checkpoint",
    "brainstate.augment.remat": "brainstate.transform.remat",
    "brainstate.compile.checkpoint": "brainstate.transform.checkpoint",
    "brainstate.compile.remat": "brainstate.transform.remat",
}


# Packages whose names are kept as names even if their source is part of the project.
KNOWN_PACKAGES = names(
    """
    jax jaxlib flax haiku equinox numpy functools itertools typing dataclasses collections abc
    os contextlib enum math optax brainstate jaxtyping typing_extensions tensorflow torch scipy
    """
)

# Modules through which jax's functions are or were accessible.
_PRIVATE = ("jax._src.api.", "jax.api.", "jax._src.lax.lax.", "jax._src.lax.control_flow.")


def spellings(api: Api) -> tuple[str, ...]:
    """Return every qualified name of an Api, its public one first."""
    return (api.name, *(other for other, name in _SPELLINGS.items() if name == api.name))


def public_name(name: str) -> str:
    """Return the public name of a jax function: `jax.grad` for `jax._src.api.grad`."""
    for prefix in _PRIVATE:
        if name.startswith(prefix):
            public = "jax.lax." if ".lax." in prefix else "jax."
            return public + name.removeprefix(prefix)
    return name


class ApiTable:
    """The Apis of a run: the built-in ones and the wrappers named in the settings."""

    def __init__(self, wrappers: Mapping[str, str] | None = None) -> None:
        """`wrappers` maps the qualified name of a user's wrapper to the Api that it behaves like.

        Raises:
            KeyError: a wrapper behaves like an unknown Api.
        """
        self._apis = dict(APIS)
        for name, like in (wrappers or {}).items():
            base = self._apis[_SPELLINGS.get(like, like)]
            self._apis[name] = replace(base, name=name, removed_in=None)
        self.last_names = frozenset(name.rpartition(".")[2] for name in (*self._apis, *_SPELLINGS))

    def add(self, api: Api) -> None:
        """Add a wrapper that the project itself defines."""
        self._apis[api.name] = api
        self.last_names |= {api.name.rpartition(".")[2]}

    def find(self, qualified: str) -> Api | None:
        """Return the Api of a qualified name."""
        return self._apis.get(_SPELLINGS.get(qualified, qualified))


# Functions that take a function first and return one that is called with the same arguments.
SAME_CALL = names(
    """
    jax.jit jax.pmap jax.vmap jax.grad jax.value_and_grad jax.jacfwd jax.jacrev jax.jacobian
    jax.hessian jax.custom_jvp jax.custom_vjp jax.custom_gradient jax.named_call
    jax.experimental.pjit.pjit jax.experimental.shard_map.shard_map jax.shard_map
    jax.experimental.checkify.checkify jax.linear_util.wrap_init jax.make_jaxpr
    haiku.grad haiku.value_and_grad haiku.vmap haiku.jit haiku.named_call
    equinox.filter_jit equinox.filter_grad equinox.filter_value_and_grad equinox.filter_vmap
    equinox.filter_pmap
    flax.linen.jit flax.linen.vmap flax.linen.scan flax.linen.add_metadata_axis
    flax.linen.map_variables flax.nnx.jit flax.nnx.grad flax.nnx.value_and_grad
    functools.lru_cache functools.cache
    """
)

# Of those, the ones that differentiate.
DIFFERENTIATE: frozenset[str] = SAME_CALL & GRADIENTS.keys()

# Functions that call their first argument, with arrays from the given position on.
CALL_WITH: Mapping[str, int] = {
    "jax.vjp": 1,
    "jax.linearize": 1,
    "jax.eval_shape": 1,
    "jax.closure_convert": 1,
}

# Functions that call the functions at these positions with traced arguments.
TRACED_BODIES: Mapping[str, tuple[int, ...]] = {
    "jax.lax.scan": (0,),
    "jax.lax.map": (0,),
    "jax.lax.fori_loop": (2,),
    "jax.lax.while_loop": (0, 1),
    "jax.lax.cond": (1, 2),
    "jax.lax.associative_scan": (0,),
    "flax.linen.while_loop": (0, 1),
    "flax.linen.cond": (1, 2),
    "haiku.scan": (0,),
    "haiku.fori_loop": (2,),
    "haiku.while_loop": (0, 1),
    "haiku.cond": (1, 2),
    "equinox.internal.scan": (0,),
}

# Functions that compile their first argument.
COMPILERS: frozenset[str] = names("jax.jit jax.pmap equinox.filter_jit flax.linen.jit")
# Functions that return their arguments' object, or a part of it that is called like it.
SAME_OBJECT: frozenset[str] = names(
    """
    equinox.apply_updates equinox.combine equinox.filter equinox.nn.inference_mode
    equinox.tree_at equinox.tree_inference flax.nnx.clone flax.nnx.merge
    """
)
# Those that return several such parts.
PARTS_OF_OBJECT: frozenset[str] = frozenset({"equinox.partition", "flax.nnx.split"})
# Functions that return their first argument, or a container of the same values.
SAME_CONTENTS: frozenset[str] = names(
    """
    builtins.list builtins.tuple builtins.reversed builtins.iter builtins.staticmethod
    types.MappingProxyType flax.nnx.Dict flax.nnx.List
    """
)

# Decorators that do not change what a function computes.
TRANSPARENT = names(
    """
    jax.named_scope flax.linen.compact flax.linen.nowrap flax.linen.module.compact
    flax.linen.transforms.named_call haiku.transparent functools.wraps typing.no_type_check
    typing.final typing.override typing_extensions.override abc.abstractmethod
    contextlib.contextmanager jaxtyping.jaxtyped typeguard.typechecked beartype.beartype
    """
)
