"""Run the tool in this process on files that a test gives as text."""

from __future__ import annotations

import functools
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from remat_migrate.analysis.needs.needs import Need
from remat_migrate.analysis.sites.find_sites import sites_of
from remat_migrate.analysis.statics.arguments import project_needs
from remat_migrate.analysis.statics.static_options import known_targets
from remat_migrate.cli.commands import main
from remat_migrate.engine.analyse import Analysis, analyse
from remat_migrate.engine.check import fix_in_memory
from remat_migrate.engine.run import Run, prepare
from remat_migrate.rule import Finding
from remat_migrate.settings import Options

# What colours logs would colour what tests compare.
os.environ.pop("FORCE_COLOR", None)

Files = str | bytes | Mapping[str, str | bytes]


def write_files(folder: Path, files: Files) -> None:
    """Write files, by path relative to `folder`; a text alone is `example.py`."""
    if not isinstance(files, Mapping):
        files = {"example.py": files}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def read_files(folder: Path) -> dict[str, bytes]:
    """The files below `folder`, but for the journal and what is git's."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {".git", ".remat_migrate"} & set(path.parts)
    }


def heed_signals() -> None:
    """Let a process that is started end by signals that those of background jobs ignore."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def git(folder: Path, *arguments: str) -> str:
    """Run git with an identity and without the variables of an outer git; return its output."""
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    command = ["git", *identity, "-c", "protocol.file.allow=always", *arguments]
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    ran = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, env=environment
    )
    return ran.stdout


def analysed(files: Files, **options: object) -> Analysis:
    """What the rules make of `files`; options as `remat_migrate.settings.Options` has them.

    Raises the error of a rule that fails.
    """
    with _folder(files) as folder:
        return _analysis(prepare([folder], _options(options)))


def findings(files: Files, **options: object) -> list[Finding]:
    """The findings in `files`, sorted."""
    return list(analysed(files, **options).findings)


def places(files: Files, **options: object) -> list[str]:
    """The findings in `files` as `example.py:1:1 RMT101`."""
    found = []
    for finding in findings(files, **options):
        line, column = finding.source.position(finding.span.start)
        found.append(f"{finding.path.name}:{line}:{column} {finding.code}")
    return found


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command line did: its exit code and what it wrote."""

    code: int
    out: str
    err: str


def cli(folder: Path, *arguments: str | Path, stdin: bytes = b"") -> Ran:
    """Run `remat-migrate` in `folder`, in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    code: object = None
    with (
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stopped:
            code = stopped.code
    assert isinstance(code, int)
    return Ran(code, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def needs_of(text: str) -> tuple[Need, ...]:
    """Return the needs of the function that the only checkpoint of a module wraps."""
    project = analysed(text).project
    (site,) = sites_of(project)
    target = known_targets(project, site)[0]
    return project_needs(project).of(target.function)


def no_findings(rule: str, cases: Sequence[str], head: str = "") -> Callable[[str], None]:
    """Return a test that a rule reports nothing in any of the cases, each behind `head`."""

    @pytest.mark.parametrize("code", cases)
    def test(code: str) -> None:
        assert findings(f"{head}{code}\n", select=rule) == []

    return test


def fixed(files: Files, *, unsafe: bool = False, **options: object) -> dict[str, str]:
    """`files` after all safe fixes, and the unsafe ones where asked.

    Raises the error of a rule that fails, and fails where a fix was wrong or had no end.
    """
    with _folder(files) as folder:
        outcome = fix_in_memory(prepare([folder], _options(options)), unsafe=unsafe)
        assert not outcome.analysis.faults, outcome.analysis.faults[0].trace
        assert not outcome.dropped, outcome.dropped[0].reason
        assert not outcome.oscillating, outcome.oscillating
        texts = {name: data.decode() for name, data in read_files(folder).items()}
        for change in outcome.changes:
            texts[change.path.relative_to(folder).as_posix()] = change.after.text
        names = files if isinstance(files, Mapping) else {"example.py"}
        return {name: texts[name] for name in names}


def some_slow(values: Iterable[Any], *by_default: Any) -> list[Any]:
    """Return values to parametrize with: the default ones, the others with the mark `slow`."""
    slow = functools.partial(pytest.param, marks=pytest.mark.slow)
    return [value if value in by_default else slow(value) for value in values]


def _analysis(run: Run) -> Analysis:
    analysis = analyse(run)
    assert not analysis.faults, analysis.faults[0].trace
    return analysis


def _options(options: Mapping[str, object]) -> Options:
    chosen = dict(options)
    if isinstance(select := chosen.get("select"), str):
        chosen["select"] = (select,)
    return Options(**chosen)  # type: ignore[arg-type]


@contextmanager
def _folder(files: Files) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_files(folder, {"pyproject.toml": ""})
        write_files(folder, files)
        yield folder
