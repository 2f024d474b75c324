"""`--add-noqa`: suppressing all findings with comments."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ..engine.check import check_run
from ..engine.run import Run
from ..engine.suppress import suppress
from ..report.output import say, screen_of
from ..text.regular_files import read_regular
from .exit_codes import CLEAN


def suppress_findings(run: Run) -> int:
    """Add a suppression for each finding, and return the exit code.

    Raises:
        ApplyError: a file cannot be written; no file was changed.
    """
    from ..engine.writing import write_changes
    from ..report.terminal.display import pluralize

    root = run.settings.root
    screen = screen_of(sys.stderr)
    done = suppress(check_run(run))
    if done.changes:
        write_changes(done.changes, root)
    for finding in done.left:
        place = screen.place(finding.source, finding.span.start)
        say(f"warning: {place}: {finding.code} cannot be suppressed by a comment; {_INSTEAD}")
    say(f"Added {pluralize(done.added, 'noqa comment')}.")
    if done.added and _is_unknown_to_ruff(root):
        say('note: `ruff --fix` removes these comments (RUF102) unless lint.external = ["RMT"]')
    return CLEAN


_INSTEAD = "use per-file-ignores in the settings"


def _is_unknown_to_ruff(root: Path) -> bool:
    """Return whether a project configures ruff and does not list these codes as external."""
    for name in (".ruff.toml", "ruff.toml", "pyproject.toml"):
        try:
            text = read_regular(root / name).decode(errors="replace")
        except OSError:
            continue
        if name != "pyproject.toml" or "[tool.ruff" in text:
            return re.search(r"\bexternal\s*=\s*\[[^\]]*RMT", text) is None
    return False
