"""A rule's documentation as Markdown, for hovers and for a page of its own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from ..report.terminal.explain import fix_kind
from ..rule import Example, Rule

_LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".sh": "sh"}


def summary(rule: Rule) -> str:
    """What the rule finds, why and how it is fixed."""
    return "\n".join(_head(rule))


def page(rule: Rule) -> str:
    """The same, with the rule's examples."""
    return "\n".join([*_head(rule), *_examples(rule)])


def plain(rule: Rule) -> str:
    """What the rule finds and why, for a message that knows no Markdown."""
    lines = [f"{rule.code} {rule.name}"]
    for line in (inspect.getdoc(rule) or "").splitlines():
        if line == "## Fix":
            break
        lines.append(line.removeprefix("## ") + (":" if line.startswith("## ") else ""))
    return "\n".join(lines).strip()


def _head(rule: Rule) -> Iterator[str]:
    yield f"# {rule.code} {rule.name}"
    yield ""
    facts = [f"Since jax {rule.since}."] if rule.since else []
    facts.append(f"Fix: {fix_kind(rule)}.")
    if not rule.enabled:
        facts.append("Off by default.")
    if rule.url:
        facts.append(f"[{rule.url}]({rule.url})")
    yield " ".join(facts)
    yield ""
    yield (inspect.getdoc(rule) or "").strip()


def _examples(rule: Rule) -> Iterator[str]:
    for example in rule.wrong:
        yield from ("", f"## Wrong ({example.filename})")
        yield from _fenced(example.before, example.filename)
        for path, before, _ in example.others:
            yield from ("", f"`{path}`")
            yield from _fenced(before, path)
        if example.after is None:
            yield from ("", "Found, and left for you to mend.")
            continue
        yield from ("", "Fixed:")
        yield from _fenced(example.after, example.filename)
        for path, _, after in example.others:
            yield from ("", f"`{path}`")
            yield from _fenced(after, path)
    rights = [text for right in rule.right if (text := _text(right)).strip()]
    if rights:
        yield from ("", "## Left alone")
        for right in rights:
            yield from _fenced(right, "example.py")


def _fenced(text: str, filename: str) -> Iterator[str]:
    ending = filename[filename.rfind(".") :] if "." in filename else ""
    # An example may itself hold a fence: Markdown with code in it.
    fence = "```" if "```" not in text else "~~~~~"
    yield from ("", f"{fence}{_LANGUAGES.get(ending, '')}", text.strip("\n"), fence)


def _text(example: Example | str) -> str:
    return example if isinstance(example, str) else example.before
