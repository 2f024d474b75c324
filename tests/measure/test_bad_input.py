"""Invalid input to `measure`: a helpful message, exit status 2, and no lost results."""

from __future__ import annotations

import json
import shutil
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from measuring import share, worker_for
from support import cli, write_files

from remat_migrate.measure.target import parse_target
from remat_migrate.measure.worker.inputs import load_function
from remat_migrate.verify.session import Worker

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "fixtures" / "measured" / "bad"
MODEL = """\
import jax
import jax.numpy as jnp


@jax.checkpoint
def block(w, x):
    return jnp.tanh(x @ w)


def loss(w, x):
    return block(w, x).sum()


def args():
    w = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    return w, jax.ShapeDtypeStruct((4, 8), jnp.float32)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write_files(
        folder,
        {
            "pyproject.toml": "",
            "exits.py": "raise SystemExit(5)\n",
            "raises.py": "import jax\n\nraise RuntimeError('there is no such device')\n",
            "broken.py": "def loss(:\n",
            "lonely.py": "from .model import loss\n",
            "needs.py": "import not_there_at_all\n",
            "speaks.py": "print('a line at import')\nfrom model import args, loss\n",
            "parts/__init__.py": "",
            "parts/head.py": "from model import args, loss\n",
        },
    )
    shutil.copy(MODULES / "model.py", folder)
    return folder


@pytest.fixture(scope="module")
def worker(project, tmp_path_factory) -> Iterator[Worker]:
    with worker_for(project, tmp_path_factory.mktemp("worker")) as worker:
        yield worker


@pytest.fixture
def measure(project, worker, monkeypatch):
    """Run `remat-migrate measure` in the project, in one process for all functions."""
    share(worker, monkeypatch)
    return lambda *words: cli(project, "measure", *words)


def at(text: str) -> int:
    """The line of `model.py` that has this text first."""
    lines = (MODULES / "model.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


CHECKPOINT = at("@jax.checkpoint")
SCALAR = "but only a scalar can be differentiated: name the loss, or pass --grad none"
PYTHON_VALUE = "pass values that are needed at trace time as Python values, not as arrays"

# Words of the command line after `measure`, and how the message begins; `LINE` is that of `LINES`.
INVALID = {
    # the target
    "model:los": "model:los: module model defines no `los`; did you mean loss?",
    "modle:loss": "modle:loss: there is no module modle",
    "parts.haed:loss": "parts.haed:loss: there is no module parts.haed",
    "modle.py:loss": "modle.py:loss: modle.py: no such file",
    "model": "model: name a function as module:function",
    "model:": "model:: name a function as module:function",
    ":loss": ":loss: name a function as module:function",
    "model:loss:x": "model:loss:x: model:loss is not a module name",
    "model:a-b": "model:a-b: name a function as module:function",
    "model:Net.metod": "model:Net.metod: Net defines no `metod`; did you mean method?",
    "model:number": "model:number: number is not callable, it has type int",
    "model:Net": "model:Net: Net is a class: name a function, or a method as Class.method",
    "exits:loss": "exits:loss: SystemExit at exits.py:1: 5",
    "raises:loss": "raises:loss: RuntimeError at raises.py:3: there is no such device",
    "broken:loss": "broken:loss: SyntaxError: invalid syntax (broken.py, line 1)",
    "lonely:loss": "lonely:loss: ImportError at lonely.py:1: attempted relative import",
    "needs:loss": "needs:loss: ModuleNotFoundError at needs.py:1: No module named",
    # what it returns
    "model:vector": f"model:vector: it returns float32[4, 8], {SCALAR}",
    "model:pair": "model:pair: it returns a pair of a scalar and other values: pass --has-aux",
    "model:vector_and_more --has-aux": f"model:vector_and_more: it returns float32[4, 8], {SCALAR}",
    "model:triple": f"model:triple: it returns 3 arrays, {SCALAR}",
    "model:triple --has-aux": "model:triple: has_aux: it returns 3 arrays, not a pair",
    "model:loss --has-aux": "model:loss: has_aux: it returns float32[], not a pair",
    "model:integer": f"model:integer: it returns int32[], {SCALAR}",
    "model:nothing": f"model:nothing: it returns no array, {SCALAR}",
    "model:text": f"model:text: it returns a value of type str, {SCALAR}",
    "model:generator": "model:generator: it is a generator function: measure the function",
    "model:made_generator": "model:made_generator: it returns a value of type generator",
    "model:coroutine": "model:coroutine: it is a coroutine function: measure the function",
    "model:stream": "model:stream: it is a generator function: measure the function",
    # what it does
    "model:branch": "model:branch: it needs the value of an array at model.py:LINE (",
    "model:to_numpy": "model:to_numpy: it needs the value of an array at model.py:LINE (",
    "model:to_float": "model:to_float: it needs the value of an array at model.py:LINE (",
    "model:as_index": "model:as_index: it needs the value of an array at model.py:LINE (",
    "model:effects": "model:effects: NotImplementedError at model.py:LINE: Effects not supported",
    "model:raising": "model:raising: ValueError at model.py:LINE: the shapes do not fit",
    "model:exiting": "model:exiting: SystemExit at model.py:LINE: that was it",
    "model:ending": "model:ending: measure: the process ended the process with status 7",
    "model:aborting": "model:aborting: measure: the process was killed by SIGABRT",
    "model:endless": "model:endless: RecursionError at model.py:LINE: maximum recursion depth",
    # its arguments
    "model:loss --args model:arg": "model:arg: module model defines no `arg`; did you mean args?",
    "model:loss --args modle:args": "modle:args: there is no module modle",
    "model:loss --args model": "model: name a function as module:function",
    "model:loss --args model:number": "model:number: number is not callable, it has type int",
    "model:loss --args model:as_list": "model:as_list: the case as_list returned a list: return",
    "model:loss --args model:as_nothing": "model:as_nothing: the case as_nothing returned a NoneT",
    "model:loss --args model:needing": "model:needing: a function that returns arguments must not",
    "model:loss --args model:failing": "model:failing: RuntimeError at model.py:",
    "model:loss --args model:leaving": "model:leaving: SystemExit at model.py:",
    "model:loss --args model:yielding_nothing": "model:yielding_nothing: it yields no arguments",
    "model:loss --args model:misfit": "model:loss: TypeError at model.py:LINE: dot_general",
    "model:loss --args model:too_few": "model:loss: TypeError: loss() missing 1 required",
    "model:loss --args model:too_many": "model:loss: TypeError: loss() takes 2 positional",
    "model:loss --args model:with_text": "model:loss: argument 0 holds a value of type str, which",
    "model:loss --args model:with_integers": "model:loss: argument 0 holds an array of dtype int32",
    "model:loss --args model:by_keyword": "model:loss: it cannot be differentiated by argument 0:",
    "model:Net.method --args model:with_net": "model:Net.method: argument 0 holds a value of type",
    "model:loss --argnums 2": "model:loss: it cannot be differentiated by argument 2: it gets",
    "model:loss --argnums 1,-1": "model:loss: --argnums names an argument twice",
    "model:loss --cases nothing.py": "cases: ",
}

LINES = {
    "model:branch": "if block(w, x)",
    "model:to_numpy": "np.asarray",
    "model:to_float": "return float(",
    "model:as_index": "[[1, 2, 3]",
    "model:effects": "return calling_out",
    "model:raising": "raise ValueError",
    "model:exiting": "that was it",
    "model:endless": "return endless",
    "model:loss --args model:misfit": "return jnp.tanh(x @ w)",
}


@pytest.mark.parametrize("words", INVALID)
def test_invalid(words, measure):
    given = words.split()
    if "--args" not in given and "--cases" not in given:
        given += ["--args", "model:args"]
    ran = measure(*given)
    line = str(at(LINES[words])) if words in LINES else ""
    assert ran.err.removeprefix("error: ").startswith(INVALID[words].replace("LINE", line))
    assert "Traceback" not in ran.err
    assert str(ROOT) not in ran.err
    assert ran.out == ""
    assert ran.code == 2


def test_message_for_values_needed_at_trace_time(measure):
    assert measure("model:branch", "--args", "model:args").err.endswith(PYTHON_VALUE + "\n")


def test_message_for_missing_arguments(measure):
    error = measure("model:loss").err
    assert error.startswith("error: model:loss: it needs arguments (w, x): write a function")


@pytest.mark.parametrize(
    "words",
    [
        "model:loss",
        "model.py:loss --args model.py:args",
        "model:Net.static",
        "model:Net.of_class",
        "model:Net.method --args model:with_net --argnums 1",
        "model:net",
        "model:net.method",
        "model:bound",
        "model:halved",
        "model:jitted",
        "model:step --grad none",
        "model:pair --has-aux",
        "model:configured --args model:with_config",
        "model:loss --args model:by_both",
        "model:loss --args model:yielding",
        "model:loss --args model:by_keyword --grad none",
        "model:loss --argnums 0,1",
        "model:loss --argnums=-1",
        "parts.head:loss --args parts.head:args",
    ],
)
def test_valid(words, measure):
    given = words.split() if "--args" in words else [*words.split(), "--args", "model:args"]
    ran = measure(*given, "--output-format", "json")
    assert ran.err == ""
    assert ran.code == 0
    [site] = json.loads(ran.out)["sites"]
    assert (site["path"], site["line"], site["applications"]) == ("model.py", CHECKPOINT, 2)


@pytest.mark.parametrize("target", ["model:printing", "speaks:loss"])
def test_output_of_the_measured_code_is_not_in_the_report(target, measure):
    ran = measure(target, "--args", "model:args", "--output-format", "json")
    assert json.loads(ran.out)["target"] == target
    assert ran.err == ""


def test_alternatives_for_a_function_without_checkpoints(measure):
    ran = measure("model:bare", "--args", "model:many_rows")
    assert "`remat-migrate plan --budget 50%`" in ran.out
    ran = measure("model:bare", "--args", "model:args", "--output-format", "json")
    document = json.loads(ran.out)
    assert document["sites"] == []
    assert document["alternatives"] == []


def test_one_of_several_targets_fails(measure):
    words = ["model:loss", "model:los", "--args", "model:args"]
    ran = measure(*words, "--output-format", "json")
    assert ran.code == 2
    assert ran.err == "error: model:los: module model defines no `los`; did you mean loss?\n"
    measured, failed = json.loads(ran.out)
    assert measured["sites"][0]["line"] == CHECKPOINT
    assert failed["target"] == "model:los"
    assert failed["error"] == "model:los: module model defines no `los`; did you mean loss?"
    ran = measure(*words)
    assert ran.code == 2
    assert f"model.py:{CHECKPOINT}" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--frobnicate", "No such option '--frobnicate'"),
        ("--grad backwards", "'backwards' is not one of"),
        ("--argnums first", "'first' is not a comma-separated list of integers"),
        ("--output-format xml", "'xml' is not one of"),
        ("--python nowhere", "nowhere: no such interpreter"),
    ],
)
def test_unknown_options(words, message, tmp_path):
    write_files(tmp_path, {"pyproject.toml": "", "model.py": MODEL})
    ran = cli(tmp_path, "measure", "model:loss", "--args", "model:args", *words.split())
    assert message in ran.err
    assert ran.out == ""
    assert ran.code == 2


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("target = 3", "measure.target: expected a string or an array, got an integer 3"),
        ("target = [1]", "measure.target: expected a string, got an integer 1"),
        ("args = true", 'measure.args: expected a string such as "module:function" or an array'),
        ('args = "model"', 'a string such as "module:function" or an array, got'),
        ('grad = "twice"', 'measure.grad: expected "value_and_grad" or "grad" or "none", got'),
        ("argnums = 0.5", "measure.argnums: expected an integer or an array, got a number 0.5"),
        ("argnums = []", "measure.argnums: expected an integer or an array"),
        ('x64 = "yes"', "measure.x64: expected a boolean, got a string 'yes'"),
        ("has-aux = 1", "measure.has-aux: expected a boolean, got an integer 1"),
        ("tarjet = 3", "did you mean target?"),
    ],
)
@pytest.mark.parametrize("command", [["measure"], ["report", "--measure"]], ids=" ".join)
def test_invalid_settings(command, setting, message, tmp_path):
    target = "" if "target" in setting else 'target = "model:loss"\n'
    settings = f"[tool.remat-migrate.measure]\n{target}{setting}\n"
    write_files(tmp_path, {"pyproject.toml": settings, "model.py": MODEL})
    ran = cli(tmp_path, *command)
    assert message in ran.err
    assert ran.out == ""
    assert ran.code == 2


def test_no_target(tmp_path):
    write_files(tmp_path, {"pyproject.toml": "", "model.py": MODEL})
    ran = cli(tmp_path, "measure")
    assert ran.err.startswith("error: missing TARGET: module:function")
    assert ran.code == 2


def test_time_limit(tmp_path):
    limit = "[tool.remat-migrate.verify]\ntimeout = 1\n"
    write_files(tmp_path, {"pyproject.toml": limit, "slow.py": "import time\n\ntime.sleep(600)\n"})
    ran = cli(tmp_path, "measure", "slow:loss")
    assert ran.err == ("error: slow:loss: load: the process took longer than 1 s and was stopped\n")
    assert ran.code == 2


def test_out_of_memory_while_compiling(tmp_path):
    limit = '[tool.remat-migrate.verify]\nmemory = "250MiB"\n'
    write_files(tmp_path, {"pyproject.toml": limit})
    shutil.copy(MODULES / "compiling.py", tmp_path)
    ran = cli(
        tmp_path, "measure", "compiling:loss", "--args", "compiling:args", "--compile",
        "--output-format", "json",
    )  # fmt: skip
    document = json.loads(ran.out)
    [site] = document["sites"]
    assert (site["function"], site["compiled_bytes"]) == ("block", None)
    assert document["compiled_bytes"] is None
    [note] = document["notes"]
    assert note.startswith("not confirmed by the compiled program: compiling:loss: ")
    assert "used more than 0.244 GiB of memory and was stopped" in note
    assert ran.code == 0


def test_no_jax(tmp_path):
    venv.create(tmp_path / "bare", symlinks=True)
    write_files(tmp_path, {"pyproject.toml": "", "model.py": MODEL})
    ran = cli(tmp_path, "measure", "model:loss", "--python", "bare/bin/python")
    assert "jax is not installed for" in ran.err
    assert "pip install 'remat-migrate[measure]'" in ran.err
    assert ran.code == 2


LAYOUTS = {
    "package": ("net/model.py", "net.model", True),
    "src": ("src/net_in_src/model.py", "net_in_src.model", True),
    "namespace": ("namespace/parts/model.py", "namespace.parts.model", False),
    "script": ("scripts/train.py", "scripts/train.py", False),
    "file in a package": ("whole/parts/model.py", "whole/parts/model.py", True),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, tmp_path, monkeypatch):
    path, module, is_package = LAYOUTS[layout]
    text = "def loss():\n    pass\n\n\nif __name__ == '__main__':\n    raise SystemExit('run')\n"
    files = {"pyproject.toml": "", path: text}
    if is_package:
        files[path] = "from .shapes import N\n" + text
        files |= {str(Path(path).parent / "shapes.py"): "N = 8\n"}
        below = [folder for folder in Path(path).parents if folder.name not in ("", "src")]
        files |= {str(folder / "__init__.py"): "" for folder in below}
    write_files(tmp_path, files)
    target = parse_target(f"{module}:loss", tmp_path)
    monkeypatch.setattr(sys, "path", [*map(str, target.folders), *sys.path])
    function = load_function(target.module, str(target.path), target.qualname)
    assert Path(function.__code__.co_filename) == tmp_path / path
