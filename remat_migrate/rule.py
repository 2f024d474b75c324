"""What a rule is written against: Rule, Finding, Fix, Safety, Example, Fails.

A rule is a class with a code and a name that looks at one module of a project and yields findings;
a finding names a place and has at most one fix; a fix is a list of edits, possibly in several
files, applied whole or not at all. A package offers rules through the entry point group
`remat_migrate.rules`: the entry point names a module with a list `RULES` of rule classes, or one
rule class.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from .codemod.changes import Change, SetComment
from .codemod.comments import comment_edit
from .errors import CodemodError, UnreadableCodeError
from .settings import Severity as Severity
from .text import Edit, SourceFile, Span

if TYPE_CHECKING:
    from .analysis import Module, Project, Site

Confidence = Literal["high", "medium", "low"]


class Safety(enum.StrEnum):
    """How far a fix may be trusted.

    SAFE: same values and gradients, comments kept, nothing renamed. UNSAFE: values the same, but
    memory, time or names may change; needs `--unsafe-fixes`. MANUAL: shown, never applied.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that explains a finding: "called here", "Python needs this value"."""

    source: SourceFile
    span: Span
    message: str


@dataclass(frozen=True)
class Fix:
    """Changes that fix a finding, applied as a whole or not at all.

    The new code is written when somebody asks for `edits`: until then LibCST is not imported.

    Attributes:
        title: what it does; for a MANUAL fix, what to write by hand.
        safety: how far it may be trusted.
        changes: Changes of syntax trees; edits of files that are not Python. Empty for a MANUAL
            fix.
    """

    title: str
    safety: Safety
    changes: tuple[Change | Edit, ...] = ()

    @classmethod
    def manual(cls, advice: str) -> Fix:
        """Return a fix that is never applied and only says what to write by hand."""
        return cls(advice, Safety.MANUAL)

    @property
    def is_automatic(self) -> bool:
        """Whether it can be applied."""
        return bool(self.changes) and self.safety is not Safety.MANUAL

    @cached_property
    def paths(self) -> frozenset[Path]:
        """The files that it edits."""
        return frozenset(map(_path, self.changes))

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """The fix as edits of text; none if it cannot be written, see `failure`."""
        return self.written[0]

    @property
    def failure(self) -> str:
        """Why it cannot be written; empty if it can."""
        return str(self.written[1] or "")

    @property
    def is_unreadable(self) -> bool:
        """Whether it cannot be written because LibCST does not understand the old code."""
        return isinstance(self.written[1], UnreadableCodeError)

    @cached_property
    def written(self) -> tuple[tuple[Edit, ...], CodemodError | None]:
        """The edits, or the reason that there are none."""
        try:
            return tuple(_written(self.changes)), None
        except CodemodError as error:
            return (), error


def fixes_by_path(fixes: Iterable[Fix]) -> dict[Path, list[Fix]]:
    """The fixes that change each file."""
    found: dict[Path, list[Fix]] = defaultdict(list)
    for fix in fixes:
        for path in sorted(fix.paths):
            found[path].append(fix)
    return found


def joint_edits(path: Path, fixes: Sequence[Fix]) -> list[Edit]:
    """The edits of one file that make fixes at once: each statement is written once.

    Raises:
        CodemodError: LibCST cannot parse a statement, or two changes contradict each other.
    """
    if len(fixes) == 1:
        edits, error = fixes[0].written
        if error is not None:
            raise error
        return [edit for edit in edits if edit.path == path]
    every = dict.fromkeys(change for fix in fixes for change in fix.changes)
    return _written(change for change in every if _path(change) == path)


def _path(change: Change | Edit) -> Path:
    return change.path if isinstance(change, Edit) else change.file.source.path


def _written(changes: Iterable[Change | Edit]) -> list[Edit]:
    edits: dict[Edit, None] = {}
    trees: list[Change] = []
    for change in changes:
        if isinstance(change, Edit):
            edits[change] = None
        elif isinstance(change, SetComment):
            edits[comment_edit(change)] = None
        else:
            trees.append(change)
    if trees:
        from .codemod.writer import write

        edits |= dict.fromkeys(write(trees))
    return list(edits)


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem at one place.

    Attributes:
        code: the rule's code.
        name: the rule's name.
        message: one line, says what is wrong and since when.
        source: the file.
        span: the characters to underline.
        severity: "error" where today's JAX fails, "warning" where it is silently wrong or wasteful,
            "note" for advice, which does not fail a run.
        confidence: how sure the analysis is.
        fix: what mends it, if anything is known.
        related: other places that explain it.
        reason: why there is no automatic fix and what to write instead, or more about the problem.
        url: what the library itself says about it.
        sites: the checkpoints that it concerns besides those in the statement that it is in.
    """

    code: str
    name: str
    message: str
    source: SourceFile
    span: Span
    severity: Severity = "error"
    confidence: Confidence = "high"
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    reason: str = ""
    url: str = ""
    sites: tuple[Site, ...] = field(default=(), compare=False, repr=False)

    @property
    def path(self) -> Path:
        """The file's absolute path."""
        return self.source.path


@dataclass(frozen=True, slots=True)
class Fails:
    """How code fails under JAX.

    Attributes:
        error: a regular expression that is found in `TypeName: message`.
        since: the first jax release in which it fails; "": all that there are.
        until: the first jax release in which it no longer does; "": none yet.
    """

    error: str
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """Wrong code, and what the rule's fix makes of it (None: found, but not fixed).

    The tests run what has a `use` under JAX: the old text fails as `fails` says, or else what
    `shows` asserts of it is true; the new text runs and does what `holds` asserts.

    Attributes:
        before: the code.
        after: with the rule's fix; None where there is none. Of right code: left empty.
        filename: matters to rules that read other files than Python.
        others: further files of the example: name, before, after.
        use: code that exercises the example; it is run after it, in the same names.
        fails: how `before` with `use` fails.
        shows: code that asserts what silently goes wrong with `before`, where it does not fail;
            run after `use`.
        holds: code that asserts what is right of `after` or of right code; run after `use`.
    """

    before: str
    after: str | None = None
    filename: str = "example.py"
    others: tuple[tuple[str, str, str], ...] = ()
    use: str = ""
    fails: Fails | None = None
    shows: str = ""
    holds: str = ""


class Rule:
    """The base of all rules.

    Class attributes:
        code: unique, letters then three digits.
        name: words joined by hyphens; the file that holds the rule has the same words.
        since: the JAX release from which the found code fails, or "".
        url: the library's own page about it: a release note, a JEP.
        severity: the severity of its findings, unless one is given its own.
        enabled: whether the rule runs unless it is named in `select`.
        words: a file that names JAX and has one of these words is looked at for the rule's sake;
            without them it is one that may hold a checkpoint, a policy, the flag or a suppression.
        wrong: examples that the rule finds, with the fixed text where it fixes them.
        right: examples that the rule must leave alone.

    The class docstring is what `remat-migrate explain` shows: sections `## What it does`,
    `## Why is this bad?`, `## Fix`.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    since: ClassVar[str] = ""
    url: ClassVar[str] = ""
    severity: ClassVar[Severity] = "error"
    enabled: ClassVar[bool] = True
    words: ClassVar[tuple[str, ...]] = ()
    wrong: ClassVar[list[Example]] = []
    right: ClassVar[list[Example | str]] = []

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Findings about the run as a whole. Yields nothing unless overridden."""
        return iter(())

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Findings in one Python module. Yields nothing unless overridden."""
        return iter(())

    def check_text(self, source: SourceFile, project: Project) -> Iterator[Finding]:
        """Findings in one file that is not Python. Yields nothing unless overridden."""
        return iter(())

    def finding(
        self,
        source: SourceFile,
        span: Span,
        message: str,
        *,
        severity: Severity | None = None,
        confidence: Confidence = "high",
        fix: Fix | None = None,
        related: tuple[Related, ...] = (),
        reason: str = "",
        sites: tuple[Site, ...] = (),
    ) -> Finding:
        """Return a finding of this rule; the reason defaults to the advice of a manual fix."""
        return Finding(
            code=self.code,
            name=self.name,
            message=message,
            source=source,
            span=span,
            severity=severity or self.severity,
            confidence=confidence,
            fix=fix,
            related=related,
            reason=reason or (fix.title if fix and fix.safety is Safety.MANUAL else ""),
            url=self.url,
            sites=sites,
        )
