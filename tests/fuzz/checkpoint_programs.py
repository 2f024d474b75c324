"""Whole programs around checkpoints: one or more modules, whose uses are functions `use_*`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from .applying import SPELLINGS, Applied, Callee, applied, as_class
from .bodies import Scope, shared_by
from .drawing import Draw
from .functions import PREAMBLE, RARE_PREAMBLE, VALUES, arguments, function
from .using import forwarder, use

Texts = dict[str, str]
FUNCTIONS = ("block", "layer", "mix")


@dataclass
class Module:
    """A module's lines after its imports."""

    lines: list[str]
    imports: list[str]

    def text(self) -> str:
        written = "\n".join(self.lines)
        imports = ["import jax", "import jax.numpy as jnp"]
        values = []
        for name, (definition, needs) in RARE_PREAMBLE.items():
            if re.search(rf"\b{name}\b", written):
                values.append(definition)
                imports += [needs] if needs else []
        if "@dataclasses" in written:
            imports.append("import dataclasses")
        shared = shared_by(written)
        imports += [line for line in shared if line.startswith("import")]
        values += [line for line in shared if not line.startswith("import")]
        if re.search(r"\bpartial\(", "\n".join([written, *self.imports])):
            imports.append("from functools import partial")
        for line in self.imports:  # an alias that is assigned stands below the imports
            (imports if line.startswith(("import", "from")) else values).append(line)
        head = "\n".join(dict.fromkeys(imports))
        return f"{head}\n\n{PREAMBLE}" + "\n\n".join([*values, ""]) + f"\n\n{written}\n"


def program(draw: Draw) -> Texts:
    """Return the modules by path; `main.py` has the uses."""
    main = Module([], [])
    split = draw.flip(25)
    home = Module([], []) if split else main
    where = draw.pick(("layers", "lib/layers")) if split else ""
    imported, spelling = draw.pick(SPELLINGS) if draw.flip(50) else SPELLINGS[0]
    home.imports += [imported] if imported else []
    callees: list[Callee] = []
    for name in FUNCTIONS[: draw.pick((1, 1, 2))]:
        made = _made(draw, name, spelling, callees)
        home.lines += ["", "", *made.lines] if home.lines else made.lines
        if any("STEPS" in line for line in made.lines):
            home.lines += ["", "", "STEPS = 3"]
        callees.append(made.callee)
    if split:
        callees = [_imported(draw, main, where, one, imported, spelling) for one in callees]
    _uses(draw, main, callees)
    files = {"main.py": main.text()}
    if split:
        files[f"{where}.py"] = home.text()
        if "/" in where:
            files["lib/__init__.py"] = ""
    return _restyled(draw, files)


def _made(draw: Draw, name: str, spelling: str, before: list[Callee]) -> Applied:
    inner = None
    if before and draw.flip(40):
        inner = partial(_calling, draw.pick(before))
    if draw.flip(15):
        return as_class(draw, function(draw, name, method=True, inner=inner), spelling)
    return applied(draw, function(draw, name, inner=inner), spelling)


def _calling(callee: Callee, draw: Draw, scope: Scope) -> list[str]:
    """Return a line that calls one checkpointed function from another, with its values."""
    given = {callee.function.parameters[0].name: "y"}
    for one in callee.function.parameters[1:]:
        names = scope.of([one.kind])
        if names and draw.flip(70):
            given[one.name] = draw.pick(names)
    call = f"{callee.expression}({', '.join(arguments(draw, callee.function, given) or [])})"
    return [f"y = y + total({call})" if callee.function.returns != "vector" else f"y = {call}"]


def _imported(
    draw: Draw, main: Module, where: str, callee: Callee, imported: str, spelling: str
) -> Callee:
    """Return the same callee as the main module accesses it."""
    module = where.replace("/", ".")
    name = callee.exported
    if callee.inline:
        main.imports += [imported] if imported else []
    form = draw.pick(("from", "module", "alias"))
    if form == "from":
        line, reached = f"from {module} import {name}", name
    elif form == "alias":
        line, reached = f"from {module} import {name} as imported_{name}", f"imported_{name}"
    else:
        package, _, last = module.rpartition(".")
        line = f"from {package} import {last}" if package else f"import {last}"
        reached = f"{last}.{name}"
    main.imports.append(line)
    expression = re.sub(rf"(?<![\w.]){name}\b", reached, callee.expression)
    return Callee(expression, callee.function, name, callee.inline)


def _uses(draw: Draw, main: Module, callees: list[Callee]) -> None:
    lines = main.lines
    number = 0
    for callee in callees:
        if draw.flip(30):
            name = f"loss_{number}"
            body, parameters = forwarder(draw, callee, name)
            values = [draw.pick(VALUES[p.kind]) for p in parameters]
            call = f"jax.value_and_grad({name})({', '.join(values)})"
            if draw.flip(25):
                given = [f"{p.name}={v}" for p, v in zip(parameters, values, strict=True)][1:]
                call = f"jax.value_and_grad({name})({', '.join([values[0], *given])})"
            lines += ["", "", *body, "", "", f"def use_{number}():", f"    return {call}"]
            number += 1
        for _ in range(draw.pick((1, 1, 2))):
            made = use(draw, callee)
            lines += ["", "", f"def use_{number}():", *(f"    {line}".rstrip() for line in made)]
            number += 1


def _restyled(draw: Draw, files: Texts) -> Texts:
    """Change the indentation, and add comments."""
    if draw.flip(10):
        width = draw.pick(("  ", "\t"))
        files = {name: _indented(text, width) for name, text in files.items()}
    if draw.flip(10):
        files = {name: text.replace("\n", "\r\n") for name, text in files.items()}
    return files


def _indented(text: str, width: str) -> str:
    def line(found: re.Match[str]) -> str:
        return width * (len(found[0]) // 4)

    return re.sub(r"^(?:    )+", line, text, flags=re.MULTILINE)
