"""Lines that new code makes too long."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from codemod_support import File
from support import cli, write_files

from remat_migrate.codemod.changes import Code, Remove, Replace, SetArgument
from remat_migrate.codemod.style import style_of
from remat_migrate.codemod.writer import write
from remat_migrate.text import SourceFile, apply_edits


@pytest.mark.parametrize("character", ["\f", "\x1c", "\x85", "\u2028"])
def test_only_line_feeds_end_a_line(character: str) -> None:
    text = f'def f(x):\n    s = "{character}"\n    return g(x)\n'
    source = SourceFile(Path("/m.py"), text)
    file = File(source, source.parse())
    value = file.tree.body[0].body[1].value
    names = ["x" * 30, "y" * 30, "z" * 30]
    after = apply_edits(text, write([Replace(file, value, Code(f"g({', '.join(names)})"))]))
    broken = "".join(f"        {name},\n" for name in names)
    assert after == text.replace("g(x)", f"g(\n{broken}    )")


def test_changed_settings_are_read_again(tmp_path: Path) -> None:
    source = SourceFile(tmp_path / "m.py", "x = 1\n")
    settings = tmp_path / "pyproject.toml"
    for number, length in enumerate((79, 120), 1):
        settings.write_text(f"[tool.ruff]\nline-length = {length}\n")
        os.utime(settings, (number, number))
        assert style_of(source, "    ").width == length
    settings.unlink()
    (tmp_path / "setup.cfg").write_text("[flake8]\nmax-line-length = 99\n")
    assert style_of(source, "    ").width == 99


SETTINGS = [
    ("pyproject.toml", "[tool.black]\n", 88),
    ("pyproject.toml", "[tool.ruff]\nline-length = 77\n[tool.black]\nline-length = 99\n", 99),
    ("pyproject.toml", "[tool.pyink]\nline-length = 81\n", 81),
    (".ruff.toml", "line-length = 101\n", 101),
    (".style.yapf", "[style]\nbased_on_style: google\n", 80),
    ("setup.cfg", "[yapf]\ncolumn_limit = 90\n[flake8]\nmax-line-length = 99\n", 90),
    (".pre-commit-config.yaml", "      - args: [--line-length=102]\n", 102),
    ("tox.ini", "[pycodestyle]\nmax-line-length = 97\n", 97),
    (".pylintrc", "[FORMAT]\nmax-line-length=96\n", 96),
    (".editorconfig", "root = true\n[*.py]\nmax_line_length = 95\n", 95),
    (".editorconfig", "[*]\nmax_line_length = off\n", 110),
    ("pyproject.toml", "not TOML", 110),
]


@pytest.mark.parametrize(("name", "text", "width"), SETTINGS)
def test_line_length(tmp_path: Path, name: str, text: str, width: int) -> None:
    """The formatter's, else a linter's, else that of the longest line of code."""
    (tmp_path / name).write_text(text)
    lines = f"x = {'y' * 106}\n# {'comment ' * 14}\nz = '{'text' * 28}'\n"
    source = SourceFile(tmp_path / "m.py", lines)
    assert style_of(source, "    ").width == width


def with_argument(tmp_path: Path, text: str, width: int = 60, name: str = "pyproject.toml") -> str:
    """The code with `train=True` added to the first call of `g`."""
    settings = {
        "pyproject.toml": f"[tool.black]\nline-length = {width}\n",
        ".style.yapf": f"[style]\nbased_on_style = google\ncolumn_limit = {width}\n",
    }
    (tmp_path / name).write_text(settings[name])
    source = SourceFile(tmp_path / "m.py", text)
    file = File(source, source.parse())
    calls = [n for n in ast.walk(file.tree) if isinstance(n, ast.Call)]
    call = next(n for n in calls if ast.unparse(n.func) == "g")
    return apply_edits(text, write([SetArgument(file, call, "train", Code("True"))]))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = g(\n    x,\n    z,\n)\n", "y = g(\n    x,\n    z,\n    train=True,\n)\n"),
        ("y = g(\n    x,\n    z\n)\n", "y = g(\n    x,\n    z,\n    train=True\n)\n"),
        ("y = g(x,\n      z)\n", "y = g(x,\n      z,\n      train=True)\n"),
        ("y = g(x, z,\n      w)\n", "y = g(x, z,\n      w, train=True)\n"),
        (
            f"y = g(\n    {'x' * 30}, {'z' * 20}\n)\n",
            f"y = g(\n    {'x' * 30},\n    {'z' * 20},\n    train=True,\n)\n",
        ),
    ],
)
def test_layout_of_the_call(tmp_path: Path, before: str, after: str) -> None:
    assert with_argument(tmp_path, before) == after


def test_continuation_lines_are_indented_as_in_the_file(tmp_path: Path) -> None:
    head = "def f(\n    x,\n):\n  h(\n      x,\n  )\n"
    before = f"{head}  return g({'x' * 45})\n"
    after = f"{head}  return g(\n      {'x' * 45}, train=True\n  )\n"
    assert with_argument(tmp_path, before, width=64) == after


def without_last(tmp_path: Path, text: str, name: str = "pyproject.toml") -> str:
    """The code without the last argument of the last call."""
    width = {"pyproject.toml": "[tool.black]\n", ".style.yapf": "[style]\ncolumn_limit = 40\n"}
    (tmp_path / name).write_text(width[name])
    source = SourceFile(tmp_path / "m.py", text)
    file = File(source, source.parse())
    call = [n for n in ast.walk(file.tree) if isinstance(n, ast.Call)][-1]
    last = [*call.args, *call.keywords][-1]
    return apply_edits(text, write([Remove(file, last)]))


def test_a_call_that_fits_again_is_joined(tmp_path: Path) -> None:
    long = "x" * 60
    assert without_last(tmp_path, f"y = g(\n    {long}, {'z' * 20}\n)\n") == f"y = g({long})\n"
    # One argument a line by choice, or a call that could have been joined before.
    kept = f"y = g(\n    {long},\n    {'z' * 20},\n)\n"
    assert without_last(tmp_path, kept) == f"y = g(\n    {long},\n)\n"
    assert without_last(tmp_path, "y = g(\n    x, z\n)\n") == "y = g(\n    x\n)\n"


def test_yapf_fills_lines(tmp_path: Path) -> None:
    before = f"y = g({'a' * 8},\n      {'b' * 8},\n      {'c' * 8},\n      {'d' * 8},\n      e=1)\n"
    after = f"y = g({'a' * 8}, {'b' * 8}, {'c' * 8},\n      {'d' * 8})\n"
    assert without_last(tmp_path, before, ".style.yapf") == after
    (tmp_path / ".style.yapf").unlink()
    assert without_last(tmp_path, before) == before.replace(",\n      e=1", "")


def test_a_call_around_lines(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text("line-length = 88\n")

    def checkpointed(text: str) -> str:
        source = SourceFile(tmp_path / "m.py", text)
        file = File(source, source.parse())
        step = next(n for n in ast.walk(file.tree) if isinstance(n, ast.Call) and n.keywords)
        return apply_edits(text, write([Replace(file, step, Code.of("c({f}, a=1)", f=step))]))

    before = (
        "def f(x):\n    return g(\n        h(\n            x,\n"
        "            b=2,\n        ),\n        x,\n    )\n"
    )
    assert checkpointed(before) == (
        "def f(x):\n    return g(\n        c(\n            h(\n                x,\n"
        "                b=2,\n            ),\n            a=1,\n        ),\n        x,\n    )\n"
    )
    assert checkpointed("y = h(x,\n      b=2)\n") == "y = c(h(x,\n        b=2), a=1)\n"


def test_code_in_an_f_string_stays_on_its_line() -> None:
    text = 'x = f"{g(a)}"\n'
    source = SourceFile(Path("/m.py"), text)
    file = File(source, source.parse())
    call = file.tree.body[0].value.values[0].value
    new = f"g({', '.join(['x' * 30, 'y' * 30, 'z' * 30])})"
    after = apply_edits(text, write([Replace(file, call, Code(new))]))
    assert after == text.replace("g(a)", new)


def test_two_fixes_of_one_function_wait_for_each_other(tmp_path: Path) -> None:
    """One removes a decorator, the other nests the body and removes another one."""
    code = (
        "import jax\nimport flax.linen as nn\nfrom functools import partial\n\n\n"
        "class Net(nn.Module):\n"
        "    @partial(nn.remat, static_argnums=1)\n"
        "    @partial(jax.checkpoint, concrete=True)\n"
        "    def layers(self, x, n: int):\n"
        "        for _ in range(n):\n"
        "            x = x * 2\n"
        "        return x\n"
    )
    write_files(tmp_path, {"pyproject.toml": "", "m.py": code})
    ran = cli(tmp_path, "--fix", "--unsafe-fixes")
    assert (ran.code, ran.err) in ((0, ""), (1, ""))
    after = (tmp_path / "m.py").read_text()
    assert "concrete" not in after
    ast.parse(after)
