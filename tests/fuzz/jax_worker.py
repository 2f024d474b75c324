"""Run programs under JAX, one after the other, in a process of its own.

    python jax_worker.py MEANING [TABLE]

MEANING is `new`: checkpoints are those of JAX; `old`: each is the function that it wraps; `mixed`:
those with `concrete=True` are, others are those of JAX, so that code that has always failed does so
here. TABLE is the one of `remat_migrate.verify.worker.shim.install`.

Requests are lines of JSON on stdin, `{"files": {path: text}, "only": names}`: the modules of one
program. `main.py` is imported. Each of its functions `use_*` has no parameters and returns a
pytree. The response is a line of JSON: for each function its program, or its leaves where it cannot
be traced, or its error, or, if importing the program failed, `{"failed": text}`. If `only` is not
null, it names the functions to return the leaves of.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import json
import signal
import sys
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# A program takes some hundredths of a second; one that hangs must not block the others.
SECONDS = 60


class Modules(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """The modules of one program, imported from memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files: dict[str, tuple[str, bool]] = {}
        for path, text in files.items():
            name = path.removesuffix(".py").replace("/", ".")
            self._files[name.removesuffix(".__init__")] = text, name.endswith(".__init__")

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._files:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=self._files[name][1])

    def get_source(self, name: str) -> str:
        return self._files[name][0]

    def is_package(self, name: str) -> bool:
        return self._files[name][1]

    @contextlib.contextmanager
    def importable(self) -> Iterator[None]:
        """Make the program's modules importable in this context."""
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            for name in self._files:
                sys.modules.pop(name, None)


def ran(files: Mapping[str, str], only: Sequence[str] | None) -> dict[str, Any]:
    """Return each function's `{"program": ...}`, `{"leaves": ...}` or `{"failed": ...}`."""
    modules = Modules(files)
    with modules.importable(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = importlib.import_module("main")
        except Exception as error:
            return {"failed": _told(error)}
        uses = {name: value for name, value in vars(module).items() if name.startswith("use_")}
        if only is not None:
            return {"uses": {name: _used(use) for name, use in uses.items() if name in only}}
        return {"uses": {name: _traced(use) or _used(use) for name, use in uses.items()}}


def _traced(function: Any) -> dict[str, Any]:
    """Return the program of a function; nothing if it needs values, or fails."""
    import jax

    from remat_migrate.verify.worker.program.trace import programs

    structure: list[str] = []

    def leaves(_: list[Any]) -> list[Any]:
        found, tree = jax.tree_util.tree_flatten(function())
        structure[:] = [str(tree)]
        return [jax.numpy.asarray(leaf) for leaf in found]

    signal.alarm(SECONDS)
    try:
        forward = programs(leaves, [], [], lambda source: "")["forward"]
    finally:
        signal.alarm(0)
    if "outputs" not in forward:
        return {}
    return {"program": [structure, forward["types"], forward["outputs"]]}


def _used(function: Any) -> dict[str, Any]:
    import jax

    signal.alarm(SECONDS)
    try:
        found, _ = jax.tree_util.tree_flatten_with_path(function())
        return {"leaves": [[jax.tree_util.keystr(at), *_leaf(value)] for at, value in found]}
    except Exception as error:
        return {"failed": _told(error)}
    finally:
        signal.alarm(0)


def _leaf(value: Any) -> tuple[str, list[int], bool, list[Any]]:
    """Return the dtype, the shape, whether the type is weak, and the entries."""
    import numpy as np

    array = np.asarray(value)
    if array.dtype == object:
        raise TypeError(f"a use returns {type(value).__name__}, which is no array")
    plain = array if array.dtype.kind in "biufUS" else array.astype("float64")
    weak = bool(getattr(value, "weak_type", False))
    return str(array.dtype), list(array.shape), weak, plain.reshape(-1).tolist()


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _mix(real: Any) -> None:
    """Make `concrete=False` have no effect where the shim accepts any `concrete=`."""
    import jax
    import jax.ad_checkpoint

    def mixed(lenient: Any, real: Any) -> Any:
        def checkpoint(*args: Any, **options: Any) -> Any:
            concrete = options.pop("concrete", args[1] if len(args) > 1 else False)
            if concrete:
                made = lenient(*args, concrete=True, **options)
                numbers = options.get("static_argnums", ())
                return _counting(made, numbers) if args else made
            if len(args) > 2:  # the old order: concrete, prevent_cse
                options["prevent_cse"] = args[2]
            return real(*args[:1], **options)

        return checkpoint

    for module in (jax, jax.ad_checkpoint):
        for name in ("checkpoint", "remat"):
            setattr(module, name, mixed(getattr(module, name), real))


def _counting(function: Any, numbers: Any) -> Any:
    """Wrap `function` to reject calls that do not pass its static arguments by position."""
    highest = max([numbers] if isinstance(numbers, int) else [*numbers, -1])

    def counted(*args: Any, **options: Any) -> Any:
        if highest >= len(args):
            raise ValueError(f"static argument {highest} is not passed by position")
        return function(*args, **options)

    return counted if highest >= 0 else function


def main(meaning: str, table: str = "") -> None:
    """Answer requests until stdin is closed."""
    answers = sys.stdout
    sys.stdout = sys.stderr
    import jax

    # Programs are small: compile time dominates, so optimisations are off.
    jax.config.update("jax_disable_most_optimizations", True)
    real = jax.checkpoint
    if table:
        from remat_migrate.verify.worker import shim

        shim.install(table)
    if meaning == "mixed":
        _mix(real)
    signal.signal(signal.SIGALRM, _too_long)
    for line in sys.stdin:
        print(json.dumps(ran(**json.loads(line))), file=answers, flush=True)


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"it ran for {SECONDS} seconds")


if __name__ == "__main__":
    main(*sys.argv[1:])
