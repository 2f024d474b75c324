"""The forward and the backward computation side by side, coloured where a terminal takes that."""

from __future__ import annotations

import io
from collections.abc import Iterator

from ...errors import UsageError
from .display import Screen, printable

_NARROWEST = 120


def side_by_side(forward: str, backward: str, screen: Screen) -> Iterator[str]:
    """The lines of two jaxprs in two columns.

    Raises:
        UsageError: rich is not installed.
    """
    try:
        from rich.console import Console
        from rich.syntax import Syntax
        from rich.table import Table
    except ImportError as error:
        raise UsageError(
            "--fwd-bwd draws with rich, which is not installed:"
            " pip install 'remat-migrate[measure]'"
        ) from error
    table = Table(show_lines=False, padding=(0, 1), box=None, expand=True)
    for title in ("forward computation", "backward computation"):
        table.add_column(title, header_style="bold green", ratio=1, overflow="fold")
    table.add_row(
        *(
            Syntax(_safe(text), "haskell", theme="ansi_dark", word_wrap=True)
            for text in (forward, backward)
        )
    )
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=max(screen.width, _NARROWEST),
        force_terminal=screen.colour,
        no_color=not screen.colour,
        color_system="standard" if screen.colour else None,
    )
    console.print(table)
    yield from (line.rstrip() for line in stream.getvalue().splitlines())


def _safe(text: str) -> str:
    return "\n".join(map(printable, text.splitlines()))
