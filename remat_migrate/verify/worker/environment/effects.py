"""Calls that verification makes up must not act outside of their process.

Nobody chose the arguments of such a call, and it runs several times. While they are `refused`,
attempts to start a program, use the network, signal a process, or change a file outside of the
run's folder raise `Refused`, and are noted, because the code may handle that. The copies of the
project are in that folder, so code may write there. Imports may do what they do. Python raises
events only for what goes through its own modules.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ..relocate import written_paths

_SHELLS = frozenset(["sh", "bash"])
_PROGRAM = "starts a program (%s)"
_CONNECTION = "opens a network connection (%s)"

# Events of `sys.audit`: what happens, and which argument names the other end.
_EVENTS: Dict[str, Tuple[str, int]] = {
    "_posixsubprocess.fork_exec": (_PROGRAM, 0),
    "os.exec": (_PROGRAM, 0),
    "os.posix_spawn": (_PROGRAM, 0),
    "os.spawn": (_PROGRAM, 1),
    "os.system": (_PROGRAM, 0),
    "pty.spawn": (_PROGRAM, 0),
    "subprocess.Popen": (_PROGRAM, 1),
    "os.fork": ("forks a process", -1),
    "os.forkpty": ("forks a process", -1),
    "os.kill": ("sends a signal to process %s", 0),
    "os.killpg": ("sends a signal to process group %s", 0),
    "socket.bind": (_CONNECTION, 1),
    "socket.connect": (_CONNECTION, 1),
    "socket.getaddrinfo": (_CONNECTION, 0),
    "socket.gethostbyname": (_CONNECTION, 0),
    "socket.sendmsg": (_CONNECTION, 1),
    "socket.sendto": (_CONNECTION, 1),
}
# Modules through which programs are started, and those that only start some that they know.
_STARTING = frozenset(["multiprocessing.util", "os", "subprocess", __name__])
_KNOWN = frozenset(["ctypes.util", "multiprocessing.resource_tracker", "platform", "uuid"])


class Refused(Exception):
    """The code acts outside of its process in a call that nobody asked for."""


class _State:
    """Attributes:
    depth: how many calls of `refused` are active.
    folder: where files may be changed.
    effects: what was refused since `begin`.
    """

    depth = 0
    folder = ""
    effects: List[str] = []


def install(folder: str) -> None:
    """Prepare to refuse effects outside of this process and of a folder, where Python can."""
    if not _State.folder:
        sys.addaudithook(_refuse)
        import _posixsubprocess

        # `multiprocessing` starts processes by it, without an event.
        _posixsubprocess.fork_exec = _audited(_posixsubprocess.fork_exec)
    _State.folder = os.path.realpath(folder)
    # Python remembers it, whatever the code does to the environment.
    tempfile.gettempdir()


@contextlib.contextmanager
def refused(unless: Any = False) -> Iterator[None]:
    """Refuse effects meanwhile, unless the user asked for the call."""
    _State.depth += not unless
    try:
        yield
    finally:
        _State.depth -= not unless


def begin() -> None:
    """Forget what was refused."""
    _State.effects.clear()


def refusal() -> str:
    """Return what was refused first, as a sentence; empty if nothing was."""
    rest = "which is allowed only in declared cases, commands, and tests"
    return "it %s, %s" % (_State.effects[0], rest) if _State.effects else ""


def _audited(fork_exec: Callable[..., int]) -> Callable[..., int]:
    def audited(*args: Any) -> int:
        sys.audit("_posixsubprocess.fork_exec", *args[:1])
        return fork_exec(*args)

    return audited


def _refuse(event: str, args: Tuple[Any, ...]) -> None:
    if not _State.depth:
        return
    effect = ""
    if event in _EVENTS:
        text, place = _EVENTS[event]
        other = args[place] if place >= 0 else ""
        if other is not None:  # else a message to the other end of a pair of sockets
            effect = text.replace("%s", _named(other))
    else:
        for path in written_paths(event, args):
            if not (_may_write(path) or (event == "os.mkdir" and os.path.isdir(path))):
                effect = "writes to %s" % path
    if effect and not _is_free(sys._getframe(1)):
        _State.effects.append(effect)
        raise Refused(refusal())


def _may_write(path: str) -> bool:
    cache = getattr(sys.modules["jax"].config, "jax_compilation_cache_dir", None)
    folders = [_State.folder, *([os.path.realpath(cache)] if cache else [])]
    return path == os.devnull or any(
        (path + os.sep).startswith(folder + os.sep) for folder in folders
    )


def _named(value: Any) -> str:
    """Return the program of a command, or the host of an address."""
    if isinstance(value, (list, tuple)):
        words = [_text(word) for word in value]
        if words[1:2] != ["-c"] or os.path.basename(words[0]) not in _SHELLS:
            return os.path.basename(words[0])
        value = words[2]
    return os.path.basename(_text(value).partition(" ")[0])


def _text(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else str(value)


def _is_free(frame: Optional[FrameType]) -> bool:
    """Return whether a module is being imported, or a library starts a program of its own."""
    starting = True
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        name = str(frame.f_globals.get("__name__", ""))
        if starting and name not in _STARTING:
            if name in _KNOWN or name.partition(".")[0] == "jax":
                return True
            starting = False
        frame = frame.f_back
    return False
