"""Parameters of a model: a dictionary with optional keys, and the code that reads it."""

from __future__ import annotations

from dataclasses import dataclass

from ..drawing import Draw
from .project import OPS, Lines, Project, indented

# Lines that read a dictionary of arrays, of which only `w` is always there. None of them needs a
# concrete array.
_READS = (
    "if 'b' in params:\n    y = y + params['b']",
    "if 'b' in params.keys():\n    y = y + params['b']",
    "if 'b' not in params:\n    y = jnp.sin(y)",
    "y = y + params.get('b', 0.0)",
    "if params.get('b') is not None:\n    y = y + params['b']",
    "bias = params.get('b')\nif bias is not None:\n    y = y + bias",
    "y = y + params['b'] if 'b' in params else y",
    "has_bias = 'b' in params\nif has_bias:\n    y = y + params['b']",
    "y = y * len(params)",
    "if len(params) > 1:\n    y = jnp.sin(y)",
    "for name in params:\n    y = y + params[name]",
    "for name in sorted(params):\n    y = y + params[name]",
    "for leaf in params.values():\n    y = y * leaf",
    "for name, leaf in params.items():\n    if name.startswith('w'):\n        y = y * leaf",
    "for name, leaf in params.items():\n    y = y + leaf if name == 'b' else y * leaf",
    "for name in ('w', 'b'):\n    if name in params:\n        y = y + params[name]",
    "y = y + sum(params.values())",
    "y = y + sum(jax.tree_util.tree_leaves(params))",
    "rest = {k: v for k, v in params.items() if k != 'w'}\nfor v in rest.values():\n    y = y + v",
    "if isinstance(params, dict):\n    y = y * params['w']",
    "if set(params) >= {'w', 'b'}:\n    y = y + params['b']",
    "if params:\n    y = jnp.tanh(y)",
    "keys = list(params)\ny = y * params[keys[0]]",
    "w, *others = params.values()\nfor other in others:\n    y = y + other",
    "if params['w'].ndim == 1:\n    y = y * params['w']",
    "match params:\n    case {'b': bias}:\n        y = y + bias\n    case _:\n        y = -y",
    "try:\n    y = y + params['b']\nexcept KeyError:\n    y = jnp.sin(y)",
    "params = {'b': 0.5, **params}\ny = y + params['b']",
    "params = dict(params)\nbias = params.pop('b', None)\nif bias is not None:\n    y = y + bias",
    "if any(name == 'b' for name in params):\n    y = y + params['b']",
)
# In the order of their names, because JAX rebuilds dictionaries in sorted order.
_KEYS = ("{'b': X - 0.5, 'w': X}", "{'w': X}", "dict(b=X * 0.5, w=X)", "{'c': X, 'w': X}")


@dataclass(frozen=True)
class Parameters:
    """How a model stores its parameters: as a dictionary or one array.

    Attributes:
        value: the expression that creates them.
        is_dictionary: whether they are a dictionary.
    """

    value: str
    is_dictionary: bool = True

    @property
    def weight(self) -> str:
        return "params['w']" if self.is_dictionary else "params"

    def read(self, draw: Draw, project: Project) -> Lines:
        """Return lines that compute `y` from `x`."""
        lines = [f"y = {draw.pick(('x * ', 'x + ', 'jnp.sin(x) * '))}{self.weight}"]
        if not self.is_dictionary:
            return lines
        for _ in range(draw.pick((0, 1, 1, 2))):
            one = draw.pick(_READS).split("\n")
            if draw.flip(20):
                helper = project.name("helper")
                body = indented([*one, "return y"])
                project.define(OPS, helper, [f"def {helper}(params, y):", *body])
                one = [f"y = {helper}(params, y)"]
            lines += one
        return lines

    def update(self, draw: Draw, target: str, gradient: str = "") -> Lines:
        """Return lines that change the parameters, in place if possible."""
        if not self.is_dictionary:
            return [f"{target} = {target} - 0.1 * {gradient or target}"]
        step = f"0.1 * {gradient}[name]" if gradient else f"0.25 * {target}[name]"
        each = draw.pick((f"{target}", f"list({target})"))
        forms = [
            f"for name in {each}:\n    {target}[name] = {target}[name] - {step}",
            f"for name in {each}:\n    {target}[name] -= {step}",
            f"{target}.update({{name: {target}[name] - {step} for name in {target}}})",
        ]
        if not gradient:
            forms.insert(0, f"{target}['w'] = {target}['w'] * 0.5")
        else:  # not in place
            forms.append(f"{target} = jax.tree.map(lambda p, g: p - 0.1 * g, {target}, {gradient})")
        return draw.pick(forms).split("\n")


def some_parameters(draw: Draw) -> Parameters:
    if draw.flip(25):
        return Parameters("X + 0.5", is_dictionary=False)
    return Parameters(draw.pick(_KEYS))
