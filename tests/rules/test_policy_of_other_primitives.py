"""RMT601: policies that save what the next implementation does not ask about."""

from __future__ import annotations

import pytest
from support import findings

CODE = "RMT601"


def messages(text: str, **settings: object) -> list[str]:
    return [f.message for f in findings(text, select=(CODE,), **settings)]


def policy(body: str, parameters: str = "prim, *_, **params") -> str:
    return (
        "import jax\nfrom jax import lax\n"
        "from jax._src.ad_checkpoint import name_p, Offloadable, Recompute, Saveable\n\n\n"
        f"def policy({parameters}):\n{body}\n\n\ng = jax.checkpoint(abs, policy=policy)\n"
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    return prim.name == 'tanh'", "`tanh`"),
        ("    return str(prim) in {'tanh', 'dot_general', 'exp'}", "`exp`, `tanh`"),
        ("    return prim is lax.tanh_p", "`tanh`"),
        ("    return 'attention' in prim.name", "`attention`"),
        ("    return prim.name.startswith('custom_')", "`custom_`"),
        ("    return not prim.name == 'reshape'", "all other values"),
        ("    return prim.name not in ('exp', 'log')", "all other values"),
        (
            "    name = prim.name\n    if name == 'name':\n        return False\n    return True",
            "all",
        ),
        (
            "    if prim.name == 'sin':\n        return Offloadable()\n    return Recompute",
            "sin",
        ),
        (
            "    if prim.name == 'sin':\n        return how\n    return Recompute",
            "answers for `sin`",
        ),
        ("    keep = ['sin']\n    return prim.name in keep", "`sin`"),
        ("    return params.get('q') and prim.name == 'sin'", "answers for `sin`"),
    ],
)
def test_found(body: str, words: str) -> None:
    [message] = messages(policy(body))
    assert words in message


@pytest.mark.parametrize(
    "body",
    [
        "    return prim.name == 'dot_general'",
        "    return prim is lax.dot_general_p or prim is lax.conv_general_dilated_p",
        "    return str(prim) == str(name_p) and params['name'] == 'h'",
        "    return jax.checkpoint_policies.dots_saveable(prim, *_, **params)",
        "    return jax.checkpoint_policies.save_only_these_names('h')(prim, *_, **params)",
        # It saves none of the primitives that it names.
        "    if prim.name == 'tanh':\n        return False\n    return prim.name == 'dot_general'",
        # Policies are never asked about these.
        "    return prim.name in ('scan', 'while', 'pjit')",
        "    return 'dot' in prim.name",
        "    return False",
        # Everything: RMT403.
        "    return True",
        "    return unknown(prim)",
        "    for n in names:\n        if prim.name == n:\n            return True\n    return 0",
    ],
)
def test_left_alone(body: str) -> None:
    assert messages(policy(body)) == []


def test_a_policy_that_calls_another() -> None:
    text = policy("    return inner(prim, *_, **params) or prim.name == 'dot_general'")
    inner = "def inner(prim, *_, **params):\n    return prim.name == 'erf'\n\n\n"
    found = messages(text.replace("def policy", inner + "def policy"))
    assert found
    assert all("`erf`" in message for message in found)


def test_a_policy_that_a_function_returns() -> None:
    text = (
        "import jax\n\n\ndef made():\n    def keep(p, *_, **params):\n"
        "        return p.name == 'erf'\n\n    return keep\n\n\n"
        "g = jax.checkpoint(abs, policy=made())\n"
    )
    [message] = messages(text)
    assert "`erf`" in message


def test_functions_with_the_parameters_of_a_policy() -> None:
    """The policy is passed through a configuration that cannot be resolved."""
    text = "import jax\n\n\ndef keep(prim, *_, **params):\n    return prim.name == 'erf'\n"
    text += "\n\nblock = dict(remat=jax.checkpoint, policy=keep)\n"
    [finding] = findings(text, select=(CODE,))
    assert finding.confidence == "medium"
    # An interpreter of primitives is not a policy.
    assert messages(text.replace("prim, *_, **params", "prim, *_")) == []


def test_severity() -> None:
    text = policy("    return prim.name == 'tanh'")
    [finding] = findings(text, select=(CODE,))
    assert finding.severity == "note"
    [finding] = findings(text + "\njax.config.update('jax_remat3', True)\n", select=(CODE,))
    assert finding.severity == "warning"


def test_the_first_releases_with_the_flag() -> None:
    text = policy("    return prim.name == 'dot_general'")
    for version in ("0.10.2", "0.11.1"):
        [message] = messages(text, jax_version=version)
        assert "0.10 and 0.11" in message
    assert messages(text, jax_version="0.12.0") == []
    # For a release without the flag, the future default counts.
    assert messages(text, jax_version="0.4.30") == []
    assert messages(policy("    return prim.name == 'tanh'"), jax_version="0.4.30")
