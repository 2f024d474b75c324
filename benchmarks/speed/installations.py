"""Install the tools to measure, and the tree of packages to check."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import distributions
from pathlib import Path

from .processes import BenchmarkError, run_quietly

ROOT = Path(__file__).resolve().parents[2]
# Sources of the package.
_SOURCES = ("remat_migrate", "rules", "pyproject.toml", "README.md", "LICENSE")
PACKAGES = ("jax", "flax", "libcst", "transformers")
PEERS = {"ruff": ("ruff",)}


@dataclass(frozen=True)
class Installations:
    """Installations below one folder, created on first use.

    Attributes:
        folder: the folder.
        packages: packages of the tree T.
    """

    folder: Path
    packages: Sequence[str] = PACKAGES

    @cached_property
    def tree(self) -> Path:
        """The tree T: a git repository of installed packages, without their dependencies."""
        tree = self.folder / "T"
        if not tree.exists():
            _say(f"installing {', '.join(self.packages)} into {tree}")
            part = self.folder / "T.part"
            shutil.rmtree(part, ignore_errors=True)
            _pip(
                Path(sys.executable), "--no-deps", "--no-compile", "--target", part, *self.packages
            )
            make_repository(part)
            part.rename(tree)
        _read_once(tree)
        return tree

    @cached_property
    def tool(self) -> Path:
        """The programs of an environment with remat-migrate, installed from a copy of the checkout.

        A build in the checkout would leave files behind, and include those of earlier builds.
        """
        sources = self.folder / "source"
        shutil.rmtree(sources, ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        for name in _SOURCES:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, sources / name, ignore=ignored)
            else:
                shutil.copy2(ROOT / name, sources / name)
        return self._environment("remat-migrate", [f"{sources}[lsp]"], _digest(sources))

    def peer(self, name: str) -> Path:
        """Return the program of a tool to compare with, such as ruff."""
        return self._environment(name, PEERS[name], " ".join(PEERS[name])) / name

    @cached_property
    def grep(self) -> Path:
        """The grep of the system."""
        found = shutil.which("grep")
        if found is None:
            raise BenchmarkError("grep is not installed")
        return Path(found)

    def versions(self) -> dict[str, str]:
        """Return the installed versions."""
        found = {"Python": platform.python_version()}
        commit = _commit()
        tools = {"remat-migrate": ("remat-migrate", "click", "libcst"), **PEERS}
        for name in tools:
            for package, version in installed(self.folder / name).items():
                if package == name:
                    found[package] = f"{version} ({commit})" if name == "remat-migrate" else version
                elif name == "remat-migrate" and package in tools[name]:
                    found[f"its {package}"] = version
        if (self.folder / "T").exists():
            beside = distributions(path=[str(self.folder / "T")])
            found |= {
                f"{it.name} in T": it.version for it in sorted(beside, key=lambda it: it.name)
            }
        return found

    def _environment(self, name: str, requirements: Sequence[str], stamp: str) -> Path:
        """Return the programs of an environment, which is recreated if its stamp differs."""
        folder = self.folder / name
        noted = folder / "stamp.txt"
        programs = folder / ("Scripts" if os.name == "nt" else "bin")
        if not noted.exists() or noted.read_text() != stamp:
            _say(f"installing {name}")
            shutil.rmtree(folder, ignore_errors=True)
            run_quietly(sys.executable, "-m", "venv", folder)
            _pip(programs / "python", *requirements)
            noted.write_text(stamp)
        return programs


def installed(environment: Path) -> dict[str, str]:
    """Return the versions in an environment, by lowercase package name."""
    folders = [str(folder) for folder in environment.glob("lib/python*/site-packages")]
    return {it.name.lower(): it.version for it in distributions(path=folders)}


def make_repository(folder: Path) -> None:
    """Make a tree a git repository of its own.

    Otherwise it would be part of the checkout that contains it.
    """
    git = ["git", "-C", str(folder), "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false"]
    git += ["-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost"]
    run_quietly(*git, "init", "--quiet")
    run_quietly(*git, "add", "--all", "--force")
    run_quietly(*git, "commit", "--quiet", "--message", "Benchmark")


def _commit() -> str:
    """Return the commit of the checkout, and whether it has uncommitted changes."""
    if not (ROOT / ".git").exists():
        return "not a git repository"
    return run_quietly("git", "-C", ROOT, "describe", "--always", "--dirty").strip()


def _pip(python: Path, *arguments: str | Path) -> None:
    run_quietly(python, "-m", "pip", "install", "--quiet", *arguments)


def _digest(folder: Path) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _read_once(tree: Path) -> None:
    """Read all files into the page cache, so that the first run is not slower."""
    for path in tree.rglob("*.py"):
        path.read_bytes()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
