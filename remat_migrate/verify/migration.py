"""Verify what is in the working tree: against a base, or against itself without checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..analysis import sites_of
from ..analysis.loading import load_project
from ..analysis.sites.site import Site
from ..discovery.roots import find_root
from ..engine.run import Progress, prepare, silent
from ..settings import Options
from ..text import SourceFile
from .copies.import_names import ImportNames
from .copies.revision import find_base
from .copies.sides import State, Task
from .evidence import Outcome, Proof, Verdict
from .options import VerifyOptions, check_options, find_python
from .project_tests import project_tests
from .prove import prove
from .units.project_diff import ProjectDiff, all_units, callers, diff_project

_RAN = (Outcome.EQUAL, Outcome.CLOSE, Outcome.DIFFERS, Outcome.FAILS_AFTER)

# Unchanged callers of changed functions that are compared.
_MOST_CALLERS = 40


def prove_migration(
    paths: Sequence[Path],
    base: str | None,
    options: VerifyOptions,
    progress: Progress = silent,
) -> Proof:
    """Run the units that differ from a base, and their callers, in it and in the working tree.

    Args:
        paths: the requested files and folders; empty for the whole project.
        base: a git revision, or a folder with an older state; None for the working tree without
            checkpoints, from which the units that apply checkpoints differ.
        options: how to verify.
        progress: receives progress reports.

    Raises:
        UsageError: there is no such base, or the settings are wrong.
        VerificationError: nothing can be run.
    """
    check_options(options)
    root = Path(os.path.realpath(find_root(paths or [Path.cwd()])))
    import_names = ImportNames(root)
    if base is None:
        before, changed = State(root), _without_checkpoints(root, paths, import_names)
    else:
        before, changed = _since(base, root, paths, import_names)
    cases = options.cases and options.cases.resolve()
    files = tuple(file for file in import_names.files if file.resolve() != cases)
    untouched = callers(changed.units, files, import_names, _MOST_CALLERS, before=before.texts)
    if not changed.units:
        return Proof(changed.unproved, changed.notes)
    task = Task(
        before,
        State(root),
        (*changed.units, *untouched),
        find_python(options, root),
        options,
        tuple(all_units(files, import_names, options.cases)) if options.cases else (),
    )
    keys = {unit.key for unit in untouched}

    def is_reported(verdict: Verdict) -> bool:
        # An unchanged caller that cannot be run is not worth reporting.
        return verdict.unit.key not in keys or verdict.outcome in _RAN

    with project_tests(options) as tests:
        proof = prove(task, progress, tests)
    return replace(
        proof,
        verdicts=(*filter(is_reported, proof.verdicts), *changed.unproved),
        notes=(*proof.notes, *changed.notes),
    )


def _since(
    base: str, root: Path, paths: Sequence[Path], import_names: ImportNames
) -> tuple[State, ProjectDiff]:
    """Return an older state, and the units that differ from it."""
    found = find_base(root, base, paths)
    changed = diff_project([(c.path, c.before, c.after) for c in found.changes], import_names)
    notes = (*found.notes, *changed.notes)
    return State(root, found.texts, found.new), replace(changed, notes=notes)


def _without_checkpoints(
    root: Path, paths: Sequence[Path], import_names: ImportNames
) -> ProjectDiff:
    """Return the units that apply checkpoints."""
    run = prepare(paths or [root], Options())
    project = load_project(run.settings, run.targets.python, (), run.context)
    targets = frozenset(run.targets.python)
    sites: dict[SourceFile, list[Site]] = {}
    for site in sites_of(project):
        if site.module.source.path in targets:
            sites.setdefault(site.module.source, []).append(site)
    return diff_project(
        [(s.path, s.encode(_renamed(s.text, of)), s.data) for s, of in sites.items()],
        import_names,
    )


def _renamed(text: str, sites: Iterable[Site]) -> str:
    """Return a text where the applications of checkpoints have other names of the same length."""
    for site in sites:
        end = site.module.span(site.reference).end
        if text[end - 1].isidentifier():
            text = text[: end - 1] + "_" + text[end:]
    return text
