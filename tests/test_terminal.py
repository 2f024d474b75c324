"""What a terminal shows: colours, widths, and a progress bar that is gone in the end."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import write_files

from remat_migrate.cli.progress_bar import ProgressBar, is_interactive, progress_bar
from remat_migrate.report.terminal.display import display_width, terminal_width, truncate

fcntl = pytest.importorskip("fcntl", reason="pseudo-terminals")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

CODE = (
    "import jax\n\n\ndef 块(x, 训练):\n\tif 训练:\n\t\tx = x + 1\n\treturn x\n\n\n"
    "层 = jax.checkpoint(块, concrete=True)\n\n\ndef loss(x):\n\treturn 层(x, 训练=True).sum()\n"
)
ERASE_LINE = "\x1b[2K"
REPORTS = [
    ("reading 1200 files", 0, 1),
    ("RMT101 模型\x1b[31m[red].py", 17, 1200),
    ("a" * 300, 1199, 1200),
    ("", 0, 3),
]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CI", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


# -- the progress bar


def wait_until(is_met: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_met():
        assert time.monotonic() < end
        time.sleep(0.01)


def frames_of(written: str) -> list[str]:
    """What was written on the line between two times that it was erased."""
    return [
        re.sub(r"\x1b\[[?\d;]*[A-Za-z]|\r", "", frame).rstrip()
        for frame in written.split(ERASE_LINE)
    ]


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_the_bar_is_one_line_and_disappears(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = Terminal(width)
    monkeypatch.setattr(sys, "stderr", stream)
    bar = ProgressBar("Checking", 0.0)
    for what, done, total in REPORTS:
        drawn = len(stream.getvalue())
        bar(what, done, total)
        # The first frame from here may still show the report before.
        wait_until(lambda drawn=drawn: stream.getvalue().count(ERASE_LINE, drawn) >= 2)
        frames = frames_of(stream.getvalue())
        assert all(display_width(frame) <= width for frame in frames), "a bar that wraps"
        first = next(frame for frame in reversed(frames) if frame)
        assert first.startswith("Chec")
        if width >= 80:
            assert "0:00:0" in first
            assert (f"{done}/{total}" in first) == (total > 1)
    bar.close()
    assert not frames_of(stream.getvalue())[-1]
    assert stream.getvalue().count("\n") == stream.getvalue().count("\x1b[1A")
    assert "\x1b[31m[red]" not in stream.getvalue(), "a file name must not control the terminal"
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h")


def test_a_short_run_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal(80)
    monkeypatch.setattr(sys, "stderr", stream)
    bar = ProgressBar("Checking", 3600.0)
    bar("first", 0, 2)
    bar("", 2, 2)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [({}, True), ({"TERM": "dumb"}, False), ({"CI": "true"}, False), ({"NO_COLOR": "1"}, True)],
)
def test_where_the_bar_is_drawn(
    environment: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_interactive(Terminal(80)) is wanted
    assert not is_interactive(io.StringIO())


def test_a_pipe_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar() as progress:
        progress("first", 0, 2)
    assert stream.getvalue() == ""
    monkeypatch.setattr("remat_migrate.cli.progress_bar._LINE_INTERVAL", 0.0)
    with progress_bar() as progress:
        progress("first", 0, 2)
        progress("second\x1b", 1, 2)
    second = "Verifying 1/2: second\N{SYMBOL FOR ESCAPE}"
    assert set(stream.getvalue().splitlines()) == {"Verifying 0/2: first", second}


# -- widths


def test_truncate() -> None:
    assert truncate("模型.py", 7) == "模型.py"
    assert truncate("模型.py", 6) == "模型.…"
    assert truncate("模型.py", 4) == "模…"
    assert truncate("abc", 1) == "…"
    assert truncate("abc", 0) == ""
    assert truncate("abc", -3) == ""


def test_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal_width(io.StringIO(), 72) == 72
    monkeypatch.setenv("COLUMNS", "33")
    assert terminal_width(io.StringIO(), 72) == 33
    monkeypatch.setenv("COLUMNS", "wide")
    assert terminal_width(io.StringIO(), 72) == 72
    outer, inner = pty.openpty()
    with os.fdopen(outer), os.fdopen(inner, "w") as stream:
        termios.tcsetwinsize(outer, (24, 57))
        assert terminal_width(stream, 72) == 57


# -- whole runs


def on_terminal(
    folder: Path, *arguments: str, width: int = 80, piped: bool = False, **environment: str
) -> tuple[int, str, str]:
    """Run the tool on a pseudo-terminal: its exit code, what was written there, and to a pipe.

    The bar's patience is taken away: whether it is drawn or not, it must leave nothing behind.
    """
    outer, inner = pty.openpty()
    termios.tcsetwinsize(outer, (24, width))
    program = (
        "import sys, remat_migrate.cli.run_setup as b, remat_migrate.cli as c\n"
        "b.PATIENCE = 0.0\nc.main(sys.argv[1:])"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        stdin=inner,
        stdout=subprocess.PIPE if piped else inner,
        stderr=inner,
        env={**os.environ, **environment},
    )
    os.close(inner)
    written = b""
    while True:
        try:
            data = os.read(outer, 65536)
        except OSError:  # how a terminal ends under Linux
            break
        if not data:
            break
        written += data
    os.close(outer)
    out = run.stdout.read().decode() if run.stdout else ""
    return run.wait(), written.decode().replace("\r\n", "\n\r"), out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path, {"setup.cfg": "", "网络/层.py": CODE})
    return tmp_path


def test_no_colour_on_a_terminal(folder: Path) -> None:
    _, written, _ = on_terminal(folder, "--statistics", NO_COLOR="1", CI="true")
    assert "\x1b" not in written
    _, written, _ = on_terminal(folder, "--diff", TERM="dumb")
    assert "\x1b" not in written


def test_what_is_never_coloured(folder: Path) -> None:
    """A patch is bytes that are applied, JSON and files are read by programs."""
    _, _, out = on_terminal(folder, "--diff", piped=True, FORCE_COLOR="1")
    arguments = ("--output-format", "json", "--output-format", "full=report.txt")
    _, _, document = on_terminal(folder, *arguments, piped=True, FORCE_COLOR="1")
    for text in (out, document, (folder / "report.txt").read_text()):
        assert "concrete" in text
        assert "\x1b" not in text


def test_rich_is_not_loaded_where_nothing_is_drawn(folder: Path) -> None:
    program = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('rich.console' in sys.modules, file=sys.stderr))\n"
        "from remat_migrate.cli import main\nmain(['check'])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.stderr == "False\n"
