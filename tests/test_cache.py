"""The cache: it replays what a run without it prints, and is never stale."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from support import Ran, cli, write_files

import remat_migrate
import remat_migrate.engine.check
from remat_migrate.cache import entry, file_states, folder, key, slot
from remat_migrate.report.outputs import FORMATS

needs_posix = pytest.mark.skipif(os.name != "posix", reason="owners, modes and links")

OLD = "import jax\n\nf = jax.checkpoint(abs, concrete=False)\n"
PROJECT = {
    "pyproject.toml": "",
    "src/old.py": OLD,
    "src/used.py": "from lib.wrap import g\n\n\ndef h(x):\n    return g(x)\n",
    "src/run.sh": "export JAX_NEW_CHECKPOINT=0\n",
    "lib/wrap.py": "import jax\n\ng = jax.remat(abs)\n",
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enable the cache and return its folder."""
    monkeypatch.delenv("REMAT_MIGRATE_NO_CACHE", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setenv("REMAT_MIGRATE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path / "project", PROJECT)
    return tmp_path / "project"


@pytest.fixture
def analyses(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that gets an item for each analysis."""
    made: list[None] = []
    analyse = remat_migrate.engine.check.analyse

    def noted(*arguments: object, **more: object) -> object:
        made.append(None)
        return analyse(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(remat_migrate.engine.check, "analyse", noted)
    return made


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat no file as recently changed."""
    monkeypatch.setattr(file_states, "COARSE_NS", 0)
    monkeypatch.setattr(slot, "_HASHING_SHARE", 0)


def entries(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.json")) if cache.is_dir() else []


def without_cache(project: Path, *arguments: str) -> Ran:
    return cli(project, *arguments, "--no-cache")


class TestTheSame:
    """Replayed output equals that of a run without the cache."""

    @pytest.mark.parametrize("output_format", FORMATS)
    def test_in_every_format(self, output_format: str, project: Path, analyses: list[None]) -> None:
        command = ("src", "--output-format", output_format)
        plain = without_cache(project, *command)
        cold = cli(project, *command)
        warm = cli(project, *command)
        assert len(analyses) == 2
        assert plain == cold == warm
        assert plain.code == 1

    @pytest.mark.parametrize("more", [(), ("--output-format", "json"), ("--exit-zero",)])
    def test_report(self, more: tuple[str, ...], project: Path, analyses: list[None]) -> None:
        plain = without_cache(project, "report", *more)
        assert [cli(project, "report", *more) for _ in range(2)] == [plain, plain]
        assert len(analyses) == 2

    def test_files_are_written_again(self, project: Path, analyses: list[None]) -> None:
        outputs = ["--output-format", "full", "--output-format", "json=a.json"]
        outputs += ["--output-format", "html=page.html"]
        cold = cli(project, "src", *outputs)
        files = {name: (project / name).read_bytes() for name in ("a.json", "page.html")}
        (project / "a.json").unlink()
        (project / "page.html").write_text("another")
        warm = cli(project, "src", *outputs)
        assert cold == warm
        assert len(analyses) == 1
        assert {name: (project / name).read_bytes() for name in files} == files
        assert json.loads(files["a.json"])["findings"]

    def test_a_file_that_cannot_be_written(self, project: Path, analyses: list[None]) -> None:
        command = ("src", "--output-format", "json", "-o", "out/a.json")
        (project / "out").mkdir()
        cli(project, *command)
        shutil.rmtree(project / "out")
        assert cli(project, *command) == without_cache(project, *command)
        assert len(analyses) == 1


Change = Callable[[Path], object]


def same_size_and_time(project: Path) -> None:
    file = project / "src/old.py"
    before = file.stat()
    file.write_text(OLD.replace("False", "float"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(project: Path) -> None:
    """The new file has the same timestamps and size."""
    file = project / "src/old.py"
    other = project.parent / "other.py"
    other.write_text(OLD.replace("False", "float"))
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.replace(file)


CHANGES: dict[str, Change] = {
    "a file": lambda p: write_files(p, {"src/old.py": "import jax\n"}),
    "a file of the same size, with its time": same_size_and_time,
    "a file replaced": replaced,
    "a file of another kind": lambda p: write_files(p, {"src/run.sh": "true\n"}),
    "a file that is only read": lambda p: write_files(p, {"lib/wrap.py": OLD}),
    "a new file": lambda p: write_files(p, {"src/new.py": ""}),
    "a new file that is only read": lambda p: write_files(p, {"lib/new.py": ""}),
    "a file deleted": lambda p: (p / "src/used.py").unlink(),
    "a file renamed": lambda p: (p / "src/used.py").rename(p / "src/using.py"),
    "a file that may be read no more": lambda p: (p / "src/old.py").chmod(0),
    "settings": lambda p: write_files(
        p, {"pyproject.toml": '[tool.remat-migrate]\nignore = ["RMT101"]\n'}
    ),
    "settings of the folder": lambda p: write_files(
        p, {"src/pyproject.toml": '[tool.remat-migrate]\nignore = ["RMT101"]\n'}
    ),
    "the root": lambda p: write_files(p, {"src/setup.py": ""}),
    "what is left out": lambda p: write_files(p, {".gitignore": "old.py\n"}),
    "a virtual environment": lambda p: write_files(
        p, {".venv/lib/python3.11/site-packages/flax/__init__.py": ""}
    ),
    "a repository": lambda p: (p.parent / ".git").mkdir(),
}


# What a file may hold: code without checkpoints, wrappers, other names, options, calls.
CONTENTS = [
    "",
    "def plain(x):\n    return x + 1\n",
    "# remat\nx = 1\n",
    "import jax\n\ng = jax.remat(abs)\n",
    "import jax\n\n\ndef g(f, **options):\n    return jax.checkpoint(f, **options)\n",
    "import jax\n\n\ndef g(f, concrete=False):\n    return jax.checkpoint(f, concrete=concrete)\n",
    "from lib.wrap import g\n\nh = g(abs, concrete=True)\n",
    "from lib.wrap import g as ck\n\n\n@ck\ndef f(x):\n    return x\n",
    "from lib import wrap\n\nOPTIONS = dict(concrete=True)\nh = wrap.g(abs, **OPTIONS)\n",
    "from lib.wrap import *\n\n\ndef h(x):\n    return g(x)\n",
    "import jax\n\n\n@jax.checkpoint\ndef step(x, n):\n    return x if n > 0 else -x\n",
    "from src.a import step\n\ny = step(1.0, 2)\n",
    "import jax\n\n\ndef loss(w, xs):\n    return jax.lax.scan(lambda c, x: (c * w, x), w, xs)[0]\n"
    "\n\ngrad = jax.grad(loss)\n",
    "import jax\n\n\ndef run(w, xs):\n    return jax.lax.scan(lambda c, x: (c * w, x), w, xs)[0]\n",
    "import jax\nfrom src.a import run\n\ngrad = jax.grad(run)\n",
    OLD,
    "\xe9 = '\ud800'\n",
]


class TestOneFileChanged:
    """A change of a file that matters neither before nor afterwards keeps the outcome."""

    def test_without_any_of_the_words(
        self, project: Path, analyses: list[None], settled: None
    ) -> None:
        write_files(project, {"src/plain.py": "x = 1\n"})
        cold = cli(project, ".")
        for number in range(3):
            write_files(project, {"src/plain.py": f"y = {number}\n" * (number + 2)})
            assert cli(project, ".") == cold == without_cache(project, ".")
        assert len(analyses) == 1 + 3  # of the runs without it

    @pytest.mark.parametrize("content", [OLD, "x = '\udcff'\n", "x = 1\n" + "#" * (2 << 20)])
    def test_that_matters_now(
        self, content: str, project: Path, analyses: list[None], settled: None
    ) -> None:
        settings = "[tool.remat-migrate]\nmax-file-size = 1\n"
        write_files(project, {"pyproject.toml": settings, "src/plain.py": "x = 1\n"})
        cold = cli(project, "src")
        (project / "src/plain.py").write_bytes(content.encode(errors="surrogateescape"))
        assert cold != cli(project, "src") == without_cache(project, "src")

    @pytest.mark.parametrize("seed", range(2))
    def test_any_changes(self, seed: int, project: Path, settled: None) -> None:
        chosen = random.Random(seed)
        for _ in range(30):
            name = chosen.choice(["src/a.py", "src/b.py", "lib/wrap.py", "lib/c.py"])
            content = chosen.choice(CONTENTS).encode(errors="surrogatepass")
            (project / name).write_bytes(content)
            assert cli(project, "src") == without_cache(project, "src")


class TestStale:
    """A change of any dependency invalidates an entry."""

    @pytest.mark.parametrize("change", CHANGES)
    def test_changed_files(
        self, change: str, project: Path, analyses: list[None], settled: None
    ) -> None:
        cli(project, "src", "--output-format", "json")
        cli(project, "src", "--output-format", "json")
        assert len(analyses) == 1
        CHANGES[change](project)
        ran = cli(project, "src", "--output-format", "json")
        assert len(analyses) == 2
        assert ran == without_cache(project, "src", "--output-format", "json")

    @pytest.mark.parametrize("change", list(CHANGES)[:8])
    def test_files_changed_immediately_afterwards(self, change: str, project: Path) -> None:
        """The timestamps may be equal, so contents are compared."""
        cli(project, "src", "--output-format", "json")
        CHANGES[change](project)
        ran = cli(project, "src", "--output-format", "json")
        assert ran == without_cache(project, "src", "--output-format", "json")

    def test_a_baseline(self, project: Path, analyses: list[None], settled: None) -> None:
        write_files(project, {"known.json": '{"version": 2, "findings": []}'})
        command = ("src", "--baseline", "known.json")
        cli(project, *command)
        cli(project, "src", "--write-baseline", "known.json")
        analyses.clear()
        assert "known" in cli(project, *command).out
        assert len(analyses) == 1
        (project / "known.json").unlink()
        assert cli(project, *command) == without_cache(project, *command)

    def test_an_installed_module(self, project: Path, analyses: list[None], settled: None) -> None:
        """A module outside the project, found through the search path."""
        packages = project.parent / "packages"
        write_files(
            project,
            {
                "pyproject.toml": '[tool.remat-migrate]\nsearch-path = ["../packages"]\n',
                "src/old.py": "from acme import remat\n\n\n@remat(concrete=True)\ndef f(x):\n"
                "    return x\n",
            },
        )
        write_files(packages, {"acme/__init__.py": "from acme.deep import remat\n"})
        found = []
        for text in (None, "from jax import remat\n", "remat = print\n"):
            if text is not None:
                write_files(packages, {"acme/deep.py": text})
            ran = cli(project, "src", "--output-format", "concise")
            assert ran == without_cache(project, "src", "--output-format", "concise")
            found.append(ran)
        assert cli(project, "src", "--output-format", "concise") == found[-1]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("COLUMNS", "40"),
            ("FORCE_COLOR", "1"),
            ("NO_COLOR", "1"),
            ("TERM", "strange"),
            ("VIRTUAL_ENV", "/nowhere"),
        ],
    )
    def test_the_environment(
        self,
        name: str,
        value: str,
        project: Path,
        analyses: list[None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        cli(project, "src")
        monkeypatch.setenv(name, value)
        assert cli(project, "src") == without_cache(project, "src")
        assert len(analyses) == 3

    @pytest.mark.parametrize("more", ["--exit-zero", "--statistics", "--ignore=RMT101"])
    def test_other_options(self, more: str, project: Path) -> None:
        cli(project, "src")
        assert cli(project, "src", more) == without_cache(project, "src", more)

    def test_another_version_of_the_tool(
        self, project: Path, analyses: list[None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cli(project, "src")
        monkeypatch.setattr(key, "__version__", "0.0.0")
        cli(project, "src")
        assert len(analyses) == 2

    def test_changed_code_of_the_tool_or_a_plug_in(
        self,
        project: Path,
        analyses: list[None],
        settled: None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        plug_in = ModuleType("acme_rules")
        plug_in.__file__ = str(project.parent / "acme_rules.py")
        monkeypatch.setitem(sys.modules, "acme_rules", plug_in)
        Path(plug_in.__file__).write_text("")
        cli(project, "src")
        cli(project, "src")
        assert len(analyses) == 1
        Path(plug_in.__file__).write_text("RULES = []\n")
        cli(project, "src")
        assert len(analyses) == 2

    def test_every_variable_that_is_read_is_in_the_key(self) -> None:
        """The cache key covers every environment variable that affects output."""
        package = Path(remat_migrate.__file__).parent
        # Those run the project's code or other processes, or serve an editor: of such runs nothing
        # is kept.
        others = {"verify", "measure", "plan", "sweep", "lsp", "cache"}
        # A progress bar is not kept; nothing is beside a job's summary; each run lists its files.
        others |= {"progress_bar.py", "github.py", "listing.py", "private_folders.py"}
        read = set()
        for file in package.rglob("*.py"):
            text = file.read_text()
            if others.isdisjoint(file.relative_to(package).parts) and "environ" in text:
                read |= names_of_variables(ast.parse(text))
        assert read == {*key.VARIABLES, "GITHUB_STEP_SUMMARY"}


def names_of_variables(tree: ast.Module) -> set[str]:
    """Return the environment variables that a module reads, directly or through constants."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        if not {"os.environ", "os.getenv"} & {
            ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Attribute)
        }:
            continue
        named = [n.id for n in ast.walk(function) if isinstance(n, ast.Name)]
        places = [function, *(constants[name] for name in named if name in constants)]
        names = {
            node.value
            for place in places
            for node in ast.walk(place)
            if isinstance(node, ast.Constant) and re.fullmatch("[A-Z][A-Z_]+", str(node.value))
        }
        assert names, f"{function.name} reads variables that this test does not see"
        found |= names
    return found


class TestKept:
    """When outcomes are stored."""

    def test_runs_that_write_no_files_are_stored(self, project: Path, cache: Path) -> None:
        for more in (("--diff",), ("--fix",), ("--write-baseline", "known.json")):
            write_files(project, PROJECT)
            cli(project, "src", *more)
        cli(project, "-", stdin=OLD.encode())
        cli(project, "src", "--no-cache")
        cli(project, "nowhere")
        cli(project, "src", "--baseline", "nowhere.json")
        assert entries(cache) == []
        cli(project, "src/old.py")
        assert len(entries(cache)) == 1
        cli(project, "src")
        assert len(entries(cache)) == 2

    def test_not_if_disabled_by_the_environment(
        self, project: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REMAT_MIGRATE_NO_CACHE", "1")
        cli(project, "src")
        assert not cache.exists()

    def test_not_if_a_rule_failed(
        self, project: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from remat_migrate_rules.concrete_option import ConcreteOption

        def fails(self: object, module: object, project: object) -> object:
            raise ZeroDivisionError

        monkeypatch.setattr(ConcreteOption, "check", fails)
        assert cli(project, "src").code == 2
        assert entries(cache) == []

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read all")
    def test_not_if_a_file_is_unreadable(self, project: Path, cache: Path) -> None:
        (project / "src/old.py").chmod(0)
        assert "RMT000" in cli(project, "src").out
        assert entries(cache) == []

    def test_not_if_interrupted(
        self, project: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*arguments: object, **more: object) -> object:
            raise KeyboardInterrupt

        monkeypatch.setattr(remat_migrate.engine.check, "analyse", interrupted)
        assert cli(project, "src").code == 130
        assert entries(cache) == []

    def test_not_if_a_file_changes_meanwhile(
        self, project: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        analyse = remat_migrate.engine.check.analyse

        def slowly(*arguments: object, **more: object) -> object:
            found = analyse(*arguments, **more)  # type: ignore[arg-type]
            write_files(project, {"src/old.py": "import jax\n"})
            return found

        monkeypatch.setattr(remat_migrate.engine.check, "analyse", slowly)
        cli(project, "src")
        monkeypatch.undo()
        monkeypatch.setenv("REMAT_MIGRATE_CACHE_DIR", str(cache))
        assert cli(project, "src") == without_cache(project, "src")


class TestDamage:
    """Damaged entries are ignored."""

    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: b"",
            lambda data: data[: len(data) // 2],
            lambda data: data[:-1],
            lambda data: data.replace(b"RMT101", b"RMT999"),
            lambda data: b"{}",
            lambda data: data.replace(b"cache %d " % entry.VERSION, b"cache 0 ", 1),
        ],
    )
    def test_a_damaged_entry(
        self,
        damage: Callable[[bytes], bytes],
        project: Path,
        analyses: list[None],
        cache: Path,
    ) -> None:
        cold = cli(project, "src")
        [file] = entries(cache)
        file.write_bytes(damage(file.read_bytes()))
        assert cli(project, "src") == cold
        assert cli(project, "src") == cold
        assert len(analyses) == 2

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("key", "another"),
            ("counts", [1, 1, 1]),
            ("files", {}),
            ("outside", {"/nowhere": "1 2 3 4"}),
            ("written", [["elsewhere.txt", "text"]]),
        ],
    )
    def test_an_entry_of_another_run(
        self, name: str, value: object, project: Path, analyses: list[None], cache: Path
    ) -> None:
        cold = cli(project, "src")
        [file] = entries(cache)
        file.write_bytes(changed(file.read_bytes(), name, value))
        assert cli(project, "src") == cold
        assert len(analyses) == 2
        assert not (project / "elsewhere.txt").exists()


def changed(data: bytes, name: str, value: object) -> bytes:
    """Return an entry with one changed value and a valid checksum."""
    document = {**json.loads(data.partition(b"\n")[2]), name: value}
    body = json.dumps(document).encode()
    return entry._header(body) + body


class TestFolder:
    """The location and safety of the cache folder."""

    def test_location(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("REMAT_MIGRATE_CACHE_DIR", str(tmp_path))
        assert folder.cache_folder() == tmp_path
        monkeypatch.delenv("REMAT_MIGRATE_CACHE_DIR")
        if os.name == "posix":
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
            assert folder.cache_folder() == tmp_path / "xdg" / "remat-migrate"
            monkeypatch.setenv("XDG_CACHE_HOME", "relative")
            monkeypatch.setenv("HOME", str(tmp_path))
            monkeypatch.setattr(sys, "platform", "linux")
            assert folder.cache_folder() == tmp_path / ".cache" / "remat-migrate"
            monkeypatch.setattr(sys, "platform", "darwin")
            assert folder.cache_folder() == tmp_path / "Library/Caches/remat-migrate"

    @needs_posix
    def test_only_the_user_has_access(self, project: Path, cache: Path) -> None:
        cli(project, "src")
        assert cache.stat().st_mode & 0o777 == 0o700
        assert entries(cache)[0].stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("inside", ["project/.cache", "project/src/cache"])
    def test_none_in_the_project(
        self,
        inside: str,
        project: Path,
        analyses: list[None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A repository could ship it."""
        place = project.parent / inside
        monkeypatch.setenv("REMAT_MIGRATE_CACHE_DIR", str(place))
        for _ in range(2):
            cli(project, "src")
        assert len(analyses) == 2
        assert not place.exists()

    @needs_posix
    @pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
    def test_none_that_is_writable_by_others(
        self, mode: int, project: Path, analyses: list[None], cache: Path
    ) -> None:
        cold = cli(project, "src")
        cache.chmod(mode)
        assert cli(project, "src") == cold
        assert len(analyses) == 2
        cache.chmod(0o700)
        entries(cache)[0].chmod(0o600 | mode & 0o22)
        assert cli(project, "src") == cold
        assert len(analyses) == 3

    @needs_posix
    def test_none_of_another_user(
        self, project: Path, analyses: list[None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cold = cli(project, "src")
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
        assert cli(project, "src") == cold
        assert len(analyses) == 2

    @needs_posix
    def test_no_links(self, project: Path, analyses: list[None], cache: Path) -> None:
        cold = cli(project, "src")
        elsewhere = cache.with_name("elsewhere")
        cache.rename(elsewhere)
        cache.symlink_to(elsewhere)
        assert cli(project, "src") == cold
        assert len(analyses) == 2
        cache.unlink()
        cache.mkdir(mode=0o700)
        for file in entries(elsewhere):
            (cache / file.name).symlink_to(file)
        before = {file: file.read_bytes() for file in entries(elsewhere)}
        assert cli(project, "src") == cold
        assert len(analyses) == 3
        assert {file: file.read_bytes() for file in entries(elsewhere)} == before
        assert not entries(cache)[0].is_symlink()

    @pytest.mark.parametrize("above", ["file", "file/below"])
    def test_one_that_cannot_be_created(
        self,
        above: str,
        project: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        (project.parent / "file").write_text("")
        monkeypatch.setenv("REMAT_MIGRATE_CACHE_DIR", str(project.parent / above))
        assert cli(project, "src") == without_cache(project, "src")

    def test_a_full_disk(self, project: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        plain = without_cache(project, "src")

        def full(*arguments: object, **more: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        assert cli(project, "src") == plain
        assert list(cache.iterdir()) == []

    def test_old_and_surplus_entries_are_pruned(
        self, project: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folder, "_MAX_ENTRIES", 4)
        cache.mkdir(mode=0o700)
        now = time.time()
        names = {f"{number:064x}.json": number * 3600 for number in range(6)}
        names |= {f"{99:064x}.json": 40 * 86400, f".{7:064x}.json.1f.tmp": 7200}
        names |= {f".{8:064x}.json.2f.tmp": 60, "notes.txt": 90 * 86400}
        for name, age in names.items():
            (cache / name).write_text("")
            os.utime(cache / name, (now - age, now - age))
        cli(project, "src")
        left = {file.name for file in cache.iterdir()}
        assert {f".{8:064x}.json.2f.tmp", "notes.txt"} < left
        assert {f"{number:064x}.json" for number in range(3)} < left
        assert len(left) == 6
