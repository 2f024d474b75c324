"""How the house is built: which way imports go, what a run loads, how large a file may be."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "remat_migrate"

# The rooms of the house in the order in which values go through them: each may import those before
# it. A module or package at the top of remat_migrate/ is a room.
ROOMS = (
    "errors",
    "atomic",
    "progress",
    "outputs",
    "source",
    "codemod",
    "plaintext",
    "globs",
    "settings",
    "installed",
    "model",
    "rule",
    "rewrite",
    "suppress",
    "roots",
    "discover",
    "survey",
    "deep_stack",
    "engine",
    "fingerprint",
    "baseline",
    "glance",
    "cache",
    "integrity",
    "apply",
    "entries",
    "playback",
    "journal",
    "verify",
    "measure",
    "plan",
    "report",
    "bar",
    "run",
    "check",
    "lsp",
    "options",
    "execution",
    "beginning",
    "cli",
    "__main__",
)
# What rules may be written against: the last room they can import is this one.
RULES_SEE_UP_TO = ROOMS.index("suppress")

# Each costs more at import than a whole run may take.
NEVER_IN_ANALYSIS = ("jax", "numpy", "libcst.matchers", "libcst.codemod", "libcst.metadata")
MOST_LINES = 450

MODULES = sorted(
    path.relative_to(ROOT)
    for folder in (PACKAGE, ROOT / "rules")
    for path in folder.rglob("*.py")
    if "__pycache__" not in path.parts
)
TESTS = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))


def room_of(module: str) -> str | None:
    """The room of an absolute module name; None outside remat_migrate or for the package itself."""
    first, _, rest = module.partition(".")
    return (rest.partition(".")[0] or None) if first == "remat_migrate" else None


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a file imports when it runs: imports for type checkers do not count."""
    package = list(path.with_suffix("").parts[:-1])
    rooms = set()
    for node in running(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{start}.{alias.name}" for alias in node.names]
        else:
            continue
        rooms |= {room for name in names if (room := room_of(name))}
    return rooms & known_rooms()


def running(node: ast.AST) -> list[ast.AST]:
    """All nodes below one, without the bodies of `if TYPE_CHECKING:`."""
    nodes = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        nodes += [child, *running(child)]
    return nodes


def known_rooms() -> set[str]:
    return {
        path.parts[1].removesuffix(".py") for path in MODULES if path.parts[0] == "remat_migrate"
    }


def test_every_room_has_its_place():
    assert known_rooms() - {"__init__"} <= set(ROOMS), "put the new room into ROOMS"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_go_one_way(path):
    if path.parts[0] == "rules":
        allowed = ROOMS[: RULES_SEE_UP_TO + 1]
    elif path.parts[1] == "__init__.py":
        allowed = ()
    else:
        allowed = ROOMS[: ROOMS.index(path.parts[1].removesuffix(".py")) + 1]
    assert imported_rooms(path) <= set(allowed)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_names_and_sizes(path):
    assert not re.search("util|helper|manager|misc|common", str(path))
    lines = len((ROOT / path).read_text().splitlines())
    assert lines <= MOST_LINES, f"{lines} lines: two things"


def test_click_only_in_the_command_line():
    users = [path for path in MODULES if "click" in top_level_imports(ROOT / path)]
    assert users == [
        Path("remat_migrate/cli.py"),
        Path("remat_migrate/execution.py"),
        Path("remat_migrate/options.py"),
    ]


def top_level_imports(path: Path) -> set[str]:
    imports = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imports |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports.add(node.module.partition(".")[0])
    return imports


def test_engine_knows_no_rule():
    assert [
        p
        for p in MODULES
        if p.parts[0] == "remat_migrate" and "remat_migrate_rules" in (ROOT / p).read_text()
    ] == []


def test_rule_is_in_the_file_of_its_name():
    rules = importlib.import_module("remat_migrate_rules").RULES
    for rule in rules:
        assert rule.__module__ == f"remat_migrate_rules.{rule.name.replace('-', '_')}"
        assert re.fullmatch(r"RMT\d{3}", rule.code)
    assert len({rule.code for rule in rules}) == len(rules)
    files = {path.stem for path in MODULES if path.parts[0] == "rules"}
    assert {rule.name.replace("-", "_") for rule in rules} <= files


def test_packages_are_all_installed():
    """Listed one by one in pyproject.toml, because rules/ is installed under another name."""
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    )
    found = {".".join(path.parts[:-1]) for path in MODULES}
    assert listed == {re.sub(r"^rules", "remat_migrate_rules", name) for name in found}


def loaded_by(*arguments: str) -> tuple[set[str], str]:
    """The modules that a run of the command line has imported at its end, and what it printed."""
    program = (
        "import json, sys\n"
        "from remat_migrate.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True
    )
    return set(json.loads(run.stderr.splitlines()[-1])), run.stdout


def test_check_loads_neither_jax_nor_slow_parts():
    loaded, printed = loaded_by("check", "--jobs", "1", "--no-cache", "fixtures/old_trainer")
    assert "RMT101" in printed
    assert loaded.isdisjoint(NEVER_IN_ANALYSIS)
    assert "remat_migrate.model" in loaded


def test_nothing_to_fix_loads_no_libcst():
    loaded, printed = loaded_by(
        "check", "--jobs", "1", "--no-cache", "fixtures/behaviour/untouched/already_new.py"
    )
    assert "RMT" not in printed
    assert loaded.isdisjoint({*NEVER_IN_ANALYSIS, "libcst", "tree_sitter"})


def test_a_fix_of_comments_loads_no_libcst(tmp_path):
    (tmp_path / "model.py").write_text("import jax\n\nf = jax.checkpoint(g)  # noqa: RMT101\n")
    loaded, printed = loaded_by("check", "--jobs", "1", "--no-cache", "--diff", str(tmp_path))
    assert "+f = jax.checkpoint(g)\n" in printed
    assert loaded.isdisjoint({*NEVER_IN_ANALYSIS, "libcst", "tree_sitter"})


def test_help_loads_almost_nothing():
    loaded, printed = loaded_by("--help")
    assert "--fix" in printed
    assert loaded.isdisjoint(
        {*NEVER_IN_ANALYSIS, "libcst", "tree_sitter", "remat_migrate.model", "remat_migrate.engine"}
    )


def test_nothing_about_a_machine():
    """No absolute path of someone's folders in what is published."""
    for path in (*MODULES, *TESTS, *(p.relative_to(ROOT) for p in ROOT.glob("*.md"))):
        if path != Path("tests/test_house.py"):
            assert not re.search(r"/(?:home|root|Users|work)/\w", (ROOT / path).read_text()), path
