"""Removes a `concrete` parameter of a wrapper, and the arguments that its callers pass for it."""

from __future__ import annotations

import ast

from ..analysis import Module, Project
from ..analysis.sites.site import Option
from ..analysis.sites.wrappers import Forwarded, forwarded, passed_options
from ..codemod.changes import Change, Remove
from .options import remove
from .refusal import Refused, check_own


def drop_parameter(project: Project, option: Option) -> tuple[str, list[Change], str]:
    """Return the title and changes that remove an option and the parameter that it passes on.

    Also returns why callers outside the project may break; "" if there can be none.

    Raises:
        Refused: a caller passes another value than False, or the parameter has another use.
    """
    handed = forwarded(option.module, option.value)
    assert handed is not None
    search = _Drop(project, option)
    search.drop(handed)
    changes = search.changes()
    names = ", ".join(f"`{f.function.name}`" for f in search.done)
    title = f"drop `concrete`, which no caller sets, and the parameter of {names}"
    public = next((f for f in search.done if _is_public(f)), None)
    if public is None:
        return title, changes, ""
    name, function = public.parameter.arg, public.function
    after = "" if public.parameter in function.args.kwonlyargs else ", or more by position,"
    breaks = f"`{function.name}` is public: callers elsewhere that pass `{name}`{after} break"
    return title, changes, breaks


def _is_public(handed: Forwarded) -> bool:
    """Return whether code outside the project may call a function."""
    module, function = handed.module, handed.function
    exported = _exported(module)
    is_hidden = function.name.startswith("_") or (exported and function.name not in exported)
    return not is_hidden and module.enclosing_function(function) is None


def _exported(module: Module) -> set[str]:
    """Return the strings of every statement that mentions `__all__`."""
    return {
        inner.value
        for node in module.tree.body
        if any(isinstance(n, ast.Name) and n.id == "__all__" for n in ast.walk(node))
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    }


class _Drop:
    def __init__(self, project: Project, option: Option) -> None:
        self.project = project
        self.option = option
        self.done: list[Forwarded] = []
        self.removed: dict[Module, list[ast.AST]] = {}

    def drop(self, handed: Forwarded) -> None:
        if any(f.parameter is handed.parameter for f in self.done):
            return
        self.done.append(handed)
        name, function = handed.parameter.arg, handed.function
        check_own(handed.module, function, "the wrapper")
        if function.name in _exported(handed.module):
            raise Refused(
                f"`{name}` is a parameter of `{function.name}`, which `__all__` exports, so callers"
                " elsewhere may pass it: remove it, or raise an error if it is set",
                handed.module,
                handed.parameter,
            )
        default = handed.default
        if not isinstance(default, ast.Constant) or default.value:
            call = self.option.call
            keywords = call.keywords if isinstance(call, ast.Call) else []
            named = any(keyword.arg == "static_argnums" for keyword in keywords)
            raise Refused(
                f"`{name}` of `{function.name}` is not False by default: remove it "
                + (
                    "if `static_argnums`, which is passed, too, names all arguments that must be"
                    " concrete"
                    if named
                    else "once `static_argnums` names the arguments that must be concrete"
                ),
                handed.module,
                handed.parameter,
            )
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id == name:
                self._read(handed, node)
        passed, hiding = passed_options(self.project, handed)
        if hiding is not None:
            reason = f"`{function.name}` is passed on as a value, so not all callers are known"
            raise Refused(reason, *hiding)
        for option in passed:
            self._passed(handed, option)

    def _read(self, handed: Forwarded, node: ast.Name) -> None:
        module = handed.module
        holder = module.parent(node)
        if node is self.option.value and self.option.keyword is None:
            self.removed.setdefault(module, []).append(node)
            return
        if not isinstance(holder, ast.keyword) or holder.arg is None:
            reason = f"`{node.id}` of `{handed.function.name}` is used for more than the option"
            raise Refused(reason, module, node)
        self.removed.setdefault(module, []).append(holder)

    def _passed(self, handed: Forwarded, option: Option) -> None:
        module, value = option.module, option.value
        onward = forwarded(module, value)
        if onward is None and not (isinstance(value, ast.Constant) and not value.value):
            passed = f"{handed.parameter.arg}={module.segment(value)}"
            raise Refused(f"a caller passes `{passed}`: migrate it first", module, value)
        self.removed.setdefault(module, []).append(option.keyword or value)
        if onward is not None:
            self.drop(onward)

    def changes(self) -> list[Change]:
        """Return all changes: keywords and arguments, then parameters."""
        found: list[Change] = []
        for module, nodes in self.removed.items():
            found += remove(self.project, module, list(dict.fromkeys(nodes)))
        return [*found, *(Remove(handed.module, handed.parameter) for handed in self.done)]
