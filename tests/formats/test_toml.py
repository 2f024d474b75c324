"""A setting in TOML: without it, the file loads with the same content."""

from __future__ import annotations

import tomllib

import pytest
from formats.plan import check, refused, without

PAIRS = [
    ('OLD_WAY = "0"  # why\nA = 1\n', "A = 1\n"),
    ('"OLD_WAY" = "0"\n', ""),
    ('env.OLD_WAY = "0"\n', ""),
    ('env = { OLD_WAY = "0", A = "1" }\n', 'env = { A = "1" }\n'),
    ('env = { A = "1", OLD_WAY = "0" }\n', 'env = { A = "1" }\n'),
    ('env = { OLD_WAY = "0" }\nb = 1\n', "b = 1\n"),
    ('env = ["OLD_WAY=0", "A=1"]\n', 'env = ["A=1"]\n'),
    ('env = ["D:OLD_WAY=0"]\nb = 1\n', "b = 1\n"),
    ('pass_env = ["OLD_WAY", "A"]\n', 'pass_env = ["A"]\n'),
    ('cmd = "python t.py --old_way=0 --lr 3"\n', 'cmd = "python t.py --lr 3"\n'),
    ("cmd = 'OLD_WAY=0 python t.py'\n", "cmd = 'python t.py'\n"),
    ('args = ["python", "--old_way", "0", "x"]\n', 'args = ["python", "x"]\n'),
    ('args = ["--old_way=0"]\n', "args = []\n"),
    (
        'args = [\n  "-q",\n  "--old_way=0",  # c\n  "x",\n]\n',
        'args = [\n  "-q",\n  "x",\n]\n',
    ),
    ('args = [\n  "-q",\n  "--old_way=0"\n]\n', 'args = [\n  "-q"\n]\n'),
    ('cmds = ["OLD_WAY=0 ls", "ls"]\n', 'cmds = ["ls", "ls"]\n'),
    (
        'tox = """\n[testenv]\nsetenv =\n    OLD_WAY = 0\n    A = 1\n"""\n',
        'tox = """\n[testenv]\nsetenv =\n    A = 1\n"""\n',
    ),
    ('a = 0\n[tool.x.env]\nOLD_WAY = "0"\n\n[b]\nc = 1\n', "a = 0\n\n[b]\nc = 1\n"),
    ('[tool.x.env]\nOLD_WAY = "0"\nA = 1\n', "[tool.x.env]\nA = 1\n"),
    ('[tool.x]\nOLD_WAY = "0"\n', "[tool.x]\n"),
    ('[env]\nOLD_WAY = "0"\n[env.sub]\na = 1\n', "[env]\n[env.sub]\na = 1\n"),
]


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda text: text[:40])
def test_pairs(before, after):
    check("pyproject.toml", before, after)


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda text: text[:40])
def test_result_loads(before, after):
    tomllib.loads(without("x.toml", before))


def test_prose_stays():
    text = '# OLD_WAY=0\ndescription = "pass --old_way=0"\n'
    assert without("x.toml", text) == text
    assert not refused("x.toml", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[env]\nOLD_WAY = "0"\n[x]\ncmd = "echo $OLD_WAY"\n', "line 4 reads it"),
        ("[model]\nold_way = false\n", "is unclear"),
        ('OLD_WAY = "0\n', "cannot parse"),
        ('OLD_WAY = "0"\na\n', "cannot parse"),
        ('OLD_WAY = "0"\na = [1\n', "cannot parse"),
    ],
)
def test_refusals_give_the_reason(text, reason):
    assert without("x.toml", text) == text
    assert any(reason in why for _, why in refused("x.toml", text))
