"""The configurations in `editors/`, run by the editors themselves where they are installed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from remat_migrate import __version__

ROOT = Path(__file__).parents[1]
EDITORS = ROOT / "editors"


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
