"""Calls that nobody asked for act only inside of their process and of the run's folder."""

import logging
import multiprocessing
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from worker_package import load_worker

effects = load_worker("environment.effects")


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    effects.install(str(folder))
    effects.begin()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.chdir(folder)
    yield folder
    effects.begin()


def starts_in_another_interpreter():
    process = multiprocessing.get_context("spawn").Process(target=print)
    process.start()


ACTIONS = {
    "touch": ("starts a program (touch)", lambda f: subprocess.run(["touch", f / "a"])),
    "shell": ("starts a program (touch)", lambda f: os.system(f"touch {f / 'a'}")),
    "shell of subprocess": (
        "starts a program (docker)",
        lambda f: subprocess.run("docker push a", shell=True),
    ),
    "exec": ("starts a program (true)", lambda f: os.execv("/bin/true", ["true"])),
    "spawn": ("starts a program (true)", lambda f: os.posix_spawn("/bin/true", ["true"], {})),
    "fork": ("forks a process", lambda f: os.fork() or os._exit(0)),
    "multiprocessing": (
        f"starts a program ({Path(sys.executable).name})",
        lambda f: starts_in_another_interpreter(),
    ),
    "kill": (f"sends a signal to process {os.getpid()}", lambda f: os.kill(os.getpid(), 15)),
    "connect": (
        "opens a network connection (localhost)",
        lambda f: socket.create_connection(("localhost", 9)),
    ),
    "bind": ("opens a network connection ()", lambda f: socket.socket().bind(("", 0))),
    "send": (
        "opens a network connection (localhost)",
        lambda f: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("localhost", 9)),
    ),
    "write": ("writes to {}/a", lambda f: (f / "a").write_text("")),
    "low-level write": ("writes to {}/a", lambda f: os.open(f / "a", os.O_CREAT | os.O_RDWR)),
    "through a link": ("writes to {}/a", lambda f: Path("link/a").write_text("")),
    "mkdir": ("writes to {}/a", lambda f: (f / "a").mkdir()),
    "remove": ("writes to {}/kept", lambda f: (f / "kept").unlink()),
    "rename": ("writes to {}/kept", lambda f: (f / "kept").rename("kept")),
    "rmtree": ("writes to {}", lambda f: shutil.rmtree(f)),
    "below a descriptor": (
        "writes to {}/kept",
        lambda f: os.unlink("kept", dir_fd=os.open(f, os.O_RDONLY)),
    ),
    "chmod": ("writes to {}/kept", lambda f: (f / "kept").chmod(0)),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_effects_are_refused_and_noted(scratch, tmp_path, name):
    said, act = ACTIONS[name]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (scratch / "link").symlink_to(outside)
    with effects.refused(), pytest.raises(effects.Refused):
        act(outside)
    assert effects.refusal().startswith(f"it {said.format(outside)}, which is allowed only in")
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "x"


def test_what_stays_inside_is_allowed(scratch, tmp_path, capfd):
    (tmp_path / "read").write_text("x")
    with effects.refused():
        print("hello")
        logging.warning("hello")
        os.makedirs("outputs/inner", exist_ok=True)
        os.makedirs(tmp_path, exist_ok=True)
        Path("outputs/a").write_text("x")
        Path("outputs/a").rename("outputs/b")
        shutil.rmtree("outputs")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a").touch()
            os.chdir("/")
        os.chdir(scratch)
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
        with open(os.devnull, "w") as null:
            print("x", file=null)
        assert (tmp_path / "read").read_text() == "x"
        # Progress bars make locks, for which Python starts a process of its own.
        multiprocessing.get_context("spawn").Lock()
        platform.processor()
        one, _ = socket.socketpair()
        one.sendmsg([b"x"])
    assert effects.refusal() == ""
    assert "hello" in capfd.readouterr().out


def test_modules_that_are_imported_late_may_do_what_they_do(scratch, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "late_module.py").write_text(
        textwrap.dedent(
            f"""
            import subprocess
            found = subprocess.run(["echo", "found"], capture_output=True, text=True).stdout
            open({str(tmp_path / "cache")!r}, "w").close()

            def starts():
                subprocess.run(["echo"])
            """
        )
    )
    with effects.refused():
        import late_module

        assert late_module.found == "found\n"
        with pytest.raises(effects.Refused):
            late_module.starts()
    assert (tmp_path / "cache").exists()


def test_calls_that_the_user_asked_for_are_free(scratch):
    with effects.refused(unless=True):
        assert subprocess.run(["true"]).returncode == 0
    with effects.refused(), pytest.raises(effects.Refused):
        subprocess.run(["true"])
    assert subprocess.run(["true"]).returncode == 0
