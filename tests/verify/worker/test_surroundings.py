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

surroundings = load_worker("surroundings")

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
    before = surroundings.look()
    with monkeypatch.context() as patch:
        CHANGES[what](patch, tmp_path)
        assert what in surroundings.changed(before, MOST)
    assert surroundings.changed(before, MOST) == []


def test_what_it_takes_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    before = surroundings.look()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getcwd", None)
        assert surroundings.changed(before, MOST) == [
            "TypeError(\"'NoneType' object is not callable\")"
        ]


def test_settings_of_jax() -> None:
    before = surroundings.look()
    was = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", not was)
    try:
        assert surroundings.changed(before, MOST) == ["jax.config"]
    finally:
        jax.config.update("jax_enable_x64", was)


def test_threads_and_signals() -> None:
    before = surroundings.look()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    was = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        assert surroundings.changed(before, MOST) == ["signal handlers", "threads"]
        during = surroundings.look()
    finally:
        end.set()
        thread.join()
        signal.signal(signal.SIGUSR1, was)
    assert surroundings.changed(before, MOST) == []
    assert "threads" not in surroundings.changed(during, MOST)  # one that has ended


def test_memory() -> None:
    before = surroundings.look()
    if surroundings.resident():
        assert surroundings.changed(before, surroundings.resident() // 2) == ["memory"]


def test_what_jax_does_by_itself_is_no_change() -> None:
    before = surroundings.look()
    jax.jit(jax.grad(lambda x: jax.checkpoint(jax.numpy.sin)(x)))(1.0).block_until_ready()
    assert surroundings.changed(before, MOST) == []
