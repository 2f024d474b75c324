"""The names that `checkpoint_name` gives and that policies list, across the project."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from ..names.module import Module
from ..project import Project
from ..values.containers import elements
from ..values.values import Container
from .known_policies import CHECKPOINT_NAME, NamesRole
from .string_values import NONE, OPEN, Text, Texts, union
from .values import aliases_of, denotes_one_of, factory_calls, given_to, origins

_LAST = "checkpoint_name"

# Packages whose functions do not name the values they compute; other packages may.
NAMELESS_PACKAGES = frozenset(
    {
        "jax", "jaxlib", "flax", "haiku", "equinox", "optax", "chex", "orbax", "numpy", "scipy",
        "einops", "jaxtyping", "typing_extensions", "absl", "ml_collections", "tqdm", "clu",
        "tensorflow", "tensorflow_datasets", "tensorflow_probability", "torch", "torchvision",
        "tensorboardX", "datasets", "matplotlib", "pandas", "PIL", "yaml", "click", "rich",
        "pytest", "hypothesis", "parameterized", "sklearn", "wandb", "psutil", "requests",
        "ml_dtypes", "tyro", "hydra", "omegaconf", "pydantic", "attr", "attrs", "etils", "fire",
        "setuptools", "beartype", "typeguard", "sentencepiece", "tiktoken", "grain", "seqio",
        "safetensors", "huggingface_hub", "tree", "dill", "cloudpickle", "gin", "fiddle", "IPython",
        "jaxopt", "distrax", "diffrax", "lineax", "optimistix",
    }
)  # fmt: skip

_IMPORT = re.compile(
    rb"^[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+(\w+)[\w.]*[ \t]+import\b)", re.MULTILINE
)
# A JAX module that names values, with names that the caller passes.
_PALLAS_OPS = b"jax.experimental.pallas.ops"


@dataclass(frozen=True, eq=False, slots=True)
class Naming:
    """A place that names a value.

    Attributes:
        module: the module.
        node: the call, or the keyword's value.
        name: the expression of the name.
        text: the strings that it may be.
        sure: whether it certainly is JAX's function.
    """

    module: Module
    node: ast.expr
    name: ast.expr
    text: Text
    sure: bool


@dataclass(frozen=True, eq=False, slots=True)
class Listed:
    """A name that a policy lists.

    Attributes:
        module: the module.
        node: what to report: the string, or the argument that holds it.
        literal: the string literal; None if it is in another module.
        name: the name.
        role: what the policy does with values of that name.
        policy: the name of the factory.
    """

    module: Module
    node: ast.expr
    literal: ast.Constant | None
    name: str
    role: NamesRole
    policy: str


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a project.

    Attributes:
        namings: the places that name values.
        defined: the union of the names they may give.
    """

    namings: tuple[Naming, ...]
    defined: Text

    def gives(self, name: str) -> bool:
        """Return whether the project's code may give a value this name."""
        return self.defined.matches(name)


def names_of(project: Project) -> Names:
    """Find the names that the files of the project give."""
    texts = Texts(project)
    namings: list[Naming] = []
    loose = NONE
    for module in project.mentioning((_LAST, "name_p")):
        loose |= _collect(project, module, texts, namings)
    return Names(tuple(namings), union(n.text for n in namings) | loose)


def _collect(project: Project, module: Module, texts: Texts, namings: list[Naming]) -> Text:
    """Add the namings of a module to `namings`; return the names it may give elsewhere."""
    aliases = aliases_of(module, {_LAST})
    loose = NONE
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Name(id=last) | ast.Attribute(attr=last)) if last in aliases:
                naming = _naming(project, module, node, texts, 1)
            case ast.Call(
                func=ast.Attribute(
                    attr="bind", value=ast.Name(id="name_p") | ast.Attribute(attr="name_p")
                )
            ):
                naming = _naming(project, module, node, texts, 1)
            case ast.Call(args=[ast.Name(id=last) | ast.Attribute(attr=last), *_]) if (
                last in aliases
            ):
                # `partial(checkpoint_name, name="h")`, `tree_map(checkpoint_name, x, names)`
                naming = _naming(project, module, node, texts, 2)
            case ast.keyword(arg=str(arg), value=value) if _LAST in arg:
                naming = Naming(module, value, value, texts.of(module, value), False)
            case ast.arguments():
                loose |= _defaults(module, node, texts)
                continue
            case ast.Name(ctx=ast.Load(), id=last) | ast.Attribute(ctx=ast.Load(), attr=last) if (
                last in aliases and not _is_called(module, node)
            ):
                loose |= OPEN
                continue
            case _:
                continue
        namings.append(naming)
    return loose


def _is_called(module: Module, node: ast.expr) -> bool:
    """Return whether a mention of the function is a call, a first argument, or an alias."""
    holder = module.parent(node)
    if isinstance(holder, ast.Call):
        return holder.func is node or holder.args[:1] == [node]
    return isinstance(holder, ast.Assign) and isinstance(holder.targets[0], ast.Name)


def _naming(
    project: Project, module: Module, call: ast.Call, texts: Texts, position: int
) -> Naming:
    given = next((k.value for k in call.keywords if k.arg == "name"), None)
    if given is None and len(call.args) > position:
        given = call.args[position]
    sure = denotes_one_of(project, module, call.func, CHECKPOINT_NAME)
    if given is None or isinstance(given, ast.Starred):
        return Naming(module, call, call, OPEN, sure)
    return Naming(module, call, given, texts.of(module, given), sure)


def _defaults(module: Module, arguments: ast.arguments, texts: Texts) -> Text:
    """Return the defaults of parameters such as `residual_checkpoint_name="context"`."""
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    pairs = [
        *zip(with_default, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return union(
        texts.of(module, default)
        for parameter, default in pairs
        if default is not None and _LAST in parameter.arg
    )


# -- what policies list


def listed_names(project: Project, module: Module) -> Iterator[Listed]:
    """Yield the names that the policies of a module list, if they can be resolved."""
    texts = Texts(project)
    for call, policy in factory_calls(project, module):
        for names in policy.names:
            if names.star:
                for arg in call.args:
                    spread = isinstance(arg, ast.Starred)
                    inner = arg.value if isinstance(arg, ast.Starred) else arg
                    parts = _parts(project, module, inner) if spread else [(module, inner)]
                    yield from _listed(texts, module, arg, parts, names.role, policy.name)
            elif (value := given_to(policy, call).get(names.name)) is not None:
                parts = _parts(project, module, value)
                yield from _listed(texts, module, value, parts, names.role, policy.name)


def _parts(project: Project, module: Module, node: ast.expr) -> list[tuple[Module, ast.expr]]:
    """Return the elements of a literal sequence, except unpacked ones."""
    found: list[tuple[Module, ast.expr]] = []
    for origin in origins(project, module, node):
        if not isinstance(origin.node, ast.expr):
            continue
        for value in project.values(origin.module, origin.node):
            if isinstance(value, Container):
                found += [p for p in elements(value) if not isinstance(p[1], ast.Subscript)]
    return found


def _listed(
    texts: Texts,
    module: Module,
    arg: ast.expr,
    parts: list[tuple[Module, ast.expr]],
    role: NamesRole,
    policy: str,
) -> Iterator[Listed]:
    for owner, part in parts:
        text = texts.of(owner, part)
        if text.only is None:
            continue
        literal = part if isinstance(part, ast.Constant) and owner is module else None
        yield Listed(module, literal or arg, literal, text.only, role, policy)


# -- what may come from elsewhere


def foreign_packages(project: Project) -> frozenset[str]:
    """Return the imported packages outside the project that may name values themselves."""
    own = {path.stem for path in project.files.all}
    own |= {part for path in project.files.all for part in path.parts}
    found: set[str] = set()
    for path in project.files.all:
        data = project.files.data(path)
        if _PALLAS_OPS in data:
            found.add(_PALLAS_OPS.decode())
        for plain, base in _IMPORT.findall(data):
            tops = [base] if base else [p.split(b".")[0] for p in plain.split(b",")]
            found |= {top.split()[0].decode() for top in tops if top.split()}
    return frozenset(found - NAMELESS_PACKAGES - sys.stdlib_module_names - own)
