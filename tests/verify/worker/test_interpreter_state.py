"""What a call may have changed about its process."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import jax
import pytest
from worker_package import load_worker

interpreter_state = load_worker("interpreter_state")

MOST = sys.maxsize
Do = Callable[[pytest.MonkeyPatch, Path], object]

CHANGES: dict[str, Do] = {
    "the folder": lambda patch, path: patch.chdir(path),
    "os.environ": lambda patch, path: patch.setenv("A_NEW_NAME", "1"),
    "sys.path": lambda patch, path: patch.syspath_prepend(path),
    "sys.meta_path": lambda patch, path: patch.setattr(sys, "meta_path", sys.meta_path[1:]),
    "sys.stdout": lambda patch, path: patch.setattr(sys, "stdout", None),
    "json": lambda patch, path: patch.setattr(json, "dumps", repr),
    "os": lambda patch, path: patch.delattr(os, "makedirs"),
    "builtins": lambda patch, path: patch.setattr("builtins.open", None),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changed(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = interpreter_state.snapshot()
    with monkeypatch.context() as patch:
        CHANGES[what](patch, tmp_path)
        assert what in interpreter_state.changes(before, MOST)
    assert interpreter_state.changes(before, MOST) == []


def test_errors_while_looking_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    before = interpreter_state.snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getcwd", None)
        assert interpreter_state.changes(before, MOST) == [
            "TypeError(\"'NoneType' object is not callable\")"
        ]


def test_settings_of_jax() -> None:
    before = interpreter_state.snapshot()
    was = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", not was)
    try:
        assert interpreter_state.changes(before, MOST) == ["jax.config"]
    finally:
        jax.config.update("jax_enable_x64", was)


def test_threads_and_signals() -> None:
    before = interpreter_state.snapshot()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    was = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        assert interpreter_state.changes(before, MOST) == ["signal handlers", "threads"]
        during = interpreter_state.snapshot()
    finally:
        end.set()
        thread.join()
        signal.signal(signal.SIGUSR1, was)
    assert interpreter_state.changes(before, MOST) == []
    assert "threads" not in interpreter_state.changes(during, MOST)  # one that has ended


def test_memory() -> None:
    before = interpreter_state.snapshot()
    if interpreter_state.resident_bytes():
        assert interpreter_state.changes(before, interpreter_state.resident_bytes() // 2) == [
            "memory"
        ]


def test_changes_by_jax_are_ignored() -> None:
    before = interpreter_state.snapshot()
    jax.jit(jax.grad(lambda x: jax.checkpoint(jax.numpy.sin)(x)))(1.0).block_until_ready()
    assert interpreter_state.changes(before, MOST) == []
