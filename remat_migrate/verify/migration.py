"""The proof of a migration that somebody has made: a base and the working tree."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..analysis.libraries.apis import ApiTable
from ..discovery.discover import list_files
from ..discovery.roots import find_root
from ..engine.progress import Progress, silent
from .copies.places import Places
from .copies.revision import base_texts, same_texts
from .copies.sides import State, Task
from .evidence import Outcome, Proof
from .options import VerifyOptions, check_options, find_python
from .prove import prove
from .units.changed import all_units, callers, difference, users

# Of functions that did not change but call some that did.
_MOST_CALLERS = 40


def prove_migration(
    paths: Sequence[Path], base: str | None, options: VerifyOptions, progress: Progress = silent
) -> Proof:
    """Compare what the units that differ from a base, and those that call them, computed there and
    compute now.

    Under a flag these are the units that apply a checkpoint, and those that call them.

    Args:
        paths: the files and folders that are asked for; all of the project without any.
        base: a git revision, or a folder with an older state; None: the same code on both sides,
            which a flag tells apart.
        options: how to verify.
        progress: is told what is being done.

    Raises:
        UsageError: there is no such base.
        VerificationError: nothing can be run.
    """
    check_options(options)
    root = find_root(paths or [Path.cwd()])
    found = same_texts(root) if base is None else base_texts(root, base, paths)
    places = Places(found.root)
    changed = difference(
        [(c.path, c.before, c.after) for c in found.changes if c.old_path is None], places
    )
    moved = tuple(f"{old.name} is {new.name} now: not compared" for old, new in found.renamed)
    notes = (*found.notes, *moved, *changed.notes)
    files = tuple(list_files(found.root, lambda name: name.endswith(".py")))
    units = changed.units
    if options.under:
        # The flag changes what every checkpoint is, not only those that somebody has edited.
        wrapped = users(ApiTable().last_names, _below(files, paths), places)
        units = tuple({unit.key: unit for unit in (*wrapped, *units)}.values())
    if not units:
        return Proof(changed.unproved, notes)
    untouched = callers(units, files, places)[:_MOST_CALLERS]
    task = Task(
        State(found.root, found.texts, found.new),
        State(found.root),
        (*units, *untouched),
        find_python(options, found.root),
        options,
        tuple(all_units(files, places, options.cases)) if options.cases else (),
        is_same=base is None,
    )
    proof = prove(task, progress)
    # That a caller, which nobody has touched, cannot be run is no news.
    keys = {unit.key for unit in untouched}
    ran = (Outcome.EQUAL, Outcome.DIFFERS, Outcome.FAILS_AFTER)
    verdicts = (v for v in proof.verdicts if v.unit.key not in keys or v.outcome in ran)
    return replace(
        proof,
        verdicts=(*verdicts, *changed.unproved),
        notes=(*proof.notes, *notes),
    )


def _below(files: Sequence[Path], paths: Sequence[Path]) -> Sequence[Path]:
    """The files that are among some paths or below them; all without any."""
    wanted = [Path(os.path.realpath(path)) for path in paths]
    return [f for f in files if not wanted or any(f.is_relative_to(path) for path in wanted)]
