"""Arbitrary Python with checkpoints in it: combined fragments with changed names and layout.

Hypothesmith generates grammatical code without meaningful names, so its texts are only one source
of fragments; programs around checkpoints and the rules' examples are others. Fragments are
combined, names are replaced by those that the tool looks for, and the layout is made unusual. About
a third of the files does not parse: the tool must report that and not crash.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import cache
from keyword import iskeyword
from textwrap import indent

from hypothesis import HealthCheck, Phase, given, seed, settings

from .checkpoint_programs import program
from .drawing import Draw
from .subject import rules

WORDS = (
    *(
        "jax",
        "checkpoint",
        "remat",
        "concrete",
        "static_argnums",
        "policy",
        "prevent_cse",
        "partial",
    ),
    *("functools", "ad_checkpoint", "nn", "flax", "hk", "jnp", "grad", "jit", "scan", "self"),
    *(
        "checkpoint_name",
        "checkpoint_policies",
        "jax_new_checkpoint",
        "static_argnames",
        "ﬁ",
        "größe",
    ),
)
IMPORTS = (
    "import jax",
    "import jax, functools",
    "from jax import checkpoint, remat as r",
    "from jax import *",
    "from functools import partial",
    "import flax.linen as nn",
    "import haiku as hk",
    "from jax.ad_checkpoint import checkpoint, checkpoint_name",
    "import jax.numpy as jnp; import jax.ad_checkpoint",
    "try:\n    from jax import remat\nexcept ImportError: remat = None",
)
DECORATORS = (
    "@jax.checkpoint",
    "@partial(jax.checkpoint, concrete=True)",
    "@functools.partial(jax.remat, concrete=True, static_argnums=(0,))",
    "@(r := jax.remat)",
    "@jax.checkpoint(concrete=True)",
    "@partial(nn.remat, concrete=True, static_argnums=1)",
    "@jax.jit",
    "@staticmethod",
)
WRAPPERS = (
    "jax.checkpoint({0}, concrete=True)",
    "jax.remat({0}, True)",
    "partial(jax.checkpoint, concrete={0})",
    "jax.checkpoint(lambda: {0}, concrete=True)()",
    "(jax.checkpoint)({0}, **dict(concrete=True))",
    "f'{{jax.checkpoint({0}, concrete=True)!r:>{{10}}}}'",
    "[w := jax.remat({0}, concrete=True)][0]",
    "jax.grad(jax.checkpoint({0}, static_argnums=(0,)))",
)
# Unusual places for a checkpoint, separated by blank lines.
SNIPPETS = tuple(
    r"""
jax.config.update('jax_new_checkpoint', True)

x = f'{jax.checkpoint(f, concrete=True)}' f"{'a' if remat else 'b'}"

match jax.checkpoint(f, concrete=True):
    case remat(concrete=c) | [c, *_]: pass
    case _: c = 0

while (f := jax.remat(f, concrete=True)): break

class A[T](nn.Module):
    @partial(nn.remat, concrete=True)
    def __call__[U](self, x: T, train: U = True): return x if train else -x

type X[T] = jax.checkpoint

f = jax . \
  checkpoint ( f , concrete \
 = True )

if 1: f = jax.checkpoint(f, concrete=True); g = f(1,2) ; del f

def f(x, flag, /, *a, k=1, **kw): \
  return x if flag else jax.checkpoint(f, concrete=True)(x, flag, *a, k=k, **kw)

@jax.checkpoint
# comment
@partial(jax.checkpoint, concrete=True)  # noqa: RMT101
async def f(x, flag=True):
  '''jax.checkpoint(f, concrete=True)'''
  if flag: await x

global remat; nonlocal_ = jax.remat(lambda *x, **y: x if y else 0, concrete=True)

with jax.checkpoint(f, concrete=True) as (remat, *jax.x), g() as h: pass

lambda jax=jax.checkpoint(f, concrete=True), *concrete: (yield)

# remat-migrate: ignore-file
f = jax.checkpoint(f, concrete=True)

f = jax.checkpoint(f, concrete=True)  # noqa

exec('jax.checkpoint(f, concrete=True)')

for jax.checkpoint in remat(concrete=True)[concrete:True]: continue
else: f = jax.remat(f, concrete=not 1)

x: jax.checkpoint(f, concrete=True) = jax.checkpoint(f, concrete=False)

x = f"{jax.checkpoint(f, concrete=True)("a", f"{f"{flag}"}")}"

x = f"{
  jax.checkpoint(f,  # why
  concrete=True)
}"
""".strip().split("\n\n")
)
ENCODINGS = ("utf-8", "latin-1", "cp1252", "shift_jis", "utf-8-sig", "ascii", "koi8-r")
_NAME = re.compile(r"\b[^\W\d]\w*\b")
_DEFINITION = re.compile(r"^([ \t]*)(?=(?:async )?def |class )", re.MULTILINE)


@cache
def pieces(number: int, size: int) -> tuple[str, ...]:
    """Return texts of Hypothesmith: `size` for the whole grammar, and half as many single
    statements.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import hypothesmith
        import libcst

    found: list[str] = []
    kinds = (libcst.FunctionDef, libcst.ClassDef, libcst.Call, libcst.If, libcst.Match, libcst.With)
    sources = [(hypothesmith.from_grammar(), size)]
    sources += [
        (hypothesmith.from_node(kind), max(1, size // 12)) for kind in kinds[: max(1, size // 4)]
    ]
    for strategy, count in sources:

        @seed(number)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def collect(text: str) -> None:
            found.append(text)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            collect()
    return tuple(found)


@cache
def examples() -> tuple[str, ...]:
    """Return the Python examples of all rules."""
    texts = []
    for rule in rules():
        texts += [e.before for e in rule.wrong if e.filename.endswith(".py")]
        texts += [e if isinstance(e, str) else e.before for e in rule.right]
    return tuple(texts)


def arbitrary(draw: Draw, texts: tuple[str, ...]) -> bytes:
    """Return a file: changed fragments of `texts` and other sources."""
    text = _put_together(draw, texts)
    for _ in range(draw.count(0, 6)):
        text = draw.pick(CHANGES)(draw, text)
    return _encoded(draw, text)


def _put_together(draw: Draw, texts: tuple[str, ...]) -> str:
    parts = draw.some(IMPORTS, 3)
    for _ in range(draw.count(1, 3)):
        source = draw.pick(("piece", "piece", "snippet", "example", "program"))
        if source == "piece":
            parts.append(draw.pick(texts))
        elif source == "snippet":
            parts.append(draw.pick(SNIPPETS))
        elif source == "example":
            parts.append(draw.pick(examples()))
        else:
            parts.append(program(draw)["main.py"])
        if draw.flip(15):
            header = draw.pick(("def f(x, flag=True):", "if jax:", "class C:", "for f in g:"))
            parts[-1] = f"{header}\n{indent(parts[-1], '    ')}\n    pass"
    return "\n".join(parts)


def _with_words(draw: Draw, text: str) -> str:
    names = sorted({n for n in _NAME.findall(text) if not iskeyword(n) and n not in WORDS})
    for name in draw.some(names, 3):
        text = re.sub(rf"\b{name}\b", draw.pick(WORDS), text)
    return text


def _with_one_word(draw: Draw, text: str) -> str:
    places = [m for m in _NAME.finditer(text) if not iskeyword(m[0])]
    if not places:
        return text
    place = draw.pick(places)
    word = draw.pick(WORDS) if draw.flip() else draw.pick(WRAPPERS).format(place[0])
    return text[: place.start()] + word + text[place.end() :]


def _decorated(draw: Draw, text: str) -> str:
    places = list(_DEFINITION.finditer(text))
    if not places:
        return f"{text}\n{draw.pick(DECORATORS)}\ndef f(x, flag): return x if flag else -x\n"
    place = draw.pick(places)
    return f"{text[: place.start()]}{place[1]}{draw.pick(DECORATORS)}\n{text[place.start() :]}"


def _with_form_feed(draw: Draw, text: str) -> str:
    lines = text.split("\n")
    place = draw.count(0, len(lines) - 1)
    lines[place] = draw.pick(("\f", "\f\n", " \f ", "\x0b", "\u2028", "\x85")) + lines[place]
    return "\n".join(lines)


def _with_tabs(draw: Draw, text: str) -> str:
    return re.sub(r"^ {4}", "\t", text, flags=re.MULTILINE)


def _continued(draw: Draw, text: str) -> str:
    places = [m.start() for m in re.finditer(r"(?<=[\w)\]]) (?=[\w(=])", text)]
    if not places:
        return text
    place = draw.pick(places)
    return text[:place] + draw.pick((" \\\n", "\\\n    ", " \\\r\n\t")) + text[place + 1 :]


def _with_other_line_ends(draw: Draw, text: str) -> str:
    end = draw.pick(("\r\n", "\r\n", "\r"))
    if draw.flip(70):
        return text.replace("\n", end)
    return "".join(line + draw.pick(("\n", end)) for line in text.split("\n"))


def _cut(draw: Draw, text: str) -> str:
    place = draw.count(0, len(text))
    return text[:place] + text[place + draw.count(1, 5) :]


def _with_comment(draw: Draw, text: str) -> str:
    lines = text.split("\n")
    place = draw.count(0, len(lines) - 1)
    lines[place] += draw.pick(("  # é ü 模", "  # noqa: RMT101", "  # type: ignore", "  ", ";"))
    return "\n".join(lines)


CHANGES = (
    _with_words,
    _with_words,
    _with_one_word,
    _with_one_word,
    _decorated,
    _with_form_feed,
    _with_tabs,
    _continued,
    _with_other_line_ends,
    _with_comment,
    _cut,
)


def _encoded(draw: Draw, text: str) -> bytes:
    if draw.flip(20):
        text = text.rstrip("\r\n")
    if draw.flip(80):
        return text.encode(errors="replace")
    encoding = draw.pick(ENCODINGS)
    cookie = draw.pick(
        ("# -*- coding: {} -*-\n", "#!/usr/bin/python\n# vim: set fileencoding={} :\n")
    )
    named = "utf-8" if encoding == "utf-8-sig" and draw.flip() else encoding
    return (cookie.format(named) + text).encode(encoding, errors="replace")


def parses(data: bytes) -> bool:
    """Return whether this interpreter parses the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
