"""RMT102: the flag `jax_new_checkpoint` was removed.

JEP 11830 made a new implementation of `jax.checkpoint` the default in jax 0.3.16, with this flag to
go back. It exists in that release only: 0.3.17 removed the old implementation and the flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.flag.names import OWN_OPTION, SETTING, defines_own_option, may_use_flag
from remat_migrate.analysis.names.scopes import FunctionNode
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.rule import Example, Finding, Fix, Rule, Safety, Severity
from remat_migrate.suppressions import suppressed_at
from remat_migrate.text import SourceFile, Span

if TYPE_CHECKING:
    from remat_migrate.analysis.flag.uses import FlagUse, Form
    from remat_migrate.codemod.changes import Change
    from remat_migrate.text import Edit

# The one release that has the flag.
ONLY_IN = (0, 3, 16)

_REMOVED = "was removed in jax 0.3.17"
_FLAG, _VARIABLE = f"`jax_new_checkpoint` {_REMOVED}", f"`JAX_NEW_CHECKPOINT` {_REMOVED}"
_MESSAGES: Mapping[Form, tuple[Severity, str]] = {
    "update": ("error", f"{_FLAG}; setting it raises `AttributeError`"),
    "read": ("error", f"{_FLAG}; reading it raises `AttributeError`"),
    "exists": ("warning", f"{_FLAG} and never exists"),
    "attribute": ("warning", f"{_FLAG}; setting the attribute has no effect"),
    "environment": ("warning", f"{_VARIABLE} and has no effect"),
    "environment-read": ("warning", f"{_VARIABLE}; JAX ignores it"),
    "option": ("error", f"`--jax_new_checkpoint` {_REMOVED} and is now rejected"),
}
_TEXT_FORMS: Mapping[str, Form] = {"variable": "environment", "read": "environment-read"}


class NewCheckpointFlag(Rule):
    """## What it does
    Checks for code that sets or reads `jax_new_checkpoint`: `jax.config.update`, attributes of
    `jax.config`, the environment variable `JAX_NEW_CHECKPOINT`, and `--jax_new_checkpoint` on a
    command line. Covers Python, shell scripts, Dockerfiles, YAML, TOML, Makefiles, and `.env`
    files.

    ## Why is this bad?
    The flag chose between two implementations of `jax.checkpoint` in jax 0.3.16 only. Since then
    `jax.config.update("jax_new_checkpoint", ...)` raises `AttributeError`. JAX silently ignores the
    environment variable and the attribute, so code that asks for the old implementation runs the
    new one.

    ## Fix
    Removes the code that sets the flag, along with blocks, mappings, and imports that have no other
    use. Code that reads the flag is folded as if the flag were `True`, which selects the only
    remaining implementation. Values and gradients stay the same. Comments and prose are kept.
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
            "import jax\n"
            "\n"
            "if jax.config.jax_new_checkpoint:\n"
            "    remat = jax.checkpoint\n"
            "else:\n"
            "    remat = lambda f: f\n",
            "import jax\n\nremat = jax.checkpoint\n",
        ),
        Example(
            "export JAX_NEW_CHECKPOINT=0\npython t.py \\\n  --jax_new_checkpoint=0 \\\n  --lr 3\n",
            "python t.py \\\n  --lr 3\n",
            filename="train.sh",
        ),
        Example(
            "env:\n  JAX_NEW_CHECKPOINT: '0'  # see #1\nsteps:\n- run: JAX_NEW_CHECKPOINT=0 ls\n",
            "steps:\n- run: ls\n",
            filename="ci.yml",
        ),
        # An assertion that the old implementation is active cannot be folded.
        Example("import jax\n\nassert not jax.config.jax_new_checkpoint\n"),
    ]
    right = [
        'options = {}\noptions.update({"jax_new_checkpoint": False})\n',
        '"""Set JAX_NEW_CHECKPOINT=0 to go back."""\nprint("--jax_new_checkpoint=0 is gone")\n',
        Example('echo "JAX_NEW_CHECKPOINT=0 is gone"  # --jax_new_checkpoint=0\n', None, "a.sh"),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each use in a Python module."""
        if project.jax_version(module.source.path) <= ONLY_IN or not may_use_flag(module, project):
            return
        # Imported late: few files use the flag.
        from remat_migrate.analysis.flag.removals import find_flag_uses, remove_flag_uses

        source = module.source
        is_suppressed = suppressed_at(source, self.code, python=True)
        uses = find_flag_uses(module, project)
        planned = remove_flag_uses(module, project, uses, is_suppressed)
        fixes = _fixes((removal.members, removal.changes) for removal in planned)
        for index, use in enumerate(uses):
            yield self.finding(
                *module.location(use.node),
                _MESSAGES[use.form][1],
                severity=_MESSAGES[use.form][0],
                confidence="high" if use.sure else "low",
                fix=fixes.get(index),
                reason=use.reason,
                sites=_unreached_sites(use, module, project),
            )

    def check_text(self, source: SourceFile, project: Project) -> Iterator[Finding]:
        """Report each use in a file that is not Python."""
        if project.jax_version(source.path) <= ONLY_IN:
            return
        from remat_migrate.formats.files import plan_text

        is_suppressed = suppressed_at(source, self.code, python=False)
        own = OWN_OPTION if project.once(defines_own_option) else ""
        uses, planned = plan_text(source, SETTING, is_suppressed, keep_option=own)
        fixes = _fixes((removal.members, removal.edits) for removal in planned)
        for index, use in enumerate(uses):
            form: Form = "option" if use.form == "option" else _TEXT_FORMS[use.form]
            yield self.finding(
                source,
                Span(use.start, use.end),
                _MESSAGES[form][1],
                severity=_MESSAGES[form][0],
                confidence="low" if use.refused else "high",
                fix=fixes.get(index),
                reason=use.refused,
            )


def _unreached_sites(use: FlagUse, module: Module, project: Project) -> tuple[Site, ...]:
    """Return the checkpoints in the scope of a use that raises, which are never reached."""
    if _MESSAGES[use.form][0] != "error":
        return ()
    scope = next((n for n in module.ancestors(use.node) if isinstance(n, FunctionNode)), None)
    return tuple(
        site
        for site in sites_in(project, module)
        if scope is None or scope in module.ancestors(site.reference)
    )


def _fixes(
    removals: Iterable[tuple[frozenset[int], tuple[Change | Edit, ...]]],
) -> dict[int, Fix]:
    """Return the fix of each use, which covers all uses that can only be removed together."""
    found: dict[int, Fix] = {}
    for members, changes in removals:
        fix = Fix("remove the flag", Safety.SAFE, changes)
        for index in members:
            found.setdefault(index, fix)
    return found
