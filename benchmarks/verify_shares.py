"""Count the units of a project that `--fix --verify` proves, without and with a command.

    python benchmarks/verify_shares.py PROJECT "COMMAND" [--python PATH]

    python benchmarks/verify_shares.py fixtures/old_trainer "pytest -q tests"

The command is set as `command = "..."` in `[tool.remat-migrate.verify]`. Only counts Python files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path


def main() -> None:
    """Verify twice, and print the shares."""
    parser = argparse.ArgumentParser(description="Count the units that --verify proves.")
    parser.add_argument("project", type=Path)
    parser.add_argument("command")
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    given = parser.parse_args()
    command = f"[tool.remat-migrate.verify]\ncommand = {json.dumps(given.command)}\n"
    for name, settings in (("no configuration", ""), (given.command, command)):
        with tempfile.TemporaryDirectory() as scratch:
            project = Path(scratch) / given.project.resolve().name
            ignored = shutil.ignore_patterns("__pycache__", ".git")
            shutil.copytree(given.project, project, ignore=ignored)
            with (project / "pyproject.toml").open("a") as file:
                file.write(settings)
            print(f"{name}: {share(project, given.python)}", flush=True)


def share(project: Path, python: Path) -> str:
    """Return the share of equal units, and the details of the others."""
    options = ("--fix", "--verify", "--output-format", "json", "--python", str(python))
    ran = subprocess.run(
        [sys.executable, "-m", "remat_migrate", *options, str(project)],
        capture_output=True,
        text=True,
    )
    if not ran.stdout:
        sys.exit(ran.stderr)
    units = [v for v in json.loads(ran.stdout)["verdicts"] if v["path"].endswith(".py")]
    equal = [v for v in units if v["verdict"] == "equal"]
    inputs = Counter(v["inputs"] for v in equal)
    rest = [f"{v['unit']} {v['verdict']}: {v['detail']}" for v in units if v not in equal]
    kinds = ", ".join(f"{count} from {kind} inputs" for kind, count in inputs.most_common())
    return "\n    ".join([f"{len(equal)} of {len(units)} units proved, {kinds}", *rest])


if __name__ == "__main__":
    main()
