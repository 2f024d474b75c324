"""The flag in files that are not Python: what is removed, what is left to the user, and why.

`V` stands for `JAX_NEW_CHECKPOINT`, `opt` for `jax_new_checkpoint`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from remat_migrate.analysis.flag import find_text_uses
from remat_migrate.engine.integrity import check_integrity
from remat_migrate.text import Edit, SourceFile, apply_edits

NAMES = {"V": "JAX_NEW_CHECKPOINT", "opt": "jax_new_checkpoint"}


def expanded(text: str) -> str:
    return re.sub(r"\b(no)?(V|opt)\b", lambda m: (m[1] or "") + NAMES[m[2]], text)


def fixed(name: str, text: str) -> tuple[str, list[str]]:
    """Return the file without what can be removed, and the reasons for what is left."""
    text = expanded(text)
    while True:
        source = SourceFile(Path(name), text)
        uses = find_text_uses(source, {})
        edits: list[Edit] = []
        for edit in sorted({Edit(source.path, *use.cut, "") for use in uses if use.cut}):
            if not any(edit.span.overlaps(other.span) for other in edits):
                edits.append(edit)
        if not edits:
            return text, [use.reason for use in uses]
        text = apply_edits(text, edits)
        assert check_integrity(source, text, edits) is None


REMOVED = {
    "run.sh": [
        ("export V=0  # why\nls\n", "ls\n"),
        ("export A=1 V=0 B=2\n", "export A=1 B=2\n"),
        ("unset V\nls\n", "ls\n"),
        ('A=1 V="0" python t.py\n', "A=1 python t.py\n"),
        ("V=${V:-0} python t.py\n", "python t.py\n"),
        ("python t.py --opt=False --lr 3\n", "python t.py --lr 3\n"),
        ("python t.py --noopt > log\n", "python t.py > log\n"),
        ('python t.py "--opt=$X" --b\n', "python t.py --b\n"),
        ("python t.py \\\n  --opt=0 \\\n  --lr 3\n", "python t.py \\\n  --lr 3\n"),
        ("if f; then\n  ls\n  export V=0\nfi\n", "if f; then\n  ls\nfi\n"),
    ],
    "Dockerfile": [
        ("FROM x\nENV V=0\n", "FROM x\n"),
        ("ENV V 0\nARG V\nFROM x\n", "FROM x\n"),
        ("ENV A=1 V=1 B=2\n", "ENV A=1 B=2\n"),
        ("ENV A=1 \\\n    V=0 \\\n    B=2\n", "ENV A=1 \\\n    B=2\n"),
        ("RUN V=0 python t.py\n", "RUN python t.py\n"),
    ],
    "Makefile": [
        ("export V = 0\nA = 1\n", "A = 1\n"),
        ("V ?= 0\nexport V\nA = 1\n", "A = 1\n"),
        ("F = --a --opt=0\n", "F = --a\n"),
        ("t:\n\t@V=0 $(PY) --opt=0 \\\n\t  -x\n", "t:\n\t@$(PY) \\\n\t  -x\n"),
    ],
    ".env": [("A=1\nexport V=0 # c\nB=2\n", "A=1\nB=2\n"), ('V = "0"\n', "")],
    "tox.ini": [
        ("[pytest]\nenv =\n    V=0\n    A=1\n", "[pytest]\nenv =\n    A=1\n"),
        ("[pytest]\nenv =\n    D:V=0\n", "[pytest]\nenv =\n"),
    ],
    "pyproject.toml": [
        ('[env]\nV = "0" # c\nA = 1\n', "[env]\nA = 1\n"),
    ],
    "ci.yml": [
        ("env:\n  A: 1\n  V: 0\n", "env:\n  A: 1\n"),
        ("a:\n  env:\n  - V=0\n  - A=1\n", "a:\n  env:\n  - A=1\n"),
        ("args:\n  - --a\n  - '--opt=0'\n", "args:\n  - --a\n"),
        ("- run: V=0 ls\n", "- run: ls\n"),
        (
            "- run: |\n    export V=0\n    python t.py --opt=0 -v\n",
            "- run: |\n    python t.py -v\n",
        ),
        ("script:\n  - export V=0\n  - ls\n", "script:\n  - ls\n"),
    ],
}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("name", REMOVED)
def test_what_holds_nothing_else_is_removed(name, ending):
    for before, after in REMOVED[name]:
        assert fixed(name, before.replace("\n", ending)) == (after.replace("\n", ending), [])
        without, left = fixed(name, before.rstrip("\n"))
        assert (without.rstrip("\n"), left) == (after.rstrip("\n"), [])


MORE = "part of something else"
LEFT = [
    ("run.sh", "unset A V\n", MORE),
    ("Dockerfile", "ENV V=0 \\\n    A=1\n", MORE),
    ("launch.json", '{\n  "A": "1",\n  "V": "0"\n}\n', MORE),
    ("run.sh", "a && V=0 ls\n", MORE),
    ("run.sh", "python t.py --lr 3 &&\n  export V=0\n", MORE),
    ("run.sh", "case $x in\n  a)\n    export V=0\n    ;;\nesac\n", "block may be empty"),
    ("run.sh", "a &&\n  export V=0\n", MORE),
    ("run.sh", "bash <<EOF\nexport V=0\nEOF\n", MORE),
    ("run.sh", "srun --export=ALL,V=0 t\n", MORE),
    ("run.sh", 'echo "V=0" >> $F\n', MORE),
    ("Dockerfile", 'ENV F="--opt=0 --x"\n', MORE),
    ("Makefile", "t:\n\texport V=0\n", MORE),
    (".env", 'C="t --opt=0"\n', MORE),
    ("pyproject.toml", "opt = false\n", MORE),
    ("ci.yml", "job:\n  V: 0\n", "block may be empty"),
    ("ci.yml", "steps:\n- {name: V, value: '0'}\n", MORE),
    ("ci.yml", "model:\n  opt: false\n", MORE),
    ("ci.yml", "about: pass --a --opt=0 to go back\n", MORE),
    ("ci.yml", "inputs:\n  A: 1\n  V: !x\n    default: 0\n", MORE),
    ("pyproject.toml", 'x = """\nV = 0\n"""\n', MORE),
]


@pytest.mark.parametrize(("name", "text", "reason"), LEFT)
def test_the_rest_is_left_with_a_reason(name, text, reason):
    after, reasons = fixed(name, text)
    assert after == expanded(text)
    assert any(reason in found for found in reasons), reasons


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", "# V=0\n"),
        ("run.sh", 'echo "V=0 is gone" >&2\n'),
        ("run.sh", "MY_V=0 ls --opt_too=0\n"),
        ("ci.yml", "# V: 0\na: 1\n"),
        ("notes.txt", "V=0\n"),
    ],
)
def test_comments_and_prose_are_no_uses(name, text):
    assert fixed(name, text) == (expanded(text), [])
