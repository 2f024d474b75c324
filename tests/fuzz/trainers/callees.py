"""Checkpointed functions, and methods of class hierarchies: called with parameters, `x`, values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..drawing import Draw
from .parameters import Parameters, some_parameters
from .project import BASE, BLOCKS, OPS, Lines, Project, indented
from .reach import some_reach
from .values import Argument, consumed, some_arguments, step


@dataclass(frozen=True)
class Callee:
    """A callee with calls of the form `expression(params, x, ...)`.

    Attributes:
        expression: how the main module accesses it.
        parameters: its first argument.
        arguments: the arguments after `x`.
        setup: lines to run first in the main module.
        is_function: whether the expression names a function of the project.
        state: an attribute that the main module may assign between calls, as an expression.
    """

    expression: str
    parameters: Parameters
    arguments: Sequence[Argument]
    setup: Sequence[str] = ()
    is_function: bool = False
    state: str = ""

    def call(
        self,
        draw: Draw,
        params: str = "params",
        x: str = "x",
        given: Mapping[str, str] | None = None,
    ) -> str:
        """Return a call, with some defaults omitted and some arguments passed by keyword."""
        parts = [params, x]
        by_keyword = False
        for one in self.arguments:
            if one.default and draw.flip(35):
                by_keyword = True
                continue
            value = (given or {}).get(one.name) or draw.pick(one.values)
            by_keyword = by_keyword or draw.flip(35)
            parts.append(f"{one.name}={value}" if by_keyword else value)
        return f"{self.expression}({', '.join(parts)})"


def signature(arguments: Sequence[Argument]) -> str:
    return "".join(f", {one.written}" for one in arguments)


def passed(draw: Draw, arguments: Sequence[Argument]) -> str:
    """Return the parameters of a function as arguments of another, in the same order."""
    by_keyword = draw.flip(25)
    return "".join(f", {a.name}={a.name}" if by_keyword else f", {a.name}" for a in arguments)


def function(draw: Draw, project: Project) -> Callee:
    """Return a function, checkpointed where it is defined, under another name, or where it is
    called.
    """
    arguments, parameters = some_arguments(draw), some_parameters(draw)
    reach = some_reach(draw, project)
    lines = _definition(draw, project, name := project.name("cell"), parameters, arguments)
    form = draw.pick(("decorated", "renamed", "inline", "forwarded", "local"))
    if form == "decorated":
        lines.insert(0, f"@{reach.decorator}")
    project.define(BLOCKS, name, lines)
    expression = name
    if form in ("inline", "local"):
        expression = reach.of(name)
    elif form == "renamed":
        expression = project.name("cell")
        project.define(BLOCKS, expression, [f"{expression} = {reach.of(name)}"])
    elif form == "forwarded":
        expression = project.name("run")
        call = f"{reach.of(name)}(params, x{passed(draw, arguments)})"
        header = f"def {expression}(params, x{signature(arguments)}):"
        project.define(BLOCKS, expression, [header, f"    return {call}"])
    if form == "local":
        setup = [f"block = {expression}"]
        return Callee("block", parameters, arguments, setup)
    return Callee(expression, parameters, arguments, is_function=form != "inline")


def registry(draw: Draw, project: Project) -> Callee:
    """Return functions in a dictionary, some checkpointed; not all use all their parameters."""
    arguments, parameters = some_arguments(draw), some_parameters(draw)
    reach = some_reach(draw, project)
    names = [project.name("cell") for _ in range(2)]
    for name in names:
        lines = _definition(draw, project, name, parameters, arguments, all_read=draw.flip())
        project.define(BLOCKS, name, lines)
    layers = project.name("LAYERS")
    entries = zip(("mlp", "gated"), names, strict=True)
    form = draw.pick(("chosen", "loop", "wrapped"))
    written = [f"'{kind}': {reach.of(n) if form == 'wrapped' else n}" for kind, n in entries]
    project.define(BLOCKS, layers, [f"{layers} = {{{', '.join(written)}}}"])
    expression = project.name("run")
    header = f"def {expression}(params, x{signature(arguments)}"
    rest = passed(draw, arguments)
    if form == "loop":
        each = draw.pick((f"for name in {layers}", "for name in ('mlp', 'gated', 'mlp')"))
        call = f"{reach.of(f'{layers}[name]')}(params, x{rest})"
        lines = [f"{header}):", f"    {each}:", f"        x = {call}", "    return x"]
    else:
        kind = ", layer='gated'" if draw.flip() else ""
        chosen = f"{layers}[{'layer' if kind else repr('mlp')}]"
        fn = chosen if form == "wrapped" else reach.of(chosen)
        lines = [f"{header}{kind}):", f"    return {fn}(params, x{rest})"]
        if draw.flip(30):
            lines = [lines[0], f"    fn = {fn}", f"    return fn(params, x{rest})"]
    project.define(BLOCKS, expression, lines)
    return Callee(expression, parameters, arguments, is_function=True)


def _definition(
    draw: Draw,
    project: Project,
    name: str,
    parameters: Parameters,
    arguments: Sequence[Argument],
    *,
    all_read: bool = True,
) -> Lines:
    body = parameters.read(draw, project)
    for one in arguments:
        if all_read or draw.flip():
            body += consumed(draw, project, one)
    return [f"def {name}(params, x{signature(arguments)}):", *indented([*body, "return y"])]


def hierarchy(draw: Draw, project: Project) -> Callee:
    """Return a base class whose method calls a hook, and subclasses and mixins that override it."""
    arguments, parameters = some_arguments(draw), some_parameters(draw)
    reach = some_reach(draw, project)
    family = Family(draw, project, arguments)
    place = draw.pick(("decorated", "in-call", "local", "init", "outside", "holder"))
    names = ", ".join(f"{one.name}={one.name}" for one in arguments)
    header = f"def forward(self, params, x{signature(arguments)}):"
    hook = f"y = self.mix(y{passed(draw, arguments)})"
    forward = [header, *indented([*parameters.read(draw, project), hook, "return y * self.scale"])]
    methods = [*forward]
    called = "forward"
    positional = draw.flip(70) or not arguments
    rest = passed(draw, arguments) if positional else f", {names}"
    if place == "decorated":
        methods = [f"@{reach.decorator}", *forward]
        if draw.flip(30):
            call = f"self.forward(params, x{rest})"
            methods += ["", header.replace("forward", "__call__"), f"    return {call}"]
            called = ""
    elif place in ("in-call", "local", "init"):
        fn = {"init": "self.run", "local": "run", "in-call": reach.of("self.forward")}[place]
        first = [f"    run = {reach.of('self.forward')}"] if place == "local" else []
        methods += ["", header.replace("forward", "__call__"), *first]
        methods += [f"    return {fn}(params, x{rest})"]
        called = ""
    init = [f"self.run = {reach.of('self.forward')}"] if place == "init" else []
    instance = family.define(methods, init)
    setup = [f"model = {instance}(1.5)"]
    expression = f"model.{called}" if called else "model"
    if place == "outside":
        expression = reach.of("model.forward")
    elif place == "holder":
        holder = project.name("Runner")
        lines = [
            f"class {holder}:",
            "    def __init__(self, model):",
            "        self.model = model",
            "",
            f"    def step(self, params, x{signature(arguments)}):",
            f"        return {reach.of('self.model.forward')}(params, x{rest})",
        ]
        project.define(BLOCKS, holder, lines)
        setup = [f"model = {instance}(1.5)", f"runner = {holder}(model)"]
        expression = "runner.step"
    return Callee(expression, parameters, arguments, setup, state="model.scale")


class Family:
    """Classes of which one defines the method `mix` and others override it."""

    def __init__(
        self,
        draw: Draw,
        project: Project,
        arguments: Sequence[Argument],
    ) -> None:
        self._draw = draw
        self._project = project
        self._arguments = arguments
        self.base = project.name("Base")
        self._hook_of_base = draw.pick(("idle", "abstract", "reads", "none"))

    def _hook(self, *, reads: bool = True, base: str = "") -> Lines:
        """Return the hook as a method."""
        draw, project = self._draw, self._project
        lines: Lines = []
        for one in self._arguments:
            lines += consumed(draw, project, one) if reads else []
        if base:
            lines.append(f"y = {base}.mix(y{passed(draw, self._arguments)})")
        header = f"def mix(self, y{signature(self._arguments)}):"
        return [header, *indented([*(lines or [step(draw)]), "return y"])]

    def define(self, methods: Sequence[str], init: Sequence[str] = ()) -> str:
        """Define the classes; return the name of one that has all required methods."""
        draw, project, base = self._draw, self._project, self.base
        own = ["def __init__(self, scale):", "    self.scale = scale", *indented(init)]
        lines = [f"class {base}:", *indented(own)]
        hook: Lines = []
        if self._hook_of_base == "reads":
            hook = self._hook()
        elif self._hook_of_base != "none":
            body = draw.pick(("raise NotImplementedError", "..."))
            body = "return y" if self._hook_of_base == "idle" else body
            hook = [f"def mix(self, y{signature(self._arguments)}):", f"    {body}"]
        members = [*hook, "", *methods] if draw.flip() else [*methods, "", *hook]
        project.define(BASE, base, [*lines, "", *indented(members)])
        has_hook = self._hook_of_base in ("idle", "reads")
        form = draw.pick(("sub", "sub", "mixin", "deep", "two", "base" if has_hook else "sub"))
        if form == "base":
            return base
        if form == "mixin":
            mixin = project.name("Mixin")
            lines = [f"class {mixin}:", *indented(self._hook())]
            project.define(draw.pick((BASE, OPS, BLOCKS)), mixin, lines)
            return self._sub("Block", f"{mixin}, {base}", [])
        calls_super = has_hook and draw.flip(25)
        instance = self._sub("Block", base, self._hook(base="super()" if calls_super else ""))
        if form == "deep":
            instance = self._sub("Deep", instance, self._hook(reads=draw.flip()))
        elif form == "two":
            self._sub("Other", base, self._hook(reads=draw.flip()))
        return instance

    def _sub(self, stem: str, bases: str, hook: Sequence[str]) -> str:
        name = self._project.name(stem)
        body = hook or ["pass"]
        return self._project.define(BLOCKS, name, [f"class {name}({bases}):", *indented(body)])
