"""Code that a test expects to fail."""

from __future__ import annotations

import textwrap

import pytest
from support import findings, fixed

HEAD = "import jax\nimport pytest\n\n\ndef f(x, flag):\n    return x if flag else -x\n\n\n"
EXPECTED = {
    "pytest.raises": "with pytest.raises(ValueError, match='static'):\n    CALL",
    "several managers": "with jax.disable_jit(), pytest.raises(ValueError):\n    CALL",
    "a name": "context = pytest.raises(ValueError)\nwith context:\n    CALL",
    "assertRaises": "with self.assertRaises(ValueError):\n    CALL",
    "assertRaisesRegex": "with self.assertRaisesRegex(ValueError, 'static'):\n    CALL",
    "absl": "with self.assertRaisesWithLiteralMatch(ValueError, 'static'):\n    CALL",
    "assertWarns": "with self.assertWarns(UserWarning):\n    CALL",
    "pytest.warns": "with pytest.warns(UserWarning):\n    CALL",
    "numpy": "with np.testing.assert_raises(ValueError):\n    CALL",
    "called": "self.assertRaises(ValueError, lambda: CALL)",
    "else": "try:\n    CALL\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError('!')",
    "fail": "try:\n    CALL\n    self.fail('!')\nexcept ValueError as e:\n    assert 'n' in str(e)",
    "xfail": "pytest.xfail('static')\nCALL",
    "some parameters": "with pytest.raises(E) if bad else nullcontext():\n    CALL",
}
RMT202 = "jax.checkpoint(f, static_argnums=(1,))(1.0, flag=True)"


def in_test(body: str, before: str = "") -> str:
    return f"{HEAD}{before}def test(self):\n{textwrap.indent(body, '    ')}\n"


@pytest.mark.parametrize("form", EXPECTED)
def test_silent(form: str) -> None:
    assert findings(in_test(EXPECTED[form].replace("CALL", RMT202)), select=("RMT2", "RMT5")) == []


@pytest.mark.parametrize(
    "mark",
    ["@pytest.mark.xfail\n", "@pytest.mark.xfail(reason='static')\n",
     "@unittest.expectedFailure\n", "pytestmark = [pytest.mark.xfail]\n\n\n"],
)  # fmt: skip
def test_silent_under_a_mark(mark: str) -> None:
    assert findings(in_test(RMT202, mark), select=("RMT2", "RMT5")) == []


@pytest.mark.parametrize(
    "body",
    ["CALL", "try:\n    CALL\nexcept ValueError:\n    pass", "with pytest.approx(1):\n    CALL",
     "with self.subTest():\n    CALL", "try:\n    pass\nexcept ValueError:\n    CALL\nelse:\n"
     "    self.fail()"],
)  # fmt: skip
def test_told(body: str) -> None:
    [found] = findings(in_test(body.replace("CALL", RMT202)), select=("RMT2", "RMT5"))
    assert found.confidence == "high"


RMT101 = "jax.checkpoint(f, concrete=True)(1.0, True)"


@pytest.mark.parametrize("error", ["NotImplementedError", "Exception", "(KeyError, TypeError)"])
def test_a_removed_option_is_kept_where_its_error_is_expected(error: str) -> None:
    code = in_test(f"with pytest.raises({error}):\n    {RMT101}")
    [found] = findings(code, select=("RMT101",))
    assert "a test expects" in found.reason
    assert fixed(code, select=("RMT101",))["example.py"] == code


def test_a_removed_option_is_migrated_where_another_error_is_expected() -> None:
    code = in_test(f"with pytest.raises(ZeroDivisionError):\n    {RMT101}")
    assert "static_argnums=(1,)" in fixed(code, select=("RMT101",))["example.py"]
