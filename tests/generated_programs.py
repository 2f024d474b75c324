"""Small generated programs: each combines one form of code with one way to use it.

Every program has a function `main()` that returns values and gradients. It calls the checkpointed
function in an eager loop that changes the parameters in place, so that a parameter that a fix makes
static shows up as a stale gradient.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

HEADING = """\
import dataclasses
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

"""


@dataclass(frozen=True)
class Program:
    """One program: its name and its text."""

    name: str
    text: str


def _lines(text: str, indent: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * indent) + "\n"


# -- questions about a pytree of parameters

# Of a dictionary: `w`, and perhaps `b`.
DICT_QUESTIONS = {
    "in": "y = x * params['w']\nif 'b' in params:\n    y = y + params['b']\nreturn jnp.sin(y)",
    "not_in": "if 'b' not in params:\n    return x * params['w']\nreturn jnp.cos(x * params['w'])",
    "in_variable": (
        "y = x\nfor name in ('w', 'b'):\n    if name in params:\n        y = y * params[name]\n"
        "return jnp.sin(y)"
    ),
    "in_keys": "y = x * params['w']\nif 'b' in params.keys():\n    y = y + params['b']\nreturn y",
    "in_list": "y = x * params['w']\nif 'b' in list(params):\n    y = y + params['b']\nreturn y**2",
    "flag_and_in": (
        "y = x * params['w']\nhas_bias = 'b' in params\nif has_bias:\n    y = y + params['b']\n"
        "return y**2"
    ),
    "formatted_key": (
        "y, n = x, 0\nwhile f'w{n or \"\"}' in params:\n    y = y * params[f'w{n or \"\"}']\n"
        "    n += 1\nreturn jnp.sin(y)"
    ),
    "len": "y = x * params['w']\nif len(params) > 1:\n    y = y + params['b']\nreturn jnp.sin(y)",
    "len_keys": "return jnp.sin(x * params['w']) * (2 if len(params.keys()) == 2 else 3)",
    "get": "b = params.get('b')\ny = x * params['w']\nreturn jnp.sin(y if b is None else y + b)",
    "get_not_none": (
        "y = x * params['w']\nif params.get('b', None) is not None:\n    y = y + params['b']\n"
        "return jnp.sin(y)"
    ),
    "iterate": (
        "y = x\nfor name in params:\n    if name.startswith('w'):\n        y = y * params[name]\n"
        "    else:\n        y = jnp.sin(y) + params[name]\nreturn y"
    ),
    "iterate_sorted": (
        "y = x\nfor name in sorted(params):\n    if name == 'w':\n        y = y * params[name]\n"
        "return jnp.sin(y)"
    ),
    "items": (
        "y = x\nfor name, value in params.items():\n    if name.startswith('w'):\n"
        "        y = jnp.sin(y * value)\nreturn y"
    ),
    "items_equal": (
        "y = x\nfor name, value in params.items():\n    if name == 'w':\n        y = y * value\n"
        "    elif value.ndim == 1:\n        y = jnp.sin(y)\nreturn y"
    ),
    "items_sorted": (
        "y = x\nfor name, value in sorted(params.items()):\n    if name == 'w':\n"
        "        y = jnp.sin(y * value)\nreturn y"
    ),
    "items_filtered": (
        "kept = {k: v for k, v in params.items() if k != 'b'}\n"
        "return jnp.sin(sum(x * v for v in kept.values()))"
    ),
    "any_key": (
        "y = x * params['w']\nif any(name.startswith('b') for name in params):\n"
        "    y = y + params['b']\nreturn jnp.sin(y)"
    ),
    "count": (
        "depth = sum(name.startswith('w') for name in params)\ny = x\nfor _ in range(depth):\n"
        "    y = jnp.sin(y * params['w'])\nreturn y"
    ),
    "truth_of_keys": (
        "rest = set(params) - {'w'}\ny = x * params['w']\nif rest:\n    y = y + 1\n"
        "return jnp.sin(y)"
    ),
    "first_key": "first = list(params)[0]\nreturn jnp.sin(x * params[first])",
    "next_key": "first = next(iter(params))\nreturn jnp.sin(x * params[first])",
    "isinstance": (
        "if isinstance(params, dict):\n    params = params['w']\nreturn jnp.sin(x * params)"
    ),
    "shape": (
        "y = x * params['w']\nif params['w'].ndim == 1 and params['w'].shape[0] > 2:\n"
        "    y = y / params['w'].size\nreturn jnp.sin(y)"
    ),
    "dtype": "y = x * params['w']\nif params['w'].dtype == jnp.float32:\n    y = y + y\nreturn y",
    "leaves": (
        "leaves = jax.tree.leaves(params)\ny = x\nif len(leaves) > 1:\n    y = y * leaves[-1]\n"
        "for leaf in leaves:\n    y = y * jnp.sum(leaf)\nreturn y"
    ),
    "structure": (
        "if jax.tree.structure(params).num_leaves == 2:\n    return x * params['w']\n"
        "return jnp.sin(x * params['w'])"
    ),
    "paths": (
        "y = x\nfor path, leaf in jax.tree_util.tree_leaves_with_path(params):\n"
        "    if 'w' in jax.tree_util.keystr(path):\n        y = jnp.sin(y * leaf)\nreturn y"
    ),
    "match": (
        "match params:\n    case {'w': w, 'b': b}:\n        return jnp.sin(x * w + b)\n"
        "    case {'w': w}:\n        return jnp.sin(x * w)"
    ),
    "try": (
        "y = x * params['w']\ntry:\n    y = y + params['b']\nexcept KeyError:\n    pass\n"
        "return jnp.sin(y)"
    ),
    "truth": "return jnp.sin(x * params['w']) if params else x",
    "setdefault": (
        "params = dict(params)\nparams.setdefault('b', 0.5)\nreturn jnp.sin(x * params['w'])"
        " + params['b']"
    ),
    "pop": (
        "rest = dict(params)\nw = rest.pop('w')\nif rest:\n    return jnp.sin(x * w)\nreturn x * w"
    ),
    "merged": (
        "params = {'b': 0.5, **params}\nif 'b' in params:\n    return jnp.sin(x * params['w']) +"
        " params['b']\nreturn x"
    ),
}
# Of a list of layers, each a dictionary.
LIST_QUESTIONS = {
    "last_layer": (
        "y = x\nfor i, layer in enumerate(params):\n    y = y * layer['w']\n"
        "    if i < len(params) - 1:\n        y = jnp.sin(y)\nreturn y"
    ),
    "range_len": (
        "y = x\nfor i in range(len(params)):\n    y = jnp.sin(y * params[i]['w'])\nreturn y"
    ),
    "slice": (
        "y = x\nfor layer in params[:-1]:\n    y = jnp.sin(y * layer['w'])\n"
        "return y * params[-1]['w']"
    ),
    "star": (
        "*hidden, last = params\ny = x\nfor layer in hidden:\n    if 'b' in layer:\n"
        "        y = y + layer['b']\n    y = jnp.sin(y * layer['w'])\nreturn y * last['w']"
    ),
    "nested_in": (
        "y = x\nfor layer in params:\n    y = y * layer['w']\n    if 'b' in layer:\n"
        "        y = y + layer['b']\nreturn jnp.sin(y)"
    ),
    "zip": (
        "y = x\nfor layer, wave in zip(params, (True, False)):\n    y = y * layer['w']\n"
        "    if wave:\n        y = jnp.sin(y)\nreturn y"
    ),
    "truth_of_list": (
        "y = x\nlayers = list(params)\nwhile layers:\n    y = jnp.sin(y * layers.pop()['w'])\n"
        "return y"
    ),
    "empty": "if not params:\n    return x\nreturn jnp.sin(x * params[0]['w'])",
}
DICTS = "[{'b': BIAS, 'w': WEIGHT}, {'w': WEIGHT}]"
TREES = {"dict": (DICT_QUESTIONS, DICTS), "list": (LIST_QUESTIONS, f"[{DICTS}]")}

BLOCKS = {
    "decorator": (
        "@partial(jax.checkpoint, concrete=True)\ndef block(params, x):\n{body}",
        "block(params, x)",
    ),
    "keyword": (
        "@partial(jax.checkpoint, concrete=True)\ndef block(params, x):\n{body}",
        "block(x=x, params=params)",
    ),
    "assigned": (
        "def plain(params, x):\n{body}\n\nblock = jax.checkpoint(plain, concrete=True)\n",
        "block(params, x)",
    ),
    "direct": (
        "def plain(params, x):\n{body}\n",
        "jax.checkpoint(plain, concrete=True)(params, x)",
    ),
    "helper": (
        "def plain(params, x):\n{body}\n\n"
        "@partial(jax.checkpoint, concrete=True)\ndef block(x, tree):\n    return plain(tree, x)\n",
        "block(x, params)",
    ),
    "annotated": (
        "@partial(jax.checkpoint, concrete=True)\ndef block(params: dict, x: jax.Array):\n{body}",
        "block(params, x)",
    ),
    "method": (
        "class Model:\n    def __init__(self, scale):\n        self.scale = scale\n\n"
        "    def plain(self, params, x):\n{method}\n"
        "    def __call__(self, params, x):\n"
        "        run = jax.checkpoint(self.plain, concrete=True)\n"
        "        return self.scale * run(params, x)\n\nmodel = Model(2.0)\n",
        "model(params, x)",
    ),
}
DRIVERS = {
    # The parameters are closed over: nothing shows that they are differentiated.
    "closed": (
        "slope = jax.grad(lambda x: jnp.sum({call}))(x)\nfound.append(slope)\ngrads = slope / 10"
    ),
    "both": (
        "def loss(params, x):\n    return jnp.sum({call})\n"
        "value, grads = jax.value_and_grad(loss)(params, x)\n"
        "found.append((value, grads))\ngrads = jax.tree.leaves(grads)[0]"
    ),
}


def tree_programs(every: int = 1, start: int = 0) -> Iterator[Program]:
    """Return questions about a pytree of parameters, all of which a tracer can answer."""
    made = (
        (kind, question, block, driver)
        for kind, (questions, _) in TREES.items()
        for question in questions
        for block in BLOCKS
        for driver in DRIVERS
    )
    for kind, question, block, driver in itertools.islice(made, start, None, every):
        questions, trees = TREES[kind]
        definition, call = BLOCKS[block]
        body = questions[question]
        definition = definition.replace("{body}", _lines(body, 4)).replace(
            "{method}", _lines(body, 8)
        )
        first = "tree" if kind == "dict" else "tree[0]"
        main = (
            "def main():\n    found = []\n    x = jnp.arange(1.0, 4.0)\n"
            f"    for tree in {trees}:\n".replace("WEIGHT", "jnp.array([1.0, 2.0, 3.0])").replace(
                "BIAS", "jnp.ones(3)"
            )
            + "        params = tree\n        for _ in range(2):\n"
            + _lines(DRIVERS[driver].replace("{call}", call), 12)
            + f"            {first}['w'] = {first}['w'] - 0.1 * grads\n"
            + "    return found\n"
        )
        yield Program(
            f"tree_{kind}_{question}_{block}_{driver}", f"{HEADING}{definition}\n\n{main}"
        )


# -- flags in containers

# What a function of `x` and `flag` does, and whether `flag` is a bool or a number.
USES = {
    "branch": ("if flag:\n    return jnp.sin(x)\nreturn 2 * x", "bool"),
    "conditional": ("return jnp.sin(x) if not flag else 2 * x", "bool"),
    "and": ("wave = flag and x.ndim == 1\nreturn jnp.sin(x) if wave else 2 * x", "bool"),
    "loop": ("for _ in range(flag):\n    x = jnp.sin(x)\nreturn x", "int"),
    "library": ("return x * jax.nn.one_hot(1, flag + 3)[:3]", "int"),
}
# How the value computed from `flag` reaches the function that uses it. `{to}` is the next function.
BY_KEYWORDS = {
    "display": "opts = {'flag': flag}\nreturn {to}(x, **opts)",
    "call": "opts = dict(flag=flag)\nreturn {to}(x, **opts)",
    "inline": "return {to}(x, **{'flag': flag})",
    "inline_call": "return {to}(x, **dict(flag=flag))",
    "merged": "base = {'scale': 2.0}\nopts = {**base, 'flag': flag}\nreturn {to}(x, **opts)",
    "overridden": ("base = {'flag': flag}\nopts = {**base, 'scale': 2.0}\nreturn {to}(x, **opts)"),
    "union": "opts = {'scale': 2.0} | {'flag': flag}\nreturn {to}(x, **opts)",
    "union_assigned": "opts = {'scale': 2.0}\nopts |= {'flag': flag}\nreturn {to}(x, **opts)",
    "stored": "opts = {}\nopts['flag'] = flag\nreturn {to}(x, **opts)",
    "update": "opts = {'scale': 2.0}\nopts.update(flag=flag)\nreturn {to}(x, **opts)",
    "update_dict": "opts = dict()\nopts.update({'flag': flag})\nreturn {to}(x, **opts)",
    "setdefault": "opts = {}\nopts.setdefault('flag', flag)\nreturn {to}(x, **opts)",
    "zip": "opts = dict(zip(('flag',), (flag,)))\nreturn {to}(x, **opts)",
    "pairs": "opts = dict([('flag', flag)])\nreturn {to}(x, **opts)",
    "comprehension": "opts = {k: v for k, v in (('flag', flag),)}\nreturn {to}(x, **opts)",
    "copied": "opts = dict({'flag': flag})\nreturn {to}(x, **opts.copy())",
    "nested": "config = {'opts': {'flag': flag}}\nreturn {to}(x, **config['opts'])",
    "chosen": "opts = {'flag': flag} if x.ndim else {}\nreturn {to}(x, **opts)",
    "star": "flags = (flag, 2.0)\nreturn {to}(x, *flags)",
    "star_list": "flags = [flag]\nflags.append(2.0)\nreturn {to}(x, *flags)",
    "all_star": "arguments = (x, flag)\nreturn {to}(*arguments)",
    "partial": "run = partial({to}, flag=flag)\nreturn run(x)",
    "partial_spread": "opts = {'flag': flag}\nrun = partial({to}, **opts)\nreturn run(x)",
    "returned": "return {to}(x, **made(flag))",
    "asdict": "return {to}(x, **dataclasses.asdict(Frozen(flag)))",
    "vars": "return {to}(x, **vars(SimpleNamespace(flag=flag)))",
    "tuple_asdict": "return {to}(x, **Fields(flag)._asdict())",
}
BY_OBJECT = {
    "display": "{'flag': flag}",
    "call": "dict(flag=flag)",
    "dataclass": "Options(flag)",
    "dataclass_keyword": "Options(flag=flag)",
    "replaced": "dataclasses.replace(Options(), flag=flag)",
    "frozen": "Frozen(flag)",
    "named_tuple": "Fields(flag)",
    "replaced_tuple": "Fields()._replace(flag=flag)",
    "namespace": "SimpleNamespace(flag=flag)",
    "spread_namespace": "SimpleNamespace(**{'flag': flag})",
    "class": "Settings(flag)",
    "tuple": "(flag, 2.0)",
    "list": "[flag]",
}
READS = {
    "dict": (
        "flag = opts['flag']\n",
        "flag = opts.get('flag')\n",
        "flag = opts.get('flag', False)\n",
        "flag = dict(opts).pop('flag')\n",
    ),
    "object": ("flag = opts.flag\n", "flag = getattr(opts, 'flag')\n"),
    "sequence": ("flag = opts[0]\n", "flag, *_ = opts\n"),
}
CLASSES = """\
def made(flag):
    return {'flag': flag}


@dataclasses.dataclass
class Options:
    flag: bool = False


@dataclasses.dataclass(frozen=True)
class Frozen:
    flag: bool = False


class Fields(NamedTuple):
    flag: bool = False


class Settings:
    def __init__(self, flag):
        self.flag = flag


"""
# How the checkpointed function receives its flag: its signature, and calls of it.
SIGNATURES = {
    "position": ("x, flag", "block(x, given)"),
    "keyword": ("x, flag=0", "block(x, flag=given)"),
    "keyword_only": ("x, *, flag=0", "block(x, flag=given)"),
    "spread": ("x, flag=0", "block(x, **{'flag': given})"),
    "spread_name": ("x, flag=0", "block(x, **options)"),
    "spread_star": ("x, flag", "block(*arguments)"),
}


def _used(use: str, read: str = "") -> str:
    return _lines(read + USES[use][0], 4)


def _chain(depth: int, forwarded: str, last: str) -> str:
    """Return a `helper` that passes its arguments on through `depth - 1` functions."""
    names = ["helper", *(f"helper_{n}" for n in range(1, depth))]
    text = f"def {names[-1]}{last}"
    for name, after in reversed(list(itertools.pairwise(names))):
        text += f"\n\ndef {name}({forwarded}):\n    return {after}({forwarded})\n"
    return text


def _flag_main(kind: str, call: str, hidden: bool) -> str:
    """Return the calls of a program; with `hidden`, nothing shows the type of the flag."""
    values = "(True, False)" if kind == "bool" else "(1, 2)"
    function = "globals()['objective']" if hidden else "objective"
    return f"""\
def objective(x, given):
    options = {{'flag': given}}
    arguments = (x, given)
    return jnp.sum({call})


def main():
    found = []
    for given in {values}:
        found.append(jax.value_and_grad({function})(jnp.arange(1.0, 4.0), given))
    return found
"""


def flag_programs(every: int = 1, start: int = 0) -> Iterator[Program]:
    """Return programs whose flag reaches a branch through a container."""
    made = itertools.product(BY_KEYWORDS, (1, 2, 3), USES, SIGNATURES)
    for through, depth, use, signature in itertools.islice(made, start, None, every):
        parameters, call = SIGNATURES[signature]
        helper = _chain(
            depth,
            "*args, **kwargs" if "star" in through else "x, **kwargs",
            f"(x, flag=0, scale=1.0):\n{_used(use)}",
        )
        body = _lines(BY_KEYWORDS[through].replace("{to}", "helper"), 4)
        text = (
            f"{HEADING}{CLASSES}{helper}\n\n@partial(jax.checkpoint, concrete=True)\n"
            f"def block({parameters}):\n{body}\n\n{_flag_main(USES[use][1], call, use != 'branch')}"
        )
        yield Program(f"flag_{through}_{depth}_{use}_{signature}", text)


def _read_by(container: str) -> str:
    if container in ("display", "call"):
        return "dict"
    return "sequence" if container in ("tuple", "list") else "object"


def object_programs(every: int = 1, start: int = 0) -> Iterator[Program]:
    """Return programs with a flag of an object from inside or outside the function."""
    made = (
        (container, read, depth, use, where)
        for container in BY_OBJECT
        for read in READS[_read_by(container)]
        for depth in (0, 1, 2)
        for use in USES
        for where in ("inside", "outside")
    )
    for container, read, depth, use, where in itertools.islice(made, start, None, every):
        text = BY_OBJECT[container]
        helper = ""
        if depth:
            helper = _chain(depth, "x, opts", f"(x, opts):\n{_used(use, read)}") + "\n\n"
        given = _used(use, read) if not depth else _lines("return helper(x, opts)", 4)
        if where == "inside":
            block = f"def block(x, flag):\n    opts = {text}\n{given}"
            call = "block(x, given)"
        else:
            block = f"def block(x, opts):\n{given}"
            call = f"block(x, {re.sub(r'flag(?!=|.:)', 'given', text)})"
        program = (
            f"{HEADING}{CLASSES}{helper}@partial(jax.checkpoint, concrete=True)\n{block}\n\n"
            f"{_flag_main(USES[use][1], call, use != 'branch')}"
        )
        number = READS[_read_by(container)].index(read)
        yield Program(f"object_{container}_{number}_{depth}_{use}_{where}", program)


# Functions that take what they need in `*args` or `**kwargs`.
OPEN_SIGNATURES = {
    "kwargs_forwarded": ("x, **kwargs", "return helper(x, **kwargs)", "block(x, flag=given)"),
    "kwargs_read": ("x, **kwargs", "flag = kwargs['flag']\n{use}", "block(x, flag=given)"),
    "kwargs_get": ("x, **kwargs", "flag = kwargs.get('flag', 0)\n{use}", "block(x, flag=given)"),
    "kwargs_pop": ("x, **kwargs", "flag = kwargs.pop('flag', 0)\n{use}", "block(x, flag=given)"),
    "kwargs_merged": (
        "x, **kwargs", "opts = {'scale': 2.0, **kwargs}\nreturn helper(x, **opts)",
        "block(x, flag=given)",
    ),
    "kwargs_spread": ("x, **kwargs", "return helper(x, **kwargs)", "block(x, **options)"),
    "kwargs_tested": (
        "x, **kwargs", "if kwargs:\n    return helper(x, **kwargs)\nreturn x",
        "block(x, flag=given)",
    ),
    "kwargs_in": (
        "x, **kwargs", "if 'flag' in kwargs:\n    return helper(x, **kwargs)\nreturn x",
        "block(x, flag=given)",
    ),
    "args_forwarded": ("x, *args", "return helper(x, *args)", "block(x, given)"),
    "args_read": ("x, *args", "flag = args[0]\n{use}", "block(x, given)"),
    "args_tested": (
        "x, *args", "if args:\n    return helper(x, *args)\nreturn x", "block(x, given)"
    ),
    "all_forwarded": ("*args, **kwargs", "return helper(*args, **kwargs)", "block(x, flag=given)"),
    "all_forwarded_position": (
        "*args, **kwargs", "return helper(*args, **kwargs)", "block(x, given)"
    ),
    "whole_dict": ("x, opts", "return helper(x, **opts)", "block(x, options)"),
    "whole_dict_keyword": ("x, opts", "return helper(x, **opts)", "block(x, opts=options)"),
    "whole_tuple": ("x, opts", "return helper(x, *opts)", "block(x, (given, 2.0))"),
    "optional_dict": (
        "x, opts=None", "opts = opts or {}\nreturn helper(x, **opts)", "block(x, options)"
    ),
    "default_dict": (
        "x, opts=None",
        "opts = {'flag': 0} if opts is None else opts\nreturn helper(x, **opts)",
        "block(x, opts=options)",
    ),
}  # fmt: skip


def open_programs(every: int = 1, start: int = 0) -> Iterator[Program]:
    """Return programs whose flag is in `**kwargs`, `*args` or a dictionary of options."""
    made = itertools.product(OPEN_SIGNATURES, (1, 2), USES)
    for signature, depth, use in itertools.islice(made, start, None, every):
        parameters, body, call = OPEN_SIGNATURES[signature]
        helper = _chain(depth, "*args, **kwargs", f"(x, flag=0, scale=1.0):\n{_used(use)}")
        text = (
            f"{HEADING}{helper}\n\n@partial(jax.checkpoint, concrete=True)\n"
            f"def block({parameters}):\n{_lines(body.replace('{use}', USES[use][0]), 4)}\n\n"
            f"{_flag_main(USES[use][1], call, use != 'branch')}"
        )
        yield Program(f"open_{signature}_{depth}_{use}", text)


# -- arrays that are not traced

# Questions about an array `mask`, from which the function computes a bool or a number.
ARRAY_QUESTIONS = {
    "any_method": "if mask.any():\n    return jnp.sin(x)\nreturn 2 * x",
    "any_function": "if jnp.any(mask):\n    return jnp.sin(x) * mask\nreturn 2 * x",
    "any_numpy": "if np.any(mask):\n    return jnp.sin(x)\nreturn 2 * x",
    "named": "wave = jnp.all(mask > 0)\nif wave:\n    x = jnp.sin(x)\nreturn x * mask",
    "conditional": "return jnp.sin(x) if jnp.sum(mask) > 1 else 2 * x",
    "loop": "for _ in range(int(mask.sum())):\n    x = jnp.sin(x) * mask\nreturn x",
    "loop_function": "for _ in range(int(jnp.sum(mask))):\n    x = jnp.sin(x)\nreturn x",
    "elements": "for step in np.asarray(mask):\n    if step:\n        x = jnp.sin(x)\nreturn x",
    "list": "for step in mask.tolist():\n    x = jnp.sin(x) * step\nreturn x",
    "item": "if mask[0]:\n    x = jnp.sin(x)\nreturn x",
    "item_named": "first = mask[0] > 0\nif first:\n    x = jnp.sin(x)\nreturn x",
    "index": "return jnp.sin(x[np.nonzero(mask)])",
    "assert": "assert jnp.all(mask >= 0), 'negative'\nreturn jnp.sin(x) * mask",
    "size": "return jnp.sin(x) * jnp.ones(int(mask.max()) + 2)",
    "helper": "return chosen(x, mask)",
}
# Where the array comes from: statements of the module, of `main`, arguments, other calls.
ARRAYS = {
    "numpy": ("MASK = np.array([1, 0, 1])\n", "", "MASK"),
    "jax": ("MASK = jnp.array([1, 0, 1])\n", "", "MASK"),
    "local": ("", "mask = np.array([1, 0, 1])\n", "mask"),
    "local_jax": ("", "mask = jnp.array([1, 0, 1])\n", "mask"),
    "computed": ("SIZES = np.arange(3)\n", "mask = (SIZES != 1).astype(int)\n", "mask"),
    "computed_jax": ("SIZES = np.arange(3)\n", "mask = jnp.asarray(SIZES) % 2\n", "mask"),
    "made": ("def made(n):\n    return np.arange(n) % 2\n\n\n", "mask = made(3)\n", "mask"),
    "inline": ("", "", "np.array([1, 0, 1])"),
    "element": ("MASKS = (np.array([1, 0, 1]), np.ones(3, int))\n", "", "MASKS[1]"),
    "argument": ("MASK = np.array([1, 0, 1])\n", "", "passed"),
}
ARRAY_BLOCKS = {
    "decorator": "@partial(jax.checkpoint, concrete=True)\ndef block(x, mask):\n{body}\n",
    "assigned": ("def plain(x, mask):\n{body}\n\nblock = jax.checkpoint(plain, concrete=True)\n"),
    "annotated": (
        "@partial(jax.checkpoint, concrete=True)\ndef block(x, mask: jax.Array):\n{body}\n"
    ),
    "keyword_only": "@partial(jax.checkpoint, concrete=True)\ndef block(x, *, mask):\n{body}\n",
}


def array_programs(every: int = 1, start: int = 0) -> Iterator[Program]:
    """Return programs that branch on an array computed from untraced values."""
    made = itertools.product(ARRAY_QUESTIONS, ARRAYS, ARRAY_BLOCKS)
    for question, array, block in itertools.islice(made, start, None, every):
        before, local, given = ARRAYS[array]
        named = "mask=" if block == "keyword_only" else ""
        loss = f"    def loss(x):\n        return jnp.sum(block(x, {named}{given}))\n"
        call = "loss"
        if array == "argument":
            loss = f"    def loss(x, passed):\n        return jnp.sum(block(x, {named}passed))\n"
            call = "lambda x: loss(x, MASK)"
        text = (
            f"{HEADING}{before}\n\ndef chosen(x, mask):\n"
            f"    return jnp.sin(x) if jnp.any(mask) else 2 * x\n\n\n"
            + ARRAY_BLOCKS[block].replace("{body}", _lines(ARRAY_QUESTIONS[question], 4))
            + f"\n\ndef main():\n{_lines(local, 4) if local else ''}{loss}"
            + f"    return jax.value_and_grad({call})(jnp.arange(1.0, 4.0))\n"
        )
        yield Program(f"array_{question}_{array}_{block}", text)
