"""Builds `libraries/library_needs.txt` from the results of several versions of JAX."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from remat_migrate.libraries import library_needs

TABLE = Path(library_needs.__file__).with_name("library_needs.txt")
_MARKS = {"traced": "", "concrete": "!", "function": "()", "depends": "~", "unknown": "?"}
_HEADING = """\
# Which arguments of library functions must be concrete: see `library_needs.py`.
# Written by `python -m benchmarks.library_needs`, which called each function with every argument
# traced in turn under jax {versions}. Do not edit.
"""


def merge(results: Sequence[Path]) -> None:
    """Write the table from the results of several versions, oldest first."""
    documents = [json.loads(path.read_text()) for path in results]
    found: dict[str, list[dict[str, Any]]] = {}
    for document in documents:
        for name, function in document["functions"].items():
            found.setdefault(name, []).append(function)
    lines = [merged_line(name, versions) for name, versions in sorted(found.items())]
    heading = _HEADING.format(versions=", ".join(d["jax"] for d in documents))
    TABLE.write_text(heading + "\n".join(lines) + "\n", encoding="utf-8")
    _print_differences(found)


def merged_line(name: str, versions: Sequence[Mapping[str, Any]]) -> str:
    """Return the line of one function from the results of all versions, oldest first."""
    newest = versions[-1]
    positional: list[str] = list(newest["positional"])
    keywords: list[str] = list(newest["keywords"])
    for older in versions[:-1]:
        keywords += [
            n
            for n in (*older["positional"], *older["keywords"])
            if n not in positional and n not in keywords
        ]
    words = [name]
    for parameter in positional:
        words.append(_word(parameter, versions))
    keywords.sort(key=lambda n: n.startswith("**"))
    if keywords and not any(p.startswith("*") for p in positional) and keywords[0][:2] != "**":
        words.append("*")
    words += [_word(parameter, versions) for parameter in keywords]
    if all(v["static"] for v in versions):
        words += ["->", "static"]
    return " ".join(words)


def _word(parameter: str, versions: Sequence[Mapping[str, Any]]) -> str:
    name = parameter.lstrip("*")
    statuses = [v["status"][name] for v in versions if name in v["status"]]
    status = merged_status(statuses)
    unless = ""
    if status == "concrete":
        options = {v["unless"].get(name, "") for v in versions if name in v["status"]}
        unless = options.pop() if len(options) == 1 else ""
    return f"{parameter}{_MARKS[status]}{unless}"


def merged_status(statuses: Sequence[str]) -> str:
    """Return one status for all versions; "depends" if they differ."""
    known = {s for s in statuses if s != "unknown"}
    if not known:
        return "unknown"
    return known.pop() if len(known) == 1 else "depends"


def _print_differences(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    for name, versions in sorted(found.items()):
        for parameter in versions[-1]["status"]:
            statuses = [v["status"].get(parameter, "-") for v in versions]
            if len({s for s in statuses if s not in ("-", "unknown")}) > 1:
                print(f"{name} {parameter}: {' '.join(statuses)}")
