"""RMT402: names that `jax.checkpoint_policies` does not have."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT402"
HEAD = "import jax\n"


SPELLINGS = [
    "jax.checkpoint_policies.{}",
    "jax.ad_checkpoint.checkpoint_policies.{}",
    "getattr(jax.checkpoint_policies, '{}')",
]
IMPORTED = [
    "from jax import checkpoint_policies as cp\np = cp.{}\n",
    "from jax.ad_checkpoint import checkpoint_policies\np = checkpoint_policies.{}\n",
    "policies = jax.checkpoint_policies\np = policies.{}\n",
    "def policy():\n    NAME = '{}'\n    return getattr(jax.checkpoint_policies, NAME)\n",
    "class Config:\n    policy = '{}'\n\np = getattr(jax.checkpoint_policies, Config.policy)\n",
]


@pytest.mark.parametrize("code", [*(f"p = {s}\n" for s in SPELLINGS), *IMPORTED])
def test_other_spellings(code: str) -> None:
    [finding] = findings(HEAD + code.format("dot_saveable"), select=CODE)
    assert "did you mean `dots_saveable`?" in finding.message


VERSIONS = [
    ("dots_saveable", "0.4.4", "does not exist before jax 0.4.5; use `checkpoint_dots`"),
    ("save_and_offload_only_these_names", "0.4.13", "does not exist before jax 0.4.25"),
    ("save_from_both_policies", "0.3.16", "does not exist before jax 0.3.17"),
    ("SaveOnlyTheseNames", "0.12.0", "was removed in jax 0.12.0"),
    ("SaveOnlyTheseNames", "0.10.2", "does not exist before jax 0.11.0"),
]


@pytest.mark.parametrize(("name", "version", "message"), VERSIONS)
def test_versions(name: str, version: str, message: str) -> None:
    code = f"{HEAD}p = jax.checkpoint_policies.{name}\n"
    found = findings(code, select=CODE, jax_version=version)
    assert [message in finding.message for finding in found] == ([True] if message else [])


def test_an_older_alias_is_used() -> None:
    code = HEAD + "p = jax.checkpoint_policies.{}\n"
    found = fixed(code.format("dots_saveable"), select=CODE, jax_version="0.4.4")
    assert found == {"example.py": code.format("checkpoint_dots")}


FIELD = "class Net:\n    policy: str = '{}'\n\n    def __call__(self, x):\n"
READ = "getattr(jax.checkpoint_policies, self.policy)\n"

LEFT_ALONE = [
    # A special value for no policy.
    FIELD.format("nothing_savable")
    + f"        if self.policy not in ('nothing_savable', None):\n            x = {READ}",
    FIELD.format("nothing_savable")
    + f"        if self.policy == 'nothing_savable':\n            return x\n        p = {READ}",
    FIELD.format("none") + f"        return {READ}",
    "p = jax.checkpoint_policies.dots_saveable\n",
    "p = jax.checkpoint_policies.__dict__\n",
    "p = getattr(jax.checkpoint_policies, name)\n",
    "def policy(name):\n    return getattr(jax.checkpoint_policies, name, None)\n",
    "if hasattr(jax.checkpoint_policies, 'new_one'):\n    p = jax.checkpoint_policies.new_one\n",
    "p = jax.checkpoint_policies.a if jax.__version_info__ > (1, 0) else None\n",
    "try:\n  p = jax.checkpoint_policies.a\nexcept (KeyError, AttributeError):\n  p = None\n",
    # A namespace of the project.
    "jax.checkpoint_policies.own = own\np = jax.checkpoint_policies.own\n",
    "setattr(jax.checkpoint_policies, 'own', own)\np = jax.checkpoint_policies.own\n",
    "from library import checkpoint_policies\np = checkpoint_policies.own\n",
    "import types\ncheckpoint_policies = types.SimpleNamespace(own=1)\n"
    "p = checkpoint_policies.own\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)
