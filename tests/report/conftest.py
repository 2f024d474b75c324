"""The output of each command for an old project, in every machine-readable format."""

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
    """Return the output by command and format; one format of each command went to stdout.

    The commands ran in the folder `old` of a repository, so paths start with `old/`.
    """
    top = tmp_path_factory.mktemp("written")
    (top / ".git").mkdir()
    shutil.copytree(ROOT / "fixtures/old_trainer", top / "old")
    texts = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_STEP_SUMMARY", raising=False)
        for (name, command), printed in zip(COMMANDS.items(), FORMATS, strict=False):
            files = {one: top / f"{name}.{one}" for one in FORMATS if one != printed}
            asked = [f"{one}={file}" for one, file in files.items()] + [printed]
            options = [part for one in asked for part in ("--output-format", one)]
            texts[name, printed] = cli(top / "old", *command, *options, ".").out
            texts |= {(name, one): file.read_text() for one, file in files.items()}
    return texts
