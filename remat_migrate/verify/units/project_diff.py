"""Find the units to compare in the changed files of a project, and the units that use them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ...discovery.file_kinds import is_python
from ...errors import SourceError
from ...text import read_source
from ...text.source_file import may_be_notebook
from ..copies.import_names import ImportNames
from ..evidence import Outcome, Unit, UnitKey, Verdict
from .edits import Edits
from .module_diff import ModuleDiff, diff_modules
from .outline import Outline, Piece, dotted_name, mentions_of, outline

# Files with texts other than those on disk.
Texts = Mapping[Path, bytes]
_ON_DISK: Texts = MappingProxyType({})
_IS_TEST = re.compile(r"(?:test_\w*|\w*_test|tests?)\.py")


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
        if is_python(path, after or before) and may_be_notebook(path):
            not_exercised(Unit(path, "", is_text=True), "notebooks cannot be imported")
        elif not _is_python(path, before, after):
            not_exercised(Unit(path, "", is_text=True), "not a Python file")
        elif before is None or after is None:
            notes.append(f"{name}: {'new' if before is None else 'removed'} file, not compared")
        else:
            try:
                found = diff_modules(_text(path, before), _text(path, after))
            except (SyntaxError, SourceError) as error:
                not_exercised(Unit(path, ""), f"cannot be parsed: {error}")
                continue
            for changed in found.changed:
                unit = replace(
                    _unit(path, changed.qualname, changed.line, import_names),
                    before=changed.before,
                    after=changed.after,
                )
                units.append(unit)
            notes += _notes(name, found)
    return ProjectDiff(tuple(units), tuple(unproved), tuple(notes))


def all_units(paths: Iterable[Path], import_names: ImportNames, cases: Path) -> Iterator[str]:
    """Yield the dotted names of all units of some files, except the file of cases."""
    for path in paths:
        if path.resolve() != cases.resolve():
            module = import_names.of(path).module or path.name
            yield from (f"{module}.{name}" for name in _units_of(path))


def is_test_file(path: Path) -> bool:
    """Return whether a file holds tests, by its name."""
    return _IS_TEST.fullmatch(path.name) is not None


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
    sources = [path for path in paths if not is_test_file(path)]
    for path, qualname, line in _mentioning(by_name.keys(), sources, after):
        user = _unit(path, qualname, line, import_names)
        # Elsewhere, attributes of these names are other functions: `scan`, `build`.
        imported = import_names.run_with(user.path)
        new = _nodes(user, after)
        used = {
            name: [key for key in keys if key[0] in imported]
            for name, keys in by_name.items()
            if _mentions(new, name)
        }
        names = {name for name, keys in used.items() if keys}
        uses = tuple(sorted({key for keys in used.values() for key in keys}))
        if uses and user.key not in known:
            edits = Edits()
            edits.read(_nodes(user, before), new, names, names)
            first, second = edits.spots
            found.append(replace(user, before=first, after=second, uses=uses))
            if len(found) == most:
                break
    return tuple(found)


def _nodes(unit: Unit, texts: Texts) -> list[ast.stmt]:
    pieces = _units_of(unit.path, texts=texts).get(unit.qualname, ())
    return [piece.node for piece in pieces]


def _mentions(nodes: Sequence[ast.stmt], name: str) -> bool:
    return any(name in names for node in nodes for names in mentions_of(node))


def _mentioning(
    names: Set[str], paths: Iterable[Path], texts: Texts = _ON_DISK
) -> Iterator[tuple[Path, str, int]]:
    any_name = b"|".join(re.escape(name.encode()) for name in sorted(names))
    prefilter = re.compile(rb"\b(?:" + any_name + rb")\b")
    for path in paths if names else ():
        found = _outline_of(path, prefilter, texts)
        libraries = {name for name, pieces in found.bindings.items() if _is_of_jax(pieces)}
        for name, pieces in found.units.items():
            if any(_reads(piece, names, libraries) for piece in pieces):
                yield path, name, pieces[-1].line


def _is_of_jax(pieces: Sequence[Piece]) -> bool:
    """Return whether a name is a module of JAX: `lax`, whose `scan` is not one of the project."""
    return all(
        piece.is_import and re.fullmatch(r"import jax(?:[. ]\w+)*", piece.content)
        for piece in pieces
    )


def _reads(piece: Piece, names: Set[str], libraries: Set[str]) -> bool:
    if names & piece.mentions:
        return True
    return bool(names & piece.attributes) and any(
        isinstance(part, ast.Attribute)
        and part.attr in names
        and dotted_name(part).partition(".")[0] not in libraries
        for part in ast.walk(piece.node)
    )


def _units_of(
    path: Path, prefilter: re.Pattern[bytes] | None = None, texts: Texts = _ON_DISK
) -> Mapping[str, list[Piece]]:
    """Return the units of a file; none if it cannot be read, which its own verdict reports."""
    return _outline_of(path, prefilter, texts).units


def _outline_of(path: Path, prefilter: re.Pattern[bytes] | None, texts: Texts) -> Outline:
    try:
        data = texts.get(path) or path.read_bytes()
        if prefilter and not prefilter.search(data):
            return Outline()
        return outline(_text(path, data))
    except (OSError, SyntaxError, SourceError):
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


def _is_python(path: Path, *contents: bytes | None) -> bool:
    script = any(c and c.startswith(b"#!") and b"python" in c.split(b"\n", 1)[0] for c in contents)
    return is_python(path) or script


def _text(path: Path, data: bytes) -> str:
    return read_source(path, data).text
