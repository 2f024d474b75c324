"""Share one measuring process between tests, which saves importing JAX for each of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import cli, write_files

from remat_migrate.measure import session
from remat_migrate.verify.session import Side, Worker

# Settings: `plan` does not compile unless a test asks for it.
TRACED = "[tool.remat-migrate.measure]\ncompile = false\n"


@contextmanager
def worker_for(project: Path, scratch: Path, devices: int = 1) -> Iterator[Worker]:
    """Yield a measuring process for the modules in a folder, which starts on its first request."""
    flags = {"jax_num_cpu_devices": devices} if devices > 1 else {}
    side = Side(Path(sys.executable), project, project, (project,), flags=flags, optimized=True)
    worker = Worker(side, scratch, 300.0, 0, session.PROGRAM)
    yield worker
    worker.close()


def share(worker: Worker, patch: pytest.MonkeyPatch) -> None:
    """Let all measurements use this process; it restarts if it ends."""
    patch.setattr(session, "_worker", lambda *_: _Shared(worker))


class _Shared:
    """A worker that outlives the sessions that use it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the module's `MODEL` and `SETTINGS`."""
    folder = tmp_path_factory.mktemp("project")
    settings = getattr(request.module, "SETTINGS", TRACED)
    write_files(folder, {"pyproject.toml": settings, "model.py": request.module.MODEL})
    return folder


@pytest.fixture(scope="module")
def worker(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A measuring process for the folder."""
    with worker_for(folder, tmp_path_factory.mktemp("worker")) as worker:
        yield worker


@pytest.fixture
def project(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, whose functions are all measured in one process."""
    share(worker, monkeypatch)
    return worker.side.copy


def printed(project: Path, *words: str) -> dict[str, Any]:
    """Return the JSON that a command prints, without notes."""
    ran = cli(project, *words, "--output-format", "json")
    assert ran.err == ""
    found: dict[str, Any] = json.loads(ran.out)
    return found


def run(project: Path, command: str, target: str, *more: str) -> dict[str, Any]:
    """Return the JSON that a command prints for a function of `model.py`."""
    return printed(project, command, f"model:{target}", "--args", "model:args", *more)
