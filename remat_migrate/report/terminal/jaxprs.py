"""The forward and the backward computation side by side, highlighted on a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator

from .display import Screen, printable

_MIN_WIDTH = 120


def side_by_side(forward: str, backward: str, screen: Screen) -> Iterator[str]:
    """Yield the lines of two jaxprs in two columns."""
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.table import Table

    table = Table(padding=(0, 1), box=None, expand=True)
    for title in ("forward computation", "backward computation"):
        table.add_column(title, header_style="bold green", ratio=1, overflow="fold")
    texts = ("\n".join(map(printable, text.splitlines())) for text in (forward, backward))
    table.add_row(*(Syntax(text, "haskell", theme="ansi_dark", word_wrap=True) for text in texts))
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=max(screen.width, _MIN_WIDTH),
        force_terminal=screen.colour,
        color_system="standard" if screen.colour else None,
    )
    console.print(table)
    yield from (line.rstrip() for line in stream.getvalue().splitlines())
