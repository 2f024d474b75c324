"""The projects of open documents; each analysis rereads only what changed."""

from __future__ import annotations

import gc
import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..discovery.roots import ROOT_MARKERS, find_root, is_too_wide
from ..engine.analyse import Analysis, analyse
from ..engine.rules import UNREADABLE
from ..engine.run import Run, prepare_open
from ..errors import RematMigrateError
from ..rule import Finding
from ..settings import Options
from ..text import SourceFile
from .documents import Document


@dataclass(frozen=True, slots=True)
class ProjectError:
    """What the user must know about a project: wrong settings, or a rule that fails.

    Attributes:
        root: the project.
        message: one line.
        traceback: for the log, if there is one.
        is_defect: whether it is a bug in a rule or in the tool.
    """

    root: Path
    message: str
    traceback: str = ""
    is_defect: bool = False


@dataclass(frozen=True, slots=True)
class ProjectView:
    """The result of analysing one project.

    Attributes:
        documents: the open documents in it, as they were analysed.
        run: what was analysed.
        analysis: what was found.
        outdated: documents that the user is typing in, analysed as they last could be parsed.
    """

    documents: tuple[Document, ...]
    run: Run
    analysis: Analysis
    outdated: frozenset[Path] = frozenset()

    def document(self, path: Path) -> Document | None:
        """Return the open document of a path."""
        return next((one for one in self.documents if one.path == path), None)

    def findings(self, path: Path) -> tuple[Finding, ...]:
        """Return the findings in one file."""
        return tuple(finding for finding in self.analysis.findings if finding.path == path)

    def is_current(self, path: Path) -> bool:
        """Return whether the findings in a file should replace those that the editor shows.

        While the user types, text that cannot be parsed keeps the earlier findings.
        """
        document = self.document(path)
        if document is None or path in self.outdated:
            return False
        unreadable = any(finding.code == UNREADABLE for finding in self.findings(path))
        return document.is_settled or not unreadable


class Projects:
    """The projects that open documents belong to. Use it in one thread at a time."""

    def __init__(self) -> None:
        self._projects: dict[Path, _Project] = {}

    def analyse(
        self,
        documents: Sequence[Document],
        folders: Sequence[Path],
        touched: frozenset[Path] | None,
        *,
        refresh: bool,
    ) -> tuple[dict[Path, ProjectView], list[ProjectError]]:
        """Analyse the projects of documents.

        Args:
            documents: all open documents.
            folders: the folders of the workspace.
            touched: the documents whose projects to analyse; None means all.
            refresh: whether files or settings may have changed on disk.

        Returns:
            The view of each project by its root, and the errors. A project that cannot be analysed
            has no view, so its last view stays valid.
        """
        by_root: dict[Path, list[Document]] = defaultdict(list)
        for one in documents:
            by_root[_root(one.path, folders)].append(one)
        for root in self._projects.keys() - by_root:
            del self._projects[root]
        # Collecting garbage meanwhile took as long as analysing: a project has millions of nodes.
        gc.disable()
        views: dict[Path, ProjectView] = {}
        errors: list[ProjectError] = []
        for root, inside in by_root.items():
            if touched is not None and touched.isdisjoint(one.path for one in inside):
                continue
            is_new = root not in self._projects
            project = self._projects.setdefault(root, _Project(root))
            try:
                views[root] = project.analyse(inside, documents, refresh=refresh)
                errors += project.errors()
            except RematMigrateError as error:
                errors.append(ProjectError(root, str(error)))
            except Exception as error:  # a bug must not end the editor's session
                message = f"{root}: {type(error).__name__}: {error}"
                errors.append(ProjectError(root, message, traceback.format_exc(), is_defect=True))
            if is_new:
                gc.freeze()  # most of its modules stay
        gc.enable()
        return views, errors


class _Project:
    """What is kept of a project between analyses."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._run: Run | None = None
        self._error: RematMigrateError | None = None
        self._opened: Mapping[Path, bool] = {}
        self._analysis: Analysis | None = None
        self._readable: dict[Path, SourceFile] = {}

    def analyse(
        self, inside: Sequence[Document], documents: Sequence[Document], *, refresh: bool
    ) -> ProjectView:
        """Analyse the project; `inside` are those of the open documents that belong to it."""
        opened = {one.path: one.python for one in inside}
        if self._run is None or refresh or opened != self._opened:
            self._run = self._prepare(opened)
        overlay, outdated = self._overlay(documents)
        run = replace(self._run, overlay=overlay)
        self._analysis = analyse(run, previous=self._analysis)
        return ProjectView(tuple(inside), run, self._analysis, outdated)

    def errors(self) -> list[ProjectError]:
        """Return what was wrong with the settings and the rules in the last analysis."""
        found = [ProjectError(self._root, str(self._error))] if self._error else []
        faults = self._analysis.faults if self._analysis else ()
        return found + [
            ProjectError(self._root, str(fault), fault.trace, is_defect=True) for fault in faults
        ]

    def _prepare(self, opened: Mapping[Path, bool]) -> Run:
        """Read the settings and list the files; the last valid settings replace invalid ones."""
        self._opened, self._error = opened, None
        try:
            return prepare_open(None if self._root in opened else self._root, opened, Options())
        except RematMigrateError as error:
            if self._run is None:
                raise
            self._error = error
            return replace(self._run, shown=frozenset(opened))

    def _overlay(
        self, documents: Iterable[Document]
    ) -> tuple[dict[Path, SourceFile], frozenset[Path]]:
        """Return the texts to analyse, and which documents they are outdated for.

        A half-typed statement must not hide a module from the modules that import it.
        """
        overlay: dict[Path, SourceFile] = {}
        outdated: set[Path] = set()
        readable: dict[Path, SourceFile] = {}
        for one in documents:
            overlay[one.path] = one.source
            last = self._readable.get(one.path)
            if last is not None and last.text == one.source.text:
                readable[one.path] = last
            elif one.is_readable:
                readable[one.path] = one.source
            elif last is not None:
                readable[one.path] = last
                if not one.is_settled:
                    overlay[one.path] = last
                    outdated.add(one.path)
        self._readable = readable
        return overlay, frozenset(outdated)


def _root(path: Path, folders: Sequence[Path]) -> Path:
    """Return the root of a file's project, or the file itself if it belongs to none."""
    root = find_root([path])
    if not is_too_wide(root) and any((root / marker).exists() for marker in ROOT_MARKERS):
        return root
    around = [folder for folder in folders if folder in path.parents and not is_too_wide(folder)]
    return max(around, key=lambda folder: len(folder.parts), default=path)
