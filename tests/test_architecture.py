"""The architecture: which way imports go, what a run loads, how large files and folders may be."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "remat_migrate"

# Packages and top-level modules in the order in which values pass through them: each may import
# itself and those before it.
LAYERS = (
    "errors",
    "console",
    "text",
    "settings",
    "discovery",
    "libraries",
    "prefilter",
    "codemod",
    "analysis",
    "suppressions",
    "rule",
    "rewrite",
    "api",
    "engine",
    "verify",
    "measure",
    "plan",
    "report",
    "sweep",
    "cache",
    "lsp",
    "cli",
    "__main__",
)
# What every rule is written with.
MOST_API_NAMES = 15
# The same within the largest package.
ANALYSIS_LAYERS = (
    "fixed_point",
    "names",
    "values",
    "needs",
    "files",
    "project",
    "sites",
    "statics",
    "placement",
    "policies",
    "flag",
    "version_guards",
    "loading",
    "__init__",
)

# Each costs more at import than a whole run may take.
NEVER_IN_ANALYSIS = ("jax", "numpy", "libcst.matchers", "libcst.codemod", "libcst.metadata")

MODULES = sorted(
    path.relative_to(ROOT)
    for folder in (PACKAGE, ROOT / "rules")
    for path in folder.rglob("*.py")
    if "__pycache__" not in path.parts
)
TESTS = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))


def module_name(path: Path) -> str:
    """The dotted name of a file of the project."""
    parts = ["remat_migrate_rules" if path.parts[0] == "rules" else "remat_migrate"]
    parts += path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path): path for path in MODULES}


def imports_of(path: Path) -> set[str]:
    """The modules of the project that a file imports anywhere, for type checkers as well."""
    name = module_name(path)
    package = (name if path.name == "__init__.py" else name.rpartition(".")[0]).split(".")
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            found |= {
                full if (full := f"{start}.{alias.name}") in NAMES else start
                for alias in node.names
            }
    return (found & NAMES.keys()) - {name}


GRAPH = {name: imports_of(path) for name, path in NAMES.items()}


def layer(name: str, depth: int = 1) -> str:
    """The part of a dotted name that says in which layer a module is."""
    parts = name.split(".")
    return parts[depth] if len(parts) > depth else "__init__"


def test_imports_follow_the_layers():
    wrong = []
    for name, imported in GRAPH.items():
        for other in sorted(imported - {"remat_migrate"}):
            if name.startswith("remat_migrate_rules"):
                allowed = other.startswith(("remat_migrate_rules", "remat_migrate.api"))
            else:
                allowed = LAYERS.index(layer(other)) <= LAYERS.index(layer(name))
            if allowed and layer(name) == layer(other) == "analysis":
                allowed = ANALYSIS_LAYERS.index(layer(other, 2)) <= ANALYSIS_LAYERS.index(
                    layer(name, 2)
                )
            if not allowed:
                wrong.append(f"{name} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_the_api_is_small_and_documented():
    imported = ast.parse((PACKAGE / "api" / "__init__.py").read_text()).body
    names = {a.name for n in imported if isinstance(n, ast.ImportFrom) for a in n.names}
    assert len(names) <= MOST_API_NAMES
    guide = (ROOT / "docs" / "how-to" / "write-a-rule.md").read_text()
    subjects = {path.stem for path in (PACKAGE / "api").glob("[a-z]*.py")}
    assert [name for name in sorted(names | subjects) if f"`{name}" not in guide] == []


def test_no_import_cycles():
    try:
        tuple(TopologicalSorter(GRAPH).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


PRIVATE = ("jax._src", "jax.interpreters", "jaxlib")
KNOW_PRIVATE = ("measure/worker/internals.py", "verify/worker/jax_internals.py")


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """The modules that a file imports, or looks up by a name in quotes."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                yield name
            case ast.Call(
                func=ast.Attribute(attr="import_module" | "get"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name


def test_private_modules_of_jax_are_imported_in_one_place():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name.startswith(PRIVATE) for name in imported_modules(ast.parse(path.read_text())))
    }
    assert {path for path in found if not path.startswith(KNOW_PRIVATE)} == set()
    assert KNOW_PRIVATE[1] in found


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


def test_check_loads_neither_jax_nor_slow_parts(tmp_path):
    project = shutil.copytree(ROOT / "fixtures" / "old_trainer", tmp_path / "old_trainer")
    loaded, printed = loaded_by("check", "--no-cache", str(project))
    assert "RMT101" in printed
    assert loaded.isdisjoint(NEVER_IN_ANALYSIS)
    assert "remat_migrate.analysis" in loaded


def test_nothing_to_fix_loads_no_libcst(tmp_path):
    module = shutil.copy(ROOT / "fixtures/behaviour/untouched/already_new.py", tmp_path)
    loaded, printed = loaded_by("check", "--no-cache", str(module))
    assert "RMT" not in printed
    assert loaded.isdisjoint({*NEVER_IN_ANALYSIS, "libcst"})


def test_help_loads_almost_nothing():
    loaded, printed = loaded_by("--help")
    assert "--fix" in printed
    assert loaded.isdisjoint(
        {
            *NEVER_IN_ANALYSIS,
            "libcst",
            "remat_migrate.analysis",
            "remat_migrate.engine.analyse",
        }
    )


# Calls that write, or that open what is written to.
_WRITING_MODULES = ("os", "shutil", "tempfile")
_WRITING_FUNCTIONS = re.compile(
    r"mkdir|makedirs|replace|renames?|remove|removedirs|unlink|rmdir|rmtree|(sym)?link|truncate"
    r"|chmod|chown|utime|setxattr|mkfifo|copy\w*|move|mk[sd]temp|\w*Temporary\w*"
)
_WRITING_METHODS = re.compile(
    r"write_text|write_bytes|mkdir|touch|symlink_to|hardlink_to|unlink|rename|rmdir|chmod"
)
_WRITING_OWN = re.compile("Folder|open_folder|open_journal|open_named|write_named")
_WRITING_MODE = re.compile(r"[rbt]*[wax+][rwaxbt+]*")


def writes(text: str) -> set[str]:
    """The calls in a module that write files."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module in _WRITING_MODULES:
            found |= {a.name for a in node.names if _WRITING_FUNCTIONS.fullmatch(a.name)}
        if not isinstance(node, ast.Call) or "os.devnull" in map(ast.unparse, node.args):
            continue
        owner, _, name = ast.unparse(node.func).rpartition(".")
        values = (*node.args, *(keyword.value for keyword in node.keywords))
        modes = [str(value.value) for value in values if isinstance(value, ast.Constant)]
        if (
            (owner in _WRITING_MODULES and _WRITING_FUNCTIONS.fullmatch(name))
            or (owner and _WRITING_METHODS.fullmatch(name))
            or _WRITING_OWN.fullmatch(name)
            or (name in ("open", "fdopen", "ZipFile") and any(map(_WRITING_MODE.fullmatch, modes)))
            or (name == "open" and re.search("O_(WRONLY|RDWR|CREAT)", text))
        ):
            found.add(name)
    return found


@pytest.mark.parametrize(
    "code",
    [
        "path.write_text('')",
        "open(path, 'w')",
        "path.open(mode='ab')",
        "os.open(path, os.O_WRONLY)",
        "from shutil import rmtree",
        "os.replace(a, b)",
        "zipfile.ZipFile(path, 'w')",
    ],
)
def test_calls_that_write_are_recognized(code):
    assert writes(code)
    assert not writes("open(path, 'rb'); os.open(path, os.O_RDONLY); text.replace('w', '')")


def test_every_place_that_writes_is_listed():
    table = (ROOT / "SECURITY.md").read_text().partition("## Where files are written")[2]
    rows = [line.split("|") for line in table.partition("\n## ")[0].splitlines() if "`" in line]
    listed = {name for row in rows if len(row) > 3 for name in re.findall(r"`(.+?)`", row[2])}
    found = {
        path.relative_to("remat_migrate").as_posix()
        for path in MODULES
        if path.parts[0] == "remat_migrate"
        and "worker" not in path.parts
        and writes((ROOT / path).read_text())
    }
    assert listed == found
    for test in {name for row in rows if len(row) > 3 for name in re.findall(r"`(.+?)`", row[3])}:
        file, _, name = test.partition("::")
        assert re.search(rf"^(def|class) {name}\b", (ROOT / "tests" / file).read_text(), re.M), test


def test_nothing_about_a_machine():
    """No absolute path of someone's folders in what is published."""
    for path in (*MODULES, *TESTS, *(p.relative_to(ROOT) for p in ROOT.glob("*.md"))):
        if path != Path("tests/test_architecture.py"):
            assert not re.search(r"/(?:home|root|Users|work)/\w", (ROOT / path).read_text()), path
