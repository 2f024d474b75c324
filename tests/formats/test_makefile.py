"""A setting in Makefiles and in `.env` files."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from formats.plan import check, refused, without

LINES = [
    ("export OLD_WAY = 0\nA = 1\n", "A = 1\n"),
    ("OLD_WAY := 0  # why\nA = 1\n", "A = 1\n"),
    ("OLD_WAY ?= 0\nexport OLD_WAY\nunexport OLD_WAY\n", ""),
    ("export A OLD_WAY B\n", "export A B\n"),
    ("FLAGS = --a --old_way=0\nFLAGS += --old_way=0\n", "FLAGS = --a\nFLAGS +=\n"),
    ("PY = OLD_WAY=0 python\n", "PY = python\n"),
    ("t: export OLD_WAY=0\nt:\n\tls\n", "t:\n\tls\n"),
    ("t:\n\tOLD_WAY=0 $(PY) -m x\n", "t:\n\t$(PY) -m x\n"),
    ("t:\n\t@OLD_WAY=0 $(PY) --old_way=0 \\\n\t  -x\n", "t:\n\t@$(PY) \\\n\t  -x\n"),
    ("t:\n\t-export OLD_WAY=0\n\tls\n", "t:\n\tls\n"),
    ("t:\n\texport OLD_WAY=0\nu:\n", "t:\n\t@:\nu:\n"),
    ("t:\n\techo $$HOME && OLD_WAY=0 ls\n", "t:\n\techo $$HOME && ls\n"),
    ("t: ; OLD_WAY=0 ls\n", "t: ; ls\n"),
]


@pytest.mark.parametrize(("before", "after"), LINES, ids=lambda text: text[:40])
def test_lines(before, after):
    check("Makefile", before, after)


def test_comments_and_other_names_stay():
    text = "# OLD_WAY=0\nMY_OLD_WAY = 0\nt:  ## --old_way=0\n\techo 'OLD_WAY=0'\n"
    assert without("common.mk", text) == text
    assert not refused("common.mk", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("OLD_WAY ?= 0\nifeq ($(OLD_WAY),0)\nA = 1\nendif\n", "line 2 reads it"),
        ("OLD_WAY = 0\nt:\n\techo $(OLD_WAY)\n", "line 3 reads it"),
        ("X = $(if $(Y),--old_way=0)\n", "make function"),
    ],
)
def test_refusals_give_the_reason(text, reason):
    assert without("Makefile", text) == text
    assert any(reason in why for _, why in refused("Makefile", text))


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_make_runs_without_the_variable(tmp_path):
    before = (
        "export OLD_WAY = 0\nFLAGS := --old_way=0\n\nall: one two\n\none:\n"
        "\t@OLD_WAY=1 sh -c 'echo set:$$(env | grep -c ^OLD_W):$(FLAGS):'\n"
        "two:\n\t@export OLD_WAY=2\n"
    )
    after = without("Makefile", before)
    (tmp_path / "Makefile").write_text(after)
    run = subprocess.run(["make", "-C", tmp_path], capture_output=True, text=True, check=True)
    assert "set:0::" in run.stdout
    assert "OLD_WAY" not in after


DOTENV = [
    ("A=1\nOLD_WAY=0\nB=2\n", "A=1\nB=2\n"),
    ("export OLD_WAY=0 # why\n", ""),
    ('OLD_WAY="0"\nOLD_WAY\n', ""),
    ("OLD_WAY = 0\n", ""),
    ('CMD="python t.py --old_way=0"\n', 'CMD="python t.py"\n'),
]


@pytest.mark.parametrize(("before", "after"), DOTENV, ids=lambda text: text[:40])
def test_dotenv(before, after):
    check(".env", before, after)
    check("train.env", before, after)
    check(".env.local", before, after)


def test_dotenv_keeps_comments_other_names_and_what_is_used():
    text = '# OLD_WAY=0\nMY_OLD_WAY=0\nMSG="a\nOLD_WAY=0\n"\n'
    assert without(".env", text) == text
    text = "OLD_WAY=0\nA=${OLD_WAY}\n"
    assert without(".env", text) == text
    assert [found for found, _ in refused(".env", text)] == ["OLD_WAY=0", "${OLD_WAY"]
