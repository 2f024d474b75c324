"""RMT104: positional options of `jax.checkpoint`, in the order of old releases."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT104"
HEAD = "import jax\nfrom functools import partial\n\n"


def fixed_code(code: str) -> str:
    after = fixed(HEAD + code, select=CODE)["example.py"]
    assert fixed(after, select=CODE)["example.py"] == after
    return after.removeprefix(HEAD)


FIXED = [
    # Parentheses, `:=`, comments.
    (
        "f = jax.remat(g, False, c := 1, (q := 2))\n",
        "f = jax.remat(g, prevent_cse=(c := 1), policy=(q := 2))\n",
    ),
    (
        "f = jax.checkpoint(\n    g,  # the block\n    False,  # concrete\n"
        "    True,  # prevent_cse\n"
        "    # Saves nothing.\n    p,\n)\n",
        "f = jax.checkpoint(\n    g,  # the block\n    prevent_cse=True,  # prevent_cse\n"
        "    # Saves nothing.\n    policy=p,\n)\n",
    ),
    (
        "f = jax.checkpoint(\n    g,\n    False,  # concrete=False\n)\n",
        "f = jax.checkpoint(\n    g,\n)\n",
    ),
    (
        "f = jax.checkpoint(\n    g,\n    False,  # until we know more\n    p,\n)\n",
        "f = jax.checkpoint(\n    g,\n    # until we know more\n    prevent_cse=p,\n)\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), FIXED)
def test_fixed(before: str, after: str) -> None:
    assert fixed_code(before) == after


# An enabled `concrete` is migrated as in RMT101.
BRANCH = "def g(x, n):\n    return x if n else -x\n\n\n"
PLAIN = "def g(x):\n    return 2 * x\n\n\n"
CONCRETE = [
    (
        BRANCH,
        "ck = jax.remat if old else jax.checkpoint\nf = ck(g, True)\n",
        "ck = jax.remat if old else jax.checkpoint\nf = ck(g, static_argnums=(1,))\n",
    ),
    # Arguments that cannot be static are closed over.
    (
        BRANCH,
        "f = jax.remat(g, True, False, p)\nkeep(f)\n",
        "@wraps(g)\n"
        "def f(*args, **kwargs):\n"
        "    @partial(jax.remat, prevent_cse=False, policy=p)\n"
        "    def checkpointed_g():\n"
        "        return g(*args, **kwargs)\n\n"
        "    return checkpointed_g()\n\n\n"
        "keep(f)\n",
    ),
    (PLAIN, "f = jax.checkpoint(g, True, False)\n", "f = jax.checkpoint(g, prevent_cse=False)\n"),
    (PLAIN, "f = jax.remat(g, (True), ((p)))\n", "f = jax.remat(g, prevent_cse=((p)))\n"),
]


@pytest.mark.parametrize(("function", "before", "after"), CONCRETE)
def test_concrete_is_migrated(function: str, before: str, after: str) -> None:
    assert fixed_code(function + before).endswith(function + after)


def test_a_wrapper_that_passes_concrete_on_by_position() -> None:
    """The parameter is removed once no caller sets it."""
    before = (
        "def _wrap(f, concrete=False):\n    return jax.checkpoint(f, concrete)\n\n\n"
        "f = _wrap(abs, False)\n"
    )
    after = "def _wrap(f):\n    return jax.checkpoint(f)\n\n\nf = _wrap(abs)\n"
    assert fixed_code(before) == after


LEFT_ALONE = [
    "f = jax.checkpoint(g)\n",
    "f = jax.checkpoint(g, policy=p)(x, True, False)\n",
    "@partial(jax.checkpoint, policy=p)\ndef f(x): ...\n",
    "f = partial(jax.checkpoint, policy=p)\n",
    # Flax accepts positional options; PyTorch takes the arguments of the function.
    "import flax.linen as nn\nB = nn.remat(nn.Dense, True, True, False)\n",
    "from flax.linen import partitioning\nB = partitioning.remat(B, True)\n",
    "import equinox as eqx\nf = eqx.filter_checkpoint(g)\n",
    "from torch.utils.checkpoint import checkpoint\ny = checkpoint(g, x, y)\n",
    "import torch.utils.checkpoint\n"
    "ck = jax.checkpoint if c else torch.utils.checkpoint.checkpoint\ny = ck(g, x)\n",
    "def remat(f, policy): ...\nremat(g, True)\n",
    "class A:\n    def remat(self, f, g): ...\n    def run(self):\n        self.remat(g, True)\n",
    # A wrapper passes on arguments that may never be passed.
    "def remat(f, *args, **kwargs):\n    return jax.checkpoint(f, *args, **kwargs)\n",
    "wrap = lambda f, *args: (lambda: jax.remat(f, *args))\n",
    "def remat(*args):\n    return jax.remat(*args)\n",
    "f = jax.remat(*given)\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)


BY_HAND = [
    ("f = jax.checkpoint(g, False, True, p, ())\n", 1, "no jax release", "high"),
    ("f = jax.checkpoint(g, False, concrete=True)\n", 1, "twice", "high"),
    ("ck = jax.remat if c else other.wrap\nf = ck(g, True)\n", 2, "function", "medium"),
    ("import jax.ad_checkpoint as adc\nck = jax.remat if c else adc.remat\nf = ck(g, True)\n", 3,
     "different orders", "medium"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "line", "reason", "confidence"), BY_HAND)
def test_manual_fixes_have_a_reason(code: str, line: int, reason: str, confidence: str) -> None:
    [finding] = findings(HEAD + code, select=CODE)
    assert finding.source.position(finding.span.start)[0] == line + HEAD.count("\n")
    assert reason in finding.reason
    assert finding.confidence == confidence
    assert finding.fix is not None
    assert (finding.fix.safety, finding.fix.edits) == ("manual", ())
    assert fixed_code(code) == code


def test_a_partial_that_is_called_with_more_options() -> None:
    """Dropping `False` from the partial would make `True` the `concrete` of the call."""
    code = "ck = partial(jax.checkpoint, g, False)\nf = ck(True)\n"
    found = findings(HEAD + code, select=CODE)
    assert [bool(finding.reason) for finding in found] == [True, True]
    assert fixed_code(code) == code


def test_across_files() -> None:
    files = {
        "remat.py": "import functools\nimport jax\n\nck = functools.partial(jax.remat, policy=p)\n",
        "uses.py": "from remat import ck\n\nf = ck(g, False, False)\n",
    }
    assert fixed(files, select=CODE) == {
        **files,
        "uses.py": "from remat import ck\n\nf = ck(g, prevent_cse=False)\n",
    }


def test_a_wrapper_of_the_settings_has_its_own_signature() -> None:
    files = {
        "pyproject.toml": '[tool.remat-migrate.wrappers]\n"example.maybe_remat" = "jax.remat"\n',
        "example.py": "def maybe_remat(f, enabled, policy): ...\n\n\nf = maybe_remat(g, True, p)\n",
    }
    assert findings(files, select=CODE) == []


@pytest.mark.parametrize(
    ("version", "count"),
    [
        ("0.3.15", 0),
    ],
)
def test_by_version(version: str, count: int) -> None:
    code = "import jax\n\nf = jax.checkpoint(g, False)\n"
    assert len(findings(code, select=CODE, jax_version=version)) == count
