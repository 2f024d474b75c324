"""RMT104: options of `jax.checkpoint` passed by position.

Up to jax 0.3.15 the signature was `checkpoint(fun, concrete=False, prevent_cse=True, policy=None)`;
since 0.3.16 options are keyword-only: https://github.com/jax-ml/jax/pull/11743
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from remat_migrate.api import Example, Finding, Fix, Module, Project, Related, Rule, Safety
from remat_migrate.api.changes import Change, NameArgument, Remove
from remat_migrate.api.code import EXPECTED, expects_failure
from remat_migrate.api.sites import (
    PositionalOptions,
    concrete_use,
    positional_options,
    shared_with_partial,
    sites_in,
)

from .concrete_option import concrete_fix

KEYWORD_ONLY_SINCE = (0, 3, 16)

# A comment that only labels the option.
_LABEL = r"(?i)#\s*concrete\W*(False|None|0)?\W*"


class PositionalOption(Rule):
    """## What it does
    Checks for options that are passed by position, in the order of old releases, to
    `jax.checkpoint`, `jax.remat`, their aliases in `jax.ad_checkpoint`, and `haiku.remat`. Flax
    still accepts positional options.

    ## Why is this bad?
    Since jax 0.3.16 the options are keyword-only: the call raises `TypeError`.

    ## Fix
    Passes the options by keyword. A `concrete` that is `False` has no effect and is removed. One
    that is `True` is migrated as in RMT101: arguments that must be concrete at trace time become
    `static_argnums` or are closed over.
    """

    code, name = "RMT104", "positional-option"
    since = "0.3.16"
    url = "https://github.com/jax-ml/jax/pull/11743"
    wrong = [
        Example(
            "import jax\n\nf = jax.checkpoint(print, False, True, policy)\n",
            "import jax\n\nf = jax.checkpoint(print, prevent_cse=True, policy=policy)\n",
        ),
        Example(
            "import jax\n"
            "\n"
            "f = jax.checkpoint(lambda x, flip: -x if flip else x, True, False)\n"
            "y = f(1.0, flip=True)\n",
            "import jax\n"
            "\n"
            "f = jax.checkpoint(lambda x, flip: -x if flip else x, static_argnums=(1,),"
            " prevent_cse=False)\n"
            "y = f(1.0, True)\n",
        ),
        Example("import jax\n\nOPTIONS = (False, True)\nf = jax.checkpoint(print, *OPTIONS)\n"),
    ]
    right = [
        "import jax\n\nf = jax.checkpoint(print)\n",
        "from flax import linen as nn\n\nBlock = nn.remat(nn.Dense, True, False)\n",
        "def remat(f, policy):\n    return f\n\n\nf = remat(print, None)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each call that passes options by position."""
        if project.jax_version(module.source.path) < KEYWORD_ONLY_SINCE:
            return
        found: dict[ast.Call, PositionalOptions] = {}
        for site in sites_in(project, module):
            for passed in positional_options(site, project):
                if passed.module is module:
                    found.setdefault(passed.call, passed)
        for passed in found.values():
            names = [f"`{name}`" if name else "one too many" for name, _ in passed.options]
            fix, related, reason = keyword_fix(passed, project)
            yield self.finding(
                *module.location(passed.call.func),
                f"options of `{passed.definition.name}` are keyword-only since jax 0.3.16;"
                f" passed by position: {', '.join(names) or '`*`'}",
                confidence=passed.confidence,
                fix=fix,
                related=related,
                reason=reason,
            )


def keyword_fix(
    passed: PositionalOptions, project: Project
) -> tuple[Fix, tuple[Related, ...], str]:
    """Return the fix of one call, the locations that explain it, and why there is none."""
    if reason := passed.reason or _obstacle(passed, project):
        return Fix.manual("pass the options by keyword"), (), reason
    removed = tuple(value for name, value in passed.options if _is_disabled(name, value))
    concrete = passed.site.arguments.get("concrete")
    if concrete and not removed and any(value is concrete.value for _, value in passed.options):
        use = concrete_use(project, concrete, passed.definition)
        fix, related, reason = concrete_fix(use, project)
        if fix.changes and len(passed.options) > 1:
            fix = replace(fix, title=f"{_title(passed)}; {fix.title}")
        return fix, related, reason
    module = passed.module
    changes: list[Change] = [Remove(module, value, label=_LABEL) for value in removed]
    for name, value in passed.options:
        if value not in removed:
            changes.append(NameArgument(module, value, str(name)))
    return Fix(_title(passed), Safety.SAFE, tuple(changes)), (), ""


def _obstacle(passed: PositionalOptions, project: Project) -> str:
    """Return why a call cannot be edited; empty if it can."""
    if shared_with_partial(passed, project):
        return "a partial and its call both pass options by position; name them all at once"
    if any(isinstance(around, ast.JoinedStr) for around in passed.module.ancestors(passed.call)):
        return "it is inside an f-string; edit it by hand"
    return EXPECTED if expects_failure(passed.module, passed.call, "TypeError") else ""


def _is_disabled(name: str | None, value: ast.expr) -> bool:
    """Return whether an option is `concrete` with a false value."""
    return name == "concrete" and isinstance(value, ast.Constant) and not value.value


def _title(passed: PositionalOptions) -> str:
    named = [f"`{name}=`" for name, _ in passed.options if name != "concrete"]
    return f"pass {', '.join(named)} by keyword" if named else "drop `concrete`, which is disabled"
