"""Markdown on a terminal: headings, wrapped text, and code in the colors of the terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.syntax import Syntax
from rich.theme import Theme

from .display import Screen

# An address that is its own text would be shown twice.
_ADDRESS = re.compile(r"<(https?://[^>]+)>")
# No backgrounds: a terminal may be dark or light.
_THEME = Theme(
    {
        "markdown.h1": "bold",
        "markdown.h2": "bold cyan",
        "markdown.code": "cyan",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.link": "underline",
        "markdown.link_url": "underline",
    }
)


class _Heading(Heading):
    """A heading at the left, without a box."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    """Code, indented, without a background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(
            str(self.text).rstrip(),
            self.lexer_name,
            theme="ansi_light",
            background_color="default",
            word_wrap=True,
        )
        yield Padding(code, (0, 0, 0, 4))


class _Page(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }


def rendered(markdown: str, screen: Screen) -> Iterator[str]:
    """Yield the lines of a page, at most as wide as the screen."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=screen.width,
        force_terminal=screen.colour,
        no_color=not screen.colour,
        color_system="standard" if screen.colour else None,
        theme=_THEME,
        legacy_windows=False,
    )
    console.print(_Page(_ADDRESS.sub(r"`\1`", markdown), hyperlinks=False))
    yield from (line.rstrip() for line in stream.getvalue().splitlines())
