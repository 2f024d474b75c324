"""RMT102: the flag `jax_new_checkpoint` was removed.

JEP 11830 made a new implementation of `jax.checkpoint` the default in jax 0.3.16, with this flag to
go back. It exists in that release only: 0.3.17 removed the old implementation and the flag.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from remat_migrate.api import (
    Confidence,
    Example,
    Finding,
    Fix,
    Module,
    Project,
    Rule,
    Safety,
    Severity,
)
from remat_migrate.api.changes import Remove
from remat_migrate.api.code import Edit, SourceFile, Span

if TYPE_CHECKING:
    from remat_migrate.api.flag import Form

# The one release that has the flag.
ONLY_IN = (0, 3, 16)

_REMOVED = "was removed in jax 0.3.17"
_FLAG, _VARIABLE = f"`jax_new_checkpoint` {_REMOVED}", f"`JAX_NEW_CHECKPOINT` {_REMOVED}"
_MESSAGES: Mapping[Form, tuple[Severity, str]] = {
    "update": ("error", f"{_FLAG}; setting it raises `AttributeError`"),
    "read": ("error", f"{_FLAG}; reading it raises `AttributeError`"),
    "handled": ("warning", f"{_FLAG}; the code handles its absence"),
    "attribute": ("warning", f"{_FLAG}; setting the attribute has no effect"),
    "environment": ("warning", f"{_VARIABLE} and has no effect"),
    "option": ("error", f"`--jax_new_checkpoint` {_REMOVED} and is now rejected"),
    "name": ("warning", _FLAG),
}
# A file without one of these has nothing to do with the flag.
_NAMES = ("jax_new_checkpoint", "JAX_NEW_CHECKPOINT")


class NewCheckpointFlag(Rule):
    """## What it does
    Checks for code that sets or reads `jax_new_checkpoint`: `jax.config.update`, attributes of
    `jax.config`, the environment variable `JAX_NEW_CHECKPOINT`, and `--jax_new_checkpoint` on a
    command line. Covers Python, shell scripts, Dockerfiles, Makefiles, YAML, TOML, JSON, INI, and
    `.env` files.

    ## Why is this bad?
    The flag chose between two implementations of `jax.checkpoint` in jax 0.3.16 only. Since then
    `jax.config.update("jax_new_checkpoint", ...)` raises `AttributeError`. JAX silently ignores the
    environment variable and the attribute, so code that asks for the old implementation runs the
    new one.

    ## Fix
    In Python, removes a statement, list item, mapping item, or keyword that does nothing but set
    the flag, along with blocks and imports that have no other use; in other files, a line or word.
    Everything else is left to you, with the reason: a branch on the flag, a longer string, a `try`
    around it, a variable that the project reads. Values and gradients stay the same. Comments and
    prose are kept.
    """

    code, name = "RMT102", "new-checkpoint-flag"
    since = "0.3.17"
    url = "https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html"

    wrong = [
        Example(
            "import jax\n"
            "from jax.config import config\n"
            "\n"
            "# Small models.\n"
            'config.update("jax_new_checkpoint", False)\n'
            "f = jax.checkpoint(abs)\n",
            "import jax\n\n# Small models.\nf = jax.checkpoint(abs)\n",
        ),
        Example(
            "export JAX_NEW_CHECKPOINT=0\npython t.py \\\n  --jax_new_checkpoint=0 \\\n  --lr 3\n",
            "python t.py \\\n  --lr 3\n",
            filename="train.sh",
        ),
        Example(
            "env:\n  JAX_NEW_CHECKPOINT: '0'  # see #1\n  A: 1\nrun: JAX_NEW_CHECKPOINT=0 ls\n",
            "env:\n  A: 1\nrun: ls\n",
            filename="ci.yml",
        ),
        # A branch on the flag is left to the user.
        Example(
            "import jax\n"
            "\n"
            "if jax.config.jax_new_checkpoint:\n"
            "    remat = jax.checkpoint\n"
            "else:\n"
            "    remat = lambda f: f\n"
        ),
    ]
    right = [
        "class Config:\n    jax_new_checkpoint = False\n\n\nprint(Config().jax_new_checkpoint)\n",
        '"""Set JAX_NEW_CHECKPOINT=0 to go back."""\nprint("--jax_new_checkpoint=0 is gone")\n',
        Example('echo "JAX_NEW_CHECKPOINT=0 is gone"  # --jax_new_checkpoint=0\n', None, "a.sh"),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each use in a Python module."""
        if not any(name in module.source.text for name in _NAMES):
            return
        if project.jax_version(module.source.path) <= ONLY_IN:
            return
        from remat_migrate.api.flag import find_flag_uses, is_import_needed

        needed = partial(is_import_needed, project, module)
        for use in find_flag_uses(module, project):
            changes = (Remove(module, use.remove, needed),) if use.remove else ()
            yield self._found(
                *module.location(use.node),
                use.form,
                changes,
                use.reason,
                confidence="high" if use.sure else "low",
            )

    def check_text(self, source: SourceFile, project: Project) -> Iterator[Finding]:
        """Report each use in a file that is not Python."""
        if not any(name in source.text for name in _NAMES):
            return
        if project.jax_version(source.path) <= ONLY_IN:
            return
        from remat_migrate.api.flag import find_text_uses, reasons_to_keep

        for use in find_text_uses(source, project.once(reasons_to_keep)):
            changes = (Edit(source.path, *use.cut, ""),) if use.cut else ()
            confidence: Confidence = "low" if use.reason else "high"
            yield self._found(
                source, use.span, use.form, changes, use.reason, confidence=confidence
            )

    def _found(
        self,
        source: SourceFile,
        span: Span,
        form: Form,
        changes: tuple[Edit | Remove, ...],
        reason: str,
        *,
        confidence: Confidence,
    ) -> Finding:
        severity, message = _MESSAGES[form]
        fix = Fix("remove the flag", Safety.SAFE, changes) if changes else None
        return self.finding(
            source,
            span,
            message,
            severity=severity,
            confidence=confidence,
            fix=fix,
            reason=reason,
        )
