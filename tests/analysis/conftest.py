"""Projects made of files that a test gives as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from remat_migrate.analysis import Project
from remat_migrate.analysis.loading import load_project
from remat_migrate.settings import Settings

OpenProject = Callable[..., Project]


@pytest.fixture
def open_project(tmp_path: Path) -> OpenProject:
    """Open a project of files by path; a text alone is `m.py`. Options as of `Settings`.

    The files are at `project.settings.root`; all of them are targets.
    """

    def make(
        files: str | Mapping[str, str], words: Iterable[str] = (), **options: object
    ) -> Project:
        if isinstance(files, str):
            files = {"m.py": files}
        paths = []
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
            paths.append(path)
        settings = Settings(root=tmp_path, **options)  # type: ignore[arg-type]
        return load_project(settings, paths, (), paths, words=words)

    return make
