"""Where paths of the project lead to, and what may be written; in commands: ../test_command.py."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest
from worker_package import FOLDER, load_worker

relocate = load_worker("relocate")


@pytest.fixture
def places(tmp_path):
    for folder in ("project/src/pkg", "copy/src/pkg", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    return relocate.Places(str(tmp_path / "project"), str(tmp_path / "copy"))


def test_paths_of_the_project(places, tmp_path):
    def moved(path):
        found = places.moved(str(tmp_path / path))
        return found and os.path.relpath(found, tmp_path)

    assert moved("project") == "copy"
    assert moved("project/src/pkg") == "copy/src/pkg"
    assert moved("project/src/../src/new.py") == "copy/src/new.py"
    assert moved("link/src") == "copy/src"
    assert moved("projects/src") is None
    assert moved("elsewhere") is None
    assert moved("copy/src") is None
    assert moved("project/.venv/lib/python3.9/site-packages") is None
    assert places.moved("project/src") is None  # relative: of the working folder
    assert places.moved(None) is None
    assert places.moved(7) is None


def test_a_project_given_by_a_link(tmp_path):
    for folder in ("project/src", "copy/src"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    places = relocate.Places(str(tmp_path / "link"), str(tmp_path / "copy"))
    for path in ("link/src", "project/src"):
        assert places.moved(str(tmp_path / path)) == str(tmp_path / "copy/src")


def test_a_copy_inside_the_project(tmp_path):
    (tmp_path / "project/.work/copy").mkdir(parents=True)
    places = relocate.Places(str(tmp_path / "project"), str(tmp_path / "project/.work/copy"))
    assert places.moved(str(tmp_path / "project/.work/copy/a.py")) is None
    assert places.moved(str(tmp_path / "project/a.py")) == str(tmp_path / "project/.work/copy/a.py")


def test_the_interpreter_may_be_in_the_project(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "project/env"))
    places = relocate.Places(str(tmp_path / "project"), str(tmp_path / "copy"))
    assert places.moved(str(tmp_path / "project/env/lib")) is None
    assert places.moved(str(tmp_path / "project/environment")) is not None


@pytest.fixture
def guard(places, tmp_path):
    (tmp_path / "copy/out").symlink_to(tmp_path / "project")
    return relocate._Guard(places)


WRITES = [
    ("open", ("project/a.txt", "w", 0)),
    ("open", ("project/a.txt", "r+b", 0)),
    ("open", ("project/a.txt", "x", 0)),
    ("open", ("project/a.txt", None, os.O_WRONLY | os.O_CREAT)),
    ("open", (b"project/a.txt", "a", 0)),
    ("open", ("link/a.txt", "w", 0)),
    ("open", ("copy/out/a.txt", "w", 0)),
    ("os.remove", ("project/a.txt", -1)),
    ("os.rename", ("elsewhere/a", "project/a", -1, -1)),
    ("os.rename", ("project/a", "elsewhere/a", -1, -1)),
    ("os.mkdir", ("project/new", 511, -1)),
    ("os.symlink", ("elsewhere", "project/new", -1)),
    ("os.truncate", ("copy/out/a.txt", 0)),
    ("shutil.rmtree", ("project/src",)),
]
OTHERS = [
    ("open", ("project/a.txt", "r", 0)),
    ("open", ("project/a.txt", "rb", 0)),
    ("open", ("project/a.txt", None, os.O_RDONLY)),
    ("open", (3, "w", 0)),
    ("open", ("copy/a.txt", "w", 0)),
    ("open", ("elsewhere/a.txt", "w", 0)),
    ("os.remove", ("copy/out", -1)),  # the link itself
    ("os.rename", ("copy/a", "elsewhere/a", -1, -1)),
    ("os.symlink", ("project", "copy/new", -1)),
    ("os.listdir", ("project",)),
    ("import", ("a", None, None, None, None)),
]


def absolute(argument, folder):
    if isinstance(argument, bytes):
        return os.fsencode(folder) + b"/" + argument
    return str(folder / argument) if isinstance(argument, str) and len(argument) > 3 else argument


@pytest.mark.parametrize(("event", "arguments"), WRITES, ids=str)
def test_refused(event, arguments, guard, tmp_path, monkeypatch):
    with pytest.raises(PermissionError, match="copy of the project") as told:
        guard(event, tuple(absolute(each, tmp_path) for each in arguments))
    assert str(tmp_path / "project") in str(told.value)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PermissionError):
        guard(event, arguments)


@pytest.mark.parametrize(("event", "arguments"), OTHERS, ids=str)
def test_allowed(event, arguments, guard, tmp_path):
    guard(event, tuple(absolute(each, tmp_path) for each in arguments))


PROGRAM = """
import importlib.util, sys
folder, original, copy = sys.argv[1:]
sys.path.insert(0, folder)
import start
start.load_package()
del sys.path[0]
from remat_migrate_worker import relocate
sys.path.insert(0, original)
relocate.install(original, copy)
relocate.install(original, copy)
"""


def told(tmp_path, program):
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM + textwrap.dedent(program),
            str(FOLDER),
            str(tmp_path / "project"),
            str(tmp_path / "copy"),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_imports(places, tmp_path):
    for root in ("project", "copy"):
        for path in ("one", "src/pkg/__init__", "src/pkg/part", "late/two", "space/name/three"):
            file = tmp_path / root / f"{path}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"where = {root!r}")
    (tmp_path / "project/gone.py").write_text("where = 'project'")
    (tmp_path / "elsewhere/other.py").write_text("where = 'elsewhere'")
    out = told(
        tmp_path,
        """
        import one
        sys.path.append(original + "/src")     # put there by a program, later
        import pkg.part
        sys.path.append(original + "/space")
        import name.three
        sys.path.append(original + "/../elsewhere")
        import other
        spec = importlib.util.spec_from_file_location("two", original + "/late/two.py")
        try:
            import gone
        except ModuleNotFoundError:
            print("gone")
        for module in (one, pkg, pkg.part, name.three, other):
            print(module.where)
        print(len([f for f in sys.meta_path if "remat" in type(f).__module__]))
        import json.tool, remat_migrate_worker.shim
        """,
    )
    assert out == ["gone", "copy", "copy", "copy", "copy", "elsewhere", "1"]


def test_finders_of_editable_installs(places, tmp_path):
    """Their finders name files themselves; compiled modules need not be in the copy."""
    compiled = importlib.util.find_spec("_ctypes").origin or ""
    if not os.path.isabs(compiled):
        pytest.skip("this interpreter has _ctypes built in")
    for root in ("project", "copy"):
        (tmp_path / root / "src/pkg/__init__.py").write_text(f"where = {root!r}")
    (tmp_path / "project/src/gone.py").write_text("")
    suffix = os.path.basename(compiled).removeprefix("_ctypes")
    (tmp_path / "project" / f"_ctypes{suffix}").symlink_to(compiled)
    out = told(
        tmp_path,
        f"""
        class Editable:
            @staticmethod
            def find_spec(name, path=None, target=None):
                files = {{"pkg": "src/pkg/__init__.py", "gone": "src/gone.py"}}
                files["_ctypes"] = "_ctypes{suffix}"
                if name in files:
                    place = original + "/" + files[name]
                    return importlib.util.spec_from_file_location(name, place)
        sys.meta_path.insert(1, Editable)
        import pkg, _ctypes
        print(pkg.where, pkg.__path__ == [copy + "/src/pkg"])
        print(_ctypes.__file__.startswith(original))
        try:
            import gone
        except ModuleNotFoundError:
            print("gone")
        """,
    )
    assert out == ["copy True", "True", "gone"]
