"""RMT001: a suppression comment that suppresses nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from remat_migrate.codemod.changes import SetComment
from remat_migrate.rule import Example, Finding, Fix, Safety
from remat_migrate.suppressions import Directive, SuppressionRule, Unused
from remat_migrate.text import SourceFile


class UnusedSuppression(SuppressionRule):
    """## What it does

    Finds `# noqa: RMT101` on a line, or `# remat-migrate: ignore-file` in a file, where there is
    nothing to suppress. Codes of other linters in the same comment, and `# noqa` without a code,
    are left alone.

    ## Why is this bad?

    The comment outlived the problem. It would hide the next one.

    ## Fix

    Removes the code, or the comment if nothing else stands in it.
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
        "import remat  # noqa: F401\n",
        'TEXT = """remat  # noqa: RMT101"""\n',
    ]

    def check_suppressions(self, source: SourceFile, unused: Sequence[Unused]) -> Iterator[Finding]:
        """One finding for every comment with something unused in it."""
        for each in unused:
            directive = each.directive
            left = _left(source, directive, each.codes)
            if directive.whole_file:
                message = "`ignore-file` suppresses nothing: the file has no finding"
            elif each.codes == each.unknown:
                message = f"no rule has the code {_listed(each.codes)}"
            else:
                message = f"nothing to suppress: the line has no {_listed(each.codes)}"
            title = "remove the code" if left else "remove the comment"
            yield self.finding(
                source,
                directive.span,
                message,
                fix=Fix(title, Safety.SAFE, (SetComment.of(source, directive.comment, left),)),
            )


def _listed(codes: Sequence[str]) -> str:
    return ", ".join(code.upper() for code in codes)


def _left(source: SourceFile, directive: Directive, codes: Sequence[str]) -> str:
    """What is left of a comment: what is not ours, or is used."""
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
