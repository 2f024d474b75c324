"""A rule as a page in Markdown: what `docs/rules/` holds, and what editors show."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...errors import UsageError
from ...rule import Example, Fails, Rule
from ..terminal.explain import fix_kind

_PAGE = re.compile(r"[A-Z]+[0-9]{3}-[a-z-]+\.md")
_LANGUAGES = {".py": "python", ".sh": "sh", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}


def rule_page(rule: Rule) -> str:
    """One rule: what it finds, why, since when, and what it makes of its examples."""
    return "\n".join(_lines(rule)) + "\n"


def pages(rules: Sequence[Rule]) -> Mapping[str, str]:
    """The pages of all rules, and their table, by file name."""
    return {"README.md": index_page(rules), **{page_name(rule): rule_page(rule) for rule in rules}}


def write_pages(rules: Sequence[Rule], folder: Path) -> None:
    """Write the pages into a folder; pages of rules that are no more go.

    Raises:
        UsageError: the folder cannot be written to.
    """
    written = pages(rules)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.md"):
            if old.name not in written and _PAGE.fullmatch(old.name):
                old.unlink()
        for name, text in written.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"--write: {folder}: {error.strerror or error}") from error


def index_page(rules: Sequence[Rule]) -> str:
    """The table of all rules, each with a link to its page."""
    lines = [
        "# Rules",
        "",
        "Made from the rules themselves by `remat-migrate rules --write docs/rules`.",
        "",
        "| code | name | since jax | fix | by default |",
        "|---|---|---|---|---|",
    ]
    for rule in rules:
        lines.append(
            f"| [{rule.code}]({page_name(rule)}) | {rule.name} | {rule.since} | {fix_kind(rule)} |"
            f" {'on' if rule.enabled else 'off'} |"
        )
    return "\n".join(lines) + "\n"


def page_name(rule: Rule) -> str:
    """The file name of a rule's page."""
    return f"{rule.code}-{rule.name}.md"


def _lines(rule: Rule) -> Iterator[str]:
    yield from (f"# {rule.code} {rule.name}", "")
    facts = [f"Fix: {fix_kind(rule)}."]
    if rule.since:
        facts.insert(0, f"Since jax {rule.since}.")
    if not rule.enabled:
        facts.append(f"Off by default: `--extend-select {rule.code}`.")
    if rule.url:
        facts.append(f"See <{rule.url}>.")
    yield from (" ".join(facts), "")
    yield from (inspect.getdoc(rule) or "").strip().splitlines()
    yield from ("", "## Examples")
    for example in rule.wrong:
        yield from _wrong(example)
    rights = [e if isinstance(e, Example) else Example(e) for e in rule.right]
    if any(right.before.strip() for right in rights):
        yield from ("", "Left alone:")
    for right in rights:
        if right.before.strip():
            yield from _files(
                [(right.filename, right.before), *((n, b) for n, b, _ in right.others)]
            )


def _wrong(example: Example) -> Iterator[str]:
    yield from ("", "Found:")
    yield from _files([(example.filename, example.before), *((n, b) for n, b, _ in example.others)])
    if example.use and example.fails is not None:
        yield from (
            "",
            f"used like this, it {_failure(example.fails)}:",
            *_block(example.use, ".py"),
        )
    if example.after is None:
        yield from ("", "and left for you to mend.")
        return
    yield from ("", "Fixed:")
    yield from _files([(example.filename, example.after), *((n, a) for n, _, a in example.others)])


def _failure(fails: Fails) -> str:
    since = f" from jax {fails.since}" if fails.since else ""
    until = f" before jax {fails.until}" if fails.until else ""
    kind = fails.error.partition(":")[0]
    name = f" with `{kind}`" if kind.isidentifier() else ""
    return f"fails{name}{since}{until}"


def _files(files: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, text in files:
        if name != "example.py":
            yield from ("", f"`{name}`")
        yield from _block(text, name[name.rfind(".") :] if "." in name else "")


def _block(text: str, suffix: str) -> Iterator[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    yield from ("", f"{fence}{_LANGUAGES.get(suffix, 'text')}", text.strip("\n"), fence)
