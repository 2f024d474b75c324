"""Removing an argument of a call that another change reduces to one of its arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from codemod_support import File

from remat_migrate.codemod.changes import Keep, Remove
from remat_migrate.codemod.writer import write
from remat_migrate.text import SourceFile, apply_edits


@pytest.mark.parametrize("kept", ["(lambda x: x)", "make(f)", "make(f, g, h)"])
def test_both_changes_apply_to_one_call(kept: str) -> None:
    text = f"step = remat({kept}, concrete=False)(y)\n"
    source = SourceFile(Path("/m.py"), text)
    file = File(source, source.parse())
    call = file.tree.body[0].value.func
    changes = [Remove(file, call.keywords[0]), Keep(file, call, call.args[0])]
    assert apply_edits(text, write(changes)) == f"step = {kept}(y)\n"
