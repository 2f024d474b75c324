"""RMT402: names that `jax.checkpoint_policies` does not have."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT402"
HEAD = "import jax\n"

NEAR = [
    ("save_only_these_name", "save_only_these_names"),
    ("nothing_savable", "nothing_saveable"),
    ("offload_dots_with_no_batch_dims", "offload_dot_with_no_batch_dims"),
    ("save_anything_but_these_names", "save_anything_except_these_names"),
    ("save_offload_only_these_names", "save_and_offload_only_these_names"),
    # Two aliases of one policy are equally similar.
    ("dots_with_no_batch_dim_saveable", "dots_with_no_batch_dims_saveable"),
]


@pytest.mark.parametrize(("wrong", "right"), NEAR)
def test_a_similar_name(wrong: str, right: str) -> None:
    code = HEAD + "p = (jax.\n     checkpoint_policies.{})  # {}\n"
    assert fixed(code.format(wrong, wrong), select=CODE) == {
        "example.py": code.format(right, wrong)
    }


@pytest.mark.parametrize("name", ["everything", "dots", "save_names", "my_policy"])
def test_no_similar_name(name: str) -> None:
    [finding] = findings(f"{HEAD}p = jax.checkpoint_policies.{name}\n", select=CODE)
    assert finding.fix is None
    assert "`dots_saveable`" in finding.reason


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


def test_a_default_hides_the_error() -> None:
    code = "p = getattr(jax.checkpoint_policies, 'dot_saveable', None)\n"
    [finding] = findings(HEAD + code, select=CODE)
    assert finding.severity == "warning"
    assert "silently becomes `None`" in finding.message
    # The fix changes what is saved.
    assert finding.fix is not None
    assert finding.fix.safety == "unsafe"


def test_a_field_with_a_default() -> None:
    code = (
        "from flax import linen as nn\n\n\nclass Net(nn.Module):\n    remat_policy: str = '{}'\n\n"
        "    @nn.compact\n    def __call__(self, x):\n"
        "        policy = getattr(jax.checkpoint_policies, self.remat_policy, None)\n"
        "        return nn.remat(nn.Dense, policy=policy)(4)(x)\n"
    )
    assert findings(HEAD + code.format("nothing_saveable"), select=CODE) == []
    [finding] = findings(HEAD + code.format("nothing_savable"), select=CODE)
    assert finding.confidence == "medium"


VERSIONS = [
    ("dots_saveable", "0.4.4", "does not exist before jax 0.4.5; use `checkpoint_dots`"),
    ("dots_saveable", "0.4.5", ""),
    ("save_and_offload_only_these_names", "0.4.13", "does not exist before jax 0.4.25"),
    ("save_and_offload_only_these_names", "0.4.25", ""),
    ("save_from_both_policies", "0.3.16", "does not exist before jax 0.3.17"),
    ("SaveOnlyTheseNames", "0.11.1", ""),
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


def test_expected_failures_have_low_confidence() -> None:
    code = "with pytest.raises(AttributeError):\n    jax.checkpoint_policies.dot_saveable\n"
    [finding] = findings(HEAD + "import pytest\n" + code, select=CODE)
    assert (finding.confidence, finding.fix) == ("low", None)
