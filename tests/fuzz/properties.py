"""What must hold of any files, whatever they do: checked in this process, without JAX."""

from __future__ import annotations

import ast
import io
import warnings
from unittest.mock import patch

from remat_migrate.report.output import write_diff

from .kept import check_edits
from .patching import patched
from .subject import Files, Mended, Subject, Wrong


def check_fixing(subject: Subject, files: Files, *, unsafe: bool = False) -> Mended:
    """Mend files and check all that can be told without running them.

    Returns:
        the files after all fixes.

    Raises:
        Wrong: a rule failed; a fix was wrong, without an end or changed what it does not edit; the
            new text does not parse; fixing again changes something or finds something else; the
            difference shown is not the one made.
    """
    mended = subject.mended(files, unsafe=unsafe)
    check_edits(mended)
    for name, data in mended.files.items():
        if data != files[name]:
            _parse(name, data)
    _check_difference(mended, files)
    again = subject.mended(mended.files, unsafe=unsafe)
    if again.files != mended.files:
        changed = [f"{a.finding.code}" for a in again.outcome.applied]
        raise Wrong(f"fixing again changes something: {changed}")
    if again.findings != mended.findings:
        differing = set(again.findings) ^ set(mended.findings)
        raise Wrong(f"the findings after fixing are not those of the fixed files: {differing}")
    return mended


def _parse(name: str, data: bytes) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError) as error:
        raise Wrong(f"{name} does not parse any more: {error}") from error


def _check_difference(mended: Mended, files: Files) -> None:
    root = mended.outcome.analysis.project.settings.root
    for change in mended.outcome.changes:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
        with patch("remat_migrate.report.output.Path.cwd", lambda: root):
            write_diff(change.before, change.after, stream)
        buffer = stream.buffer
        assert isinstance(buffer, io.BytesIO)
        name = change.path.relative_to(root).as_posix()
        try:
            made = patched(files[name], buffer.getvalue())
        except ValueError as error:
            raise Wrong(f"the difference of {name} cannot be applied: {error}") from error
        if made != mended.files[name]:
            raise Wrong(f"the difference of {name} is not what --fix makes")
