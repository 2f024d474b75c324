"""What of a file is code: no name of it is lost."""

from __future__ import annotations

import io
import re
import sys
import tokenize
from pathlib import Path

import pytest

from remat_migrate.prefilter.code import code_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1  # jax.checkpoint\n", "x = 1  \n"),
        ('"""Of jax.checkpoint."""\nx = 1\n', '""\nx = 1\n'),
        ("'''Of \"\"\" and \\''' jax.checkpoint.'''\nx = 1\n", "''\nx = 1\n"),
        ('f = getattr(jax, "checkpoint")\n', 'f = getattr(jax, "checkpoint")\n'),
        ("x = 'of two'; f = jax.remat\n", "x = ''; f = jax.remat\n"),
        ("x = r'\\' of two'; f = y\n", "x = r''; f = y\n"),
        ('x = b"of two" "#"; f = y  # z\n', 'x = b"" ""; f = y  \n'),
        ("x = 'over \\\n two'\ny = 1\n", "x = ''\ny = 1\n"),
        ("# it's\nx = 1\n# isn't\n", "\nx = 1\n\n"),
        ("x = 1  # of\r\ny = 'a b'\r", "x = 1  \ny = ''\n"),
    ],
)
def test_texts_and_comments_go(text: str, code: str) -> None:
    assert code_of(text.encode()).decode() == code


@pytest.mark.parametrize(
    "text",
    [
        'f"{jax.checkpoint(f)(1)} # of it"\n',
        'x = f"{g("a b", jax.checkpoint(f))}"\n',
        'x = rf"{g(\'a b\')}" + h("a b", jax.checkpoint)\n',
        'x = f"""\n{jax.checkpoint(f)} of it\n"""\n',
        'x = "unfinished jax.checkpoint\n',
    ],
)
def test_what_may_be_code_stays(text: str) -> None:
    assert code_of(text.encode()).decode() == text.replace("#", "")


@pytest.mark.parametrize("folder", ["remat_migrate", "rules", "fixtures"])
def test_no_name_is_lost(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    for file in files:
        data = file.read_bytes()
        try:
            tokens = list(tokenize.tokenize(io.BytesIO(data).readline))
        except (SyntaxError, tokenize.TokenError):
            continue  # a fixture of what is no Python
        names = [token.string for token in tokens if token.type == tokenize.NAME]
        left = iter(re.findall(r"\w+", code_of(data).decode(sys.getdefaultencoding())))
        assert all(name in left for name in names), file
