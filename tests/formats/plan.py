"""Removes a setting from a text, for the tests of each format."""

from __future__ import annotations

import textwrap
from pathlib import Path

from remat_migrate.formats.files import plan_text
from remat_migrate.formats.setting import Setting
from remat_migrate.text import SourceFile, apply_edits

SETTING = Setting("OLD_WAY", "old_way")


def without(name: str, text: str) -> str:
    """Return `text` without the setting; check that a second run changes nothing."""
    source = SourceFile(Path("/project") / name, text)
    _, removals = plan_text(source, SETTING)
    new = apply_edits(text, [edit for removal in removals for edit in removal.edits])
    uses, again = plan_text(source.replaced(new), SETTING)
    assert not again
    assert all(use.refused for use in uses)
    return new


def refused(name: str, text: str) -> list[tuple[str, str]]:
    """Return the uses that stay and why."""
    uses, _ = plan_text(SourceFile(Path("/project") / name, text), SETTING)
    return [(text[use.start : use.end], use.refused) for use in uses if use.refused]


def check(name: str, before: str, after: str) -> None:
    """Check that `before` becomes `after` with every kind of line ending."""
    before, after = (textwrap.dedent(text).lstrip("\n") for text in (before, after))
    assert without(name, before) == after
    assert without(name, before.replace("\n", "\r\n")) == after.replace("\n", "\r\n")
    assert without(name, before.rstrip("\n")).rstrip("\n") == after.rstrip("\n")
