"""The names that `checkpoint_name` gives and that policies list, across the project, those that no
residual can have, and typos of them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..names.module import Module, Place, find_mentions, reads_of
from ..names.scopes import Definition
from ..project import Project
from ..sites.find_sites import wrapped_by
from ..values.api_names import with_aliases
from ..values.bind import argument
from ..values.callees import targets_of
from ..values.containers import elements
from ..values.values import Container, External, underlying
from .known_policies import NamesRole
from .values import OPEN, Strings, given_to, policy_calls, policy_places, strings_of, union

_LAST = "checkpoint_name"
_NAMING = {External(f"jax.ad_checkpoint.{_LAST}"), External(f"jax._src.ad_checkpoint.{_LAST}")}

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
class Listed:
    """A name that a policy lists.

    Attributes:
        node: what to report: the string, or the argument that holds it.
        literal: the string literal; None if it is in another module.
        name: the name.
        role: what the policy does with values of that name.
        policy: the call that makes the policy.
    """

    node: ast.expr
    literal: ast.Constant | None
    name: str
    role: NamesRole
    policy: ast.Call


def names_of(project: Project) -> Strings:
    """Return the names that the files of the project give to values."""
    return union(strings for _, _, strings in name_calls(project))


def name_calls(project: Project) -> Iterator[tuple[Module, ast.Call | None, Strings]]:
    """Yield the calls of `checkpoint_name` with their names; other uses of it give any name."""
    words = {_LAST, "name_p"}
    for module in project.mentioning(sorted(words)):
        words.update(with_aliases(module, (_LAST,)))
    for module in project.mentioning(sorted(words)):
        for node, strings in _names_given(project, module, words):
            yield module, node, strings


def _names_given(
    project: Project, module: Module, words: Collection[str]
) -> Iterator[tuple[ast.Call | None, Strings]]:
    aliases = with_aliases(module, (_LAST,))
    called: set[ast.expr] = set()
    for node in module.nodes:
        match node:
            # Another module may give it a name, too.
            case ast.Call(func=ast.Name(id=last) | ast.Attribute(attr=last)) if last in aliases or (
                last in words and _NAMING & project.values(module, node.func)
            ):
                called.add(node.func)
                given = argument(node.args, node.keywords, "name", 1)
                yield node, OPEN if given is None else strings_of(project, module, given)
            case ast.Assign(targets=[ast.Name()], value=value):
                called.add(value)  # an alias
            case ast.keyword(arg=str(name)) | ast.arg(arg=name) if _LAST in name:
                yield None, OPEN  # `residual_checkpoint_name="context"`
    for name in (*aliases, "name_p"):
        if not called.issuperset(find_mentions(module).reads(name)):
            yield None, OPEN


def listed_names(project: Project, module: Module) -> Iterator[Listed]:
    """Yield the names that the policies of a module list, if they can be resolved."""
    for call, policy in policy_calls(project, module):
        for names in policy.names:
            given = call.args if names.star else [given_to(policy, call).get(names.name)]
            for arg in filter(None, given):
                spread = arg.value if isinstance(arg, ast.Starred) else arg
                is_one = names.star and spread is arg
                for owner, part in [(module, arg)] if is_one else _items(project, module, spread):
                    name = strings_of(project, owner, part).only
                    if name is not None:
                        literal = part if isinstance(part, ast.Constant) else None
                        literal = literal if owner is module else None
                        yield Listed(literal or arg, literal, name, names.role, call)


def _items(project: Project, module: Module, node: ast.expr) -> Iterator[tuple[Module, ast.expr]]:
    """Yield the items of a literal sequence, except unpacked ones."""
    for value in project.values(module, node):
        if isinstance(value, Container):
            yield from (item for item in elements(value) if not isinstance(item[1], ast.Subscript))


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


# JAX differentiates the rule of such a function, and never its body.
_WITH_OWN_RULE = ("jax.custom_vjp", "jax.custom_jvp")


def why_unsaved(project: Project, module: Module, listed: Listed) -> tuple[str, str] | None:
    """Return why no checkpoint can save the value of a listed name, and what to do; None if one
    may.
    """
    places = project.once(_places)[listed.name]
    if not places or listed.role == "excluded":
        return None
    around = [_custom_rule_around(project, *place) for place in places]
    if all(around):
        rule, name = around[0] or ("", "")
        why = f"is given only inside `{name}`, but JAX differentiates the rules of a `{rule}`"
        return why, "name the value in the rule, where it becomes a residual"
    returned = _returned_by(project, module, listed)
    if all(place in returned for place in places):
        why = "is given only to what the checkpointed function returns, which is not a residual"
        return why, "drop the name, or name a value that the function uses again"
    return None


def _places(project: Project) -> Mapping[str, list[Place]]:
    """Return the calls that give each name."""
    found = defaultdict[str, list[Place]](list)
    for module, call, strings in name_calls(project):
        if call is not None:
            for name in strings.known:
                found[name].append((module, call))
    return found


def _custom_rule_around(project: Project, module: Module, node: ast.AST) -> tuple[str, str] | None:
    """Return the transformation with a custom rule, and the name, of a function around a node."""
    for around in module.ancestors(node):
        if not isinstance(around, Definition):
            continue
        for decorator in around.decorator_list:
            for value in map(underlying, project.values(module, decorator)):
                match value:
                    case External(name) if name in _WITH_OWN_RULE:
                        return name, around.name
    return None


def _returned_by(project: Project, module: Module, listed: Listed) -> list[Place]:
    """Return the named values that the checkpointed functions return, and do nothing else with.

    Empty if the policy may be used elsewhere, too.
    """
    sites = [place.site for place in policy_places(project, module) if place.node is listed.policy]
    if len(sites) != 1 or (site := sites[0]) is None or site.application is None:
        return []
    targets = [t for v in wrapped_by(project, site) for t in targets_of(project.evaluator, v)]
    functions = {target.function for target in targets}
    return [
        (function.module, node)
        for function in functions
        for node in ast.walk(function.node)
        if isinstance(node, ast.Call) and _is_returned(function.module, node, function.node)
    ]


def _is_returned(module: Module, node: ast.expr, function: ast.AST) -> bool:
    """Return whether a value is only returned by a function: at once, in a tuple, or by name."""
    match holder := module.parent(node):
        case ast.Tuple():
            return _is_returned(module, holder, function)
        case ast.Return():
            return module.enclosing_function(holder) is function
        case ast.Lambda():
            return holder is function
        case ast.Assign(targets=[ast.Name(id=name)]):
            loads = reads_of(module, name, holder)
            return bool(loads) and all(_is_returned(module, load, function) for load in loads)
    return False


# A letter distinguishes shorter words: `q_proj` and `k_proj`.
_SHORTEST = 5
# More letters than these are a word: `attn_key_value` and `attn_value`.
_MOST_LETTERS = 2
# The minimum similarity of a word to its typo.
_ALIKE = 0.83


def intended_name(name: str, known: Iterable[str]) -> str | None:
    """Return the only known name of which `name` is a typo; None if there is none, or several."""
    intended = {other for other in known if other != name and is_typo(name, other)}
    return intended.pop() if len(intended) == 1 else None


def is_typo(name: str, other: str) -> bool:
    """Return whether one name is a typo of the other: case, hyphens, a letter or two, or a plural.

    Numbers and short words must agree: `wi_0` is not a typo of `wi_1`, nor `q_proj` of `k_proj`,
    nor `attn_in` of `attn_out`.
    """
    one, two = _words(name), _words(other)
    if "".join(one) == "".join(two):
        return True
    if re.sub(r"\D", "", name) != re.sub(r"\D", "", other):
        return False
    if len(one) != len(two):
        return _is_word_typo("".join(one), "".join(two))
    pairs = [(a, b) for a, b in zip(one, two, strict=True) if a != b]
    return len(pairs) == 1 and _is_word_typo(*pairs[0])


def _is_word_typo(one: str, two: str) -> bool:
    from difflib import SequenceMatcher  # only where there is a name to compare

    if one.rstrip("s") == two.rstrip("s"):
        return True
    if min(len(one), len(two)) < _SHORTEST - 1 or abs(len(one) - len(two)) > _MOST_LETTERS:
        return False
    return one[0] == two[0] and SequenceMatcher(None, one, two).ratio() >= _ALIKE


def _words(name: str) -> list[str]:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return [part for part in re.split(r"[^a-z0-9]+", parts.lower()) if part]
