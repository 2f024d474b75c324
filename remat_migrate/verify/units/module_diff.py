"""Find the units that differ between two texts of a module.

A unit is a top-level function, a method of a top-level class, or a name that is bound to a function
by an assignment; "" is the module itself. A unit is changed if its code changed, or if it reads a
name whose import or value changed. The functions that it calls do not count: they are units, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from ...errors import SourceError
from ..evidence import Unit
from .edits import Edits
from .outline import STAR, Outline, Piece, Pieces, outline, owner_of

MODULE = ""
_NO_FILE = Unit(Path(), MODULE)
_CALLED = ("__call__", "forward")


@dataclass(frozen=True, slots=True)
class ModuleDiff:
    """The difference between two texts of a module, as qualified names of units.

    Attributes:
        changed: the units that both have, in the order of the new text, the module itself last. A
            class that changed and has no methods of its own is one, too.
        added: units that only the new text has.
        removed: units that only the old text has.
    """

    changed: tuple[Unit, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def diff_modules(before: str, after: str, module: Unit = _NO_FILE) -> ModuleDiff:
    """Compare two texts of a module, ignoring positions, formatting, comments and docstrings.

    Args:
        before: the old text.
        after: the new text.
        module: the module as a unit, like which the others are made.

    Raises:
        SourceError: this interpreter cannot parse one of the texts.
    """
    return _Comparison(outline(before), outline(after), module).diff()


def unit_at(text: str, offset: int) -> str:
    """Return the innermost unit or class around a character, counted from 0.

    "" is code of the module itself, and what this interpreter cannot parse.
    """
    try:
        found = outline(text)
    except SourceError:
        return ""
    around = [
        (piece.span.end - piece.span.start, name)
        for name, pieces in {**found.classes, **found.units}.items()
        for piece in pieces
        if piece.span.start <= offset < piece.span.end
    ]
    return min(around)[1] if around else MODULE


class _Comparison:
    """Two outlines of a module, and the units found to differ."""

    def __init__(self, before: Outline, after: Outline, module: Unit) -> None:
        self._module = module
        self._sides = (before, after)
        self._after = after
        self._changed: set[str] = set()
        # Changed names, and names whose values read them.
        self._stale: set[str] = set()
        self._shared = [name for name in after.units if name in before.units]
        self._classes = {name for name in after.classes if name in before.classes}

    def diff(self) -> ModuleDiff:
        old, new = self._sides
        self._changed |= set(_differing(old.units, new.units)).intersection(self._shared)
        for name in self._classes.intersection(_differing(old.classes, new.classes)):
            self._mark_class(name)
        changed = old.names ^ new.names
        for name in _differing(old.values, new.values):
            if not self._is_attribute(name):
                changed.add(name)
            elif owner_of(name) in self._classes:
                self._mark_attribute(name)
        unread = [name for name in sorted(changed) if not self._mark_readers_of(name)]
        return ModuleDiff(
            (*self._changed_units(), *self._changed_module(unread)),
            tuple(_only_in(new, old)),
            tuple(_only_in(old, new)),
        )

    def _changed_units(self) -> list[Unit]:
        after = self._after
        pieces = {name: after.units.get(name) or after.classes[name] for name in self._changed}
        found = [self._changed_unit(name, each[-1].line) for name, each in pieces.items()]
        return sorted(found, key=lambda unit: (unit.line, unit.qualname))

    def _changed_unit(self, name: str, line: int) -> Unit:
        """Return a unit with its edited pieces, and those of the values that it reads."""
        edits = Edits()
        old, new = self._nodes(name)
        edits.compare(old, new)
        is_edited = bool(edits.old or edits.new)
        read = set()
        for other in self._stale - {name, name.partition(".")[0]}:
            imported = self._is_imported(other)
            reads = _any_reads(self._after.units.get(name, ()), other)
            if reads and not imported:
                edits.compare(*self._nodes(other))
            if reads and not (imported and is_edited):
                read.add(other)
        edits.read(old, new, read, self._edited_attributes(name, edits))
        return self._unit(name, line, edits)

    def _unit(self, name: str, line: int, edits: Edits) -> Unit:
        before, after = edits.spots
        return replace(
            self._module, qualname=name, line=line, before=before, after=after, edited=edits.values
        )

    def _is_imported(self, name: str) -> bool:
        return any(piece.is_import for side in self._sides for piece in side.values.get(name, ()))

    def _nodes(self, name: str) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Return the statements that define a name, before and after."""
        old, new = (
            [p.node for group in (side.units, side.values) for p in group.get(name, ())]
            for side in self._sides
        )
        return old, new

    def _edited_attributes(self, unit: str, edits: Edits) -> set[str]:
        """Add the edited pieces of a method's class; return the changed attributes that it reads.

        An attribute that no method reads belongs to all of them.
        """
        owner = owner_of(unit)
        if owner not in self._classes:
            return set()
        old, new = self._sides
        headers = ([piece.node for piece in side.classes[owner]] for side in self._sides)
        edits.compare_headers(*headers)
        names = set()
        for name in _differing(old.values, new.values):
            if owner_of(name) == owner:
                readers = self._readers_of_attribute(name)
                if unit in readers:
                    names.add(name.rpartition(".")[2])
                if unit in readers or not readers:
                    edits.compare(*self._nodes(name))
        return names

    # -- classes

    def _is_attribute(self, name: str) -> bool:
        return any(owner_of(name) in side.classes for side in self._sides)

    def _mark_attribute(self, name: str) -> None:
        """Mark the units that read an attribute of a class, through an instance or the class."""
        if readers := self._readers_of_attribute(name):
            self._changed |= readers
        else:
            self._mark_class(owner_of(name))

    def _readers_of_attribute(self, name: str) -> set[str]:
        owner, _, attribute = name.rpartition(".")
        family = self._family(owner) if attribute else set()
        return {
            unit
            for unit in self._shared
            for piece in self._after.units[unit]
            if name in piece.mentions
            or (owner_of(unit) in family and attribute in piece.attributes | piece.mentions)
        }

    def _mark_class(self, name: str) -> None:
        """Mark the public methods of a class; all methods or the class if it has no public ones."""
        methods = [unit for unit in self._shared if owner_of(unit) == name]
        short = {unit: unit.rpartition(".")[2] for unit in methods}
        public = [u for u in methods if short[u] in _CALLED or not short[u].startswith("_")]
        self._changed.update(public or methods or [name])

    def _family(self, owner: str) -> set[str]:
        """Return a class and the classes of the module derived from it."""
        family = {owner}
        while True:
            names = family | {name.rpartition(".")[2] for name in family}
            more = {n for n, bases in self._after.bases.items() if bases & names} - family
            if not more:
                return family
            family |= more

    # -- names that units read

    def _mark_readers_of(self, changed: str) -> bool:
        """Mark the units that read a changed name, also through other names.

        Returns:
            Whether units of either text do, or are it.
        """
        is_read = False
        names = [changed]
        for name in names:
            is_read |= self._mark_units_that_read(name)
            names += [
                other
                for other, pieces in self._after.values.items()
                if other not in names and not self._is_attribute(other)
                if _any_reads(pieces, name)
            ]
        self._stale.update(names)
        return is_read

    def _mark_units_that_read(self, name: str) -> bool:
        """Mark the units that read a name; return whether units of either text do, or are it."""
        self._changed |= {u for u in self._shared if _any_reads(self._after.units[u], name)}
        for owner in self._classes:
            if _any_reads(self._after.classes[owner], name):
                self._mark_class(owner)
        for attribute, pieces in self._after.attributes.items():
            if owner_of(attribute) in self._classes and _any_reads(pieces, name):
                self._mark_attribute(attribute)
        return any(
            name in side.units or name in side.classes or _any_reads(side.unit_pieces, name)
            for side in self._sides
        )

    # -- the module itself

    def _changed_module(self, unread: Sequence[str]) -> Iterator[Unit]:
        """Yield the module as a unit if something changed in it that belongs to no other unit."""
        old, new = self._sides
        rebound = [
            new.values[name][-1].line if name in new.values else 1
            for name in unread
            if name in old.values or name in new.values
        ]
        if lines := [*_first_difference(old.code, new.code), *rebound]:
            edits = Edits()
            edits.compare([p.node for p in old.code], [p.node for p in new.code])
            for name in unread:
                if not self._is_imported(name):
                    edits.compare(*self._nodes(name))
            yield self._unit(MODULE, lines[0], edits)


def _any_reads(pieces: Iterable[Piece], name: str) -> bool:
    # Any name may be of a module of which all names are imported.
    return name.startswith(STAR) or any(name in piece.mentions for piece in pieces)


def _differing(before: Pieces, after: Pieces) -> list[str]:
    """Return the names whose pieces differ."""

    def contents(pieces: Iterable[Piece]) -> list[str]:
        # A repeated import, as `import a.b` and `import a.c` repeat `a`, is not a difference.
        return list(dict.fromkeys(piece.content for piece in pieces))

    names = sorted({*before, *after})
    return [n for n in names if contents(before.get(n, ())) != contents(after.get(n, ()))]


def _first_difference(before: Sequence[Piece], after: Sequence[Piece]) -> list[int]:
    """Return the line of the first piece that differs, 1 if it was removed; empty if none does."""
    for old, new in zip_longest(before, after):
        if old is None or new is None or old.content != new.content:
            return [new.line if new else 1]
    return []


def _only_in(one: Outline, other: Outline) -> Iterator[str]:
    """Yield the units of one module that the other lacks, and its classes without methods."""
    yield from (name for name in one.units if name not in other.units)
    with_methods = set(map(owner_of, one.units))
    yield from (n for n in one.classes if n not in other.classes and n not in with_methods)
