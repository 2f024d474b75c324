"""The cases of `--only`, one function each."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from . import generated
from .editor import editor
from .figures import Figure, Row, Target
from .generated import Kind, Written
from .installations import Installations, copy_as_repository, count_lines, make_repository
from .processes import BenchmarkError, Command, Spent, in_turn, peak_of_all

# The words of the prefilter.
WORDS = "remat|checkpoint|NEW_CHECKPOINT|REMAT_BARRIER|RMT"
SIZES = (100, 1_000, 10_000)
_APPLIED = re.compile(rb"\b(?:jax|nn)\.(?:remat|checkpoint)\(")
_WITHOUT_WORDS = re.compile(rb"\A(?!.*(?:%s))" % WORDS.encode(), re.DOTALL)
# Smallest file to edit, in bytes.
_LEAST = 4_000
# Sites and files of the trees to fix.
FIXED = ((240, 10), (240, 240))
# torchfix and Fixit need minutes for larger trees; torchfix skips files without `torch`.
PARTS = {"torchfix": "transformers/pipelines", "fixit": "flax/linen"}

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
        sizes: sizes of the generated trees.
        skipped: tools to skip.
    """

    installations: Installations
    runs: int
    sizes: tuple[int, ...] = SIZES
    skipped: frozenset[str] = frozenset()

    def tool(self, *arguments: str | Path, folder: Path, cache: Path | None = None) -> Command:
        """Return a run of remat-migrate, with a cache only if one is given."""
        program = self.installations.tool / "remat-migrate"
        given = (*map(str, arguments), *(() if cache else ("--no-cache",)))
        variables = {"REMAT_MIGRATE_CACHE_DIR": str(cache)} if cache else {}
        return Command("remat-migrate", (str(program), "check", *given), folder, variables)

    def ruff(self, tree: Path, cache: Path | None = None) -> list[Command]:
        """Return a run of ruff over a tree with one migration rule; none if it is skipped."""
        if "ruff" in self.skipped:
            return []
        chosen = ("check", "--isolated", "--select", "NPY201")
        cached = ("--cache-dir", str(cache)) if cache else ("--no-cache",)
        program = str(self.installations.peer("ruff"))
        return [Command("ruff", (program, *chosen, *cached, str(tree)), tree)]

    def grep(self, tree: Path) -> list[Command]:
        """Return a search for the words of the prefilter; none if it is skipped."""
        if "grep" in self.skipped:
            return []
        chosen = ("-rE", "--include=*.py", "--exclude-dir=.git", WORDS)
        return [Command("grep", (str(self.installations.grep), *chosen, str(tree)), tree)]

    def generated(self, name: str, files: Iterator[Written]) -> tuple[Path, Sequence[Written]]:
        """Generate a tree, and return its folder and files."""
        folder = self.installations.folder / "generated" / name
        shutil.rmtree(folder, ignore_errors=True)
        written = generated.write(files, folder)
        make_repository(folder)
        return folder, written

    def cache(self, name: str) -> Path:
        """Return an empty cache folder."""
        folder = self.installations.folder / "caches" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def compared(
    case: str, what: str, commands: list[Command], runs: int, target: Target | None = None
) -> list[Row]:
    """Alternate runs of commands, and compare the first with each other one.

    A target ratio applies to ruff, or to the only other command.
    """
    ours, *others = in_turn(commands, runs)
    if not others:
        absolute = target is not None and target.of != "ratio"
        return [Row(case, what, ours, target=target if absolute else None)]
    rows = []
    for command, theirs in zip(commands[1:], others, strict=True):
        aimed = command.name == "ruff" or len(others) == 1
        rows.append(Row(case, what, ours, command.name, theirs, target if aimed else None))
    return rows


def cold(bench: Bench) -> list[Row | Figure]:
    """Check the whole tree without a cache."""
    tree = bench.installations.tree
    commands = [bench.tool(tree, folder=tree), *bench.ruff(tree), *bench.grep(tree)]
    rows = compared("cold", "T, cold", commands, bench.runs, Target("ratio", 0.6))
    lines = count_lines(tree)
    per_second = tuple(lines / spent.cpu for spent in rows[0].ours)
    files = sum(1 for _ in tree.rglob("*.py"))
    note = f"T: {files:,} Python files, {lines:,} lines"
    return [*rows, Figure("cold", "lines of T per CPU second", per_second, "", 0, note)]


def warm(bench: Bench) -> list[Row | Figure]:
    """Check the whole tree with a cache, unchanged since the last run."""
    tree = bench.installations.tree
    commands = _cached(bench, tree, "warm")
    in_turn(commands, 1)
    return [*compared("warm", "T, warm", commands, bench.runs, Target("s", 0.25))]


def changed(bench: Bench) -> list[Row | Figure]:
    """Check the whole tree with a cache, with one file changed before each run."""
    tree = bench.installations.tree
    rows: list[Row | Figure] = []
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
            rows += compared("changed", what, changing, bench.runs)
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
    return [ours, *bench.ruff(tree, bench.cache(f"{name}-ruff"))]


def show_help(bench: Bench) -> list[Row | Figure]:
    """Measure the cheapest run."""
    programs, folder = bench.installations.tool, bench.installations.folder
    ours = Command("remat-migrate", (str(programs / "remat-migrate"), "--help"), folder)
    click = Command("import click", (str(programs / "python"), "-c", "import click"), folder)
    return [*compared("help", "`--help`", [ours, click], bench.runs, Target("ratio", 2.0))]


def hook(bench: Bench) -> list[Row | Figure]:
    """Check one file as a commit hook does, in a small and a larger project, without a cache."""
    rows: list[Row | Figure] = []
    for size in bench.sizes[:2]:
        folder, files = bench.generated(f"hook-{size}", generated.tree(size))
        for what, kind in _HOOKED.items():
            path = next(file.path for file in files if file.kind == kind)
            exits = (1,) if kind == "finding" else (0,)
            command = bench.tool("--force-exclude", path, folder=folder)
            command = replace(command, exits=exits)
            named = f"{what}, in a project of {size:,} files"
            rows += compared("hook", named, [command], bench.runs, _IN_SECONDS[what])
    return rows


def server(bench: Bench) -> list[Row | Figure]:
    """Edit a file with checkpoints in an editor, below a folder of the tree."""
    folder = bench.installations.tree / "flax"
    path = _files_to_change(folder)[_CHANGED]
    text = path.read_text()
    servers = {"remat-migrate": bench.installations.tool / "remat-migrate"}
    if "ruff" not in bench.skipped:
        servers["ruff"] = bench.installations.peer("ruff")
    commands = [Command(name, (str(file), "server"), folder) for name, file in servers.items()]
    with ExitStack() as stack:
        editors = [stack.enter_context(editor(command, path)) for command in commands]
        edits = (f"x{number} = {number}\n{text}" for number in range(bench.runs))
        rounds = [[one.edit(edited) for one in editors] for edited in edits]
    ours, *others = (tuple(column) for column in zip(*rounds, strict=True))
    what = "an edit in an editor, in `flax` of T"
    target = Target("s", 0.1)
    if not others:
        return [Row("server", what, ours, target=target)]
    return [Row("server", what, ours, "ruff", others[0], target)]


def fix(bench: Bench) -> list[Row | Figure]:
    """Measure the cost of fixes: the time of `--fix` minus that of a check, per site and file."""
    rows: list[Row | Figure] = []
    for sites, count in FIXED:
        source, _ = bench.generated(f"fix-{sites}-{count}", generated.fixable(sites, count))
        folder = bench.installations.folder / "generated" / "fixed"

        def again(source: Path = source, folder: Path = folder) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(source, folder)

        check = replace(bench.tool(folder, folder=source), before=again, exits=(1,))
        mend = replace(bench.tool("--fix", folder, folder=source), before=again, exits=(0,))
        again()
        _verify_sites(sites, check)
        mended, checked = in_turn([mend, check], bench.runs)
        _verify_sites(0, replace(bench.tool(folder, folder=source), exits=(0,)), after=mend)
        of = f"{sites} sites in {count} files"
        rows.append(Row("fix", f"`--fix`, {of}", mended, "its check", checked))
        for each, number in (("site", sites), ("file", count)):
            values = _differences(mended, checked, number)
            rows.append(Figure("fix", f"`--fix`, per {each}, {of}", values, "ms", 2))
    return rows


def _differences(
    mended: tuple[Spent, ...], checked: tuple[Spent, ...], number: int
) -> tuple[float, ...]:
    """Return the differences in milliseconds per item, pair by pair."""
    pairs = zip(mended, checked, strict=True)
    return tuple((fixed.cpu - found.cpu) * 1e3 / number for fixed, found in pairs)


def _verify_sites(sites: int, check: Command, after: Command | None = None) -> None:
    """Verify that a check finds all generated sites, and none after the fix."""
    if after is not None:
        if after.before is not None:
            after.before()
        subprocess.run(
            after.arguments, cwd=after.folder, env=after.environment, capture_output=True
        )
    arguments = [*check.arguments, "--output-format", "json"]
    done = subprocess.run(
        arguments, cwd=check.folder, env=check.environment, capture_output=True, text=True
    )
    try:
        findings = json.loads(done.stdout)["findings"]
    except ValueError:
        raise BenchmarkError(f"{arguments} ended with {done.returncode}:\n{done.stderr}") from None
    safe = [it for it in findings if it["fix"] is not None and it["fix"]["safety"] == "safe"]
    if not len(safe) == len(findings) == sites:
        raise BenchmarkError(
            f"{len(findings)} findings, {len(safe)} with a safe fix: expected {sites}"
        )


def memory(bench: Bench) -> list[Row | Figure]:
    """Measure the peak memory of a cold run over the whole tree, all processes together."""
    tree = bench.installations.tree
    commands = [bench.tool(tree, folder=tree), *bench.ruff(tree)]
    rows: list[Row | Figure] = []
    for command in commands:
        peaks = tuple(float(peak_of_all(command)) / 1e6 for _ in range(bench.runs))
        what = f"memory on T, cold, all processes together: {command.name}"
        target = Target("MB", 300) if command.name == "remat-migrate" else None
        rows.append(Figure("memory", what, peaks, "MB", 0, target=target))
    return rows


def growth(bench: Bench) -> list[Row | Figure]:
    """Check trees of several sizes without a cache, for the cost of each further file."""
    rows: list[Row | Figure] = []
    taken: dict[int, tuple[Spent, ...]] = {}
    for size in sorted(set(bench.sizes)):
        folder, _ = bench.generated(f"growth-{size}", generated.tree(size))
        commands = [bench.tool(folder, folder=folder), *bench.ruff(folder)]
        what = f"{size:,} generated files ({count_lines(folder):,} lines), cold"
        found = compared("growth", what, commands, bench.runs)
        rows += found
        taken[size] = found[0].ours
    for less, more in itertools.pairwise(taken):
        pairs = zip(taken[less], taken[more], strict=True)
        each = tuple((large.cpu - small.cpu) * 1e3 / (more - less) for small, large in pairs)
        what = f"each further file, from {less:,} to {more:,}"
        rows.append(Figure("growth", what, each, "ms", 2))
    return rows


def torchfix(bench: Bench) -> list[Row | Figure]:
    """Compare with torchfix on a part of the tree."""
    return _part(bench, "torchfix")


def fixit(bench: Bench) -> list[Row | Figure]:
    """Compare with Fixit on a part of the tree."""
    return _part(bench, "fixit", "lint")


def _part(bench: Bench, name: str, *options: str) -> list[Row | Figure]:
    source = bench.installations.tree / PARTS[name]
    tree = copy_as_repository(source, bench.installations.folder / "part")
    lines = count_lines(tree)
    arguments = (str(bench.installations.peer(name)), *options, str(tree))
    commands = [bench.tool(tree, folder=tree), Command(name, arguments, tree)]
    what = f"`{PARTS[name]}` of T ({lines:,} lines), cold"
    (row,) = compared(name, what, commands, bench.runs)
    rows: list[Row | Figure] = [row]
    for command, runs in zip(commands, (row.ours, row.theirs), strict=True):
        values = tuple(lines / spent.cpu for spent in runs)
        rows.append(Figure(name, f"lines per CPU second: {command.name}", values, "", 0, what))
    return rows


CASES: dict[str, Callable[[Bench], list[Row | Figure]]] = {
    "cold": cold,
    "warm": warm,
    "changed": changed,
    "help": show_help,
    "hook": hook,
    "server": server,
    "fix": fix,
    "memory": memory,
    "growth": growth,
    "torchfix": torchfix,
    "fixit": fixit,
}
