"""The parts of a large source: found and checked by many workers, and put together again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

from ..discovery.survey import survey
from ..engine.run import Run
from ..report.machine_readable.sarif_rules import merged_descriptors
from ..settings import Options
from .linking import Edges, Tree

# Files in which a task searches for words.
CHUNK_FILES = 4_000


@dataclass(frozen=True, slots=True)
class Split:
    """A source that is checked in parts.

    Attributes:
        root: its folder, which all workers see.
        options: the options of the run.
    """

    root: str
    options: Options


@lru_cache(maxsize=1)
def tree_of(split: Split) -> Tree:
    """Return the files of a source; a worker keeps those of the last one."""
    with chdir(split.root):  # patterns on the command line are relative to the source
        return Tree(survey([Path(split.root)], split.options))


def count_files(split: Split) -> int:
    """Return the number of Python files that may be read."""
    tree_of.cache_clear()  # the same folder may have changed since the last sweep
    return len(tree_of(split))


def find_candidates(split: Split, start: int, stop: int) -> list[int]:
    """Return the files in a range that may matter; see `Tree.candidates`."""
    return tree_of(split).candidates(start, stop)


def find_imports(split: Split, start: int, stop: int, searched: Collection[int]) -> Edges:
    """Return what files in a range import, if they may import one of `searched`."""
    tree = tree_of(split)
    return tree.imports(start, stop, *tree.stems(searched))


def name_files(split: Split, numbers: Iterable[int]) -> list[str]:
    """Return the names of files relative to the source."""
    tree = tree_of(split)
    return [str(tree.files.all[number].relative_to(tree.files.root)) for number in numbers]


def only_part(run: Run, file: Path) -> Run:
    """Return a run that is restricted to the part that a file describes."""
    described = json.loads(file.read_text())
    linked = frozenset(run.settings.root / name for name in described["files"])
    texts = run.targets.texts if described["first"] else ()
    return replace(
        run,
        part=linked,
        shown=linked | frozenset(texts),
        targets=replace(run.targets, texts=texts),
    )


# -- putting reports together


def merged_reports(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON report of a run from those of its parts, the first of which has all files."""
    first, *_ = parts
    merged = {**first, "summary": _merged_summary([part["summary"] for part in parts])}
    # In the order of a whole run: findings by name, everything else by folder.
    for key, order in (("findings", _by_name), ("sites", _by_folder), ("verdicts", _by_folder)):
        if key in first:
            merged[key] = sorted((row for part in parts for row in part[key]), key=order)
    return merged


def _by_name(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["path"], *_place(row)


def _by_folder(row: Mapping[str, Any]) -> tuple[object, ...]:
    return PurePath(row["path"]), *_place(row)


def _place(row: Mapping[str, Any]) -> tuple[object, ...]:
    end = (row.get("end_line", 0), row.get("end_column", 0))
    return row["line"], row.get("column", 0), *end, row.get("code", "")


def _merged_summary(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first, *_ = parts
    merged: dict[str, Any] = {}
    for key, value in first.items():
        if key == "files":
            merged[key] = value
        elif isinstance(value, int):
            merged[key] = sum(part[key] for part in parts)
        elif key in ("codes", "verdicts"):
            counts: Counter[str] = Counter()
            for part in parts:
                counts.update(part[key])
            merged[key] = dict(sorted(counts.items()))
        elif key == "rules":
            merged[key] = _merged_rules(row for part in parts for row in part[key])
        else:
            merged[key] = value
    return merged


def _merged_rules(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for row in rows:
        found = merged.setdefault(row["code"], {**row, **dict.fromkeys(_numbers(row), 0)})
        for key in _numbers(row):
            found[key] += row[key]
    return sorted(merged.values(), key=lambda row: (-row["findings"], row["code"]))


def _numbers(row: Mapping[str, Any]) -> list[str]:
    return [key for key, value in row.items() if isinstance(value, int)]


def merged_sarif(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the SARIF log of a run from those of its parts."""
    first, *_ = parts
    runs = [part["runs"][0] for part in parts]
    rules = merged_descriptors(run["tool"]["driver"]["rules"] for run in runs)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    results = [
        {**result, "ruleIndex": index[result["ruleId"]]}
        for run in runs
        for result in run["results"]
    ]
    levels = ("error", "warning", "note")
    results.sort(key=lambda one: (levels.index(one["level"]), -one["rank"], _sarif_place(one)))
    driver = {**runs[0]["tool"]["driver"], "rules": rules}
    invocation = dict(runs[0]["invocations"][0])
    told = [
        note for run in runs for note in run["invocations"][0].get("toolExecutionNotifications", ())
    ]
    if told:
        invocation["toolExecutionNotifications"] = told
    properties = dict(runs[0]["properties"])
    if "sites" in properties:
        sites = [run["properties"]["sites"] for run in runs]
        properties["sites"] = {key: sum(one[key] for one in sites) for key in sites[0]}
    run = {
        **runs[0],
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": results,
        "properties": properties,
    }
    return {**first, "runs": [run]}


def _sarif_place(result: Mapping[str, Any]) -> tuple[str, int, int, str]:
    where = result["locations"][0]["physicalLocation"]
    region = where.get("region", {})
    uri = where["artifactLocation"]["uri"]
    return uri, region.get("startLine", 0), region.get("startColumn", 0), result["ruleId"]


def merged_patches(parts: Sequence[bytes]) -> bytes:
    """Return the patch of a run from those of its parts, which change different files."""
    files = []
    for patch in parts:
        starts = [0] if patch.startswith(b"--- ") else []
        at = patch.find(b"\n--- ")
        while at >= 0:
            # A removed line may look like this, but only a header is followed by `+++`.
            if patch[patch.find(b"\n", at + 1) + 1 :].startswith(b"+++ "):
                starts.append(at + 1)
            at = patch.find(b"\n--- ", at + 1)
        ends = [*starts[1:], len(patch)]
        files += [patch[start:end] for start, end in zip(starts, ends, strict=bool(starts))]
    return b"".join(sorted(files))
