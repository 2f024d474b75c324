"""Code in f-strings, where nothing can be edited: it is found, and left to be written by hand."""

from __future__ import annotations

import pytest
from support import findings, fixed

HEAD = """\
import jax
import jax.ad_checkpoint


def double(x, flag=True):
    return 2 * x if flag else x


def single(x):
    return 2 * x


"""
CODES = {
    "f'{jax.checkpoint(single, concrete=True)(1.0)}'": "RMT101",
    "f'{jax.checkpoint(single, concrete=False)(1.0)}'": "RMT101",
    "f'{jax.checkpoint(double, concrete=True)(1.0, flag=True)}'": "RMT101",
    "f'{jax.checkpoint(double, concrete=True)(1.0, flag=True)}' 'and' f'{1}'": "RMT101",
    "f'{jax.checkpoint(single, False, True)(1.0)}'": "RMT104",
    "f'{jax.checkpoint(double)(1.0, True)}'": "RMT201",
    "f'{jax.checkpoint(double, static_argnums=(1,))(1.0, flag=True)}'": "RMT202",
    "f'{jax.ad_checkpoint.checkpoint(single)(1.0)}'": "RMT103",
    "f'{1}' f'{jax.ad_checkpoint.checkpoint(single)(1.0)}'": "RMT103",
}


@pytest.mark.parametrize("code", CODES)
def test_code_in_a_string_is_found_and_left(code: str) -> None:
    text = f"{HEAD}print({code})\n"
    found = [f for f in findings(text) if f.code == CODES[code]]
    assert len(found) == 1
    assert "inside an f-string" in found[0].reason
    assert fixed(text) == {"example.py": text}


def test_an_import_that_a_string_needs_stays() -> None:
    text = HEAD + "f = jax.ad_checkpoint.remat(single)\nprint(f'{jax.ad_checkpoint.remat}')\n"
    made = fixed(text)["example.py"]
    assert made == text.replace("f = jax.ad_checkpoint.remat", "f = jax.remat")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_suppression_behind_a_continued_line_leaves_its_line(end: str) -> None:
    text = end.join(["def f():", "    return \\", "  # noqa: RMT101", "g()", ""])
    made = end.join(["def f():", "    return \\", "  ", "g()", ""])
    assert fixed(text) == {"example.py": made}


def test_what_wraps_a_checkpoint_in_a_string_is_left() -> None:
    text = (
        "import jax\n\nprint(f'{jax.checkpoint(f)}')\n\n\n"
        "@jax.checkpoint\ndef f(x):\n    return x\n"
    )
    assert fixed(text, unsafe=True) == {"example.py": text}
