"""Check a large source in parts, each by one worker."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RematMigrateError
from ..verify.scratch import remove_folder, scratch_folder
from .checkout import Git
from .cluster import SchedulerLost, call_all, thread_count
from .job import (
    WORK,
    Plan,
    Written,
    outcome_of,
    run_report,
    with_branch,
    write_failure,
    write_outcome,
)
from .linking import Linking
from .parts import (
    CHUNK_FILES,
    Split,
    count_files,
    find_candidates,
    find_imports,
    merged_patches,
    merged_reports,
    merged_sarif,
    name_files,
)
from .record import PATCH, REPORT, SARIF, Brief, Large
from .store import Store

if TYPE_CHECKING:
    from distributed import Client


def check_in_parts(client: Client, large: Large, plan: Plan) -> Brief:
    """Check a source in parts on the workers, and write its results.

    Raises:
        SchedulerLost: the scheduler is gone.
    """
    source, root = large.source, Path(large.root)
    split, folder = Split(large.root, plan.options), f"{WORK}/{source.name}"
    try:
        parts = _parts(client, split, plan.part_files)
        check = functools.partial(_check_part, split=split, plan=plan, folder=folder)
        calls = ((number, (number, files)) for number, files in enumerate(parts))
        checked = call_all(client, check, calls)
        written = Written(
            max(code for code, _ in checked.values()),
            _merged(len(parts), plan.store, folder),
            tuple(dict.fromkeys(note for number in sorted(checked) for note in checked[number][1])),
        )
        outcome = outcome_of(source, large.commit, root, written, large.notes)
        with scratch_folder() as scratch:
            outcome = with_branch(outcome, root, Git(scratch, plan.limits), plan)
        return write_outcome(outcome, large.digest, plan)
    except SchedulerLost:
        raise
    except (RematMigrateError, OSError) as error:
        return write_failure(source, plan, error)
    finally:
        if Path(plan.store.path(folder)).exists():
            remove_folder(Path(plan.store.path(folder)))


def _parts(client: Client, split: Split, size: int) -> list[list[int]]:
    """Find the parts of a source, searching its files on all workers."""
    [count] = call_all(client, count_files, [("", (split,))]).values()
    ranges = [(start, start + CHUNK_FILES) for start in range(0, count, CHUNK_FILES)]
    searches = ((one, (split, *one)) for one in ranges)
    found = call_all(client, find_candidates, searches)
    linking = Linking(itertools.chain.from_iterable(found.values()))
    while linking.searched:
        searched = sorted(linking.searched)
        rounds = ((one, (split, *one, searched)) for one in ranges)
        for imports in call_all(client, find_imports, rounds).values():
            linking.add_imports(imports)
        linking.advance()
    return linking.parts(size, thread_count(client))


def _check_part(
    number: int, files: Sequence[int], split: Split, plan: Plan, folder: str
) -> tuple[int, Sequence[str]]:
    """Check a part of a source, write the results to the store, and return the code and notes."""
    with scratch_folder() as scratch:
        described = scratch / "part.json"
        part = {"files": name_files(split, files), "first": number == 0}
        described.write_text(json.dumps(part))
        written = run_report(Path(split.root), scratch, plan, "--part", str(described))
    for name, data in written.files.items():
        plan.store.write(f"{folder}/{number}/{name}", data)
    return written.code, written.notes


def _merged(count: int, store: Store, folder: str) -> dict[str, bytes]:
    """Put what was written for the parts of a source together."""

    def parts(name: str) -> Iterator[bytes]:
        return store.read_all(f"{folder}/{number}/{name}" for number in range(count))

    return {
        REPORT: json.dumps(merged_reports(list(map(json.loads, parts(REPORT))))).encode(),
        SARIF: json.dumps(merged_sarif(list(map(json.loads, parts(SARIF))))).encode(),
        PATCH: merged_patches(list(parts(PATCH))),
    }
