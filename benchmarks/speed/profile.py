"""Where the time of a run goes: group sampled stacks into phases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from .cases import Bench
from .figures import markdown
from .processes import BenchmarkError, Command, spend

SAMPLER = Path(__file__).with_name("sampler.py")
# Number of functions in the second table.
_MOST = 20

Frame = tuple[str, str]

PARSING, IMPORTS, REST = "parsing", "imports", "the rest"


@dataclass(frozen=True, slots=True)
class Profile:
    """CPU seconds of the mean run.

    Attributes:
        cpu: total.
        phases: seconds of each phase, which add up to the total.
        functions: seconds of each function itself, including its calls into C.
    """

    cpu: float
    phases: dict[str, float]
    functions: dict[Frame, float]

    def content(self) -> dict[str, Any]:
        """Return the profile as JSON."""
        return {
            "cpu": self.cpu,
            "phases": self.phases,
            "functions": [
                {"file": file, "function": name, "cpu": seconds}
                for (file, name), seconds in self.functions.items()
            ],
        }


def profiled(bench: Bench) -> Profile:
    """Profile cold runs over the whole tree, in one process."""
    tree = bench.installations.tree
    programs, folder = bench.installations.tool, bench.installations.folder
    report = folder / "profile.json"
    arguments = ("check", "--no-cache", str(tree))
    command = Command(
        "remat-migrate",
        (str(programs / "python"), str(SAMPLER), str(report), *arguments),
        tree,
    )
    total, phases, functions = 0.0, Counter[str](), Counter[Frame]()
    for _ in range(bench.runs):
        report.unlink(missing_ok=True)
        spent = spend(command)
        if not report.exists():
            raise BenchmarkError(f"{report}: no profile was written")
        found = json.loads(report.read_text())
        total += spent.cpu
        phases["start of the interpreter"] += found["before"]
        phases["git"] += found["children"]
        phases["end of the interpreter"] += (
            spent.cpu - found["children"] - found["ended"] + found["unsampled"]
        )
        for frames, seconds in found["stacks"]:
            stack = [(file, name) for file, name in frames]
            phases[phase(stack)] += seconds
            file, name = stack[-1]
            functions["/".join(PurePath(file).parts[-2:]), name] += seconds
    return Profile(
        total / bench.runs,
        {name: seconds / bench.runs for name, seconds in phases.most_common()},
        {frame: seconds / bench.runs for frame, seconds in functions.most_common(_MOST)},
    )


def phase(stack: Sequence[Frame]) -> str:
    """Return the phase of a stack, outermost function first: a package, a rule, or another one."""
    if any(file.startswith("<frozen importlib") for file, _ in stack):
        return IMPORTS
    rules = [file for file, _ in stack if _inside("remat_migrate_rules", file)]
    for file, name in reversed(stack):
        if PurePath(file).name == "ast.py" and name == "parse":
            return PARSING
        if _inside("remat_migrate_rules", file):
            # A helper module of the rules counts for the rule that calls it.
            return f"rule {PurePath(rules[0]).stem.replace('_', '-')}"
        if inside := _inside("remat_migrate", file):
            path = PurePath(inside)
            return path.stem if path.parent == PurePath() else path.parent.as_posix()
    return REST


def phases_table(profile: Profile) -> str:
    """Return the phases as a Markdown table, the longest first."""
    rows = [
        [name, f"{seconds * 1e3:,.0f} ms", f"{seconds / profile.cpu:.1%}"]
        for name, seconds in profile.phases.items()
    ]
    rows.append(["**all**", f"{profile.cpu * 1e3:,.0f} ms", "100.0%"])
    return markdown(["phase", "CPU", "share"], rows)


def functions_table(profile: Profile) -> str:
    """Return the functions with the most time of their own as a Markdown table."""
    rows = [
        [f"`{file}` `{name}`", f"{seconds * 1e3:,.0f} ms", f"{seconds / profile.cpu:.1%}"]
        for (file, name), seconds in profile.functions.items()
    ]
    return markdown(["function itself, with its calls into C", "CPU", "share"], rows)


def _inside(package: str, file: str) -> str:
    """Return the path of a file within an installed package; empty if it is outside."""
    parts = PurePath(file).parts
    if package not in parts:
        return ""
    # A parent folder may have the same name as the package.
    last = len(parts) - 1 - parts[::-1].index(package)
    return "/".join(parts[last + 1 :])
