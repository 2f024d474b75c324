"""RMT103: names that were removed from `jax.ad_checkpoint`, imported or read in any way."""

from __future__ import annotations

import types

import pytest
from support import findings, fixed, no_findings

CODE = "RMT103"


def fixed_code(code: str) -> str:
    """Return the fixed code, which must run under the installed JAX and need no further fix."""
    after = fixed(code, select=CODE)["example.py"]
    assert fixed(after, select=CODE)["example.py"] == after
    exec(compile(after, "example.py", "exec"), types.ModuleType("example").__dict__)
    return after


IMPORTS = [
    # One name, several, under another name.
    (
        "from jax.ad_checkpoint import checkpoint\n",
        "from jax import checkpoint\n",
    ),
    (
        "from jax.ad_checkpoint import checkpoint as ckpt, remat  # both\n",
        "from jax import checkpoint as ckpt, remat  # both\n",
    ),
    (
        "from jax.ad_checkpoint import checkpoint_name, checkpoint as new_checkpoint\n",
        "from jax import checkpoint as new_checkpoint\n"
        "from jax.ad_checkpoint import checkpoint_name\n",
    ),
    # A comment for tools applies to both imports; any other stays with the names that stay.
    (
        "from jax.ad_checkpoint import checkpoint, checkpoint_name  # noqa: F401\n",
        "from jax import checkpoint  # noqa: F401\n"
        "from jax.ad_checkpoint import checkpoint_name  # noqa: F401\n",
    ),
    # Over several lines, in parentheses.
    (
        "from jax.ad_checkpoint import (\n    checkpoint,\n    remat,  # the same\n)\n",
        "from jax import (\n    checkpoint,\n    remat,  # the same\n)\n",
    ),
    (
        "from jax.ad_checkpoint import (\n    checkpoint,\n    checkpoint_name,\n    remat,\n)\n",
        "from jax import checkpoint, remat\n"
        "from jax.ad_checkpoint import (\n    checkpoint_name,\n)\n",
    ),
    (
        "from jax.ad_checkpoint import (\n"
        "    # the function\n    checkpoint,  # new\n    checkpoint_name,  # names it\n"
        "    remat,\n)\n",
        "# new\nfrom jax import checkpoint, remat\n"
        "from jax.ad_checkpoint import (\n"
        "    # the function\n    checkpoint_name,  # names it\n)\n",
    ),
    (
        "from jax.ad_checkpoint import checkpoint, \\\n    checkpoint_name\n",
        "from jax import checkpoint\nfrom jax.ad_checkpoint import checkpoint_name\n",
    ),
    # Several statements on one line.
    (
        "import os; from jax.ad_checkpoint import checkpoint_name, checkpoint; x = 1\n",
        "import os\nfrom jax import checkpoint\n"
        "from jax.ad_checkpoint import checkpoint_name\nx = 1\n",
    ),
    # Inside functions and conditions.
    (
        "def f():\n    from jax.ad_checkpoint import checkpoint, checkpoint_name\n"
        "    return checkpoint, checkpoint_name\n\n\nf()\n",
        "def f():\n    from jax import checkpoint\n"
        "    from jax.ad_checkpoint import checkpoint_name\n"
        "    return checkpoint, checkpoint_name\n\n\nf()\n",
    ),
    # No final newline; carriage returns.
    ("from jax.ad_checkpoint import remat", "from jax import remat"),
    (
        "from jax.ad_checkpoint import checkpoint, checkpoint_name\r\nx = 1\r\n",
        "from jax import checkpoint\r\nfrom jax.ad_checkpoint import checkpoint_name\r\nx = 1\r\n",
    ),
]

READS = [
    # An import of the module stays, which also binds `jax`.
    (
        "import jax.ad_checkpoint\n\nf = jax.ad_checkpoint.checkpoint(abs)\n",
        "import jax.ad_checkpoint\n\nf = jax.checkpoint(abs)\n",
    ),
    (
        "import jax\nimport jax.ad_checkpoint\n\n"
        "f = jax.ad_checkpoint.checkpoint(abs)\nname = jax.ad_checkpoint.checkpoint_name\n",
        "import jax\nimport jax.ad_checkpoint\n\n"
        "f = jax.checkpoint(abs)\nname = jax.ad_checkpoint.checkpoint_name\n",
    ),
    (
        "import jax.ad_checkpoint  # noqa: F401\n\nf = jax.ad_checkpoint.checkpoint(abs)\n",
        "import jax.ad_checkpoint  # noqa: F401\n\nf = jax.checkpoint(abs)\n",
    ),
    # Under another name.
    (
        "import jax.ad_checkpoint as adc\n\nf = adc.remat(adc.checkpoint(abs))\n",
        "import jax\n\nf = jax.remat(jax.checkpoint(abs))\n",
    ),
    (
        "import jax\nfrom jax import ad_checkpoint\n\nf = ad_checkpoint.remat(abs)\n",
        "import jax\n\nf = jax.remat(abs)\n",
    ),
    (
        "import jax.numpy as jnp\nfrom jax import ad_checkpoint\n\n"
        "f = ad_checkpoint.remat(jnp.sin)\ng = ad_checkpoint.checkpoint_name\n",
        "import jax.numpy as jnp\nimport jax\nfrom jax import ad_checkpoint\n\n"
        "f = jax.remat(jnp.sin)\ng = ad_checkpoint.checkpoint_name\n",
    ),
    # The name `jax` refers to something else.
    (
        "def f(jax):\n    import jax.ad_checkpoint as adc\n\n    return adc.checkpoint(abs)\n",
        "def f(jax):\n    from jax import checkpoint\n\n    return checkpoint(abs)\n",
    ),
    (
        "def f():\n    from jax import ad_checkpoint\n\n    return ad_checkpoint.checkpoint(abs)\n"
        "\n\nf()\n",
        "def f():\n    import jax\n\n    return jax.checkpoint(abs)\n\n\nf()\n",
    ),
    # As a value, by `getattr`, in a decorator, over several lines.
    (
        "import jax.ad_checkpoint\n\nnew = jax.ad_checkpoint.checkpoint\n"
        "old = getattr(jax.ad_checkpoint, 'remat')\n",
        "import jax.ad_checkpoint\n\nnew = jax.checkpoint\nold = jax.remat\n",
    ),
    (
        "import functools\nimport jax.ad_checkpoint\n\n\n"
        "@functools.partial(\n    jax.ad_checkpoint.checkpoint,  # saves nothing\n"
        "    prevent_cse=False,\n)\ndef f(x):\n    return x\n",
        "import functools\nimport jax.ad_checkpoint\n\n\n"
        "@functools.partial(\n    jax.checkpoint,  # saves nothing\n"
        "    prevent_cse=False,\n)\ndef f(x):\n    return x\n",
    ),
    (
        "import jax.ad_checkpoint\n\nf = (\n    jax\n    # once new\n    .ad_checkpoint\n"
        "    .checkpoint(abs)\n)\n",
        "import jax.ad_checkpoint\n\n# once new\nf = (\n    jax.checkpoint(abs)\n)\n",
    ),
    (
        "import jax.ad_checkpoint\n\nf = (\n    jax  # old\n    .ad_checkpoint  # new\n"
        "    .remat(abs)\n)\n",
        "import jax.ad_checkpoint\n\n# old\n# new\nf = (\n    jax.remat(abs)\n)\n",
    ),
    (
        "import importlib\n\n"
        "f = importlib.import_module('jax.ad_checkpoint').remat\ng = importlib\n",
        "import importlib\n\nimport jax\n\nf = jax.remat\ng = importlib\n",
    ),
    (
        "import jax.ad_checkpoint\n\nadc = jax.ad_checkpoint\nf = adc.checkpoint(abs)\n",
        "import jax.ad_checkpoint\n\nadc = jax.ad_checkpoint\nf = jax.checkpoint(abs)\n",
    ),
]

CHOICES = [
    # JAX itself is optional: nothing is imported outside the `try`.
    (
        "try:\n    from jax import ad_checkpoint\nexcept ImportError:\n"
        "    ad_checkpoint = None\n\n\ndef f(g):\n    return ad_checkpoint.checkpoint(g)\n",
        "try:\n    import jax\n    from jax import ad_checkpoint\nexcept ImportError:\n"
        "    ad_checkpoint = None\n\n\ndef f(g):\n    return jax.checkpoint(g)\n",
    ),
    (
        "try:\n    import jax\n    from jax import ad_checkpoint\nexcept ImportError:\n"
        "    jax = ad_checkpoint = None\n\n\ndef f(g):\n    return ad_checkpoint.checkpoint(g)\n",
        "try:\n    import jax\n    from jax import ad_checkpoint\nexcept ImportError:\n"
        "    jax = ad_checkpoint = None\n\n\ndef f(g):\n    return jax.checkpoint(g)\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), [*IMPORTS, *READS, *CHOICES])
def test_fixed(before: str, after: str) -> None:
    assert fixed_code(before) == after


LEFT_ALONE = [
    "from jax.ad_checkpoint import checkpoint_name, checkpoint_policies, print_saved_residuals\n",
    "import jax.ad_checkpoint\n\njax.ad_checkpoint.checkpoint_policies.checkpoint_dots\n",
    "from jax import ad_checkpoint\n\nad_checkpoint.checkpoint_name(1, 'a')\n",
    "from jax._src.ad_checkpoint import checkpoint, remat\n",
    "from jax._src import ad_checkpoint\n\nad_checkpoint.checkpoint(abs)\n",
    "import jax\n\njax.checkpoint(abs)\njax.remat(abs)\n",
    "from torch.utils import checkpoint as ad_checkpoint\n\nad_checkpoint.checkpoint(abs, 1)\n",
    "class ad_checkpoint:\n    checkpoint = staticmethod(abs)\n\n\nad_checkpoint.checkpoint(1)\n",
    "# jax.ad_checkpoint.checkpoint\nx = 'jax.ad_checkpoint.checkpoint'\n",
    "from jax.ad_checkpoint import *\n\ncheckpoint_name\n",
    "from jax import *\nfrom jax.ad_checkpoint import *\n\ncheckpoint(abs)\n",
    "print('jax.ad_checkpoint.remat')\n",
]

test_left_alone = no_findings(CODE, LEFT_ALONE)


BY_HAND = [
    ("import jax.ad_checkpoint\nimport torch.utils.checkpoint as t\n"
     "m = jax.ad_checkpoint if new else t\nm.checkpoint(abs)\n", 4, "another module"),
    # The second positional option differs from that of `jax.checkpoint`.
    ("from jax.ad_checkpoint import checkpoint\ncheckpoint(abs, False, *more)\n", 1, "RMT104"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "line", "reason"), BY_HAND)
def test_manual_fixes_have_a_reason(code: str, line: int, reason: str) -> None:
    [finding] = findings(code, select=CODE)
    assert finding.source.position(finding.span.start)[0] == line
    assert reason in finding.reason
    assert finding.fix is not None
    assert (finding.fix.safety, finding.fix.edits) == ("manual", ())
    assert fixed(code, select=CODE)["example.py"] == code


@pytest.mark.parametrize(
    ("options", "written"),
    [("True, None", "prevent_cse=True, policy=None"), ("False, True, None", None)],
)
def test_positional_options_of_a_module_that_imports_the_name(
    options: str, written: str | None
) -> None:
    before = {
        "compat.py": "from jax.ad_checkpoint import remat\n",
        "example.py": "import jax.ad_checkpoint as adc\nfrom compat import remat\n\n"
        f"f = remat(adc.checkpoint_name, {options})\n",
    }
    after = fixed(before, select="RMT1")
    if written is None:  # more than `jax.ad_checkpoint.remat` ever took
        assert after == before
    else:
        assert after["compat.py"] == "from jax import remat\n"
        assert after["example.py"] == before["example.py"].replace(options, written)


@pytest.mark.parametrize(
    ("version", "severity", "text"),
    [
        ("0.8.1", None, None),
    ],
)
def test_by_version(version: str, severity: str | None, text: str | None) -> None:
    code = "from jax.ad_checkpoint import checkpoint\n"
    found = findings(code, select=CODE, jax_version=version)
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert text is None or text in found[0].message


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        ("try:\n  from jax.ad_checkpoint import remat\nexcept (KeyError, ImportError):\n  pass",
         "warning"),
        ("try:\n  from jax.ad_checkpoint import remat\nfinally:\n  pass", "error"),
        ("try:\n  from jax.ad_checkpoint import remat\nexcept KeyError:\n  pass", "error"),
        ("try:\n  def f():\n    from jax.ad_checkpoint import remat\nexcept ImportError:\n  pass",
         "error"),
    ],
)  # fmt: skip
def test_caught_import_errors_are_warnings(code: str, severity: str) -> None:
    assert [finding.severity for finding in findings(code, select=CODE)] == [severity]


def test_reexported_names() -> None:
    """The fix changes the original import, not the imports of the re-exported name."""
    files = {
        "compat.py": "from jax import ad_checkpoint\nfrom jax.ad_checkpoint import remat\n",
        "direct.py": "from compat import remat\n\nf = remat(abs)\n",
        "module.py": "from compat import ad_checkpoint\n\nf = ad_checkpoint.checkpoint(abs)\n",
        "nested.py": "import compat\n\nf = compat.ad_checkpoint.checkpoint(abs)\n",
        "uses.py": "from compat import ad_checkpoint\n\nf = ad_checkpoint.checkpoint_name\n",
    }
    assert fixed(files, select=CODE) == {
        **files,
        "compat.py": "from jax import ad_checkpoint\nfrom jax import remat\n",
        "module.py": "import jax\n\nf = jax.checkpoint(abs)\n",
        "nested.py": "import jax\n\nf = jax.checkpoint(abs)\n",
    }
