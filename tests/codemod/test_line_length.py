"""Lines that new code makes too long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.codemod.changes import Code, Replace
from remat_migrate.codemod.line_length import line_length
from remat_migrate.codemod.writer import write
from remat_migrate.source import SourceFile, apply_edits


@pytest.mark.parametrize("character", ["\f", "\x1c", "\x85", "\u2028"])
def test_only_line_feeds_end_a_line(character: str) -> None:
    text = f'def f(x):\n    s = "{character}"\n    return g(x)\n'
    source = SourceFile(Path("/m.py"), text)
    file = File(source, source.parse())
    value = file.tree.body[0].body[1].value
    names = ["x" * 30, "y" * 30, "z" * 30]
    after = apply_edits(text, write([Replace(file, value, Code(f"g({', '.join(names)})"))]))
    broken = "".join(f"        {name},\n" for name in names)
    assert after == text.replace("g(x)", f"g(\n{broken}    )")


def test_changed_settings_are_read_again(tmp_path: Path) -> None:
    source = SourceFile(tmp_path / "m.py", "x = 1\n")
    settings = tmp_path / "pyproject.toml"
    for number, length in enumerate((79, 120), 1):
        settings.write_text(f"[tool.ruff]\nline-length = {length}\n")
        os.utime(settings, (number, number))
        assert line_length(source) == length
    settings.unlink()
    (tmp_path / "setup.cfg").write_text("[flake8]\nmax-line-length = 99\n")
    assert line_length(source) == 99
