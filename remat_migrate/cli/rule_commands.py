"""The commands about rules: `explain` and `rules`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..errors import UsageError
from .exit_codes import CLEAN, FINDINGS
from .options import output_control

_format = click.option(
    "--output-format", type=click.Choice(["text", "json"]), default="text", help="Output format."
)


@click.command()
@click.argument("code")
@_format
@output_control
def explain_command(code: str, output_format: str) -> int:
    """Explain a rule, given its code or name."""
    from ..engine.rules import load_rules
    from ..report.machine_readable.rules_json import render
    from ..report.output import screen_of, write_lines
    from ..report.terminal.explain import explain
    from ..settings.settings import did_you_mean

    rules = {rule.code: rule for rule in load_rules()}
    by_name = {rule.name: rule for rule in rules.values()}
    rule = rules.get(code.upper()) or by_name.get(code.lower())
    if rule is None:
        hint = did_you_mean(code.upper(), rules) or did_you_mean(code.lower(), by_name)
        raise UsageError(f"no rule {code}{hint or '; see `remat-migrate rules`'}")
    is_json = output_format == "json"
    write_lines([render(rule)] if is_json else explain(rule, screen_of(sys.stdout)), sys.stdout)
    return CLEAN


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
@_format
@click.option(
    "--test",
    "tested",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Run the examples of the rules in a file or a folder.",
)
@output_control
def rules_command(output_format: str, tested: Path | None) -> int:
    """List all rules and the safety of their fixes."""
    from ..engine.rules import load_rules
    from ..report.machine_readable.rules_json import render
    from ..report.output import screen_of, write_lines
    from ..report.terminal.explain import table

    if tested is not None:
        return _test(tested)
    rules, is_json = load_rules(), output_format == "json"
    write_lines([render(rules)] if is_json else table(rules, screen_of(sys.stdout)), sys.stdout)
    return CLEAN
