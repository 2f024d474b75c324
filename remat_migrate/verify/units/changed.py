"""Changed files to the units that are to be compared, and what is to be said of the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from ...discovery.discover import is_python
from ...errors import SourceError
from ...text import read_source
from ...text.source_file import may_be_notebook
from ..copies.places import Places
from ..evidence import Outcome, Unit, Verdict
from .module_diff import ModuleDiff, diff_modules
from .outline import outline

NOT_PYTHON = "not Python: there is nothing to run"
NOTEBOOK = "a notebook, which cannot be imported"


@dataclass(frozen=True, slots=True)
class Difference:
    """How two states of a project differ.

    Attributes:
        units: what can be compared by running it.
        unproved: verdicts on what cannot: files that are not Python, code that cannot be parsed.
        notes: units that are new, gone or renamed.
    """

    units: tuple[Unit, ...] = ()
    unproved: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()


def difference(
    changes: Iterable[tuple[Path, bytes | None, bytes | None]], places: Places
) -> Difference:
    """The units that differ, of files by path with their bytes before and after."""
    units: list[Unit] = []
    unproved: list[Verdict] = []
    notes: list[str] = []
    for path, before, after in changes:
        name = _shown(path, places)
        if is_python(path, after or before) and may_be_notebook(path):
            unproved.append(_unproved(Unit(path, "", is_text=True), NOTEBOOK))
        elif not _is_python(path, before, after):
            unproved.append(_unproved(Unit(path, "", is_text=True), NOT_PYTHON))
        elif before is None or after is None:
            notes.append(f"{name} is {'new' if before is None else 'gone'}: nothing to compare")
        else:
            try:
                found = diff_modules(_text(path, before), _text(path, after))
            except (SyntaxError, SourceError) as error:
                unproved.append(_unproved(Unit(path, ""), f"cannot be parsed: {error}"))
                continue
            for unit, script in _units(path, found, places):
                if script:
                    unproved.append(_unproved(unit, "what changed runs only as a script"))
                else:
                    units.append(unit)
            notes += _notes(name, found)
    return Difference(tuple(units), tuple(unproved), tuple(notes))


def all_units(paths: Sequence[Path], places: Places, cases: Path) -> Iterator[str]:
    """The dotted names of all units of some files; those that cannot be read have none.

    Nor has the file of cases, whose functions have the names of others.
    """
    for path in paths:
        if path.resolve() == cases.resolve():
            continue
        try:
            found = outline(_text(path, path.read_bytes()))
        except (OSError, SyntaxError, SourceError):
            continue  # a case for a unit of it is told that there is no such unit
        module = places.of(path).module or path.name
        for name in found.units:
            yield f"{module}.{name}"


def callers(units: Sequence[Unit], paths: Sequence[Path], places: Places) -> tuple[Unit, ...]:
    """The units of some files that use one of the given units by its name, and are none of them.

    A call that has to change with the function it calls, and did not, fails in these.
    """
    names = {name for unit in units if (name := _called(unit.qualname))}
    known = {unit.key for unit in units}
    return tuple(unit for unit in users(names, paths, places) if unit.key not in known)


def users(names: Set[str], paths: Sequence[Path], places: Places) -> Iterator[Unit]:
    """The units of some files that read one of the names, or an attribute called so."""
    each = re.compile(rb"\b(?:" + b"|".join(re.escape(n.encode()) for n in sorted(names)) + rb")\b")
    for path in paths if names else ():
        try:
            data = path.read_bytes()
            if not each.search(data):
                continue
            pieces = outline(_text(path, data)).units
        except (OSError, SyntaxError, SourceError):
            continue  # if it differs, its own verdict says so
        place, search = places.of(path), tuple(places.search_folders(path))
        for name, own in pieces.items():
            if any(names & piece.attributes or names & piece.mentions for piece in own):
                yield Unit(path, name, place.module, search, own[-1].line)


def _called(qualname: str) -> str:
    """The name by which a unit is called: that of the class for what calls an instance."""
    around, _, name = qualname.rpartition(".")
    return around.rpartition(".")[2] if name.startswith("__") else name


def _units(path: Path, found: ModuleDiff, places: Places) -> Iterator[tuple[Unit, bool]]:
    place, search = places.of(path), tuple(places.search_folders(path))
    for changed in found.changed:
        unit = Unit(path, changed.qualname, place.module, search, changed.line)
        yield unit, changed.script


def _notes(name: str, found: ModuleDiff) -> Iterator[str]:
    for old, new in found.renamed:
        yield f"{name}: {old} is called {new} now: not compared"
    for what, names in (("new", found.added), ("gone", found.removed)):
        if names:
            yield f"{name}: {', '.join(names)} {'is' if len(names) == 1 else 'are'} {what}"


def _unproved(unit: Unit, detail: str) -> Verdict:
    return Verdict(unit, Outcome.NOT_EXERCISED, detail=detail)


def _is_python(path: Path, *contents: bytes | None) -> bool:
    script = any(c and c.startswith(b"#!") and b"python" in c.split(b"\n", 1)[0] for c in contents)
    return is_python(path) or script


def _text(path: Path, data: bytes) -> str:
    return read_source(path, data).text


def _shown(path: Path, places: Places) -> str:
    return (
        path.relative_to(places.root).as_posix() if path.is_relative_to(places.root) else path.name
    )
