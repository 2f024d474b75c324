"""RMT001: a suppression comment that suppresses nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from remat_migrate.api import Example, Finding, Fix, Rule, Safety
from remat_migrate.api.changes import SetComment
from remat_migrate.api.code import Directive, SourceFile


class UnusedSuppression(Rule):
    """## What it does
    Checks for `# noqa: RMT101` comments and `# remat-migrate: ignore-file` comments that suppress
    nothing. Codes of other linters in the same comment and `# noqa` without a code are left alone.

    ## Why is this bad?
    The problem that the comment suppressed is gone. The comment would hide the next one.

    ## Fix
    Removes the code, or the whole comment if nothing else is in it.
    """

    code, name = "RMT001", "unused-suppression"
    severity = "warning"
    wrong = [
        Example(
            "def checkpoint(x):  # noqa: RMT101\n    return x\n",
            "def checkpoint(x):\n    return x\n",
        ),
        Example(
            "import remat  # noqa: F401, RMT103 kept for users\n",
            "import remat  # noqa: F401 kept for users\n",
        ),
        Example("# remat-migrate: ignore-file\nx = 1\n", "x = 1\n"),
    ]
    right = [
        "import jax\n\nf = jax.checkpoint(print, concrete=True)  # noqa: RMT101\n",
        "import remat  # noqa\n",
        'TEXT = """remat  # noqa: RMT101"""\n',
    ]

    def check_suppressions(
        self, source: SourceFile, unused: Sequence[tuple[Directive, tuple[str, ...]]]
    ) -> Iterator[Finding]:
        """Report each comment in which something is unused."""
        for directive, unused_codes in unused:
            rest = _rest(source, directive, unused_codes)
            codes = ", ".join(code.upper() for code in unused_codes)
            if directive.whole_file:
                message = "unused `ignore-file`: the file has no findings"
            else:
                message = f"unused `noqa`: no {codes} on this line"
            title = "remove the code" if rest else "remove the comment"
            change = SetComment.of(source, directive.comment, rest)
            fix = Fix(title, Safety.SAFE, (change,))
            yield self.finding(source, directive.span, message, fix=fix)


def _rest(source: SourceFile, directive: Directive, codes: Sequence[str]) -> str:
    """Return what is left of a comment without the unused codes."""
    start, end = directive.comment
    before, after = source.text[start : directive.span.start], source.text[directive.span.end : end]
    kept = [code for code in directive.codes if code not in codes]
    if kept:
        written = source.text[slice(*directive.span)]
        head = written[: written.upper().rindex(directive.codes[0].upper())]
        found = re.search(rf"{directive.codes[0]}(\s*,\s*|\s+)", written)
        separator = found[1] if found else ", "
        return before + head + separator.join(kept) + after
    before, after = before.rstrip(), after.strip()
    if after and not before and not after.startswith("#"):
        after = f"# {after}"
    return "  ".join(filter(None, (before, after)))
