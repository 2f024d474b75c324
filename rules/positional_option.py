"""RMT104: options of `jax.checkpoint` passed by position.

Up to jax 0.3.15 it was `checkpoint(fun, concrete=False, prevent_cse=True, policy=None)`; since
0.3.16 options are keyword-only: https://github.com/jax-ml/jax/pull/11743
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.names.expected_failures import EXPECTED, expects_failure
from remat_migrate.analysis.names.scopes import FunctionNode
from remat_migrate.analysis.sites.concrete_options import concrete_use
from remat_migrate.analysis.sites.site import sites_in, sites_of
from remat_migrate.analysis.values.application import api_of, given
from remat_migrate.analysis.values.values import Constant, External, Function, Parameter, Partial
from remat_migrate.codemod.changes import Change, NameArgument, Remove
from remat_migrate.libraries.apis import APIS, Api
from remat_migrate.rule import Confidence, Example, Finding, Fix, Related, Rule, Safety

from .concrete_option import migrated

KEYWORD_ONLY_SINCE = (0, 3, 16)

# A comment that only says the name of an option.
_LABEL = r"(?i)#\s*concrete\W*(False|None|0)?\W*"


class PositionalOption(Rule):
    """## What it does

    Finds options of `jax.checkpoint`, `jax.remat`, their old names in `jax.ad_checkpoint` and
    `haiku.remat` that are passed by position, in the order of old releases. Flax still takes them
    so.

    ## Why is this bad?

    Since jax 0.3.16 the options are keyword-only: the call raises `TypeError`.

    ## Fix

    Names them. A `concrete` that is `False` has no effect and is removed; one that is `True` is
    migrated as RMT101 does it: the arguments that Python needs become `static_argnums` or are
    closed over.
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
            "f = jax.checkpoint(\n"
            "    lambda x, flip: -x if flip else x, static_argnums=(1,), prevent_cse=False\n"
            ")\n"
            "y = f(1.0, True)\n",
        ),
        Example(
            "from jax.ad_checkpoint import remat\n\nf = remat(print, False)\n",
            "from jax.ad_checkpoint import remat\n\nf = remat(print, prevent_cse=False)\n",
        ),
        Example("import jax\n\nOPTIONS = (False, True)\nf = jax.checkpoint(print, *OPTIONS)\n"),
    ]
    right = [
        "import jax\n\nf = jax.checkpoint(print)\n",
        "import jax\n\nf = jax.checkpoint(print)(1, True)\n",
        "from flax import linen as nn\n\nBlock = nn.remat(nn.Dense, True, False)\n",
        "from torch.utils.checkpoint import checkpoint\n\ny = checkpoint(print, True)\n",
        "def remat(f, policy):\n    return f\n\n\nf = remat(print, None)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each call that gives options by position."""
        if project.settings.jax_version < KEYWORD_ONLY_SINCE:
            return
        found: dict[ast.Call, Passed] = {}
        for site in sites_in(project, module):
            for passed in passed_by_position(site, project):
                if passed.module is module:
                    found.setdefault(passed.call, passed)
        for passed in found.values():
            api, names = passed.definition, [name or "one more" for name, _ in passed.options]
            fix, related, reason = migration(passed, project)
            yield self.finding(
                module.source,
                module.span(passed.call.func),
                f"options of `{api.name}` are keyword-only since jax 0.3.16;"
                f" by position: {', '.join(f'`{name}`' for name in names) or '`*`'}",
                confidence=passed.confidence,
                fix=fix,
                related=related,
                reason=reason,
            )


@dataclass(frozen=True, eq=False, slots=True)
class Passed:
    """The options that one call gives by position.

    Attributes:
        site: an application that the call leads to.
        module: where the call is.
        call: a call of the Api, or of `functools.partial` with the Api.
        definition: the Api.
        options: name and value of each; the name is None for one too many.
        reason: why the call is not to be changed.
        confidence: whether it is an Api that is called.
    """

    site: Site
    module: Module
    call: ast.Call
    definition: Api
    options: tuple[tuple[str | None, ast.expr], ...]
    reason: str = ""
    confidence: Confidence = "high"


def passed_by_position(site: Site, project: Project) -> Iterator[Passed]:
    """The calls that lead to a site, partials first, each with what it passes by position."""
    api = site.definition
    # A user's own wrapper has a signature of its own.
    if not api.old_positional or api.name not in APIS:
        return
    doubt = _doubt(site, project)
    if doubt == "" and not _is_known(site.module, project, site.reference):
        doubt = "something that cannot be seen may be called here, too"
    if doubt is None:
        return
    call = site.application if isinstance(site.application, ast.Call) else None
    if site.form.startswith("decorator") or _made_by(site) is call:
        call = None
    position = 0
    for owner, made, args in given(site.callee, site.module, call):
        options: list[tuple[str | None, ast.expr]] = []
        reason = doubt
        for arg in args:
            if isinstance(arg, ast.Starred):
                if position and not _is_handed_on(owner, arg):
                    reason = f"what `{owner.segment(arg)}` holds has to be named by hand"
                break
            if position:
                order = api.old_positional
                options.append((order[position] if position < len(order) else None, arg))
            position += 1
        else:
            reason = _conflict(made, options) or doubt
        if options or reason != doubt:
            sure: Confidence = "medium" if doubt or not options else "high"
            yield Passed(site, owner, made, api, tuple(options), reason, sure)


def _made_by(site: Site) -> ast.Call | None:
    return site.callee.call if isinstance(site.callee, Partial) else None


def _doubt(site: Site, project: Project) -> str | None:
    """Why calls of the Api may be calls of something else; None where they are left alone."""
    api = site.definition
    reason = ""
    for value in project.values(site.module, site.reference):
        other = api_of(project.apis, value)
        if other is not None:
            if other.old_positional != api.old_positional:
                reason = "the name stands for functions that take options in different orders"
        elif isinstance(value, Parameter | Function):
            reason = "something else with options of its own may be called here, too"
        elif isinstance(value, External):
            return None  # `checkpoint` of JAX or of PyTorch, by a setting
        elif value != Constant(None):
            reason = "something else may be called here, too"
    return reason


def _is_known(module: Module, project: Project, node: ast.expr) -> bool:
    """Whether every way to the value of an expression has been followed."""
    seen: set[ast.expr] = set()
    open_: list[ast.expr] = [node]
    while open_:
        part = open_.pop()
        if part in seen:
            continue
        seen.add(part)
        match part:
            case ast.IfExp(body=one, orelse=other):
                open_ += [one, other]
            case ast.BoolOp(values=parts):
                open_ += parts
            case ast.Name():
                for binding in module.reaching(part):
                    if binding.kind == "assign" and binding.value is not None and not binding.path:
                        open_.append(binding.value)
                    elif not project.evaluator.binding(module, binding):
                        return False
            case _ if not project.values(module, part):
                return False
    return True


def _is_handed_on(module: Module, arg: ast.Starred) -> bool:
    """Whether it is the `*args` of a wrapper around the Api: nobody may ever pass one."""
    if not isinstance(arg.value, ast.Name):
        return False
    bindings = module.reaching(arg.value)
    return bool(bindings) and all(
        isinstance(binding.scope.node, FunctionNode)
        and binding.node is binding.scope.node.args.vararg
        for binding in bindings
    )


def _conflict(call: ast.Call, options: list[tuple[str | None, ast.expr]]) -> str:
    keywords = {keyword.arg for keyword in call.keywords}
    for name, _ in options:
        if name is None:
            return "no release takes as many"
        if name in keywords:
            return f"`{name}` is given twice"
    return ""


def _shifts_others(passed: Passed, project: Project) -> str:
    """Why the options of one call cannot be changed alone."""
    for site in sites_of(project):
        calls = list(passed_by_position(site, project))
        if len(calls) > 1 and any(other.call is passed.call for other in calls):
            return "a partial of it is called with more options by position: name them all at once"
    return ""


def _is_nothing(name: str | None, value: ast.expr) -> bool:
    """Whether an option is `concrete`, and off."""
    return name == "concrete" and isinstance(value, ast.Constant) and not value.value


def _title(passed: Passed) -> str:
    named = [str(name) for name, _ in passed.options if name != "concrete"]
    if not named:
        return "drop `concrete`, which is off"
    return f"pass {', '.join(f'`{name}=`' for name in named)} as keywords"


def _obstacle(passed: Passed) -> str:
    """Why a call cannot be edited where it stands; "" if it can."""
    if any(isinstance(around, ast.JoinedStr) for around in passed.module.ancestors(passed.call)):
        return "it stands inside an f-string: write it by hand"
    return EXPECTED if expects_failure(passed.module, passed.call, "TypeError") else ""


def migration(passed: Passed, project: Project) -> tuple[Fix, tuple[Related, ...], str]:
    """The fix of one call, the places that explain it, and why there is none."""
    if reason := passed.reason or _shifts_others(passed, project) or _obstacle(passed):
        return Fix("pass them as keywords", Safety.MANUAL), (), reason
    return _migrated(passed, project)


def _migrated(passed: Passed, project: Project) -> tuple[Fix, tuple[Related, ...], str]:
    gone = tuple(value for name, value in passed.options if _is_nothing(name, value))
    concrete = passed.site.arguments.get("concrete")
    if concrete and not gone and any(value is concrete.value for _, value in passed.options):
        use = concrete_use(project, concrete, passed.definition)
        fix, related, reason = migrated(use, project)
        if fix.changes and len(passed.options) > 1:
            fix = replace(fix, title=f"{_title(passed)}; {fix.title}")
        return fix, related, reason
    module = passed.module
    changes: list[Change] = [Remove(module, value, label=_LABEL) for value in gone]
    for name, value in passed.options:
        if value not in gone:
            changes.append(NameArgument(module, value, str(name)))
    return Fix(_title(passed), Safety.SAFE, tuple(changes)), (), ""
