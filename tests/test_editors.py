"""The configurations in `editors/`, run by the editors themselves where they are installed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

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
