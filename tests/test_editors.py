"""The configurations in `editors/`, run by the editors themselves where they are installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support import write_files

from remat_migrate import __version__

ROOT = Path(__file__).parents[1]
EDITORS = ROOT / "editors"
WRONG = "import jax\n\nf = jax.checkpoint(lambda x: 2 * x, concrete=True)\n"
FILES = {"pyproject.toml": "[project]\nname = 'p'\n", "model.py": WRONG}

# Waits for a finding, applies its fix, and asks for the explanation.
SCRIPT = """
local function fail(message)
  io.stderr:write(message .. "\\n")
  vim.cmd("cquit")
end
vim.lsp.enable("remat_migrate")
vim.cmd.edit("model.py")
if not vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end) then
  fail("no diagnostics")
end
local found = vim.diagnostic.get(0)[1]
io.stdout:write(string.format("%s %d:%d\\n", found.code, found.lnum + 1, found.col + 1))
vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col })
local explained = false
vim.lsp.handlers["window/showDocument"] = function(_, params)
  explained = vim.fn.readfile(vim.uri_to_fname(params.uri))[1]
  return { success = true }
end
local function run(title)
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action) return vim.startswith(action.title, title) end,
  })
end
run("Explain")
if not vim.wait(30000, function() return explained end) then fail("no explanation") end
io.stdout:write(explained .. "\\n")
run("RMT101: ")
if not vim.wait(30000, function() return #vim.diagnostic.get(0) == 0 end) then fail("not fixed") end
vim.cmd("silent write")
vim.cmd("qall!")
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which `remat-migrate` is the package under test."""
    program = tmp_path / "bin" / "remat-migrate"
    write_files(
        tmp_path, {"bin/remat-migrate": f'#!/bin/sh\nexec {sys.executable} -m remat_migrate "$@"\n'}
    )
    program.chmod(0o755)
    return os.pathsep.join([str(program.parent), os.environ["PATH"]])


def test_neovim(tmp_path: Path, path: str) -> None:
    neovim = shutil.which("nvim")
    if neovim is None:
        pytest.skip("Neovim is not installed")
    settings = tmp_path / "config" / "nvim"
    write_files(tmp_path / "project", FILES)
    write_files(
        settings, {"lsp/remat_migrate.lua": (EDITORS / "neovim/remat_migrate.lua").read_text()}
    )
    write_files(tmp_path, {"test.lua": SCRIPT})
    homes = {
        f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("CONFIG", "DATA", "STATE")
    }
    version = subprocess.run([neovim, "--version"], capture_output=True, text=True).stdout
    if tuple(map(int, version.split()[1].lstrip("v").split(".")[:2])) < (0, 11):
        pytest.skip("Neovim is older than 0.11")
    ran = subprocess.run(
        [neovim, "--headless", "-c", f"luafile {tmp_path / 'test.lua'}"],
        cwd=tmp_path / "project",
        env={**os.environ, **homes, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[:2] == ["RMT101 3:37", "# RMT101 concrete-option"]
    assert (tmp_path / "project/model.py").read_text() == WRONG.replace(", concrete=True", "")


def test_helix_configuration() -> None:
    settings = tomllib.loads((EDITORS / "helix/languages.toml").read_text())
    assert settings["language-server"] == {
        "remat-migrate": {"command": "remat-migrate", "args": ["server"]}
    }
    assert all(one["language-servers"] == ["remat-migrate"] for one in settings["language"])


def test_vscode_manifest() -> None:
    manifest = json.loads((EDITORS / "vscode/package.json").read_text())
    assert manifest["version"] == __version__
    locked = json.loads((EDITORS / "vscode/package-lock.json").read_text())
    assert (locked["version"], locked["name"]) == (__version__, manifest["name"])
    assert not [one for one in locked["packages"].values() if "resolved" in one]
    assert (EDITORS / "vscode/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
