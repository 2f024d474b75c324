"""RMT102: the flag in Python. Code that only sets it is removed; the rest gives a reason."""

from __future__ import annotations

import pytest
from support import findings, fixed

# Code before `x = 1`, and what is left of it but imports.
REMOVED = [
    ('config.update(name="jax_new_checkpoint", val=False)', ""),
    ("del jax.config.jax_new_checkpoint", ""),
    ('setattr(jax.config, "jax_new_checkpoint", False)', ""),
    (
        "with jtu.with_config(jax_new_checkpoint=False):\n    f()",
        "with jtu.with_config():\n    f()",
    ),
    ('os.environ.update({"JAX_NEW_CHECKPOINT": "0"})', "os.environ.update({})"),
    ('os.environ.update(JAX_NEW_CHECKPOINT="1")', "os.environ.update()"),
    ('os.environ |= {"JAX_NEW_CHECKPOINT": "0"}', "os.environ |= {}"),
    (
        '@patch.dict(os.environ, {"JAX_NEW_CHECKPOINT": "0"})\ndef f(): ...',
        "@patch.dict(os.environ, {})\ndef f(): ...",
    ),
    (
        'run(env=dict(os.environ, JAX_NEW_CHECKPOINT="1", A="1"))',
        'run(env=dict(os.environ, A="1"))',
    ),
    ('run(["env", "JAX_NEW_CHECKPOINT=0", "python"])', 'run(["env", "python"])'),
    ('sys.argv.append("--jax_new_checkpoint=False")', ""),
    ('sys.argv += ["--nojax_new_checkpoint"]', "sys.argv += []"),
]
HEAD = (
    "import os, sys, jax\nfrom contextlib import suppress\nfrom functools import partial\n"
    "from unittest.mock import patch\nfrom jax import config\nprint(os, sys, jax, config)\n"
    "print(suppress, partial, patch)\n"
)


@pytest.mark.parametrize(("before", "after"), REMOVED)
def test_code_that_only_sets_the_flag_is_removed(before, after):
    after = f"{HEAD}{after}\nx = 1\n" if after else f"{HEAD}x = 1\n"
    left = fixed(f"{HEAD}{before}\nx = 1\n", select="RMT102")["example.py"]
    assert left.replace("\n\n", "\n") == after.replace("\n\n", "\n")


LEFT = [
    ('off = partial(jax.config.update, "jax_new_checkpoint")\noff(False)', "unclear"),
    (
        'try:\n    config.update("jax_new_checkpoint", 0)\nexcept AttributeError:\n    pass',
        "a `try` around it",
    ),
    ('with patch.object(jax.config, "jax_new_checkpoint", 0):\n    f()', "unclear"),
    ('os.environ.update([("JAX_NEW_CHECKPOINT", "0")])', "unclear"),
    ('x = hasattr(jax.config, "jax_new_checkpoint")', "keep the code for the new"),
    ('x = os.environ.get("JAX_NEW_CHECKPOINT")', "unclear"),
    ("jax.config.jax_new_checkpoint = 0\nprint(config.jax_new_checkpoint)", "9 may read it"),
    ('os.environ["JAX_NEW_CHECKPOINT"] = "0"\nos.getenv("JAX_NEW_CHECKPOINT")', "9 may read it"),
    ('config.update("jax_new_checkpoint", launch())', "side effects"),
    ('undo = lambda: config.update("jax_new_checkpoint", 1)', "another expression"),
    (
        'try:\n    config.update("jax_new_checkpoint", 0)\nexcept AttributeError:\n    OLD = 0\n'
        "else:\n    OLD = 1",
        "a `try` around it",
    ),
    ('@parametrize("f", ["--jax_new_checkpoint=0"])\ndef test(f): ...', "positions"),
    ('run({"JAX_NEW_CHECKPOINT": "0"})', "unclear"),
    ("f(dict(jax_new_checkpoint=True))", "unclear"),
    ('def f(config):\n    config.update("jax_new_checkpoint", 0)', "may not be jax.config"),
    ("def f(args):\n    return args.jax_new_checkpoint", "may not be jax.config"),
    ('foo.update(config.update("jax_new_checkpoint", 0))', "another expression"),
    ('os.system(f"python {p} --jax_new_checkpoint=0")', "unclear"),
    ('c = ["docker", "run", "-e", "JAX_NEW_CHECKPOINT=0"]', "the word before it"),
    ('p.add_argument("--jax_new_checkpoint")', "unclear"),
]


@pytest.mark.parametrize(("code", "reason"), LEFT)
def test_the_rest_is_left_with_a_reason(code, reason):
    code = f"{HEAD}{code}\n"
    assert any(reason in found.reason for found in findings(code, select="RMT102"))
    assert fixed(code, select="RMT102")["example.py"] == code


@pytest.mark.parametrize(
    "code",
    [
        '"""Set JAX_NEW_CHECKPOINT=0 to go back."""\n',
        'HELP = "JAX_NEW_CHECKPOINT=0 python t.py"\n',
        "class Config:\n    jax_new_checkpoint = False\nconfig = Config()\n"
        "config.jax_new_checkpoint = True\n",
        "def setup(jax_new_checkpoint=False): ...\nsetup(jax_new_checkpoint=True)\n",
        "import jax, pytest\ndef test():\n    with pytest.raises(AttributeError):\n"
        '        jax.config.update("jax_new_checkpoint", False)\n',
    ],
)
def test_prose_and_other_names_are_no_uses(code):
    assert not findings(code, select="RMT102")


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("0.3.15", 0),
        ("0.3.16", 0),
    ],
)
def test_the_flag_is_valid_in_its_release(version, found):
    code = 'import jax\njax.config.update("jax_new_checkpoint", False)\n'
    assert len(findings(code, select="RMT102", jax_version=version)) == found
    shell = {"a.sh": "export JAX_NEW_CHECKPOINT=0\n"}
    assert len(findings(shell, select="RMT102", jax_version=version)) == found


def test_text_files_are_fixed_except_suppressed_lines():
    files = {
        "a.sh": "export JAX_NEW_CHECKPOINT=0  # noqa: RMT102\nJAX_NEW_CHECKPOINT=0 ls\n",
        "Dockerfile": "FROM x\nENV JAX_NEW_CHECKPOINT=0\n",
        "tox.ini": "[pytest]\nenv =\n    JAX_NEW_CHECKPOINT=0\n",
        "a.json": '{"JAX_NEW_CHECKPOINT": "0"}\n',
    }
    assert fixed(files, select="RMT102") == {
        "a.sh": "export JAX_NEW_CHECKPOINT=0  # noqa: RMT102\nls\n",
        "Dockerfile": "FROM x\n",
        "tox.ini": "[pytest]\nenv =\n",
        "a.json": '{"JAX_NEW_CHECKPOINT": "0"}\n',
    }


def test_an_option_of_the_project_stays():
    files = {
        "train.py": "parser.add_argument('--jax_new_checkpoint')\n",
        "run.sh": "JAX_NEW_CHECKPOINT=0 python train.py --jax_new_checkpoint=0\n",
    }
    after = fixed(files, select="RMT102")
    assert after["run.sh"] == "python train.py --jax_new_checkpoint=0\n"
    own, passed = sorted(findings(after, select="RMT102"), key=lambda found: found.path.name)
    assert "train.py:1 may read it" in own.reason
    assert "unclear" in passed.reason


def test_names_of_other_modules():
    files = {
        "pkg/__init__.py": "",
        "pkg/names.py": "OLD = False\n",
        "pkg/setup.py": (
            "import os\nimport jax\nfrom jax import config\nfrom pkg import names\n"
            'config.update("jax_new_checkpoint", names.OLD)\n'
            'os.environ["JAX_NEW_CHECKPOINT"] = "0"\nf = jax.checkpoint(print)\n'
        ),
        "pkg/train.py": "from .setup import config\nprint(config)\n",
    }
    after = fixed(files, select="RMT102")
    # Importing a module of the project may have effects; another module needs `config`.
    assert after["pkg/setup.py"] == (
        "import jax\nfrom jax import config\nfrom pkg import names\nf = jax.checkpoint(print)\n"
    )


def test_a_name_for_the_flag_is_reported_where_it_is_defined():
    files = {
        "names.py": 'OLD = "jax_new_checkpoint"\n',
        "setup.py": "import jax\nfrom names import OLD\njax.config.update(OLD, False)\n",
    }
    assert fixed(files, select="RMT102") == files
    [left] = findings(files, select="RMT102")
    assert left.path.name == "names.py"


@pytest.mark.parametrize("use", ["CMD[4]", "python, script, _, *rest = CMD"])
def test_an_argument_of_a_list_whose_positions_are_used(use: str) -> None:
    code = f'CMD = ["python", "train.py", "--jax_new_checkpoint=0", "--lr", "3"]\n{use}\n'
    [finding] = findings(code, select="RMT102")
    assert finding.fix is None or finding.fix.safety == "manual"
    assert "positions" in finding.reason
