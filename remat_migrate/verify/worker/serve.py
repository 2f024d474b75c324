"""The worker: a process that imports JAX, starts no backend, and forks for each unit.

A fork answers requests about its unit: lines of JSON on a socket. What the code under test prints
goes to a log file. What it raises becomes part of a reply. If it ends the process, the next request
gets another fork.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
from typing import Any, Callable, Dict, NoReturn, Optional

from . import coverage, relocate, shim
from .environment import configuration, effects, stand_ins
from .environment import install as environment
from .failures import describe
from .load import NotFound, load_unit

Reply = Dict[str, Any]

# The module with a function for each request.
_ANSWERS = "%s.answers" % __package__


def main() -> None:
    """Start, and then fork for each unit, until the tool is gone.

    A request with descriptors, a socket for requests and a file for what is printed, forks; the
    reply is the child's number. A request with such a number waits for its end.
    """
    control = socket.socket(fileno=int(os.environ.pop("REMAT_MIGRATE_CHANNEL").partition(",")[0]))
    # Processes that the code under test starts must not keep it open.
    control.set_inheritable(False)
    request = json.loads(_line(control))
    try:
        reply = _start(request)
    except BaseException as error:
        reply = {"error": describe(error)}
    control.sendall((json.dumps(dict(reply, number=request["number"])) + "\n").encode())
    gc.freeze()
    children = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 64, 2)
        if descriptors:
            number = os.fork()
            if not number:
                control.close()
                os.setsid()
                os.dup2(descriptors[1], 1)
                os.dup2(descriptors[1], 2)
                os.close(descriptors[1])
                # Before the project may set flags that this XLA does not know.
                sys.modules["jax"].devices()
                _serve(descriptors[0])
            for descriptor in descriptors:
                os.close(descriptor)
            children.add(number)
        elif message:
            number = int(message)
            children.discard(number)
            number = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        else:
            break
        control.sendall(b"%d\n" % number)
    for child in children:
        os.killpg(child, signal.SIGKILL)


def _line(channel: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        line += channel.recv(1 << 16)
    return line


def _serve(channel: int) -> NoReturn:
    """Answer requests until there are no more."""
    process = os.getpid()
    # The code under test may replace these functions.
    number, end, write, dumps = os.getpid, os._exit, os.write, json.dumps
    with os.fdopen(channel, encoding="utf-8") as requests:
        for line in requests:
            request = json.loads(line)
            reply = dict(_answer(request), number=request["number"])
            if number() != process:
                # The code under test has forked, and this is the child.
                end(0)
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            write(channel, (dumps(reply) + "\n").encode())
    end(0)


def _answer(request: Reply) -> Reply:
    running = False
    reply: Reply
    effects.begin()
    stand_ins.begin()
    try:
        if "qualname" in request:
            # Changes made by importing are part of the project's environment.
            load_unit(request["module"], request["path"], request["qualname"])
            configuration.begin()
            stand_ins.state.is_loaded = True
            running = True
            coverage.begin()
        reply = getattr(sys.modules[_ANSWERS], request["do"])(request)
    except NotFound as error:
        reply = {"missing": str(error)}
    except BaseException as error:
        # SystemExit and KeyboardInterrupt in the code under test are failures, too.
        reply = {"error": describe(error), "running": running}
    if "qualname" in request:
        reply["environment"] = stand_ins.summary()
        reply["refused"] = effects.refusal()
    if running:
        reply["executed"] = coverage.report()
    return reply


def _start(request: Reply) -> Reply:
    sys.path[:0] = request["paths"]
    sys.argv = ["remat-migrate"]
    effects.install(request["scratch"])
    relocate.install(request["original"], request["copy"])
    if request["spots"]:
        coverage.install(request["spots"])
    if request["shim"]:
        shim.install(request["shim"])
    environment.install(request["copy"])
    jax = importlib.import_module("jax")
    configuration.install()
    # What answers need imports JAX, and has to find it as it is installed here.
    importlib.import_module(_ANSWERS)
    for name in request["libraries"]:
        with contextlib.suppress(Exception):  # the unit that imports it reports why
            importlib.import_module(name)
    found = _tried(jax.default_backend)
    return {"jax": jax.__version__} if found is None else {"error": found}


def _tried(function: Callable[[], object]) -> Optional[Dict[str, Any]]:
    """Return how a function fails in a fork of this process; None if it does not."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            function()
        except BaseException as error:
            os.write(write, json.dumps(describe(error)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        failure = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        os._exit(status if status > 0 else 128 - status)
    return dict(json.loads(failure)) if failure else None
