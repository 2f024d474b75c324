"""A setting in shell scripts: without it, the script still does the same."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from formats.plan import check, refused, without

LINES = [
    ("export OLD_WAY=0\n", ""),
    ("export OLD_WAY=0  # why\n", ""),
    ("export A=1 OLD_WAY=0 B=2\n", "export A=1 B=2\n"),
    ("declare -x OLD_WAY=0\n", ""),
    ("unset OLD_WAY\n", ""),
    ("unset A OLD_WAY\n", "unset A\n"),
    ("OLD_WAY=0\n", ""),
    (": ${OLD_WAY:=0}\n", ""),
    ("OLD_WAY=0 python t.py\n", "python t.py\n"),
    ("A=1 OLD_WAY=0 python t.py\n", "A=1 python t.py\n"),
    ('OLD_WAY="0" python t.py\n', "python t.py\n"),
    ("env OLD_WAY=0 python t.py\n", "python t.py\n"),
    ("env OLD_WAY=0 A=1 python t.py\n", "env A=1 python t.py\n"),
    ("env -u OLD_WAY python t.py\n", "python t.py\n"),
    ("sudo OLD_WAY=0 python t.py\n", "sudo python t.py\n"),
    ("timeout 5 env OLD_WAY=0 python t.py\n", "timeout 5 python t.py\n"),
    ("python t.py --old_way=False --lr 3\n", "python t.py --lr 3\n"),
    ("python t.py --old_way 0 --lr 3\n", "python t.py --lr 3\n"),
    ("python t.py --old_way --lr 3\n", "python t.py --lr 3\n"),
    ("python t.py --noold_way\n", "python t.py\n"),
    ('python t.py "--old_way=$X" > log\n', "python t.py > log\n"),
    ("python t.py \\\n  --old_way=0 \\\n  --lr 3\n", "python t.py \\\n  --lr 3\n"),
    ("python t.py \\\n  --lr 3 \\\n  --old_way=0\nls\n", "python t.py \\\n  --lr 3\nls\n"),
    ("python t.py \\\n  --a --old_way=0 \\\n  --b\n", "python t.py \\\n  --a \\\n  --b\n"),
    ("python t.py --old_way=0 \\\n  --b\n", "python t.py \\\n  --b\n"),
    ("docker run -e OLD_WAY=0 -e A=1 img\n", "docker run -e A=1 img\n"),
    ("docker run -e OLD_WAY img\n", "docker run img\n"),
    ("docker run --env=OLD_WAY=0 img\n", "docker run img\n"),
    ("srun --export=ALL,OLD_WAY=0 t\n", "srun --export=ALL t\n"),
    ("srun --export=OLD_WAY=0,ALL t\n", "srun --export=ALL t\n"),
    ("bazel test --test_env=OLD_WAY=a,b //x\n", "bazel test //x\n"),
    ("mpirun -x OLD_WAY -x A t\n", "mpirun -x A t\n"),
    ("mpirun -genv OLD_WAY 0 t\n", "mpirun t\n"),
    ('FLAGS="--a --old_way=0 --b"\n', 'FLAGS="--a --b"\n'),
    ("FLAGS=--old_way=0\n", "FLAGS=\n"),
    ('ARGS=(--a --old_way=0 "b c")\n', 'ARGS=(--a "b c")\n'),
    ("ARGS=(\n  --a\n  --old_way=0\n  b\n)\n", "ARGS=(\n  --a\n  b\n)\n"),
    ('bash -c "OLD_WAY=0 python t.py"\n', 'bash -c "python t.py"\n'),
    ("ssh h 'export OLD_WAY=0; ls'\n", "ssh h 'ls'\n"),
    ("X=$(OLD_WAY=0 ls)\n", "X=$(ls)\n"),
    ('echo "$(OLD_WAY=0 ls)"\n', 'echo "$(ls)"\n'),
    ("X=`OLD_WAY=0 ls`\n", "X=`ls`\n"),
    ('echo "OLD_WAY=0" >> $GITHUB_ENV\nls\n', "ls\n"),
    ('echo "OLD_WAY=0" | tee -a $F\nls\n', "ls\n"),
    ("export OLD_WAY=0 && ls\n", "ls\n"),
    ("a && export OLD_WAY=0 && b\n", "a && b\n"),
    ("a && export OLD_WAY=0\n", "a && :\n"),
    ("a || export OLD_WAY=0\n", "a || :\n"),
    ("a || export OLD_WAY=0 && b\n", "a || : && b\n"),
    ("! export OLD_WAY=0\n", "! :\n"),
    ("a; export OLD_WAY=0; b\n", "a; b\n"),
    ("a; export OLD_WAY=0\n", "a\n"),
    ("a & export OLD_WAY=0\n", "a &\n"),
    ("( export OLD_WAY=0; ls )\n", "( ls )\n"),
    ("if a; then b; export OLD_WAY=0; fi\n", "if a; then b; fi\n"),
    ("if a; then export OLD_WAY=0; b; fi\n", "if a; then b; fi\n"),
    ("if [ -z $A ]; then export OLD_WAY=0; fi\nls\n", "ls\n"),
    ("if [ -z $OLD_WAY ]; then\n  export OLD_WAY=0\nfi\nls\n", "ls\n"),
    ("if f; then\n  export OLD_WAY=0\nfi\n", "if f; then\n  :\nfi\n"),
    (
        "if f; then\n  a\nelse\n  # c\n  export OLD_WAY=0\nfi\n",
        "if f; then\n  a\nelse\n  # c\n  :\nfi\n",
    ),
    ("for i in 1 2; do export OLD_WAY=0; done\nls\n", "ls\n"),
    ("while f; do export OLD_WAY=0; done\n", "while f; do :; done\n"),
    ("f() { export OLD_WAY=0; }\n", "f() { :; }\n"),
    ("function f {\n  export OLD_WAY=0\n  unset OLD_WAY\n}\n", "function f {\n  :\n}\n"),
    (
        "case $x in\n  a)\n    export OLD_WAY=0\n    ;;\n  b) ls ;;\nesac\n",
        "case $x in\n  a)\n    ;;\n  b) ls ;;\nesac\n",
    ),
    ("bash <<EOF\nexport OLD_WAY=0\nls\nEOF\n", "bash <<EOF\nls\nEOF\n"),
    ("ls $(OLD_WAY=0 f) `OLD_WAY=0 f`\n", "ls $(f) `f`\n"),
    ("OLD_WAY=1 `which python` t.py\n", "`which python` t.py\n"),
    ("A=1 OLD_WAY=1, `which python` t.py\n", "A=1 `which python` t.py\n"),
    ("export OLD_WAY=1 `f`\n", "export `f`\n"),
    ("A=1 OLD_WAY=0\nB=2 C=3\nls\n", "A=1\nB=2 C=3\nls\n"),
    ("A=1 OLD_WAY=0 > f\n", "A=1 > f\n"),
    ("cat <<EOF && OLD_WAY=0 ls | wc > f\nx\nEOF\n", "cat <<EOF && ls | wc > f\nx\nEOF\n"),
    ("a | b && OLD_WAY=0 c > f\n", "a | b && c > f\n"),
    ("a; \\\n  OLD_WAY=0; \\\n  b\n", "a; \\\n  b\n"),
    ("a; \\\n  export OLD_WAY=0\nb\n", "a;\nb\n"),
    ("x 'ü—é'; OLD_WAY=0 ls ü --old_way=0 x\n", "x 'ü—é'; ls ü x\n"),
    ("cat > r.sh <<'EOF'\nOLD_WAY=0 ls\nEOF\n", "cat > r.sh <<'EOF'\nls\nEOF\n"),
]


@pytest.mark.parametrize(("before", "after"), LINES, ids=lambda text: text[:40])
def test_script_without_the_setting(before, after):
    check("run.sh", before, after)


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
@pytest.mark.parametrize("before", [before for before, _ in LINES], ids=lambda text: text[:40])
def test_result_is_a_script(before):
    checked = subprocess.run(
        ["bash", "-n"], input=without("run.sh", before), text=True, capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    "text",
    [
        "# OLD_WAY=0\n",
        'echo "OLD_WAY=0 is gone"\n',
        "echo OLD_WAY=0 >&2\n",
        'git commit -m "drop --old_way=0"\n',
        'MSG="set OLD_WAY=0"\n',
        "python t.py --old_way_too=0\n",
        "MY_OLD_WAY=0 ls\n",
    ],
)
def test_prose_and_other_names_stay(text):
    assert without("run.sh", text) == text
    assert not refused("run.sh", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("export OLD_WAY=0\necho $OLD_WAY\n", "reads"),
        ("export OLD_WAY=0\n[[ -v OLD_WAY ]] && ls\n", "reads"),
        ("printenv OLD_WAY\n", "not analysed"),
        ("OLD_WAY=$(cat f) ls\n", "output of a command"),
        ("python - <<EOF\nos.environ['OLD_WAY'] = '0'\nEOF\n", "here-document"),
        ("python -c \"os.environ['OLD_WAY'] = '0'\"\n", "is inside"),
        ('echo "A=1 OLD_WAY=0" >> $F\n', "part of text"),
        ("if then OLD_WAY=0\n", "cannot parse"),
        ("OLD_WAY=1, ``k``, w t\n", "cannot parse"),
        ("- OLD_WAY=1 w t\n", "cannot parse"),
        ("w OLD_WAY=1 f(x)\n", "cannot parse"),
        ("a )\nexport OLD_WAY=0\n", "cannot parse"),
        ("{ export OLD_WAY=0\n", "cannot parse"),
    ],
)
def test_refusals_give_the_reason(text, reason):
    assert without("run.sh", text) == text
    assert any(reason in why for _, why in refused("run.sh", text))


def test_kinds_of_files():
    assert without("script", "#!/bin/sh\nOLD_WAY=0 ls\n") == "#!/bin/sh\nls\n"
    assert without("notes", "OLD_WAY=0 ls\n") == "OLD_WAY=0 ls\n"
    assert without(".envrc", "export OLD_WAY=0\n") == ""


SCRIPT = """\
#!/usr/bin/env bash
set -euo pipefail
export OLD_WAY=0
seen() {{ {python} -c 'import os, sys; print("OLD_WAY" in os.environ, sys.argv[1:])' "$@"; }}
seen --a \\
  --old_way=false \\
  --b
OLD_WAY=1 seen c
if [ -z "${{KEEP:-}}" ]; then
  export OLD_WAY=1
else
  seen d
fi
KEEP=1; [ "$KEEP" = 1 ] && export OLD_WAY=2
seen e && export OLD_WAY=3
bash -c 'export OLD_WAY=4; echo "$((1 + 1))"'
"""


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_the_script_runs_without_the_variable():
    import sys

    before = SCRIPT.format(python=sys.executable)
    run = subprocess.run(
        ["bash"], input=without("run.sh", before), text=True, capture_output=True, check=True
    )
    assert run.stdout.splitlines() == [
        "False ['--a', '--b']",
        "False ['c']",
        "False ['e']",
        "2",
    ]


def test_statements_before_a_syntax_error_are_fixed():
    text = "export OLD_WAY=0\nls\nA=<token>\nexport OLD_WAY=1\n"
    assert without("run.sh", text) == text.partition("\n")[2]
    assert [found for found, _ in refused("run.sh", text)] == ["OLD_WAY"]


def test_a_variable_read_after_a_syntax_error_stays():
    text = "export OLD_WAY=0\nls\nA=<token>\necho $OLD_WAY\n"
    assert without("run.sh", text) == text
