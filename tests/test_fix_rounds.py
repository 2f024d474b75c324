"""Applying fixes in memory: conflicts, rounds, and dropped, refused and oscillating fixes."""

from __future__ import annotations

import builtins
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.engine.fix_rounds import FixOutcome, fix_to_fixed_point
from remat_migrate.errors import SourceError
from remat_migrate.rule import Finding, Fix, Safety
from remat_migrate.text import Edit, SourceFile, Span

A, B, C = Path("/project/a.py"), Path("/project/b.py"), Path("/project/c.py")
SAFE = frozenset({Safety.SAFE})

Files = Mapping[Path, SourceFile]
Rule = Callable[[Files], Iterable[Finding]]


@dataclass(frozen=True)
class Look:
    """The findings of some rules in some files."""

    files: Files
    findings: list[Finding]

    def source(self, path: Path) -> SourceFile:
        if path not in self.files:
            raise SourceError(path, "cannot be read: it is not there")
        return self.files[path]


def finding(
    source: SourceFile,
    at: int,
    edits: Iterable[Edit],
    *,
    code: str = "RMT101",
    safety: Safety = Safety.SAFE,
) -> Finding:
    fix = Fix("mend it", safety, tuple(edits))
    return Finding(code, "name", "message", source, Span(at, at + 1), fix=fix)


def replaces(pattern: str, text: str, **how: object) -> Rule:
    """Return a rule that replaces a pattern, with one fix per match."""

    def rule(files: Files) -> Iterator[Finding]:
        for path, source in files.items():
            for found in re.finditer(pattern, source.text):
                edit = Edit(path, *found.span(), found.expand(text))
                yield finding(source, found.start(), [edit], **how)  # type: ignore[arg-type]

    return rule


@pytest.fixture(autouse=True, scope="module")
def _names_are_defined() -> Iterator[None]:
    """A fix that reads a name which nothing binds is dropped."""
    names = [*string.ascii_lowercase, "ab", "abc", "bad", "long", "longer", "new"]
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(builtins, name, None, raising=False)
        yield


def looker(
    texts: Mapping[Path, str], *rules: Rule, shuffle: random.Random | None = None
) -> Callable[[Files], Look]:
    def analyse(overlay: Files) -> Look:
        files = {path: SourceFile(path, text) for path, text in texts.items()} | dict(overlay)
        findings = [finding for rule in rules for finding in rule(files)]
        if shuffle:
            shuffle.shuffle(findings)
        return Look(files, findings)

    return analyse


def fix(texts: Mapping[Path, str], *rules: Rule, **how: object) -> FixOutcome:
    return fix_to_fixed_point(looker(texts, *rules), SAFE, **how)  # type: ignore[arg-type]


def changed(outcome: FixOutcome) -> dict[Path, str]:
    return {change.path: change.after.text for change in outcome.changes}


def test_a_conflicting_fix_waits_for_the_next_round() -> None:
    outer = replaces(r"f\(([a-z]*\(.*\)|x)\)", r"h(\1)", code="RMT101")
    inner = replaces(r"g\(x\)", "k(x)", code="RMT102")
    outcome = fix({A: "y = f(g(x))\n"}, inner, outer)
    assert changed(outcome) == {A: "y = h(k(x))\n"}
    assert [done.finding.code for done in outcome.applied] == ["RMT101", "RMT102"]


def test_a_fix_of_several_files_is_applied_as_a_whole() -> None:
    def rename(files: Files) -> Iterator[Finding]:
        a = files[A]
        if "old" in a.text:
            yield finding(
                a,
                a.text.index("old"),
                [Edit(p, (i := s.text.index("old")), i + 3, "new") for p, s in files.items()],
            )

    texts = {A: "def old(): pass\n", B: "old()\n"}
    outcome = fix(texts, rename)
    assert changed(outcome) == {A: "def new(): pass\n", B: "new()\n"}

    refused = fix(texts, rename, editable=lambda path: path != B)
    assert refused.changes == ()
    assert [(r.finding.path, r.paths) for r in refused.refused] == [(A, (B,))]
    assert [f.path for f in refused.analysis.findings] == [A]


def test_rounds_continue_while_fixes_reveal_others() -> None:
    outcome = fix({A: "if1 = if2 = a\n"}, replaces("a", "b"), replaces("b", "c"))
    assert changed(outcome) == {A: "if1 = if2 = c\n"}
    assert len(outcome.applied) == 2


# -- wrong fixes


def test_a_fix_that_only_breaks_with_another_waits() -> None:
    """Each fix deletes one of the two statements of a block."""

    def rule(files: Files) -> Iterator[Finding]:
        source = files[A]
        for found in re.finditer(r"    gone\d\n", source.text):
            text = "    pass\n" if source.text.count("    ") == 1 else ""
            yield finding(source, found.start(), [Edit(A, *found.span(), text)])

    outcome = fix({A: "if a:\n    gone1\n    gone2\n"}, rule)
    assert changed(outcome) == {A: "if a:\n    pass\n"}
    assert outcome.dropped == ()
    assert len(outcome.applied) == 2


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ([Edit(A, 0, 2, "x"), Edit(A, 1, 3, "y")], "overlap"),
        ([Edit(A, 0, 0, "x"), Edit(A, 0, 0, "y")], "overlap"),
        ([Edit(A, 2, 99, "x")], "outside the text"),
        ([Edit(A, 0, 1, "a")], "changes nothing"),
        ([Edit(C, 0, 1, "a")], "cannot be read"),
    ],
)
def test_a_fix_without_effect_is_dropped(edits: list[Edit], reason: str) -> None:
    outcome = fix({A: "a = 1\n"}, lambda files: [finding(files[A], 0, edits)])
    assert outcome.changes == ()
    assert not outcome.oscillating
    assert [reason in dropped.reason for dropped in outcome.dropped] == [True]


# -- fixes without an end


def test_fixes_that_revert_each_other_leave_the_file_unchanged() -> None:
    rules = [replaces(r"\ba\b", "b", code="RMT101"), replaces(r"\bb\b", "a", code="RMT102")]
    outcome = fix({A: "a\n", B: "c\n"}, *rules, replaces(r"\bc\b", "d", code="RMT103"))
    assert outcome.oscillating
    assert outcome.oscillating == (A,)
    assert changed(outcome) == {B: "d\n"}
    assert [done.finding.path for done in outcome.applied] == [B]
    assert [f.path for f in outcome.analysis.findings] == [A]
    assert outcome.refused == ()


def test_an_endless_fix_leaves_the_file_unchanged() -> None:
    looks = 0

    def grow(files: Files) -> Iterator[Finding]:
        nonlocal looks
        looks += 1
        yield finding(files[A], 0, [Edit(A, 0, 0, "x\n")])

    outcome = fix({A: "a\n", B: "b\n"}, grow, replaces("b", "c", code="RMT102"), max_rounds=4)
    assert outcome.oscillating == (A,)
    assert changed(outcome) == {B: "c\n"}
    assert looks < 12


# -- order


NAMES = st.sampled_from(["a", "b", "ab", "abc", "x"])


@given(
    st.lists(NAMES, min_size=1, max_size=8),
    st.lists(st.tuples(NAMES, st.sampled_from(["x", "(y)", "", "y + 1", "x\n", "("])), max_size=6),
    st.integers(),
)
def test_the_order_of_findings_does_not_matter(
    words: list[str], pairs: list[tuple[str, str]], seed: int
) -> None:
    texts = {A: " * ".join(words) + "\n", B: "\n".join(words) + "\n"}
    rules = [replaces(rf"\b{old}\b", new, code=f"RMT10{n}") for n, (old, new) in enumerate(pairs)]
    one = fix_to_fixed_point(looker(texts, *rules), SAFE, max_rounds=3)
    shuffled = looker(texts, *rules, shuffle=random.Random(seed))
    other = fix_to_fixed_point(shuffled, SAFE, max_rounds=3)
    assert changed(one) == changed(other)
    assert one.oscillating == other.oscillating
    assert [d.reason for d in one.dropped] == [d.reason for d in other.dropped]
    assert len(one.applied) == len(other.applied)
