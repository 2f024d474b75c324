"""Inputs that are large, or that a pattern could stumble over: time grows as the size does."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import cli, write_files

from remat_migrate.codemod import locate
from remat_migrate.errors import SourceError
from remat_migrate.text.source_file import read_bytes

UNUSED = "import jax  # noqa: RMT999\n"
SITE = "import jax\nf = jax.checkpoint(g, concrete=True)\n"


def inputs(size: int) -> dict[str, str]:
    """Files of about so many characters, by name."""

    def many(text: str) -> str:
        return text * (size // len(text))

    return {
        "triple.py": SITE + many('\\"""'),
        "triple2.py": many('"""a\\') + SITE,
        "quotes.py": SITE + many('"\n'),
        "quote2.py": SITE + many("f'"),
        "noqa.py": SITE + "x = 1  # " + many("noqa: A1, ") + "\n",
        "noqa2.py": SITE + "# " + many("#noqa") + "\n",
        "noqa3.py": SITE + "x = 1  # noqa: " + many("RMT101 ") + "\n",
        "noqa4.py": SITE + "x=1 # noqa" + " " * size + ":x\n",
        "noqa5.py": SITE + "".join("# noqa:" + " " * 1000 + "\n" for _ in range(size // 1000)),
        "spaces.py": SITE + "x = 1" + " " * size + "\n",
        "blank.py": SITE + "\n" * size,
        "imports.py": SITE + "import " + many("a, ") + "a\n",
        "imports2.py": SITE + "from a import (" + many("a, ") + ")\n",
        "ident.py": SITE + "x" * size + " = 1\n",
        "assign.py": SITE + many("a = "),
        "assign3.py": "import jax\n" + many("a: b") + "= jax.checkpoint\n",
        "dots.py": SITE + "x = a" + many(". \\\n"),
        "concrete.py": SITE + many("concrete="),
        "def.py": SITE + many("def remat(*"),
        "spread.py": SITE + many("checkpoint("),
        "str.py": SITE + "x = '" + many("RMT101 noqa ") + "'\n",
        "longline.py": SITE + "x = [" + many("1, ") + "]\n",
        "longsite.py": "import jax\nx = [" + many("jax.checkpoint, ")[:200000] + "]\n",
        "getattr.py": SITE + many("getattr(jax, 'checkpoint"),
        "cookie.py": "# " + many("coding") + "\n" + SITE,
        "scan.py": many("jax scan( grad "),
        "backslash.py": SITE + many("\\\n"),
        "cr.py": SITE + many("\r"),
        "m4.sh": "JAX_NEW_CHECKPOINT=1\n" + many("<<EOF\n"),
        "m5.sh": "JAX_NEW_CHECKPOINT=1 " + many("A=1 ") + "\n",
        "m8.sh": many("JAX_NEW_CHECKPOINT=1 ") + "\n",
        "m9.yaml": "env: {" + many("JAX_NEW_CHECKPOINT: 1, ") + "}\n",
        "m3.toml": "JAX_NEW_CHECKPOINT = 1\n" + many('"""'),
        "Makefile": "export JAX_NEW_CHECKPOINT=1\n" + many("$("),
        "Dockerfile": "ENV JAX_NEW_CHECKPOINT=1\n" + many("RUN \\\n"),
        "Dockerfile.b": "ENV JAX_NEW_CHECKPOINT=1 " + many("A=1 ") + "\n",
        ".env": "JAX_NEW_CHECKPOINT=1\n" + many("A="),
    }


def seconds(folder: Path, files: dict[str, str]) -> float:
    """The processor's time for a run over files, which must come to its end."""
    write_files(folder, {"pyproject.toml": "", **files})
    start = time.process_time()
    ran = cli(folder, "--no-cache", "--output-format", "concise")
    taken = time.process_time() - start
    assert ran.code in (0, 1), ran.err
    assert "failed" not in ran.err
    return taken


@pytest.mark.parametrize("name", inputs(1))
def test_worst_case_of_a_pattern(tmp_path: Path, name: str) -> None:
    # What takes the square of the size takes minutes here.
    assert seconds(tmp_path, {name: inputs(40_000)[name]}) < 5


@pytest.mark.slow
@pytest.mark.parametrize("name", inputs(1))
def test_worst_case_of_a_pattern_at_a_megabyte(tmp_path: Path, name: str) -> None:
    assert seconds(tmp_path, {name: inputs(1_000_000)[name]}) < 60


def numbered(template: str, count: int) -> str:
    return "".join(template.replace("@", str(i)).replace("$", str(i + 1)) for i in range(count))


# Programs of so many lines; what each of them holds.
GROWING: dict[str, Callable[[int], str]] = {
    "sites": lambda n: "import jax\n" + numbered("f@ = jax.checkpoint(g@, concrete=True)\n", n),
    "functions": lambda n: (
        "import jax\n" + numbered("@jax.checkpoint\ndef f@(x, n):\n    if n: return x\n", n)
    ),
    "aliases": lambda n: "import jax\n" + numbered("a@ = jax.checkpoint\n", n) + "a0(g)\n",
    "suppressions": lambda n: (
        "import jax\n" + numbered("f@ = jax.checkpoint(g@, concrete=True)  # noqa: RMT101\n", n)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", GROWING)
def test_time_grows_linearly(tmp_path: Path, kind: str) -> None:
    """Ten times as many take no more than some twenty times as long: the square is a hundred."""
    times = [seconds(tmp_path, {"m.py": GROWING[kind](n)}) for n in (1_000, 10_000)]
    assert times[1] < 20 * times[0] + 5, times


# What is put together from itself, twice each: 2 to the power of 60 in the end.
DOUBLED = {
    "tuples": ("a0 = (1,)\n", "a$ = (*a@, *a@)\n", "static_argnums=a60"),
    "policies": ("a0 = p.x\n", "a$ = p.save_from_both_policies(a@, a@)\n", "policy=a60"),
}


@pytest.mark.parametrize("kind", DOUBLED)
def test_exponential_self_reference(tmp_path: Path, kind: str) -> None:
    first, step, option = DOUBLED[kind]
    code = (
        "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n"
        "p = jax.checkpoint_policies\nP = p.save_only_these_names\n"
        f"{first}{numbered(step, 60)}x = checkpoint_name(x, a60)\n"
        f"f = jax.checkpoint(g, {option})\nh = a60(g)\n"
    )
    assert seconds(tmp_path, {"m.py": code}) < 10


@pytest.mark.parametrize(
    "settings",
    [
        "[tool.remat-migrate]\nselect = " + "[" * 5_000 + "]" * 5_000,
        "[tool.remat-migrate]\nexclude = ['[z-a]', '!', '[']",
        "[tool.remat-migrate]\nmax-file-size = nan",
        "[tool.remat-migrate]\njax-version = '" + "9." * 5_000 + "9'",
        "[tool.remat-migrate]\nbaseline = 3",
        "[tool.remat-migrate.wrappers]\n'__import__(\"os\").system' = 'jax.checkpoint'",
        "[tool]\nremat-migrate = 'x'",
    ],
)
def test_hostile_settings(tmp_path: Path, settings: str) -> None:
    write_files(tmp_path, {"pyproject.toml": f"# remat-migrate\n{settings}\n", "m.py": SITE})
    ran = cli(tmp_path)
    assert ran.code in (1, 2)
    assert "Traceback" not in ran.err
    assert all(letter.isprintable() or letter == "\n" for letter in ran.err)


@pytest.mark.parametrize(
    "baseline",
    [
        '{"version": NaN}',
        '{"version": 2, "findings": ' + "9" * 10_000 + "}",
        '{"version": 2, "findings": [null]}',
        '{"version": 2, "findings": {"a": ["b"]}}',
        '{"schema_version": 1, "findings": [{"code": 1, "path": ["/etc/passwd"]}]}',
        json.dumps({"version": 2, "findings": ["x" * 100] * 10_000}),
    ],
)
def test_hostile_baseline(tmp_path: Path, baseline: str) -> None:
    write_files(tmp_path, {"pyproject.toml": "", "m.py": SITE, "base.json": baseline})
    ran = cli(tmp_path, "--baseline", "base.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert "Traceback" not in ran.err


CELL = {"cell_type": "code", "source": SITE, "metadata": {}, "outputs": []}
NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [CELL]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({**NOTEBOOK, "cells": {"a": CELL}}),
        json.dumps({**NOTEBOOK, "cells": [3, None, "x", []]}),
        json.dumps({**NOTEBOOK, "cells": [{**CELL, "source": 3}, {**CELL, "source": [SITE, 3]}]}),
    ],
)
def test_hostile_notebook(tmp_path: Path, text: str) -> None:
    good = "import jax  # noqa: RMT999\n"
    write_files(tmp_path, {"pyproject.toml": "", "a.py": good, "m.ipynb": text, "z.py": good})
    ran = cli(tmp_path, "--fix")
    assert ran.code in (0, 1), ran.err
    assert "2 RMT001" in ran.out
    assert "Traceback" not in ran.err


def test_file_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(handle: int, size: int) -> bytes:
        raise MemoryError

    write_files(tmp_path, {"m.py": SITE})
    monkeypatch.setattr(os, "read", read)
    with pytest.raises(SourceError, match="there is not enough memory"):
        read_bytes(tmp_path / "m.py")


def test_statement_that_takes_too_much_memory_to_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "_LONGEST", 1_000)
    code = "import jax; f = jax.checkpoint(g, concrete=False); x = [" + "1, " * 400 + "]\n"
    write_files(tmp_path, {"pyproject.toml": "", "m.py": code, "n.py": UNUSED})
    ran = cli(tmp_path, "--fix")
    assert ran.code == 1
    assert "the statement on line 1 is longer than 1 MB" in ran.err
    assert (tmp_path / "n.py").read_text() == "import jax\n"


@pytest.mark.parametrize(
    ("encoding", "code"),
    [("punycode", "import jax\nx = 1-99999999a"), ("idna", "import jax\nx = 1\n" + "y" * 99)],
)
def test_encodings_without_positions(tmp_path: Path, encoding: str, code: str) -> None:
    site = f"# coding: {encoding}\n{SITE}{code}"
    write_files(tmp_path, {"pyproject.toml": "", "m.py": site, "n.py": UNUSED})
    ran = cli(tmp_path, "--fix")
    assert "Traceback" not in ran.err
    assert (tmp_path / "m.py").read_text() == site
    assert (tmp_path / "n.py").read_text() == "import jax\n"


@pytest.mark.parametrize("name", ["pyproject.toml", "base.json"])
def test_huge_sparse_file_that_is_not_code(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {"setup.py": "", "m.py": SITE})
    with (tmp_path / name).open("w") as file:
        file.truncate(2**40)
    ran = cli(tmp_path, *(["--baseline", name] if name == "base.json" else []), ".")
    assert "Traceback" not in ran.err
    assert ran.code == 2
    assert f"{name}: cannot be read: it is larger than 64 MB" in ran.err


def test_an_encoding_without_the_new_text_is_no_bug_of_the_rule(tmp_path: Path) -> None:
    code = f"# coding: idna\n{SITE.replace('True', 'False')}y = '{'a' * 60}'\n"
    write_files(tmp_path, {"pyproject.toml": "", "m.py": code})
    ran = cli(tmp_path, "--fix")
    assert ran.code == 1
    assert "cannot be encoded in the file's encoding, idna; convert the file to UTF-8" in ran.err
    assert "bug" not in ran.err
