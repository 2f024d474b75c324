"""Code that a test expects to fail."""

from __future__ import annotations

import textwrap

import pytest
from support import findings, fixed

HEAD = "import jax\nimport pytest\n\n\ndef f(x, flag):\n    return x if flag else -x\n\n\n"
EXPECTED = {
    "a name": "context = pytest.raises(ValueError)\nwith context:\n    CALL",
    "else": "try:\n    CALL\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError('!')",
    "fail": "try:\n    CALL\n    self.fail('!')\nexcept ValueError as e:\n    assert 'n' in str(e)",
    "called": "self.assertRaises(ValueError, lambda: CALL)",
}
RMT202 = "jax.checkpoint(f, static_argnums=(1,))(1.0, flag=True)"


def in_test(body: str, before: str = "") -> str:
    return f"{HEAD}{before}def test(self):\n{textwrap.indent(body, '    ')}\n"


@pytest.mark.parametrize("form", EXPECTED)
def test_silent(form: str) -> None:
    assert findings(in_test(EXPECTED[form].replace("CALL", RMT202)), select=("RMT2", "RMT5")) == []


@pytest.mark.parametrize(
    "mark",
    ["@pytest.mark.xfail\n",
     "@unittest.expectedFailure\n", "pytestmark = [pytest.mark.xfail]\n\n\n"],
)  # fmt: skip
def test_silent_under_a_mark(mark: str) -> None:
    assert findings(in_test(RMT202, mark), select=("RMT2", "RMT5")) == []


RMT101 = "jax.checkpoint(f, concrete=True)(1.0, True)"


@pytest.mark.parametrize("error", ["NotImplementedError", "(KeyError, TypeError)"])
def test_a_removed_option_is_kept_where_its_error_is_expected(error: str) -> None:
    code = in_test(f"with pytest.raises({error}):\n    {RMT101}")
    [found] = findings(code, select=("RMT101",))
    assert "a test expects" in found.reason
    assert fixed(code, select=("RMT101",))["example.py"] == code
