"""The command group, whose default command is `check`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


# The options of `check` by what they are about; the rest comes last.
_GROUPS = {
    "Rules": ("select", "ignore", "extend_select", "jax_version", "fixable", "unfixable"),
    "Files": ("exclude", "force_exclude", "config", "stdin_filename"),
    "Fixes": ("fix", "unsafe_fixes", "diff", "add_noqa"),
    "Verification": ("verify", "command", "cases", "python"),
    "Report": ("outputs", "output_file", "statistics", "ignore_noqa", "baseline", "write_baseline"),
    "Exit code": ("fail_on", "exit_zero", "exit_non_zero_on_fix"),
}


class GroupedCommand(click.Command):
    """A command whose help lists the options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of each group under its title."""
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        records = {option.name: option.get_help_record(ctx) for option in options}
        groups = {title: [records.pop(name) for name in names] for title, names in _GROUPS.items()}
        for title, rows in (*groups.items(), ("Other", records.values())):
            with formatter.section(title):
                formatter.write_dl([row for row in rows if row])


class DefaultGroup(click.Group):
    """A command group whose default command is `check`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `check` unless the first argument is a command."""
        if ctx.resilient_parsing and not args:
            return super().parse_args(ctx, args)  # completion of the first word
        if not args or args[0] not in {"--help", "-h", "--version", *self.commands}:
            if args and not args[0].startswith("-") and not os.path.lexists(args[0]):
                from difflib import get_close_matches

                for command in get_close_matches(args[0], self.commands, n=1):
                    ctx.fail(f"No file or command {args[0]!r}; did you mean `{command}`?")
            args = ["check", *args]
        # As an option with an optional value, `--verify src/` would swallow the path.
        args = ["--verify-strict" if arg == "--verify=strict" else arg for arg in args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands, and what can follow `check`."""
        check = self.commands["check"]
        with check.make_context("check", [], parent=ctx, resilient_parsing=True) as own:
            found = [
                *super().shell_complete(ctx, incomplete),
                *check.shell_complete(own, incomplete),
            ]
            if not incomplete.startswith("-"):
                [paths] = [p for p in check.get_params(own) if isinstance(p, click.Argument)]
                found += paths.shell_complete(own, incomplete)
        return list({item.value: item for item in found}.values())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Also list the options of `check`."""
        self.commands["check"].format_options(ctx, formatter)
        super().format_options(ctx, formatter)
