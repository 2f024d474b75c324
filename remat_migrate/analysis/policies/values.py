"""Where policies are passed and read, what a policy expression denotes, and the names that
`checkpoint_name` gives and that policies list, across the project.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..names.module import Definition, Module, Place, find_mentions, reads_of
from ..project import Project
from ..sites.find_sites import sites_of, wrapped_by
from ..sites.site import Site
from ..values.bind import argument
from ..values.containers import elements
from ..values.evaluator import returned_expressions, targets_of, with_aliases
from ..values.values import (
    Class,
    Constant,
    Container,
    External,
    Function,
    ModuleValue,
    alternatives,
    underlying,
)
from .known_policies import (
    NAMESPACE,
    NAMESPACES,
    POLICIES,
    POLICY_OPTION,
    TAKES_POLICY,
    NamesRole,
    Policy,
    Version,
    policy_of,
)

# An expression that is not a local name, or the definition of a function.
Origin = ast.expr | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False, slots=True)
class PolicyPlace:
    """An expression passed as a policy.

    Attributes:
        node: the expression.
        site: the site whose option it is; None for an argument of a factory.
        within: the name of the factory whose argument it is; "" for an option.
    """

    node: ast.expr
    site: Site | None = None
    within: str = ""


def policy_places(project: Project, module: Module) -> Iterator[PolicyPlace]:
    """Yield the expressions of a module that are passed as policies, each once."""
    yield from project.once(_policy_options).get(module, {}).values()
    for call, policy in policy_calls(project, module):
        for name, value in given_to(policy, call).items():
            if name in policy.policies:
                yield PolicyPlace(value, within=policy.name)


def _policy_options(project: Project) -> Mapping[Module, dict[ast.expr, PolicyPlace]]:
    found: dict[Module, dict[ast.expr, PolicyPlace]] = {}
    for site in sites_of(project):
        option = site.arguments.get(POLICY_OPTION)
        # A user's wrapper may turn any value into a policy.
        if option is not None and site.api in TAKES_POLICY and site.certain:
            places = found.setdefault(option.module, {})
            places.setdefault(option.value, PolicyPlace(option.value, site))
    return found


def policy_calls(project: Project, module: Module) -> Iterator[tuple[ast.Call, Policy]]:
    """Yield the calls of names of `jax.checkpoint_policies` in a module."""
    if not any(name in module.source.text for name in POLICIES):
        return
    names = with_aliases(module, POLICIES)
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Name(id=last) | ast.Attribute(attr=last) as func):
                if last in names and (policy := named(project, module, func)) is not None:
                    yield node, policy


def named(project: Project, module: Module, node: ast.expr) -> Policy | None:
    """Return the policy or factory that an expression denotes, if it denotes nothing else."""
    values = project.values(module, node)
    found = {policy_of(value.name) if isinstance(value, External) else None for value in values}
    return found.pop() if len(found) == 1 else None


def is_namespace(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether an expression is `jax.checkpoint_policies`."""
    values = project.values(module, node)
    return bool(values) and all(isinstance(v, External) and v.name in NAMESPACES for v in values)


def given_to(policy: Policy, call: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments of a factory call by parameter name, up to the first `*` argument."""
    positional = itertools.takewhile(lambda arg: not isinstance(arg, ast.Starred), call.args)
    found = dict(zip(policy.parameters, positional, strict=False))
    found.update((k.arg, k.value) for k in call.keywords if k.arg is not None)
    return found


# -- where a value comes from


def sole_origin(module: Module, node: ast.expr) -> Origin | None:
    """Return the only possible origin of an expression's value; None if there are several."""
    origins = _origins(module, node)
    return origins[0] if len(origins) == 1 else None


def _origins(module: Module, node: ast.expr) -> list[Origin | None]:
    """Return the origins of a value, through local names, `if`, and `or`; None for unknown ones."""
    found: list[Origin | None] = []
    parts = [node]
    for part in parts:  # which grows
        more = [] if isinstance(part, ast.Starred) else alternatives(part)
        bindings = module.reaching(part) if isinstance(part, ast.Name) else frozenset()
        if not more and not bindings:
            found.append(None if isinstance(part, ast.Name) else part)
        for binding in bindings:
            if binding.kind == "assign" and binding.value is not None and not binding.path:
                more = [*more, binding.value]
            elif isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append(binding.node)
            else:
                only_import = binding.kind == "import" and len(bindings) == 1
                found.append(part if only_import else None)
        parts += [each for each in more if each not in parts]
    return found


@dataclass(frozen=True, slots=True)
class Strings:
    """The strings that an expression may be.

    Attributes:
        known: the strings.
        is_open: whether it may be others.
    """

    known: frozenset[str] = frozenset()
    is_open: bool = False

    @property
    def only(self) -> str | None:
        """The string, if there is only one."""
        return next(iter(self.known)) if len(self.known) == 1 and not self.is_open else None


OPEN = Strings(is_open=True)


def union(parts: Iterable[Strings]) -> Strings:
    """Return the strings that are in any of some sets."""
    each = list(parts)
    known = frozenset[str]().union(*(part.known for part in each))
    return Strings(known, any(part.is_open for part in each))


def strings_of(project: Project, module: Module, node: ast.expr) -> Strings:
    """Return the strings that an expression may be, through names, attributes, `if`, and `or`."""
    return union(_constants(project, module, origin) for origin in _origins(module, node))


def _constants(project: Project, module: Module, node: Origin | None) -> Strings:
    """Return the strings that an expression may be by its own value."""
    if not isinstance(node, ast.expr):
        return OPEN
    values = project.values(module, node)
    is_fixed = True
    if isinstance(node, ast.Attribute | ast.Subscript):
        # A field of an instance can be assigned anywhere.
        owners = project.values(module, node.value)
        is_fixed = all(isinstance(v, Class | ModuleValue) for v in owners)
    constants = [v.value for v in values if isinstance(v, Constant)]
    known = frozenset(str(v) for v in constants if isinstance(v, str | int | float))
    is_open = not values or len(constants) < len(values) or not is_fixed
    return Strings(known, is_open)


# -- what a policy answers


def function_of(project: Project, module: Module, node: Origin) -> Function | None:
    """Return the project function that an origin is; None if it is decorated or not unique."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None if node.decorator_list else Function(module, node)
    match list(project.values(module, node)):
        case [Function() as function]:
            return function
    return None


def always_returns(function: Function, value: bool | None) -> bool:
    """Return whether a function surely returns the same constant on every path."""
    node = function.node
    if isinstance(node, ast.AsyncFunctionDef) or any(
        isinstance(inner, ast.Yield | ast.YieldFrom | ast.Raise) for inner in ast.walk(node)
    ):
        return False
    if value is not None and isinstance(node, ast.FunctionDef):
        if not isinstance(node.body[-1], ast.Return):
            return False
    returned = returned_expressions(node)
    return all(isinstance(expr, ast.Constant) and expr.value is value for expr in returned)


def saves_everything(
    project: Project, module: Module, node: Origin, version: Version
) -> str | None:
    """Return a description of a policy that saves everything; None if it may not."""
    function = function_of(project, module, node)
    if function is not None:
        if not always_returns(function, True):
            return None
        name = node.name if not isinstance(node, ast.expr) else module.segment(node)
        shown = "a function" if isinstance(node, ast.Lambda) else f"`{name}`"
        return f"{shown} that always returns True"
    if not isinstance(node, ast.expr):  # a function under decorators
        return None
    made = named(project, module, node.func) if isinstance(node, ast.Call) else None
    policy = made or named(project, module, node)
    if policy is None or policy.is_made != (made is not None):
        return None
    return f"`{policy.name}`" if policy.answer(version) is True else None


@dataclass(frozen=True, eq=False, slots=True)
class PolicyName:
    """A name read from `jax.checkpoint_policies`.

    Attributes:
        node: the attribute, or the `getattr` call.
        name: the name.
        written: the attribute or string that holds the name, if it may be changed.
        default: the default of `getattr`.
    """

    node: ast.expr
    name: str
    written: ast.Attribute | ast.Constant | None = None
    default: ast.expr | None = None


def policy_names_read(project: Project, module: Module) -> Iterator[PolicyName]:
    """Yield the names that a module reads, in source order, unless it handles their absence."""
    if NAMESPACE.rpartition(".")[2] not in module.source.text:
        return
    found = [read for node in module.nodes for read in _read(project, module, node)]
    for read in sorted(found, key=lambda read: module.span(read.node)):
        if not read.name.startswith("_") and not _is_ready(module, read.node):
            yield read


def is_added(project: Project, name: str) -> bool:
    """Return whether the project itself adds a name to `jax.checkpoint_policies`.

    The first question searches all files, so ask only for names that JAX lacks.
    """
    return name in project.once(_added_names)


def _read(project: Project, module: Module, node: ast.AST) -> Iterator[PolicyName]:
    match node:
        case ast.Attribute(ctx=ast.Load(), value=ast.Name() | ast.Attribute() as base, attr=name):
            if is_namespace(project, module, base):
                yield PolicyName(node, name, node)
        case ast.Call(func=ast.Name(id="getattr"), args=[base, asked, *default], keywords=[]):
            if not is_namespace(project, module, base):
                return
            if External("builtins.getattr") not in project.values(module, node.func):
                return
            # One of several names, or of a field that may be set, may stand for no policy.
            only = strings_of(project, module, asked).only
            if only is not None:
                written = _written_name(module, asked, only)
                yield PolicyName(node, only, written, default[0] if default else None)


def _written_name(module: Module, asked: ast.expr, name: str) -> ast.Constant | None:
    """Return the string that a name comes from, if it can be replaced there."""
    literal = sole_origin(module, asked) if module.is_own else None
    if isinstance(literal, ast.Constant) and module.segment(literal)[1:-1] == name:
        return literal
    return None  # it has a prefix or escapes, or comes from several places


def _is_ready(module: Module, node: ast.AST) -> bool:
    """Return whether the code handles a JAX without the name, by `try` or by an `if` that tests for
    it.
    """
    for around in module.ancestors(node):
        match around:
            case ast.Try(handlers=[_, *_]):
                return True
            case ast.If(test=test) | ast.IfExp(test=test):
                asked = ast.unparse(test)
                if "version" in asked or "hasattr" in asked:
                    return True
    return False


def _added_names(project: Project) -> frozenset[str]:
    """Return the names that the project itself adds to `jax.checkpoint_policies`."""
    found: set[str] = set()
    for module in project.mentioning(("checkpoint_policies",)):
        for node in module.nodes:
            match node:
                case (
                    ast.Attribute(ctx=ast.Store(), value=base, attr=name)
                    | ast.Call(
                        func=ast.Name(id="setattr"), args=[base, ast.Constant(value=str(name)), _]
                    )
                ) if is_namespace(project, module, base):
                    found.add(name)
    return frozenset(found)


# The flag of the next implementation, which accepts some static arguments that today's rejects.
_NAMES = ("jax_remat3", "JAX_REMAT3")


def uses_next_implementation(project: Project) -> bool:
    """Return whether a module sets the flag by `update`, as an attribute, or in the environment."""
    for module in project.mentioning(_NAMES):
        for node in module.nodes:
            match node:
                case (
                    ast.Call(args=[ast.Constant(value=name), ast.Constant(value=value)])
                    | ast.Assign(
                        targets=[
                            ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name))
                        ],
                        value=ast.Constant(value=value),
                    )
                ) if name in _NAMES and value not in (False, "0", "false", "False"):
                    return True
    return False


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
