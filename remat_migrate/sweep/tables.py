"""The tables of a sweep: Parquet files with a row for each source, finding, site, and verdict."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..report.machine_readable.shared import encodable
from .record import PATCH, SARIF, SEVERITIES, Record, folder_of
from .sources import Source
from .store import Store

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, object]

# Rows of one table that are kept in memory before they are written.
_ROWS = 20_000
_SOURCE = ("source", "revision", "commit")


def _columns(text: str) -> Mapping[str, str]:
    """Return the types of columns, which are strings unless they name another type."""
    words = (word.partition(":") for word in (*_SOURCE, *text.split()))
    return {name: kind or "string" for name, _, kind in words}


# The columns of each table and their types, as the documentation lists them.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "repositories": _columns(
        """
        status reason exit_code:int64 files:int64 findings:int64 errors:int64 warnings:int64
        advice:int64 safe_fixes:int64 unsafe_fixes:int64 manual:int64 sites:int64 equal:int64
        wrong:int64 not_exercised:int64 patch sarif notes:list<string>
        """
    ),
    "findings": _columns(
        """
        path line:int64 column:int64 end_line:int64 end_column:int64 code name severity confidence
        message safety fix url
        """
    ),
    "sites": _columns(
        """
        path line:int64 column:int64 api form target options context risk codes:list<string>
        """
    ),
    "verdicts": _columns(
        """
        path line:int64 unit verdict inputs evidence max_abs:double max_rel:double detail
        """
    ),
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


def _rows(record: Record) -> Mapping[str, Iterable[Row]]:
    """Return the rows of a source in each table, without the columns that name it."""
    none = {"safety": None, "title": None}
    fixes = (finding["fix"] or none for finding in record["findings"])
    sites = record["sites"]
    return {
        "repositories": [repository_row(record)],
        "findings": [
            {**row, "safety": fix["safety"], "fix": fix["title"]}
            for row, fix in zip(record["findings"], fixes, strict=True)
        ],
        "sites": [{**row, "options": json.dumps(row["options"], sort_keys=True)} for row in sites],
        "verdicts": record["verdicts"],
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
        for name, rows in _rows(record).items():
            waiting[name] += ({**row, **head} for row in rows)
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
