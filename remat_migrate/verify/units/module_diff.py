"""Find the units that differ between two texts of a module.

A unit is a top-level function, a method of a top-level class, or a name that is bound to a function
by an assignment; "" is the module itself. A unit is changed if its code changed, or if it reads a
name whose import or value changed. The functions that it calls do not count: they are units, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from ...errors import SourceError
from ..evidence import Spot
from .edits import Edits
from .outline import STAR, Outline, Piece, outline

MODULE = ""
_CALLED = ("__call__", "forward")


@dataclass(frozen=True, slots=True)
class ChangedUnit:
    """A unit that both texts define and that differs.

    Attributes:
        qualname: `function`, `Class.method`, `Class.Inner.method`, `name`; "" for the module, and
            `Class` for a class that changed and has no methods of its own.
        line: its line in the new text.
        before: the edited pieces of the old text.
        after: the edited pieces of the new text.
        edited: see `Unit.edited`.
    """

    qualname: str
    line: int
    before: tuple[Spot, ...] = field(default=(), compare=False)
    after: tuple[Spot, ...] = field(default=(), compare=False)
    edited: Mapping[str, Sequence[Any]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ModuleDiff:
    """The difference between two texts of a module, as qualified names of units.

    Attributes:
        changed: the units that both have, in the order of the new text, the module itself last.
        added: units that only the new text has.
        removed: units that only the old text has.
    """

    changed: tuple[ChangedUnit, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def diff_modules(before: str, after: str) -> ModuleDiff:
    """Compare two texts of a module, ignoring positions, formatting, comments and docstrings.

    Raises:
        SourceError: this interpreter cannot parse one of the texts.
    """
    return _Comparison(outline(before), outline(after)).diff()


def unit_at(text: str, offset: int) -> str:
    """Return the innermost unit or class around a character, counted from 0.

    "" is code of the module itself, and what this interpreter cannot parse.
    """
    try:
        found = outline(text)
    except SourceError:
        return ""
    named = {**{name: each.header for name, each in found.classes.items()}, **found.units}
    around = [
        (piece.span.end - piece.span.start, name)
        for name, pieces in named.items()
        for piece in pieces
        if piece.span.start <= offset < piece.span.end
    ]
    return min(around)[1] if around else MODULE


class _Comparison:
    """Two outlines of a module, and the units found to differ."""

    def __init__(self, before: Outline, after: Outline) -> None:
        self._before = before
        self._after = after
        self._changed: set[str] = set()
        # Changed names, and names whose values read them.
        self._stale: set[str] = set()
        self._shared = [name for name in after.units if name in before.units]

    def diff(self) -> ModuleDiff:
        old, new = self._before.units, self._after.units
        self._changed |= {name for name in self._shared if _differ(old[name], new[name])}
        self._mark_classes()
        unread = self._mark_readers_of(self._changed_names())
        return ModuleDiff(
            (*self._changed_units(), *self._changed_module(unread)),
            tuple(_only_in(self._after, self._before)),
            tuple(_only_in(self._before, self._after)),
        )

    def _changed_units(self) -> list[ChangedUnit]:
        after = self._after
        pieces = {
            name: after.units.get(name) or after.classes[name].header for name in self._changed
        }
        found = [self._changed_unit(name, each[-1].line) for name, each in pieces.items()]
        return sorted(found, key=lambda unit: (unit.line, unit.qualname))

    def _changed_unit(self, name: str, line: int) -> ChangedUnit:
        """Return a unit with its edited pieces, and those of the values that it reads."""
        edits = Edits()
        old, new = self._nodes(name)
        edits.compare(old, new)
        is_edited = bool(edits.old or edits.new)
        read = set()
        for other in self._stale - {name, name.partition(".")[0]}:
            imported = any(
                piece.is_import
                for side in (self._before, self._after)
                for piece in side.bindings.get(other, ())
            )
            reads = _any_reads(self._after.units.get(name, ()), other)
            if reads and not imported:
                edits.compare(*self._nodes(other))
            if reads and not (imported and is_edited):
                read.add(other)
        edits.read(old, new, read, self._edited_attributes(name, edits))
        return ChangedUnit(name, line, *edits.spots, edits.values)

    def _nodes(self, name: str) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Return the statements that define a name, before and after."""
        old, new = (
            [p.node for group in (side.units, side.bindings) for p in group.get(name, ())]
            for side in (self._before, self._after)
        )
        return old, new

    def _edited_attributes(self, unit: str, edits: Edits) -> set[str]:
        """Add the edited pieces of a method's class; return the changed attributes that it reads.

        An attribute that no method reads belongs to all of them.
        """
        owner = unit.rpartition(".")[0]
        old, new = self._before.classes.get(owner), self._after.classes.get(owner)
        if old is None or new is None:
            return set()
        edits.compare_headers([p.node for p in old.header], [p.node for p in new.header])
        names = set()
        for name in sorted({*old.attributes, *new.attributes}):
            before, after = old.attributes.get(name, []), new.attributes.get(name, [])
            if _differ(before, after):
                readers = self._readers_of_attribute(owner, name)
                if unit in readers:
                    names.add(name)
                if unit in readers or not readers:
                    edits.compare([p.node for p in before], [p.node for p in after])
        return names

    # -- classes

    def _mark_classes(self) -> None:
        for name, new in self._after.classes.items():
            old = self._before.classes.get(name)
            if old is None:
                continue
            if _differ(old.header, new.header):
                self._mark_class(name)
            for attribute in sorted({*old.attributes, *new.attributes}):
                if _differ(old.attributes.get(attribute, ()), new.attributes.get(attribute, ())):
                    self._mark_attribute(name, attribute)

    def _mark_attribute(self, owner: str, name: str) -> None:
        """Mark the units that read an attribute of a class, through an instance or the class."""
        if readers := self._readers_of_attribute(owner, name):
            self._changed |= readers
        else:
            self._mark_class(owner)

    def _readers_of_attribute(self, owner: str, name: str) -> set[str]:
        family = self._family(owner) if name else set()
        return {
            unit
            for unit in self._shared
            for piece in self._after.units[unit]
            if f"{owner}.{name}" in piece.mentions
            or (unit.rpartition(".")[0] in family and name in piece.attributes | piece.mentions)
        }

    def _mark_class(self, name: str) -> None:
        """Mark the public methods of a class; all methods or the class if it has no public ones."""
        methods = [unit for unit in self._shared if unit.rpartition(".")[0] == name]
        short = {unit: unit.rpartition(".")[2] for unit in methods}
        public = [u for u in methods if short[u] in _CALLED or not short[u].startswith("_")]
        self._changed.update(public or methods or [name])

    def _family(self, owner: str) -> set[str]:
        """Return a class and the classes of the module derived from it."""
        family = {owner}
        while True:
            names = family | {name.rpartition(".")[2] for name in family}
            more = {n for n, c in self._after.classes.items() if c.bases & names} - family
            if not more:
                return family
            family |= more

    # -- names that units read

    def _changed_names(self) -> list[str]:
        """Return the names of the module whose definition or import changed."""
        old, new = self._before.bindings, self._after.bindings
        rebound = {n for n in {*old, *new} if _differ(old.get(n, ()), new.get(n, ()))}
        return sorted(rebound | (self._before.names ^ self._after.names))

    def _mark_readers_of(self, changed: Iterable[str]) -> list[str]:
        """Mark the units that read a changed name, also through other names.

        Returns:
            The changed names that no unit reads.
        """
        readers: dict[str, set[str]] = {}
        waiting = list(changed)
        while waiting:
            name = waiting.pop()
            if name not in readers:
                bindings = self._after.bindings.items()
                readers[name] = {other for other, each in bindings if _any_reads(each, name)}
                waiting += readers[name]
                if self._mark_units_that_read(name):
                    readers[name].add(MODULE)
        self._stale |= readers.keys()
        return [name for name in changed if MODULE not in _closure(name, readers)]

    def _mark_units_that_read(self, name: str) -> bool:
        """Mark the units that read a name; return whether units of either text do, or are it."""
        self._changed |= {u for u in self._shared if _any_reads(self._after.units[u], name)}
        for owner, found in self._after.classes.items():
            if owner in self._before.classes:
                if _any_reads(found.header, name):
                    self._mark_class(owner)
                for attribute, pieces in found.attributes.items():
                    if _any_reads(pieces, name):
                        self._mark_attribute(owner, attribute)
        sides = (self._before, self._after)
        if any(name in side.units or name in side.classes for side in sides):
            return True
        return any(_any_reads(side.unit_pieces, name) for side in sides)

    # -- the module itself

    def _changed_module(self, unread: Sequence[str]) -> Iterator[ChangedUnit]:
        """Yield the module as a unit if something changed in it that belongs to no other unit."""
        old, new = self._before, self._after
        code = _first_difference(old.code, new.code)
        rebound = [
            new.bindings[name][-1].line if name in new.bindings else 1
            for name in unread
            if name in old.bindings or name in new.bindings
        ]
        if lines := [*code, *rebound, *_first_difference(old.script, new.script)]:
            edits = Edits()
            edits.compare([p.node for p in old.code], [p.node for p in new.code])
            edits.compare([p.node for p in old.script], [p.node for p in new.script])
            for name in unread:
                if not any(p.is_import for side in (old, new) for p in side.bindings.get(name, ())):
                    edits.compare(*self._nodes(name))
            yield ChangedUnit(MODULE, lines[0], *edits.spots, edits.values)


def _any_reads(pieces: Iterable[Piece], name: str) -> bool:
    # Any name may be of a module of which all names are imported.
    return name.startswith(STAR) or any(name in piece.mentions for piece in pieces)


def _differ(before: Iterable[Piece], after: Iterable[Piece]) -> bool:
    # A repeated import, as `import a.b` and `import a.c` repeat `a`, is not a difference.
    contents = (dict.fromkeys(piece.content for piece in pieces) for pieces in (before, after))
    return list(next(contents)) != list(next(contents))


def _closure(name: str, readers: Mapping[str, set[str]]) -> set[str]:
    """Return what reads a name, directly or through other names."""
    found: set[str] = set()
    waiting = {name}
    while waiting:
        more = readers.get(waiting.pop(), set()) - found
        found |= more
        waiting |= more
    return found


def _first_difference(before: Sequence[Piece], after: Sequence[Piece]) -> list[int]:
    """Return the line of the first piece that differs, 1 if it was removed; empty if none does."""
    for old, new in zip_longest(before, after):
        if old is None or new is None or old.content != new.content:
            return [new.line if new else 1]
    return []


def _only_in(one: Outline, other: Outline) -> Iterator[str]:
    """Yield the units of one module that the other lacks, and its classes without methods."""
    yield from (name for name in one.units if name not in other.units)
    for name, found in one.classes.items():
        if name not in other.classes and not found.methods:
            yield name
