"""The channel of a worker: limits hold, and replies are checked, whatever the worker writes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from remat_migrate.verify.session import Side, Worker, WorkerEnded, environment_of

# Answers the first request, and then does what a test says.
PROGRAM = """\
import os, time
read, write = map(int, os.environ["REMAT_MIGRATE_CHANNEL"].split(","))
os.read(read, 1 << 16)
os.write(write, b'{"jax": "0", "number": 1}\\n')
time.sleep(0.2)
BODY
"""


def worker(folder: Path, body: str) -> Worker:
    (folder / "program.py").write_text(PROGRAM.replace("BODY", body))
    side = Side(Path(sys.executable), folder, folder, ())
    return Worker(side, folder / "log", 1.0, 0, (folder / "program.py",))


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("while True: os.write(write, b'x'); time.sleep(0.01)", 1),
        ("while True: os.write(write, b'x' * 65536)", 1),
        ("time.sleep(60)", 1_000_000),
    ],
)
def test_limit_of_time(tmp_path: Path, body: str, size: int) -> None:
    asked = worker(tmp_path, body)
    asked.start()
    start = time.monotonic()
    with pytest.raises(WorkerEnded, match=r"took longer than 1 s|reply that is too long"):
        asked.ask(do="x" * size)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    "junk", [b"junk\n", b"\xff\n", b"3\n", b"[" * 100_000 + b"\n", b"\n", b"{}\n"]
)
def test_lines_that_are_no_replies(tmp_path: Path, junk: bytes) -> None:
    asked = worker(tmp_path, f"os.read(read, 99); os.write(write, {junk!r}); time.sleep(60)")
    with pytest.raises(WorkerEnded):
        asked.ask(do="x")
    assert not asked.is_running


def test_waiting_for_a_cpu_is_not_counted(tmp_path: Path) -> None:
    pin = "import os, time; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])\n"
    compute = "until = time.process_time() + 0.6\nwhile time.process_time() < until: pass\n"
    reply = "os.write(write, b'{\"number\": 2}' + bytes([10]))\ntime.sleep(60)\n"
    asked = worker(tmp_path, pin + compute + reply)
    others = [subprocess.Popen([sys.executable, "-c", f"{pin}while True: pass"]) for _ in range(4)]
    try:
        start = time.monotonic()
        assert asked.ask(do="x") == {}
        assert time.monotonic() - start > 1.0
    finally:
        for other in others:
            other.kill()
            other.wait()
        asked.close()


def test_workers_share_an_accelerator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "XLA_PYTHON_CLIENT_PREALLOCATE"
    monkeypatch.delenv(name, raising=False)
    sides = [Side(Path("python"), tmp_path, tmp_path, (), platform=p) for p in ("cpu", "cuda")]
    assert [environment_of(side, tmp_path).get(name) for side in sides] == [None, "false"]
    monkeypatch.setenv(name, "true")
    assert name not in environment_of(sides[1], tmp_path)
