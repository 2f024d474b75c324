"""RMT102: fixed code runs under JAX and bash with the same result."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support import findings, fixed, places

PROGRAM = '''\
"""Trains with the old checkpoint: JAX_NEW_CHECKPOINT=0."""

import os

os.environ["JAX_NEW_CHECKPOINT"] = "0"

import subprocess
import sys

import jax
import jax.numpy as jnp
from jax import config

FLAG = "jax_new_checkpoint"
config.update(FLAG, False)
saved = getattr(config, FLAG)
if saved:
    remat = jax.checkpoint
else:
    remat = lambda f: f


def block(w, x):
    if config.jax_new_checkpoint:
        # The only implementation that remains.
        return jnp.tanh(x @ w)
    return old_block(w, x)


def loss(w, x):
    for _ in range(3):
        x = remat(block)(w, x) if not hasattr(config, FLAG) or saved else x
    return jnp.sum(x ** 2)


def child():
    env = {**os.environ, "JAX_NEW_CHECKPOINT": "0"}
    code = "import os, sys; print('JAX_NEW' + '_CHECKPOINT' in os.environ, sys.argv[1:])"
    command = [sys.executable, "-c", code, "--jax_new_checkpoint=False", "--lr"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


w, x = jnp.eye(3) * 0.5, jnp.ones((2, 3))
value, gradient = jax.value_and_grad(loss)(w, x)
print(float(value), float(gradient.sum()), child())
'''


def run(folder: Path, *command: str | Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "JAX_NEW_CHECKPOINT"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_the_fixed_program_runs_with_the_same_result(tmp_path):
    pytest.importorskip("jax")
    after = fixed(PROGRAM, select="RMT102")["example.py"]
    assert "new_checkpoint" not in after
    # The docstring is prose; the child says whether it has the variable.
    assert [line for line in after.splitlines() if "JAX_NEW_CHECKPOINT" in line] == [
        '"""Trains with the old checkpoint: JAX_NEW_CHECKPOINT=0."""'
    ]
    plain = textwrap.dedent(
        """
        import jax, jax.numpy as jnp
        def loss(w, x):
            for _ in range(3):
                x = jnp.tanh(x @ w)
            return jnp.sum(x ** 2)
        w, x = jnp.eye(3) * 0.5, jnp.ones((2, 3))
        value, gradient = jax.value_and_grad(loss)(w, x)
        print(float(value), float(gradient.sum()), "False ['--lr']")
        """
    )
    (tmp_path / "after.py").write_text(after)
    (tmp_path / "plain.py").write_text(plain)
    seen, expected = (run(tmp_path, sys.executable, f"{n}.py").split() for n in ("after", "plain"))
    assert seen[2:] == expected[2:]
    assert [float(n) for n in seen[:2]] == pytest.approx([float(n) for n in expected[:2]], 1e-6)


PROJECT = {
    "train.py": "import os, sys\nprint('JAX_NEW' + '_CHECKPOINT' in os.environ, sys.argv[1:])\n",
    "run.sh": (
        "#!/bin/bash\nset -eu\nexport JAX_NEW_CHECKPOINT=0\n"
        'cd "$(dirname "$0")"\n'
        'if [ -n "$PYTHON" ]; then export JAX_NEW_CHECKPOINT=0; fi\n'
        "JAX_NEW_CHECKPOINT=0 $PYTHON train.py --steps 3 \\\n  --jax_new_checkpoint=false\n"
        "make --silent train\n"
    ),
    "Makefile": (
        "export JAX_NEW_CHECKPOINT ?= 0\nFLAGS = --jax_new_checkpoint=0 -v\n"
        "train:\n\t@JAX_NEW_CHECKPOINT=0 $(PYTHON) train.py $(FLAGS)\n"
    ),
}


@pytest.mark.skipif(not shutil.which("bash") or not shutil.which("make"), reason="needs bash, make")
def test_the_launcher_runs_without_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHON", sys.executable)
    after = fixed(PROJECT, select="RMT102")
    for name, text in after.items():
        (tmp_path / name).write_text(text)
    assert run(tmp_path, "bash", "run.sh").splitlines() == [
        "False ['--steps', '3']",
        "False ['-v']",
    ]


@pytest.mark.parametrize(
    ("code", "severity", "words"),
    [
        ('jax.config.update("jax_new_checkpoint", True)', "error", "setting it raises"),
        ("f(jax.config.jax_new_checkpoint)", "error", "reading it raises"),
        ("jax.config.jax_new_checkpoint = True", "warning", "attribute has no effect"),
        ('jax.config.update("jax_new_checkpoint", False)', "error", "setting it raises"),
        ('os.environ["JAX_NEW_CHECKPOINT"] = "0"', "warning", "has no effect"),
        ('f(os.environ["JAX_NEW_CHECKPOINT"])', "warning", "JAX ignores it"),
        ('run(["python", "--jax_new_checkpoint=true"])', "error", "is now rejected"),
        ('if hasattr(jax.config, "jax_new_checkpoint"): pass', "warning", "never exists"),
    ],
)
def test_messages_describe_the_target_version(code, severity, words):
    (finding,) = findings(f"import os, jax\n{code}\n", select="RMT102")
    assert finding.severity == severity
    assert words in finding.message
    assert "0.3.17" in finding.message
    assert finding.url.startswith("https://")


@pytest.mark.parametrize(("version", "found"), [("0.3.15", 0), ("0.3.16", 0), ("0.3.17", 1)])
def test_the_flag_is_valid_in_its_release(version, found):
    code = 'import jax\njax.config.update("jax_new_checkpoint", False)\n'
    assert len(findings(code, select="RMT102", jax_version=version)) == found
    shell = {"a.sh": "export JAX_NEW_CHECKPOINT=0\n"}
    assert len(findings(shell, select="RMT102", jax_version=version)) == found


def test_places():
    assert places(
        {
            "a.py": 'import jax\nx = 1; jax.config.update("jax_new_checkpoint", False)\n',
            "b.yml": "env:\n  A: 1\n  JAX_NEW_CHECKPOINT: 0\n",
            "c.sh": "ls\nA=1 JAX_NEW_CHECKPOINT=0 ls --jax_new_checkpoint=0\n",
        },
        select="RMT102",
    ) == ["a.py:2:8 RMT102", "b.yml:3:3 RMT102", "c.sh:2:5 RMT102", "c.sh:2:29 RMT102"]


def test_text_files_are_fixed_except_suppressed_lines():
    files = {
        "a.sh": "export JAX_NEW_CHECKPOINT=0  # noqa: RMT102\nJAX_NEW_CHECKPOINT=0 ls\n",
        ".env": "JAX_NEW_CHECKPOINT=0\nA=1\n",
        "Dockerfile": "FROM x\nENV JAX_NEW_CHECKPOINT=0\n",
        "t.toml": '[env]\nJAX_NEW_CHECKPOINT = "0"\n',
        "w.yaml": "env: {JAX_NEW_CHECKPOINT: 0}\n",
        "Makefile": "JAX_NEW_CHECKPOINT = 0\n",
    }
    assert fixed(files, select="RMT102") == {
        "a.sh": "export JAX_NEW_CHECKPOINT=0  # noqa: RMT102\nls\n",
        ".env": "A=1\n",
        "Dockerfile": "FROM x\n",
        "t.toml": "",
        "w.yaml": "",
        "Makefile": "",
    }


def test_an_option_of_the_project_stays():
    files = {
        "train.py": (
            "import argparse\nparser = argparse.ArgumentParser()\n"
            'parser.add_argument("--jax_new_checkpoint")\n'
        ),
        "run.sh": "JAX_NEW_CHECKPOINT=0 python train.py --jax_new_checkpoint=0\n",
    }
    after = fixed(files, select="RMT102")
    assert after["run.sh"] == "python train.py --jax_new_checkpoint=0\n"
    (left,) = findings(after, select="RMT102")
    assert left.fix is None
    assert "its own option" in left.reason


def test_uses_that_empty_one_block_have_one_fix():
    code = (
        "import os, jax\nif A:\n"
        '    os.environ["JAX_NEW_CHECKPOINT"] = "0"\n'
        '    jax.config.update("jax_new_checkpoint", False)\n'
    )
    first, second = findings(code, select="RMT102")
    assert first.fix is not None
    assert first.fix == second.fix


def test_a_command_line_that_only_gains_the_flag_is_not_assigned_to_itself():
    text = (
        "import subprocess\n\n"
        'cmd = "python train.py"\n'
        'cmd = cmd + " --jax_new_checkpoint=0"\n'
        "subprocess.run(cmd, shell=True)\n"
    )
    after = fixed(text, select="RMT102")["example.py"]
    assert after == text.replace('cmd = cmd + " --jax_new_checkpoint=0"\n', "")
