"""Runs a long loop in checkpointed segments.

jax.lax.scan(body, x, xs)  ->  scan_in_segments(body, x, xs, sizes=(32,))

A `fori_loop` becomes a scan over nothing that carries the index, as JAX runs it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from ...analysis import Module, Project
from ...analysis.sites.references import reference_to
from ...analysis.values.values import External
from ...codemod.changes import Change, Code, Insert, Replace, SetArgument
from ..free_names import free_name, words_in
from ..refusal import Refused
from .loop_bodies import wrap_body

_HELPER = "scan_in_segments"
_SOURCE = Path(__file__).parents[2] / "measure" / "worker" / "segments.py"
_FORI_LOOP = ("lower", "upper", "body_fun", "init_val")
_OPTIONS = frozenset({"f", "init", "xs", "length", "reverse", "unroll"})


def in_segments(
    project: Project,
    module: Module,
    call: ast.Call,
    body: ast.expr | None,
    sizes: Sequence[int],
) -> list[Change]:
    """Return the changes that run a loop in segments.

    Args:
        project: the project.
        module: the module of the loop.
        call: the call of `jax.lax.scan` or `jax.lax.fori_loop`.
        body: the argument that is its body, None if the call unpacks its arguments.
        sizes: sizes of the segments, the longest first; 1 is a checkpoint on the body.

    Raises:
        Refused: it is another loop, or a checkpoint changes what it does.
    """
    values = project.values(module, call.func)
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    bounds = dict(zip(_FORI_LOOP, call.args, strict=False)) | named
    is_scan = values == {External("jax.lax.scan")} and named.keys() <= _OPTIONS
    is_fori_loop = values == {External("jax.lax.fori_loop")} and bounds.keys() == {*_FORI_LOOP}
    if body is None or not (is_scan or is_fori_loop):
        reason = f"`{ast.unparse(call.func)}` is no plain `jax.lax.scan`: write it as one"
        raise Refused(reason, module, call)
    longer = Code(repr(tuple(size for size in sizes if size > 1)))
    # Refuses where segments are wrong, too.
    on_body, *imports = wrap_body(project, module, call, body)
    assert isinstance(on_body, Replace)
    changes: list[Change] = imports if 1 in sizes else []
    if is_scan:
        changes += [SetArgument(module, call, "sizes", longer)]
        changes += [Replace(module, call.func, Code(_HELPER))]
        changes += [on_body] if 1 in sizes else []
    else:
        step = on_body.code.text if 1 in sizes else "({body})"
        arguments = [bounds[name] for name in _FORI_LOOP]
        changes += [Replace(module, call, _as_scan(module, arguments, step, longer.text))]
    return [*changes, *_definition(project, module)]


def _as_scan(module: Module, arguments: Sequence[ast.expr], step: str, sizes: str) -> Code:
    lower, upper, body, init = arguments
    taken = words_in(module)
    loop, nothing = free_name("loop", taken), free_name("none", taken)
    starts_at_0 = isinstance(lower, ast.Constant) and lower.value == 0
    length = "{upper}" if starts_at_0 else "({upper}) - ({lower})"
    text = (
        f"{_HELPER}(\n"
        f"    lambda {loop}, {nothing}: (({loop}[0] + 1, {step}(*{loop})), None),\n"
        "    ({lower}, {init}),\n"
        f"    length={length},\n"
        f"    sizes={sizes},\n"
        ")[0][1]"
    )
    return Code.of(text, lower=lower, upper=upper, body=body, init=init)


def _definition(project: Project, module: Module) -> list[Change]:
    """Return the changes that define the helper in a module."""
    functions = (
        node for node in module.tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    first = next(functions, module.tree.body[-1])
    changes: list[Change] = []

    def written(match: re.Match[str]) -> str:
        reference = reference_to(module, project, match[0], first)
        changes.extend(reference.changes)
        return reference.text

    tree = ast.parse(_SOURCE.read_text(encoding="utf-8"))
    [helper] = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    source = "\n".join(_SOURCE.read_text(encoding="utf-8").splitlines()[helper.lineno - 1 :])
    text = re.sub(r"(?<!`)jax\.\w+", written, source)
    if _HELPER not in module.flow(module.scope_of(module.tree)).bound:
        return [*changes, Insert(module, first, (Code(text),))]
    known = [node for node in module.tree.body if getattr(node, "name", "") == _HELPER]
    if [ast.dump(node) for node in known] != [ast.dump(node) for node in ast.parse(text).body]:
        raise Refused(f"`{_HELPER}` means something else in this module", module, first)
    return changes
