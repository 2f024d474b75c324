"""RMT304: a checkpoint in a scan that keeps `prevent_cse=True`.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html: "when used inside a scan, this CSE
prevention mechanism is unnecessary".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.placement.loops import LoopUse, checkpoints_around
from remat_migrate.analysis.placement.placement import placement_of
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.analysis.values.values import Parameter
from remat_migrate.rule import Confidence, Example, Finding, Related, Rule

from .placement_fixes import placement_fix


class PreventCseInScan(Rule):
    """## What it does

    Finds a checkpoint that is the body of a loop which JAX compiles, or is called by that body
    alone, and leaves `prevent_cse` at its default, `True`. Functions of the project that run a
    function in a loop are followed, such as `layer_stack(n)(f)`, `repeat(f, n)`, and helpers that
    take the loop (`scan_fn=hk.scan`) or the checkpoint (`wrap=jax.checkpoint`) as an argument. The
    loop must be one: a scan that is unrolled, or of length 1, is straight code, in which the
    compiler would merge the recomputation with what it repeats.

    ## Why is this bad?

    Little. Forward and backward pass of a loop are two loops, between which the compiler merges
    nothing. The barriers that `prevent_cse=True` puts around the function save no memory there,
    and can keep the compiler from fusing operations.

    ## Fix

    `prevent_cse=False`. Unsafe: it has to go again when the loop is unrolled.
    """

    code, name = "RMT304", "prevent-cse-in-scan"
    severity = "note"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"
    wrong = [
        Example(
            "import jax\n\n\n"
            "def run(layer, x, weights):\n"
            "    return jax.lax.scan(jax.checkpoint(layer), x, weights)\n",
            "import jax\n\n\n"
            "def run(layer, x, weights):\n"
            "    return jax.lax.scan(jax.checkpoint(layer, prevent_cse=False), x, weights)\n",
        ),
        Example(
            "import jax\n\n\n"
            "def run(layer, x, weights, remat):\n"
            "    def body(x, w):\n"
            "        return layer(x, w), None\n\n"
            "    if remat:\n"
            "        body = jax.checkpoint(body)\n"
            "    return jax.lax.scan(body, x, weights)\n",
            "import jax\n\n\n"
            "def run(layer, x, weights, remat):\n"
            "    def body(x, w):\n"
            "        return layer(x, w), None\n\n"
            "    if remat:\n"
            "        body = jax.checkpoint(body, prevent_cse=False)\n"
            "    return jax.lax.scan(body, x, weights)\n",
        ),
        Example(
            "import flax.linen as nn\n\n\n"
            "class Layer(nn.Module):\n"
            "    @nn.compact\n"
            "    def __call__(self, x, _):\n"
            "        return nn.Dense(8)(x), None\n\n\n"
            "def stack():\n"
            "    return nn.scan(nn.remat(Layer), variable_axes={'params': 0})\n",
            "import flax.linen as nn\n\n\n"
            "class Layer(nn.Module):\n"
            "    @nn.compact\n"
            "    def __call__(self, x, _):\n"
            "        return nn.Dense(8)(x), None\n\n\n"
            "def stack():\n"
            "    return nn.scan(nn.remat(Layer, prevent_cse=False), variable_axes={'params': 0})\n",
        ),
    ]
    right = [
        "import jax\n\n\n"
        "def run(layer, x, weights):\n"
        "    return jax.lax.scan(jax.checkpoint(layer, prevent_cse=False), x, weights)\n",
        # Unrolled: the compiler sees one layer after the other.
        "import jax\n\n\n"
        "def run(layer, x, weights, unroll):\n"
        "    return jax.lax.scan(jax.checkpoint(layer), x, weights, unroll=unroll)\n",
        # Outside the loop the barriers are needed.
        "import jax\n\n\n"
        "def run(layer, x, weights):\n"
        "    layer = jax.checkpoint(layer)\n"
        "    x, _ = layer(x, weights[0])\n"
        "    return jax.lax.scan(layer, x, weights)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each checkpoint that is in loops only."""
        sites = [site for site in sites_in(project, module) if _prevents_cse(site, project)]
        for site in sites:
            found = only_in_loops(site, project)
            if found is None:
                continue
            from remat_migrate.rewrite.placement import set_option

            loops, confidence = found
            related = tuple(
                Related(loop.module.source, loop.module.span(loop.node), "the loop")
                for loop in loops[:3]
            )
            fix, reason = placement_fix(
                "pass `prevent_cse=False`",
                confidence == "low",
                "pass `prevent_cse=False` where the loop is never unrolled",
                partial(set_option, project, site, "prevent_cse", False),
            )
            yield self.finding(
                module.source,
                site.span,
                f"`{site.api}` in a `{loops[0].loop.name}`: `prevent_cse=False` saves as much"
                " memory, without barriers",
                confidence=confidence,
                related=related,
                fix=fix,
                reason=reason,
            )


def only_in_loops(site: Site, project: Project) -> tuple[list[LoopUse], Confidence] | None:
    """The loops in which alone a site's function runs, all of them loops to the compiler."""
    placement = placement_of(project)
    loops: list[LoopUse] = []
    sure = site.certain
    for occurrence in placement.of_site(site, through=True):
        if occurrence.how == "exported":
            sure = False
            continue
        around = placement.loops_of(occurrence, through=True)
        if not around:
            return None
        for loop in around:
            if _is_checkpointed_besides(site, loop) or not loop.loop.differentiable:
                return None
            if not placement.is_real(loop, occurrence):
                return None
            # Others may give their own loop to a function that applies the checkpoint itself.
            sure = sure and loop.use.certain and (occurrence.passed or not loop.use.passed)
        loops += around
    return (list(dict.fromkeys(loops)), "high" if sure else "low") if loops else None


def _is_checkpointed_besides(site: Site, loop: LoopUse) -> bool:
    """Whether the body is another checkpoint, around this one.

    Its recomputation, and then that of this one, are in one round: there the barriers are needed.
    """
    return any(
        applied.node is not site.application
        for body in loop.bodies
        for applied in checkpoints_around(body)
    )


def _prevents_cse(site: Site, project: Project) -> bool:
    if site.spread or not site.definition.same_function:
        return False
    # A wrapper that is a parameter is found where callers pass it.
    reference = project.values(site.module, site.reference)
    if any(isinstance(value, Parameter) for value in reference):
        return False
    option = site.arguments.get("prevent_cse")
    return option is None or (isinstance(option.value, ast.Constant) and option.value.value is True)
