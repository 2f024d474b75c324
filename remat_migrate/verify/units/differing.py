"""Which units differ between two texts of a module.

A unit is a top-level function, a method of a top-level class, or a name that is bound to a function
by an assignment; "" is the module itself. Changed is not only a unit whose own code changed, but
one that reads a name whose import or value did. What a unit *calls* does not count: that is a unit
of its own.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .outline import STAR, Outline, Piece, outline

MODULE = ""
_BUILTINS = frozenset(dir(builtins))
_CALLED = ("__call__", "forward")


@dataclass(frozen=True, slots=True)
class ChangedUnit:
    """A unit that both texts have and that differs.

    Attributes:
        qualname: `function`, `Class.method`, `Class.Inner.method`, `name`; "" for the module, and
            `Class` where a class without methods of its own changed.
        line_before: its line in the old text, counted from 1.
        line_after: its line in the new text.
        reason: what changed, as the end of a sentence that starts with the unit.
        direct: whether its own code changed, not only something that it reads.
        script: whether all that changed runs only where the module is the program.
    """

    qualname: str
    line_before: int
    line_after: int
    reason: str
    direct: bool = True
    script: bool = False


@dataclass(frozen=True, slots=True)
class ModuleDifference:
    """How two texts of a module differ, by qualified names.

    Attributes:
        changed: the units that both have, in the order of the new text, the module itself last.
        added: units that only the new text has.
        removed: units that only the old text has.
        renamed: units that only have another name, the old one first; in none of the others.
    """

    changed: tuple[ChangedUnit, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


def changed_units(before: str, after: str) -> ModuleDifference:
    """How the units of a module differ between two of its texts.

    Positions, formatting, comments and docstrings do not count.

    Raises:
        SyntaxError: one of the texts is not Python that this interpreter can parse.
    """
    return _Comparison(outline(before), outline(after)).difference()


def unit_at(text: str, offset: int) -> str | None:
    """The unit that a character (counted from 0) belongs to.

    Of the statements of a class body it is the attribute, as `Class.name`, or the class. "" is
    code that runs at import and belongs to no unit; None is what is not run at all: a comment or a
    blank line outside of every statement.

    Raises:
        SyntaxError: the text is not Python that this interpreter can parse.
    """
    found = outline(text)
    pieces = [*found.code, *found.script]
    for group in (found.bindings, found.units):
        pieces += (piece for each in group.values() for piece in each)
    for qualname, each in found.classes.items():
        pieces += each.header
        for name, attributes in each.attributes.items():
            own = f"{qualname}.{name}".rstrip(".")
            pieces += (replace(piece, name=own) for piece in attributes)
    around = [p for p in pieces if p.span.start <= offset < p.span.end]
    if not around:
        return None
    # Of several with the same characters, as of `f, g = h(a), h(b)`, it is the first unit.
    known = {*found.units, *found.classes}
    innermost = min(around, key=lambda p: (p.span.end - p.span.start, p.name not in known))
    return innermost.name if innermost.name in known or "." in innermost.name else MODULE


class _Comparison:
    """Two outlines of a module, and what was found to differ."""

    def __init__(self, before: Outline, after: Outline) -> None:
        self._before = before
        self._after = after
        self._reasons: dict[str, tuple[str, bool]] = {}
        self._shared = [name for name in after.units if name in before.units]

    def difference(self) -> ModuleDifference:
        old, new = self._before.units, self._after.units
        removed = [name for name in old if name not in new]
        added = [name for name in new if name not in old]
        renamed = _renamed(
            {name: old[name] for name in removed}, {name: new[name] for name in added}
        )
        for name in self._shared:
            if _contents(old[name]) != _contents(new[name]):
                self._mark(name, "its code changed", direct=True)
        self._mark_classes()
        unread = self._follow(self._changed_names())
        module = self._changed_module(unread)
        paired = {name for pair in renamed for name in pair}
        return ModuleDifference(
            (*self._changed_units(), *module),
            (*(n for n in added if n not in paired), *_bare(self._after, self._before)),
            (*(n for n in removed if n not in paired), *_bare(self._before, self._after)),
            renamed,
        )

    def _mark(self, name: str, reason: str, *, direct: bool = False) -> None:
        self._reasons.setdefault(name, (reason, direct))

    def _changed_units(self) -> list[ChangedUnit]:
        found = [
            ChangedUnit(name, _line(self._before, name), _line(self._after, name), reason, direct)
            for name, (reason, direct) in self._reasons.items()
        ]
        return sorted(found, key=lambda unit: (unit.line_after, unit.qualname))

    # -- classes

    def _mark_classes(self) -> None:
        for name, new in self._after.classes.items():
            old = self._before.classes.get(name)
            if old is None:
                continue
            if _contents(old.header) != _contents(new.header):
                self._mark_class(name, f"the decorators or bases of class `{name}` changed")
            for attribute in sorted({*old.attributes, *new.attributes}):
                pieces = (old.attributes.get(attribute, ()), new.attributes.get(attribute, ()))
                if _contents(pieces[0]) != _contents(pieces[1]):
                    self._mark_attribute(name, attribute, "changed")

    def _mark_attribute(self, owner: str, name: str, what: str) -> None:
        """Mark what reads an attribute of a class, through an instance or the class itself."""
        if not name:
            self._mark_class(owner, f"the body of class `{owner}` {what}")
            return
        family = self._family(owner)
        found = False
        for unit in self._shared:
            pieces = self._after.units[unit]
            within = unit.rpartition(".")[0] in family
            if within and any(name in p.attributes or name in p.mentions for p in pieces):
                self._mark(unit, f"it reads `{name}` of class `{owner}`, which {what}")
            elif any(piece.reads(f"{owner}.{name}") for piece in pieces):
                self._mark(unit, f"it reads `{owner}.{name}`, which {what}")
            else:
                continue
            found = True
        if not found:
            self._mark_class(owner, f"`{name}` of class `{owner}` {what}")

    def _mark_class(self, name: str, reason: str) -> None:
        """Mark what a class is for: what is called from outside."""
        methods = [unit for unit in self._shared if unit.rpartition(".")[0] == name]
        short = {unit: unit.rpartition(".")[2] for unit in methods}
        public = [u for u in methods if short[u] in _CALLED or not short[u].startswith("_")]
        for unit in public or methods:
            self._mark(unit, reason)
        if not methods:
            self._mark(name, reason, direct=True)

    def _family(self, owner: str) -> set[str]:
        """A class and those of the module that are derived from it."""
        family = {owner}
        while True:
            names = family | {name.rpartition(".")[2] for name in family}
            more = {n for n, c in self._after.classes.items() if c.bases & names} - family
            if not more:
                return family
            family |= more

    # -- names that units read

    def _changed_names(self) -> dict[str, str]:
        """The names of the module that do not mean what they did, each with what happened."""
        old, new = self._before.bindings, self._after.bindings
        found = {}
        for name in sorted({*old, *new}):
            pieces = (*old.get(name, ()), *new.get(name, ()))
            if _contents(old.get(name, ())) != _contents(new.get(name, ())):
                imported = any(piece.is_import for piece in pieces)
                found[name] = "whose import changed" if imported else "which changed"
        for name in self._before.names ^ self._after.names:
            found.setdefault(name, "which one of the two texts does not define")
        return found

    def _follow(self, changed: Mapping[str, str]) -> list[str]:
        """Mark what reads one of `changed`, through other names too; returns what nothing reads."""
        known = dict(changed)
        readers: defaultdict[str, set[str]] = defaultdict(set)
        waiting = list(known)
        while waiting:
            name = waiting.pop()
            for reader, pieces in self._after.bindings.items():
                if self._any_reads(pieces, name):
                    readers[name].add(reader)
                    if reader not in known:
                        known[reader] = f"which is made from `{_shown(name)}`, {known[name]}"
                        waiting.append(reader)
            if self._mark_readers(name, known[name]):
                readers[name].add(MODULE)
        return [name for name in changed if not _is_read(name, readers)]

    def _mark_readers(self, name: str, what: str) -> bool:
        """Mark the units that read a name; whether there is one, be it new or gone."""
        found = name in self._before.units or name in self._after.units
        found = found or name in self._before.classes or name in self._after.classes
        for unit in self._shared:
            if self._any_reads(self._after.units[unit], name):
                self._mark(unit, f"it reads `{_shown(name)}`, {what}")
        for owner, outlined in self._after.classes.items():
            if owner not in self._before.classes:
                continue
            if self._any_reads(outlined.header, name):
                reason = f"class `{owner}` is made from `{_shown(name)}`, {what}"
                self._mark_class(owner, reason)
                found = True
            for attribute, pieces in outlined.attributes.items():
                if self._any_reads(pieces, name):
                    self._mark_attribute(owner, attribute, f"is made from `{_shown(name)}`, {what}")
                    found = True
        return found or any(self._any_reads(pieces, name) for pieces in self._all_units())

    def _all_units(self) -> Iterator[Sequence[Piece]]:
        """What stands in units and classes of either text."""
        for side in (self._before, self._after):
            yield from side.units.values()
            for found in side.classes.values():
                yield found.header
                yield from found.attributes.values()

    def _any_reads(self, pieces: Iterable[Piece], name: str) -> bool:
        if not name.startswith(STAR):
            return any(piece.reads(name) for piece in pieces)
        defined = self._before.names | self._after.names | _BUILTINS
        return any(m.partition(".")[0] not in defined for p in pieces for m in p.mentions)

    # -- the module itself

    def _changed_module(self, unread: Sequence[str]) -> Iterator[ChangedUnit]:
        """The module as a unit, for what changed in it and belongs to no other."""
        reasons: list[str] = []
        places: list[tuple[Piece | None, Piece | None]] = []
        if place := _first_difference(self._before.code, self._after.code):
            reasons.append("code changed that runs at import")
            places.append(place)
        ran = [*self._before.code, *self._after.code]
        for name in unread:
            old, new = (_last(side.bindings.get(name)) for side in (self._before, self._after))
            # That the code which changed needs another import goes without saying.
            if (old or new) and not (reasons and self._any_reads(ran, name)):
                reasons.append(f"`{_shown(name)}`, which no unit reads, changed")
                places.append((old, new))
        script = not reasons
        if place := _first_difference(self._before.script, self._after.script):
            reasons.append('code changed that runs only as a script (`__name__ == "__main__"`)')
            places.append(place)
        if reasons:
            before, after = (
                next((p.line for pair in places if (p := pair[side])), 1) for side in (0, 1)
            )
            yield ChangedUnit(MODULE, before, after, "; ".join(reasons), script=script)


def _contents(pieces: Iterable[Piece]) -> list[str]:
    # An import that is repeated, as `import a.b` and `import a.c` repeat `a`, changes nothing.
    return list(dict.fromkeys(piece.content for piece in pieces))


def _is_read(name: str, readers: Mapping[str, set[str]]) -> bool:
    """Whether a unit reads a name or what is made from it."""
    seen = {name}
    waiting = [name]
    while waiting:
        for reader in readers.get(waiting.pop(), ()):
            if reader == MODULE:
                return True
            if reader not in seen:
                seen.add(reader)
                waiting.append(reader)
    return False


def _first_difference(
    before: Sequence[Piece], after: Sequence[Piece]
) -> tuple[Piece | None, Piece | None] | None:
    """The first pieces that are not the same, None where one list has ended."""
    for index in range(max(len(before), len(after))):
        old = before[index] if index < len(before) else None
        new = after[index] if index < len(after) else None
        if old is None or new is None or old.content != new.content:
            return old, new
    return None


def _renamed(
    removed: Mapping[str, Sequence[Piece]], added: Mapping[str, Sequence[Piece]]
) -> tuple[tuple[str, str], ...]:
    """Removed units with the added ones that have the same body.

    Of several with one body those are paired that share the last part of their name, or the class;
    what is left is paired only if it is one of each.
    """
    same: defaultdict[tuple[str, ...], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for index, group in enumerate((removed, added)):
        for name, pieces in group.items():
            same[tuple(piece.nameless for piece in pieces)][index].append(name)
    pairs = []
    for old, new in same.values():
        for part in (2, 0):
            for name in list(old):
                alike = [n for n in new if n.rpartition(".")[part] == name.rpartition(".")[part]]
                if len(alike) == 1 and (part == 2 or len(old) == 1 or "." in name):
                    pairs.append((name, alike[0]))
                    old.remove(name)
                    new.remove(alike[0])
        if len(old) == len(new) == 1:
            pairs.append((old[0], new[0]))
    return tuple(sorted(pairs))


def _bare(one: Outline, other: Outline) -> Iterator[str]:
    """The classes of one module that the other lacks and that have no methods of their own."""
    for name, found in one.classes.items():
        if name not in other.classes and not found.methods:
            yield name


def _line(found: Outline, name: str) -> int:
    pieces = found.units.get(name) or found.classes[name].header
    return pieces[-1].line


def _last(pieces: Sequence[Piece] | None) -> Piece | None:
    return pieces[-1] if pieces else None


def _shown(name: str) -> str:
    """A name as a reader knows it."""
    return f"from {name.removeprefix(STAR).strip()} import *" if name.startswith(STAR) else name
