"""The tables of a sweep: Parquet files with a row for each source, finding, site, and verdict."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..report.machine_readable.shared import encodable
from .record import PATCH, SARIF, SEVERITIES, folder_of
from .sources import Source
from .store import Store

if TYPE_CHECKING:
    import pyarrow

Record = Mapping[str, Any]
Row = dict[str, object]

# Rows of one table that are kept in memory before they are written.
_ROWS = 20_000
_SOURCE = {"source": "string", "revision": "string", "commit": "string"}
# The columns of each table and their types, as the documentation lists them.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "repositories": {
        **_SOURCE,
        "status": "string",
        "reason": "string",
        "exit_code": "int64",
        "files": "int64",
        "findings": "int64",
        "errors": "int64",
        "warnings": "int64",
        "advice": "int64",
        "safe_fixes": "int64",
        "unsafe_fixes": "int64",
        "manual": "int64",
        "sites": "int64",
        "equal": "int64",
        "wrong": "int64",
        "not_exercised": "int64",
        "patch": "string",
        "sarif": "string",
        "notes": "list<string>",
    },
    "findings": {
        **_SOURCE,
        "path": "string",
        "line": "int64",
        "column": "int64",
        "end_line": "int64",
        "end_column": "int64",
        "code": "string",
        "name": "string",
        "severity": "string",
        "confidence": "string",
        "message": "string",
        "safety": "string",
        "fix": "string",
        "url": "string",
    },
    "sites": {
        **_SOURCE,
        "path": "string",
        "line": "int64",
        "column": "int64",
        "api": "string",
        "form": "string",
        "target": "string",
        "options": "string",
        "context": "string",
        "risk": "string",
        "codes": "list<string>",
    },
    "verdicts": {
        **_SOURCE,
        "path": "string",
        "line": "int64",
        "unit": "string",
        "verdict": "string",
        "inputs": "string",
        "evidence": "string",
        "max_abs": "double",
        "max_rel": "double",
        "detail": "string",
    },
}


def fix_counts(record: Record) -> Counter[str]:
    """Return how many findings have a fix of each safety; `manual` counts those without."""
    safeties = (finding["fix"] and finding["fix"]["safety"] for finding in record["findings"])
    return Counter(safety or "manual" for safety in safeties)


def verdict_counts(record: Record) -> Counter[str]:
    """Return how many units are equal, wrong, and not exercised."""
    names = {"equal": "equal", "differs": "wrong", "fails-after": "wrong"}
    return Counter(names.get(row["verdict"], "not_exercised") for row in record["verdicts"])


def repository_row(record: Record) -> Row:
    """Return the row of a source."""
    folder = folder_of(Source(record["source"], record["revision"]))
    fixes, verdicts = fix_counts(record), verdict_counts(record)
    error, warning, note = (record["severities"][severity] for severity in SEVERITIES)
    is_read = bool(record["files"]) or record["status"] == "checked"
    return {
        **{key: record[key] for key in COLUMNS["repositories"] if key in record},
        "findings": len(record["findings"]),
        "errors": error,
        "warnings": warning,
        "advice": note,
        "safe_fixes": fixes["safe"],
        "unsafe_fixes": fixes["unsafe"],
        "manual": fixes["manual"],
        "sites": len(record["sites"]),
        **{name: verdicts[name] for name in ("equal", "wrong", "not_exercised")},
        "patch": f"{folder}/{PATCH}" if record["patched_files"] else None,
        "sarif": f"{folder}/{SARIF}" if is_read else None,
    }


def _repositories(record: Record) -> Iterator[Row]:
    yield repository_row(record)


def _findings(record: Record) -> Iterator[Row]:
    for row in record["findings"]:
        fix = row["fix"] or {"safety": None, "title": None}
        yield {**row, "safety": fix["safety"], "fix": fix["title"]}


def _sites(record: Record) -> Iterator[Row]:
    for row in record["sites"]:
        yield {**row, "options": json.dumps(row["options"], sort_keys=True)}


def _verdicts(record: Record) -> Iterator[Row]:
    yield from record["verdicts"]


_ROWS_OF: Mapping[str, Callable[[Record], Iterator[Row]]] = {
    "repositories": _repositories,
    "findings": _findings,
    "sites": _sites,
    "verdicts": _verdicts,
}


def write_tables(records: Iterable[Record], store: Store) -> None:
    """Write the tables; records are read one after the other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas = {name: _schema(columns) for name, columns in COLUMNS.items()}
    buffers = {name: io.BytesIO() for name in schemas}
    writers = {
        name: pq.ParquetWriter(buffers[name], schema, compression="zstd")
        for name, schema in schemas.items()
    }
    waiting: dict[str, list[Row]] = {name: [] for name in schemas}

    def flush(name: str) -> None:
        rows = [{key: _encodable(row.get(key)) for key in COLUMNS[name]} for row in waiting[name]]
        writers[name].write_table(pa.Table.from_pylist(rows, schemas[name]))
        waiting[name].clear()

    for record in records:
        head = {key: record[key] for key in _SOURCE}
        for name, rows_of in _ROWS_OF.items():
            waiting[name] += ({**row, **head} for row in rows_of(record))
            if len(waiting[name]) >= _ROWS:
                flush(name)
    for name, writer in writers.items():
        flush(name)
        writer.close()
        store.write(f"{name}.parquet", buffers[name].getvalue())


def _encodable(value: object) -> object:
    match value:
        case str():
            return encodable(value)
        case list():
            return list(map(_encodable, value))
    return value


def _schema(columns: Mapping[str, str]) -> pyarrow.Schema:
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "list<string>": pa.list_(pa.string()),
    }
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])
