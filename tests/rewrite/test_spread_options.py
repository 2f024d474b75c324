"""Options that are spread from a dictionary where the checkpoint is applied."""

from __future__ import annotations

from support import findings, fixed

TEXT = """\
import jax


def block(x, *, flag):
    return x if flag else -x


def loss(x):
    return jax.checkpoint(block, **dict(concrete=True))(x, flag=True)
"""


def test_they_are_left_where_the_application_has_to_be_written_anew() -> None:
    [found] = [f for f in findings(TEXT) if f.code == "RMT101"]
    assert "write `checkpointed(block)` in place of this checkpoint" in found.reason
    assert fixed(TEXT) == {"example.py": TEXT}


def test_they_go_where_nothing_else_has_to_change() -> None:
    plain = TEXT.replace("*, flag", "flag").replace("flag=True", "True")
    assert "concrete" not in fixed(plain)["example.py"]
