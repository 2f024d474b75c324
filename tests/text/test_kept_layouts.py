"""Tokens and tree indexes are computed once per file, however many sites are fixed."""

from __future__ import annotations

from pathlib import Path

from codemod_support import File

from remat_migrate.codemod.tree.reductions import Reduction
from remat_migrate.codemod.tree.removal import plan_removals
from remat_migrate.codemod.tree.tree_index import index_of
from remat_migrate.codemod.writer import write
from remat_migrate.text import SourceFile
from remat_migrate.text.tokens import layout_of


def test_many_removals_read_a_file_once():
    source = SourceFile(Path("/project/code.py"), "import os\n" + "x = 1\n" * 40)
    tree = source.parse()
    before = (layout_of.cache_info().misses, index_of.cache_info().misses)
    for statement in tree.body:
        (removal,) = plan_removals(File(source, tree), [Reduction(remove=(statement,))])
        assert write(removal.changes)
    after = (layout_of.cache_info().misses, index_of.cache_info().misses)
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 1]


def test_another_text_of_a_file_has_another_layout():
    source = SourceFile(Path("/project/code.py"), "x = 1\n")
    assert layout_of(source) is layout_of(source)
    assert [t.text for t in layout_of(source.replaced("y = 2\n")).tokens] == ["y", "=", "2"]
    assert layout_of.cache_info().maxsize is not None  # a run over a large tree keeps few
