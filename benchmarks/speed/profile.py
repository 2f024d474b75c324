"""Where the time of a run goes: stacks into phases."""

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
# How many functions the second table lists.
_MOST = 20

Frame = tuple[str, str]

PARSING, IMPORTS, REST = "parsing", "imports", "the rest"
# From the innermost function outwards, the first that lies in one of these decides. What is below
# a rule's file and in none of them is the rule's own.
PLACES: dict[str, tuple[str, ...]] = {
    "listing files": ("discovery/discover.py", "discovery/globs.py", "discovery/survey.py"),
    "settings": ("settings.py",),
    "cache": ("cache/",),
    "reading and byte search": (
        "prefilter/single_files.py",
        "analysis/files.py",
        "analysis/project.py",
        "analysis/loading.py",
        "prefilter/code.py",
        "text/source_file.py",
        "prefilter/words.py",
        "text/notebook.py",
        "text/markdown_cells.py",
    ),
    "index and names": (
        "analysis/names/flow.py",
        "analysis/names/module.py",
        "analysis/sites/framework_modules.py",
        "analysis/sites/references.py",
        "analysis/names/scopes.py",
        "codemod/tree/tree_index.py",
    ),
    "sites": (
        "analysis/sites/site.py",
        "analysis/sites/wrappers.py",
        "analysis/values/application.py",
    ),
    "uses of sites, and what Python must know": (
        "analysis/needs/dependence.py",
        "analysis/needs/needs.py",
        "analysis/statics/static_arguments.py",
        "analysis/statics/statics.py",
        "analysis/sites/call_search.py",
        "analysis/sites/uses.py",
        "analysis/values/name_search.py",
    ),
    "settings in files of other kinds": ("formats/",),
    "suppressions": ("suppressions.py",),
    "report": ("report/", "cli/check.py", "engine/fingerprint.py", "engine/baseline.py"),
    "engine": ("engine/analyse.py", "engine/request.py"),
    "command line": (
        "cli/progress_bar.py",
        "cli/commands.py",
        "cli/execution.py",
        "cli/options.py",
        "report/outputs.py",
    ),
}


@dataclass(frozen=True, slots=True)
class Profile:
    """Seconds of processors, as shares of the mean run.

    Attributes:
        cpu: of the whole run.
        phases: by name; their sum is `cpu`.
        functions: what was charged to a function itself, with what it calls in C.
    """

    cpu: float
    phases: dict[str, float]
    functions: dict[Frame, float]

    def content(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "cpu": self.cpu,
            "phases": self.phases,
            "functions": [
                {"file": file, "function": name, "cpu": seconds}
                for (file, name), seconds in self.functions.items()
            ],
        }


def profiled(bench: Bench) -> Profile:
    """The profile of the cold run over the whole tree, in one process; the mean of the runs."""
    tree = bench.installations.tree
    programs, folder = bench.installations.tool, bench.installations.folder
    report = folder / "profile.json"
    arguments = ("check", "--jobs", "1", "--no-cache", str(tree))
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
            raise BenchmarkError(f"no profile was written to {report}")
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
    """What a run was doing; the stack from the outermost function to the innermost."""
    if any(file.startswith("<frozen importlib") for file, _ in stack):
        return IMPORTS
    rules = [file for file, _ in stack if _below("remat_migrate_rules", file)]
    for file, name in reversed(stack):
        if PurePath(file).name == "ast.py" and name == "parse":
            return PARSING
        if _below("remat_migrate_rules", file):
            # A rule may ask another module of the rules: it is the rule's time.
            return f"rule {PurePath(rules[0]).stem.replace('_', '-')}"
        inside = _below("remat_migrate", file)
        for named, places in PLACES.items():
            if inside and any(_is_in(inside, place) for place in places):
                return named
    return REST


def phases_table(profile: Profile) -> str:
    """The phases as Markdown, the longest first."""
    rows = [
        [name, f"{seconds * 1e3:,.0f} ms", f"{seconds / profile.cpu:.1%}"]
        for name, seconds in profile.phases.items()
    ]
    rows.append(["**all**", f"{profile.cpu * 1e3:,.0f} ms", "100.0%"])
    return markdown(["phase", "CPU", "share"], rows)


def functions_table(profile: Profile) -> str:
    """The functions that took longest themselves, as Markdown."""
    rows = [
        [f"`{file}` `{name}`", f"{seconds * 1e3:,.0f} ms", f"{seconds / profile.cpu:.1%}"]
        for (file, name), seconds in profile.functions.items()
    ]
    return markdown(["function itself, with what it calls in C", "CPU", "share"], rows)


def _below(package: str, file: str) -> str:
    """A file's path within an installed package; empty if it is not in it."""
    parts = PurePath(file).parts
    if package not in parts:
        return ""
    # The last one: a folder above may be called as the package is.
    at = len(parts) - 1 - parts[::-1].index(package)
    return "/".join(parts[at + 1 :])


def _is_in(inside: str, place: str) -> bool:
    return inside.startswith(place) if place.endswith("/") else inside == place
