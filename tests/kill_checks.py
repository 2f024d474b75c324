"""Invariants that must hold after a run is interrupted, and counters for the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kill_faults import run
from kill_trees import Tree, copy_tree, differences, strays, tree_of

FIX = ("--fix", "--no-cache", "--output-format", "concise", ".")
UNDO = ("undo", ".")
# How often to undo: a run that recovers another run writes two journal entries.
_MOST_UNDONE = 3
# Maximum length of a reported detail.
_SHOWN = 400


@dataclass(slots=True)
class Findings:
    """The counters and violations of one campaign."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def check(self, where: str, what: str, is_right: object, detail: str = "") -> None:
        """Record a violation; `where` says how to reproduce it."""
        if not is_right:
            self.wrong.append(f"{where}: {what} {detail[:_SHOWN]}".strip())

    def lines(self) -> Iterator[str]:
        """Return the lines to print."""
        numbers = ", ".join(f"{number} {what}" for what, number in self.counts.items())
        yield f"{self.name}: {numbers}; {len(self.wrong)} wrong"
        yield from (f"  {line}" for line in self.wrong[:20])


@dataclass(frozen=True, slots=True)
class Subject:
    """A project before and after `--fix`.

    Attributes:
        pristine: a copy of the original project.
        fixed: a copy after an uninterrupted run, including its journal.
        place: the folder to run in, recreated for each run.
    """

    pristine: Path
    fixed: Path
    place: Path
    old: Tree
    new: Tree

    def start(self, fixed: bool = False) -> Path:
        """Copy the project to its place, before or after the fix."""
        return copy_tree(self.fixed if fixed else self.pristine, self.place)


def prepare(pristine: Path, folder: Path) -> Subject:
    """Run `--fix` on a project without interruption."""
    place = folder / "place"
    root = copy_tree(pristine, place)
    done = run(root, FIX)
    if done.code not in (0, 1) or done.unseen:
        raise SystemExit(f"the undisturbed run failed: {done.code} {done.err} {done.unseen}")
    old, new = tree_of(pristine), tree_of(root)
    if sum(old[name] != new[name] for name in old) < 5:
        raise SystemExit("there is too little to fix in this tree")
    return Subject(pristine, copy_tree(root, folder / "fixed"), place, old, new)


def check_after(found: Findings, where: str, subject: Subject, root: Path) -> None:
    """Check a project after an interrupted run: no file is lost, and undo and fix still work."""
    lost = differences(tree_of(root), subject.old, subject.new)
    found.check(where, "a file is neither old nor new:", not lost, "; ".join(lost.lines))
    twin = copy_tree(root, root.with_name("twin"))

    is_mixed = tree_of(root) not in (subject.old, subject.new)
    journal = list((root / ".remat_migrate/journal").glob("*.json"))
    undone = run(root, UNDO)
    found.check(where, "undo failed:", undone.code == (0 if journal else 2), undone.err)
    if not journal:
        found.check(where, "undo says something else:", "nothing to undo" in undone.err, undone.err)
    _check_tree(found, f"{where}, undo", subject.old, root)
    found.counts["undone"] += 1

    finished = run(twin, FIX)
    found.check(where, "the next run failed:", finished.code in (0, 1), finished.err)
    _check_tree(found, f"{where}, the next --fix", subject.new, twin)
    found.counts["finished"] += 1
    for _ in range(_MOST_UNDONE):
        if run(twin, UNDO).code:
            break
    _check_tree(found, f"{where}, the next --fix, undo", subject.old, twin)
    found.counts["of these from a mixed tree"] += is_mixed
    found.counts["of these with half a fix put back"] += "note: restored" in finished.err


def _check_tree(found: Findings, where: str, wanted: Tree, root: Path) -> None:
    wrong = differences(tree_of(root), wanted)
    found.check(where, "the tree is another:", not wrong, "; ".join(wrong.lines))
    left = strays(root)
    found.check(where, "temporary files are left:", not left, ", ".join(left))
