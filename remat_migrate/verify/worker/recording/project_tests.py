"""Run the project's tests that may call units, those that name a unit first, within a time limit.

Run in a recorded process, see `sitecustomize`, with pytest. A test that fails or hangs is of no
interest: only the calls of the units are.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import record

# Names of functions count more in the test itself than elsewhere in its file.
_IN_TEST = 10
# A test may take this share of the time.
_SHARE = 0.34


class _TooLong(Exception):
    """A test has used its time."""


class Selection:
    """Which tests to run, in which order, and when to stop.

    Attributes:
        run: how many tests have run.
        failed: how many of them failed.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.seconds = float(request["seconds"])
        self.units = request["units"]
        self.deadline = time.process_time() + self.seconds
        self.run = 0
        self.failed = 0
        # The names of the units, then those of what calls them, and so on.
        self.rings = [_any_name(names) for names in request["names"] if names]
        self._modules: dict[str, int] = {}

    def score(self, function: Any) -> int:
        """Return how likely a test is to call a unit; 0 if nothing in its file names one."""
        function = inspect.unwrap(getattr(function, "__func__", function))
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):
            source = ""
        inside = self._nearest(source)
        return inside + _IN_TEST if inside else self._of_module(function)

    def _nearest(self, text: str) -> int:
        for number, ring in enumerate(self.rings):
            if ring.search(text):
                return len(self.rings) - number
        return 0

    def _of_module(self, function: Any) -> int:
        return self._of_file(getattr(getattr(function, "__code__", None), "co_filename", ""))

    def _of_file(self, path: str) -> int:
        if path not in self._modules:
            text = ""
            with (
                contextlib.suppress(OSError, UnicodeDecodeError),
                open(path, encoding="utf-8") as file,
            ):
                text = file.read()
            self._modules[path] = self._nearest(text)
        return self._modules[path]

    def ordered(self, tests: Iterable[Any], function_of: Callable[[Any], Any]) -> list[Any]:
        """Return the likeliest tests first, and of those with many parameters not all at once."""
        seen: dict[Any, int] = {}
        ranked: list[tuple[int, int, Any]] = []
        for test in tests:
            function = function_of(test)
            key = getattr(inspect.unwrap(function), "__code__", None)
            seen[key] = seen.get(key, 0) + 1
            ranked.append((-self.score(function), seen[key], test))
        ranked.sort(key=lambda each: each[:2])
        return [test for _, _, test in ranked]

    def is_over(self, function: Any) -> bool:
        """Return whether to stop before a test."""
        if time.process_time() > self.deadline:
            return True
        return self.score(function) < _IN_TEST + len(self.rings) and self._has_all()

    def is_over_at(self, file: str) -> bool:
        """Return whether to stop before the tests of a file."""
        if time.process_time() > self.deadline:
            return True
        return self._of_file(file) < len(self.rings) and self._has_all()

    def _has_all(self) -> bool:
        """Return whether calls of all units are recorded."""
        log = record.process_log()
        return log is not None and all(map(log.has_cases, self.units))

    @contextlib.contextmanager
    def limited(self) -> Iterator[None]:
        """Raise `_TooLong` in a test that takes more than its share of the time."""

        def stop(number: int, frame: Any) -> None:
            raise _TooLong("the test took longer than its share of the time")

        self.run += 1
        before = signal.signal(signal.SIGPROF, stop)
        left = self.deadline - time.process_time()
        signal.setitimer(signal.ITIMER_PROF, max(min(left, _SHARE * self.seconds), 0.1))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)


def main() -> None:
    """Run the tests that the file in REMAT_MIGRATE_TESTS asks for, and write how many ran."""
    path = os.environ.pop("REMAT_MIGRATE_TESTS")
    with open(path, encoding="utf-8") as file:
        request = json.load(file)
    selection = Selection(request)
    sys.path[:0] = [each for each in request["paths"] if each not in sys.path]
    _parse_flags()
    found = 0
    for file in request["files"] if importlib.util.find_spec("pytest") else ():
        # One by one: importing all of them may take longer than there is time.
        if not selection.is_over_at(file):
            found += _run(file, selection)
    with open(path + ".done", "w", encoding="utf-8") as file:
        json.dump({"found": found, "run": selection.run, "failed": selection.failed}, file)


def _any_name(names: list[str]) -> Any:
    return re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b")


def _parse_flags() -> None:
    """Let tests read absl flags, which `absltest.main` would parse."""
    if importlib.util.find_spec("absl") is not None:
        flags: Any = importlib.import_module("absl.flags")
        importlib.import_module("absl.testing.absltest")
        flags.FLAGS(["remat-migrate"])


def _run(file: str, selection: Selection) -> int:
    import pytest  # type: ignore[import-not-found,unused-ignore]

    class Plugin:
        found = 0

        @pytest.hookimpl(trylast=True)  # type: ignore[untyped-decorator,unused-ignore]
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            items[:] = selection.ordered(items, _function_of)
            Plugin.found = len(items)

        @pytest.hookimpl(tryfirst=True)  # type: ignore[untyped-decorator,unused-ignore]
        def pytest_runtest_protocol(self, item: Any) -> bool | None:
            if selection.is_over(_function_of(item)):
                item.session.shouldstop = "the time is over, or every unit has been called"
                return True
            return None

        @pytest.hookimpl(hookwrapper=True)  # type: ignore[untyped-decorator,unused-ignore]
        def pytest_runtest_call(self) -> Iterator[None]:
            with selection.limited():
                yield

        def pytest_runtest_logreport(self, report: Any) -> None:
            selection.failed += int(report.failed)

    # The user's options may ask for plug-ins that are not installed, for coverage, or for processes
    # that are not recorded; warnings of another JAX are not errors.
    options = ["-q", "-o", "addopts=", "-o", "filterwarnings=", "-p", "no:cacheprovider"]
    options += ["-p", "no:xdist", "-p", "no:randomly", "--continue-on-collection-errors"]
    pytest.main([*options, file], plugins=[Plugin()])
    return Plugin.found


def _function_of(item: Any) -> Any:
    return getattr(item, "function", None) or getattr(item, "obj", item)
