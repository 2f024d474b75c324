"""RMT404: policies that are called, and factories that are not or wrongly called."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT404"
HEAD = "import jax\n\np = jax.checkpoint_policies\n"

SAFE = [
    ("policy = p.everything_saveable()\n", "policy = p.everything_saveable\n"),
    ("policy = p.dots_saveable(  # dots\n)\n", "# dots\npolicy = p.dots_saveable\n"),
    (
        "g = jax.checkpoint(f, policy='dots_saveable')\n",
        "g = jax.checkpoint(f, policy=jax.checkpoint_policies.dots_saveable)\n",
    ),
    ("q = p.save_only_these_names([])\n", "q = p.save_only_these_names()\n"),
    (
        "q = p.save_only_these_names(list(names))\n",
        "q = p.save_only_these_names(*list(names))\n",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), SAFE)
def test_fixed(before: str, after: str) -> None:
    assert fixed(HEAD + before, select=CODE) == {"example.py": HEAD + after}
    assert findings(HEAD + after, select=CODE) == []


# These change what is saved.
UNSAFE = [
    ("q = p.save_only_these_names(('a', 'b'))\n", "q = p.save_only_these_names('a', 'b')\n"),
    (
        "N = ('a', 'b')\nq = p.save_only_these_names(N)\n",
        "N = ('a', 'b')\nq = p.save_only_these_names(*N)\n",
    ),
    (
        "q = p.save_and_offload_only_these_names(names_which_can_be_saved='attn',\n"
        "    names_which_can_be_offloaded=[], offload_src='device', offload_dst='pinned_host')\n",
        "q = p.save_and_offload_only_these_names(names_which_can_be_saved=['attn'],\n"
        "    names_which_can_be_offloaded=[], offload_src='device', offload_dst='pinned_host')\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), UNSAFE)
def test_unsafe_fixes(before: str, after: str) -> None:
    assert fixed(HEAD + before, select=CODE) == {"example.py": HEAD + before}
    assert fixed(HEAD + before, select=CODE, unsafe=True) == {"example.py": HEAD + after}


UNFIXED = [
    ("g = jax.checkpoint(f, policy='full')\n", "a string is not a policy"),
    ("g = jax.checkpoint(f, policy='save_only_these_names')\n", "a string is not a policy"),
    ("N = 'dots_saveable'\ng = jax.checkpoint(f, policy=N)\n", "a string is not a policy"),
    ("g = jax.checkpoint(f, policy=True)\n", "this is not a policy"),
    ("g = jax.checkpoint(f, policy=False)\n", "acts like no policy"),
    ("g = jax.checkpoint(f, policy=[p.dots_saveable])\n", "is not a policy"),
    ("q = p.save_only_these_names(n for n in names)\n", "matches no name"),
    ("q = p.save_only_these_names({'a': 1})\n", "a dict raises `TypeError`"),
]


@pytest.mark.parametrize(("code", "message"), UNFIXED)
def test_found_and_not_fixed(code: str, message: str) -> None:
    [finding] = findings(HEAD + code, select=CODE)
    assert message in finding.message
    assert finding.fix is None or finding.fix.safety == "manual"


LEFT_ALONE = [
    "g = jax.checkpoint(f, policy=None)\n",
    "g = jax.checkpoint(f, policy=p.save_only_these_names('a', 'b'))\n",
    "g = jax.checkpoint(f, policy=p.save_only_these_names(*NAMES))\n",
    "g = jax.checkpoint(f, policy=p.save_only_these_names())\n",
    "def q(prim, *args, **params):\n    return p.dots_saveable(prim, *args, **params)\n",
    "def ck(f, policy='dots_saveable'):\n"
    "    if isinstance(policy, str):\n        policy = getattr(p, policy)\n"
    "    return jax.checkpoint(f, policy=policy)\n",
    "policy = 'dots_saveable'\nif loud:\n    policy = p.dots_saveable\n"
    "g = jax.checkpoint(f, policy=policy)\n",
    "make = p.save_only_these_names\nq = make('a')\n",
    "q = p.save_from_both_policies(p.dots_saveable, p.save_only_these_names('a'))\n",
    "q = p.save_from_both_policies(*both)\n",
    "q = p.save_and_offload_only_these_names(**options)\n",
    "g = jax.checkpoint(f, policy=Policy())\n",
    "class Policy:\n    def __call__(self, prim, *_, **__):\n        return False\n\n\n"
    "g = jax.checkpoint(f, policy=Policy())\n",
    "import functools\n"
    "def q(names, prim, *_, **params):\n    return params.get('name') in names\n\n"
    "g = jax.checkpoint(f, policy=functools.partial(q, ('a',)))\n",
    # This policy ignores names.
    "q = p.save_anything_except_these_names(('a',))\n",
    # A wrapper of the project takes policy names.
    "def my(f, policy, concrete=False):\n"
    "    return jax.checkpoint(f, policy=getattr(p, policy), concrete=concrete)\n\n"
    "g = my(h, policy='dots_saveable')\n",
    "def nothing_saveable():\n    return 1\n\nq = nothing_saveable()\n",
    "from library import checkpoint_policies as cp\nq = cp.nothing_saveable()\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)


VERSIONS = [
    ("g = jax.checkpoint(f, policy=lambda *_, **__: None)\n", "0.4.14", "silently"),
]


@pytest.mark.parametrize(("code", "version", "message"), VERSIONS)
def test_versions(code: str, version: str, message: str) -> None:
    [finding] = findings(HEAD + code, select=CODE, jax_version=version)
    assert message in finding.message


def test_a_decorated_policy_is_ignored() -> None:
    text = (
        "import jax\n\n\n@jax.checkpoint\ndef sines(prim, *_, **__):\n    return True\n\n\n"
        "f = jax.checkpoint(jax.numpy.dot, policy=sines)\n"
    )
    assert [f for f in findings(text) if f.code.startswith("RMT4")] == []
