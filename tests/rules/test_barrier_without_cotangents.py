"""RMT604: code that sets `jax_remat_barrier_no_cotangents`, in any kind of file."""

from __future__ import annotations

import pytest
from support import findings, fixed

CODE = "RMT604"
FLAG, VARIABLE = "jax_remat_barrier_no_cotangents", "JAX_REMAT_BARRIER_NO_COTANGENTS"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"jax.config.update('{FLAG}', True)", f"jax.config.update('{FLAG}', False)"),
        (f"jax.config.{FLAG} = 1", f"jax.config.{FLAG} = 0"),
        (f"os.environ['{VARIABLE}'] = 'true'", f"os.environ['{VARIABLE}'] = \"0\""),
        (
            f"os.environ.setdefault('{VARIABLE}', '1')",
            f"os.environ.setdefault('{VARIABLE}', \"0\")",
        ),
        (f"monkeypatch.setenv('{VARIABLE}', '1')", f"monkeypatch.setenv('{VARIABLE}', \"0\")"),
    ],
)
def test_fixed(before: str, after: str) -> None:
    text = "import os\nimport jax\n\n%s  # for now\n"
    assert len(findings(text % before, select=(CODE,))) == 1
    assert fixed(text % before, select=(CODE,)) == {"example.py": text % before}  # it is unsafe
    assert fixed(text % before, select=(CODE,), unsafe=True) == {"example.py": text % after}
    assert findings(text % after, select=(CODE,)) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.sh", f"export {VARIABLE}=1\npython train.py\n"),
        ("train.sh", f"python train.py --{FLAG}=True\n"),
        ("Dockerfile", f"FROM python\nENV {VARIABLE}=1\n"),
        ("ci.yml", f"env:\n  {VARIABLE}: '1'\n"),
        ("run.py", f"import subprocess\nsubprocess.run(['python', 't.py', '--{FLAG}=1'])\n"),
    ],
)
def test_found_and_not_fixed(name: str, text: str) -> None:
    assert len(findings({name: text}, select=(CODE,))) == 1
    assert fixed({name: text}, select=(CODE,), unsafe=True) == {name: text}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.sh", f"export {VARIABLE}=0\necho {VARIABLE}=1\n"),
        ("ci.yml", f"env:\n  {VARIABLE}: '0'  # {VARIABLE}=1\n"),
        ("a.py", f"import jax\n\nprint(jax.config.{FLAG})\n"),
        ("a.py", f"config = {{}}\nconfig.update('{FLAG}', True)\n"),
        ("a.py", f"import jax\n\njax.config.update('{FLAG}', chosen)\n"),
        ("a.py", f"import jax\n\njax.config.update('{FLAG}', False)\n"),
    ],
)
def test_left_alone(name: str, text: str) -> None:
    assert findings({name: text}, select=(CODE,)) == []
