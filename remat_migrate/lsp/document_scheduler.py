"""The open documents, and when their projects are analysed."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .documents import Document
from .projects import ProjectError, Projects, ProjectView

T = TypeVar("T")

# Seconds without a keystroke before an analysis starts.
PAUSE = 0.15


class DocumentScheduler:
    """Keeps the open documents and analyses their projects in a thread of its own.

    Use it in the thread of the event loop. An analysis takes the documents as they are when it
    starts; documents that change meanwhile are analysed again, and its results for them dropped.
    """

    def __init__(
        self,
        show: Callable[[Document, ProjectView], None],
        report: Callable[[frozenset[Path], Sequence[ProjectError]], None],
    ) -> None:
        """Create a scheduler.

        Args:
            show: receives each open document that was analysed.
            report: receives the analysed projects, and all errors.
        """
        self.documents: dict[Path, Document] = {}
        self.folders: list[Path] = []
        self._show = show
        self._report = report
        self._projects = Projects()
        self._views: dict[Path, ProjectView] = {}
        # One analysis at a time, because each reuses what the one before has read.
        self._worker = ThreadPoolExecutor(1, "remat-migrate")
        self._touched: set[Path] | None = set()
        self._must_refresh = False
        self._is_planned = False
        self._due = math.inf
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def put(self, document: Document) -> None:
        """Take the newest text of a document; while the user types, analyse it after a pause."""
        self.documents[document.path] = document
        if document.is_settled:
            self.analyse_all()  # callers in other projects are now as they are on disk
        else:
            self._plan({document.path}, PAUSE)

    def remove(self, path: Path) -> None:
        """Forget a document; its file on disk counts from now on."""
        if self.documents.pop(path, None) is not None:
            self.analyse_all()

    def analyse_all(self) -> None:
        """Analyse all projects now, because files or settings may have changed on disk."""
        self._must_refresh = True
        self._plan(None, 0.0)

    async def view(self, path: Path) -> ProjectView | None:
        """Return the view of the project of an open document, once it is up to date."""
        while self._task is not None:
            self._due = 0.0
            self._wake.set()
            await asyncio.shield(self._task)
        document = self.documents.get(path)
        if document is None:
            return None
        return next((one for one in self._views.values() if one.document(path) is document), None)

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in the thread of the analyses, whose results it uses."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def close(self) -> None:
        """Stop analysing."""
        if self._task is not None:
            self._task.cancel()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _plan(self, touched: set[Path] | None, pause: float) -> None:
        loop = asyncio.get_running_loop()
        if touched is None or self._touched is None:
            self._touched = None
        else:
            self._touched |= touched
        if self._due > 0:  # else an analysis at once was already asked for
            self._due = loop.time() + pause if pause else 0.0
        self._wake.set()
        self._is_planned = True
        if self._task is None:
            self._task = loop.create_task(self._work())

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._is_planned:
                while (left := self._due - loop.time()) > 0:
                    self._wake.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._wake.wait(), left)
                self._due = math.inf
                self._is_planned = False
                await self._analyse()
        finally:
            self._task = None

    async def _analyse(self) -> None:
        documents = dict(self.documents)
        folders = tuple(self.folders)
        touched = None if self._touched is None else frozenset(self._touched)
        refresh, self._must_refresh, self._touched = self._must_refresh, False, set()
        views, errors = await self.run(
            lambda: self._projects.analyse(
                tuple(documents.values()), folders, touched, refresh=refresh
            )
        )
        self._views = {
            root: view
            for root, view in {**self._views, **views}.items()
            if any(one.path in self.documents for one in view.documents)
        }
        self._report(frozenset(views).union(one.root for one in errors), errors)
        for view in views.values():
            for document in view.documents:
                if self.documents.get(document.path) is document:
                    self._show(document, view)
