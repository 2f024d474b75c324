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
