"""Functions that differentiate a function or run one in a loop, as data.

Read from the signatures of jax 0.3.0 to 0.12.0, flax 0.6 to 0.12.12, dm-haiku 0.0.9 to 0.0.17,
equinox 0.11 to 0.13, optax 0.2 and jaxopt 0.8. `tests/analysis/test_transforms.py` compares the
tables with what is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Mode = Literal["reverse", "forward", "twice"]


@dataclass(frozen=True, slots=True)
class Transform:
    """A library function that takes a function.

    Attributes:
        name: its public qualified name.
        parameter: the parameter that takes the function.
        position: the position of that parameter; None if it is keyword-only.
    """

    name: str
    parameter: str = "fun"
    position: int | None = 0


@dataclass(frozen=True, slots=True)
class Gradient(Transform):
    """A function that differentiates the one it takes.

    Attributes:
        mode: "reverse" keeps residuals for a backward pass, which checkpoints are about; "forward"
            keeps none; "twice" is a derivative of a derivative.
        value: whether it returns the function's value as well.
        later: whether it returns a function that runs the backward pass (`jax.vjp`), so that the
            residuals may live long.
    """

    mode: Mode = "reverse"
    value: bool = False
    later: bool = False


@dataclass(frozen=True, slots=True)
class Loop(Transform):
    """A function that runs the one it takes repeatedly.

    Attributes:
        length: the name and position of the number of iterations; None if only the arrays tell.
        bounds: the positions of lower and upper bound, if those give the number of iterations.
        unroll: the option that unrolls several iterations, or None.
        unroll_position: its position; None if it is keyword-only.
        compiled_once: whether the compiler sees one iteration, as the body of a loop. Otherwise,
            the iterations are inlined one after the other (`jax.lax.associative_scan`).
        differentiable: whether reverse-mode differentiation supports it.
        factory: whether it takes the function in a second call: `layer_stack(8)(block)`.
        own_checkpoints: whether it checkpoints the iterations itself.
    """

    parameter: str = "f"
    length: tuple[str, int | None] | None = None
    bounds: tuple[int, int] | None = None
    unroll: str | None = "unroll"
    unroll_position: int | None = None
    compiled_once: bool = True
    differentiable: bool = True
    factory: bool = False
    own_checkpoints: bool = False


def _both(package: str, *, name: str = "fun", prefix: str = "") -> tuple[Gradient, Gradient]:
    return (
        Gradient(f"{package}.{prefix}grad", name),
        Gradient(f"{package}.{prefix}value_and_grad", name, value=True),
    )


_SOLVERS = (
    "GradientDescent", "LBFGS", "LBFGSB", "BFGS", "NonlinearCG", "ProximalGradient", "OptaxSolver",
    "ProjectedGradient", "ArmijoSGD", "PolyakSGD", "MirrorDescent", "ScipyMinimize",
    "ScipyBoundedMinimize", "BlockCoordinateDescent",
)  # fmt: skip

_GRADIENTS = (
    *_both("jax"),
    Gradient("jax.vjp", value=True, later=True),
    Gradient("jax.linearize", value=True, later=True),
    Gradient("jax.jacrev"),
    Gradient("jax.jacobian"),
    Gradient("jax.hessian", mode="twice"),
    Gradient("jax.jacfwd", mode="forward"),
    Gradient("jax.jvp", mode="forward"),
    Gradient("jax.scipy.optimize.minimize"),
    *_both("haiku"),
    *_both("equinox", prefix="filter_"),
    Gradient("equinox.filter_vjp", value=True, later=True),
    Gradient("equinox.filter_jacrev"),
    Gradient("equinox.filter_hessian", mode="twice"),
    Gradient("equinox.filter_jacfwd", mode="forward"),
    Gradient("equinox.filter_jvp", "fn", mode="forward"),
    *_both("flax.nnx", name="f"),
    *_both("flax.linen", name="fn"),
    Gradient("flax.linen.vjp", "fn", value=True, later=True),
    Gradient("flax.linen.jvp", "fn", mode="forward"),
    Gradient("flax.core.lift.value_and_grad", "fn", value=True),
    Gradient("flax.core.lift.vjp", "fn", value=True, later=True),
    Gradient("flax.training.dynamic_scale.DynamicScale.value_and_grad", value=True),
    Gradient("optax.value_and_grad_from_state", "value_fn", value=True),
    *_both("brainstate.transform", name="func"),
    *(Gradient(f"jaxopt.{solver}", value=True) for solver in _SOLVERS),
    Gradient("jaxopt.GaussNewton", "residual_fun", mode="forward"),
    Gradient("jaxopt.LevenbergMarquardt", "residual_fun", mode="forward"),
)

_SCAN = Loop("jax.lax.scan", length=("length", 3), unroll_position=5)
_LAYER_STACK = Loop("haiku.layer_stack", length=("num_layers", 0), unroll_position=2, factory=True)

_LOOPS = (
    _SCAN,
    Loop("jax.lax.map", unroll=None),
    Loop("jax.lax.fori_loop", "body_fun", 2, bounds=(0, 1)),
    Loop("jax.lax.while_loop", "body_fun", 1, unroll=None, differentiable=False),
    Loop("jax.lax.associative_scan", "fn", unroll=None, compiled_once=False),
    Loop("flax.linen.scan", "target", length=("length", None)),
    Loop("flax.linen.while_loop", "body_fn", 1, unroll=None, differentiable=False),
    Loop("flax.core.lift.scan", "fn", length=("length", None)),
    Loop("flax.core.lift.while_loop", "body_fn", 1, unroll=None, differentiable=False),
    Loop("flax.nnx.scan", length=("length", None)),
    Loop("flax.nnx.fori_loop", "body_fun", 2, bounds=(0, 1)),
    Loop("flax.nnx.while_loop", "body_fun", 1, unroll=None, differentiable=False),
    replace(_SCAN, name="haiku.scan"),
    Loop("haiku.map", unroll=None),
    Loop("haiku.fori_loop", "body_fun", 2, bounds=(0, 1), unroll=None),
    Loop("haiku.while_loop", "body_fun", 1, unroll=None, differentiable=False),
    _LAYER_STACK,
    Loop("equinox.internal.scan", length=("length", 3), unroll=None, own_checkpoints=True),
    Loop("equinox.internal.while_loop", "body_fun", 1, unroll=None, own_checkpoints=True),
    Loop("brainstate.transform.scan", length=("length", 3), unroll_position=5),
)

# Other qualified names under which the same functions are reached.
SPELLINGS: Mapping[str, str] = {
    "jax._src.lax.control_flow.loops.scan": "jax.lax.scan",
    "jax._src.lax.control_flow.loops.map": "jax.lax.map",
    "jax._src.lax.control_flow.loops.fori_loop": "jax.lax.fori_loop",
    "jax._src.lax.control_flow.loops.while_loop": "jax.lax.while_loop",
    "flax.linen.transforms.scan": "flax.linen.scan",
    "flax.core.scan": "flax.core.lift.scan",
    "flax.core.vjp": "flax.core.lift.vjp",
    "flax.nnx.transforms.iteration.scan": "flax.nnx.scan",
    "flax.nnx.transforms.transforms.grad": "flax.nnx.grad",
    "haiku.experimental.layer_stack": "haiku.layer_stack",
    "haiku.experimental.layer_stack.layer_stack": "haiku.layer_stack",
    "haiku.experimental.scan": "haiku.scan",
    "brainstate.augment.grad": "brainstate.transform.grad",
    "brainstate.compile.scan": "brainstate.transform.scan",
}

GRADIENTS: Mapping[str, Gradient] = {entry.name: entry for entry in _GRADIENTS}
LOOPS: Mapping[str, Loop] = {entry.name: entry for entry in _LOOPS}

# Methods that define the derivative rule of a function.
RULE_METHODS = frozenset({"defvjp", "defjvp", "defjvps", "def_vjp", "def_jvp"})


_NAMES = frozenset(
    name.rpartition(".")[2] for name in (*GRADIENTS, *LOOPS, *SPELLINGS, "jax.custom_gradient")
)


class TransformTable:
    """The transforms of a run: the built-in ones and the scans named in the settings.

    A module that contains none of `last_names`, nor an alias of one, applies no transform.
    """

    def __init__(self, scans: Mapping[str, str] | None = None) -> None:
        """`scans` maps the qualified name of a user's loop to the one that it behaves like.

        Raises:
            KeyError: a loop behaves like an unknown one.
        """
        self._own = {
            name: replace(LOOPS[SPELLINGS.get(like, like)], name=name)
            for name, like in (scans or {}).items()
        }
        own = {name.rpartition(".")[2] for name in self._own}
        self.last_names = _NAMES | own

    def find(self, name: str) -> Gradient | Loop | None:
        """Return the entry of a qualified name."""
        own = SPELLINGS.get(name, name)
        return self._own.get(name) or GRADIENTS.get(own) or LOOPS.get(own)
