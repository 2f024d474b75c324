"""RMT406: names that no policy mentions."""

from __future__ import annotations

from support import findings, no_findings

CODE = "RMT406"
HEAD = "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n\np = jax.checkpoint_policies\n"
GIVEN = "def block(x):\n    return checkpoint_name(x, 'flash.out')\n\n"


def test_found() -> None:
    [finding] = findings(HEAD + GIVEN, select=CODE)
    assert (finding.severity, finding.fix) == ("note", None)
    assert "`flash.out`" in finding.message


def test_off_by_default() -> None:
    assert findings(HEAD + GIVEN) == []


LEFT_ALONE = [
    "q = p.save_only_these_names('flash.out')\n",
    "SETTINGS = {'names': 'flash.out,other'}\n",
    "q = own_policy('.*flash.*')\n",
    # All names except this one are saved.
    "q = p.save_any_names_but_these('other')\n",
    "def own(prim, *_, **params):\n    return params.get('name') == 'flash.out'\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD + GIVEN)


def test_another_function_of_that_name() -> None:
    code = "def checkpoint_name(x, name):\n    return x\n\n\ny = checkpoint_name(1, 'h')\n"
    assert findings("import jax.ad_checkpoint\n\n\n" + code, select=CODE) == []
