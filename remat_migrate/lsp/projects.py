"""Looks at projects: open documents to analyses, in which only what changed is read again."""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..discovery.roots import ROOT_MARKERS, find_root, is_too_wide
from ..discovery.survey import Options
from ..engine.analyse import Analysis, analyse
from ..engine.rules import UNREADABLE
from ..engine.run import Run, prepare_open
from ..errors import RematMigrateError
from ..rule import Finding
from ..text import SourceFile
from .documents import Document


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the user must be told: settings that are wrong, a rule that fails.

    Attributes:
        root: the project.
        message: one line.
        detail: a traceback for whoever mends it, or nothing.
        is_defect: whether it is the tool's, else the user can mend it.
    """

    root: Path
    message: str
    detail: str = ""
    is_defect: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What a look at one project showed.

    Attributes:
        documents: those that are open in it, as they were looked at.
        run: what was looked at.
        analysis: what was found.
        behind: documents that cannot be parsed while somebody types, seen as they last could.
    """

    documents: tuple[Document, ...]
    run: Run
    analysis: Analysis
    behind: frozenset[Path] = frozenset()

    def document(self, path: Path) -> Document | None:
        """The open document of a path."""
        return next((one for one in self.documents if one.path == path), None)

    def findings(self, path: Path) -> tuple[Finding, ...]:
        """The findings in one file."""
        return tuple(finding for finding in self.analysis.findings if finding.path == path)

    def is_current(self, path: Path) -> bool:
        """Whether the findings in a file are of the text that its document has.

        A text that cannot be parsed says nothing of the checkpoints in it. While somebody types,
        what was found before is worth more, and the editor has its own eye for syntax.
        """
        one = self.document(path)
        if one is None or path in self.behind:
            return False
        unread = any(finding.code == UNREADABLE for finding in self.findings(path))
        return one.is_settled or not unread


@dataclass(slots=True)
class _Project:
    """What is kept of a project from one look to the next."""

    run: Run | None = None
    error: RematMigrateError | None = None
    opened: frozenset[tuple[Path, bool]] = frozenset()
    analysis: Analysis | None = None
    readable: dict[Path, SourceFile] = field(default_factory=dict)


class Projects:
    """The projects that open documents belong to. To be used by one thread at a time."""

    def __init__(self) -> None:
        self._projects: dict[Path, _Project] = {}

    def look(
        self,
        documents: Sequence[Document],
        folders: Sequence[Path],
        touched: frozenset[Path] | None,
        *,
        afresh: bool,
    ) -> tuple[dict[Path, View], list[Trouble]]:
        """Look at the projects of documents.

        Args:
            documents: all that are open.
            folders: those of the workspace.
            touched: the documents whose projects are looked at; None: all.
            afresh: whether files may have come or gone, or settings changed.

        Returns:
            by its root what each project showed, and what went wrong. Of a project that cannot be
            looked at there is no view: what was known of it stands.
        """
        by_root: dict[Path, list[Document]] = defaultdict(list)
        for one in documents:
            by_root[_root(one.path, folders)].append(one)
        for root in self._projects.keys() - by_root:
            del self._projects[root]
        views: dict[Path, View] = {}
        troubles: list[Trouble] = []
        for root, inside in by_root.items():
            if touched is not None and touched.isdisjoint(one.path for one in inside):
                continue
            project = self._projects.setdefault(root, _Project())
            try:
                views[root] = _look(project, root, inside, documents, afresh=afresh)
                troubles += _troubles(project, root, views[root].analysis)
            except RematMigrateError as error:
                troubles.append(Trouble(root, str(error)))
            except Exception as error:  # a defect must not end the editor's session
                message = f"{root}: {type(error).__name__}: {error}"
                troubles.append(Trouble(root, message, traceback.format_exc(), is_defect=True))
        return views, troubles


def _look(
    project: _Project,
    root: Path,
    inside: Sequence[Document],
    documents: Sequence[Document],
    *,
    afresh: bool,
) -> View:
    opened = {one.path: one.python for one in inside}
    if project.run is None or afresh or frozenset(opened.items()) != project.opened:
        _prepare(project, root, opened)
    assert project.run is not None
    overlay, behind = _overlay(project, documents)
    run = replace(project.run, overlay=overlay)
    project.analysis = analyse(run, previous=project.analysis)
    return View(tuple(inside), run, project.analysis, behind)


def _prepare(project: _Project, root: Path, opened: Mapping[Path, bool]) -> None:
    """Read the settings and list the files; settings that are wrong leave the last right ones."""
    try:
        project.run = prepare_open(None if root in opened else root, opened, Options())
        project.error = None
    except RematMigrateError as error:
        if project.run is None:
            raise
        project.error = error
        project.run = project.run.showing(frozenset(opened))
    project.opened = frozenset(opened.items())


def _overlay(
    project: _Project, documents: Iterable[Document]
) -> tuple[dict[Path, SourceFile], frozenset[Path]]:
    """The texts to look at, and which of them are not the documents' own.

    A statement that is half typed must not take a module out of the others' sight.
    """
    overlay: dict[Path, SourceFile] = {}
    behind: set[Path] = set()
    readable: dict[Path, SourceFile] = {}
    for one in documents:
        overlay[one.path] = one.source
        last = project.readable.get(one.path)
        if last is not None and last.text == one.source.text:
            readable[one.path] = last
        elif one.is_readable:
            readable[one.path] = one.source
        elif last is not None:
            readable[one.path] = last
            if not one.is_settled:
                overlay[one.path] = last
                behind.add(one.path)
    project.readable = readable
    return overlay, frozenset(behind)


def _root(path: Path, folders: Sequence[Path]) -> Path:
    """The folder of the project that a file belongs to; the file itself if it belongs to none."""
    root = find_root([path])
    if not is_too_wide(root) and any((root / marker).exists() for marker in ROOT_MARKERS):
        return root
    around = [folder for folder in folders if folder in path.parents and not is_too_wide(folder)]
    return max(around, key=lambda folder: len(folder.parts), default=path)


def _troubles(project: _Project, root: Path, analysis: Analysis) -> list[Trouble]:
    found = [Trouble(root, str(project.error))] if project.error else []
    return found + [
        Trouble(root, str(fault), fault.trace, is_defect=True) for fault in analysis.faults
    ]
