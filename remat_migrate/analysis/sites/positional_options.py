"""Options that calls of checkpoint functions pass by position, in the order of old releases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ...libraries.apis import APIS, Api
from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..values.application import api_of, argument_calls
from ..values.values import External
from .find_sites import sites_of
from .site import Site, own_call


@dataclass(frozen=True, eq=False, slots=True)
class PositionalOptions:
    """The options that one call passes by position.

    Attributes:
        site: a site that the call leads to.
        module: the module of the call.
        call: a call of the Api, or of `functools.partial` with the Api.
        definition: the Api.
        options: the name and value of each; the name is None for an excess argument.
        reason: why the call must not be changed.
        confidence: how certain it is that the Api is called.
    """

    site: Site
    module: Module
    call: ast.Call
    definition: Api
    options: tuple[tuple[str | None, ast.expr], ...]
    reason: str = ""
    confidence: Literal["high", "medium"] = "high"


def positional_options(site: Site, project: Project) -> Iterator[PositionalOptions]:
    """Yield the positional options of the calls that lead to a site, those of partials first."""
    api = site.definition
    # A wrapper of the project has its own signature.
    if not api.old_positional or api.name not in APIS:
        return
    doubt = _doubt(site, project)
    if doubt is None:
        return
    own = own_call(site.module, site.application, site.callee)
    position = 0
    for owner, call, args in argument_calls(site.callee, site.module, own):
        options: list[tuple[str | None, ast.expr]] = []
        reason = doubt
        for arg in args:
            if isinstance(arg, ast.Starred):
                if position and not _is_variadic_parameter(owner, arg):
                    reason = f"the options in `{owner.segment(arg)}` must be named by hand"
                break
            if position:
                order = api.old_positional
                options.append((order[position] if position < len(order) else None, arg))
            position += 1
        else:
            reason = _conflict(call, options) or doubt
        if options or reason != doubt:
            confidence: Literal["high", "medium"] = "medium" if doubt or not options else "high"
            yield PositionalOptions(site, owner, call, api, tuple(options), reason, confidence)


def shared_with_partial(passed: PositionalOptions, project: Project) -> bool:
    """Return whether another call on the way to a site also passes options by position."""
    return passed.call in project.once(_shared_calls)


def _shared_calls(project: Project) -> set[ast.Call]:
    every = (list(positional_options(site, project)) for site in sites_of(project))
    return {passed.call for calls in every if len(calls) > 1 for passed in calls}


def _doubt(site: Site, project: Project) -> str | None:
    """Return why the call may call another function, or None to leave it alone."""
    reason = "" if site.certain else "another function may be called here"
    for value in project.values(site.module, site.reference):
        other = api_of(project.apis, value)
        if other is None and isinstance(value, External):
            return None  # `checkpoint` of JAX or of PyTorch, depending on a setting
        if other is not None and other.old_positional != site.definition.old_positional:
            reason = "the name may refer to functions that take options in different orders"
    return reason


def _is_variadic_parameter(module: Module, arg: ast.Starred) -> bool:
    """Return whether a wrapper passes on its own `*args`, which may always be empty."""
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
            return "no jax release accepts this many arguments"
        if name in keywords:
            return f"`{name}` is passed twice"
    return ""
