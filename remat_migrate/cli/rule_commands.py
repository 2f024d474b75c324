"""The commands about rules: `explain` and `rules`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from .completion import rule_codes
from .exit_codes import CLEAN, FINDINGS
from .output_control import output_control

if TYPE_CHECKING:
    from ..rule import Rule


@click.command()
@click.argument("code", required=False, shell_complete=rule_codes)
@click.option("--all", "every", is_flag=True, help="Explain all rules.")
@click.option(
    "--output-format", type=click.Choice(["text", "json"]), default="text", help="Output format."
)
@output_control
def explain_command(code: str | None, every: bool, output_format: str) -> int:
    """Explain a rule, given its code or name."""
    from ..engine.rules import load_rules
    from ..settings import did_you_mean

    if (code is None) != every:
        raise UsageError("explain takes either a code or --all")
    rules = {rule.code: rule for rule in load_rules()}
    if code is None:
        found = list(rules.values())
        _explain(found, output_format)
        return CLEAN
    by_name = {rule.name: rule for rule in rules.values()}
    rule = rules.get(code.upper()) or by_name.get(code.lower())
    if rule is None:
        hint = did_you_mean(code.upper(), rules) or did_you_mean(code.lower(), by_name)
        raise UsageError(f"no rule {code}{hint or '; see `remat-migrate rules`'}")
    _explain(rule, output_format)
    return CLEAN


def _explain(found: Rule | Sequence[Rule], output_format: str) -> None:
    if output_format == "json":
        from ..report.machine_readable.rules_json import render

        print(render(found))
        return
    from ..report.output import screen_of, write_lines
    from ..report.terminal.explain import explain as explained

    screen = screen_of(sys.stdout)
    for number, rule in enumerate(found if isinstance(found, Sequence) else [found]):
        write_lines([*([""] if number else []), *explained(rule, screen)], sys.stdout)


def _test(path: Path) -> int:
    from ..engine.rule_examples import failures, rules_in

    rules = list(rules_in(path))
    if not rules:
        raise UsageError(f"--test: {path} defines no rules")
    failed = [text for rule in rules for text in failures(rule)]
    sys.stdout.writelines(text + "\n" for text in failed)
    examples = sum(len(rule.wrong) + len(rule.right) for rule in rules)
    codes = ", ".join(rule.code for rule in rules)
    print(f"{codes}: {len(failed)} of {examples} examples failed", file=sys.stderr)
    return FINDINGS if failed else CLEAN


@click.command()
@click.option(
    "--write",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write a Markdown page for each rule, and an index, to FOLDER.",
)
@click.option(
    "--output-format", type=click.Choice(["text", "json"]), default="text", help="Output format."
)
@click.option(
    "--test",
    "tested",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Run the examples of the rules in a file or a folder.",
)
@output_control
def rules_command(folder: Path | None, output_format: str, tested: Path | None) -> int:
    """List all rules and the safety of their fixes."""
    from ..engine.rules import load_rules
    from ..report.output import screen_of
    from ..report.terminal.explain import table

    if tested is not None:
        return _test(tested)
    if folder is not None:
        from ..report.pages.rule_page import write_pages

        write_pages(load_rules(), folder)
        return CLEAN
    if output_format == "json":
        _explain(load_rules(), output_format)
        return CLEAN
    sys.stdout.writelines(line + "\n" for line in table(load_rules(), screen_of(sys.stdout)))
    return CLEAN
