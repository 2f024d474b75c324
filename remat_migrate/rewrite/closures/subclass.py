"""Closes over flags of a Flax class: a subclass whose `__call__` is checkpointed.

    Layer = nn.remat(Block, concrete=True)

becomes

    class CheckpointBlock(Block):
        def __call__(self, x, *, train):
            @nn.remat
            def checkpointed_call(self, x):
                return super().__call__(x, train=train)

            return checkpointed_call(self, x)

    Layer = CheckpointBlock

The subclass has the name of the class that `nn.remat` makes, so parameters keep their names.
"""

from __future__ import annotations

import ast

from ...analysis import Module, Project
from ...analysis.names.scopes import parameters
from ...analysis.sites.site import Site
from ...analysis.statics.statics import Statics
from ...analysis.values.callees import Target
from ...analysis.values.values import Class
from ...codemod.changes import Change, Code, Insert, Replace
from ..arguments.signature import signature
from ..checkpoint_code import CheckpointCode
from ..literals import literal_text
from ..refusal import Refused
from .closure_of_call import check_defaults


def checkpointed_subclass(
    project: Project, site: Site, target: Target, statics: Statics, checkpoint: CheckpointCode
) -> list[Change]:
    """Return the changes that replace a wrapped Flax class with a subclass.

    Raises:
        Refused: the class has no name there, or the signature cannot be repeated there.
    """
    module = site.module
    owner = _wrapped_class(project, site)
    subject = site.subject[1] if site.subject is not None else None
    if owner is None or not isinstance(subject, ast.Name | ast.Attribute):
        raise Refused("the Flax class is chosen at run time", module, site.reference)
    if "methods" in site.arguments:
        raise Refused("`methods` names methods other than `__call__`", module, site.reference)
    place = _place(module, site)
    # The name that the transformation gives to the class that it makes.
    prefix = "Core_remat_static" if site.api.endswith("partitioning.remat") else "Checkpoint"
    name = prefix + owner.node.name
    if name in {n.id for n in module.nodes if isinstance(n, ast.Name)} or module.visible(
        name, module.scope_at(place)
    ):
        raise Refused(f"`{name}` is taken", module, site.reference)
    assert site.application is not None
    check_defaults(target)
    decorator = checkpoint.decorator(project, module, place)
    text = _class_text(target, statics, name, decorator.text, module)
    return [
        Insert(module, place, (Code.of(text, base=subject),)),
        *decorator.changes,
        Replace(module, site.application, Code(name)),
    ]


def _wrapped_class(project: Project, site: Site) -> Class | None:
    if site.subject is None or not isinstance(site.subject[1], ast.expr):
        return None
    module, node = site.subject
    assert isinstance(node, ast.expr)
    found = [v for v in project.values(module, node) if isinstance(v, Class)]
    return found[0] if len(found) == 1 else None


def _place(module: Module, site: Site) -> ast.stmt:
    """Return the statement before which the subclass is defined: not in the body of a class."""
    assert site.application is not None
    place = module.statement(site.application)
    while isinstance(holder := module.scope_at(place).node, ast.ClassDef):
        place = holder
    own = {n.id for n in ast.walk(site.application) if isinstance(n, ast.Name)}
    for around in module.ancestors(site.application):
        if isinstance(around, ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp):
            bound = {n.id for n in ast.walk(around) if isinstance(n, ast.Name)} & own
            local = {
                n.id
                for g in getattr(around, "generators", ())
                for n in ast.walk(g.target)
                if isinstance(n, ast.Name)
            }
            if bound & local:
                raise Refused("the wrapped class varies in a comprehension", module, around)
        if around is place:
            break
    return place


def _class_text(target: Target, statics: Statics, name: str, decorator: str, module: Module) -> str:
    """Return the source code of the subclass of `{base}`."""
    node = target.function.node
    closed = {r.name for r in statics.required}
    if node.args.kwarg is not None:
        closed.add(node.args.kwarg.arg)
    whole = signature(
        node, skip=1, defaults=lambda d: literal_text(target.function.module, d, module)
    )
    array = [
        p.arg if p is not node.args.vararg else f"*{p.arg}"
        for p in parameters(node)[1:]
        if p.arg not in closed
    ]
    passed = ", ".join(["self", *array])
    lines = [
        f"class {name}({{base}}):",
        f"    def __call__({', '.join(['self', *whole.written])}):",
        f"        @{decorator}",
        f"        def checkpointed_call({passed}):",
        f"            return super().__call__({whole.arguments})",
        "",
        f"        return checkpointed_call({passed})",
        "",
    ]
    return "\n".join(lines)
