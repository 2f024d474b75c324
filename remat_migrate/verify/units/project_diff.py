"""Find the units to compare in the changed files of a project, and the units that use them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ...analysis.names.expected_failures import is_test
from ...discovery.file_kinds import is_python
from ...errors import SourceError
from ...text import read_source
from ...text.source_file import may_be_notebook
from ..copies.import_names import ImportNames
from ..evidence import Outcome, Unit, UnitKey, Verdict
from .edits import Edits
from .module_diff import ModuleDiff, diff_modules
from .outline import Outline, Piece, dotted_name, outline

# Files with texts other than those on disk.
Texts = Mapping[Path, bytes]
_ON_DISK: Texts = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProjectDiff:
    """The difference between two states of a project.

    Attributes:
        units: the units that can be run and compared.
        unproved: verdicts on changes that cannot: files that are not Python or cannot be parsed.
        notes: which units are new or removed.
    """

    units: tuple[Unit, ...] = ()
    unproved: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()


def diff_project(
    changes: Iterable[tuple[Path, bytes | None, bytes | None]], import_names: ImportNames
) -> ProjectDiff:
    """Return the units that differ, given changed files with their bytes before and after."""
    units: list[Unit] = []
    unproved: list[Verdict] = []
    notes: list[str] = []

    def not_exercised(unit: Unit, reason: str) -> None:
        unproved.append(Verdict(unit, Outcome.NOT_EXERCISED, detail=reason))

    for path, before, after in changes:
        name = path.name
        if path.is_relative_to(import_names.root):
            name = path.relative_to(import_names.root).as_posix()
        texts = [data for data in (before, after) if data is not None]
        if may_be_notebook(path):
            not_exercised(Unit(path, "", is_text=True), "notebooks cannot be imported")
        elif not any(is_python(path, data) for data in texts):
            not_exercised(Unit(path, "", is_text=True), "not a Python file")
        elif before is None or after is None:
            notes.append(f"{name}: {'new' if before is None else 'removed'} file, not compared")
        else:
            try:
                module = _unit(path, "", 1, import_names)
                found = diff_modules(_text(path, before), _text(path, after), module)
            except SourceError as error:
                not_exercised(Unit(path, ""), f"cannot be parsed: {error}")
                continue
            units += found.changed
            notes += _notes(name, found)
    return ProjectDiff(tuple(units), tuple(unproved), tuple(notes))


def all_units(paths: Iterable[Path], import_names: ImportNames, cases: Path) -> Iterator[str]:
    """Yield the dotted names of all units of some files, except the file of cases."""
    for path in paths:
        if path.resolve() != cases.resolve():
            module = import_names.of(path).module or path.name
            yield from (f"{module}.{name}" for name in _outline_of(path).units)


def callers(
    units: Sequence[Unit],
    paths: Iterable[Path],
    import_names: ImportNames,
    most: int,
    before: Texts = _ON_DISK,
    after: Texts = _ON_DISK,
) -> tuple[Unit, ...]:
    """Return the other units of some files that mention one of the given units.

    If a call had to change with the function it calls, and did not, it fails there. Where a caller
    mentions a unit, it has pieces that must run. Tests are none, because they may fail for reasons
    of their own.

    Args:
        units: the units.
        paths: the files of the project.
        import_names: the names of its modules.
        most: how many to return.
        before: the files whose old text is not the one on disk.
        after: the files whose new text is not the one on disk.
    """
    by_name: dict[str, list[UnitKey]] = {}
    for unit in units:
        if name := _called(unit.qualname):
            by_name.setdefault(name, []).append(unit.key)
    known = {unit.key for unit in units}
    found: list[Unit] = []
    any_name = b"|".join(re.escape(name.encode()) for name in sorted(by_name))
    prefilter = re.compile(rb"\b(?:" + any_name + rb")\b")
    for path in paths if by_name else ():
        new = _outline_of(path, after, prefilter)
        if is_test(path) or not new.units:
            continue
        libraries = {name for name, pieces in new.values.items() if _is_of_jax(pieces)}
        for qualname, pieces in new.units.items():
            names = {n for n in by_name if any(_reads(piece, n, libraries) for piece in pieces)}
            # Elsewhere, attributes of these names are other functions: `scan`, `build`.
            imported = import_names.run_with(path) if names else ()
            names = {n for n in names if any(key[0] in imported for key in by_name[n])}
            uses = {key for name in names for key in by_name[name] if key[0] in imported}
            if names and (path, qualname) not in known:
                old = _outline_of(path, before).units.get(qualname, ())
                edits = Edits()
                edits.read([p.node for p in old], [p.node for p in pieces], names, names)
                first, second = edits.spots
                user = _unit(path, qualname, pieces[-1].line, import_names)
                found.append(replace(user, before=first, after=second, uses=tuple(sorted(uses))))
                if len(found) == most:
                    return tuple(found)
    return tuple(found)


def _is_of_jax(pieces: Sequence[Piece]) -> bool:
    """Return whether a name is a module of JAX: `lax`, whose `scan` is not one of the project."""
    return all(
        piece.is_import and re.fullmatch(r"import jax(?:[. ]\w+)*", piece.content)
        for piece in pieces
    )


def _reads(piece: Piece, name: str, libraries: Set[str]) -> bool:
    if name in piece.mentions:
        return True
    return name in piece.attributes and any(
        isinstance(part, ast.Attribute)
        and part.attr == name
        and dotted_name(part).partition(".")[0] not in libraries
        for part in ast.walk(piece.node)
    )


def _outline_of(
    path: Path, texts: Texts = _ON_DISK, prefilter: re.Pattern[bytes] | None = None
) -> Outline:
    """Return the outline of a file; empty if it cannot be read, which its own verdict reports."""
    try:
        data = texts.get(path) or path.read_bytes()
        if prefilter and not prefilter.search(data):
            return Outline()
        return outline(_text(path, data))
    except (OSError, SourceError):
        return Outline()


def _called(qualname: str) -> str:
    """Return the name by which a unit is called: the class for `__call__`."""
    around, _, name = qualname.rpartition(".")
    return around.rpartition(".")[2] if name.startswith("__") else name


def _unit(path: Path, qualname: str, line: int, import_names: ImportNames) -> Unit:
    return Unit(
        path, qualname, import_names.of(path).module, import_names.search_folders(path), line
    )


def _notes(name: str, found: ModuleDiff) -> Iterator[str]:
    for what, names in (("new", found.added), ("removed", found.removed)):
        if names:
            yield f"{name}: {what}: {', '.join(names)}"


def _text(path: Path, data: bytes) -> str:
    return read_source(path, data).text
