"""RMT602: a `prevent_cse` per argument with static arguments."""

from __future__ import annotations

import pytest
from support import places

CODE = "RMT602"


def found(options: str, head: str = "", **settings: object) -> list[str]:
    text = f"import jax\n\n{head}f = jax.checkpoint(g, {options})\n"
    return places(text, select=(CODE,), **settings)


@pytest.mark.parametrize(
    ("options", "head"),
    [
        ("prevent_cse=(True, False), static_argnums=(2,)", ""),
        ("prevent_cse=[True], static_argnums=1", ""),
        ("prevent_cse=(True,), static_argnames='n'", ""),
        ("prevent_cse=CSE, static_argnums=(2,)", "CSE = (True, False)\n"),
        ("**OPTIONS", "OPTIONS = dict(prevent_cse=(True,), static_argnums=1)\n"),
    ],
)
def test_found(options: str, head: str) -> None:
    assert len(found(options, head)) == 1


@pytest.mark.parametrize(
    "options",
    [
        "prevent_cse=(True, False)",
        "prevent_cse=False, static_argnums=(2,)",
        "prevent_cse=cse, static_argnums=(2,)",
        "prevent_cse=(True,), static_argnums=()",
        "prevent_cse=(True,), static_argnums=None",
    ],
)
def test_left_alone(options: str) -> None:
    assert found(options) == []


def test_releases() -> None:
    options = "prevent_cse=(True,), static_argnums=(1,)"
    assert found(options, jax_version="0.11.0") == []
    assert len(found(options, jax_version="0.11.1")) == 1
    assert len(found(options, jax_version="0.4.30")) == 1
