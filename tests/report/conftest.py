"""What each command writes of an old project, in every format for other programs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import cli

ROOT = Path(__file__).parents[2]
FORMATS = ("sarif", "github", "gitlab", "junit", "rdjson")
COMMANDS = {"check": ("check",), "report": ("report",), "fix": ("check", "--fix")}


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], str]:
    """The text by command and format; paths begin with `old/`, where the repository's folder is.

    It was run in that folder. Of each command one format went to standard output.
    """
    top = tmp_path_factory.mktemp("written")
    (top / ".git").mkdir()
    shutil.copytree(ROOT / "fixtures/old_trainer", top / "old")
    texts = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY", "CI_PROJECT_DIR"):
            patch.delenv(name, raising=False)
        for (name, command), printed in zip(COMMANDS.items(), FORMATS, strict=False):
            files = {one: top / f"{name}.{one}" for one in FORMATS if one != printed}
            asked = [f"{one}={file}" for one, file in files.items()] + [printed]
            options = [part for one in asked for part in ("--output-format", one)]
            texts[name, printed] = cli(top / "old", *command, *options, ".").out
            texts |= {(name, one): file.read_text() for one, file in files.items()}
    return texts
