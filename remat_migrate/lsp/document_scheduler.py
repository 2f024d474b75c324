"""The open documents, and when there is a look at their projects."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .documents import Document
from .projects import Projects, Trouble, View

T = TypeVar("T")

# Seconds without a keystroke after which there is a look: most words are typed by then.
PAUSE = 0.15


class Desk:
    """The open documents. To be used in the thread of the loop; looks have a thread of their own.

    A look takes the documents as they are when it starts. What changed meanwhile is looked at
    again, and what the first look showed of it is not told.
    """

    def __init__(
        self,
        show: Callable[[Document, View], None],
        tell: Callable[[frozenset[Path], Sequence[Trouble]], None],
    ) -> None:
        """`show` is given each open document that a look was of, `tell` the
        projects that were looked at and all that went wrong."""
        self.documents: dict[Path, Document] = {}
        self.folders: list[Path] = []
        self._show = show
        self._tell = tell
        self._projects = Projects()
        self._views: dict[Path, View] = {}
        # One look at a time: it uses what the one before has read.
        self._worker = ThreadPoolExecutor(1, "remat-migrate")
        self._touched: set[Path] | None = set()
        self._is_stale = False
        self._due = 0.0
        self._hurry = asyncio.Event()
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None

    def put(self, document: Document) -> None:
        """Take the newest text of a document; what is being typed is looked at after a pause."""
        self.documents[document.path] = document
        if document.is_settled:
            self.look()  # callers in other projects, too, are as they are on disk now
        else:
            self._plan({document.path}, PAUSE)

    def remove(self, path: Path) -> None:
        """Forget a document; what it was linked to is now as on disk."""
        if self.documents.pop(path, None) is not None:
            self.look()

    def look(self) -> None:
        """Look at everything at once, for files that have come or gone and for new settings."""
        self._is_stale = True
        self._plan(None, 0.0)

    async def view(self, path: Path) -> View | None:
        """The view of the project of an open document as it is now, once there is one."""
        while not self._idle.is_set():
            self._hurry.set()
            await self._idle.wait()
        document = self.documents.get(path)
        if document is None:
            return None
        return next((one for one in self._views.values() if one.document(path) is document), None)

    async def run(self, work: Callable[[], T]) -> T:
        """Do something that uses what the looks have read, in their thread."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def close(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _plan(self, touched: set[Path] | None, pause: float) -> None:
        loop = asyncio.get_running_loop()
        if touched is None or self._touched is None:
            self._touched = None
        else:
            self._touched |= touched
        self._due = loop.time() + pause
        if not pause:
            self._hurry.set()
        self._idle.clear()
        self._news.set()
        if self._task is None:
            self._task = loop.create_task(self._work())

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._news.wait()
            while not self._hurry.is_set() and (left := self._due - loop.time()) > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), left)
            self._hurry.clear()
            self._news.clear()
            await self._look()
            if not self._news.is_set():
                self._hurry.clear()
                self._idle.set()

    async def _look(self) -> None:
        documents = dict(self.documents)
        folders = tuple(self.folders)
        touched = None if self._touched is None else frozenset(self._touched)
        afresh, self._is_stale, self._touched = self._is_stale, False, set()
        views, troubles = await self.run(
            lambda: self._projects.look(tuple(documents.values()), folders, touched, afresh=afresh)
        )
        self._views = {
            root: view
            for root, view in {**self._views, **views}.items()
            if any(one.path in self.documents for one in view.documents)
        }
        self._tell(frozenset(views).union(one.root for one in troubles), troubles)
        for view in views.values():
            for document in view.documents:
                if self.documents.get(document.path) is document:
                    self._show(document, view)
