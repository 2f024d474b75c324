"""The cases of `--only`, one function each."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import generated
from .figures import Row, Target
from .generated import Kind, Written
from .installations import Installations, make_repository
from .processes import BenchmarkError, Command, in_turn

# The words of the prefilter.
WORDS = "remat|checkpoint|NEW_CHECKPOINT|REMAT_BARRIER|RMT"
# Files of the projects in which a hook checks one.
SIZES = (100, 1_000)
_APPLIED = re.compile(rb"\b(?:jax|nn)\.(?:remat|checkpoint)\(")
_WITHOUT_WORDS = re.compile(rb"\A(?!.*(?:%s))" % WORDS.encode(), re.DOTALL)
# Smallest file to edit, in bytes.
_LEAST = 4_000

_IN_SECONDS = {
    "hook, nothing to find": Target("s", 0.15),
    "hook, checkpoints that are right": Target("s", 0.25),
    "hook, a finding": Target("s", 0.25),
}
_HOOKED: dict[str, Kind] = {
    "hook, nothing to find": "plain",
    "hook, checkpoints that are right": "checkpoint",
    "hook, a finding": "finding",
}
_CHANGED, _CHANGED_WITHOUT = "T, one changed file with checkpoints", "T, one changed file without"


@dataclass(frozen=True)
class Bench:
    """The set-up of the cases.

    Attributes:
        installations: tools and the tree from PyPI.
        runs: runs of each command.
    """

    installations: Installations
    runs: int

    def tool(self, *arguments: str | Path, folder: Path, cache: Path | None = None) -> Command:
        """Return a run of remat-migrate, with a cache only if one is given."""
        program = self.installations.tool / "remat-migrate"
        given = (*map(str, arguments), *(() if cache else ("--no-cache",)))
        variables = {"REMAT_MIGRATE_CACHE_DIR": str(cache)} if cache else {}
        return Command("remat-migrate", (str(program), "check", *given), folder, variables)

    def ruff(self, tree: Path, cache: Path | None = None) -> Command:
        """Return a run of ruff over a tree with one migration rule."""
        chosen = ("check", "--isolated", "--select", "NPY201")
        cached = ("--cache-dir", str(cache)) if cache else ("--no-cache",)
        program = str(self.installations.peer("ruff"))
        return Command("ruff", (program, *chosen, *cached, str(tree)), tree)

    def grep(self, tree: Path) -> Command:
        """Return a search for the words of the prefilter."""
        chosen = ("-rE", "--include=*.py", "--exclude-dir=.git", WORDS)
        return Command("grep", (str(self.installations.grep), *chosen, str(tree)), tree)

    def generated(self, name: str, files: Iterator[Written]) -> tuple[Path, Sequence[Written]]:
        """Generate a tree, and return its folder and files."""
        folder = self.installations.folder / "generated" / name
        shutil.rmtree(folder, ignore_errors=True)
        written = generated.write(files, folder)
        make_repository(folder)
        return folder, written

    def cache(self, name: str) -> Path:
        """Return an empty cache folder."""
        folder = self.installations.folder / "caches"
        folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=name, dir=folder))


def compared(
    what: str, commands: list[Command], runs: int, target: Target | None = None
) -> list[Row]:
    """Alternate runs of commands, and compare the first with each other one.

    A target ratio applies to ruff, or to the only other command.
    """
    ours, *others = in_turn(commands, runs)
    if not others:
        absolute = target is not None and target.of != "ratio"
        return [Row(what, ours, target=target if absolute else None)]
    rows = []
    for command, theirs in zip(commands[1:], others, strict=True):
        aimed = command.name == "ruff" or len(others) == 1
        rows.append(Row(what, ours, command.name, theirs, target if aimed else None))
    return rows


def cold(bench: Bench) -> list[Row]:
    """Check the whole tree without a cache."""
    tree = bench.installations.tree
    commands = [bench.tool(tree, folder=tree), bench.ruff(tree), bench.grep(tree)]
    return compared("T, cold", commands, bench.runs, Target("ratio", 0.6))


def warm(bench: Bench) -> list[Row]:
    """Check the whole tree with a cache, unchanged since the last run."""
    tree = bench.installations.tree
    commands = _cached(bench, tree, "warm")
    in_turn(commands, 1)
    return compared("T, warm", commands, bench.runs, Target("s", 0.25))


def changed(bench: Bench) -> list[Row]:
    """Check the whole tree with a cache, with one file changed before each run."""
    tree = bench.installations.tree
    rows: list[Row] = []
    for what, path in _files_to_change(tree).items():
        before = path.read_bytes()
        numbers = iter(range(1_000_000))

        def change(
            path: Path = path, before: bytes = before, numbers: Iterator[int] = numbers
        ) -> None:
            path.write_bytes(before + f"\n# Changed {next(numbers)} times.\n".encode())

        commands = _cached(bench, tree, "changed")
        try:
            in_turn(commands, 1)
            changing = [replace(command, before=change) for command in commands]
            rows += compared(what, changing, bench.runs)
        finally:
            path.write_bytes(before)
    return rows


def _files_to_change(tree: Path) -> dict[str, Path]:
    """Return a file with checkpoints, and one without any word of the prefilter."""
    wanted = {_CHANGED: _APPLIED, _CHANGED_WITHOUT: _WITHOUT_WORDS}
    found: dict[str, Path] = {}
    for path in sorted(tree.rglob("*.py")):
        data = path.read_bytes()
        for what, pattern in wanted.items():
            if what not in found and len(data) > _LEAST and pattern.search(data):
                found[what] = path
    if len(found) < len(wanted):
        raise BenchmarkError(f"{tree} has no suitable file to change: {found}")
    return found


def _cached(bench: Bench, tree: Path, name: str) -> list[Command]:
    """Return runs with empty caches."""
    ours = bench.tool(tree, folder=tree, cache=bench.cache(name))
    return [ours, bench.ruff(tree, bench.cache(f"{name}-ruff"))]


def show_help(bench: Bench) -> list[Row]:
    """Measure the cheapest run."""
    programs, folder = bench.installations.tool, bench.installations.folder
    ours = Command("remat-migrate", (str(programs / "remat-migrate"), "--help"), folder)
    click = Command("import click", (str(programs / "python"), "-c", "import click"), folder)
    return compared("`--help`", [ours, click], bench.runs, Target("ratio", 2.0))


def hook(bench: Bench) -> list[Row]:
    """Check one file as a commit hook does, in a small and a larger project, without a cache."""
    rows: list[Row] = []
    for size in SIZES:
        folder, files = bench.generated(f"hook-{size}", generated.tree(size))
        for what, kind in _HOOKED.items():
            path = next(file.path for file in files if file.kind == kind)
            exits = (1,) if kind == "finding" else (0,)
            command = bench.tool("--force-exclude", path, folder=folder)
            command = replace(command, exits=exits)
            named = f"{what}, in a project of {size:,} files"
            rows += compared(named, [command], bench.runs, _IN_SECONDS[what])
    return rows


CASES: dict[str, Callable[[Bench], list[Row]]] = {
    "cold": cold,
    "warm": warm,
    "changed": changed,
    "help": show_help,
    "hook": hook,
}
