"""What a sweep leaves when all sources are checked: tables, a page, and an exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ..report.machine_readable.shared import encodable
from ..report.pages.html import render_sweep
from .record import RECORD, folder_of
from .sources import Source
from .store import Store
from .tables import Record, write_tables
from .totals import MOST_ROWS, Totals

PAGE = "index.html"


def write_results(sources: Sequence[Source], store: Store) -> Totals:
    """Write the tables and the page, from the records of the sources.

    Raises:
        StoreFailed: a record cannot be read, or a result cannot be written.
    """
    totals = Totals()
    write_tables(totals.keeping_worst(records(sources, store)), store)
    rules = sorted(totals.rules.items(), key=lambda one: (-one[1]["findings"], one[0]))
    store.write(PAGE, encodable(render_sweep(totals, rules, MOST_ROWS)).encode())
    return totals


def records(sources: Sequence[Source], store: Store) -> Iterator[Record]:
    """Yield the records of sources in their order."""
    yield from map(json.loads, store.read_all(f"{folder_of(one)}/{RECORD}" for one in sources))
