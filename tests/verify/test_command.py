"""Commands run in a copy of a project with recorders."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from worker_package import load_worker

from remat_migrate.errors import VerificationError
from remat_migrate.text import SourceFile
from remat_migrate.verify.command import CommandRun, RecordedCalls, recorded_calls, run_command
from remat_migrate.verify.copies.sides import shim_table
from remat_migrate.verify.processes import ProcessTree
from remat_migrate.verify.recording import instrument
from remat_migrate.verify.session import Side

pytestmark = pytest.mark.slow

pickling = load_worker("transfer.pickling")

BLOCKS = """
import jax
import jax.numpy as jnp

@jax.checkpoint
def block(x):
    return jnp.sin(x) * 2.0

def loss(x):
    return block(x).sum()
"""

TESTS = """
import jax, jax.numpy as jnp, numpy as np
from trainer.blocks import block, loss

def test_values():
    assert np.allclose(block(jnp.zeros(3)), 0)

def test_transformed():
    x = jnp.arange(3.0)
    jax.jit(jax.grad(loss))(x)
    jax.vmap(block)(jnp.ones((2, 3)))
    jax.lax.scan(lambda c, x: (c, block(x)), 0.0, jnp.ones((2, 3)) * 7)
"""


class Project:
    """A project with a copy of it, in which units are recorded."""

    def __init__(self, folder: Path) -> None:
        self.original = folder / "project"
        self.copy = folder / "copy" / "project"
        self.record = folder / "record"
        self.write("trainer/__init__.py", "")
        self.write("trainer/blocks.py", BLOCKS, "block")

    def write(self, path: str, text: str, *units: str) -> None:
        """Write a file to the project, and with recorders to the copy."""
        text = textwrap.dedent(text)
        recorded = instrument(SourceFile(Path(path), text), units, path)
        for root, content in ((self.original, text), (self.copy, recorded)):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)

    def run(self, command: str, shim: str = shim_table(), **options: object) -> CommandRun:
        side = Side(Path(sys.executable), self.original, self.copy, (), shim)
        given = {
            "timeout": 120.0,
            "memory": 8 << 30,
            "record": True,
            "stop": threading.Event(),
            **options,
        }
        return run_command(command, side, self.record, **given)

    def calls(self, unit: str = "trainer/blocks.py::block") -> RecordedCalls:
        return recorded_calls(self.record).get(unit, RecordedCalls())

    def files(self, unit: str = "trainer/blocks.py::block") -> list[str]:
        return [case["file"] for case in self.calls(unit).cases]

    def first_arguments(self, unit: str = "trainer/blocks.py::block"):
        return [pickling.load(file)["args"][0] for file in self.files(unit)]


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def printed(run: CommandRun) -> str:
    assert run.status == 0, run.output_tail
    return run.output_tail.strip()


def test_pytest(project):
    project.write("tests/test_blocks.py", TESTS)
    project.write("conftest.py", "")
    run = project.run("pytest -q tests/test_blocks.py -p no:cacheprovider")
    assert "2 passed" in printed(run)
    assert [x.shape for x in project.first_arguments()] == [(3,)]
    assert project.calls().tests == ["tests/test_blocks.py::test_values"]
    assert not list(project.original.rglob("__pycache__"))
    assert not list(project.copy.rglob("__pycache__"))


def test_a_script_and_a_module(project):
    project.write(
        "train.py",
        """
        import sys
        import jax.numpy as jnp
        from trainer.blocks import block

        class Config:
            def __init__(self, width):
                self.width = width

        def step(config, x):
            return block(x) * config.width

        if __name__ == "__main__":
            step(Config(2), jnp.ones(2))
            print(sys.argv[1:], sys.path[0])
        """,
        "step",
    )
    run = project.run("python train.py --steps 3")
    assert printed(run) == f"['--steps', '3'] {project.copy}"
    (file,) = project.files("train.py::step")
    assert b"train" in Path(file).read_bytes()
    assert b"__main__" not in Path(file).read_bytes()
    shutil.rmtree(project.record)
    printed(project.run("python -m train"))
    (file,) = project.files("train.py::step")
    assert b"train" in Path(file).read_bytes()


def test_the_old_meaning(project):
    project.write("main.py", "import jax, trainer.blocks\nprint(jax.checkpoint(abs) is abs)")
    assert printed(project.run("python main.py")) == "True"
    assert printed(project.run("python main.py", shim="")) == "False"


def test_platform_and_environment(project, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{project.original}{os.pathsep}/nowhere")
    monkeypatch.setenv("REMAT_MIGRATE_SHIM", "of another run")
    project.write(
        "sub/show.py",
        """
        import json, os, sys, tempfile
        import jax
        print(json.dumps({
            "backend": jax.default_backend(),
            "folder": os.getcwd(),
            "temporary": tempfile.gettempdir(),
            "argument": sys.argv[1],
            "hash": hash("text"),
            "stdin": sys.stdin.read(),
            "path": sys.path,
        }))
        """,
    )
    command = f"cd sub && python show.py {project.original}/data"
    shown = json.loads(printed(project.run(command)))
    again = json.loads(printed(project.run(command)))
    assert shown["backend"] == "cpu"
    assert shown["folder"] == str(project.copy / "sub")
    assert not Path(shown["temporary"]).exists()
    assert shown["argument"] == f"{project.original}/data"  # it does not exist in the copy
    assert shown["hash"] == again["hash"]
    assert shown["stdin"] == ""
    assert str(project.copy) in shown["path"]
    assert str(project.original) not in shown["path"]


@pytest.mark.parametrize("sets", ["PYTHONPATH=. python", "env PYTHONPATH=$PWD python"])
def test_command_that_sets_pythonpath(project, sets):
    project.write("sub/main.py", "from trainer.blocks import block\nblock(1.0)")
    printed(project.run(f"{sets} sub/main.py"))
    assert project.calls().called


def test_child_processes_are_recorded(project):
    project.write(
        "main.py",
        """
        import multiprocessing, os, subprocess, sys
        import trainer.blocks as blocks

        def work(n):
            return float(blocks.block(float(n)))

        if __name__ == "__main__":
            program = "import trainer.blocks as b; b.block(5.0)"
            subprocess.run([sys.executable, "-c", program], check=True)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2]))
        """,
    )
    printed(project.run("python main.py"))
    assert sorted(project.first_arguments()) == [1.0, 2.0, 5.0]
    assert len({Path(file).parent for file in project.files()}) == 2


def test_editable_install(project, tmp_path):
    """With a finder, as setuptools installs it."""
    site = tmp_path / "site"
    site.mkdir()
    shutil.move(project.original / "trainer", project.original / "src/trainer")
    shutil.move(project.copy / "trainer", project.copy / "src/trainer")
    finder = textwrap.dedent(f"""
        import sys
        from importlib.util import spec_from_file_location
        MAPPING = {{"trainer": {str(project.original / "src/trainer")!r}}}
        class Finder:
            @classmethod
            def find_spec(cls, name, path=None, target=None):
                if name in MAPPING:
                    return spec_from_file_location(name, MAPPING[name] + "/__init__.py")
        sys.meta_path.append(Finder)
    """)
    (site / "sitecustomize.py").write_text(finder + "print('the hidden one ran')\n")
    program = "import trainer.blocks as b; b.block(1.0); print(b.__file__)"
    command = f"PYTHONPATH={site} python -c {shlex.quote(program)}"
    out = printed(project.run(command)).splitlines()
    assert out == ["the hidden one ran", str(project.copy / "src/trainer/blocks.py")]
    assert project.calls().called


def test_writes_to_the_project_are_refused(project):
    project.write(
        "main.py",
        f"""
        import os, pathlib, shutil, sqlite3
        root = pathlib.Path({str(project.original)!r})
        attempts = [
            lambda: (root / "new.txt").write_text("x"),
            lambda: open(root / "main.py", "a"),
            lambda: os.open(root / "main.py", os.O_RDWR),
            lambda: os.remove(root / "main.py"),
            lambda: os.rename(root / "main.py", root / "b.py"),
            lambda: os.mkdir(root / "results"),
            lambda: shutil.rmtree(root / "trainer"),
            lambda: os.symlink("a", root / "link"),
            lambda: sqlite3.connect(str(root / "db")),
            lambda: os.utime(root / "main.py"),
            lambda: open("linked/new.txt", "w"),
        ]
        refused = 0
        for attempt in attempts:
            try:
                attempt()
            except PermissionError as error:
                assert "copy of the project" in str(error), error
                refused += 1
        print(refused, len(attempts))
        (root / "main.py").read_text()
        pathlib.Path("new.txt").write_text("x")
        os.makedirs("results/deep")
        os.unlink("linked")
        """,
    )
    (project.copy / "linked").symlink_to(project.original)
    before = {p: p.stat().st_mtime_ns for p in project.original.rglob("*")}
    assert printed(project.run("python main.py")) == "11 11"
    assert {p: p.stat().st_mtime_ns for p in project.original.rglob("*")} == before
    assert (project.copy / "new.txt").exists()


def test_unseeded_numpy_is_reproducible(project):
    program = "import numpy as np; print(np.random.rand())"
    command = f"python -c {shlex.quote(program)}"
    assert printed(project.run(command)) == printed(project.run(command))


def test_exit_status(project):
    run = project.run("echo out; echo err >&2; exit 3")
    assert (run.status, run.output_tail) == (3, "out\nerr\n")
    assert run.cause is None
    assert project.run("kill -9 $$").status == -9
    assert project.run("no_such_program_here").status == 127
    with pytest.raises(VerificationError, match="cannot be run"):
        project.run("true\0")


def alive(path: Path) -> bool:
    number = int(path.read_text())
    tree = ProcessTree(number)
    return tree.alive()


def test_hanging_command_is_stopped_with_its_children(project):
    project.write(
        "main.py",
        """
        import os, signal, subprocess, sys, time
        from trainer.blocks import block
        block(1.0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        open("child", "w").write(str(child.pid))
        print("started", flush=True)
        time.sleep(60)
        """,
    )
    started = time.monotonic()
    run = project.run("python main.py; echo after", timeout=6.0)
    assert run.status is None
    assert run.cause == "time"
    assert run.output_tail == "started\n"
    assert time.monotonic() - started < 12
    assert not alive(project.copy / "child")
    assert project.first_arguments() == [1.0]  # what it had is kept


def test_stop_from_another_thread(project):
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    run = project.run("echo begun; sleep 60", stop=stop)
    assert run.status is None
    assert run.cause == "stop"
    assert run.seconds < 30
    assert run.output_tail == "begun\n"


def test_background_processes_are_stopped(project):
    printed(project.run("sleep 60 & echo $! > child"))
    assert not alive(project.copy / "child")


def test_memory_limit(project):
    program = (
        "import time\nheld = []\nwhile True:\n    held.append(bytearray(8 << 20)); time.sleep(.005)"
    )
    run = project.run(f"python -c {shlex.quote(program)}", memory=300 << 20, timeout=60.0)
    assert run.cause == "memory"
    assert run.status is None


def test_command_that_is_not_recorded(project):
    program = "from trainer.blocks import block; block(1.0)"
    printed(project.run(f"python -c {shlex.quote(program)}", record=False))
    assert not project.calls().called
