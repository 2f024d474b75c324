"""Chooses the parser for a text file and plans the removal of a setting from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

from ..text.replacements import Causes, Removal, join_pieces, united
from ..text.source_file import SourceFile
from .dockerfile import plan_dockerfile
from .dotenv import plan_dotenv
from .lines import line_start, next_line
from .makefile import plan_makefile
from .setting import Setting, TextPlan, TextSyntaxError, TextUse
from .shell import plan_shell
from .structured import plan_toml, plan_yaml

Planner = Callable[[str, Setting, TextPlan], object]


def _plan_script(text: str, setting: Setting, plan: TextPlan) -> None:
    """Plan a shell script; if it has a syntax error, plan the statements before the error."""
    try:
        plan_shell(text, setting, plan)
    except TextSyntaxError as error:
        if not setting.occurs(text[: error.readable]):
            raise
        plan_shell(text, setting, plan, 0, error.readable)
        for start, end in _outside_comments(text, setting, error.readable):
            plan.refuse(start, end, "variable", f"cannot parse it: {error}")
        plan.add_reads(setting.reading, text, error.readable)


_BY_SUFFIX: dict[str, Planner] = {
    ".sh": _plan_script,
    ".bash": _plan_script,
    ".zsh": _plan_script,
    ".ksh": _plan_script,
    ".slurm": _plan_script,
    ".sbatch": _plan_script,
    ".yaml": plan_yaml,
    ".yml": plan_yaml,
    ".toml": plan_toml,
    ".mk": plan_makefile,
    ".env": plan_dotenv,
    ".dockerfile": plan_dockerfile,
    ".containerfile": plan_dockerfile,
}
_BY_NAME: dict[str, Planner] = {
    "Makefile": plan_makefile,
    "makefile": plan_makefile,
    "GNUmakefile": plan_makefile,
    ".envrc": _plan_script,
    ".env": plan_dotenv,
}
_BY_PREFIX: dict[str, Planner] = {
    "Dockerfile": plan_dockerfile,
    "Containerfile": plan_dockerfile,
    ".env.": plan_dotenv,
}
_SHEBANG = re.compile(r"#!.*\b(?:ba|da|z|k)?sh\b")


def plan_text(
    source: SourceFile,
    setting: Setting,
    is_suppressed: Callable[[int], bool] = lambda offset: False,
    *,
    keep_option: str = "",
) -> tuple[list[TextUse], list[Removal]]:
    """Find the uses of a setting in a file and the edits that remove them.

    Comments and prose are not uses. A use that cannot be removed gives the reason. The variable
    stays set as long as something still reads it.

    Args:
        source: the file.
        setting: the setting to remove.
        is_suppressed: whether to leave the use at an offset alone.
        keep_option: why the option must stay; "" if it need not.

    Returns:
        The uses in source order, and Removals whose members are indices of the uses.
    """
    planner = _planner(source)
    if planner is None or not setting.occurs(source.text):
        return [], []
    plan = TextPlan(keep_option=keep_option, is_suppressed=is_suppressed)
    try:
        planner(source.text, setting, plan)
        read = _uncovered(plan)
        if read:
            line, _ = source.position(read[0][0])
            plan = plan.fork()
            plan.keep_variable = f"line {line} reads it"
            planner(source.text, setting, plan)
            for start, end in _uncovered(plan):
                plan.refuse(start, end, "read", "uses of the value are not analysed")
    except TextSyntaxError as error:
        plan.uses, plan.pieces = _unreadable(source, setting, str(error)), []
    except RecursionError:
        plan.uses, plan.pieces = _unreadable(source, setting, "it is nested too deeply"), []
    _close_gaps(source.text, plan)
    return _ordered(plan.uses, join_pieces(source.path, source.text, plan.pieces))


def _planner(source: SourceFile) -> Planner | None:
    """Return the planner for a file, chosen by its name or, for a script, by its first line."""
    path = PurePath(source.path.name)
    if path.name in _BY_NAME:
        return _BY_NAME[path.name]
    suffix = path.suffix.lower()
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    for prefix, planner in _BY_PREFIX.items():
        if path.name.startswith(prefix):
            return planner
    return _plan_script if _SHEBANG.match(source.text) else None


def _uncovered(plan: TextPlan) -> list[tuple[int, int]]:
    """Return where the variable is still read."""
    return sorted({(start, end) for start, end in plan.reads if not plan.covers(start, end)})


def _close_gaps(text: str, plan: TextPlan) -> None:
    """Remove one of the two blank lines around removed lines."""
    runs: list[tuple[int, int, list[Causes]]] = []
    for start, end, put, causes in sorted(plan.pieces, key=lambda piece: piece[:2]):
        if put or start != line_start(text, start) or text[end - 1 : end] not in ("", "\n"):
            continue
        why: list[Causes] = []
        if runs and start <= runs[-1][1]:
            start, high, why = runs.pop()
            end = max(high, end)
        why.append(causes)
        runs.append((start, end, why))
    for start, end, why in runs:
        above, below = line_start(text, start - 1), next_line(text, end)
        if text[above:start].strip() or text[end:below].strip():
            continue
        causes = united(why)
        if end < len(text):
            plan.put(end, below, "", causes)
        else:
            plan.put(above, start, "", causes)


def _unreadable(source: SourceFile, setting: Setting, reason: str) -> list[TextUse]:
    """Return the uses in a file that cannot be parsed, except in comment lines."""
    why = f"cannot parse the file: {reason}"
    spans = _outside_comments(source.text, setting, 0)
    return [TextUse(*span, "variable", refused=why) for span in spans]


def _outside_comments(text: str, setting: Setting, start: int) -> list[tuple[int, int]]:
    """Return where the setting is named after an offset, except in comment lines."""
    return [
        match.span()
        for match in setting.pattern.finditer(text, start)
        if not text[line_start(text, match.start()) : match.start()].lstrip().startswith("#")
    ]


def _ordered(uses: list[TextUse], removals: list[Removal]) -> tuple[list[TextUse], list[Removal]]:
    order = sorted(range(len(uses)), key=lambda index: (uses[index].start, uses[index].end))
    place = {index: number for number, index in enumerate(order)}
    return [uses[index] for index in order], [
        replace(removal, members=frozenset(place[member] for member in removal.members))
        for removal in removals
    ]
