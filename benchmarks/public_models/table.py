"""The table of the rows, and how well predictions agree with compiled programs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from scipy.stats import spearmanr

# Differences that do not make a placement dominated.
_LESS, _EQUAL = 0.99, 1.001
# `plan` takes the simplest source among placements within a hundredth of each other.
_SIMILAR = 1.01


def table(rows: Sequence[dict[str, Any]], budgets: Sequence[str]) -> str:
    """Return the rows as a Markdown table, and the correlation over all of them.

    Peaks are predicted / compiled, in GB. A plan is shown as its compiled peak as a share of the
    one without checkpoints, and its operations as a multiple.
    """
    heads = ["model", "glue lines", "bare", "every block", "dots"]
    heads += [head for budget in budgets for head in (f"plan {budget}", "best obvious")]
    heads += ["seconds: trace", "plan", *(f"compiled {budget}" for budget in budgets)]
    lines = [_line(heads), _line(["---"] * len(heads))]
    faults = []
    for row in rows:
        every = blocks(row, "")
        cells = [row["model"], str(row["glue"])]
        cells += [_peaks(one) for one in (row["bare"], every, blocks(row, "dots"))]
        for budget in budgets:
            plan, best = row["plans"][budget], best_obvious(row, budget)
            cells += [_needs(plan, row, budget), _needs(best, row, budget) if best else "-"]
            faults += [f"{row['model']} at {budget}: {fault}" for fault in wrong(row, budget)]
        ratio = row["plan_seconds"] / row["trace_seconds"]
        cells += [f"{row['trace_seconds']:.1f}", f"{row['plan_seconds']:.0f} ({ratio:.0f} times)"]
        cells += [f"{row['plans'][budget]['seconds']:.0f}" for budget in budgets]
        lines.append(_line(cells))
    return "\n".join([*lines, "", *agreement(rows), *(faults or ["No faults."])])


def blocks(row: dict[str, Any], policy: str) -> dict[str, Any] | None:
    """Return the checkpoint on every block, with a policy that starts like this."""
    found = []
    for one in row["placements"]:
        stages, _, own = (one["name"] or "").partition(" with ")
        if stages in ("every repeated stage", "every stage") and (
            own.startswith(policy) if policy else not own
        ):
            found.append(one)
    repeated = [one for one in found if "repeated" in one["name"]]
    return min(repeated or found, key=lambda one: one["compiled"], default=None)


def best_obvious(row: dict[str, Any], budget: str) -> dict[str, Any] | None:
    """Return the best obvious choice for a budget, None if none was compiled."""
    obvious = [one for one in row["placements"] if one["name"]]
    limit = row["plans"][budget]["budget"]
    within = [one for one in obvious if one["compiled"] <= limit]
    if within:
        return min(within, key=lambda one: (one["flops"], one["compiled"]))
    return min(obvious, key=lambda one: one["compiled"], default=None)


def wrong(row: dict[str, Any], budget: str) -> list[str]:
    """Return what is wrong with the plan for a budget."""
    plan, best = row["plans"][budget], best_obvious(row, budget)
    found = []
    if plan["met"] != (plan["compiled"] <= plan["budget"]):
        found.append("not met when compiled, or the other way round")
    is_met = best is not None and best["compiled"] <= plan["budget"]
    if is_met and not plan["met"]:
        found.append("wrong 'cannot be met'")
    others = [*row["placements"], row["bare"], *row["plans"].values()]
    if any(dominates(one, plan) for one in others):
        found.append("dominated when compiled")
    if best is not None and plan["met"] and is_met and best["flops"] * _SIMILAR < plan["flops"]:
        found.append("recomputes more than the best obvious choice")
    if best is not None and not plan["met"] and best["compiled"] < _LESS * plan["compiled"]:
        found.append("needs more than the best obvious choice")
    return found


def dominates(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a placement is better in one respect, and as good in the other."""
    peaks = one["compiled"] / other["compiled"]
    flops = one["flops"] / other["flops"]
    return (peaks < _LESS and flops <= _EQUAL) or (flops * _EQUAL < 1 and peaks <= 1)


def agreement(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return Spearman's rank correlation of predicted and compiled peaks, and the worst ratios."""
    by_model: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        distinct = {
            (one["predicted"], one["flops"], one["compiled"]): one
            for one in (row["bare"], *row["placements"], *row["plans"].values())
        }
        by_model[row["model"]] = [*distinct.values()]
    found = [
        (one["predicted"] / one["compiled"], model, one)
        for model, placements in by_model.items()
        for one in placements
    ]
    low, high = min(found, key=lambda item: item[0]), max(found, key=lambda item: item[0])
    overall = _correlation([one for _, _, one in found])
    within = statistics.mean(map(_correlation, by_model.values()))
    return [
        f"Rank correlation of {len(found)} placements: {overall:.3f} over all models,"
        f" {within:.3f} within models (mean).",
        "Predicted to compiled, from "
        + " to ".join(
            f"{ratio:.2f} ({name}, {one['name'] or 'a plan'})" for ratio, name, one in (low, high)
        )
        + ".",
    ]


def _correlation(placements: Sequence[dict[str, Any]]) -> float:
    predicted, compiled = ([one[key] for one in placements] for key in ("predicted", "compiled"))
    return float(spearmanr(predicted, compiled).statistic)


def _peaks(one: dict[str, Any] | None) -> str:
    return f"{one['predicted'] / 1e9:.2f} / {one['compiled'] / 1e9:.2f}" if one else "-"


def _needs(one: dict[str, Any], row: dict[str, Any], budget: str) -> str:
    bare, is_met = row["bare"], one["compiled"] <= row["plans"][budget]["budget"]
    share, operations = one["compiled"] / bare["compiled"], one["flops"] / bare["flops"]
    return f"{share:.1%}{'' if is_met else ' (not met)'}, x{operations:.3f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
