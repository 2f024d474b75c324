"""RMT102: the option `jax_new_checkpoint` is gone.

JEP 11830 made a new implementation of `jax.checkpoint` the default in jax 0.3.16, with this option
to go back. It was there in that one release: 0.3.17 dropped the old implementation and the option.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.flag.names import OWN_OPTION, SETTING, defines_own_option, may_use_flag
from remat_migrate.analysis.names.scopes import FunctionNode
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.rule import Example, Finding, Fix, Rule, Safety, Severity
from remat_migrate.suppressions import read_directives
from remat_migrate.text import SourceFile, Span

if TYPE_CHECKING:
    from remat_migrate.analysis.flag.uses import FlagUse, Form
    from remat_migrate.codemod.changes import Change
    from remat_migrate.text import Edit

# The one release that has the option.
ONLY_IN = (0, 3, 16)

_FLAG, _VARIABLE = "`jax_new_checkpoint` is gone since jax 0.3.17", "`JAX_NEW_CHECKPOINT`"
_MESSAGES: Mapping[Form, tuple[Severity, str]] = {
    "update": ("error", f"{_FLAG}: setting it raises AttributeError"),
    "read": ("error", f"{_FLAG}: reading it raises AttributeError"),
    "exists": ("warning", f"{_FLAG}: it never exists"),
    "attribute": ("warning", f"{_FLAG}: setting the attribute has no effect"),
    "environment": ("warning", f"{_VARIABLE} is gone since jax 0.3.17: it has no effect"),
    "environment-read": ("warning", f"{_VARIABLE} is gone since jax 0.3.17: JAX ignores it"),
    "option": ("error", "`--jax_new_checkpoint` is gone since jax 0.3.17: it is rejected"),
}
_OLD = "; the old implementation that it asks for is gone"
_TEXT_FORMS: Mapping[str, Form] = {"variable": "environment", "read": "environment-read"}


class NewCheckpointFlag(Rule):
    """## What it does

    Finds everything that sets or reads `jax_new_checkpoint`: `jax.config.update`, attributes of
    `jax.config`, the environment variable `JAX_NEW_CHECKPOINT`, and `--jax_new_checkpoint` on a
    command line, in Python, shell scripts, Dockerfiles, YAML, TOML, Makefiles and `.env` files.

    ## Why is this bad?

    The option chose between two implementations of `jax.checkpoint`, in jax 0.3.16 alone. Since
    then `jax.config.update("jax_new_checkpoint", ...)` raises AttributeError. The environment
    variable and the attribute are ignored without a word: code that believes to run the old
    implementation does not.

    ## Fix

    What sets the flag is removed, with blocks, mappings and imports that served nothing else.
    What reads it comes down to the side of True: the new implementation is the only one. Values
    and gradients are the same. Comments and prose stay.
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
            "import os, subprocess\n"
            "\n"
            'env = {**os.environ, "JAX_NEW_CHECKPOINT": "0"}\n'
            'subprocess.run(["python", "t.py", "--jax_new_checkpoint=0"], env=env)\n',
            "import os, subprocess\n"
            "\n"
            "env = {**os.environ}\n"
            'subprocess.run(["python", "t.py"], env=env)\n',
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
        # An assertion that the old implementation is on cannot be folded.
        Example("import jax\n\nassert not jax.config.jax_new_checkpoint\n"),
    ]
    right = [
        'options = {}\noptions.update({"jax_new_checkpoint": False})\n',
        '"""Set JAX_NEW_CHECKPOINT=0 to go back."""\nprint("--jax_new_checkpoint=0 is gone")\n',
        Example('echo "JAX_NEW_CHECKPOINT=0 is gone"  # --jax_new_checkpoint=0\n', None, "a.sh"),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """The uses in a Python module."""
        if project.settings.jax_version <= ONLY_IN or not may_use_flag(module, project):
            return
        # Few files get here; the others need not wait for this import.
        from remat_migrate.analysis.flag.removals import find_flag_uses, remove_flag_uses

        source = module.source
        is_suppressed = _suppressed(source, python=True)
        uses = find_flag_uses(module, project)
        planned = remove_flag_uses(module, project, uses, is_suppressed)
        removals = [(removal.members, removal.changes) for removal in planned]
        for index, use in enumerate(uses):
            yield self.finding(
                source,
                module.span(use.node),
                _message(use.form, use.asked),
                severity=_MESSAGES[use.form][0],
                confidence="high" if use.sure else "low",
                fix=_fix(index, removals),
                reason=use.reason,
                sites=_sites(use, module, project),
            )

    def check_text(self, source: SourceFile, project: Project) -> Iterator[Finding]:
        """The uses in a file that is not Python."""
        if project.settings.jax_version <= ONLY_IN:
            return
        from remat_migrate.formats.files import plan_text

        is_suppressed = _suppressed(source, python=False)
        own = OWN_OPTION if defines_own_option(project) else ""
        uses, planned = plan_text(source, SETTING, is_suppressed, keep_option=own)
        removals = [(removal.members, removal.edits) for removal in planned]
        for index, use in enumerate(uses):
            form: Form = "option" if use.form == "option" else _TEXT_FORMS[use.form]
            yield self.finding(
                source,
                Span(use.start, use.end),
                _message(form, SETTING.truth(use.value)),
                severity=_MESSAGES[form][0],
                confidence="low" if use.refused else "high",
                fix=_fix(index, removals),
                reason=use.refused,
            )


def _sites(use: FlagUse, module: Module, project: Project) -> tuple[Site, ...]:
    """The checkpoints that are not reached where a use raises: those of its scope."""
    if _MESSAGES[use.form][0] != "error":
        return ()
    scope = _function_around(module, use.node)
    return tuple(
        site
        for site in sites_in(project, module)
        if scope is None or scope in module.ancestors(site.reference)
    )


def _function_around(module: Module, node: ast.AST) -> ast.AST | None:
    return next((n for n in module.ancestors(node) if isinstance(n, FunctionNode)), None)


def _message(form: Form, asked: bool | None) -> str:
    return _MESSAGES[form][1] + (_OLD if asked is False else "")


def _fix(
    index: int, removals: Sequence[tuple[frozenset[int], tuple[Change | Edit, ...]]]
) -> Fix | None:
    """The fix of one use: that of all uses that can only be removed together."""
    for members, changes in removals:
        if index in members:
            return Fix("take the flag out", Safety.SAFE, changes)
    return None


def _suppressed(source: SourceFile, *, python: bool) -> Callable[[int], bool]:
    """Whether a suppression covers an offset: what stays there may keep an import in use."""
    directives = read_directives(source, python=python)

    def is_suppressed(offset: int) -> bool:
        line, _ = source.position(offset)
        return any(d.covers(line, NewCheckpointFlag.code) for d in directives)

    return is_suppressed
