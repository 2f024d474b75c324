"""The proof of a migration that somebody has made: a base and the working tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..discover import find_root, list_files
from .changed import all_units, difference
from .evidence import Proof
from .options import VerifyOptions, check_options, find_python
from .places import Places
from .prove import Progress, prove, silent
from .revision import base_texts
from .sides import State, Task


def prove_migration(
    paths: Sequence[Path], base: str, options: VerifyOptions, progress: Progress = silent
) -> Proof:
    """Compare what the units that differ from a base computed there, and compute now.

    Args:
        paths: the files and folders that are asked for; all of the project without any.
        base: a git revision, or a folder with an older state.
        options: how to verify.
        progress: is told what is being done.

    Raises:
        UsageError: there is no such base.
        VerificationError: nothing can be run.
    """
    check_options(options)
    root = find_root(paths or [Path.cwd()])
    found = base_texts(root, base, paths)
    places = Places(found.root)
    changed = difference(
        [(c.path, c.before, c.after) for c in found.changes if c.old_path is None], places
    )
    moved = tuple(f"{old.name} is {new.name} now: not compared" for old, new in found.renamed)
    notes = (*found.notes, *moved, *changed.notes)
    if not changed.units:
        return Proof(changed.unproved, notes)
    task = Task(
        State(found.root, found.texts, found.new),
        State(found.root),
        changed.units,
        find_python(options, found.root),
        options,
        _known(found.root, places, options.cases) if options.cases else (),
    )
    proof = prove(task, progress)
    return replace(
        proof,
        verdicts=(*proof.verdicts, *changed.unproved),
        notes=(*proof.notes, *notes),
    )


def _known(root: Path, places: Places, cases: Path) -> tuple[str, ...]:
    files = list(list_files(root, lambda name: name.endswith(".py")))
    return tuple(all_units(files, places, cases))
