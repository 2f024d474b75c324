"""RMT603: code that looks for the current primitive of checkpoints."""

from __future__ import annotations

import pytest
from support import places

CODE = "RMT603"
HEAD = (
    "import jax\nfrom jax._src import ad_checkpoint\nfrom jax._src.ad_checkpoint import name_p\n\n"
)


@pytest.mark.parametrize(
    "code",
    [
        "found = [e for e in jaxpr.eqns if e.primitive.name == 'remat2']",
        "found = [e for e in jaxpr.eqns if e.primitive.name in ('scan', 'remat2')]",
        "count = str(jaxpr).count('remat2')",
        "costs = {'remat2': 0, 'dot_general': 1}",
        "inner = {ad_checkpoint.remat_p: visit}",
        "RULES[ad_checkpoint.remat_p] = visit",
        "same = equation.primitive is ad_checkpoint.remat_p",
        "known = equation.primitive in (ad_checkpoint.remat_p, other)",
        "named = equation.primitive is name_p",
        "@register(ad_checkpoint.remat_p)\ndef visit(equation):\n    pass",
        "assert 'remat2[' in str(jaxpr)",
        "match equation.primitive.name:\n    case 'remat2':\n        pass",
    ],
)
def test_found(code: str) -> None:
    assert len(places(HEAD + code + "\n", select=(CODE,))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "'''remat2'''",
        "print('remat2')",
        "note = 'one equation is remat2 and the others are not'",
        "mode = f'remat2'",
        # Policies see `name_p` in both implementations.
        "def policy(prim, *_, **params):\n    return prim is name_p and params['name'] == 'h'",
        "outs = ad_checkpoint.remat_p.bind(x, jaxpr=jaxpr)",
        "remat_p = layer.clone()\nRULES[remat_p] = 1",
        "old = e.primitive.name == 'remat'",
    ],
)
def test_left_alone(code: str) -> None:
    assert places(HEAD + code + "\n", select=(CODE,)) == []


def test_code_that_handles_both_primitives() -> None:
    code = "names = {'remat2', 'call_hi_primitive'}\n"
    assert places(HEAD + code, select=(CODE,)) == []


def test_another_library() -> None:
    assert places("MODES = {'remat2': 1}\nprint(MODES['remat2'])\n", select=(CODE,)) == []
