"""Every form in which Python uses the flag: found, and removed or folded to True."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support import findings, fixed

from remat_migrate.analysis.flag.removals import FlagUse, find_flag_uses
from remat_migrate.analysis.loading import load_project
from remat_migrate.settings import Settings
from remat_migrate.text import SourceFile


def uses(code: str) -> list[FlagUse]:
    """Return the uses in one module."""
    path = Path("/project/module.py")
    overlay = {path: SourceFile(path, textwrap.dedent(code))}
    project = load_project(Settings(root=path.parent), [path], overlay=overlay)
    return find_flag_uses(project.modules[path], project)


def check(before: str, after: str) -> None:
    before, after = (textwrap.dedent(text).lstrip("\n") for text in (before, after))
    assert fixed(before, select="RMT102")["example.py"] == after


CONFIG = [
    'import jax\njax.config.update("jax_new_checkpoint", False)\n',
    'from jax import config as c\nc.update("jax_new_checkpoint", False)\n',
    'from jax.config import config\nconfig.update("jax_new_checkpoint", True)\n',
    'from jax._src.config import config\nconfig.update(name="jax_new_checkpoint", val=False)\n',
    'import jax\nc = jax.config\nc.update("jax_new_checkpoint", False)\n',
    'import jax\nupdate = jax.config.update\nupdate("jax_new_checkpoint", False)\n',
    'import jax\nN = "jax_new_checkpoint"\njax.config.update(N, False)\n',
    'import jax\n0 and jax.config.update("jax_new_checkpoint", 0)\n',
    "import jax\njax.config.jax_new_checkpoint = False\n",
    "import jax\njax.config.jax_new_checkpoint |= True\n",
    "import jax\ndel jax.config.jax_new_checkpoint\n",
    'import jax\nsetattr(jax.config, "jax_new_checkpoint", False)\n',
    'import jax\njax.config.values["jax_new_checkpoint"] = False\n',
    'import jax\nif hasattr(jax.config, "jax_new_checkpoint"):\n'
    '    jax.config.update("jax_new_checkpoint", False)\n',
    "import jax\nif jax.__version_info__ < (0, 3, 17):\n"
    '    jax.config.update("jax_new_checkpoint", False)\n',
    'import jax\ntry:\n    jax.config.update("jax_new_checkpoint", False)\n'
    "except AttributeError:\n    pass\n",
    "import contextlib, jax\nwith contextlib.suppress(AttributeError):\n"
    '    jax.config.update("jax_new_checkpoint", False)\n',
    'import jax\nfor name in ("jax_new_checkpoint",):\n    jax.config.update(name, False)\n',
    'import jax\nfor k, v in {"jax_new_checkpoint": False}.items():\n    jax.config.update(k, v)\n',
    'import jax\nassert jax.config.jax_new_checkpoint, "new"\n',
    "import jax\ntest.assertTrue(jax.config.jax_new_checkpoint)\n",
    'import os\nos.environ["JAX_NEW_CHECKPOINT"] = "0"\n',
    'from os import environ as e\ne["JAX_NEW_CHECKPOINT"] = "0"\n',
    'import os\nos.environ.setdefault("JAX_NEW_CHECKPOINT", "0")\n',
    'import os\nos.environ.update({"JAX_NEW_CHECKPOINT": "0"})\n',
    'import os\nos.environ.update(JAX_NEW_CHECKPOINT="0")\n',
    'import os\nos.environ.update([("JAX_NEW_CHECKPOINT", "0")])\n',
    'import os\nos.environ |= {"JAX_NEW_CHECKPOINT": "0"}\n',
    'import os\nos.environ.pop("JAX_NEW_CHECKPOINT", None)\n',
    'import os\ndel os.environ["JAX_NEW_CHECKPOINT"]\n',
    'import os\nos.putenv("JAX_NEW_CHECKPOINT", "0")\nos.unsetenv("JAX_NEW_CHECKPOINT")\n',
    'import os\nif "JAX_NEW_CHECKPOINT" not in os.environ:\n'
    '    os.environ["JAX_NEW_CHECKPOINT"] = "0"\n',
    'import os\nos.system("export JAX_NEW_CHECKPOINT=0")\n',
    'import sys\nsys.argv.append("--jax_new_checkpoint=False")\n',
    'import sys\nsys.argv += ["--jax_new_checkpoint=False"]\n',
]


@pytest.mark.parametrize("code", CONFIG)
def test_code_that_only_sets_the_flag_is_removed(code):
    left = fixed(f"{code}x = 1\n", select="RMT102")["example.py"]
    # `import a, b` may keep a name that was never used.
    assert left.replace("import jax\n", "").replace("import contextlib\n", "") == "x = 1\n"
    assert all(use.sure and not use.reason for use in uses(code))


READS = [
    ("jax.config.jax_new_checkpoint", "True"),
    ('jax.config.read("jax_new_checkpoint")', "True"),
    ('getattr(jax.config, "jax_new_checkpoint", False)', "True"),
    ("jax.config.FLAGS.jax_new_checkpoint", "True"),
    ('jax.config.values["jax_new_checkpoint"]', "True"),
    ('hasattr(jax.config, "jax_new_checkpoint")', "False"),
    ('"jax_new_checkpoint" in jax.config.values', "False"),
    ('hasattr(jax.config, "jax_new_checkpoint") and jax.config.jax_new_checkpoint', "True"),
    ('os.environ.get("JAX_NEW_CHECKPOINT", "0")', '"1"'),
    ('os.environ["JAX_NEW_CHECKPOINT"]', '"1"'),
    ('os.getenv("JAX_NEW_CHECKPOINT", "1") == "0"', "False"),
    ('int(os.environ.get("JAX_NEW_CHECKPOINT", 0))', "1"),
    ('"JAX_NEW_CHECKPOINT" in os.environ', "False"),
    ("not jax.config.jax_new_checkpoint", "False"),
    ("a if jax.config.jax_new_checkpoint else b", "a"),
    ('os.environ.copy().get("JAX_NEW_CHECKPOINT")', '"1"'),
]


@pytest.mark.parametrize(("read", "value"), READS)
def test_reads_become_literals(read, value):
    head = "import jax, os\nf(jax, os)\n"
    assert (
        fixed(f"{head}x = f({read})\n", select="RMT102")["example.py"] == f"{head}x = f({value})\n"
    )


def test_branches_are_reduced_to_the_true_case():
    check(
        """
        import jax
        import old

        class Model:
            new = jax.config.jax_new_checkpoint

            def remat(self, f):
                if not jax.config.jax_new_checkpoint:
                    return old.remat(f)
                elif self.new:
                    return jax.checkpoint(f)
                return f

            def block(self, f):
                # One implementation.
                if jax.config.jax_new_checkpoint and self.new:
                    return jax.checkpoint(f)
                return jax.remat(f) if jax.config.jax_new_checkpoint else old.remat(f)

        def wrap(f):
            for _ in range(2):
                if jax.config.jax_new_checkpoint:
                    continue
                f = old.remat(f)
            return f
        """,
        """
        import jax

        class Model:
            new = True

            def remat(self, f):
                if self.new:
                    return jax.checkpoint(f)
                return f

            def block(self, f):
                # One implementation.
                if self.new:
                    return jax.checkpoint(f)
                return jax.remat(f)

        def wrap(f):
            for _ in range(2):
                continue
            return f
        """,
    )


def test_saving_and_restoring_is_removed():
    check(
        """
        import contextlib
        import os
        import jax

        @contextlib.contextmanager
        def old_checkpoint():
            saved = os.environ.get("JAX_NEW_CHECKPOINT")
            before = jax.config.jax_new_checkpoint
            os.environ["JAX_NEW_CHECKPOINT"] = "0"
            jax.config.update("jax_new_checkpoint", False)
            try:
                yield
            finally:
                jax.config.update("jax_new_checkpoint", before)
                if saved is None:
                    del os.environ["JAX_NEW_CHECKPOINT"]
                else:
                    os.environ["JAX_NEW_CHECKPOINT"] = saved
        """,
        """
        import contextlib

        @contextlib.contextmanager
        def old_checkpoint():
            yield
        """,
    )


def test_tests_and_their_fixtures():
    check(
        """
        import os
        import unittest
        from unittest import mock
        import jax
        import pytest

        @pytest.fixture(autouse=True)
        def old(monkeypatch):
            monkeypatch.setenv("JAX_NEW_CHECKPOINT", "0")
            monkeypatch.delenv("JAX_NEW_CHECKPOINT", raising=False)
            monkeypatch.setattr(jax.config, "jax_new_checkpoint", False)

        @mock.patch.dict(os.environ, {"JAX_NEW_CHECKPOINT": "0"})
        def test_a():
            with mock.patch.dict("os.environ", {"JAX_NEW_CHECKPOINT": "0"}):
                # inside
                assert f()
            with mock.patch.dict(os.environ, {"JAX_NEW_CHECKPOINT": "0", "A": "1"}), g():
                assert f()
            with jtu.with_config(jax_new_checkpoint=False), g():
                assert f()
            with mock.patch.object(jax.config, "jax_new_checkpoint", False):
                assert f()

        class Tests(unittest.TestCase):
            @unittest.skipIf(jax.config.jax_new_checkpoint, "old only")
            def test_b(self): ...

            @unittest.skipUnless(jax.config.jax_new_checkpoint, "new only")
            @jtu.with_config(jax_new_checkpoint=True)
            def test_c(self): ...

        def test_d():
            with pytest.raises(AttributeError):
                jax.config.update("jax_new_checkpoint", False)
        """,
        """
        import os
        import unittest
        from unittest import mock
        import jax
        import pytest

        @pytest.fixture(autouse=True)
        def old(monkeypatch):
            pass

        def test_a():
            # inside
            assert f()
            with mock.patch.dict(os.environ, {"A": "1"}), g():
                assert f()
            with g():
                assert f()
            assert f()

        class Tests(unittest.TestCase):
            @unittest.skip("old only")
            def test_b(self): ...

            def test_c(self): ...

        def test_d():
            with pytest.raises(AttributeError):
                jax.config.update("jax_new_checkpoint", False)
        """,
    )


def test_environments_and_command_lines():
    check(
        '''
        import os
        import subprocess

        env = dict(os.environ, JAX_NEW_CHECKPOINT="0", A="1")
        env["JAX_NEW_CHECKPOINT"] = "0"
        subprocess.run(["python", "t.py", "--jax_new_checkpoint=0"], env=env)
        subprocess.run(["python", "--jax_new_checkpoint", "0", "t.py"])
        subprocess.run(["env", "JAX_NEW_CHECKPOINT=0", "python"], env={"JAX_NEW_CHECKPOINT": "0"})
        subprocess.run(["docker", "run", "-e", "JAX_NEW_CHECKPOINT=0", "image"])
        subprocess.run(["bash", "-c", "export JAX_NEW_CHECKPOINT=0 && python t.py"])
        subprocess.run("python t.py --jax_new_checkpoint=0 --lr 3", shell=True)
        os.system(f"JAX_NEW_CHECKPOINT=0 python {path} --jax_new_checkpoint={flag} {rest}")
        os.execvp("env", ["env", "JAX_NEW_CHECKPOINT=0", "python"])
        command = ["python"] + ["--nojax_new_checkpoint"]
        line = (
            "python t.py "
            "--jax_new_checkpoint=0 "  # old
            "--lr 3"
        ).split()
        SCRIPT = """#!/bin/bash
        export JAX_NEW_CHECKPOINT=0
        srun python t.py
        """
        FORWARDED = ("JAX_NEW_CHECKPOINT", "XLA_FLAGS")
        kept = {name: os.environ[name] for name in FORWARDED if name in os.environ}
        ''',
        '''
        import os
        import subprocess

        env = dict(os.environ, A="1")
        subprocess.run(["python", "t.py"], env=env)
        subprocess.run(["python", "t.py"])
        subprocess.run(["python"], env={})
        subprocess.run(["docker", "run", "image"])
        subprocess.run(["bash", "-c", "python t.py"])
        subprocess.run("python t.py --lr 3", shell=True)
        os.system(f"python {path} {rest}")
        os.execvp("env", ["env", "python"])
        command = ["python"]
        line = (
            "python t.py "  # old
            "--lr 3"
        ).split()
        SCRIPT = """#!/bin/bash
        srun python t.py
        """
        FORWARDED = ("XLA_FLAGS",)
        kept = {name: os.environ[name] for name in FORWARDED if name in os.environ}
        ''',
    )


def test_side_effects_are_kept():
    check(
        """
        import jax
        for name, value in {"jax_new_checkpoint": False, "jax_enable_x64": True}.items():
            jax.config.update(name, value)
        jax.config.update("jax_new_checkpoint", launch())
        undo = lambda: jax.config.update("jax_new_checkpoint", True)
        try:
            jax.config.update("jax_new_checkpoint", False)
        except AttributeError:
            OLD = False
        else:
            OLD = True
        try:
            new = jax.config.jax_new_checkpoint
        except AttributeError:
            new = False
        """,
        """
        import jax
        for name, value in {"jax_enable_x64": True}.items():
            jax.config.update(name, value)
        launch()
        undo = lambda: None
        OLD = False
        new = True
        """,
    )


@pytest.mark.parametrize(
    "code",
    [
        '"""Set JAX_NEW_CHECKPOINT=0 to go back."""\n',
        "# jax.config.update('jax_new_checkpoint', False)\n",
        'print("--jax_new_checkpoint=0 is gone")\n',
        'raise ValueError("run JAX_NEW_CHECKPOINT=0 python t.py")\n',
        'HELP = "JAX_NEW_CHECKPOINT=0 python t.py"\n',
        'options = {}\noptions.update({"jax_new_checkpoint": False})\n',
        'options = dict(a=1)\noptions.get("jax_new_checkpoint")\n',
        'DOC = {"JAX_NEW_CHECKPOINT": "chooses the implementation"}\n',
        "class Config:\n    jax_new_checkpoint = False\nconfig = Config()\n"
        "config.jax_new_checkpoint = True\n",
        "def setup(jax_new_checkpoint=False): ...\nsetup(jax_new_checkpoint=True)\n",
        'import torch\ntorch.set_flag("jax_new_checkpoint", 0)\n',
    ],
)
def test_other_uses_of_the_name_stay(code):
    assert not uses(code)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ('def f(config):\n    config.update("jax_new_checkpoint", 0)\n', "may not be"),
        ("def f(config):\n    return config.jax_new_checkpoint\n", "may not be"),
        ('f.write("JAX_NEW_CHECKPOINT=0\\n")\n', "what runs this"),
        ('run({"JAX_NEW_CHECKPOINT": "0"})\n', "may not be"),
        ("import jax\nassert not jax.config.jax_new_checkpoint\n", "removed implementation"),
        ("import jax\nif jax.config.jax_new_checkpoint:\n    raise Error\n", "raises"),
        ("import jax\nt.assertFalse(jax.config.jax_new_checkpoint)\n", "removed implementation"),
        ("import jax\nx = jax.config.jax_new_checkpoint.value\n", "`.value`"),
        ("import jax\na = jax.config.jax_new_checkpoint = 0\n", "several targets"),
        ('import os\nos.environ["JAX_NEW_CHECKPOINT"] = start()\n', "side effects"),
        (
            'import jax\ntry:\n    jax.config.update("jax_new_checkpoint", 0)\n    g()\n'
            "except AttributeError:\n    h()\n",
            "handler",
        ),
        ('x = "JAX_NEW_CHECKPOINT=%s ls" % 1\nrun(x)\n', "placeholder"),
        (
            "cmd = '''python -c \"jax.config.update('jax_new_checkpoint', 0)\"'''\n",
            "code",
        ),
        (
            'p.add_argument("--jax_new_checkpoint")\nrun(["--jax_new_checkpoint=0"])\n',
            "its own option",
        ),
        (
            '@pytest.mark.parametrize("f", ["--jax_new_checkpoint=0"])\ndef test(f): ...\n',
            "each of these",
        ),
    ],
)
def test_refusals_give_the_reason(code, reason):
    (use,) = uses(code)
    assert reason in use.reason
    assert fixed(code, select="RMT102")["example.py"] == code


def test_names_of_other_modules():
    files = {
        "pkg/__init__.py": "",
        "pkg/names.py": 'OLD = "jax_new_checkpoint"\nOTHER = 1\n',
        "pkg/setup.py": (
            "import os\nimport jax\nfrom jax import config\nfrom pkg.names import OLD, OTHER\n"
            'config.update(OLD, False)\nos.environ["JAX_NEW_CHECKPOINT"] = "0"\n'
            "f = jax.checkpoint(OTHER)\n"
        ),
        "pkg/train.py": "from .setup import config\nprint(config)\n",
    }
    after = fixed(files, select="RMT102")
    assert after["pkg/setup.py"] == (
        "import jax\nfrom jax import config\nfrom pkg.names import OTHER\n"
        "f = jax.checkpoint(OTHER)\n"
    )
    assert after["pkg/names.py"] == files["pkg/names.py"]


def test_a_suppressed_use_stays_with_its_imports():
    code = (
        "import os\nimport jax\n"
        'jax.config.update("jax_new_checkpoint", False)  # noqa: RMT102\n'
        'jax.config.update("jax_new_checkpoint", False)\n'
        'os.environ["JAX_NEW_CHECKPOINT"] = "0"\n'
    )
    assert fixed(code, select="RMT102")["example.py"] == "".join(
        code.splitlines(keepends=True)[1:3]
    )
    assert len(findings(code, select="RMT102")) == 2


@pytest.mark.parametrize("value", ["load().old", "not load().old", 'load()["old"]', "load()"])
def test_side_effects_of_a_value_stay(value):
    check(
        f'import jax\nfrom a import load\n\njax.config.update("jax_new_checkpoint", {value})\n',
        "from a import load\n\nload()\n",
    )
