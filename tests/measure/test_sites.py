"""Sites are mapped to their source lines, and interception does not change the program."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from measuring import worker_for
from support import cli, write_files

from remat_migrate.measure.worker.records import SiteMeasurement
from remat_migrate.verify.session import Worker

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "fixtures" / "measured" / "sites"
LIBRARIES = {"linen": "flax", "nnx": "flax", "haiku": "haiku", "equinox": "equinox"}
FILES = [
    pytest.param(
        path,
        id=path.stem,
        marks=pytest.mark.skipif(
            importlib.util.find_spec(LIBRARIES.get(path.stem.partition("_")[0], "jax")) is None,
            reason="the library is not installed",
        ),
    )
    for path in sorted(FOLDER.glob("*.py"))
]
COMMENT = re.compile(r"# (site|call): ([^#]*)")
# Takes gradients itself.
WITHOUT_GRAD = {"own_gradient"}


@pytest.fixture(scope="module")
def worker(tmp_path_factory) -> Iterator[Worker]:
    """One process for all files: earlier measurements must not affect later ones."""
    with worker_for(FOLDER, tmp_path_factory.mktemp("worker")) as worker:
        yield worker


@pytest.fixture(scope="module")
def reported(tmp_path_factory) -> set[tuple[str, int, str]]:
    """The sites that `report` lists, as file name, line and Api."""
    folder = tmp_path_factory.mktemp("project")
    write_files(folder, {"pyproject.toml": ""})
    for path in FOLDER.glob("*.py"):
        shutil.copy(path, folder)
    ran = cli(folder, "report", "--output-format", "json", "--exit-zero")
    sites = json.loads(ran.out)["sites"]
    return {(site["path"], site["line"], site["api"]) for site in sites}


@pytest.mark.parametrize("path", FILES)
def test_sites(path, worker, reported):
    module = {"module": path.stem, "path": str(path)}
    worker.ask(do="load", **module, qualname="loss")
    worker.ask(do="arguments", function={**module, "qualname": "args"}, cases=None, name="")
    by = "none" if path.stem in WITHOUT_GRAD else "value_and_grad"
    reply = worker.ask(do="measure", by=by, argnums=[0], has_aux=False)
    assert "sites" in reply, reply
    sites = list(map(SiteMeasurement._make, reply["sites"]))
    assert {site.path for site in sites} == {str(path)}
    found = [f"{site.line}: {site.function}*{site.applications}" for site in sites]
    assert sorted(found) == sorted(commented(path, "site"))
    called = {
        f"{line}: {site.function}"
        for site in sites
        for of, line, _ in site.calls
        if of == str(path)
    }
    assert sorted(called) == sorted(commented(path, "call"))
    assert {(path.name, site.line, site.api) for site in sites} <= reported


def commented(path: Path, kind: str) -> list[str]:
    """Return the names in the comments of one kind, each with its line."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for of_kind, names in COMMENT.findall(line):
            if of_kind == kind:
                found += [f"{number}: {name.strip()}" for name in names.split(",")]
    return found


TRACE = """
import importlib, json, re, sys
sys.path[:0] = sys.argv[2:3]
if sys.argv[1] == "intercepted":
    from remat_migrate.measure.worker import interception, libraries
    interception.install()
    libraries.install()
import jax

found = {}
for name in sys.argv[3:]:
    module = importlib.import_module(name)
    inputs = module.args()
    of = module.loss if name == "own_gradient" else jax.value_and_grad(module.loss)
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(inputs)]
    program = re.sub("0x[0-9a-f]+", "", str(jax.make_jaxpr(of)(*inputs)))
    found[name] = {"parameters": names, "program": program}
print(json.dumps(found))
"""


def _traced(how: str, names: list[str]) -> dict[str, dict[str, object]]:
    command = [sys.executable, "-c", TRACE, how, str(FOLDER), *names]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, dict[str, object]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_interception_changes_nothing():
    """The parameter names and the jaxpr of each file are the same without and with interception."""
    names = [one.values[0].stem for one in FILES if not one.marks[0].args[0]]
    plain, intercepted = _traced("plain", names), _traced("intercepted", names)
    for name in names:
        assert intercepted[name]["parameters"] == plain[name]["parameters"], name
        assert intercepted[name]["program"] == plain[name]["program"], name
        assert re.search("remat|checkpoint", str(plain[name]["program"])), name
