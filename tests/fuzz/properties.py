"""Properties that hold for any files, checked in this process without JAX."""

from __future__ import annotations

import ast
import io
import warnings
from unittest.mock import patch

from remat_migrate.report.output import write_diff

from .kept import check_edits
from .patching import patched
from .subject import Files, FixedFiles, Subject, Wrong


def check_fixing(subject: Subject, files: Files, *, unsafe: bool = False) -> FixedFiles:
    """Fix files and check everything that can be checked without running them.

    Returns:
        the files after all fixes.

    Raises:
        Wrong: a rule failed; a fix was wrong, oscillated or changed more than its edits; the new
            text
        does not parse; a second fix changes something or finds something else; the diff shown is
        not the change made.
    """
    fixed = subject.fixed(files, unsafe=unsafe)
    check_edits(fixed)
    for name, data in fixed.files.items():
        if data != files[name]:
            _parse(name, data)
    _check_difference(fixed, files)
    again = subject.fixed(fixed.files, unsafe=unsafe)
    if again.files != fixed.files:
        changed = [f"{a.finding.code}" for a in again.outcome.applied]
        raise Wrong(f"a second fix changes something: {changed}")
    if again.findings != fixed.findings:
        differing = set(again.findings) ^ set(fixed.findings)
        raise Wrong(f"the findings after fixing are not those of the fixed files: {differing}")
    return fixed


def _parse(name: str, data: bytes) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError) as error:
        raise Wrong(f"{name} no longer parses: {error}") from error


def _check_difference(fixed: FixedFiles, files: Files) -> None:
    root = fixed.outcome.analysis.project.settings.root
    for change in fixed.outcome.changes:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
        with patch("remat_migrate.report.output.Path.cwd", lambda: root):
            write_diff(change.before, change.after, stream)
        buffer = stream.buffer
        assert isinstance(buffer, io.BytesIO)
        name = change.path.relative_to(root).as_posix()
        try:
            made = patched(files[name], buffer.getvalue())
        except ValueError as error:
            raise Wrong(f"the diff of {name} does not apply: {error}") from error
        if made != fixed.files[name]:
            raise Wrong(f"the diff of {name} is not what --fix writes")
