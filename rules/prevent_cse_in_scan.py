"""RMT304: a checkpoint in a scan keeps `prevent_cse=True`.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html: "when used inside a scan, this CSE
prevention mechanism is unnecessary".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.api import (
    Confidence,
    Example,
    Finding,
    Module,
    Project,
    Related,
    Rule,
    Safety,
    Site,
    sites_in,
)
from remat_migrate.api.code import Applied, Parameter, in_test, layers
from remat_migrate.api.placement import LoopUse, placement_of

from .shared.placement_fixes import placement_fix

_SCAN = """\
import jax


def run(layer, x, weights):
    return jax.lax.scan(%s, x, weights%s)
"""
_FLAX = """\
import flax.linen as nn


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return nn.Dense(8)(x), None


def stack():
    return nn.scan(nn.remat(%s), variable_axes={"params": 0})
"""


class PreventCseInScan(Rule):
    """## What it does
    Checks for a checkpoint that is the body of a compiled loop, or is called only by that body, and
    leaves `prevent_cse` at its default, `True`. Follows functions of the project that run a
    function in a loop, such as `layer_stack(n)(f)` and `repeat(f, n)`. Ignores scans that are
    unrolled or have length 1: there the compiler would merge the recomputation with the forward
    pass.

    ## Why is this bad?
    It matters little. The forward and the backward pass of a loop are two loops, and the compiler
    merges nothing between them. The barriers that `prevent_cse=True` adds save no memory there and
    can prevent fusion.

    ## Fix
    Passes `prevent_cse=False`. Unsafe: it must be removed again when the loop is unrolled.
    """

    code, name = "RMT304", "prevent-cse-in-scan"
    fix_safety = Safety.UNSAFE
    severity = "note"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"
    wrong = [
        Example(
            _SCAN % ("jax.checkpoint(layer)", ""),
            _SCAN % ("jax.checkpoint(layer, prevent_cse=False)", ""),
        ),
        Example(_FLAX % "Layer", _FLAX % "Layer, prevent_cse=False"),
    ]
    right = [
        # Unrolled: the compiler sees one layer after the other.
        _SCAN % ("jax.checkpoint(layer)", ", unroll=4"),
        # The call outside the loop needs the barriers.
        "import jax\n\n\n"
        "def run(layer, x, weights):\n"
        "    layer = jax.checkpoint(layer)\n"
        "    x, _ = layer(x, weights[0])\n"
        "    return jax.lax.scan(layer, x, weights)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report the checkpoints that run in loops only, those of one loop together."""
        groups: dict[tuple[str, ast.AST, Confidence], list[tuple[Site, list[LoopUse]]]] = {}
        for site in sites_in(project, module):
            if _prevents_cse(site, project) and not in_test(module, site.reference):
                found = only_in_loops(site, project)
                if found is not None:
                    loops, confidence = found
                    key = site.api, loops[0].node, confidence
                    groups.setdefault(key, []).append((site, loops))
        for (_, _, confidence), members in groups.items():
            yield self._finding(project, members, confidence)

    def _finding(
        self, project: Project, members: list[tuple[Site, list[LoopUse]]], confidence: Confidence
    ) -> Finding:
        from remat_migrate.api.rewrites import set_option

        site, loops = members[0]
        fix = placement_fix(
            "pass `prevent_cse=False`",
            confidence == "low",
            "pass `prevent_cse=False` where the loop is never unrolled",
            lambda: [
                change
                for member, _ in members
                for change in set_option(project, member, "prevent_cse", False)
            ],
        )
        others = [Related(m.module.source, m.span, "and this one") for m, _ in members[1:]]
        places = [Related(*loop.module.location(loop.node), "the loop") for loop in loops[:3]]
        return self.finding(
            site.module.source,
            site.span,
            f"`{site.api}` in `{loops[0].transform.name}` does not need `prevent_cse=True`; its"
            " barriers save no memory",
            confidence=confidence,
            related=(*others, *places),
            fix=fix,
        )


def only_in_loops(site: Site, project: Project) -> tuple[list[LoopUse], Confidence] | None:
    """Return the compiled loops that run a site's function, or None if it also runs elsewhere."""
    placement = placement_of(project)
    loops: list[LoopUse] = []
    sure = site.certain
    for occurrence in placement.occurrences(site):
        if occurrence.how == "exported":
            sure = False
            continue
        around = placement.loops_of(occurrence)
        if not around:
            return None
        for loop in around:
            if _has_outer_checkpoint(site, loop) or not loop.transform.differentiable:
                return None
            if loop.compiles_to_loop(project) != "yes":
                return None
            sure = sure and loop.certain
        loops += around
    return (list(dict.fromkeys(loops)), "high" if sure else "low") if loops else None


def _has_outer_checkpoint(site: Site, loop: LoopUse) -> bool:
    """Return whether the body of a loop is another checkpoint, around this one.

    Its recomputation and that of this one happen in the same iteration, which needs the barriers.
    """
    return any(
        isinstance(layer, Applied) and layer.node is not site.application
        for body in loop.functions
        for layer in layers(body)
    )


def _prevents_cse(site: Site, project: Project) -> bool:
    if site.spread or not site.definition.same_function:
        return False
    # Callers choose the options of a wrapper that is a parameter.
    reference = project.values(site.module, site.reference)
    if any(isinstance(value, Parameter) for value in reference):
        return False
    option = site.arguments.get("prevent_cse")
    return option is None or (isinstance(option.value, ast.Constant) and option.value.value is True)
