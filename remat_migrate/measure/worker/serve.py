"""The measuring process: reads requests as lines of JSON from one pipe, replies on another.

Compiled programs, alternatives and jaxprs are separate requests, so that running out of memory on
one of them does not lose the earlier results.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys
import traceback
from typing import Any

from ...verify.worker.failures import describe

Reply = dict[str, Any]


def main() -> None:
    """Answer requests until the pipe is closed."""
    incoming, outgoing = (int(n) for n in os.environ.pop("REMAT_MIGRATE_CHANNEL").split(","))
    for descriptor in (incoming, outgoing):
        os.set_inheritable(descriptor, False)
    with os.fdopen(incoming, encoding="utf-8") as requests:
        for line in requests:
            request = json.loads(line)
            number = request.pop("number")
            reply = dict(_answer(request), number=number)
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os.write(outgoing, (json.dumps(reply, default=_encoded) + "\n").encode())


def _answer(request: Reply) -> Reply:
    try:
        name = request.pop("do")
        if name == "start":
            return _start(request)
        from . import answers

        reply: Reply = getattr(answers, name)(**request)
        return reply
    except BaseException as error:
        # Includes SystemExit and KeyboardInterrupt, which the user's code may raise.
        if type(error).__name__ in ("NotFound", "Unfit", "Unsupported"):
            return {"unfit": str(error)}
        return {"error": error}


def _encoded(value: Any) -> Any:
    """Return a path as text, and an exception with the line of the user's code that raised it."""
    if not isinstance(value, BaseException):
        return os.fspath(value)
    at: list[Any] | None = None
    with contextlib.suppress(ImportError):  # JAX may not be installed
        from .interception import is_library

        for frame, line in traceback.walk_tb(value.__traceback__):
            if not is_library(frame.f_code.co_filename):
                at = [frame.f_code.co_filename, line]
    return dict(describe(value), at=at)


def _start(request: Reply) -> Reply:
    sys.path[:0] = request["paths"]
    sys.argv = ["remat-migrate"]
    jax = importlib.import_module("jax")
    from . import differentiation, interception, libraries
    from .instruments import compiled
    from .internals import Unsupported, internals

    for name, value in request["flags"].items():
        if not internals().set_flag(name, value):
            raise Unsupported(f"jax {jax.__version__} has no flag {name}")
    internals().exclude(interception.OWN_FOLDER)
    interception.install()
    differentiation.install()
    libraries.install()
    compiled.choose_scheduler(jax.__version__)
    # Traces allocate many objects that live long; collecting them takes a quarter of the time.
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)
    return {"jax": jax.__version__, "backend": jax.default_backend()}
