"""Comments and blank lines around removed text."""

from __future__ import annotations

import pytest
from formats.plan import check

CASES = {
    "a comment on the line goes": (
        "run.sh",
        "ls\nexport OLD_WAY=0  # the old way is slow\ncd x\n",
        "ls\ncd x\n",
    ),
    "a comment on a line of its own stays": (
        "run.sh",
        "# The old way.\nexport OLD_WAY=0\ncd x\n",
        "# The old way.\ncd x\n",
    ),
    "a comment behind what stays": ("run.sh", "OLD_WAY=0 ls  # list\n", "ls  # list\n"),
    "a comment behind another argument": (
        "x.toml",
        'args = [\n  "a",  # first\n  "--old_way=0",  # second\n]\n',
        'args = [\n  "a",  # first\n]\n',
    ),
    "a comment before the last element": (
        "x.toml",
        'args = ["a",  # first\n  "--old_way=0"]\n',
        'args = ["a"  # first\n  ]\n',
    ),
    "an entry with its comment": ("x.yml", "a: 1\nOLD_WAY: 0  # see\nb: 2\n", "a: 1\nb: 2\n"),
    "a block with the comment on its line": (
        "x.yml",
        "a: 1\nenv:  # for speed\n  OLD_WAY: 0\nb: 2\n",
        "a: 1\nb: 2\n",
    ),
    "a comment within an instruction": (
        "Dockerfile",
        "ENV A=1 \\\n    # two\n    OLD_WAY=0 \\\n    # three\n    B=2\n",
        "ENV A=1 \\\n    # two\n    # three\n    B=2\n",
    ),
    "one blank line of two": ("run.sh", "a\n\nexport OLD_WAY=0\n\nb\n", "a\n\nb\n"),
    "one blank line of two around several": (
        "run.sh",
        "a\n\nexport OLD_WAY=0\nexport OLD_WAY=1\n\nunset OLD_WAY\n\nb\n",
        "a\n\nb\n",
    ),
    "a blank line below alone": ("run.sh", "a\nexport OLD_WAY=0\n\nb\n", "a\n\nb\n"),
    "a blank line at the start": ("run.sh", "export OLD_WAY=0\n\nb\n", "b\n"),
    "a blank line at the end": ("run.sh", "a\n\nexport OLD_WAY=0\n", "a\n"),
    "blank lines around a table": (
        "x.toml",
        'a = 1\n\n[tool.x.env]\nOLD_WAY = "0"\n\n[b]\nc = 1\n',
        "a = 1\n\n[b]\nc = 1\n",
    ),
    "blank lines around a block": (
        "x.yml",
        "a: 1\n\nenv:\n  OLD_WAY: 0\n\nb: 2\n",
        "a: 1\n\nb: 2\n",
    ),
    "blank lines in a script": (
        "x.yml",
        "run: |\n  a\n\n  export OLD_WAY=0\n\n  b\n",
        "run: |\n  a\n\n  b\n",
    ),
    "blank lines in a Makefile": (
        "Makefile",
        "A = 1\n\nOLD_WAY = 0\n\nB = 2\n",
        "A = 1\n\nB = 2\n",
    ),
    "blank lines in a Dockerfile": (
        "Dockerfile",
        "FROM x\n\nENV OLD_WAY=0\n\nRUN ls\n",
        "FROM x\n\nRUN ls\n",
    ),
}


@pytest.mark.parametrize(("name", "before", "after"), CASES.values(), ids=CASES)
def test_comments_and_blank_lines(name: str, before: str, after: str) -> None:
    check(name, before, after)
